// The files of a store as an opening finds them: folder, lock, file, header.
//
// Invariants
// - Nothing is written here. What cannot be used is an error that says which file, and why.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension Engine {
    static func place(
        _ location: StoreLocation,
        _ rights: FileRights = FileRights()
    ) throws(EngineError) -> (any StoreDirectory, String) {
        func plain(_ name: String) -> String {
            name.hasSuffix(fileSuffix) ? String(name.dropLast(fileSuffix.count)) : name
        }
        switch location {
        case .memory: return (MemoryDirectory(), "memory")
        case .directory(let directory, let name): return (directory, plain(name))
        case .file(let path, let name):
            do throws(IOError) {
                return (try PosixDirectory.open(path: path, rights: rights), plain(name))
            } catch {
                if error.isMissing {
                    throw EngineError(
                        .missingDirectory,
                        "the folder \(path) does not exist",
                        cause: error
                    )
                }
                throw .io(error)
            }
        }
    }

    /// The writer's lock for the caller alone, until it is released.
    static func takeLock(
        _ directory: any StoreDirectory,
        _ name: String
    ) throws(EngineError) -> any FileLock {
        do throws(IOError) {
            let lock = try directory.lockExclusive(name + lockSuffix, wait: false)
            // A process that has the store open for writing may have no turn at the moment.
            let locks = try directory.openLocks(name + lockSuffix, isReader: false)
            defer { locks?.close() }
            if let locks, locks.isLockedByOther(LockByte.writing..<LockByte.next) {
                lock.release()
                throw IOError(
                    kind: .held,
                    code: 0,
                    operation: "lock",
                    name: name + lockSuffix,
                    reason: "the store is open for writing"
                )
            }
            return lock
        } catch {
            if error.isHeld {
                throw EngineError(
                    .busy,
                    "another writer has \(name + fileSuffix) open",
                    cause: error
                )
            }
            throw .io(error)
        }
    }

    /// Both headers, and the schema of a store that never had another.
    private static let firstBytes = 12 << 10
    /// The newest commit of a store that was closed, and the checkpoint before it.
    private static let lastBytes = 8 << 10

    /// The file before the lock is asked for: what is read of it first comes from the disk while
    /// the lock file is looked at. Nil where other processes cannot be, and where it cannot be
    /// opened: then why is told later.
    static func earlyFile(
        _ name: String,
        in directory: any StoreDirectory,
        _ isReadOnly: Bool
    ) -> (any StoreFile)? {
        guard directory.isSharedBetweenProcesses,
            let file = try? directory.openFile(name, mode: isReadOnly ? .read : .readWrite)
        else { return nil }
        if let size = file.sizeWhenOpened {
            file.adviseWillNeed(at: FileOffset(0), count: firstBytes)
            let end = size - min(size, UInt64(lastBytes))
            file.adviseWillNeed(at: FileOffset(end), count: lastBytes)
        }
        return file
    }

    /// Whether a store has to be made.
    /// - Throws: `missing` where none is to be made.
    static func isMissing(
        _ name: String,
        in directory: any StoreDirectory,
        _ mode: StoreOpenMode
    ) throws(EngineError) -> Bool {
        if try io({ () throws(IOError) in try directory.exists(name) }) { return false }
        if case .createIfMissing = mode { return true }
        throw EngineError(.missing, "there is no store named \(name) in \(directory.name)")
    }

    /// The file that was opened before the lock was held, if it has the store's name still.
    static func stillNamed(
        _ early: (any StoreFile)?,
        _ name: String,
        in directory: any StoreDirectory
    ) throws(EngineError) -> (any StoreFile)? {
        guard let early else { return nil }
        let isNamed = try io { () throws(IOError) in try directory.isNamed(name, early) }
        return isNamed == true ? early : nil
    }

    static func openFile(
        _ name: String,
        in directory: any StoreDirectory,
        _ isReadOnly: Bool
    ) throws(EngineError) -> any StoreFile {
        let file: any StoreFile
        do throws(IOError) {
            file = try directory.openFile(name, mode: isReadOnly ? .read : .readWrite)
        } catch {
            if error.kind == .notRegular {
                throw EngineError(.notAStore, "\(name) is not a regular file", cause: error)
            }
            throw .io(error)
        }
        return try checked(file, name, isReadOnly)
    }

    /// The file, unless somebody else may change what is written to it.
    static func checked(
        _ file: any StoreFile,
        _ name: String,
        _ isReadOnly: Bool,
        _ allowsForeignWriters: Bool = true
    ) throws(EngineError) -> any StoreFile {
        try io { () throws(IOError) in
            let identity = try file.identity()
            guard isReadOnly || identity.links == 1 else {
                throw IOError(
                    kind: .other,
                    code: 0,
                    operation: "open",
                    name: name,
                    reason: "the file has \(identity.links) names; copy a store with a backup"
                )
            }
            let isPrivate = identity.isOwn && !identity.isWritableByOthers
            guard isReadOnly || isPrivate || allowsForeignWriters else {
                throw IOError(
                    kind: .permission,
                    code: 0,
                    operation: "open",
                    name: name,
                    reason: identity.isOwn
                        ? "its group or others may write the file, and could change it unnoticed; "
                            + "take that right away (chmod go-w)"
                        : "the file belongs to another user; open it for reading, or as that user"
                )
            }
        }
        return file
    }

    /// Either copy of the header will do.
    static func readHeader(
        _ file: any StoreFile,
        _ name: String,
        isReadOnly: Bool
    ) throws(EngineError) -> FileHeader {
        var failure: FormatError?
        for copy in [0, FileHeader.length] {
            let bytes = try io { () throws(IOError) in
                try file.read(at: FileOffset(UInt64(copy)), count: FileHeader.length)
            }
            let header: FileHeader
            do throws(FormatError) {
                header = try FileHeader(decoding: bytes)
            } catch {
                failure = failure ?? error
                continue
            }
            let needs =
                isReadOnly ? header.readerNeeds : max(header.readerNeeds, header.writerNeeds)
            if needs <= FileHeader.newestVersion { return header }
            let mayBeRead = header.readerNeeds <= FileHeader.newestVersion
            throw EngineError(
                .formatTooNew,
                "\(name) needs format version \(needs); this library knows "
                    + "\(FileHeader.newestVersion)"
                    + (mayBeRead ? "; it can be opened for reading" : ""),
                cause: FormatError(
                    place: name,
                    field: "version",
                    found: "\(needs)",
                    expected: "at most \(FileHeader.newestVersion)"
                )
            )
        }
        throw noHeader(name, failure)
    }

    /// - Parameter failure: what is wrong with the first copy.
    static func noHeader(_ name: String, _ failure: FormatError?) -> EngineError {
        let isStore = failure.map { $0.field != "magic" && $0.field != "length" } ?? false
        return EngineError(
            isStore ? .damaged : .notAStore,
            isStore
                ? "both copies of the header of \(name) are damaged"
                : "\(name) is not a Varve store",
            cause: failure
        )
    }

    static func io<R>(_ body: () throws(IOError) -> R) throws(EngineError) -> R {
        do throws(IOError) { return try body() } catch { throw .io(error) }
    }
}
