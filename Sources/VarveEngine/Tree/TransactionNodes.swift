// What one transaction knows of the nodes that it changes.
//
// Invariants
// - What is noted of a leaf of the file holds as long as the transaction: what its state names
//   stays.
// - Every leaf at or behind `writtenFrom` that its trees name was written by the transaction
//   itself, and is noted if it changes a packed leaf.
// - Leaves that nothing is noted of are looked at where they are.
//
// Why the notes: live bytes are counted at the end, when most leaves are not in memory any more. To
// read the first bytes of each again was a fifth of a large update. A small transaction notes
// nothing: no live bytes are counted at its end.

internal import VarveBase
internal import VarveFormat

/// The changed nodes of a transaction.
final class TransactionNodes {
    /// How many it holds in memory: more rather than less, since what goes again is not told.
    var count = 0
    /// By the place of a leaf: stored bytes of the packed leaf that it changes; 0: it changes none.
    private var bases: [FileOffset: UInt32] = [:]
    private var writtenFrom = FileOffset(.max)
    /// Changed nodes from which on leaves are noted.
    private let notedFrom: Int
    private var isNoting = false

    /// - Parameter notedFrom: changed nodes from which on the transaction may become a large one.
    init(notedFrom: Int = .max) { self.notedFrom = notedFrom }

    /// A leaf that the file has at a place becomes one in memory.
    func note(_ leaf: TreeNode, at place: FileOffset) {
        if !isNoting {
            if count < notedFrom { return }
            isNoting = true
        }
        if place >= writtenFrom { return }
        bases[place] = UInt32(clamping: leaf.basis?.address?.frameLength ?? 0)
    }

    /// The transaction wrote pages.
    func note(_ written: WrittenLeaves) {
        writtenFrom = min(writtenFrom, written.first)
        for leaf in written.edited { bases[leaf.place] = UInt32(clamping: leaf.basisBytes) }
    }

    /// Stored bytes of the packed leaf that the leaf at a place changes; 0: it changes none. Nil:
    /// that is not known.
    func basisBytes(_ place: FileOffset) -> UInt64? {
        bases[place].map(UInt64.init) ?? (place >= writtenFrom ? 0 : nil)
    }
}

/// The pages that a large transaction writes on its way.
struct WrittenLeaves {
    /// The place of the first page; behind everything while there is none.
    var first = FileOffset(.max)
    /// Leaves that change packed ones.
    var edited: [(place: FileOffset, basisBytes: UInt64)] = []
}
