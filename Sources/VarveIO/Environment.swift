// Seam: everything else that differs between two runs: random bytes, clocks, thread order.

/// Where tests stop the engine, or fail the call that comes next. Each is passed right before what
/// its name says.
public enum YieldPoint: Sendable {
    case commitWrite, commitSync, commitPublish
    case checkpointPages, checkpointWrite, checkpointSync
    case settleWrite, settleSync, settleInPlaceWrite, settleInPlaceSync
    /// Before the copy begins, before each step of it, when all is copied that was there, and when
    /// only the last commits are missing.
    case compactionBegin, compactionStep, compactionCopied, compactionCaughtUp
    case compactionRename, compactionDirectory, compactionWitness
}

/// What a planted bug leaves out. Most planted bugs change the calls of the system; these are
/// steps that no call shows.
public enum OmittableStep: Sendable {
    /// `durableEnd` moves after a sync.
    case raiseDurableEnd
    /// The bytes of a page or a value are compared with its hash.
    case checkPayloadHash
    /// A commit is compared with the hash over its body.
    case checkBodyHash
    /// Commits that nothing proves are written again.
    case settle
    /// Commits for which a full disk has no room are written again where they are.
    case writeInPlace
    /// A sweep keeps the blobs that rows name.
    case keepNamedBlobs
    /// A sweep keeps the blobs that a snapshot needs.
    case keepPinnedBlobs
    /// A sweep removes the files of blobs that were dropped.
    case sweepDropped
    /// A sweep removes the files of blobs that no commit ever named.
    case sweepOrphans
    /// Symbol tables are read from the second copy where the first one is damaged.
    case readTwin
    /// A leaf that changes a packed one shows its own rows.
    case readEdits
}

/// Sources of randomness and time, and named points where tests interleave threads.
public protocol Environment: Sendable {
    /// Bytes that nobody can guess.
    func randomBytes(_ count: Int) -> [UInt8]
    /// Nanoseconds since some fixed moment; never goes back.
    func monotonicNanoseconds() -> UInt64
    /// Microseconds since 1970-01-01 00:00:00 UTC; may go back when the clock is set.
    func wallClockMicroseconds() -> Int64
    /// Number of this process; differs after a fork.
    func processID() -> Int32
    /// What memory the machine has and has left; nil: not known.
    func memory() -> MachineMemory?
    /// Whether `memory` is worth asking.
    var knowsMemory: Bool { get }
    /// Does nothing in production.
    func yield(_ point: YieldPoint)
    /// Whether a step is to be left out: false in production. Tests of tests plant bugs with it
    /// (docs/Testing.md); asked where it costs nothing, at opening or before work on the disk.
    func leavesOut(_ step: OmittableStep) -> Bool
}

extension Environment {
    /// Nothing is left out.
    public func leavesOut(_ step: OmittableStep) -> Bool { false }

    /// Not known: tests do not depend on the machine they run on.
    public func memory() -> MachineMemory? { nil }

    /// No.
    public var knowsMemory: Bool { false }

    /// 8 random bytes as a number.
    public func randomNumber() -> UInt64 {
        randomBytes(8).reduce(0) { $0 &<< 8 | UInt64($1) }
    }
}

/// The real thing.
public struct SystemEnvironment: Environment {
    /// Needs nothing.
    public init() {}

    /// Bytes from the system's generator.
    public func randomBytes(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        // One system call for 8 bytes.
        var word: UInt64 = 0
        return (0..<count).map { index in
            word = index % 8 == 0 ? generator.next() : word >> 8
            return UInt8(truncatingIfNeeded: word)
        }
    }

    /// The monotonic clock.
    public func monotonicNanoseconds() -> UInt64 { SystemCalls.monotonicNanoseconds() }
    /// The wall clock.
    public func wallClockMicroseconds() -> Int64 { SystemCalls.wallClockMicroseconds() }
    /// The process number.
    public func processID() -> Int32 { SystemCalls.processID() }
    /// What the system says.
    public func memory() -> MachineMemory? { .now() }
    /// Yes.
    public var knowsMemory: Bool { true }
    /// Nothing.
    public func yield(_ point: YieldPoint) {}
}
