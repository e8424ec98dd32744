// Random transactions that remember what the store held after each of them.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

/// A clock that a test sets, and otherwise the real thing.
final class SetClock: Environment {
    let microseconds = Mutex<Int64>(1_000_000)
    func randomBytes(_ count: Int) -> [UInt8] { SystemEnvironment().randomBytes(count) }
    func monotonicNanoseconds() -> UInt64 { SystemEnvironment().monotonicNanoseconds() }
    func wallClockMicroseconds() -> Int64 { microseconds.withLock { $0 } }
    func processID() -> Int32 { 1 }
    func yield(_ point: YieldPoint) {}
    func advance() { microseconds.withLock { $0 += 1_000 } }
}

/// Rows as `contents()` spells them, and the bytes of their blobs.
struct Everything: Equatable {
    var rows: [UInt64: String] = [:]
    var blobs: [UInt64: [UInt8]] = [:]
}

extension Snapshot {
    func everything() throws -> Everything {
        var result = Everything(rows: try contents())
        for object in result.rows.keys {
            let row = try #require(try row(TestDelegate.rows, ObjectID(object)))
            guard case .blob(let reference) = try RowView(row.bytes).value(ColumnID(2)) else {
                continue
            }
            result.blobs[object] = try #require(try blob(reference)).readAll()
        }
        return result
    }
}

struct RandomHistory {
    var random: SeededRandom
    var live: [UInt64] = []
    var next: UInt64 = 0
    /// Blobs of more bytes become files.
    var externalLimit = 500
    /// What the store held after each commit, and what the commit changed.
    var states: [CommitNumber: Everything] = [:]
    var changes: [CommitNumber: [RowChangeKind: Set<UInt64>]] = [:]
    var newest = Everything()

    init(seed: UInt64) { random = SeededRandom(seed: seed) }

    static func adjust(_ options: inout EngineOptions) {
        options.nodeWeightMax = 512
        options.tailRoomMin = 4096
        options.tailRoomMax = 16 << 10
        options.checkpointTailMin = 6 << 10
        options.checkpointTailMax = 6 << 10
        options.deltaBytesMax = 3 << 10
        options.inlineValueBytesMax = 256
    }

    private mutating func blob(
        _ engine: Engine
    ) throws -> (pending: PendingBlob, bytes: [UInt8])? {
        guard Int.random(in: 0..<4, using: &random) == 0 else { return nil }
        let size = [40, 90, 700, 900].randomElement(using: &random) ?? 40
        let letter = UInt8.random(in: 1...3, using: &random)
        let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) &+ letter }
        let writer = try engine.makeBlobWriter(externalLimit: externalLimit)
        try writer.append(bytes)
        return (try writer.finish(), bytes)
    }

    /// One commit; now and then a large one.
    @discardableResult
    mutating func commit(_ engine: Engine) throws -> CommitNumber {
        var after = newest
        var seen: [RowChangeKind: Set<UInt64>] = [:]
        var held: [PendingBlob] = []
        var changes: [(WriteTransaction) throws -> Void] = []
        let entity = TestDelegate.entity
        let isLarge = Int.random(in: 0..<9, using: &random) == 0
        var touched: Set<UInt64> = []
        for _ in 0..<(isLarge ? 70 : Int.random(in: 1...8, using: &random)) {
            let length = Int.random(in: 0..<10, using: &random) == 0 ? 600 : 12
            let text = String(
                (0..<length).map { _ in "abcdefgh".randomElement(using: &random) ?? "a" }
            )
            let int = Int64.random(in: 0...50, using: &random)
            let blob = try blob(engine)
            if let blob { held.append(blob.pending) }
            let reference = blob?.pending.reference
            let values: [StoredValue?] = [.int(int), .text(text)]
            let kind = Int.random(in: 0..<10, using: &random)
            let index = live.isEmpty ? 0 : Int.random(in: 0..<live.count, using: &random)
            if live.isEmpty || kind < 5 || touched.contains(live[index]) {
                next += 1
                let object = next
                live.append(object)
                touched.insert(object)
                seen[.inserted, default: []].insert(object)
                after.rows[object] = "\(values)"
                after.blobs[object] = blob?.bytes
                changes.append {
                    try $0.insert(entity, ObjectID(object), row: row(int, text, blob: reference))
                }
                continue
            }
            let object = live[index]
            touched.insert(object)
            if kind < 8 {
                seen[.updated, default: []].insert(object)
                after.rows[object] = "\(values)"
                after.blobs[object] = blob?.bytes
                let patch = RowPatch.encode([
                    (ColumnID(0), .int(int)), (ColumnID(1), .text(text)),
                    (ColumnID(2), reference.map { .blob($0) } ?? .null),
                ])
                changes.append { try $0.update(entity, ObjectID(object), patch: patch) }
            } else {
                seen[.deleted, default: []].insert(object)
                live.remove(at: index)
                after.rows[object] = nil
                after.blobs[object] = nil
                changes.append { try $0.delete(entity, ObjectID(object)) }
            }
        }
        let (_, commit) = try engine.write(author: "author \(next)") { transaction in
            for change in changes { try change(transaction) }
        }
        let number = try #require(commit)
        newest = after
        states[number] = after
        self.changes[number] = seen
        return number
    }
}
