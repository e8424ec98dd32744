// What a store must offer to take part. One protocol per workload, each a refinement of the first.

/// Which of a library's settings are in force.
public enum Tuning: String, Sendable {
    /// What a developer gets who follows the library's documentation.
    case usual
    /// The fastest settings that keep the same promise of durability.
    case best
}

/// How a peer opens its store.
public struct PeerOptions: Sendable {
    /// Whether the indexes on timestamp and title exist.
    public var indexed = true
    /// Usual or best settings.
    public var tuning = Tuning.usual
    /// Bytes that the library may use as cache.
    public var cacheBytes = 64 << 20
    /// Bytes for rows that no object holds, where the library has a row cache; nil = its default.
    public var rowCacheBytes: Int?

    /// Indexed, usual settings, 64 MiB of cache.
    public init() {}

    /// The same with some fields changed.
    public func with(_ change: (inout PeerOptions) -> Void) -> PeerOptions {
        var copy = self
        change(&copy)
        return copy
    }
}

/// A store of items.
public protocol ItemPeer: AnyObject, SendableMetatype {
    /// Opens the store in a folder, and makes it when there is none.
    init(directory: String, options: PeerOptions) throws
    /// Inserts rows, with the peer's usual means for many rows, in one durable transaction.
    func insert(_ items: [Item]) throws
    /// Hands out every row in the order of IDs. Never timed.
    func forEachItem(_ body: (Item) throws -> Void) throws
    /// Closes the store.
    func close() throws
}

/// Workload b: one durable commit per row.
public protocol DurableCommitPeer: ItemPeer {
    /// Inserts one row; it is durable when this returns.
    func commit(_ item: Item) throws
}

/// Workload c: rows by ID.
public protocol PointReadPeer: ItemPeer {
    /// Gets ready to read by ID; not timed.
    func prepareToRead(rows: Int) throws
    /// Reads the rows and decodes every column, all in one read transaction.
    func read(ids: [Int64]) throws -> RowFold
    /// The same with a read transaction for each row.
    func readIsolated(ids: [Int64]) throws -> RowFold
}

/// Workload e: the whole list in the order of timestamps.
public protocol SortedFetchPeer: ItemPeer {
    /// What a fetch gives and keeps alive.
    associatedtype List
    /// The sorted list in the cheapest form from which a row can be shown later: faults where the
    /// library has them, else records.
    func fetchFaults() throws -> List
    /// The sorted list for a reader who is going to use every property.
    func fetchFilled() throws -> List
    /// Reads every property of every row. The ID counts as 0 in this sum: not every library has
    /// one that is a number.
    func readEveryProperty(_ list: List) throws -> RowFold
}

extension ItemPeer {
    /// Hash over every byte of every row in the order of IDs.
    public func contentHash() throws -> ContentHash {
        var hash = ContentHash()
        try forEachItem { hash.add($0) }
        return hash
    }
}
