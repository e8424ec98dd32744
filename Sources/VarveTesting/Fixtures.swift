// What a test begins with: rows from JSON, and a container without chance.

public import Foundation
import VarveEngine
public import VarveObjects

extension PersistentContainer {
    /// Adds rows from JSON by the names of entities and properties:
    ///
    /// ```json
    /// {"Country": [{"code": "IS"}], "City": [{"name": "Vík", "country": "IS"}]}
    /// ```
    ///
    /// Fields have the form that `batchInsert(_:jsonLines:)` reads; a relationship is the unique
    /// value of what it leads to. The order of the entities does not matter. Each is one commit.
    ///
    /// - Returns: rows by entity.
    /// - Throws: `StoreError` with `invalid`, `unknownEntity`, `missingValue`, `notUnique`,
    ///   `objectNotFound`, with the number of the row, from 1 on, in its message.
    /// - Complexity: O(log n) for each row, relationship and index; the text is in memory.
    @discardableResult
    public func loadFixtures(json: Data) throws -> [String: Int] {
        try loadFixtures(json, by: "fixtures")
    }

    /// The same from a text.
    @discardableResult
    public func loadFixtures(_ json: String) throws -> [String: Int] {
        try loadFixtures(Data(json.utf8), by: "fixtures")
    }

    /// Makes a store in memory whose clock, object IDs and random numbers follow from a seed: the
    /// same calls on one thread give the same IDs, commit times and bytes in each run.
    ///
    /// What the entities' own defaults ask, as `UUID()` or `Date.now`, is not among it.
    ///
    /// - Parameters:
    ///   - schema: the app's entities.
    ///   - seed: of the random numbers.
    ///   - start: when the clock begins; it moves a second with each look.
    ///   - disk: where the store lies.
    /// - Throws: as `open`.
    public static func deterministic(
        schema: any VersionedSchema.Type,
        seed: UInt64 = 1,
        start: Date = Date(timeIntervalSince1970: 1_772_460_660),
        on disk: SimulatedDisk = SimulatedDisk()
    ) throws -> PersistentContainer {
        let microseconds = (start.timeIntervalSince1970 * 1_000_000).rounded()
        let environment = FixedEnvironment(
            seed: seed,
            startMicroseconds: Int64(exactly: microseconds) ?? 0
        )
        var options = ContainerOptions()
        options.adjustingEngine = {
            $0.environment = environment
            $0.maintenance = .inline
        }
        return try openNow(on: disk, schema: schema, options: options)
    }
}
