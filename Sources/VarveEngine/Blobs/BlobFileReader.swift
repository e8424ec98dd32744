// Reading one blob's file.
//
// Invariants
// - The length is checked when the file is opened, before anything of that length is allocated.
// - `readAll` and `verify` check the digest; single ranges cannot, and say so.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

/// One blob's file, open for reading.
final class BlobFileReader: Sendable {
    /// Which blob it is.
    let reference: BlobReference
    private let file: any ReadOnlyFile

    private init(_ reference: BlobReference, _ file: any ReadOnlyFile) {
        self.reference = reference
        self.file = file
    }

    /// Opens a blob's file and compares its length with the reference.
    static func open(
        _ reference: BlobReference,
        in directory: any StoreDirectory
    ) throws(BlobError) -> BlobFileReader {
        let name = reference.digest.hexText
        let file: any ReadOnlyFile
        let size: UInt64
        do {
            file = try directory.openFile(name, mode: .read)
            size = try file.identity().size
        } catch {
            switch error.kind {
            case .missing: throw .missing(reference)
            case .notRegular: throw .damaged(reference, found: "no regular file")
            default: throw .io(error)
            }
        }
        guard size == reference.length else {
            throw .damaged(reference, found: "\(size) bytes of \(reference.length)")
        }
        return BlobFileReader(reference, file)
    }

    /// Reads bytes of a range that lies inside the blob; the digest is not checked.
    func read(_ range: Range<UInt64>) throws(BlobError) -> [UInt8] {
        guard range.upperBound <= reference.length,
            let count = Int(exactly: range.upperBound - range.lowerBound)
        else {
            throw .damaged(reference, found: "a range beyond \(reference.length) bytes")
        }
        let bytes = try BlobFiles.io { () throws(IOError) in
            try file.read(at: FileOffset(range.lowerBound), count: count)
        }
        guard bytes.count == count else { throw .damaged(reference, found: "a shorter file") }
        return bytes
    }

    /// Hands bytes of a range that lies inside the blob over, piece by piece, all but the last from
    /// one buffer.
    func forEachPiece(
        of range: Range<UInt64>,
        pieceBytes: UInt64,
        _ body: ([UInt8]) -> Void
    ) throws(BlobError) {
        var start = range.lowerBound
        if range.upperBound - start >= pieceBytes {
            var piece = [UInt8](repeating: 0, count: Int(pieceBytes))
            while range.upperBound - start >= pieceBytes {
                let offset = FileOffset(start)
                let count = try BlobFiles.io { () throws(IOError) in
                    try file.read(at: offset, count: piece.count, into: &piece)
                }
                guard count == piece.count else {
                    throw .damaged(reference, found: "a shorter file")
                }
                body(piece)
                start += pieceBytes
            }
        }
        if start < range.upperBound { body(try read(start..<range.upperBound)) }
    }

    /// Reads the whole blob and checks its digest.
    func readAll() throws(BlobError) -> [UInt8] {
        let bytes = try read(0..<reference.length)
        guard BlobHasher.digest(of: bytes) == reference.digest else {
            throw .damaged(reference, found: "other content")
        }
        return bytes
    }

    /// Hands the blob over piece by piece, and checks the digest at the end. What was handed over
    /// counts only when this returns.
    func forEachPiece(_ body: ([UInt8]) throws(BlobError) -> Void) throws(BlobError) {
        var hasher = BlobHasher()
        var start: UInt64 = 0
        while start < reference.length {
            let end = min(reference.length, start + UInt64(BlobFiles.pieceBytes))
            let piece = try read(start..<end)
            hasher.update(piece)
            try body(piece)
            start = end
        }
        guard hasher.finalize() == reference.digest else {
            throw .damaged(reference, found: "other content")
        }
    }

    /// Checks the digest without keeping the blob in memory.
    func verify() throws(BlobError) {
        try forEachPiece { _ throws(BlobError) in }
    }

    /// Ends the use of the file.
    func close() { file.close() }
}
