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
    /// Whether a library that can keeps old logs to write over them: good for small commits, and
    /// wrong where a store is weighed.
    public var keepsOldLogs = false
    /// Whether many rows are inserted and changed object by object where the library has batches.
    public var makesObjects = false
    /// Whether a library that can packs the leaves of a store that was filled.
    public var packsLeaves = true

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
    /// Brings a store that was filled into the state that the library leads it to in the background
    /// by and by. Never timed.
    func settle() throws
    /// Hands out every row in the order of IDs. Never timed.
    func forEachItem(_ body: (Item) throws -> Void) throws
    /// Closes the store.
    func close() throws
}

extension ItemPeer {
    /// Most libraries leave nothing for later.
    public func settle() throws {}

    /// Hash over every byte of every row in the order of IDs.
    public func contentHash() throws -> ContentHash {
        var hash = ContentHash()
        try forEachItem { hash.add($0) }
        return hash
    }
}
