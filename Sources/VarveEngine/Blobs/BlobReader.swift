// Reading a blob's bytes, wherever they are.
//
// Invariants
// - What keeps the blob alive (a snapshot, a pending blob) is held as long as the reader is.
// - Missing or wrong bytes are errors that name the blob; nothing is returned in their place.

public import VarveBase
internal import VarveFormat
internal import VarveIO

/// The bytes of one blob. Reads from any thread.
public final class BlobReader: Sendable {
    enum Source: Sendable {
        case bytes([UInt8])
        case file(BlobFileReader)
    }

    /// Digest and length.
    public let reference: BlobReference
    private let source: Source
    private let store: BlobStore
    private let keeper: any AnyObject & Sendable

    init(
        _ reference: BlobReference,
        _ source: Source,
        _ store: BlobStore,
        keeping keeper: any AnyObject & Sendable
    ) {
        self.reference = reference
        self.source = source
        self.store = store
        self.keeper = keeper
    }

    deinit { if case .file(let file) = source { file.close() } }

    /// Bytes of a range.
    ///
    /// - Throws: `invalid` when the range is not inside the blob, `blobDamaged`, `ioFailed`.
    /// - Complexity: O(range).
    public func read(_ range: Range<UInt64>) throws(EngineError) -> [UInt8] {
        try check(range)
        switch source {
        case .bytes(let bytes):
            guard UInt64(bytes.count) == reference.length else {
                throw EngineError(
                    .blobDamaged,
                    "blob \(reference.digest.shortName) has \(bytes.count) bytes"
                )
            }
            // All of it is not copied.
            if range.count == bytes.count { return bytes }
            return Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
        case .file(let file):
            return try store.engineError { () throws(BlobError) in try file.read(range) }
        }
    }

    private func check(_ range: Range<UInt64>) throws(EngineError) {
        guard range.upperBound <= reference.length else {
            throw EngineError(
                .invalid,
                "the range ends at \(range.upperBound); the blob has \(reference.length) bytes"
            )
        }
    }

    /// Hands the bytes of a range over, piece by piece; a piece is small enough for the processor's
    /// caches.
    ///
    /// - Throws: as `read`.
    public func forEachPiece(
        of range: Range<UInt64>,
        _ body: ([UInt8]) -> Void
    ) throws(EngineError) {
        try check(range)
        if case .file(let file) = source {
            return try store.engineError { () throws(BlobError) in
                try file.forEachPiece(of: range, pieceBytes: Self.pieceBytes, body)
            }
        }
        var start = range.lowerBound
        while start < range.upperBound {
            let end = min(range.upperBound, start + Self.pieceBytes)
            body(try read(start..<end))
            start = end
        }
    }

    private static let pieceBytes: UInt64 = 64 << 10

    /// All bytes, checked against the digest.
    ///
    /// - Throws: `blobDamaged`, `ioFailed`.
    public func readAll() throws(EngineError) -> [UInt8] {
        switch source {
        case .bytes(let bytes): return bytes
        case .file(let file):
            return try store.engineError { () throws(BlobError) in try file.readAll() }
        }
    }

    /// Hands all bytes over, piece by piece, and checks the digest at the end. What was handed over
    /// counts only when this returns.
    ///
    /// - Throws: `blobDamaged`, `ioFailed`.
    public func forEachPiece(_ body: ([UInt8]) -> Void) throws(EngineError) {
        switch source {
        case .bytes(let bytes): body(bytes)
        case .file(let file):
            try store.engineError { () throws(BlobError) in
                try file.forEachPiece { (piece) throws(BlobError) in body(piece) }
            }
        }
    }
}

extension Snapshot {
    /// Opens a blob that a row of this commit names; nil when none does.
    ///
    /// - Throws: `blobMissing`, `blobDamaged`, `damaged`, `ioFailed`.
    public func blob(_ reference: BlobReference) throws(EngineError) -> BlobReader? {
        guard let entry = try checkedEntry(reference) else { return nil }
        switch entry.place {
        case .frame(let place):
            let bytes = try state.generation.value(place)
            return BlobReader(reference, .bytes(bytes), engine.blobStore, keeping: self)
        case .file:
            let file = try engine.blobStore.engineError { () throws(BlobError) in
                try engine.blobStore.files.open(reference)
            }
            let holder = held(for: PinOwner(.blob, label: reference.digest.shortName))
            return BlobReader(reference, .file(file), engine.blobStore, keeping: holder)
        }
    }

    /// Keeps a blob of this commit ready for a row of a later one, also when no row will name it
    /// in between. Nil when no row of this commit names it.
    ///
    /// - Parameter inPlace: whether the bytes of a small one stay where they are in the store file,
    ///   which is kept open, also behind a compaction. Else they are read now, into memory.
    /// - Throws: as `blob`.
    public func adopt(
        _ reference: BlobReference,
        inPlace: Bool = false
    ) throws(EngineError) -> PendingBlob? {
        guard let entry = try checkedEntry(reference) else { return nil }
        switch entry.place {
        case .frame(let place) where inPlace:
            return engine.blobStore.add(reference, .frame(state.generation.log, place))
        case .frame(let place):
            return engine.blobStore.add(reference, .bytes(try state.generation.value(place)))
        case .file:
            return engine.blobStore.add(reference, .file)
        }
    }

    private func checkedEntry(_ reference: BlobReference) throws(EngineError) -> BlobEntry? {
        guard let entry = try blobEntry(reference) else { return nil }
        guard entry.length == reference.length else {
            throw .damaged(
                "blob \(reference.digest.shortName) has another length than its row says"
            )
        }
        return entry
    }
}
