// A handle on bytes that lie outside the row: Sendable, needs no context, holds no bytes.
//
// Invariants
// - Empty data is never returned in place of missing or damaged bytes.
// - The bytes never enter a row, an object or the row cache.

public import Foundation
public import VarveBase
import VarveEngine
public import VarveRecords

/// A large value: digest and length, and a way to read the bytes. Sendable; needs no context; keeps
/// its bytes in the store as long as it lives.
///
/// Two handles are equal if their content is.
public struct Blob: Sendable {
    let reference: BlobReference
    let source: BlobSource?

    init(reference: BlobReference, source: BlobSource?) {
        self.reference = reference
        self.source = source
    }

    /// Bytes of content.
    public var length: Int { Int(clamping: reference.length) }

    /// SHA-256 of the content.
    public var digest: BlobDigest { reference.digest }

    /// The bytes of a range. They are not checked against the digest, which covers the whole.
    /// - Throws: `blobRange`, `blobMissing`, `blobDamaged`, `ioFailed`.
    /// - Complexity: O(range); a small blob is read whole.
    public func read(_ range: Range<Int>) throws -> Data {
        let (source, reader) = try open()
        try check(range, source)
        guard var pages = PageData(capacity: range.count) else {
            return Data(try Blob.read(range, of: reference, source, reader))
        }
        try source.reading(byteCount: range.count) { () throws(EngineError) in
            try reader.forEachPiece(of: UInt64(range.lowerBound)..<UInt64(range.upperBound)) {
                pages.append($0)
            }
        }
        return pages.finish()
    }

    /// All bytes, checked against the digest.
    /// - Throws: `blobMissing`, `blobDamaged`, `ioFailed`.
    public func readAll() throws -> Data {
        let (source, reader) = try open()
        guard var pages = PageData(capacity: length) else {
            return Data(try source.reading { () throws(EngineError) in try reader.readAll() })
        }
        try source.reading(byteCount: length) { () throws(EngineError) in
            try reader.forEachPiece { pages.append($0) }
        }
        return pages.finish()
    }

    /// The bytes in pieces of `size`, the last one shorter. Reading happens off the caller's
    /// thread.
    public func chunks(of size: Int) -> BlobChunks { BlobChunks(blob: self, size: max(1, size)) }

    func open() throws(StoreError) -> (BlobSource, BlobReader) {
        guard let source else { throw Blob.missing(nil) }
        return (source, try source.open(reference))
    }

    static func read(
        _ range: Range<Int>,
        of reference: BlobReference,
        _ source: BlobSource,
        _ reader: BlobReader
    ) throws(StoreError) -> [UInt8] {
        try Blob(reference: reference, source: source).check(range, source)
        return try source.reading { () throws(EngineError) in
            try reader.read(UInt64(range.lowerBound)..<UInt64(range.upperBound))
        }
    }

    private func check(_ range: Range<Int>, _ source: BlobSource) throws(StoreError) {
        guard range.lowerBound >= 0, UInt64(range.upperBound) <= reference.length else {
            throw StoreError(
                .blobRange,
                "the range \(range) lies outside the blob of \(reference.length) bytes",
                place: .init(store: source.container.place)
            )
        }
    }

    static func missing(_ store: String?) -> StoreError {
        StoreError(
            .blobMissing,
            "the store has no such blob",
            place: .init(store: store),
            suggestion: store.map(StoreError.setAnew)
        )
    }
}

extension Blob: Hashable {
    /// Equal content.
    public static func == (left: Blob, right: Blob) -> Bool { left.reference == right.reference }
    /// By content.
    public func hash(into hasher: inout Hasher) { hasher.combine(reference) }
}

extension Blob: StorableValue {
    /// Stored as digest and length.
    public static var attributeType: AttributeType { .blob }
    /// No bytes; only for columns that are read without an object.
    public static var zeroValue: Blob {
        Blob(reference: BlobReference(digest: BlobDigest(0, 0, 0, 0), length: 0), source: nil)
    }
    /// A handle that cannot be read: objects and snapshots make better ones.
    public init?(stored: StoredValue) {
        guard case .blob(let reference) = stored else { return nil }
        self.init(reference: reference, source: nil)
    }
    /// Digest and length.
    public var stored: StoredValue { .blob(reference) }
}
