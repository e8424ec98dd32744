// Blobs of one store on their way in: written, and not named by a commit yet.
//
// Invariants
// - A blob's file is durable under its final name before a commit names it.
// - The bytes of a blob that no commit names are kept as long as somebody holds its `PendingBlob`.
// - A file is removed only while no blob is being written, so that a writer that finds its content
//   already there can rely on it.

internal import Synchronization
public import VarveBase
internal import VarveFormat
internal import VarveIO

final class BlobStore: Sendable {
    enum Content {
        case bytes([UInt8])
        /// In a frame of a store file, which stays open as long as this is kept: no memory.
        case frame(LogReader, ValuePlace)
        case file

        var isFile: Bool { if case .file = self { true } else { false } }

        /// The bytes of a small one; nil where it is a file.
        /// - Throws: `damaged`, `ioFailed`.
        func bytes() throws(EngineError) -> [UInt8]? {
            switch self {
            case .bytes(let bytes): bytes
            case .frame(let log, let place): try log.value(place)
            case .file: nil
            }
        }
    }
    private struct Pending {
        var holders: Int
        var content: Content
    }
    private struct State {
        var pending: [BlobReference: Pending] = [:]
        var activeWriters = 0
    }

    let files: BlobFiles
    /// False for a reader whom no writer sees: files that it reads may go.
    private let isKnownToWriters: Bool
    /// Whether others wrote while this engine was suspended, which they did not know of.
    private let hasBeenAway = Atomic(false)
    private let state = Mutex(State())

    init(files: BlobFiles, isKnownToWriters: Bool = true) {
        self.files = files
        self.isKnownToWriters = isKnownToWriters
    }

    /// Others wrote while nobody knew of this engine: files that its snapshots read may be gone.
    func wasAway() { hasBeenAway.store(true, ordering: .relaxed) }

    // MARK: Writing

    func writerBegan() { state.withLock { $0.activeWriters += 1 } }
    func writerEnded() { state.withLock { $0.activeWriters -= 1 } }

    func add(_ reference: BlobReference, _ content: Content) -> PendingBlob {
        state.withLock { state in
            var pending = state.pending[reference] ?? Pending(holders: 0, content: content)
            // Bytes at hand can be had, whatever became of a place that was known before.
            if case .bytes = content { pending.content = content }
            pending.holders += 1
            state.pending[reference] = pending
        }
        return PendingBlob(reference, self)
    }

    func release(_ reference: BlobReference) {
        state.withLock { state in
            guard var pending = state.pending[reference] else { return }
            pending.holders -= 1
            state.pending[reference] = pending.holders == 0 ? nil : pending
        }
    }

    // MARK: Reading

    func pendingContent(of reference: BlobReference) -> Content? {
        state.withLock { $0.pending[reference]?.content }
    }

    /// Where the bytes of a blob are that the store has no entry for.
    ///
    /// - Throws: `blobMissing` when nobody wrote it, `ioFailed`.
    func content(of reference: BlobReference) throws(EngineError) -> Content {
        let pending = pendingContent(of: reference)
        if let pending, !pending.isFile { return pending }
        guard try engineError({ () throws(BlobError) in try files.exists(reference) }) else {
            throw EngineError(
                .blobMissing,
                "a row names the blob \(reference.digest.shortName), which nobody wrote or keeps"
            )
        }
        return .file
    }

    /// The bytes of a small blob that the store has no entry for; nil where it is a file.
    ///
    /// - Throws: as `content`; `blobDamaged`, `damaged`.
    func bytes(of reference: BlobReference) throws(EngineError) -> [UInt8]? {
        guard let bytes = try content(of: reference).bytes() else { return nil }
        guard UInt64(bytes.count) == reference.length else {
            throw EngineError(
                .blobDamaged,
                "blob \(reference.digest.shortName) has \(bytes.count) bytes"
            )
        }
        return bytes
    }

    func engineError<R>(_ body: () throws(BlobError) -> R) throws(EngineError) -> R {
        do throws(BlobError) {
            return try body()
        } catch {
            switch error {
            case .missing(let reference) where !isKnownToWriters:
                throw EngineError(
                    .blobSwept,
                    "the file of blob \(reference.digest.shortName) is gone: this opening reads "
                        + "one moment, since the store's lock file was missing and could not be "
                        + "made, and a process that writes has not kept it; open the store "
                        + "again to read what is there now"
                )
            case .missing(let reference) where hasBeenAway.load(ordering: .relaxed):
                throw EngineError(
                    .blobSwept,
                    "the file of blob \(reference.digest.shortName) is gone: another process wrote "
                        + "while the store was suspended, and did not know that this commit is read"
                )
            case .missing(let reference):
                throw EngineError(
                    .blobMissing,
                    "the file of blob \(reference.digest.shortName) is missing"
                )
            case .damaged(let reference, let found):
                throw EngineError(
                    .blobDamaged,
                    "blob \(reference.digest.shortName) is damaged: \(found)"
                )
            case .io(let error): throw .io(error)
            }
        }
    }

    // MARK: Removing

    /// Removes files that nothing names, unless a blob is being written or held.
    ///
    /// - Returns: the digests that are gone; empty while a writer is at work.
    func remove(_ digests: [BlobDigest]) throws(EngineError) -> [BlobDigest] {
        guard !digests.isEmpty else { return [] }
        return try state.withLock { state throws(EngineError) in
            guard state.activeWriters == 0 else { return [] }
            let held = Set(state.pending.keys.map(\.digest))
            var removed: [BlobDigest] = []
            for digest in digests where !held.contains(digest) {
                try engineError { () throws(BlobError) in _ = try files.remove(digest) }
                removed.append(digest)
            }
            return removed
        }
    }

    /// Removes what writers of dead processes left behind.
    func removeLeftovers() throws(EngineError) {
        try state.withLock { state throws(EngineError) in
            guard state.activeWriters == 0 else { return }
            try engineError { () throws(BlobError) in _ = try files.removeLeftovers() }
        }
    }
}

/// A blob that was written and that no commit needs to name yet.
///
/// As long as it is held, a row with its reference can be committed and its bytes can be read.
public final class PendingBlob: Sendable {
    /// Digest and length.
    public let reference: BlobReference
    private let store: BlobStore

    init(_ reference: BlobReference, _ store: BlobStore) {
        self.reference = reference
        self.store = store
    }

    deinit { store.release(reference) }

    /// Opens the bytes for reading.
    ///
    /// - Throws: `blobMissing`, `blobDamaged`, `ioFailed`.
    public func open() throws(EngineError) -> BlobReader {
        if let bytes = try store.pendingContent(of: reference)?.bytes() {
            return BlobReader(reference, .bytes(bytes), store, keeping: self)
        }
        let file = try store.engineError { () throws(BlobError) in
            try store.files.open(reference)
        }
        return BlobReader(reference, .file(file), store, keeping: self)
    }
}
