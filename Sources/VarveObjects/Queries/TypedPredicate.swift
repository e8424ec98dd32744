// The typed filter: comparisons of columns, joined by &&, || and !.
//
// Semantics: those of VarveRecords/Queries/Predicate.swift. nil == nil is true; an order against
// nil is false; NaN equals itself; texts compare by their UTF-8 bytes.

public import VarveBase
public import VarveRecords

/// A filter over the objects of one entity.
public struct TypedPredicate<Root: ManagedObject>: Hashable, Sendable {
    let predicate: Predicate

    init(_ predicate: Predicate) { self.predicate = predicate }

    /// True for every object.
    public static var always: TypedPredicate { TypedPredicate(.always) }
    /// True for none.
    public static var never: TypedPredicate { TypedPredicate(.never) }

    /// Both.
    public static func && (left: TypedPredicate, right: TypedPredicate) -> TypedPredicate {
        TypedPredicate(
            .and(JoinedTerms.join(left.predicate, right.predicate, \.andTerms) { .and($0) })
        )
    }

    /// At least one of them.
    public static func || (left: TypedPredicate, right: TypedPredicate) -> TypedPredicate {
        TypedPredicate(
            .or(JoinedTerms.join(left.predicate, right.predicate, \.orTerms) { .or($0) })
        )
    }

    /// The opposite.
    public static prefix func ! (operand: TypedPredicate) -> TypedPredicate {
        TypedPredicate(.not(operand.predicate))
    }
}

/// Terms joined one by one. A flat list would be copied with each term, and a tree that leans to
/// one side would be as deep as there are terms: so terms that stand side by side become groups,
/// and groups groups of groups. What is joined of n terms is O(log n) deep, and a term more costs
/// O(log n).
private enum JoinedTerms {
    private static let groupSize = 32

    static func join(
        _ left: Predicate,
        _ right: Predicate,
        _ terms: (Predicate) -> [Predicate]?,
        _ group: ([Predicate]) -> Predicate
    ) -> [Predicate] {
        var all = terms(left) ?? [left]
        let more = terms(right) ?? [right]
        if all.count + more.count > 16 * groupSize { return [left, right] }
        func level(_ predicate: Predicate) -> Int {
            terms(predicate).map { 1 + ($0.first.map(level) ?? 0) } ?? 0
        }
        if more.count == 1 || all.count != 1 {
            for term in more {
                all.append(term)
                while all.count > groupSize {
                    let run = all.suffix(groupSize)
                    let height = level(run[run.startIndex])
                    guard run.allSatisfy({ level($0) == height }) else { break }
                    let grouped = group(Array(run))
                    all.removeLast(groupSize)
                    all.append(grouped)
                }
            }
            return all
        }
        all += more
        while all.count > groupSize {
            let run = all.prefix(groupSize)
            let height = level(run[0])
            guard run.allSatisfy({ level($0) == height }) else { break }
            let grouped = group(Array(run))
            all.replaceSubrange(0..<groupSize, with: [grouped])
        }
        return all
    }
}

extension Predicate {
    fileprivate var orTerms: [Predicate]? {
        if case .or(let terms) = self { terms } else { nil }
    }
    fileprivate var andTerms: [Predicate]? {
        if case .and(let terms) = self { terms } else { nil }
    }
}

/// What `&&`, `||` and `!` take beside filters: an attribute that is true or false.
public protocol BooleanTerm<Root>: Sendable {
    /// The entity that it belongs to.
    associatedtype Root: ManagedObject
    /// The filter that it stands for.
    var filter: TypedPredicate<Root> { get }
}

extension TypedPredicate: BooleanTerm {
    /// Itself.
    public var filter: TypedPredicate { self }
}

extension Column: BooleanTerm where Value == Bool {
    /// The attribute is true.
    public var filter: TypedPredicate<Root> { self == true }

    /// The attribute is false.
    public static prefix func ! (column: Column) -> TypedPredicate<Root> { column == false }
}

/// Both.
public func && <Left: BooleanTerm, Right: BooleanTerm>(
    left: Left,
    right: Right
) -> TypedPredicate<Left.Root> where Left.Root == Right.Root {
    left.filter && right.filter
}

/// At least one of them.
public func || <Left: BooleanTerm, Right: BooleanTerm>(
    left: Left,
    right: Right
) -> TypedPredicate<Left.Root> where Left.Root == Right.Root {
    left.filter || right.filter
}

extension Column {
    var path: PropertyPath { definition.path }

    func compare(_ comparison: Comparison, _ value: StoredValue) -> TypedPredicate<Root> {
        TypedPredicate(.compare(path, comparison, value))
    }

    /// No row has a value that a store cannot keep: all rows have another one, none is below it.
    func compare(_ comparison: Comparison, _ value: some StorableValue) -> TypedPredicate<Root> {
        if value._refusal == nil { return compare(comparison, value.stored) }
        return TypedPredicate(comparison == .notEqual ? .always : .never)
    }

    func compare(_ comparison: Comparison, _ other: PropertyPath) -> TypedPredicate<Root> {
        TypedPredicate(.compareProperties(path, comparison, other))
    }
}

extension Column where Value: FilterableValue {
    /// The attribute has this value.
    public static func == (column: Column, value: Value) -> TypedPredicate<Root> {
        column.compare(.equal, value)
    }

    /// The attribute has another value.
    public static func != (column: Column, value: Value) -> TypedPredicate<Root> {
        column.compare(.notEqual, value)
    }

    /// Both attributes have the same value.
    public static func == (column: Column, other: Column) -> TypedPredicate<Root> {
        column.compare(.equal, other.path)
    }

    /// The attributes have different values.
    public static func != (column: Column, other: Column) -> TypedPredicate<Root> {
        column.compare(.notEqual, other.path)
    }

    /// The attribute has one of these values.
    public func isIn(_ values: some Sequence<Value>) -> TypedPredicate<Root> {
        TypedPredicate(.isIn(path, values.filter { $0._refusal == nil }.map(\.stored)))
    }
}

extension Column where Value: OrderedValue {
    /// Below the value.
    public static func < (column: Column, value: Value) -> TypedPredicate<Root> {
        column.compare(.less, value)
    }

    /// Not above the value.
    public static func <= (column: Column, value: Value) -> TypedPredicate<Root> {
        column.compare(.lessOrEqual, value)
    }

    /// Above the value.
    public static func > (column: Column, value: Value) -> TypedPredicate<Root> {
        column.compare(.greater, value)
    }

    /// Not below the value.
    public static func >= (column: Column, value: Value) -> TypedPredicate<Root> {
        column.compare(.greaterOrEqual, value)
    }

    /// Below the other attribute.
    public static func < (column: Column, other: Column) -> TypedPredicate<Root> {
        column.compare(.less, other.path)
    }

    /// Above the other attribute.
    public static func > (column: Column, other: Column) -> TypedPredicate<Root> {
        column.compare(.greater, other.path)
    }
}

extension Column {
    /// Below the value; nil is not.
    public static func < <Wrapped: OrderedValue>(
        column: Column,
        value: Wrapped
    ) -> TypedPredicate<Root> where Value == Wrapped? {
        column.compare(.less, value)
    }

    /// Not above the value; nil is not.
    public static func <= <Wrapped: OrderedValue>(
        column: Column,
        value: Wrapped
    ) -> TypedPredicate<Root> where Value == Wrapped? {
        column.compare(.lessOrEqual, value)
    }

    /// Above the value; nil is not.
    public static func > <Wrapped: OrderedValue>(
        column: Column,
        value: Wrapped
    ) -> TypedPredicate<Root> where Value == Wrapped? {
        column.compare(.greater, value)
    }

    /// Not below the value; nil is not.
    public static func >= <Wrapped: OrderedValue>(
        column: Column,
        value: Wrapped
    ) -> TypedPredicate<Root> where Value == Wrapped? {
        column.compare(.greaterOrEqual, value)
    }
}

/// `== nil` where the value itself cannot be compared.
extension Column where Value == Blob? {
    /// There is no blob.
    public static func == (
        column: Column,
        nothing: _OptionalNilComparisonType
    ) -> TypedPredicate<Root> {
        column.compare(.equal, .null)
    }

    /// There is a blob.
    public static func != (
        column: Column,
        nothing: _OptionalNilComparisonType
    ) -> TypedPredicate<Root> {
        column.compare(.notEqual, .null)
    }

    /// The blob's length in bytes, nil without a blob.
    public var length: Column<Root, Int?> { Column<Root, Int?>(definition: part(.blobLength)) }

    /// The blob's SHA-256, nil without a blob.
    public var digest: Column<Root, BlobDigest?> {
        Column<Root, BlobDigest?>(definition: part(.blobDigest))
    }

    private func part(_ part: PropertyPath.Part) -> PropertyDefinition {
        PropertyDefinition(
            path: PropertyPath(path.names, part: part),
            originalNames: [],
            kind: definition.kind
        )
    }
}

extension ToOneColumn {
    /// The relationship leads to this object.
    public static func == (column: ToOneColumn, target: Target) -> TypedPredicate<Root> {
        column == target.id
    }

    /// The relationship leads to the object with this ID.
    public static func == (column: ToOneColumn, id: Target.ID) -> TypedPredicate<Root> {
        TypedPredicate(
            .compare(column._definition.path, .equal, .reference(id.objectID.object))
        )
    }

    /// The relationship leads elsewhere, or nowhere.
    public static func != (column: ToOneColumn, target: Target) -> TypedPredicate<Root> {
        !(column == target.id)
    }

    /// The relationship leads nowhere.
    public static func == (
        column: ToOneColumn,
        nothing: _OptionalNilComparisonType
    ) -> TypedPredicate<Root> {
        TypedPredicate(.compare(column._definition.path, .equal, .null))
    }

    /// The relationship leads to some object.
    public static func != (
        column: ToOneColumn,
        nothing: _OptionalNilComparisonType
    ) -> TypedPredicate<Root> {
        TypedPredicate(.compare(column._definition.path, .notEqual, .null))
    }
}

extension ToManyColumn {
    /// At least one of the objects matches.
    public func any(
        _ filter: (Target.Columns) -> TypedPredicate<Target>
    ) -> TypedPredicate<Root> {
        TypedPredicate(.any(definition.path, filter(Target.columns).predicate))
    }

    /// Every object matches; true when there is none.
    public func all(
        _ filter: (Target.Columns) -> TypedPredicate<Target>
    ) -> TypedPredicate<Root> {
        TypedPredicate(.all(definition.path, filter(Target.columns).predicate))
    }

    /// The relationship has this object.
    public func contains(_ target: Target) -> TypedPredicate<Root> {
        TypedPredicate(
            .any(
                definition.path,
                .compare(.object, .equal, .reference(target.objectID.object))
            )
        )
    }

    /// No object matches; true when there is none.
    public func none(
        _ filter: (Target.Columns) -> TypedPredicate<Target>
    ) -> TypedPredicate<Root> {
        !any(filter)
    }

    /// How many objects there are, to be compared with a number.
    public var count: RelatedCount<Root> {
        RelatedCount(path: definition.path, filter: .always)
    }

    /// How many objects match, to be compared with a number.
    public func count(
        where filter: (Target.Columns) -> TypedPredicate<Target>
    ) -> RelatedCount<Root> {
        RelatedCount(path: definition.path, filter: filter(Target.columns).predicate)
    }
}

/// The number of objects of a to-many relationship, in a filter.
public struct RelatedCount<Root: ManagedObject>: Sendable {
    let path: PropertyPath
    let filter: Predicate

    private func compare(_ comparison: Comparison, _ number: Int) -> TypedPredicate<Root> {
        TypedPredicate(.count(path, filter, comparison, number))
    }

    /// Exactly so many.
    public static func == (count: RelatedCount, number: Int) -> TypedPredicate<Root> {
        count.compare(.equal, number)
    }
    /// Any other number.
    public static func != (count: RelatedCount, number: Int) -> TypedPredicate<Root> {
        count.compare(.notEqual, number)
    }
    /// Fewer.
    public static func < (count: RelatedCount, number: Int) -> TypedPredicate<Root> {
        count.compare(.less, number)
    }
    /// At most so many.
    public static func <= (count: RelatedCount, number: Int) -> TypedPredicate<Root> {
        count.compare(.lessOrEqual, number)
    }
    /// More.
    public static func > (count: RelatedCount, number: Int) -> TypedPredicate<Root> {
        count.compare(.greater, number)
    }
    /// At least so many.
    public static func >= (count: RelatedCount, number: Int) -> TypedPredicate<Root> {
        count.compare(.greaterOrEqual, number)
    }
}

extension BlobDigest: FilterableValue {
    /// As its 32 bytes.
    public static var attributeType: AttributeType { .data }
    /// All zero.
    public static var zeroValue: BlobDigest { BlobDigest(0, 0, 0, 0) }

    /// From 32 stored bytes.
    public init?(stored: StoredValue) {
        guard case .data(let bytes) = stored, bytes.count == 32 else { return nil }
        func word(_ index: Int) -> UInt64 {
            bytes[index * 8..<index * 8 + 8].reduce(0) { $0 << 8 | UInt64($1) }
        }
        self.init(word(0), word(1), word(2), word(3))
    }

    /// 32 stored bytes.
    public var stored: StoredValue {
        let (first, second, third, fourth) = words
        return .data(
            [first, second, third, fourth].flatMap { word in
                (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * UInt64($0))) }
            }
        )
    }
}
