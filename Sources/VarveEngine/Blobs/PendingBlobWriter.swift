// A blob being written: in memory up to its external limit, then in a file.
//
// Invariants
// - The digest is known when the last byte is; nothing refers to the blob before.
// - A writer that is not finished leaves nothing behind.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

/// Writes the bytes of a `PendingBlob` in pieces. Used from one thread at a time.
public final class PendingBlobWriter {
    private let store: BlobStore
    private let externalLimit: Int
    private var buffer: [UInt8] = []
    private var hasher = BlobHasher()
    private var file: BlobFileWriter?
    private var isEnded = false

    init(store: BlobStore, externalLimit: Int) {
        self.store = store
        self.externalLimit = externalLimit
        store.writerBegan()
    }

    deinit { end() }

    private func end() {
        guard !isEnded else { return }
        isEnded = true
        file?.cancel()
        store.writerEnded()
    }

    /// Bytes appended so far.
    public var length: UInt64 { file?.length ?? UInt64(buffer.count) }

    /// Adds bytes at the end.
    ///
    /// - Throws: `noSpace`, `ioFailed`; `invalid` after `finish`.
    /// - Complexity: O(bytes). Memory: at most twice the external limit and a piece of 256 KiB.
    public func append(_ bytes: [UInt8]) throws(EngineError) {
        guard !isEnded else { throw EngineError(.invalid, "the blob is finished already") }
        if let file {
            return try store.engineError { () throws(BlobError) in try file.append(bytes) }
        }
        if buffer.count + bytes.count <= externalLimit {
            hasher.update(bytes)
            // A blob in one piece is not copied: it shares the caller's bytes, unless they hold
            // much memory beside.
            if buffer.isEmpty, bytes.capacity <= 2 * bytes.count {
                buffer = bytes
            } else {
                buffer.append(contentsOf: bytes)
            }
            return
        }
        let start = buffer
        buffer = []
        file = try store.engineError { () throws(BlobError) in
            let file = try store.files.makeWriter()
            if !start.isEmpty { try file.append(start) }
            try file.append(bytes)
            return file
        }
    }

    /// Ends the blob. A file is synced and has its name; a small one waits for its commit.
    ///
    /// - Throws: `noSpace`, `ioFailed`; `invalid` when called twice.
    public func finish() throws(EngineError) -> PendingBlob {
        guard !isEnded else { throw EngineError(.invalid, "the blob is finished already") }
        defer { end() }
        if let file {
            let reference = try store.engineError { () throws(BlobError) in try file.finish() }
            return store.add(reference, .file)
        }
        let reference = BlobReference(
            digest: hasher.finalize(),
            length: UInt64(buffer.count)
        )
        return store.add(reference, .bytes(buffer))
    }
}

extension Engine {
    /// Starts a blob.
    ///
    /// - Parameter externalLimit: a blob of more bytes becomes a file of its own; one of at most
    ///   this many lies in the log. At most 16 MiB.
    public func makeBlobWriter(externalLimit: Int) throws(EngineError) -> PendingBlobWriter {
        // Not `checkWritable`: it would wait for a commit that is being synced.
        if role.isReadOnly {
            throw EngineError(.readOnly, "the store was opened for reading only")
        }
        return PendingBlobWriter(
            store: blobStore,
            externalLimit: min(max(externalLimit, 0), 16 << 20)
        )
    }
}
