// Looking for frames in a log, from its end and from a place on, and what that may cost.
//
// Invariants
// - Each search goes one way and reads a byte at most once, however many headers it finds.
// - Zeros are passed over as they are read: a header begins with a byte that is none.
// - There is no distance at which a search gives up: what lies after a sound commit may be longer
//   than any frame.

internal import Synchronization
internal import VarveBase
internal import VarveFormat

/// What reading a log's end has cost.
///
/// Frames that were written do not overlap, so a log is read a few times: for its end, for headers,
/// for commits and their bodies, and for what lies after the newest. A frame that was torn may
/// reach into later ones, and is read once more for that; each needs a crash of its own. Only a
/// file that was forged has more.
final class ScanCost: Sendable {
    /// How often all of a log may be read.
    static let timesMax: UInt64 = 32
    /// For logs of a few frames.
    private static let least: UInt64 = 64 << 10

    private let read = Atomic<UInt64>(0)
    private let hashed = Atomic<UInt64>(0)

    var readBytes: UInt64 { read.load(ordering: .relaxed) }
    var hashedBytes: UInt64 { hashed.load(ordering: .relaxed) }

    /// What `readBytes` may come to for an opening that begins now.
    func readMax(ofLog bytes: UInt64) -> UInt64 {
        let (times, isMore) = bytes.multipliedReportingOverflow(by: Self.timesMax)
        let (sum, isTooMuch) = times.addingReportingOverflow(readBytes + Self.least)
        return isMore || isTooMuch ? .max : sum
    }

    /// - Throws: `damaged` when that is more than any log needs.
    func add(read count: Int, max: UInt64) throws(EngineError) {
        let sum = read.add(UInt64(count), ordering: .relaxed).newValue
        guard sum > max else { return }
        throw .damaged(
            "the log's end holds more frames that overlap than crashes leave: it was read "
                + "\(Self.timesMax) times over and no end is seen; `varve recover` writes what is "
                + "sound into a new store"
        )
    }

    func add(hashed count: Int) { hashed.add(UInt64(count), ordering: .relaxed) }

    // MARK: The end of the log, as it was read once

    /// Bytes around the end of the data. After a clean close the frames that are looked at lie in
    /// them, each some times.
    private let end = Mutex<(start: UInt64, bytes: [UInt8])>((0, []))
    private static let keptMax = 64 << 10

    func keep(_ bytes: [UInt8], at start: UInt64) {
        if bytes.count <= Self.keptMax { end.withLock { $0 = (start, bytes) } }
    }

    /// Bytes that were read, all of them; nil: they were not.
    func kept(at offset: UInt64, count: Int) -> [UInt8]? {
        end.withLock { end in
            guard offset >= end.start, offset - end.start <= UInt64(end.bytes.count) else {
                return nil
            }
            let from = Int(offset - end.start)
            guard count <= end.bytes.count - from else { return nil }
            return Array(end.bytes[from..<from + count])
        }
    }
}

/// A part of a log as it was read at once.
struct LogWindow {
    private(set) var start: UInt64 = 0
    private(set) var bytes: [UInt8] = []
    /// After it there are only zeros up to the end.
    private(set) var dataEnd: UInt64 = 0

    var end: UInt64 { start + UInt64(bytes.count) }

    /// Whether a header begins below it can be told from the window alone.
    func searchEnd(_ size: UInt64) -> UInt64 {
        end == size ? size : end - min(end, UInt64(FrameHeader.length))
    }

    init() {}

    init(_ scan: LogScan, from start: UInt64, to end: UInt64) throws(EngineError) {
        self.start = start
        bytes = try scan.read(at: FileOffset(start), count: Int(end - start))
        guard bytes.count == Int(end - start) else {
            throw EngineError(.ioFailed, "the store file became shorter while it was read")
        }
        dataEnd = start + UInt64(bytes.countWithoutTrailingZeros)
    }

    /// Where in `bytes` an offset lies, if `count` bytes from there on are there.
    func position(of offset: UInt64, count: Int) -> Int? {
        guard offset >= start, offset <= end, end - offset >= UInt64(count) else { return nil }
        return Int(offset - start)
    }
}

extension LogScan {
    /// Offsets of frames whose header fits, newest first, below `end`, until `body` says stop.
    ///
    /// Looks at the tail word first; where it is torn, at every multiple of 8 going back.
    /// - Complexity: O(bytes up to where it stops).
    func searchBackward(
        from end: UInt64,
        _ body: (UInt64, FrameHeader) throws(EngineError) -> Bool
    ) throws(EngineError) {
        var limit = (end + FrameHeader.alignment - 1) & ~(FrameHeader.alignment - 1)
        var window = LogWindow()
        while true {
            // A tail word of another length than the header's would lead past sound frames.
            if let offset = try frame(endingAt: limit, window),
                let header = try header(at: offset, window), offset + header.frameLength == limit
            {
                if try !body(offset, header) { return }
                limit = offset
                continue
            }
            guard let (offset, header) = try lastHeader(below: limit, &window),
                try body(offset, header)
            else { return }
            limit = offset
        }
    }

    /// The last offset below `end` where a header fits; nil when there is none.
    private func lastHeader(
        below end: UInt64,
        _ window: inout LogWindow
    ) throws(EngineError) -> (UInt64, FrameHeader)? {
        let start = FileHeader.logStart.rawValue
        var limit = end
        while limit > start {
            // The last header that may be there reaches over the limit.
            let reach = min(limit + UInt64(FrameHeader.length), size)
            if window.start >= limit || window.end < reach {
                let from = max(start, limit - min(Self.window, limit - start))
                window = try LogWindow(self, from: from, to: reach)
            }
            let data = (window.dataEnd + FrameHeader.alignment - 1) & ~(FrameHeader.alignment - 1)
            var offset = max(window.start, min(limit, data))
            while offset > window.start {
                offset -= FrameHeader.alignment
                let position = Int(offset - window.start)
                if let header = decode(window.bytes, at: position, offset: offset) {
                    return (offset, header)
                }
            }
            limit = window.start
        }
        return nil
    }

    /// The first offset from `start` on where a header fits; `end` when there is none below it.
    ///
    /// - Parameter window: what an earlier call has read.
    /// - Complexity: O(bytes up to the header) for all calls that go on with one window.
    func nextHeader(
        from start: UInt64,
        to end: UInt64,
        _ window: inout LogWindow
    ) throws(EngineError) -> UInt64 {
        var from = start
        while from < end {
            if from < window.start || from >= window.searchEnd(size) {
                let reach = min(from + Self.window, end) + UInt64(FrameHeader.length)
                window = try LogWindow(self, from: from, to: min(reach, size))
            }
            let stop = min(end, window.searchEnd(size))
            while from < min(stop, window.dataEnd) {
                let position = Int(from - window.start)
                if decode(window.bytes, at: position, offset: from) != nil { return from }
                from += FrameHeader.alignment
            }
            from = max(from, stop)
        }
        return end
    }

    /// The frame whose tail word ends exactly at `end`.
    func frame(
        endingAt end: UInt64,
        _ window: LogWindow = LogWindow()
    ) throws(EngineError) -> UInt64? {
        guard end >= FileHeader.logStart.rawValue + 40, end <= size else { return nil }
        let place = end - UInt64(FrameHeader.tailLength)
        let length: UInt64?
        if let position = window.position(of: place, count: FrameHeader.tailLength) {
            length = FrameHeader.tailWord(window.bytes, at: position)
        } else {
            let bytes = try read(at: FileOffset(place), count: FrameHeader.tailLength)
            length = FrameHeader.tailWord(bytes, at: 0)
        }
        guard let length, length >= 40, length <= end - FileHeader.logStart.rawValue else {
            return nil
        }
        return end - length
    }

    private func header(
        at offset: UInt64,
        _ window: LogWindow
    ) throws(EngineError) -> FrameHeader? {
        guard let position = window.position(of: offset, count: FrameHeader.length) else {
            return try header(at: offset)
        }
        return decode(window.bytes, at: position, offset: offset)
    }
}
