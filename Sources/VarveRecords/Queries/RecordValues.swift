// How filters and orders read an object, stored or not yet stored.

public import VarveBase

/// The values of one object: a stored row, or an object with unsaved edits.
public protocol RecordValues {
    /// The object.
    var objectID: ObjectID { get }

    /// The value of a column. Absent columns give their default; large values are resolved.
    func value(_ column: ColumnID) throws(RecordError) -> StoredValue

    /// Whether the column has a value. The default reads the value; a row answers from a tag.
    func isNull(_ column: ColumnID) throws(RecordError) -> Bool

    /// The object that a to-one column leads to.
    func reference(_ column: ColumnID) throws(RecordError) -> ObjectID?
}

extension RecordValues {
    /// Whether the column has no value.
    public func isNull(_ column: ColumnID) throws(RecordError) -> Bool {
        try value(column) == .null
    }

    /// The object that a to-one column leads to.
    public func reference(_ column: ColumnID) throws(RecordError) -> ObjectID? {
        if case .reference(let id) = try value(column) { return id }
        return nil
    }
}

/// How filters and orders reach other objects.
public protocol RecordResolver {
    /// How it shows an object's values.
    associatedtype Values: RecordValues

    /// The values of an object; nil when it does not exist (any more).
    func values(_ entity: EntityID, _ id: ObjectID) throws(RecordError) -> Values?

    /// The members of a to-many relationship.
    func related(
        _ entity: RecordEntity,
        _ relationship: RecordRelationship,
        of id: ObjectID
    ) throws(RecordError) -> [ObjectID]
}
