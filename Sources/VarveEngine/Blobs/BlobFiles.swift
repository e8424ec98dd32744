// The directory of large blobs: one file per blob, named by the SHA-256 of its content
// (Format.md, "Blob directory").
//
// Invariants
// - A file under a blob's name was synced before it got the name, and is never written again.
// - A blob may be named by a commit only after `publish` has returned: its name is durable then.
// - Nothing is put into the directory before its own name is durable. So a name is proven by what
//   the directory holds; one that holds nothing is made again before it is used, since a sync that
//   failed may have left its name in the system's memory only.
// - Processes that begin at once may each take the other's empty directory away. Each then waits
//   for a time of its own, so that one of them gets a file into its directory, which ends it for
//   all.
// - Entries whose names are not ours are ignored and left alone.
// - Two blobs share a file only after their bytes have been compared.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

/// What can go wrong with a blob's file.
enum BlobError: Error, Sendable {
    /// No file of that name.
    case missing(BlobReference)
    /// A file that is not what its name or its reference says; `found` says how it differs.
    case damaged(BlobReference, found: String)
    /// The system refused.
    case io(IOError)
}

/// The files of one store's blobs. The directory is created with the first of them.
final class BlobFiles: Sendable {
    /// Files being written are called this and 16 lowercase hex digits.
    static let temporaryPrefix = "new-"
    /// Bytes read or written at once.
    static let pieceBytes = 256 << 10
    /// How often a directory is made that others take away before it holds anything: more often
    /// than chance has it. The waits between them add up to 8 s in the middle.
    private static let makingsMax = 24
    /// How often it is made where even that fails, at once: the store's folder may be gone.
    private static let failedMakingsMax = 8
    /// The longest wait is 2 to this power milliseconds, which is longer than a sync of a name: a
    /// shorter one would end within the sync of the other, and take its directory away again.
    private static let longestWaitPower = 10

    private struct State {
        var directory: (any StoreDirectory)?
        /// Whether `directory` was looked at as one that is written to.
        var isMade = false
        /// A sync of the directory failed: a later one that succeeds says nothing of the names
        /// that were given before.
        var failure: IOError?
    }
    private let names: DirectoryNames
    private let name: String
    private let environment: any Environment
    private let state = Mutex(State())

    /// The directory `name` inside that of `names`, which need not exist.
    init(in names: DirectoryNames, name: String, environment: any Environment) {
        self.names = names
        self.name = name
        self.environment = environment
    }

    /// Starts a file; its name comes with its content.
    func makeWriter() throws(BlobError) -> BlobFileWriter {
        var attempts = 0
        while true {
            var directory: (any StoreDirectory)?
            do throws(IOError) {
                let made = try made()
                directory = made
                let digits = String(environment.randomNumber(), radix: 16)
                let padding = String(repeating: "0", count: 16 - digits.count)
                return try BlobFileWriter(
                    in: made,
                    temporaryName: Self.temporaryPrefix + padding + digits
                )
            } catch {
                // Another process found the directory empty and made it again.
                attempts += 1
                let most = directory == nil ? Self.failedMakingsMax : Self.makingsMax
                guard error.isMissing, attempts < most else { throw .io(error) }
                guard let directory else { continue }
                state.withLock { state in
                    // Another thread may have made one meanwhile.
                    guard state.directory === directory else { return }
                    (state.directory, state.isMade) = (nil, false)
                }
                waitForOthers(attempts)
            }
        }
    }

    /// Waits for a time that no other process waits for as well; longer after each attempt.
    private func waitForOthers(_ attempts: Int) {
        let longest = UInt64(1) << UInt64(min(attempts, Self.longestWaitPower))
        _ = Parker().park(milliseconds: Int(environment.randomNumber() % longest))
    }

    /// Writes one blob that is in memory.
    func write(_ bytes: [UInt8]) throws(BlobError) -> BlobReference {
        let writer = try makeWriter()
        try writer.append(bytes)
        return try writer.finish()
    }

    /// Makes the names of all finished blobs durable, one that was found there included. After a
    /// failure it fails until the store is opened again.
    func publish() throws(BlobError) {
        guard let directory = try existing() else { return }
        if let failure = state.withLock({ $0.failure }) { throw .io(failure) }
        do throws(IOError) {
            try directory.sync()
        } catch {
            state.withLock { $0.failure = error }
            throw .io(error)
        }
    }

    /// Opens a blob's file and checks its length.
    func open(_ reference: BlobReference) throws(BlobError) -> BlobFileReader {
        guard let directory = try existing() else { throw .missing(reference) }
        do {
            return try BlobFileReader.open(reference, in: directory)
        } catch {
            guard case .missing = error, let now = try replaced(directory) else { throw error }
            return try BlobFileReader.open(reference, in: now)
        }
    }

    /// A blob's file as it is; nil when there is none.
    func openRaw(_ digest: BlobDigest) throws(BlobError) -> (any ReadOnlyFile)? {
        guard let directory = try existing() else { return nil }
        if let file = try Self.fileIfThere(digest, in: directory) { return file }
        guard let now = try replaced(directory) else { return nil }
        return try Self.fileIfThere(digest, in: now)
    }

    private static func fileIfThere(
        _ digest: BlobDigest,
        in directory: any StoreDirectory
    ) throws(BlobError) -> (any ReadOnlyFile)? {
        do {
            return try directory.openFile(digest.hexText, mode: .read)
        } catch {
            if error.isMissing { return nil }
            throw .io(error)
        }
    }

    /// Whether a blob's file is there, with the right length.
    func exists(_ reference: BlobReference) throws(BlobError) -> Bool {
        do {
            try open(reference).close()
            return true
        } catch {
            switch error {
            case .missing, .damaged: return false
            case .io: throw error
            }
        }
    }

    /// Digests of all blob files, ascending.
    func list() throws(BlobError) -> [BlobDigest] {
        guard let directory = try existing() else { return [] }
        return try Self.io { () throws(IOError) in
            try directory.list().compactMap { BlobDigest(hexText: $0) }
        }
    }

    /// Removes a blob's file. False when there was none.
    @discardableResult
    func remove(_ digest: BlobDigest) throws(BlobError) -> Bool {
        guard let directory = try existing() else { return false }
        return try Self.removeIfThere(digest.hexText, in: directory)
    }

    /// Removes what writers of dead processes left. No writer of the store may be at work.
    /// - Returns: how many files there were.
    @discardableResult
    func removeLeftovers() throws(BlobError) -> Int {
        guard let directory = try existing() else { return 0 }
        let names = try Self.io { () throws(IOError) in try directory.list() }
        var count = 0
        for name in names where Self.isTemporary(name) {
            if try Self.removeIfThere(name, in: directory) { count += 1 }
        }
        return count
    }

    /// Whether a name is one that a writer gives to an unfinished file.
    static func isTemporary(_ name: String) -> Bool {
        name.hasPrefix(temporaryPrefix) && name.utf8.count == temporaryPrefix.utf8.count + 16
            && name.utf8.dropFirst(temporaryPrefix.utf8.count).allSatisfy {
                (0x30...0x39).contains($0) || (0x61...0x66).contains($0)
            }
    }

    // MARK: Helpers

    private func existing() throws(BlobError) -> (any StoreDirectory)? {
        do {
            return try opened()
        } catch {
            if error.isMissing { return nil }
            throw .io(error)
        }
    }

    private func opened() throws(IOError) -> any StoreDirectory {
        try state.withLock { state throws(IOError) in
            if let directory = state.directory { return directory }
            let directory = try names.directory.directory(name, create: false)
            state.directory = directory
            return directory
        }
    }

    /// The directory that has the name now, when it is another one than `known`, which held nothing
    /// when another process made it again; nil when it is the same.
    private func replaced(
        _ known: any StoreDirectory
    ) throws(BlobError) -> (any StoreDirectory)? {
        try state.withLock { state throws(BlobError) in
            if let directory = state.directory, directory !== known { return directory }
            guard try Self.io({ () throws(IOError) in try known.list() }).isEmpty else {
                return nil
            }
            do throws(IOError) {
                let directory = try names.directory.directory(name, create: false)
                (state.directory, state.isMade) = (directory, false)
                return directory
            } catch {
                if error.isMissing { return nil }
                throw .io(error)
            }
        }
    }

    /// The directory for files to be put into; its name is durable.
    private func made() throws(IOError) -> any StoreDirectory {
        try state.withLock { state throws(IOError) in
            if state.isMade, let directory = state.directory { return directory }
            let mark = names.mark
            var isThere = false
            do throws(IOError) { try names.directory.removeDirectory(name) } catch {
                // A process that may not change names here can use what is there.
                isThere = error.isExisting || error.kind == .permission
                if !isThere, !error.isMissing { throw error }
            }
            let directory = try names.directory.directory(name, create: !isThere)
            do throws(IOError) { try names.sync(since: mark) } catch {
                // Where that does not go either, the next one finds it empty.
                if !isThere { try? names.directory.removeDirectory(name) }
                (state.directory, state.isMade) = (nil, false)
                throw error
            }
            (state.directory, state.isMade) = (directory, true)
            return directory
        }
    }

    private static func removeIfThere(
        _ name: String,
        in directory: any StoreDirectory
    ) throws(BlobError) -> Bool {
        do {
            try directory.remove(name)
            return true
        } catch {
            if error.isMissing { return false }
            throw .io(error)
        }
    }

    /// Runs calls to the system; their errors become this layer's.
    static func io<R>(_ body: () throws(IOError) -> R) throws(BlobError) -> R {
        do {
            return try body()
        } catch {
            throw .io(error)
        }
    }
}
