// One open store.
//
// Invariants
// - `writer` is held from the first change of a transaction until its commit has its place in the
//   log: one writer at a time. The disk is waited for without it.
// - `published` is the newest commit that is on disk; readers take it and never wait for a writer.
// - After a failed write or sync of a commit the engine is poisoned: it reads, and writes no more.

internal import Synchronization
public import VarveBase
internal import VarveFormat
internal import VarveIO

/// An open store: commits, snapshots, blobs. Use it from any thread.
public final class Engine: Sendable {
    let directory: any StoreDirectory
    let names: DirectoryNames
    let fileName: String
    /// The store's identity; it stays through compaction and backup.
    public let storeID: UUIDValue
    let options: EngineOptions
    let delegate: any EngineDelegate
    let nodeBudget: NodeBudget
    let counters: EngineCounters
    let blobStore: BlobStore
    /// Whether it writes, and how it shares the store with other processes.
    let role: EngineRole
    /// Those of the role, which each snapshot asks.
    let follower: Follower?
    let turn: WriterTurn?

    let queue = CommitQueue()
    /// The newest commit at the maintenance thread's last idle round.
    let idle = Mutex(CommitNumber(0))
    let compaction = CompactionStatus()
    let pastStates = PastStates()
    let suspension = Suspension()
    let damageAtOpening = Mutex<EngineError?>(nil)
    let published: Mutex<Published>
    let writer: Guarded<WriterState>
    /// The thread that runs the body of a write, and so has the writer lock; 0 for none.
    private let bodyThread = Atomic<UInt>(0)
    let gate = WriterGate()
    let objectIDs: ObjectIDs

    struct Published {
        /// What readers hold: taking it, under the lock, counts one reference.
        private(set) var shown: PublishedState
        var state: StoreState { shown.state }
        /// The newest commit that no power cut takes back: that of `state`, or an older one while
        /// `.relaxed` commits wait for their sync.
        private(set) var durable: CommitNumber
        var pins: Pins
        var isClosed = false
        private let environment: any Environment

        /// - Parameter durable: the newest commit that is proven, when `state` stands on others.
        init(state: StoreState, durable: CommitNumber? = nil, environment: any Environment) {
            shown = PublishedState(state)
            self.environment = environment
            self.durable = durable ?? state.number
            pins = Pins(since: environment.monotonicNanoseconds())
        }

        /// The state before the newest, so that its nodes are freed by the next saver, not by the
        /// reader that happens to let it go last: the two would wait for each other's memory.
        private var retired: PublishedState?

        /// - Parameter isSmall: the state before is kept until the next one is shown. Others may
        ///   hold much.
        /// - Returns: what nobody needs any more, to be let go outside of the lock.
        mutating func show(
            _ newer: StoreState,
            isDurable: Bool,
            isSmall: Bool = false
        ) -> (PublishedState?, PublishedState?) {
            let unneeded = (retired, isSmall ? nil : shown)
            retired = isSmall ? shown : nil
            var newer = newer
            newer.publication = shown.state.publication + 1
            pins.supersede(shown.state, at: environment.monotonicNanoseconds())
            shown = PublishedState(newer)
            if isDurable { durable = newer.number }
            return unneeded
        }

        /// In an idle store the state before the newest goes, too.
        mutating func forgetRetired() -> PublishedState? {
            let unneeded = retired
            retired = nil
            return unneeded
        }

        mutating func becomeDurable() { durable = state.number }
    }

    init(
        names: DirectoryNames,
        fileName: String,
        options: EngineOptions,
        delegate: any EngineDelegate,
        nodeBudget: NodeBudget,
        counters: EngineCounters,
        blobStore: BlobStore,
        role: EngineRole,
        state: StoreState,
        durable: CommitNumber? = nil,
        writer: consuming WriterState,
        nextObjectID: UInt64
    ) {
        directory = names.directory
        self.names = names
        self.fileName = fileName
        storeID = state.generation.header.storeID
        self.options = options
        self.delegate = delegate
        self.nodeBudget = nodeBudget
        self.counters = counters
        self.blobStore = blobStore
        self.role = role
        follower = role.follower
        turn = role.turn
        published = Mutex(
            Published(state: state, durable: durable, environment: options.environment)
        )
        self.writer = Guarded(writer)
        objectIDs = ObjectIDs(next: nextObjectID)
        role.maintenance?.start(for: self)
        writeLiveCounters()
    }

    /// Why a store that was opened for reading shows an earlier commit than its newest: the damage
    /// for which opening it for writing is refused. Nil for a sound one.
    public var damage: EngineError? { damageAtOpening.withLock { $0 } }

    /// Whether this opening shows the store as it was when it was opened and hears of no later
    /// commit: it was opened for reading, the lock file was missing, and it could not be made.
    /// Writers do not know of it: a blob file that they remove is `blobSwept`.
    public var readsOneMoment: Bool {
        if case .readerOfOneMoment = role { directory.isSharedBetweenProcesses } else { false }
    }

    // MARK: Reading

    /// The newest commit, pinned until the snapshot goes. When another process may have written,
    /// the engine first follows what that one has made durable since.
    /// - Complexity: O(1); after another process O(bytes of its new commits).
    public func snapshot() -> Snapshot {
        follow()
        return knownSnapshot()
    }

    /// The newest commit that this process knows of: what an opening has found. - Complexity: O(1).
    package func knownSnapshot() -> Snapshot {
        let state = published.withLock { published in
            published.pins.unnamed += 1
            return published.shown
        }
        return Snapshot(state, engine: self, token: Pins.noToken)
    }

    func unpin(publication: UInt64, token: UInt64) {
        published.withLock { published in
            if token == Pins.noToken, publication == published.state.publication {
                published.pins.unnamed -= 1
            } else {
                published.pins.remove(publication: publication, token: token)
            }
        }
    }

    /// The oldest commit that somebody reads, or that a power cut may make the newest again; the
    /// newest one when there is neither.
    func oldestPinned() -> CommitNumber {
        published.withLock { published in
            min(published.pins.oldest(published.state.number) ?? .init(.max), published.durable)
        }
    }

    // MARK: Writing

    /// Runs `body` as the only writer and makes what it changed durable.
    ///
    /// Savers that come while another's commit is on its way to the disk share the next sync.
    ///
    /// - Parameters:
    ///   - author: a label of at most 64 bytes that the commit keeps.
    ///   - durability: `.full` returns when the commit is on disk.
    ///   - body: changes rows. If it throws, nothing happened.
    /// - Returns: what `body` returned, and the commit; nil when nothing was changed.
    /// - Throws: what `body` throws; `EngineError` with `readOnly`, `closed`, `poisoned` (nothing
    ///   was written), `noSpace` (nothing was written), `busy` (another process writes for too
    ///   long), `storeGone` (nothing is in the store), `outcomeUnknown` (the engine is poisoned),
    ///   `damaged`, `ioFailed`; `reentrant` inside the `body` of another one of this engine.
    public func write<R>(
        author: String = "",
        durability: Durability = .full,
        _ body: (WriteTransaction) throws -> R
    ) throws -> (result: R, commit: CommitNumber?) {
        try checkNotInBody()
        if gate.isInUse { gate.letPass() }
        var tookTurn = false
        defer {
            // Somebody may have knocked before this process listened, and without a batch nobody
            // looks.
            if tookTurn { heedOthers() }
            passOnWriter()
        }
        while true {
            let attempt = try writer.withLock { writer -> Attempt<R> in
                try checkWritable(writer)
                if !writer.hasTurn { return .noTurn }
                if writer.passesTurn || isBatchFull(writer) { return .full }
                return try running {
                    let transaction = try begin(&writer)
                    let result: R
                    do {
                        result = try body(transaction)
                        try end(transaction, &writer)
                    } catch {
                        abandon(transaction, &writer)
                        throw error
                    }
                    if transaction.isEmpty { return .unchanged(result, on: writer.newest) }
                    let commit = try enqueue(
                        transaction,
                        author: author,
                        durability: durability,
                        &writer
                    )
                    return .queued(result, commit, needs: needs(writer))
                }
            }
            // The lock is free: who was granted the writer does not meet it.
            passOnWriter()
            switch attempt {
            case .noTurn:
                try takeTurn()
                tookTurn = true
            case .full: drain()
            case .unchanged(let result, let base):
                try confirm(base)
                return (result, nil)
            case .queued(let result, let commit, let needs):
                try awaitDurable(commit)
                arrange(needs, after: commit)
                return (result, commit.state.number)
            }
        }
    }

    /// Remembers that this thread changes rows, and that the writer is not free until that is in
    /// the log: see `checkNotInBody`, `isBetweenBodies`. After a bulk load the way into the log
    /// takes a sixth of the time.
    private func running<R>(_ body: () throws -> R) rethrows -> R {
        bodyThread.store(BackgroundThread.currentID, ordering: .sequentiallyConsistent)
        defer { bodyThread.store(0, ordering: .sequentiallyConsistent) }
        return try body()
    }

    /// Whether no thread is in the body of a write.
    var isBetweenBodies: Bool { bodyThread.load(ordering: .sequentiallyConsistent) == 0 }

    /// Throws `reentrant` on a thread that would wait for itself: it runs the body of a write.
    public func checkNotInBody() throws(EngineError) {
        // Only the thread itself ever finds its own number there: no order is needed.
        guard bodyThread.load(ordering: .relaxed) == BackgroundThread.currentID else { return }
        throw EngineError(
            .reentrant,
            "the store was to be written inside a closure that runs while it is being written"
        )
    }

    /// The transaction changes nothing more: takes the log back that it had.
    private func end(
        _ transaction: WriteTransaction,
        _ writer: inout WriterState
    ) throws(EngineError) {
        // Half of a change may be in the editor: `body` cannot go on as if nothing were.
        if let failure = transaction.failure { throw failure }
        try transaction.finishChanges()
        try noteEpoch(in: transaction, &writer)
        transaction.spill.end(&writer.log)
    }

    /// The same when nothing of it is to stand.
    private func abandon(_ transaction: WriteTransaction, _ writer: inout WriterState) {
        transaction.spill.end(&writer.log)
        guard transaction.spill.hasWritten else { return }
        // What it wrote stands after a CLOSE that may be there. The next checkpoint, at the latest
        // that of a clean close, goes after it and so lets a compaction count it as dead.
        writer.wroteBehindItsEnd()
        writer.wantCheckpoint()
        if let failure = transaction.failure {
            // Poisons the engine when others' commits were in a write that failed.
            _ = giveUp(&writer, backTo: writer.log.mark, failure)
        }
    }

    private enum Attempt<R> {
        case noTurn
        case full
        case unchanged(R, on: QueuedCommit?)
        case queued(R, QueuedCommit, needs: MaintenanceNeeds)
    }

    /// A batch that grew beyond its limit goes to the disk before anything joins it.
    private func isBatchFull(_ writer: borrowing WriterState) -> Bool {
        let waiting = writer.log.end.rawValue - writer.log.durableEnd.rawValue
        return waiting > UInt64(options.batchBytesMax) && !queue.isEmpty
    }

    /// A transaction on everything that was queued before.
    private func begin(_ writer: inout WriterState) throws(EngineError) -> WriteTransaction {
        if writer.log.holdsBody {
            do throws(IOError) { try writer.log.flush() } catch {
                throw giveUp(&writer, backTo: writer.log.mark, .io(error))
            }
        }
        writer.stamp += 1
        let base = writer.pending
        let spill = Spill(self, writer.log)
        let editor = StateEditor(
            base: base,
            number: base.number.next,
            stamp: writer.stamp,
            base.generation,
            options,
            spill: spill
        )
        return WriteTransaction(
            editor: editor,
            loader: base.generation.nodes,
            spill: spill,
            objectIDs: objectIDs,
            options: options,
            delegate: delegate,
            takeStamp: { [pastStates] in pastStates.takeStamp() }
        )
    }

    /// Returns when the commit is durable: led by this thread, or by another.
    private func awaitDurable(_ commit: QueuedCommit) throws(EngineError) {
        while queue.waitOrLead(for: commit) { lead() }
        if case .failed(let error) = commit.outcome.withLock({ $0 }) { throw error }
    }

    /// What a saver read and left as it is may not be on disk yet: before that, nobody may rely on
    /// it.
    private func confirm(_ base: QueuedCommit?) throws(EngineError) {
        guard let base else { return }
        // It waits, or is on its way: both are over when the lead comes back from here.
        if base.outcome.withLock({ $0 == nil }) { drain() }
        guard case .failed(let error) = base.outcome.withLock({ $0 }) else { return }
        throw EngineError(
            .poisoned,
            "nothing was changed, and the newest commit that was read failed (\(error.message))",
            cause: error
        )
    }

    /// Makes everything that waits durable.
    func drain() {
        queue.claimLead()
        lead()
    }

    /// Runs `body` with the writer lock held, in this process's turn, no batch on its way and
    /// nothing that waits: the pending state is the published one.
    ///
    /// - Parameter turn: `tried` when `body` can do without.
    func exclusively<R>(
        turn need: TurnNeed = .required,
        _ body: (inout WriterState) throws(EngineError) -> R
    ) throws(EngineError) -> R {
        try checkNotInBody()
        queue.claimLead()
        var outcomes: [(QueuedCommit, QueuedCommit.Outcome)] = []
        defer { endLead(outcomes) }
        do throws(EngineError) {
            try takeTurn(milliseconds: need == .tried ? Self.closingMilliseconds : nil)
        } catch {
            if need == .required { throw error }
        }
        return try writer.withLock { writer throws(EngineError) in
            var batch = hand(&writer)
            batch.company = company(writer)
            if let failure = sync(&batch) {
                fail(&batch, failure, &writer)
            } else {
                publish(&batch)
            }
            outcomes = batch.outcomes
            defer {
                let company = company(writer)
                if writer.hasTurn, company >= .readers {
                    share(durableEnd: writer.log.durableEnd)
                }
                passTurn(to: company, &writer)
            }
            return try body(&writer)
        }
    }

    enum TurnNeed { case required, tried }
    /// How long a close waits for another process, to leave the log with a witness.
    static let closingMilliseconds = 2000

    func checkWritable(_ writer: borrowing WriterState) throws(EngineError) {
        switch writer.status {
        case .closed: throw EngineError(.closed, "the store is closed")
        case .poisoned(let cause) where cause.code == .storeGone: throw cause
        case .poisoned(let cause):
            throw EngineError(
                .poisoned,
                "an earlier write failed (\(cause.message)); open the store again to write",
                cause: cause
            )
        case .open:
            if role.isReadOnly {
                throw EngineError(.readOnly, "the store was opened for reading only")
            }
            if suspension.isSuspended { throw Suspension.error }
        }
    }

    /// Hands out object IDs; they are never handed out again, committed or not.
    /// - Returns: the first of `count` consecutive IDs.
    /// - Complexity: O(1), no I/O.
    public func allocateObjectIDs(_ count: Int) -> ObjectID {
        precondition(count >= 0, "a count of IDs")
        return ObjectID(objectIDs.take(UInt64(count)))
    }

    /// At the end of the IDs it stays where a record can still say it.
    var objectIDHighWater: UInt64 { Self.toldHighWater(objectIDs.highWater) }

    static func toldHighWater(_ highWater: UInt64) -> UInt64 {
        min(highWater, CommitRecord.countersEnd - 1)
    }

    deinit {
        // An engine that is dropped without `close` leaves its log as after a crash: correct, only
        // slower to open. A clean end is tried; its failure costs nothing that was committed.
        try? close()
    }

    /// Counters since opening, and what is held now.
    public var statistics: EngineStatistics {
        var values = counters.values
        (values.nodeHits, values.nodeMisses) = nodeBudget.readers.counts
        values.nodeCacheBytes = UInt64(nodeBudget.usedBytes)
        values.nodeLimboBytes = UInt64(nodeBudget.limboBytes)
        let file = published.withLock { $0.state.generation.log }
        values.fileBytes = (try? file.size()) ?? 0
        published.withLock { published in
            values.newestCommit = published.state.number.rawValue
            values.logBytes = published.state.frame.rawValue
            values.liveBytes = published.state.liveBytes
            values.deadBytes = published.state.deadBytes
            values.pinnedSnapshots = published.pins.count
            let newest = published.state.number
            values.oldestPinnedCommit = (published.pins.oldest(newest) ?? newest).rawValue
        }
        values.pins = pinnedCommits()
        return values
    }
}
