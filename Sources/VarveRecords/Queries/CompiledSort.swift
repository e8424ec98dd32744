// The order of a query with its names resolved, and places in it.
//
// Invariants
// - The order is total: after the last term stands the object ID, in that term's direction.
// - Keys made here for sorting in memory compare by bytes exactly as `precedes` compares values.

public import VarveBase
import VarveFormat

/// The order of a query, ready to compare objects.
public struct CompiledSort: Sendable {
    struct Term: Hashable, Sendable {
        let path: CompiledPath
        let isDescending: Bool
    }

    let terms: [Term]
    /// Direction of the object ID after the terms.
    let isTieDescending: Bool

    /// Ascending object ID.
    static let byID = CompiledSort(terms: [], isTieDescending: false)

    private init(terms: [Term], isTieDescending: Bool) {
        self.terms = terms
        self.isTieDescending = isTieDescending
    }

    /// Resolves the names of sort terms. Terms after `.object` cannot matter and are left out.
    ///
    /// Throws `unknownProperty`, or `invalidRequest` for blobs, whose content has no order.
    public init(
        _ sort: [SortTerm],
        entity: RecordEntity,
        schema: RecordSchema
    ) throws(RecordError) {
        var terms: [Term] = []
        var isTieDescending = sort.last?.isDescending ?? false
        for term in sort {
            let path = try CompiledPath.of(term.path, entity, schema)
            if path.kind == .attribute(.blob) {
                throw .invalidRequest("the content of blob \(path.text) has no order")
            }
            if path.hops.isEmpty, path.terminal == .object {
                isTieDescending = term.isDescending
                break
            }
            terms.append(Term(path: path, isDescending: term.isDescending))
        }
        self.terms = terms
        self.isTieDescending = isTieDescending
    }

    /// The place of an object in the order.
    public func key(
        _ object: some RecordValues,
        _ resolver: some RecordResolver
    ) throws(RecordError) -> KeysetPosition {
        var values: [StoredValue] = []
        values.reserveCapacity(terms.count)
        for term in terms { values.append(try term.path.value(object, resolver)) }
        return KeysetPosition(values: values, object: object.objectID)
    }

    /// Whether `left` stands before `right`. Both must come from `key` of the same order.
    public func precedes(_ left: KeysetPosition, _ right: KeysetPosition) -> Bool {
        for (index, term) in terms.enumerated() {
            let order = ValueOrder.compare(left.values[index], right.values[index])
            if order != 0 { return term.isDescending ? order > 0 : order < 0 }
        }
        return isTieDescending ? right.object < left.object : left.object < right.object
    }

    /// Columns of the query's own entity that the order looks at.
    public var columns: Set<ColumnID> {
        var columns: Set<ColumnID> = []
        for term in terms { term.path.collectColumns(into: &columns) }
        return columns
    }

    /// A position with its values in stored form. Throws `invalidCursor` when it cannot be of this
    /// order.
    func checked(_ position: KeysetPosition) throws(RecordError) -> KeysetPosition {
        guard position.values.count == terms.count else {
            throw .invalidCursor(
                "it has \(position.values.count) values, the order \(terms.count) terms"
            )
        }
        var result = position
        for (index, term) in terms.enumerated() {
            do throws(RecordError) {
                result.values[index] = try term.path.coerce(position.values[index])
            } catch {
                throw .invalidCursor("a value is not of the type of \(term.path.text)")
            }
        }
        return result
    }

    /// The place as bytes that compare in this order. Texts are whole, whatever their length.
    func appendKey(_ position: KeysetPosition, to key: inout [UInt8]) {
        for (index, term) in terms.enumerated() {
            Self.append(position.values[index], descending: term.isDescending, to: &key)
        }
        appendTie(position.object, to: &key)
    }

    func appendTie(_ id: ObjectID, to key: inout [UInt8]) {
        let id = isTieDescending ? ObjectID(~id.rawValue) : id
        KeyCoding.appendObjectID(id, to: &key)
    }

    static func append(
        _ value: StoredValue,
        descending: Bool,
        to key: inout [UInt8]
    ) {
        switch value {
        case .text(let text) where text.utf8.count > KeyCoding.contentBytesMax:
            appendLong(KeyCoding.textTag, text.utf8, descending, to: &key)
        case .data(let data) where data.count > KeyCoding.contentBytesMax:
            appendLong(KeyCoding.dataTag, data, descending, to: &key)
        default: KeyCoding.append(value, descending: descending, to: &key)
        }
    }

    /// What KeyCoding does, without cutting.
    private static func appendLong(
        _ tag: UInt8,
        _ content: some Collection<UInt8>,
        _ descending: Bool,
        to key: inout [UInt8]
    ) {
        let start = key.count
        key.append(tag)
        for byte in content {
            key.append(byte)
            if byte == 0 { key.append(KeyCoding.escapedZero) }
        }
        key.append(0)
        key.append(KeyCoding.contentEnd)
        if descending { for index in start..<key.count { key[index] = ~key[index] } }
    }
}
