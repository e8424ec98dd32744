// What a batch does with a new row whose unique values another object has.

import VarveBase
import VarveRecords

/// What `batchInsert` does with a row whose unique values exist already.
public struct BatchConflictPolicy<Entity: ManagedObject>: Sendable {
    enum Kind: Sendable {
        case asDeclared, error, ignore
        case upsert([String])
    }
    let kind: Kind

    /// What each constraint of the entity says, as in a save: `onConflict:` of `#Unique`.
    public static var asDeclared: Self { Self(kind: .asDeclared) }
    /// The batch fails with `notUnique`, whatever the constraints say.
    public static var error: Self { Self(kind: .error) }
    /// The row is dropped and counts as skipped, whichever constraint it meets.
    public static var ignore: Self { Self(kind: .ignore) }

    /// The object with the same values of a constraint takes what the row was given, relationships
    /// too, and keeps its ID and what the row does not name: `.upsert(by: \.code)`. A row that
    /// changes nothing is skipped. Other constraints fail with `notUnique`.
    ///
    /// - Parameter terms: the properties of one `#Unique` of the entity, in any order; the batch
    ///   throws `invalidRequest` if none has exactly these.
    public static func upsert<each Term: IndexTerm>(
        by terms: repeat KeyPath<Entity.Columns, each Term>
    ) -> Self {
        var names: [String] = []
        for term in repeat Entity.columns[keyPath: each terms] {
            names.append(term.indexTerm.name)
        }
        return Self(kind: .upsert(names))
    }
}

extension EntityModel {
    /// The uniqueness constraint over exactly these properties.
    func constraint(over names: [String]) -> RecordIndex? {
        let wanted = Set(names)
        return record.indexes.first { $0.uniqueness != nil && Set($0.names) == wanted }
    }

    /// The constraints, for messages.
    var constraintNames: String {
        let all = record.indexes.filter { $0.uniqueness != nil }
            .map { "(\($0.names.joined(separator: ", ")))" }
        return all.isEmpty ? "it has none" : "it has \(all.joined(separator: ", "))"
    }

    func noConstraint(over names: [String]) -> StoreError {
        StoreError(
            .invalidRequest,
            "\(name) has no uniqueness constraint over (\(names.joined(separator: ", ")))",
            place: .init(entity: name),
            suggestion: "Name the properties of one of its #Unique: \(constraintNames)."
        )
    }
}

extension RecordTransaction {
    /// The object that has these values of a constraint; nil: none has, or one of them is null.
    func object(
        _ model: EntityModel,
        _ index: RecordIndex,
        _ values: [ColumnValue]
    ) throws(RecordError) -> ObjectID? {
        try uniqueConflicts(model.record.id, values: values)
            .first { $0.properties == index.names }?.objects.first
    }
}

extension BatchRow {
    /// The object of an entity that has a unique value, in the newest commit or among the rows of
    /// this batch so far: `row.country = try row.id(of: Country.self, where: \.code, is: "IS")`.
    ///
    /// - Parameters:
    ///   - type: the entity.
    ///   - column: an attribute that a `#Unique` has alone.
    ///   - value: its value.
    /// - Returns: the ID; nil if no object has the value.
    /// - Throws: `StoreError` with `invalidRequest` if no constraint is over that attribute alone;
    ///   `unknownEntity`, `damaged`, `ioFailed`.
    /// - Complexity: O(log n).
    public func id<Target: ManagedObject, Value: StorableValue>(
        of type: Target.Type,
        where column: KeyPath<Target.Columns, Column<Target, Value>>,
        is value: Value
    ) throws -> Target.ID? {
        let target = try container.model(of: type)
        let definition = Target.columns[keyPath: column].definition
        guard let index = target.constraint(over: [definition.name]) else {
            throw target.noConstraint(over: [definition.name])
        }
        let values = [ColumnValue(target.columns[definition.slot], value.stored)]
        let found = try container.translating { () throws(RecordError) in
            try transaction.object(target, index, values)
        }
        return found.map {
            TypedObjectID(
                ManagedObjectID(
                    store: container.identity,
                    entity: target.record.id,
                    object: $0
                )
            )
        }
    }
}
