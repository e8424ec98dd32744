// Changes and removals of rows that wait to be put in place, in the order of their objects.
//
// Invariants
// - Changes of one object keep the order in which they came; those of different objects have none.
// - Patches lie in one block, each after a byte that says what the change is; where that byte
//   stands is the change's age.
//
// Why they wait: a program changes rows in an order of its own, and each would go down the tree
// alone and restore the page of its leaf. In the order of IDs each leaf is come to once, and what
// lies after is finished: it can be written before the transaction ends.

internal import VarveBase
internal import VarveFormat

struct WaitingRows {
    /// 24 bytes a change.
    private struct Change {
        var object: ObjectID
        var entity: EntityID
        /// Of the byte in front of the patch.
        var start: UInt32
        /// Of the patch.
        var length: UInt32
    }

    private var patches: [UInt8] = []
    private var changes: [Change] = []
    private var isSorted = true

    private static let updates: UInt8 = 0
    private static let deletes: UInt8 = 1

    var isEmpty: Bool { changes.isEmpty }
    var count: Int { changes.count }
    /// Bytes of memory in use.
    var bytes: Int { patches.count + changes.count * MemoryLayout<Change>.stride }

    /// Adds a change of columns.
    /// - Complexity: O(bytes of the patch), amortised.
    mutating func update(_ entity: EntityID, _ object: ObjectID, patch: [UInt8]) {
        add(Self.updates, entity, object, patch)
    }

    /// Adds the removal of a row.
    mutating func delete(_ entity: EntityID, _ object: ObjectID) {
        add(Self.deletes, entity, object, [])
    }

    private mutating func add(
        _ kind: UInt8,
        _ entity: EntityID,
        _ object: ObjectID,
        _ patch: [UInt8]
    ) {
        precondition(patches.count + patch.count < Int(UInt32.max), "they are put in place before")
        let change = Change(
            object: object,
            entity: entity,
            start: UInt32(patches.count),
            length: UInt32(patch.count)
        )
        patches.append(kind)
        ByteWriter.append(patch, patch.indices, to: &patches)
        if isSorted, let last = changes.last { isSorted = Self.isBefore(last, change) }
        changes.append(change)
    }

    private static func isBefore(_ left: Change, _ right: Change) -> Bool {
        if left.entity != right.entity { return left.entity < right.entity }
        if left.object != right.object { return left.object < right.object }
        return left.start < right.start
    }

    /// Brings the changes into the order of entities and objects, those of one object by age.
    /// - Complexity: O(n); O(1) when they came in order.
    mutating func sort() {
        if isSorted { return }
        var sorted = changes
        changes = []
        if sorted.count < DigitSort.countMin {
            sorted.sort(by: Self.isBefore)
        } else {
            // Those of one object stand by age already.
            DigitSort.sort(&sorted) { $0.object.rawValue }
            DigitSort.sort(&sorted) { UInt64($0.entity.rawValue) }
        }
        changes = sorted
        isSorted = true
    }

    /// The row that the change at `index` is of.
    func row(at index: Int) -> (entity: EntityID, object: ObjectID) {
        (changes[index].entity, changes[index].object)
    }

    /// Whether the change at `index` comes in front of a place in the order of objects.
    func row(at index: Int, isBelow other: (entity: EntityID, object: ObjectID)) -> Bool {
        let change = changes[index]
        if change.entity != other.entity { return change.entity < other.entity }
        return change.object < other.object
    }

    /// The entities that have changes, each once when they are sorted.
    var entities: [EntityID] {
        var list: [EntityID] = []
        for change in changes where list.last != change.entity { list.append(change.entity) }
        return list
    }

    /// The first change after `index` that is of another entity or a higher object.
    func next(behind index: Int, above last: ObjectID) -> Int {
        let entity = changes[index].entity
        var next = index + 1
        while next < changes.count, changes[next].entity == entity, changes[next].object <= last {
            next += 1
        }
        return next
    }

    /// All patches.
    var patchBytes: [UInt8] { patches }

    /// What to do with the row at `index`, and where its patch stands in `patchBytes`; no patch: it
    /// goes.
    func change(at index: Int) -> (entity: EntityID, object: ObjectID, patch: Range<Int>?) {
        let change = changes[index]
        let start = Int(change.start)
        if patches[start] == Self.deletes { return (change.entity, change.object, nil) }
        return (change.entity, change.object, start + 1..<start + 1 + Int(change.length))
    }

    /// Forgets all; keeps the memory when it is little.
    mutating func removeAll() {
        patches.removeAll(keepingCapacity: patches.count < 64 << 10)
        changes.removeAll(keepingCapacity: changes.count < 4 << 10)
        isSorted = true
    }
}
