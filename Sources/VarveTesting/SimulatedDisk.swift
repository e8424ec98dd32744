// A disk in memory that forgets what was not synced and fails when it is told to.
//
// Invariants
// - The same calls and seeds give the same bytes, the same failures and the same recording.
// - What a sync returned for is durable, unless a sync of the same file failed before.
// - Nothing here depends on the clock or on the order of a dictionary.

internal import Synchronization
internal import VarveBase
public import VarveEngine
public import VarveIO

/// A disk behind a system's cache, for tests of what survives.
///
/// Writes, lengths and names are pending until a sync. Calls can be made to fail, and reads to
/// return what was never written. What a power cut may leave can be built at every call:
///
/// ```swift
/// let disk = SimulatedDisk()
/// let store = try RecordStore.open(disk.location("shop"), schema: schema)
/// disk.record()
/// // ... work, and `disk.note(n)` whenever the n-th save has returned ...
/// var random = SeededRandom(seed: 1)
/// for (state, note) in disk.takeRecording() {
///     let after = SimulatedDisk.powerCut(state, &random)
///     // open a store on `after`: it holds the n-th save, or the one that had begun
/// }
/// ```
///
/// After a failed sync the bytes stay in the cache, clean and not durable, as ext4 and XFS do it:
/// reads see them, no later sync writes them, and each descriptor of the file is told once.
///
/// Files lie in the root or in one level of folders. Use it from any thread.
public final class SimulatedDisk: Sendable {
    /// The errno of a disk that fails.
    public static let inputOutput: Int32 = 5
    /// The errno of a full disk.
    public static let noSpace: Int32 = 28

    /// Calls that fail: of those that change the disk, or that sync it.
    public struct Fault: Hashable, Sendable {
        /// The number of the first call that may fail; see `SimulatedDisk.calls`.
        public var first: Int
        /// How many fail.
        public var count: Int
        /// The errno.
        public var code: Int32
        /// Only writes of at least this many bytes fail; all calls if nil.
        public var writesFrom: Int?
        /// Only writes that reach beyond this byte of a file fail, as on a full disk; all calls if
        /// nil.
        public var writesPast: Int?

        /// Only calls of this kind fail; all if nil.
        public var kind: CallKind?
        /// So many of the calls that it is about succeed first.
        public var skipping = 0

        /// Kinds of calls that change the disk or sync it.
        public enum CallKind: Hashable, Sendable {
            /// Bytes written to a file.
            case write
            /// A file, or a folder, made durable.
            case sync
            /// Files made, renamed, cut or removed.
            case other
        }

        /// Calls from number `first` on fail, `count` of them.
        public init(
            first: Int,
            count: Int = 1,
            code: Int32 = SimulatedDisk.inputOutput,
            writesFrom: Int? = nil,
            writesPast: Int? = nil
        ) {
            self.first = first
            self.count = count
            self.code = code
            self.writesFrom = writesFrom
            self.writesPast = writesPast
        }

        func meets(_ operation: DiskOperation) -> Bool {
            if let kind, operation.kind != kind { return false }
            if let writesFrom, operation.bytes < writesFrom { return false }
            if let writesPast, operation.end <= writesPast { return false }
            return true
        }
    }

    /// Reads of files that go wrong.
    public struct ReadFault: Hashable, Sendable {
        /// What is wrong with them.
        public enum Kind: Hashable, Sendable {
            /// The system refuses, with this errno.
            case fails(Int32)
            /// One bit of the result is another one; the number, modulo the result's bits.
            case flippedBit(UInt64)
            /// Zeros instead of what was written.
            case zeros
            /// The bytes of another place of the file, so many bytes away.
            case elsewhere(Int)
            /// Half of what there is.
            case short
        }
        /// The number of the first read that may go wrong; see `SimulatedDisk.reads`.
        public var first: Int
        /// How many go wrong.
        public var count: Int
        /// What is wrong with them.
        public var kind: Kind

        /// Reads from number `first` on go wrong, `count` of them.
        public init(first: Int, count: Int = 1, kind: Kind) {
            self.first = first
            self.count = count
            self.kind = kind
        }
    }

    struct LockKey: Hashable {
        var folder: String
        var name: String
        var byte: UInt64
    }

    struct Core {
        var state: State
        var calls = 0
        var reads = 0
        var fault: Fault?
        var readFault: ReadFault?
        var failures = 0
        /// Calls that the fault let pass.
        var passed = 0
        var readFailures = 0
        var note = 0
        var recording: DiskRecording?
        var violations: [String] = []
        /// Raised when the process is killed: handles of earlier ones are dead.
        var process = 0
        /// Holders of each lock: -1 for an exclusive one.
        var locks: [LockKey: Int] = [:]

        mutating func passes(_ fault: Fault) -> Bool {
            if passed >= fault.skipping { return false }
            passed += 1
            return true
        }
    }
    let core: Mutex<Core>

    /// A disk with these contents; an empty one without.
    public init(_ state: State = State()) {
        core = Mutex(Core(state: state))
        Invariants.checkFromNowOn()
    }

    /// The directory that stores lie in.
    public var root: any StoreDirectory { SimulatedDirectory(disk: self, path: "") }

    /// Where a store of this name is, for opening it.
    public func location(_ name: String = "test") -> StoreLocation {
        .directory(root, name: name)
    }

    /// What is in the cache, on the disk and pending.
    public var state: State {
        get { core.withLock { $0.state } }
        set { core.withLock { $0.state = newValue } }
    }

    // MARK: Faults

    /// Calls so far that change the disk or sync it, failed ones included.
    public var calls: Int { core.withLock { $0.calls } }
    /// Reads of files so far, failed ones included.
    public var reads: Int { core.withLock { $0.reads } }
    /// Calls that were made to fail.
    public var failures: Int { core.withLock { $0.failures } }
    /// Reads that were made to go wrong.
    public var readFailures: Int { core.withLock { $0.readFailures } }
    /// What no store may do: write other bytes over bytes that are not zero, or cut them off.
    public var violations: [String] { core.withLock { $0.violations } }

    /// Makes calls fail from now on; nil ends it.
    public func setFault(_ fault: Fault?) {
        core.withLock { core in
            core.fault = fault
            core.passed = 0
        }
    }

    /// Makes reads go wrong from now on; nil ends it.
    public func setReadFault(_ fault: ReadFault?) { core.withLock { $0.readFault = fault } }

    // MARK: Recording

    /// Begins to record what changes the disk.
    public func record() {
        core.withLock { $0.recording = DiskRecording(start: $0.state) }
    }

    /// A number that goes with every call recorded from here on, as that of the last save that
    /// returned.
    public func note(_ value: Int) { core.withLock { $0.note = value } }

    /// The same, unless the number was higher already: for savers on several threads.
    public func raiseNote(to value: Int) { core.withLock { $0.note = max($0.note, value) } }

    /// Ends recording and gives what was recorded.
    public func takeRecording() -> DiskRecording {
        core.withLock { core in
            defer { core.recording = nil }
            var recording = core.recording ?? DiskRecording(start: core.state)
            recording.lastNote = core.note
            return recording
        }
    }

    // MARK: Ends of processes and of power

    /// The disk of another process, after this one was killed: the system's cache is still there.
    public func killed() -> SimulatedDisk { SimulatedDisk(state) }

    /// Kills the process that uses this disk, and goes on as the next one: locks are free, and
    /// every file, directory and lock that was opened before is of no use any more.
    public func kill() {
        core.withLock { core in
            core.process += 1
            core.locks = [:]
        }
    }

    /// The power goes: pending changes arrive or not, whole or torn at 512-byte sectors.
    public static func powerCut(
        _ state: State,
        _ random: inout some RandomNumberGenerator
    ) -> SimulatedDisk {
        SimulatedDisk(state.after(CrashImage.random(of: state, &random)))
    }

    // MARK: Calls

    /// One call that changes the disk or syncs it. `failing` is what an error leaves behind.
    func change(
        _ call: String,
        _ name: String,
        process: Int,
        _ operation: DiskOperation,
        failing: DiskOperation? = nil
    ) throws(IOError) {
        try core.withLock { core throws(IOError) in
            try Self.check(core, process, call, name)
            core.calls += 1
            if let fault = core.fault, core.calls >= fault.first, core.failures < fault.count,
                fault.meets(operation), !core.passes(fault)
            {
                core.failures += 1
                if let failing {
                    core.recording?.add(failing, core.note)
                    core.state.apply(failing)
                }
                throw Self.refusal(fault.code, call, name)
            }
            if let violation = core.state.violation(operation, name) {
                core.violations.append(violation)
            }
            core.recording?.add(operation, core.note)
            core.state.apply(operation)
        }
    }

    /// Bytes of a file as the cache has them, or as the fault that is set wants them.
    func read(
        _ file: Int,
        _ name: String,
        process: Int,
        at start: UInt64,
        count: Int
    ) throws(IOError) -> [UInt8] {
        try core.withLock { core throws(IOError) in
            try Self.check(core, process, "read", name)
            core.reads += 1
            let bytes = core.state.read(file, at: start, count: count)
            guard let fault = core.readFault, core.reads >= fault.first,
                core.readFailures < fault.count
            else { return bytes }
            core.readFailures += 1
            switch fault.kind {
            case .fails(let code): throw Self.refusal(code, "read", name)
            case .flippedBit(let number):
                guard !bytes.isEmpty else { return bytes }
                var flipped = bytes
                let bit = Int(number % UInt64(bytes.count * 8))
                flipped[bit / 8] ^= 1 << UInt8(bit % 8)
                return flipped
            case .zeros: return [UInt8](repeating: 0, count: bytes.count)
            case .elsewhere(let distance):
                let place = max(0, Int(clamping: start) + distance)
                let found = core.state.read(file, at: UInt64(place), count: bytes.count)
                return found + [UInt8](repeating: 0, count: bytes.count - found.count)
            case .short: return Array(bytes[..<(bytes.count / 2)])
            }
        }
    }

    static func check(
        _ core: borrowing Core,
        _ process: Int,
        _ call: String,
        _ name: String
    ) throws(IOError) {
        guard core.process != process else { return }
        throw IOError(kind: .closed, code: 0, operation: call, name: name, reason: "was killed")
    }

    static func refusal(_ code: Int32, _ call: String, _ name: String) -> IOError {
        IOError(
            kind: code == noSpace ? .noSpace : .other,
            code: code,
            operation: call,
            name: name,
            reason: "simulated"
        )
    }

    static func missing(_ call: String, _ name: String) -> IOError {
        IOError(kind: .missing, code: 2, operation: call, name: name, reason: "missing")
    }

    static func exists(_ call: String, _ name: String) -> IOError {
        IOError(kind: .exists, code: 17, operation: call, name: name, reason: "exists")
    }
}
