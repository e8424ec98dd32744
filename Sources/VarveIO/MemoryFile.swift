// Files and directories in memory, for stores that vanish with their container.
//
// Invariants
// - Behaves as the POSIX ones do: an open file outlives its name, locks are per opening, names are
//   checked the same way. Syncs do nothing.
// - Locks are taken from directory to file, never the other way round.

import Synchronization
public import VarveBase

/// Contents in pieces, so that growing copies nothing.
final class MemoryContents: Sendable {
    static let pieceBytes = 1 << 16

    struct State {
        var pieces: [[UInt8]] = []
        var size = 0
    }
    let state = Mutex(State())
    let identity: UInt64

    init(identity: UInt64) { self.identity = identity }

    func read(_ start: Int, _ count: Int) -> [UInt8] {
        state.withLock { state in
            let end = min(state.size, start + count)
            guard start < end else { return [] }
            var bytes = [UInt8](repeating: 0, count: end - start)
            var at = start
            while at < end {
                let piece = at / Self.pieceBytes
                let from = at % Self.pieceBytes
                let part = min(end - at, Self.pieceBytes - from)
                bytes.overwrite(at: at - start, with: state.pieces[piece], from..<from + part)
                at += part
            }
            return bytes
        }
    }

    func write(_ start: Int, _ bytes: [UInt8]) {
        state.withLock { state in
            Self.resize(&state, max(state.size, start + bytes.count))
            var done = 0
            while done < bytes.count {
                let piece = (start + done) / Self.pieceBytes
                let from = (start + done) % Self.pieceBytes
                let part = min(bytes.count - done, Self.pieceBytes - from)
                state.pieces[piece].overwrite(at: from, with: bytes, done..<done + part)
                done += part
            }
        }
    }

    func cut(_ size: Int) { state.withLock { Self.resize(&$0, size) } }

    private static func resize(_ state: inout State, _ size: Int) {
        let pieces = (size + pieceBytes - 1) / pieceBytes
        if pieces < state.pieces.count { state.pieces.removeLast(state.pieces.count - pieces) }
        while state.pieces.count < pieces {
            state.pieces.append([UInt8](repeating: 0, count: pieceBytes))
        }
        if size < state.size, size % pieceBytes != 0 {
            // What is cut must read as zeros if the file grows again.
            let from = size % pieceBytes
            let zeros = [UInt8](repeating: 0, count: pieceBytes - from)
            state.pieces[pieces - 1].overwrite(at: from, with: zeros, 0..<zeros.count)
        }
        state.size = size
    }
}

/// One open file in memory.
public final class MemoryFile: StoreFile {
    /// The most bytes a file in memory may have.
    public static let sizeMax = UInt64(Int.max / 4)

    /// The name it was opened under.
    public let name: String
    private let contents: MemoryContents
    private let isWritable: Bool
    private let links: @Sendable () -> UInt64
    private let isClosed = Atomic(false)

    init(
        _ contents: MemoryContents,
        name: String,
        isWritable: Bool,
        links: @escaping @Sendable () -> UInt64
    ) {
        self.contents = contents
        self.name = name
        self.isWritable = isWritable
        self.links = links
    }

    /// Reads `count` bytes, fewer only where the file ends.
    public func read(at offset: FileOffset, count: Int) throws(IOError) -> [UInt8] {
        let start = try position(offset.rawValue, count, "read")
        return contents.read(start, count)
    }

    /// Writes all bytes.
    public func write(_ bytes: [UInt8], at offset: FileOffset) throws(IOError) {
        let start = try position(offset.rawValue, bytes.count, "write")
        try checkWritable("write")
        if !bytes.isEmpty { contents.write(start, bytes) }
    }

    /// Bytes in the file now.
    public func size() throws(IOError) -> UInt64 {
        try checkOpen()
        return contents.state.withLock { UInt64($0.size) }
    }

    /// Which file this is.
    public func identity() throws(IOError) -> FileIdentity {
        FileIdentity(device: 0, inode: contents.identity, links: links(), size: try size())
    }

    /// Nothing to do.
    public func syncData() throws(IOError) { try checkOpen() }
    /// Nothing to do.
    public func syncAll() throws(IOError) { try checkOpen() }

    /// Cuts the file, or extends it with zeros, to a length.
    public func cut(to size: UInt64) throws(IOError) {
        let length = try position(size, 0, "cut")
        try checkWritable("cut")
        contents.cut(length)
    }

    /// Nothing to do.
    public func adviseDontNeed() {}
    /// Ends the use of the file.
    public func close() { isClosed.store(true, ordering: .relaxed) }

    private func checkOpen() throws(IOError) {
        if isClosed.load(ordering: .relaxed) {
            throw IOError(
                kind: .closed,
                code: 0,
                operation: "use",
                name: name,
                reason: "closed before"
            )
        }
    }

    private func checkWritable(_ operation: String) throws(IOError) {
        if !isWritable {
            throw IOError(
                kind: .other,
                code: 0,
                operation: operation,
                name: name,
                reason: "opened for reading"
            )
        }
    }

    private func position(
        _ offset: UInt64,
        _ count: Int,
        _ operation: String
    ) throws(IOError) -> Int {
        try checkOpen()
        guard offset <= Self.sizeMax, count >= 0, UInt64(count) <= Self.sizeMax else {
            throw IOError(
                kind: .noSpace,
                code: 0,
                operation: operation,
                name: name,
                offset: offset,
                reason: "beyond what memory holds"
            )
        }
        return Int(offset)
    }
}
