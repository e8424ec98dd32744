// Writing one blob's file under a temporary name, until its digest gives it the final one.
//
// Invariants
// - Content is synced before the rename, so a file under a digest's name is whole on disk.
// - A writer that is not finished leaves no file, unless the process dies.
// - After an error the writer does nothing but throw it again.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

/// One blob being written. Used from one thread at a time.
final class BlobFileWriter {
    private enum State {
        case writing
        case ended
        case failed(BlobError)
    }
    private let directory: any StoreDirectory
    private let temporaryName: String
    private let file: any StoreFile
    private var hasher = BlobHasher()
    private var buffer: [UInt8] = []
    private var flushed: UInt64 = 0
    private var state = State.writing

    init(in directory: any StoreDirectory, temporaryName: String) throws(IOError) {
        file = try directory.openFile(temporaryName, mode: .createExclusive)
        self.directory = directory
        self.temporaryName = temporaryName
    }

    deinit { cancel() }

    /// Bytes appended so far.
    var length: UInt64 { flushed + UInt64(buffer.count) }

    /// Adds bytes at the end.
    func append(_ bytes: [UInt8]) throws(BlobError) {
        try step { () throws(BlobError) in
            hasher.update(bytes)
            if buffer.isEmpty, bytes.count >= BlobFiles.pieceBytes {
                try flush(bytes)
            } else {
                buffer.append(contentsOf: bytes)
                if buffer.count >= BlobFiles.pieceBytes {
                    try flush(buffer)
                    buffer.removeAll(keepingCapacity: true)
                }
            }
        }
    }

    /// Syncs the content and gives the file its name. The name is durable after
    /// `BlobFiles.publish`, also when the blob was there before.
    func finish() throws(BlobError) -> BlobReference {
        let reference = try step { () throws(BlobError) in
            try flush(buffer)
            buffer = []
            let reference = BlobReference(digest: hasher.finalize(), length: flushed)
            try BlobFiles.io { () throws(IOError) in try file.syncAll() }
            try name(reference)
            return reference
        }
        state = .ended
        file.close()
        return reference
    }

    /// Gives up and removes the file. Nothing happens after `finish`.
    func cancel() {
        if case .ended = state { return }
        state = .ended
        file.close()
        // A leftover is found by `BlobFiles.removeLeftovers`.
        try? directory.remove(temporaryName)
    }

    private func flush(_ bytes: [UInt8]) throws(BlobError) {
        guard !bytes.isEmpty else { return }
        try BlobFiles.io { () throws(IOError) in
            try file.write(bytes, at: FileOffset(flushed))
        }
        flushed += UInt64(bytes.count)
    }

    private func name(_ reference: BlobReference) throws(BlobError) {
        let name = reference.digest.hexText
        do {
            return try directory.rename(temporaryName, to: name, replacing: false)
        } catch {
            guard error.isExisting else { throw .io(error) }
        }
        // The same bytes: the name is given anew all the same, since a directory's sync that failed
        // may have left the old one in memory only. Other bytes: what stands there is damaged.
        _ = try isStored(reference)
        try BlobFiles.io { () throws(IOError) in
            try directory.rename(temporaryName, to: name, replacing: true)
        }
    }

    /// Whether the file under the final name has the very bytes that were written.
    private func isStored(_ reference: BlobReference) throws(BlobError) -> Bool {
        let stored: BlobFileReader
        do {
            stored = try BlobFileReader.open(reference, in: directory)
        } catch {
            switch error {
            case .damaged, .missing: return false
            case .io: throw error
            }
        }
        defer { stored.close() }
        var start: UInt64 = 0
        while start < reference.length {
            let end = min(reference.length, start + UInt64(BlobFiles.pieceBytes))
            let there = try stored.read(start..<end)
            let here = try BlobFiles.io { () throws(IOError) in
                try file.read(at: FileOffset(start), count: Int(end - start))
            }
            if there != here {
                // Two contents with one digest would be news to the world; damage is not.
                if try isSound(stored) {
                    throw .damaged(reference, found: "two contents of one digest")
                }
                return false
            }
            start = end
        }
        return true
    }

    private func isSound(_ stored: BlobFileReader) throws(BlobError) -> Bool {
        do {
            try stored.verify()
            return true
        } catch {
            if case .damaged = error { return false }
            throw error
        }
    }

    private func step<R>(_ body: () throws(BlobError) -> R) throws(BlobError) -> R {
        switch state {
        case .failed(let error): throw error
        case .ended:
            throw .io(
                IOError(
                    kind: .closed,
                    code: 0,
                    operation: "write",
                    name: temporaryName,
                    reason: "finished before"
                )
            )
        case .writing: break
        }
        do {
            return try body()
        } catch {
            state = .failed(error)
            throw error
        }
    }
}
