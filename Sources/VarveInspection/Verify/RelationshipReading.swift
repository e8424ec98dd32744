// What the walk over relationships reads: rows beside an index, and the keys of link rows.
//
// Invariants
// - A row or a key that cannot be read is nothing here: other steps of the check tell it.

import VarveBase
import VarveEngine
import VarveFormat
import VarveRecords

/// The rows of an entity, gone through beside something else that ascends.
struct RowsBeside {
    private var cursor: TreeCursor
    private var current: ObjectID?
    private var isAtEnd = false

    init(_ storage: Snapshot, _ tree: TreeID) { cursor = storage.cursor(tree) }

    /// Goes to the row of an object; false when there is none. Calls ascend.
    /// - Complexity: O(1) for the same or the next row, O(log n) for one further on.
    mutating func move(to object: ObjectID) throws(InspectionError) -> Bool {
        if isAtEnd { return false }
        if let current, current >= object { return current == object }
        if current != nil {
            try take(engine { () throws(EngineError) in try cursor.next() })
            if isAtEnd { return false }
            if let current, current >= object { return current == object }
        }
        var key: [UInt8] = []
        KeyCoding.appendObjectID(object, to: &key)
        let start = key
        try take(engine { () throws(EngineError) in try cursor.seek(atOrAfter: start) })
        return !isAtEnd && current == object
    }

    /// Passes over keys that are no object ID.
    private mutating func take(_ hasEntry: Bool) throws(InspectionError) {
        var hasEntry = hasEntry
        while hasEntry {
            current = try engine { () throws(EngineError) in
                try SharedObjectIDs.object(at: cursor)
            }
            if current != nil { return }
            hasEntry = try engine { () throws(EngineError) in try cursor.next() }
        }
        isAtEnd = true
    }

    /// What a column of the row leads to: nil when the row cannot be read, or holds something else;
    /// `.some(nil)` for nothing.
    func reference(_ column: ColumnID) throws(InspectionError) -> ObjectID?? {
        try Self.reference(column, cursor)
    }

    static func reference(
        _ column: ColumnID,
        _ cursor: TreeCursor
    ) throws(InspectionError) -> ObjectID?? {
        var result: ObjectID??
        try engine { () throws(EngineError) in
            try cursor.withRow { _, row in
                guard let layout = try? RowLayout(row) else { return }
                let slot = layout.slot(at: Int(column.rawValue), in: row)
                if slot.isNull || slot.isAbsent {
                    result = .some(nil)
                } else if let target = try? slot.reference(in: row) {
                    result = .some(target)
                }
            }
        }
        return result
    }
}

/// The key of a link row in the index of one side.
struct LinkKey {
    private(set) var owner: ObjectID?
    private(set) var position: Int64?
    private(set) var other: ObjectID?
    private(set) var isBroken = false
    let link: ObjectID

    init(_ cursor: TreeCursor, isOrdered: Bool) throws(EngineError) {
        link = try cursor.trailingObjectID()
        var reader = ByteReader(cursor.key, place: "link entry")
        do throws(FormatError) {
            if case .value(.reference(let object)) = try KeyCoding.decode(&reader) {
                owner = object
            }
            if isOrdered {
                switch try KeyCoding.decode(&reader) {
                case .value(.int(let number)): position = number
                // Links from a time when the list had no order stand in front.
                case .value(.null): break
                default: isBroken = true
                }
            }
            if case .value(.reference(let object)) = try KeyCoding.decode(&reader) {
                other = object
            }
        } catch {
            isBroken = true
        }
    }

    static func engineKey(
        _ cursor: TreeCursor,
        isOrdered: Bool
    ) throws(InspectionError) -> LinkKey {
        try engine { () throws(EngineError) in try LinkKey(cursor, isOrdered: isOrdered) }
    }
}
