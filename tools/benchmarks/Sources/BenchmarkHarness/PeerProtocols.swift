// What a store must offer to take part in a workload: one protocol per workload.

/// Workload a: rows first, indexes built after.
public protocol LateIndexPeer: ItemPeer {
    /// Inserts rows into a store that was opened without indexes, and builds the indexes on them.
    /// Durable when this returns.
    func insertThenIndex(_ items: [Item]) throws
}

/// Workload b: one durable commit per row.
public protocol DurableCommitPeer: ItemPeer {
    /// Inserts one row; it is durable when this returns.
    func commit(_ item: Item) throws
    /// What one of several threads saves with at once; called and used on that thread alone.
    func makeSaver() throws -> (Item) throws -> Void
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

/// Workload d: rows in the order of timestamps, every column decoded. IDs count as 0 in these sums:
/// not every library has one that is a number.
public protocol OrderedScanPeer: ItemPeer {
    /// All rows, in the library's way for more rows than one wants in memory.
    func scanSorted() throws -> RowFold
    /// The rows of a window.
    func page(offset: Int, limit: Int) throws -> RowFold
    /// The first rows from a timestamp on.
    func range(from timestamp: Double, limit: Int) throws -> RowFold
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
    /// Reads every property of every row. The ID counts as 0 in this sum.
    func readEveryProperty(_ list: List) throws -> RowFold
}

/// A row and the new value of one of its columns.
public struct RowChange<Value> {
    /// The row.
    public var id: Int64
    /// The new value.
    public var value: Value

    /// Joins the parts.
    public init(id: Int64, value: Value) {
        self.id = id
        self.value = value
    }
}

/// Workload f: many rows changed, each call one durable transaction.
public protocol BulkChangePeer: PointReadPeer {
    /// Sets the counts of rows.
    func updateCounts(_ changes: [RowChange<Int>]) throws
    /// Sets the timestamps of rows; they have an index.
    func updateTimestamps(_ changes: [RowChange<Double>]) throws
    /// Takes rows out.
    func delete(_ ids: [Int64]) throws
}

/// Workload j: gives space back.
public protocol CompactingPeer: BulkChangePeer {
    /// Why it cannot; nil when it can.
    static var compactionMissing: String? { get }
    /// Makes the store as small as the library can, durably. Only `close` follows.
    func compact() throws
}

/// Workload g: large values.
public protocol BlobPeer: AnyObject, SendableMetatype {
    /// Opens the store of blobs in a folder, and makes it when there is none.
    init(blobDirectory: String, options: PeerOptions) throws
    /// Keeps blobs under numbers, in one durable transaction.
    func store(_ blobs: [(id: Int64, bytes: [UInt8])]) throws
    /// Gets ready to read blobs by number; not timed.
    func prepareToReadBlobs(count: Int) throws
    /// Calls `body` with the bytes of a blob, all at once or in pieces of at least 4 KiB.
    func readBlob(_ id: Int64, _ body: (UnsafeRawBufferPointer) -> Void) throws
    /// Closes the store.
    func close() throws
}

/// Workload h: opening, and one row.
public protocol OpeningPeer: PointReadPeer {
    /// What an app would keep of a row to find it again after a restart.
    func savedName(of id: Int64, rows: Int) throws -> String
    /// Reads the row of a name from `savedName` and decodes every column.
    func read(savedName: String) throws -> RowFold
}

/// Workload i: a reader, alone and beside a writer.
public protocol MixedPeer: PointReadPeer {
    /// What another thread than the writer's reads rows with, each in a transaction of its own.
    func makeReader(rows: Int) throws -> ([Int64]) throws -> RowFold
}

/// Workload k: questions about many rows.
public protocol QueryPeer: ItemPeer {
    /// Number of rows with a timestamp in a range, ends included.
    func countRows(timestamps: ClosedRange<Double>) throws -> Int
    /// Rows with a count, which has no index, in the order of IDs, every column decoded. IDs count
    /// as 0.
    func rows(count: Int) throws -> RowFold
    /// The least and the greatest timestamp.
    func timestampBounds() throws -> ClosedRange<Double>
    /// How many different counts there are.
    func distinctCounts() throws -> Int
}

extension RowChange: Sendable where Value: Sendable {}
