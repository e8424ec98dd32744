// A file read through a window: walks along the log ask for small pieces that lie together.
//
// Invariants
// - It serves bytes below a commit frame that is on disk: those never change, so a window never
//   becomes stale. Walks read nothing else through it.
// - One window is in memory; what is larger than one is read alone.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

final class FrameWindow: ReadOnlyFile {
    private struct Window {
        var start: UInt64 = 0
        var bytes: [UInt8] = []
        var end: UInt64 { start + UInt64(bytes.count) }
    }

    static let windowBytes: UInt64 = 128 << 10
    /// Most frames of small commits are shorter.
    static let smallFrameBytes = 384

    private let file: any ReadOnlyFile
    /// Nothing at or above it is kept: a commit may be on its way there.
    private let limit: UInt64
    private let window = Mutex(Window())

    /// - Parameter end: the end of the newest frame that a walk reads.
    init(_ file: any ReadOnlyFile, upTo end: FileOffset) {
        self.file = file
        limit = end.rawValue
    }

    var name: String { file.name }
    func size() throws(IOError) -> UInt64 { try file.size() }
    func identity() throws(IOError) -> FileIdentity { try file.identity() }
    func adviseDontNeed() { file.adviseDontNeed() }
    func adviseWillNeed(at offset: FileOffset, count: Int) {
        file.adviseWillNeed(at: offset, count: count)
    }
    /// The file is the generation's.
    func close() {}

    func read(
        at offset: FileOffset,
        count: Int,
        into buffer: inout [UInt8]
    ) throws(IOError) -> Int {
        try file.read(at: offset, count: count, into: &buffer)
    }

    func read(at offset: FileOffset, count: Int) throws(IOError) -> [UInt8] {
        let from = offset.rawValue
        let (to, overflow) = from.addingReportingOverflow(UInt64(max(0, count)))
        guard !overflow, to <= limit, UInt64(max(0, count)) <= Self.windowBytes / 4 else {
            return try file.read(at: offset, count: count)
        }
        let (known, start) = window.withLock { window in
            let isInside = from >= window.start && to <= window.end
            return (isInside ? Self.part(of: window, from, to) : nil, window.start)
        }
        if let known { return known }
        // A walk down the file wants what lies before, one up the file what lies behind. It asks
        // for a frame's header first, and then for all of it.
        let isDown = from < start
        let last = min(limit, isDown ? to + Self.windowBytes / 4 : from + Self.windowBytes)
        let first = isDown ? last - min(last, Self.windowBytes) : from
        let bytes = try file.read(at: FileOffset(first), count: Int(last - first))
        let made = Window(start: first, bytes: bytes)
        guard to <= made.end else { return try file.read(at: offset, count: count) }
        window.withLock { $0 = made }
        return Self.part(of: made, from, to)
    }

    private static func part(of window: Window, _ from: UInt64, _ to: UInt64) -> [UInt8] {
        Array(window.bytes[Int(from - window.start)..<Int(to - window.start)])
    }
}
