// FENCE: the only file, with Threads.swift, that imports the C library: each call in one function.
//
// Invariants
// - errno is captured on the line after the call that sets it.
// - Calls interrupted by a signal are repeated; transfers go on until they are whole.
// - Every descriptor is 3 or higher and closes on exec.

import CVarve
import VarveBase

#if canImport(Darwin)
import Darwin
#elseif canImport(Android)
import Android
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

enum SystemCalls {
    // MARK: Files

    /// Opens a name inside a directory; `mode` nil opens a directory.
    static func open(
        _ directory: Int32,
        _ name: String,
        _ mode: OpenMode?
    ) throws(IOError) -> Int32 {
        var flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
        switch mode {
        case nil: flags |= O_RDONLY | O_DIRECTORY
        case .read: flags |= O_RDONLY
        case .readWrite: flags |= O_RDWR
        case .createExclusive: flags |= O_RDWR | O_CREAT | O_EXCL
        }
        return try open(directory, name, flags)
    }

    /// Opens a lock file, or creates it.
    static func openLockFile(
        _ directory: Int32,
        _ name: String,
        _ rights: FileRights
    ) throws(IOError) -> Int32 {
        let flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_RDWR | O_CREAT
        if rights.isDefault { return try open(directory, name, flags) }
        let made: Int32
        do throws(IOError) { made = try open(directory, name, flags | O_EXCL) } catch {
            guard error.isExisting else { throw error }
            return try open(directory, name, flags)
        }
        do throws(IOError) { try give(rights, rights.mode, made, name) } catch {
            close(made)
            throw error
        }
        return made
    }

    /// Opens a directory by a path that the user chose.
    static func openRoot(_ path: String) throws(IOError) -> Int32 {
        try open(AT_FDCWD, path, O_CLOEXEC | O_RDONLY | O_DIRECTORY)
    }

    private static func open(
        _ directory: Int32,
        _ name: String,
        _ flags: Int32
    ) throws(IOError) -> Int32 {
        while true {
            // The name is passed as a C string for the length of the call.
            let descriptor = unsafe openat(directory, name, flags, 0o600)
            let code = errno
            if descriptor >= 3 { return descriptor }
            if descriptor >= 0 { return try raise(descriptor, name) }
            if code != EINTR { throw error(code, "open", name) }
        }
    }

    /// Moves a low descriptor, which stray output could write into, above the standard ones.
    private static func raise(_ low: Int32, _ name: String) throws(IOError) -> Int32 {
        let descriptor = fcntl(low, F_DUPFD_CLOEXEC, 3)
        let code = errno
        close(low)
        if descriptor < 0 { throw error(code, "open", name) }
        return descriptor
    }

    static func close(_ descriptor: Int32) {
        #if canImport(Darwin)
        _ = Darwin.close(descriptor)
        #elseif canImport(Android)
        _ = Android.close(descriptor)
        #elseif canImport(Musl)
        _ = Musl.close(descriptor)
        #else
        _ = Glibc.close(descriptor)
        #endif
    }

    static func read(
        _ descriptor: Int32,
        _ offset: UInt64,
        _ count: Int,
        _ name: String
    ) throws(IOError) -> [UInt8] {
        let start = try position(offset, count, "read", name)
        guard count > 0 else { return [] }
        var failure: Int32 = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            guard let base = buffer.baseAddress else { return }
            unsafe (filled, failure) = fill(base, count, descriptor, start)
        }
        if failure != 0 { throw error(failure, "read", name, offset) }
        return bytes
    }

    /// The same into the front of `buffer`, which must have room.
    static func read(
        _ descriptor: Int32,
        _ offset: UInt64,
        _ count: Int,
        into buffer: inout [UInt8],
        _ name: String
    ) throws(IOError) -> Int {
        precondition(count <= buffer.count, "room for what is read")
        let start = try position(offset, count, "read", name)
        // The buffer lives for the closure, and has room by the first line.
        let (filled, failure) = unsafe buffer.withUnsafeMutableBytes { buffer in
            guard let base = buffer.baseAddress else { return (0, Int32(0)) }
            return unsafe fill(base, count, descriptor, start)
        }
        if failure != 0 { throw error(failure, "read", name, offset) }
        return filled
    }

    /// Reads up to `count` bytes to `base`. Each call writes at most what is left of them.
    private static func fill(
        _ base: UnsafeMutableRawPointer,
        _ count: Int,
        _ descriptor: Int32,
        _ start: off_t
    ) -> (filled: Int, failure: Int32) {
        var filled = 0
        while filled < count {
            let place = start + off_t(filled)
            let got = unsafe pread(descriptor, base + filled, count - filled, place)
            let code = errno
            if got > 0 {
                filled += got
            } else if got == 0 {
                break
            } else if code != EINTR {
                return (filled, code)
            }
        }
        return (filled, 0)
    }

    static func write(
        _ descriptor: Int32,
        _ offset: UInt64,
        _ bytes: [UInt8],
        _ name: String
    ) throws(IOError) {
        let start = try position(offset, bytes.count, "write", name)
        // A write beyond the limit would end the process by a signal: it is cut short here, and the
        // rest fails, as the system does when that signal is ignored.
        let limit = varve_file_size_limit()
        var failure: Int32 = 0
        // Each call reads at most what is left of the array.
        unsafe bytes.withUnsafeBytes { buffer in
            guard let base = buffer.baseAddress else { return }
            var done = 0
            while done < buffer.count {
                let allowed = limit - min(limit, Int64(start) + Int64(done))
                if allowed == 0 {
                    failure = EFBIG
                    return
                }
                let put = unsafe pwrite(
                    descriptor,
                    base + done,
                    min(buffer.count - done, Int(clamping: allowed)),
                    start + off_t(done)
                )
                let code = errno
                if put > 0 {
                    done += put
                } else if put == 0 {
                    failure = EIO
                    return
                } else if code != EINTR {
                    failure = code
                    return
                }
            }
        }
        if failure != 0 { throw error(failure, "write", name, offset) }
    }

    static func syncData(_ descriptor: Int32, _ name: String) throws(IOError) {
        #if canImport(Darwin)
        try syncAll(descriptor, name)
        #else
        while fdatasync(descriptor) != 0 {
            let code = errno
            if code != EINTR { throw error(code, "sync", name) }
        }
        #endif
    }

    static func syncAll(_ descriptor: Int32, _ name: String) throws(IOError) {
        #if canImport(Darwin)
        while true {
            if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
            let full = errno
            // A signal is no reason to do with less: fsync leaves bytes in the drive's cache.
            if full == EINTR { continue }
            // File systems without a flush of the drive still have fsync.
            if full == ENOTSUP || full == EINVAL || full == ENOTTY { break }
            throw error(full, "sync", name)
        }
        #endif
        while fsync(descriptor) != 0 {
            let code = errno
            if code != EINTR { throw error(code, "sync", name) }
        }
    }

    /// Syncs a directory; file systems that cannot (EINVAL) keep names durable by themselves.
    static func syncDirectory(_ descriptor: Int32, _ name: String) throws(IOError) {
        do {
            try syncAll(descriptor, name)
        } catch {
            if error.code != EINVAL { throw error }
        }
    }

    static func cut(_ descriptor: Int32, _ size: UInt64, _ name: String) throws(IOError) {
        let length = try position(size, 0, "cut", name)
        while ftruncate(descriptor, length) != 0 {
            let code = errno
            if code != EINTR { throw error(code, "cut", name, size) }
        }
    }

    static func adviseDontNeed(_ descriptor: Int32) {
        #if !canImport(Darwin)
        _ = posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED)
        #endif
    }

    static func adviseWillNeed(_ descriptor: Int32, _ offset: UInt64, _ count: Int) {
        guard let start = off_t(exactly: offset), count > 0 else { return }
        #if canImport(Darwin)
        var advice = radvisory(ra_offset: start, ra_count: Int32(clamping: count))
        _ = unsafe fcntl(descriptor, F_RDADVISE, &advice)
        #else
        _ = posix_fadvise(descriptor, start, off_t(count), POSIX_FADV_WILLNEED)
        #endif
    }

    /// Bytes that the file system of a descriptor has left for this process's user; nil when it
    /// does not say.
    static func freeBytes(_ descriptor: Int32) -> UInt64? {
        var status = statvfs()
        // The structure lives for the length of the call.
        guard unsafe fstatvfs(descriptor, &status) == 0, status.f_blocks > 0 else { return nil }
        let blocks = geteuid() == 0 ? status.f_bfree : status.f_bavail
        let (bytes, isMore) = UInt64(blocks).multipliedReportingOverflow(
            by: UInt64(status.f_frsize)
        )
        return isMore ? nil : bytes
    }

    /// What a descriptor refers to; throws `notRegular` unless it is a regular file.
    static func regularIdentity(
        _ descriptor: Int32,
        _ name: String
    ) throws(IOError) -> FileIdentity {
        var facts = varve_file_facts()
        // The structure lives for the length of the call.
        let code = unsafe varve_look_at_file(descriptor, nil, &facts)
        guard code == 0 else { throw error(code, "stat", name) }
        guard facts.mode & UInt32(S_IFMT) == UInt32(S_IFREG) else {
            throw IOError(
                kind: .notRegular,
                code: 0,
                operation: "open",
                name: name,
                reason: "not a regular file"
            )
        }
        return identity(facts)
    }

    /// What a name refers to now, without following it; nil when nothing has the name.
    static func identity(
        _ directory: Int32,
        _ name: String
    ) throws(IOError) -> FileIdentity? {
        var facts = varve_file_facts()
        // The structure and the name live for the length of the call.
        let code = unsafe varve_look_at_file(directory, name, &facts)
        if code == 0 { return identity(facts) }
        if code == ENOENT { return nil }
        throw error(code, "stat", name)
    }

    private static func identity(_ facts: varve_file_facts) -> FileIdentity {
        FileIdentity(
            device: facts.device,
            inode: facts.inode,
            links: facts.links,
            size: facts.size,
            isOwn: facts.owner == geteuid(),
            isWritableByOthers: facts.mode & UInt32(S_IWGRP | S_IWOTH) != 0
        )
    }

    /// Gives what was just made exactly these rights, whatever the process's mask is.
    static func give(
        _ rights: FileRights,
        _ mode: UInt16,
        _ descriptor: Int32,
        _ name: String
    ) throws(IOError) {
        if fchmod(descriptor, mode_t(mode)) != 0 { throw error(errno, "chmod", name) }
        #if canImport(Darwin)
        if let protection = rights.protectionClass,
            fcntl(descriptor, F_SETPROTECTIONCLASS, protection) != 0
        {
            let code = errno
            // Volumes and systems without such classes.
            if code != ENOTSUP && code != EINVAL && code != ENOTTY {
                throw error(code, "protect", name)
            }
        }
        #endif
    }

    // MARK: Directories

    static func makeDirectory(_ directory: Int32?, _ name: String) throws(IOError) {
        // The name is passed as a C string for the length of the call.
        if unsafe mkdirat(directory ?? AT_FDCWD, name, 0o700) != 0 {
            throw error(errno, "create", name)
        }
    }

    static func rename(
        _ directory: Int32,
        _ from: String,
        _ to: String,
        replacing: Bool
    ) throws(IOError) {
        // The names are passed as C strings for the length of the call.
        if replacing {
            if unsafe renameat(directory, from, directory, to) != 0 {
                throw error(errno, "rename", from)
            }
        } else {
            let code = unsafe varve_rename_exclusive(directory, from, to)
            if code != 0 { throw error(code, "rename", from) }
        }
    }

    static func remove(
        _ directory: Int32,
        _ name: String,
        isDirectory: Bool = false
    ) throws(IOError) {
        let flags = isDirectory ? AT_REMOVEDIR : 0
        // The name is passed as a C string for the length of the call.
        if unsafe unlinkat(directory, name, flags) != 0 { throw error(errno, "remove", name) }
    }

    static func list(_ directory: Int32, _ name: String) throws(IOError) -> [String] {
        // A fresh description: reading through a duplicate would share the position.
        let descriptor = try open(directory, ".", O_CLOEXEC | O_RDONLY | O_DIRECTORY)
        guard let stream = unsafe fdopendir(descriptor) else {
            let code = errno
            close(descriptor)
            throw error(code, "list", name)
        }
        // Closes the descriptor too.
        defer { unsafe _ = closedir(stream) }
        var names: [String] = []
        let nameOffset = MemoryLayout<dirent>.offset(of: \.d_name) ?? 0
        while true {
            errno = 0
            guard let entry = unsafe readdir(stream) else {
                let code = errno
                if code != 0 { throw error(code, "list", name) }
                return names.sorted()
            }
            // The entry ends its name with a zero byte; it is read in place and copied.
            let start = unsafe UnsafeRawPointer(entry).advanced(by: nameOffset)
                .assumingMemoryBound(to: CChar.self)
            if let text = unsafe String(validatingCString: start), text != ".", text != ".." {
                names.append(text)
            }
        }
    }

    // MARK: Locks

    static func lock(
        _ descriptor: Int32,
        _ byte: UInt64,
        _ kind: LockKind,
        _ wait: Bool,
        _ name: String
    ) throws(IOError) {
        let at = Int64(try position(byte, 1, "lock", name))
        let code = varve_lock_byte(descriptor, at, kind == .exclusive ? 1 : 0, wait ? 1 : 0)
        if code == EAGAIN || code == EACCES { throw held(name) }
        if code != 0 { throw error(code, "lock", name) }
    }

    static func unlock(_ descriptor: Int32, _ byte: UInt64) {
        // Taken at this byte, so it is a position.
        varve_unlock_byte(descriptor, Int64(byte))
    }

    /// Whether another opening has a lock on one of the bytes; nil where the system cannot tell.
    static func isLockedByOther(_ descriptor: Int32, _ bytes: Range<UInt64>) -> Bool? {
        // Lock bytes are few and near the beginning of their file.
        let code = varve_bytes_locked(
            descriptor,
            Int64(clamping: bytes.lowerBound),
            Int64(clamping: bytes.count)
        )
        return code < 0 ? nil : code != 0
    }

    static func held(_ name: String) -> IOError {
        IOError(
            kind: .held,
            code: EAGAIN,
            operation: "lock",
            name: name,
            reason: "held by another process or opening"
        )
    }

    // MARK: Errors

    static let missingCode = ENOENT
    static let existsCode = EEXIST

    /// An error from an errno.
    static func error(
        _ code: Int32,
        _ operation: String,
        _ name: String,
        _ offset: UInt64? = nil
    ) -> IOError {
        let kind: IOError.Kind
        switch code {
        case ENOSPC, EDQUOT, EFBIG: kind = .noSpace
        case EACCES, EPERM, EROFS: kind = .permission
        case ENOENT: kind = .missing
        case EEXIST, ENOTEMPTY: kind = .exists
        case ELOOP, EISDIR, ENXIO, ENOTDIR: kind = .notRegular
        default: kind = .other
        }
        // The message is copied before any other call can change it.
        let reason = unsafe strerror(code).map { unsafe String(cString: $0) } ?? "error"
        return IOError(
            kind: kind,
            code: code,
            operation: operation,
            name: name,
            offset: offset,
            reason: reason
        )
    }

    /// An offset that the system can address, with `count` bytes after it.
    private static func position(
        _ offset: UInt64,
        _ count: Int,
        _ operation: String,
        _ name: String
    ) throws(IOError) -> off_t {
        guard let start = off_t(exactly: offset), count >= 0,
            !start.addingReportingOverflow(off_t(count)).overflow
        else { throw error(EINVAL, operation, name, offset) }
        return start
    }
}
