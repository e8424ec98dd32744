// Lines of bytes that arrive in pieces: for JSON Lines.
//
// Invariants
// - The bytes are hostile: a line that is too long is refused before it is kept.
// - A line ends with LF or CRLF, or with the input. A byte order mark at the beginning is no part
//   of the first one. Lines of nothing but white space are counted and passed over.

public import Foundation
import VarveBase

/// A piece of a text in lines: one byte, some bytes with line ends anywhere, or a whole line.
public protocol TextPiece: Sendable {
    /// Gives the bytes to a reader of lines. For the library's own types.
    func _add(to lines: inout _LineSplitter) throws
}

extension UInt8: TextPiece {
    /// One byte.
    public func _add(to lines: inout _LineSplitter) throws { try lines.add([self]) }
}

extension Data: TextPiece {
    /// Bytes, with line ends anywhere.
    public func _add(to lines: inout _LineSplitter) throws { try lines.add(self) }
}

extension Array: TextPiece where Element == UInt8 {
    /// Bytes, with line ends anywhere.
    public func _add(to lines: inout _LineSplitter) throws { try lines.add(self) }
}

extension String: TextPiece {
    /// A line, with or without its end.
    public func _add(to lines: inout _LineSplitter) throws {
        try lines.add(utf8)
        if utf8.last != UInt8(ascii: "\n") { try lines.add(CollectionOfOne(UInt8(ascii: "\n"))) }
    }
}

/// Reads lines out of pieces.
public struct _LineSplitter: Sendable {
    /// Whole lines, each with its number from 1 on, that nobody took yet.
    private(set) var lines: [(number: Int, bytes: Data)] = []
    /// Bytes in `lines`.
    private(set) var lineBytes = 0
    /// Bytes that came in.
    private(set) var bytes = 0
    private var open = Data()
    private var number = 1
    private let lineBytesMax: Int
    private let place: String

    init(lineBytesMax: Int, place: String) {
        self.lineBytesMax = lineBytesMax
        self.place = place
    }

    mutating func add(_ piece: some Collection<UInt8>) throws(StoreError) {
        bytes += piece.count
        var rest = piece[...]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            try append(rest[..<end])
            endLine()
            rest = rest[rest.index(after: end)...]
        }
        try append(rest)
    }

    private mutating func append(_ bytes: some Collection<UInt8>) throws(StoreError) {
        guard bytes.count <= lineBytesMax - open.count else {
            throw StoreError(
                .invalid,
                "line \(number): it is longer than \(lineBytesMax) bytes",
                place: .init(store: place),
                suggestion: "If that is no mistake, allow longer lines: lineBytesMax."
            )
        }
        open.append(contentsOf: bytes)
    }

    private mutating func endLine() {
        defer {
            open = Data()
            number += 1
        }
        if number == 1, open.starts(with: [0xEF, 0xBB, 0xBF]) { open = Data(open.dropFirst(3)) }
        if open.last == UInt8(ascii: "\r") { open.removeLast() }
        let isBlank = open.allSatisfy { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        if isBlank { return }
        lines.append((number, open))
        lineBytes += open.count
    }

    /// The input has ended; a line without an end is one.
    mutating func finish() { if !open.isEmpty { endLine() } }

    mutating func takeLines() -> [(number: Int, bytes: Data)] {
        defer { (lines, lineBytes) = ([], 0) }
        return lines
    }

    /// The last lines that were taken, which are to wait for those that come.
    mutating func putBack(_ rest: ArraySlice<(number: Int, bytes: Data)>) {
        lines = Array(rest)
        lineBytes = rest.reduce(0) { $0 + $1.bytes.count }
    }
}

/// The bytes of a file, a piece at a time, read on the container's pool.
struct FilePieces: AsyncSequence {
    let handle: FileHandle
    let workers: WorkerPool
    static let pieceBytes = 256 << 10

    struct Iterator: AsyncIteratorProtocol {
        fileprivate let handle: FileHandle
        fileprivate let workers: WorkerPool

        mutating func next() async throws -> Data? {
            let handle = handle
            let piece = try await workers.run { try handle.read(upToCount: FilePieces.pieceBytes) }
            return piece?.isEmpty == false ? piece : nil
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(handle: handle, workers: workers) }
}
