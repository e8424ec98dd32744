// A file of the operating system.
//
// Invariants
// - The descriptor is closed exactly once, and never while a call uses it: a number that the system
//   gives to another file in between would send that call there.

import Synchronization
public import VarveBase

#if VARVE_THREAD_SANITIZER
/// In the whole module: the thread sanitizer sees nothing of the other one.
typealias Mutex = TracedMutex
#endif

/// An open descriptor with the count of calls that use it.
final class Descriptor: Sendable {
    private struct State {
        var users = 0
        var isClosed = false
    }
    private let number: Int32
    private let name: String
    private let state = Mutex(State())

    init(_ number: Int32, _ name: String) {
        self.number = number
        self.name = name
    }

    deinit { close() }

    func use<R>(_ body: (Int32) throws(IOError) -> R) throws(IOError) -> R {
        let isOpen = state.withLock { state in
            if !state.isClosed { state.users += 1 }
            return !state.isClosed
        }
        guard isOpen else {
            throw IOError(
                kind: .closed,
                code: 0,
                operation: "use",
                name: name,
                reason: "closed before"
            )
        }
        defer {
            let isLast = state.withLock { state in
                state.users -= 1
                return state.isClosed && state.users == 0
            }
            if isLast { SystemCalls.close(number) }
        }
        return try body(number)
    }

    func close() {
        let closesNow = state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed && state.users == 0
        }
        if closesNow { SystemCalls.close(number) }
    }
}

/// One open file of the operating system.
public final class PosixFile: StoreFile {
    /// The name it was opened under.
    public let name: String
    private let descriptor: Descriptor
    /// Device and number never change while it is open.
    private let opened: FileIdentity

    /// - Parameter opened: what the system said of it when it was opened.
    init(_ descriptor: Descriptor, name: String, _ opened: FileIdentity) {
        self.descriptor = descriptor
        self.name = name
        self.opened = opened
    }

    /// Reads `count` bytes, fewer only where the file ends.
    public func read(at offset: FileOffset, count: Int) throws(IOError) -> [UInt8] {
        try descriptor.use { number throws(IOError) in
            try SystemCalls.read(number, offset.rawValue, count, name)
        }
    }

    /// Reads `count` bytes into the front of `buffer`, fewer only where the file ends.
    public func read(
        at offset: FileOffset,
        count: Int,
        into buffer: inout [UInt8]
    ) throws(IOError) -> Int {
        var bytes: [UInt8] = []
        swap(&bytes, &buffer)
        defer { swap(&bytes, &buffer) }
        return try descriptor.use { number throws(IOError) in
            try SystemCalls.read(number, offset.rawValue, count, into: &bytes, name)
        }
    }

    /// Writes all bytes.
    public func write(_ bytes: [UInt8], at offset: FileOffset) throws(IOError) {
        try descriptor.use { number throws(IOError) in
            try SystemCalls.write(number, offset.rawValue, bytes, name)
        }
    }

    /// Bytes in the file now.
    public func size() throws(IOError) -> UInt64 { try identity().size }

    /// Which file this is.
    public func identity() throws(IOError) -> FileIdentity {
        try descriptor.use { number throws(IOError) in
            try SystemCalls.regularIdentity(number, name)
        }
    }

    /// Whether it is the file that somebody found under a name.
    public func isSameFile(as found: FileIdentity) throws(IOError) -> Bool {
        found.isSameFile(as: opened)
    }

    /// Its bytes when it was opened: a hint, which costs nothing.
    public var sizeWhenOpened: UInt64? { opened.size }

    /// What its file system has left for the user of this process.
    public func freeBytes() -> UInt64? {
        try? descriptor.use { number throws(IOError) in SystemCalls.freeBytes(number) }
    }

    /// Makes contents and length durable.
    public func syncData() throws(IOError) {
        try descriptor.use { number throws(IOError) in try SystemCalls.syncData(number, name) }
    }

    /// Makes contents and all metadata durable.
    public func syncAll() throws(IOError) {
        try descriptor.use { number throws(IOError) in try SystemCalls.syncAll(number, name) }
    }

    /// Cuts the file, or extends it with zeros, to a length.
    public func cut(to size: UInt64) throws(IOError) {
        try descriptor.use { number throws(IOError) in
            try SystemCalls.cut(number, size, name)
        }
    }

    /// 8 bytes of the file as they are now.
    public func word(at offset: FileOffset) -> MappedWord? {
        guard let size = try? size(), offset.rawValue < 4096, size >= offset.rawValue + 8 else {
            return nil
        }
        return try? descriptor.use { number throws(IOError) in
            MappedWord(number, at: Int(offset.rawValue))
        }
    }

    /// Asks the system to drop clean cached bytes.
    public func adviseDontNeed() {
        try? descriptor.use { number throws(IOError) in SystemCalls.adviseDontNeed(number) }
    }

    /// Asks the system to begin reading.
    public func adviseWillNeed(at offset: FileOffset, count: Int) {
        try? descriptor.use { number throws(IOError) in
            SystemCalls.adviseWillNeed(number, offset.rawValue, count)
        }
    }

    /// Ends the use of the file.
    public func close() { descriptor.close() }
}
