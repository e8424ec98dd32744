// How a process keeps up with the one that writes: one that reads, or one whose turn it is not.
//
// Invariants
// - A process whose turn it is to write follows nobody: `turn.isWriting`, set under the follower's
//   lock.
// - A reader moves forward only, to commits that are on disk, one after another; the caches above
//   hear of each before it can be seen.
// - It stands on the roots of every TREE and CKPT that it passes, so it never gathers changed nodes
//   of more than one stretch between two checkpoints.
// - After a compaction it reads the old file to its end before it turns to the new one: nothing of
//   what changed is missed.
// - What cannot be read leaves the reader where it is; the next attempt begins anew.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

/// Waits for writes to the lock file on a thread of its own: for readers who want to hear of
/// commits, and for writers, of whom others want their turn.
final class FollowThread: Sendable {
    private let watch = LateWatch()

    /// - Parameter asksFirst: whether the watch is asked for before the thread starts: the system
    ///   gave none before, and a thread for each refusal costs more than to ask.
    init?(_ engine: Engine, asksFirst: Bool) {
        let (directory, name) = (engine.directory, engine.lockName)
        var known: FileWatch?
        if asksFirst {
            known = directory.watch(name)
            if known == nil { return nil }
        }
        let isStarted = BackgroundThread.start { [weak engine, watch, known] in
            // To make a watch takes a tenth of what an opening does, which need not wait for it.
            // The engine is not held meanwhile: one that ended here would wait for this watch.
            guard let made = watch.make(known ?? directory.watch(name)) else { return }
            // What was written before it was there.
            engine?.hear()
            while made.wait() {
                guard let engine else { return }
                engine.hear()
            }
        }
        if !isStarted {
            known?.stop()
            return nil
        }
    }

    deinit { watch.stop() }

    /// Whether nothing is missed from now on; waits until that is known. Not under a lock that
    /// `Engine.hear` takes.
    var hears: Bool { watch.isThere }
}

/// The watch of a thread that makes it.
private final class LateWatch: Sendable {
    private enum State {
        case coming
        case there(FileWatch)
        /// The system gives none, or it is not wanted any more.
        case none
    }
    private let state = Mutex(State.coming)
    /// Told once: when it is known whether there is one.
    private let known = Parker()

    /// - Returns: the watch, unless there is none or it was stopped before.
    func make(_ watch: FileWatch?) -> FileWatch? {
        let made = state.withLock { state -> FileWatch? in
            guard case .coming = state, let watch else {
                state = .none
                return nil
            }
            state = .there(watch)
            return watch
        }
        known.unpark()
        return made
    }

    func stop() {
        let made = state.withLock { state -> FileWatch? in
            defer { state = .none }
            if case .there(let watch) = state { return watch }
            return nil
        }
        made?.stop()
    }

    var isThere: Bool {
        while true {
            let isThere = state.withLock { state -> Bool? in
                switch state {
                case .coming: nil
                case .there: true
                case .none: false
                }
            }
            if let isThere { return isThere }
            known.park()
            // For others who wait.
            known.unpark()
        }
    }
}

/// A way to follow a writer in another process.
final class Follower: Sendable {
    struct State {
        /// Stamps of replays; a published state is never changed in place.
        /// Far from those of transactions, which a writing process counts itself.
        var stamp = TreeNode.cleanStamp + 2 + (1 << 62)
        var seen: UInt64 = 0
        /// Looks at the page that found nothing new.
        var idleLooks = 0
    }
    /// Reading the page costs a system call each time; mapping it, once, as much as ten of them:
    /// too much for whoever opens a store, reads a little and closes it.
    private static let idleLooksPerMapping = 6
    /// `seen`, for those that look without the lock: what it stands for has been published.
    private let reached = Atomic<UInt64>(0)
    let page: SharedPage
    private let state = Mutex(State())
    let thread = Mutex<FollowThread?>(nil)
    /// Whether commits of others are wanted when they happen, not only at the next snapshot.
    let wantsNews = Atomic<Bool>(false)
    /// Whether the system gave no watch before.
    let wasRefused = Atomic<Bool>(false)

    /// The thread that follows now.
    private let follows = Atomic<UInt>(0)

    init(_ page: SharedPage) { self.page = page }

    /// Runs `body` as the only one that follows.
    func exclusively<R, Failure: Error>(
        _ body: (inout State) throws(Failure) -> R
    ) throws(Failure) -> R {
        try state.withLock { state throws(Failure) in
            follows.store(BackgroundThread.currentID, ordering: .relaxed)
            defer { follows.store(0, ordering: .relaxed) }
            return try body(&state)
        }
    }

    /// Whether nothing is new, as far as that can be seen without a system call.
    var isUpToDate: Bool { page.sequence == reached.load(ordering: .acquiring) }

    /// The page told nothing new: whoever looks often shall not read it each time.
    func lookedInVain(_ state: inout State) {
        state.idleLooks += 1
        if state.idleLooks % Self.idleLooksPerMapping == 0 { page.watchSequence() }
    }

    /// Everything that the page told has been published.
    func reach(_ sequence: UInt64, _ state: inout State) {
        state.seen = sequence
        reached.store(sequence, ordering: .releasing)
    }

    /// Whether the calling thread is inside a callback of a commit that it follows: it must not
    /// close the engine, which would wait for itself.
    var isFollowedByThisThread: Bool {
        follows.load(ordering: .relaxed) == BackgroundThread.currentID
    }
}

extension Engine {
    /// From now on the engine hears of commits of other processes when they happen, where the
    /// system can tell; elsewhere at its next snapshot.
    public func followInBackground() {
        role.follower?.wantsNews.store(true, ordering: .relaxed)
        startFollowing()
    }

    /// Starts the thread that hears others, unless it runs.
    func startFollowing() {
        role.follower?.thread.withLock { thread in
            guard thread == nil, let follower = role.follower else { return }
            let asksFirst = follower.wasRefused.load(ordering: .relaxed)
            thread = FollowThread(self, asksFirst: asksFirst)
        }
    }

    /// Whether others are heard from now on; starts the thread if it does not run. False when the
    /// system gives none.
    func hearsOthers() -> Bool {
        startFollowing()
        guard let follower = role.follower, let thread = follower.thread.withLock({ $0 }) else {
            return false
        }
        if thread.hears { return true }
        follower.wasRefused.store(true, ordering: .relaxed)
        // The system may give one another time.
        follower.thread.withLock { if $0 === thread { $0 = nil } }
        return false
    }

    /// Brings the engine up to the newest durable commit that the writing process tells of.
    ///
    /// - Complexity: O(1) when nothing is new, with a small read where the lock file cannot be
    ///   mapped; else O(bytes of the new commits).
    func follow() {
        guard let follower, turn?.isWriting != true,
            !follower.isUpToDate, !suspension.isSuspended
        else { return }
        guard let news = follower.page.read() else { return }
        follower.exclusively { state in
            // The sequence begins anew with every writer: any other one is news.
            if news.sequence == state.seen { return follower.lookedInVain(&state) }
            if role.turn?.isWriting == true || suspension.isSuspended { return }
            // A turn of this process may have come and gone meanwhile.
            guard let told = role.turn == nil ? news : follower.page.read() else { return }
            do throws(EngineError) {
                try catchUp(to: told, &state)
                follower.reach(told.sequence, &state)
                counters.followed.add(1, ordering: .relaxed)
            } catch {
                counters.followFailures.add(1, ordering: .relaxed)
            }
        }
    }

    func catchUp(
        to told: SharedState,
        _ follower: inout Follower.State
    ) throws(EngineError) {
        let here = published.withLock { $0.state }
        if told.fileID == here.generation.header.fileID {
            guard told.frame > here.frame else { return }
            try advance(here, to: told.frame, &follower)
            return
        }
        // 1. The rest of the old file: the writer has left it, so its newest commit is the last.
        let log = here.generation.log
        // Another process may have the turn, whether this one may write or not.
        let newest = try LogStart.scanned(log, isReadOnly: true).newest
        let scan = LogScan(log: log, size: try log.size())
        let last =
            newest.header.kind == .close ? try scan.previous(of: newest) ?? newest : newest
        if last.offset > here.frame { try advance(here, to: last.offset, &follower) }
        // 2. The new file, from the state that it began with.
        let file = try Self.openFile(fileName, in: directory, role.isReadOnly)
        let header = try Self.readHeader(file, fileName, isReadOnly: role.isReadOnly)
        guard header.fileID == told.fileID, header.storeID == storeID else {
            throw EngineError(.ioFailed, "the store file changed again while it was opened")
        }
        let generation = Generation(
            file: file,
            header: header,
            budget: nodeBudget,
            counters: counters
        )
        try turnTo(generation, frame: told.frame, &follower)
    }

    /// Goes over to a file that was opened again or is new, up to the commit frame in it.
    func turnTo(
        _ generation: Generation,
        frame: FileOffset,
        _ follower: inout Follower.State
    ) throws(EngineError) {
        pastStates.removeAll()
        let chain = try CommitChain(generation: generation, newest: frame)
        let reached = published.withLock { $0.state.number }
        guard let (base, later) = try chain.stretch({ $0.number <= reached }) else {
            // More than one compaction has passed: which objects changed is not known.
            try adopt(chain, generation, &follower)
            return
        }
        let replay = replay(generation, &follower)
        var state = try replay.state(of: base)
        for place in try chain.places(from: base, to: later, { $0.number <= reached }) {
            state = try replay.apply(chain.commit(at: place), to: state)
        }
        guard state.number == reached else {
            // A settle has taken that commit in, together with later ones.
            try adopt(chain, generation, &follower)
            return
        }
        _ = published.withLock { $0.show(state, isDurable: true) }
        if frame > state.frame { try advance(state, to: frame, &follower) }
    }

    /// Publishes every commit from behind `here` up to the frame at `target`.
    private func advance(
        _ here: StoreState,
        to target: FileOffset,
        _ follower: inout Follower.State
    ) throws(EngineError) {
        let chain = try CommitChain(generation: here.generation, newest: target)
        var places: [FileOffset] = []
        var next: ScannedCommit? = try chain.commit(at: target)
        while let frame = next, frame.offset > here.frame {
            places.append(frame.offset)
            next = try chain.before(frame)
        }
        guard next?.offset == here.frame else {
            // The newest commit that was read at opening was not on disk and never came to be.
            try adopt(chain, here.generation, &follower)
            return
        }
        var state = here
        for place in places.reversed() {
            let frame = try chain.commit(at: place)
            let replay = replay(here.generation, &follower)
            let before = state
            state =
                frame.isBase ? try replay.state(of: frame) : try replay.apply(frame, to: state)
            state.liveBytes = frame.record.liveBytes
            let changes = frame.carriesChanges ? try changes(of: frame, before) : nil
            if let changes { delegate.willPublish(changes) }
            _ = published.withLock { $0.show(state, isDurable: true) }
            if let changes { delegate.didPublish(changes) }
        }
    }

    private func changes(
        of frame: ScannedCommit,
        _ before: StoreState
    ) throws(EngineError) -> CommitChanges {
        CommitChanges(
            number: frame.number,
            author: frame.record.author,
            timeMicroseconds: frame.record.clockMicroseconds,
            objects: try Replay.changes(of: frame),
            schemaChanged: before.schemaVersion != frame.record.schemaVersion,
            isForeign: true
        )
    }

    /// Takes the newest state without knowing what changed: every cache must forget.
    private func adopt(
        _ chain: CommitChain,
        _ generation: Generation,
        _ follower: inout Follower.State
    ) throws(EngineError) {
        let (state, newest) = try replay(generation, &follower).state(of: chain)
        let changes = CommitChanges(
            number: state.number,
            author: "",
            timeMicroseconds: newest.record.clockMicroseconds,
            objects: [],
            schemaChanged: true,
            isUnknown: true,
            isForeign: true
        )
        delegate.willPublish(changes)
        _ = published.withLock { $0.show(state, isDurable: true) }
        delegate.didPublish(changes)
    }

    private func replay(
        _ generation: Generation,
        _ follower: inout Follower.State
    ) -> Replay {
        follower.stamp += 1
        return Replay(
            generation: generation,
            delegate: delegate,
            options: options,
            counters: counters,
            stamp: follower.stamp
        )
    }
}
