// Keeping the two columns of a one-to-one relationship equal while one of them is set.
//
// Invariants
// - A partner that either end had before is let go: nobody is led to by two.

public import VarveBase

/// Two to-one relationships that are each other's inverse.
public struct OneToOne {
    /// The entity of the near column.
    public let near: EntityID
    /// The column that is set.
    public let nearColumn: ColumnID
    /// The entity of the far column.
    public let far: EntityID
    /// The column that follows.
    public let farColumn: ColumnID

    /// Joins the two columns.
    public init(near: EntityID, _ nearColumn: ColumnID, far: EntityID, _ farColumn: ColumnID) {
        self.near = near
        self.nearColumn = nearColumn
        self.far = far
        self.farColumn = farColumn
    }
}

extension RecordTransaction {
    /// Makes the far sides of a one-to-one relationship agree with what the near object `id` is
    /// about to lead to. The near row itself is the caller's.
    ///
    /// - Parameter updated: counts the rows that were changed.
    public func relate(
        _ pair: OneToOne,
        _ id: ObjectID,
        to target: ObjectID?,
        _ updated: inout Int
    ) throws(RecordError) {
        if let old = try row(pair.near, id)?.reference(pair.nearColumn), old != target,
            try row(pair.far, old)?.reference(pair.farColumn) == id
        {
            try update(pair.far, old, [ColumnValue(pair.farColumn, .null)])
            updated += 1
        }
        guard let target, let row = try row(pair.far, target) else { return }
        let previous = try row.reference(pair.farColumn)
        if previous == id { return }
        if let previous, try self.row(pair.near, previous)?.reference(pair.nearColumn) == target {
            try update(pair.near, previous, [ColumnValue(pair.nearColumn, .null)])
            updated += 1
        }
        try update(pair.far, target, [ColumnValue(pair.farColumn, .reference(id))])
        updated += 1
    }
}
