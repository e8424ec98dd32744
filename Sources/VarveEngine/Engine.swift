// One open store.
//
// Invariants
// - `writer` is held from the first change of a transaction until its commit is published: one
//   writer at a time.
// - `published` is the newest commit that is on disk; readers take it and never wait for a writer.
// - After a failed write or sync of a commit the engine is poisoned: it reads, and writes no more.

internal import Synchronization
public import VarveBase
internal import VarveFormat
internal import VarveIO

/// An open store: commits, snapshots, blobs. Use it from any thread.
public final class Engine: Sendable {
    let directory: any StoreDirectory
    let fileName: String
    let header: FileHeader
    let options: EngineOptions
    let delegate: any EngineDelegate
    let nodes: NodeStore
    let counters: EngineCounters
    let blobStore: BlobStore
    let isReadOnly: Bool

    let published: Mutex<Published>
    let writer: Mutex<WriterState>
    private let nextObjectID: Atomic<UInt64>

    struct Published {
        var state: StoreState
        /// Number of snapshots by commit.
        var pins: [CommitNumber: Int] = [:]
        var isClosed = false
    }

    enum Status {
        case open
        case poisoned(EngineError)
        case closed
    }

    struct WriterState {
        var status: Status
        var log: LogWriter
        let epoch: UInt64
        /// Stamps of transactions; never used twice in one opening.
        var stamp: UInt64 = TreeNode.cleanStamp + 1
        var liveBytes: UInt64
        var lock: (any FileLock)?
        let file: any StoreFile
        var isDirty: Bool
        var isClosedCleanly: Bool
        /// What the newest frame at opening said of object IDs.
        let recordedHighWater: UInt64
    }

    init(
        directory: any StoreDirectory,
        fileName: String,
        header: FileHeader,
        options: EngineOptions,
        delegate: any EngineDelegate,
        nodes: NodeStore,
        counters: EngineCounters,
        blobStore: BlobStore,
        isReadOnly: Bool,
        state: StoreState,
        writer: consuming WriterState,
        nextObjectID: UInt64
    ) {
        self.directory = directory
        self.fileName = fileName
        self.header = header
        self.options = options
        self.delegate = delegate
        self.nodes = nodes
        self.counters = counters
        self.blobStore = blobStore
        self.isReadOnly = isReadOnly
        published = Mutex(Published(state: state))
        self.writer = Mutex(writer)
        self.nextObjectID = Atomic(nextObjectID)
    }

    /// The store's identity; it stays through compaction and backup.
    public var storeID: UUIDValue { header.storeID }

    // MARK: Reading

    /// The newest commit, pinned until the snapshot goes.
    /// - Complexity: O(1).
    public func snapshot() -> Snapshot {
        let state = published.withLock { published -> StoreState in
            published.pins[published.state.number, default: 0] += 1
            return published.state
        }
        return Snapshot(state: state, engine: self)
    }

    func unpin(_ number: CommitNumber) {
        published.withLock { published in
            guard let count = published.pins[number] else { return }
            published.pins[number] = count == 1 ? nil : count - 1
        }
    }

    /// The oldest commit that somebody reads; the newest one when nobody does.
    func oldestPinned() -> CommitNumber {
        published.withLock { $0.pins.keys.min() ?? $0.state.number }
    }

    var readPlace: (ValuePlace) throws(EngineError) -> [UInt8] {
        { [nodes, counters] place throws(EngineError) in
            let bytes = try nodes.log.value(place)
            counters.valueBytesRead.add(UInt64(bytes.count), ordering: .relaxed)
            return bytes
        }
    }

    // MARK: Writing

    /// Runs `body` with the writer lock and makes what it changed durable.
    ///
    /// - Parameters:
    ///   - author: a label of at most 64 bytes that the commit keeps.
    ///   - body: changes rows. If it throws, nothing happened.
    /// - Returns: what `body` returned, and the commit; nil when nothing was changed.
    /// - Throws: what `body` throws; `EngineError` with `readOnly`, `closed`, `poisoned`, `noSpace`
    ///   (nothing was written), `outcomeUnknown` (the engine is poisoned), `damaged`, `ioFailed`.
    public func write<R>(
        author: String = "",
        _ body: (WriteTransaction) throws -> R
    ) throws -> (result: R, commit: CommitNumber?) {
        try writer.withLock { writer in
            try checkWritable(writer)
            writer.stamp += 1
            let base = published.withLock { $0.state }
            let editor = StateEditor(
                base: base,
                number: base.number.next,
                stamp: writer.stamp,
                loader: nodes,
                splitWeight: options.nodeWeightMax,
                readPlace: readPlace
            )
            let transaction = WriteTransaction(
                editor: editor,
                loader: nodes,
                options: options,
                delegate: delegate
            )
            let result = try body(transaction)
            // Half of a change may be in the editor: `body` cannot go on as if nothing were.
            if let failure = transaction.failure { throw failure }
            if transaction.isEmpty { return (result, nil) }
            try commit(transaction, author: author, &writer)
            return (result, transaction.number)
        }
    }

    func checkWritable(_ writer: borrowing WriterState) throws(EngineError) {
        switch writer.status {
        case .closed: throw EngineError(.closed, "the store is closed")
        case .poisoned(let cause):
            throw EngineError(
                .poisoned,
                "an earlier write failed (\(cause.message)); open the store again to write",
                cause: cause
            )
        case .open:
            if isReadOnly {
                throw EngineError(.readOnly, "the store was opened for reading only")
            }
        }
    }

    /// Hands out object IDs; they are never handed out again, committed or not.
    /// - Returns: the first of `count` consecutive IDs.
    /// - Complexity: O(1), no I/O.
    public func allocateObjectIDs(_ count: Int) -> ObjectID {
        precondition(count >= 0, "a count of IDs")
        let end = nextObjectID.add(UInt64(count), ordering: .relaxed).newValue
        return ObjectID(end - UInt64(count))
    }

    var objectIDHighWater: UInt64 { nextObjectID.load(ordering: .relaxed) }

    /// Writes what is in memory only as pages. Done by itself when the log's tail grows long.
    ///
    /// - Throws: `noSpace`, `ioFailed`; `poisoned` when the write failed half-way.
    public func checkpoint() throws(EngineError) {
        try writer.withLock { writer throws(EngineError) in
            try checkWritable(writer)
            try checkpoint(&writer)
        }
    }

    /// Checkpoints, marks the log as complete, cuts unused zeros off and lets go of the files.
    /// Snapshots that are held stay readable until they go. Closing twice does nothing.
    public func close() throws(EngineError) {
        try writer.withLock { writer throws(EngineError) in
            if case .closed = writer.status { return }
            defer {
                writer.status = .closed
                writer.lock?.release()
                writer.lock = nil
            }
            if !isReadOnly, case .open = writer.status { try closeCleanly(&writer) }
        }
    }

    deinit {
        // An engine that is dropped without `close` leaves its log as after a crash: correct, only
        // slower to open. A clean end is tried; its failure costs nothing that was committed.
        try? close()
    }

    /// Counters since opening, and what is held now.
    public var statistics: EngineStatistics {
        var values = counters.values
        values.nodeCacheBytes = UInt64(nodes.cachedBytes)
        published.withLock { published in
            values.newestCommit = published.state.number.rawValue
            values.pinnedSnapshots = published.pins.values.reduce(0, +)
            values.oldestPinnedCommit =
                (published.pins.keys.min() ?? published.state.number).rawValue
        }
        return values
    }
}
