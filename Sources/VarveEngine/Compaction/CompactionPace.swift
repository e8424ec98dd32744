// How a compaction gives way: to savers, and to the other work of the maintenance thread.
//
// Invariants
// - What savers ask the thread for meanwhile is done between two steps: nothing waits for the end.
//   Checkpoints are asked for later than else (`dueTail`): the file is about to be replaced.
// - Beside savers it rests as long as it works, unless the file grows too fast for that; when it
//   grows by an eighth and more meanwhile, savers give way: the file must not outgrow its data.
// - It does not rest while it catches up: savers would be as much further.
// - A compaction on a thread of the caller's own has no pace: the caller waits for its end.

internal import Synchronization
internal import VarveBase
internal import VarveIO

/// Rests between the steps of a compaction on the maintenance thread.
final class CompactionPace {
    /// Work between two rests.
    private static let sliceNanoseconds: UInt64 = 4_000_000
    private static let restMillisecondsMax = 20
    /// The part of the file by which it may grow before there is no more rest.
    private static let growthShare: UInt64 = 16
    /// Parts of the file by which it may grow before savers wait a little after each commit.
    private static let brakes: [(share: UInt64, milliseconds: Int)] = [(8, 1), (4, 4), (2, 16)]

    private let thread: MaintenanceThread
    private var sliceStart: UInt64
    private var newest: CommitNumber
    private let fileBytesAtStart: UInt64
    var isCatchingUp = false

    init(_ engine: Engine, _ thread: MaintenanceThread) {
        self.thread = thread
        sliceStart = engine.options.environment.monotonicNanoseconds()
        let state = engine.published.withLock { $0.state }
        newest = state.number
        fileBytesAtStart = state.frame.rawValue
    }

    /// Between two steps. No lock is held.
    func breathe(_ engine: Engine) {
        // A failure comes again at the next commit or has poisoned the engine, which ends the run.
        _ = try? engine.serve(thread.takeNeeds(), on: thread)
        let environment = engine.options.environment
        let now = environment.monotonicNanoseconds()
        let worked = now &- sliceStart
        guard worked >= Self.sliceNanoseconds else { return }
        let (number, frame) = engine.published.withLock { ($0.state.number, $0.state.frame) }
        let grown = frame.rawValue - min(frame.rawValue, fileBytesAtStart)
        for brake in Self.brakes where grown > fileBytesAtStart / brake.share {
            engine.compaction.brake(atLeast: brake.milliseconds)
        }
        if !isCatchingUp, number != newest, grown <= fileBytesAtStart / Self.growthShare {
            newest = number
            thread.rest(
                milliseconds: min(Int(clamping: worked / 1_000_000), Self.restMillisecondsMax)
            )
            // The rest ends when something is asked for.
            _ = try? engine.serve(thread.takeNeeds(), on: thread)
        }
        sliceStart = environment.monotonicNanoseconds()
    }
}

/// Whether a compaction runs, and what the last one left.
final class CompactionStatus: Sendable {
    private struct State {
        var isRunning = false
        /// Bytes that the last run of this opening left for the next.
        var leftOver: UInt64 = 0
        /// Stored bytes and entries in the file that it made.
        var density: (bytes: UInt64, entries: UInt64)?
        /// When the chain was looked at last.
        var look: (file: UInt64, nanoseconds: UInt64)?
        /// Bytes of the file when its rows were looked at last.
        var rowLook: UInt64?
        /// Rounds of the maintenance thread, one after another, that found nothing to do.
        var idleRounds = 0
    }
    private let state = Mutex(State())
    private let brake = Atomic<Int>(0)

    /// Milliseconds that a saver waits after its commit, so that a compaction can catch up.
    var brakeMilliseconds: Int { brake.load(ordering: .relaxed) }
    /// Until the end of the run.
    func brake(atLeast milliseconds: Int) { brake.max(milliseconds, ordering: .relaxed) }

    /// What the last run left for the next.
    var leftOver: UInt64 { state.withLock { $0.leftOver } }

    func begin() throws(EngineError) {
        let wasRunning = state.withLock { state in
            defer { state.isRunning = true }
            return state.isRunning
        }
        if wasRunning { throw EngineError(.busy, "a compaction of this store is running") }
    }
    func end() {
        brake.store(0, ordering: .relaxed)
        state.withLock { $0.isRunning = false }
    }
    var isRunning: Bool { state.withLock { $0.isRunning } }

    func note(reclaimable: UInt64) { state.withLock { $0.leftOver = reclaimable } }

    /// A file that was just made: as small as it gets.
    func note(_ made: StoreState) {
        let entries = made.baseTrees.values.reduce(0) { $0 + $1.rows }
        state.withLock { $0.density = entries == 0 ? nil : (made.liveBytes, entries) }
    }

    /// Bytes that what `bytes` hold now would take in a file made by a compaction: pages that
    /// filled up and split in random order have room in them, and smaller ones compress less.
    func compacted(_ bytes: UInt64, of state: StoreState) -> UInt64 {
        guard let (made, entries) = self.state.withLock({ $0.density }) else { return bytes }
        let now = state.baseTrees.values.reduce(0) { $0 + $1.rows }
        let expected = Double(made) * Double(now) / Double(entries)
        let share = min(expected / max(Double(state.liveBytes), 1), 1)
        return UInt64(Double(bytes) * share)
    }

    /// Counts a round of the maintenance thread; whether so many in a row were idle.
    func wasIdle(_ isIdle: Bool, rounds: Int) -> Bool {
        state.withLock { state in
            state.idleRounds = isIdle ? min(state.idleRounds + 1, rounds) : 0
            return state.idleRounds == rounds
        }
    }

    /// Whether the rows should be looked at again: when the file has grown by a quarter and by
    /// `step` since then, or since a compaction made it smaller. So a compaction that packs less
    /// than was hoped for is not repeated.
    func shouldLookAtRows(file: UInt64, step: UInt64) -> Bool {
        state.withLock { state in
            defer { if file < state.rowLook ?? .max { state.rowLook = file } }
            if let look = state.rowLook, file < look || file - look < max(step, look / 4) {
                return false
            }
            state.rowLook = file
            return true
        }
    }

    /// The rows are looked at again: what was worth it was not done.
    func forgetRowLook() { state.withLock { $0.rowLook = nil } }

    /// Whether the chain should be looked at again: not at each commit, since that reads the disk.
    func shouldLook(file: UInt64, step: UInt64, now: UInt64) -> Bool {
        state.withLock { state in
            if let look = state.look, file >= look.file, file - look.file < step,
                now &- look.nanoseconds < 60_000_000_000
            {
                return false
            }
            state.look = (file, now)
            return true
        }
    }
}
