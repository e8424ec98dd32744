// Rows of a long list, read before they were asked for: bytes, of which rows are made then.
//
// Invariants
// - Immutable, of one commit. Rows that the store does not have are left out.
// - Every list has at most one part of itself here; all of them together weigh at most twice
//   what the row cache may keep, and go when memory is short.
//
// Why not rows of the row cache: a row there weighs about twice its bytes, so that half as many
// would fit, and each pass over the store restores nearly every page, however many rows it wants.

public import VarveBase
import VarveEngine
import VarveFormat

/// A part of a list: its rows' bytes.
public final class RowsAhead: Sendable {
    /// The commit whose rows these are.
    public let commit: CommitNumber
    /// Which positions of the list were looked up.
    public let range: Range<Int>
    /// What it weighs, in bytes.
    public let byteCount: Int
    let entity: RecordEntity
    private let chunk: RowChunk

    init(_ commit: CommitNumber, _ entity: RecordEntity, _ range: Range<Int>, _ chunk: RowChunk) {
        self.commit = commit
        self.entity = entity
        self.range = range
        self.chunk = chunk
        byteCount = chunk.weight
    }

    /// What looking up a position gives.
    enum Found {
        case row(CachedRow)
        /// The commit has no such row.
        case absent
        /// Outside of this part, or not in order: ask the store.
        case unknown
    }

    /// What a row of so many bytes weighs here.
    public static func weight(ofRow bytes: Int) -> Int { bytes + RowChunk.weightPerRow }

    /// Asks for the memory of a row that will be looked up soon.
    func foresee(_ position: Int) {
        if range.contains(position) { chunk.foresee(position - range.lowerBound) }
    }

    /// The row at a position of the list.
    func row(at position: Int, _ id: ObjectID) -> Found {
        guard range.contains(position) else { return .unknown }
        do throws(FormatError) {
            let made = try chunk.withRow(position - range.lowerBound) {
                (version, row) throws(FormatError) in
                try CachedRow(entity: entity, id: id, version: version, checking: row)
            }
            return made.map { .row($0) } ?? .absent
        } catch {
            return .unknown
        }
    }
}

/// What the lists of a store have read ahead.
struct RowsAheadShelf {
    private var parts: [(list: ObjectIdentifier, rows: RowsAhead)] = []
    private(set) var byteCount = 0

    func rows(of list: ObjectIdentifier) -> RowsAhead? {
        parts.first { $0.list == list }?.rows
    }

    /// Makes room for a part in the place of the list's last one: the oldest of others go until it
    /// fits.
    mutating func makeRoom(_ bytes: Int, for list: ObjectIdentifier, upTo budget: Int) {
        drop(list)
        while let oldest = parts.first, bytes > budget - byteCount { drop(oldest.list) }
    }

    /// Keeps a part, unless it is larger than all may be.
    mutating func keep(_ rows: RowsAhead, of list: ObjectIdentifier, upTo budget: Int) {
        makeRoom(rows.byteCount, for: list, upTo: budget)
        guard rows.byteCount <= budget else { return }
        parts.append((list, rows))
        byteCount += rows.byteCount
    }

    /// How many lists have something here, `list` among them.
    func count(with list: ObjectIdentifier) -> Int {
        parts.count + (parts.contains { $0.list == list } ? 0 : 1)
    }

    mutating func drop(_ list: ObjectIdentifier) {
        guard let place = parts.firstIndex(where: { $0.list == list }) else { return }
        byteCount -= parts.remove(at: place).rows.byteCount
    }

    mutating func removeAll() {
        parts = []
        byteCount = 0
    }
}
