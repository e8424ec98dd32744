// How much memory clean nodes may take, and when some of it is given back.
//
// Invariants
// - All generations of an engine share one budget: an old file's nodes count while somebody reads
//   them.
// - What may be used lies between `bytesMin` and `bytesMax`. It changes by looks at the machine's
//   memory alone; caches follow with the next node that comes, or with the next idle round.

internal import Synchronization
internal import VarveIO

/// Bytes of clean nodes that the generations of one engine may keep together, and who reads them.
final class NodeBudget: Sendable {
    /// What was asked for.
    let bytesMax: Int
    /// What stays when memory is scarce.
    let bytesMin: Int
    let readers = ReaderEpochs()
    /// Threads that restore the leaves of one scan; 1: the scan alone.
    let scanThreads: Int
    private let used = Atomic<Int>(0)
    private let limbo = Atomic<Int>(0)
    private let isHelped = Atomic<Bool>(false)
    private let environment: any Environment
    /// What may be used now.
    private let limit: Atomic<Int>
    /// Bytes that came since the last look at the machine's memory was considered.
    private let taken = Atomic<Int>(0)
    private let lastLook = Mutex<UInt64?>(nil)
    private let owes = Atomic<Bool>(false)

    /// So many bytes of nodes come between two questions for the time.
    private static let bytesPerLook = 1 << 20
    private static let nanosecondsPerLook: UInt64 = 1_000_000_000

    init(
        bytesMax: Int,
        bytesMin: Int = .max,
        scanThreads: Int = 1,
        _ environment: any Environment
    ) {
        self.bytesMax = bytesMax
        // Without figures the clock is not asked for either: worlds without chance stay the same.
        self.bytesMin = environment.knowsMemory ? min(max(0, bytesMin), bytesMax) : bytesMax
        self.scanThreads = scanThreads
        self.environment = environment
        limit = Atomic(bytesMax)
    }

    /// What may be used now: `bytesMax`, or `bytesMin` while memory is scarce.
    var bytesNow: Int { limit.load(ordering: .relaxed) }

    /// Whether memory was scarce at the last look.
    var isScarce: Bool { bytesNow < bytesMax }

    /// Looks at the machine's memory, at most once a second and only while there is something to
    /// give back. Less than a sixteenth of it left is scarce, until an eighth is left again.
    func lookAtMemory() {
        guard bytesMin < bytesMax, usedBytes > bytesMin || isScarce else { return }
        let now = environment.monotonicNanoseconds()
        let isDue = lastLook.withLock { last in
            let isDue = last.map { now - min(now, $0) >= Self.nanosecondsPerLook } ?? true
            if isDue { last = now }
            return isDue
        }
        guard isDue, let left = environment.memory()?.leftShare else { return }
        if left < 1.0 / 16 {
            if limit.exchange(bytesMin, ordering: .relaxed) != bytesMin {
                owes.store(true, ordering: .relaxed)
            }
        } else if left >= 1.0 / 8 {
            limit.store(bytesMax, ordering: .relaxed)
        }
    }

    /// True once after memory became scarce, when what had to go was freed: the allocator has it
    /// then, and not the system.
    func takeDebt() -> Bool {
        guard owes.load(ordering: .relaxed), !isExceeded, limboBytes < Self.bytesPerLook else {
            return false
        }
        return owes.exchange(false, ordering: .relaxed)
    }

    /// Whether enough came since the last time to look at the machine's memory again.
    func isLookDue(after bytes: Int) -> Bool {
        guard bytesMin < bytesMax else { return false }
        if taken.add(bytes, ordering: .relaxed).newValue < Self.bytesPerLook { return false }
        taken.store(0, ordering: .relaxed)
        return true
    }

    /// Whether a scan may have other threads now. One at a time: several scans have a thread each.
    func startHelp() -> Bool {
        isHelped.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged
    }

    /// To be called after `startHelp` gave true, when the threads are done.
    func endHelp() { isHelped.store(false, ordering: .relaxed) }

    var usedBytes: Int { used.load(ordering: .relaxed) }
    /// Bytes of evicted nodes that a reader may still be using.
    var limboBytes: Int { limbo.load(ordering: .relaxed) }
    var isExceeded: Bool { usedBytes > bytesNow }
    func hasRoom(_ bytes: Int) -> Bool { usedBytes + bytes <= bytesNow }
    func take(_ bytes: Int) { used.add(bytes, ordering: .relaxed) }
    func give(_ bytes: Int) { used.subtract(bytes, ordering: .relaxed) }
    func enterLimbo(_ bytes: Int) { limbo.add(bytes, ordering: .relaxed) }
    func leaveLimbo(_ bytes: Int) { limbo.subtract(bytes, ordering: .relaxed) }
}
