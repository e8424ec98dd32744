// Zeros after the log, written and synced before a commit needs them.
//
// Invariants
// - Bytes are handed to the system only below `preparedEnd`: whoever passes it raises it first,
//   under the lock. So zeros never meet data.
// - Zeros count as prepared only after a sync that succeeded.
// - Zeros are written by the process that may write, and by none that has given its turn up.
// - One thread grows at a time, a piece at a time; a saver in need waits for one piece at most, and
//   one that has room for none.

internal import Synchronization
internal import VarveBase
internal import VarveIO

final class TailRoom: Sendable {
    /// Bytes written and synced at once: 4 MiB at once would hold up a commit's sync for longer.
    static let pieceBytes: UInt64 = 128 << 10

    /// Raised under `growing`; lowered only by `cut`, when nobody writes any more.
    private let preparedEnd: Atomic<UInt64>
    private let hasFoundNoSpace = Atomic(false)
    private let growing = Mutex(Growth())
    private struct Growth {
        /// Another process may write: not a byte from here.
        var isRetired = false
    }
    private let progress: LogProgress
    private let options: EngineOptions
    private let counters: EngineCounters

    /// Zeros found after the log may not be on disk: they are prepared again before use.
    init(
        end: FileOffset,
        options: EngineOptions,
        counters: EngineCounters,
        progress: LogProgress
    ) {
        preparedEnd = Atomic(end.rawValue)
        self.progress = progress
        self.options = options
        self.counters = counters
    }

    /// Bytes that should be ready after the log.
    func wanted(behind end: UInt64) -> UInt64 {
        min(max(end / 8, options.tailRoomMin), options.tailRoomMax)
    }

    /// Makes everything below `end` usable, growing when less than `reserve` would be left.
    ///
    /// - Throws: `noSpace`, `ioFailed`: nothing of the batch was written. `poisoned` when a sync
    ///   failed: it may have been the only report of a lost write.
    func ensure(
        _ end: FileOffset,
        reserve: UInt64,
        file: any StoreFile
    ) throws(EngineError) {
        let needed = end.rawValue + reserve
        if needed <= prepared { return }
        try growing.withLock { growth throws(EngineError) in
            precondition(!growth.isRetired, "room is made by whoever may write")
            guard needed > prepared else { return }
            let target = (needed + wanted(behind: end.rawValue) + 4095) & ~4095
            let sync = { () throws(IOError) in try self.progress.sync(file) }
            // The descriptor that commits go through.
            do throws(EngineError) {
                try grow(to: target, file, sync)
                hasFoundNoSpace.store(false, ordering: .relaxed)
            } catch {
                // No space for what should be ready: deletes and checkpoints give some back and
                // do with what they need. Where the log was cut or is not trusted, as after an
                // opening, there is no reserve for them.
                guard !isSave(reserve), error.code == .noSpace else { throw error }
                try grow(to: (needed + 4095) & ~4095, file, sync)
            }
            counters.roomExtensions.add(1, ordering: .relaxed)
        }
    }

    /// Deletes and checkpoints do with less.
    private func isSave(_ reserve: UInt64) -> Bool {
        reserve > 0 && reserve >= options.tailReserve
    }

    /// A commit frame after a large body, about.
    private static let frameBytes: UInt64 = 4096

    /// Whether zeros that should be ready found no space when they were written last.
    var isFull: Bool { hasFoundNoSpace.load(ordering: .relaxed) }

    /// Whether everything below `end` is usable.
    func holds(_ end: FileOffset) -> Bool { end.rawValue <= prepared }

    private var prepared: UInt64 { preparedEnd.load(ordering: .acquiring) }

    /// Bytes are about to extend the file themselves.
    func pass(_ end: FileOffset) {
        // Under the lock: zeros that are being written now would come after them.
        growing.withLock { _ in _ = preparedEnd.max(end.rawValue, ordering: .releasing) }
    }

    /// The same for a large body: zeros first would only write it twice. Where it cannot fit it
    /// must not begin: it would take what is prepared, and find out after it.
    ///
    /// - Throws: `noSpace` when the disk is known to have less than the body needs, and a commit
    ///   frame after it, which makes its own room.
    func pass(
        _ end: FileOffset,
        reserve: UInt64,
        file: any StoreFile
    ) throws(EngineError) {
        try growing.withLock { _ throws(EngineError) in
            let prepared = prepared
            if end.rawValue + reserve + Self.frameBytes <= prepared { return }
            let fresh = end.rawValue - min(prepared, end.rawValue)
            let behind = isSave(reserve) ? wanted(behind: end.rawValue) : 0
            if let free = file.freeBytes(), free < fresh + reserve + behind + Self.frameBytes {
                hasFoundNoSpace.store(true, ordering: .relaxed)
                throw EngineError(
                    .noSpace,
                    "\(file.name) would grow by \(fresh) bytes and what is kept for deletes, and "
                        + "its disk has \(free) bytes left; nothing was written"
                )
            }
            _ = preparedEnd.max(end.rawValue, ordering: .releasing)
        }
    }

    /// The write of a large body found no space.
    func noteNoSpace() { hasFoundNoSpace.store(true, ordering: .relaxed) }

    /// Whether less than half of what should be ready is.
    func isLow(behind end: FileOffset) -> Bool {
        prepared < end.rawValue + wanted(behind: end.rawValue) / 2
    }

    /// Writes one piece of zeros when room is short; false when there is enough.
    ///
    /// - Parameter file: a descriptor that no commit goes through.
    func growOnePiece(behind end: FileOffset, file: any StoreFile) throws(EngineError) -> Bool {
        try growing.withLock { growth throws(EngineError) in
            if growth.isRetired { return false }
            let target = (end.rawValue + wanted(behind: end.rawValue) + 4095) & ~4095
            guard prepared < target else { return false }
            try grow(to: min(target, prepared + Self.pieceBytes), file) { () throws(IOError) in
                try progress.syncElsewhere(file)
            }
            hasFoundNoSpace.store(false, ordering: .relaxed)
            return true
        }
    }

    /// Called under `growing`.
    private func grow(
        to target: UInt64,
        _ file: any StoreFile,
        _ sync: () throws(IOError) -> Void
    ) throws(EngineError) {
        let start = prepared
        var position = start
        do throws(IOError) {
            while position < target {
                let count = min(target - position, Self.pieceBytes)
                try file.write([UInt8](repeating: 0, count: Int(count)), at: FileOffset(position))
                position += count
            }
        } catch {
            let error = EngineError.io(error)
            if error.code == .noSpace { hasFoundNoSpace.store(true, ordering: .relaxed) }
            throw error
        }
        do throws(IOError) { try sync() } catch {
            throw EngineError(
                .poisoned,
                "a sync of the store file failed (\(error.description)); every commit that was "
                    + "acknowledged is on disk",
                cause: error
            )
        }
        counters.bytesWritten.add(target - start, ordering: .relaxed)
        preparedEnd.store(target, ordering: .releasing)
    }

    /// No more zeros from this process; returns when none are being written.
    /// - Returns: how far they reach.
    func retire() -> FileOffset {
        growing.withLock { $0.isRetired = true }
        return FileOffset(prepared)
    }

    /// Goes on where the process that wrote last has stopped.
    func revive(preparedTo end: FileOffset) {
        growing.withLock { growth in
            growth.isRetired = false
            preparedEnd.store(end.rawValue, ordering: .releasing)
        }
    }

    /// Cuts unused zeros off, at a clean close.
    func cut(to end: FileOffset, file: any StoreFile) throws(IOError) {
        try growing.withLock { _ throws(IOError) in
            if try file.size() > end.rawValue { try file.cut(to: end.rawValue) }
            preparedEnd.store(end.rawValue, ordering: .releasing)
        }
    }
}
