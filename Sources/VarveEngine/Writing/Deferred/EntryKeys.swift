// Keys of index entries on their way from who derives them to where they wait.
//
// Invariants
// - Keys lie in one block, one after the other; each belongs to one tree or, where a value in it
//   was cut, to two.
// - The block serves any number of rows, so that a row's keys cost no allocation. It is emptied now
//   and then: that costs as much as a key.

public import VarveBase
internal import VarveFormat

/// Keys of index entries, each with its tree. Whoever derives them appends the bytes of one key to
/// `bytes`, then calls `close`.
public struct EntryKeys {
    /// Bytes of forgotten keys that may stay.
    private static let oldBytesMax = 4096

    /// Finished keys, forgotten ones in front of them, then what there is of the next one.
    public var bytes: [UInt8] = []
    private var entries: [(tree: TreeID, key: Range<Int>)] = []
    /// How many entries are forgotten.
    private var first = 0
    /// Where the next key begins.
    private var start = 0

    /// None.
    public init() {}

    /// Finished keys.
    public var count: Int { entries.count - first }

    /// Bytes of the key that is being appended.
    public var openCount: Int { bytes.count - start }

    /// Ends the key that was appended.
    public mutating func close(_ tree: TreeID) {
        entries.append((tree, start..<bytes.count))
        start = bytes.count
    }

    /// Adds the key before once more, for another tree.
    public mutating func repeatLast(in tree: TreeID) {
        guard let last = entries.last else { preconditionFailure("a key that was closed") }
        entries.append((tree, last.key))
    }

    /// The tree of an entry.
    public func tree(_ index: Int) -> TreeID { entries[first + index].tree }

    /// Where an entry's key stands in `bytes`.
    public func key(_ index: Int) -> Range<Int> { entries[first + index].key }

    /// Whether one of some entries is the same as the one at `index`.
    func contains(_ index: Int, in others: Range<Int>) -> Bool {
        let (tree, key) = entries[first + index]
        for other in others where self.tree(other) == tree {
            if ByteReader.compare(bytes, key, bytes, self.key(other)) == 0 { return true }
        }
        return false
    }

    /// Forgets all, also a key that was begun, and keeps the memory.
    mutating func begin() {
        if bytes.count > Self.oldBytesMax {
            bytes.removeAll(keepingCapacity: true)
            entries.removeAll(keepingCapacity: true)
        }
        first = entries.count
        start = bytes.count
    }
}
