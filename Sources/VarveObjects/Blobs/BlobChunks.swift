// The bytes of a blob as an asynchronous sequence of pieces.
//
// Invariants
// - At most one piece is in memory. The disk is read on a thread of its own, never on a cooperative
//   one.

public import Foundation
import VarveBase
import VarveEngine

/// The bytes of a blob, piece by piece.
public struct BlobChunks: AsyncSequence, Sendable {
    let blob: Blob
    let size: Int

    /// Starts at the first byte.
    public func makeAsyncIterator() -> Iterator { Iterator(blob: blob, size: size) }

    /// Reads one piece after the other.
    public struct Iterator: AsyncIteratorProtocol {
        let blob: Blob
        let size: Int
        private var offset = 0
        private var opened: (BlobSource, BlobReader)?

        init(blob: Blob, size: Int) {
            self.blob = blob
            self.size = size
        }

        /// The next piece; nil after the last byte.
        /// - Throws: `blobMissing`, `blobDamaged`, `ioFailed`, `CancellationError`.
        public mutating func next() async throws -> Data? {
            try Task.checkCancellation()
            guard offset < blob.length else { return nil }
            let (source, reader) = try opened ?? blob.open()
            opened = (source, reader)
            let range = offset..<Swift.min(blob.length, offset + size)
            let reference = blob.reference
            let data = try await BlobChunks.threads.run {
                Data(try Blob.read(range, of: reference, source, reader))
            }
            offset = range.upperBound
            return data
        }
    }

    private static let threads = WorkerPool(limit: 2)
}
