// The engine's own thread: what no saver should wait for.
//
// Invariants
// - The thread holds the engine only while it works, so an engine that is let go can end.
// - `stop` returns when the thread does nothing any more and will never again.
// - The thread syncs through a descriptor of its own: the system reports a lost write once per
//   descriptor, and a saver's sync must not miss it.

internal import Synchronization
internal import VarveIO

/// What a commit left to do.
struct MaintenanceNeeds: Sendable {
    var checkpoint = false
    var room = false
    var sync = false

    var isEmpty: Bool { !checkpoint && !room && !sync }
}

final class MaintenanceThread: Sendable {
    private struct State {
        weak var engine: Engine?
        var needs = MaintenanceNeeds()
        /// When the oldest `.relaxed` commit that waits for a sync was made.
        var relaxedSince: UInt64?
        var isStopping = false
        var isRunning = false
        var threadID: UInt = 0
        var file: (any StoreFile)?
    }
    private let state = Mutex(State())
    private let work = Parker()
    private let end = Parker()

    /// The engine must be whole. The thread itself starts with the first work.
    func start(for engine: Engine) { state.withLock { $0.engine = engine } }

    var isStopping: Bool { state.withLock { $0.isStopping } }

    /// Leaves work for the thread, and wakes it if there is any. Every commit calls this: the
    /// thread is woken only when it has something new to do or does not run yet.
    func note(_ needs: MaintenanceNeeds, at now: UInt64) {
        let (wakes, starts) = state.withLock { state -> (Bool, Bool) in
            if state.isStopping { return (false, false) }
            var isNew = needs.checkpoint && !state.needs.checkpoint
            isNew = isNew || needs.room && !state.needs.room
            state.needs.checkpoint = state.needs.checkpoint || needs.checkpoint
            state.needs.room = state.needs.room || needs.room
            if needs.sync, state.relaxedSince == nil {
                state.relaxedSince = now
                isNew = true
            }
            let starts = !state.isRunning
            state.isRunning = true
            return (isNew, starts)
        }
        if starts {
            if !BackgroundThread.start({ [self] in run() }) {
                // No thread to be had: savers fall back to TREE commits and room of their own.
                let isAwaited = state.withLock { state in
                    state.isRunning = false
                    return state.isStopping
                }
                if isAwaited { end.unpark() }
            }
        } else if wakes {
            work.unpark()
        }
    }

    /// What was asked for since the last call: the thread does it.
    func takeNeeds() -> MaintenanceNeeds {
        state.withLock { state in
            defer { state.needs = MaintenanceNeeds() }
            var needs = state.needs
            needs.sync = state.relaxedSince != nil
            return needs
        }
    }

    /// Waits on the thread itself until something is asked for, not longer than `milliseconds`.
    func rest(milliseconds: Int) { _ = work.park(milliseconds: milliseconds) }

    /// Milliseconds until the oldest `.relaxed` commit must be synced. Zero: now, by the caller;
    /// the next one that comes is the oldest then.
    func millisecondsToSync(_ limit: Int, now: UInt64) -> Int {
        state.withLock { state in
            guard let since = state.relaxedSince else { return limit }
            let age = Int(clamping: (max(now, since) - since) / 1_000_000)
            if age < limit { return limit - age }
            state.relaxedSince = nil
            return 0
        }
    }

    /// Ends the thread.
    func stop() {
        let waits = state.withLock { state in
            state.isStopping = true
            // The last reference to the engine may go on this very thread.
            return state.isRunning && state.threadID != BackgroundThread.currentID
        }
        work.unpark()
        if waits {
            end.park()
            // Another thread may close at the same time; the token stays for it.
            end.unpark()
        }
        state.withLock { state in
            state.file?.close()
            state.file = nil
        }
    }

    private func run() {
        state.withLock { $0.threadID = BackgroundThread.currentID }
        var pause = 0
        var isFirst = true
        while true {
            let isWoken = isFirst || work.park(milliseconds: max(pause, 1))
            isFirst = false
            guard let engine = state.withLock({ $0.isStopping ? nil : $0.engine }) else { break }
            pause = engine.maintain(takeNeeds(), on: self, isWoken: isWoken)
        }
        state.withLock { $0.isRunning = false }
        end.unpark()
    }

    /// The next work opens the store file anew: a descriptor from before would be told of a sync
    /// that failed in another process.
    func forgetFile() { state.withLock { $0.file = nil } }

    /// The thread's own descriptor of the store file that `other` is open on.
    ///
    /// - Throws: `IOError` when it cannot be opened, or when the name is another file's now.
    func file(
        like other: any StoreFile,
        _ directory: any StoreDirectory,
        _ name: String
    ) throws(IOError) -> any StoreFile {
        let wanted = try other.identity()
        if let file = state.withLock({ $0.file }), try file.identity().isSameFile(as: wanted) {
            return file
        }
        let file = try directory.openFile(name, mode: .readWrite)
        guard try file.identity().isSameFile(as: wanted) else {
            file.close()
            throw IOError(
                kind: .other,
                code: 0,
                operation: "open",
                name: name,
                reason: "the name belongs to another file now"
            )
        }
        let old = state.withLock { state in
            defer { state.file = file }
            return state.file
        }
        old?.close()
        return file
    }
}
