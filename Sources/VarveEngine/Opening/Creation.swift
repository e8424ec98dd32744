// Making a store: two headers and a checkpoint without roots.
//
// Invariants
// - A store that is being made has no name of its own until it is whole and on disk.
// - A process that has the store alone removes what a making that did not end has left: files whose
//   whole name is one that we give. Other files in the folder belong to others and stay.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension Engine {
    static func create(
        _ name: String,
        _ names: DirectoryNames,
        _ options: EngineOptions
    ) throws(EngineError) {
        let content = firstBytes(options)
        let directory = names.directory
        let temporary = temporaryName(name, options.environment)
        try io { () throws(IOError) in
            let file = try directory.openFile(temporary, mode: .createExclusive)
            defer { file.close() }
            try file.write(content, at: FileOffset(0))
            try file.syncAll()
            let mark = names.mark
            try directory.rename(temporary, to: name + fileSuffix, replacing: false)
            do throws(IOError) {
                try names.sync(since: mark)
            } catch {
                // A later sync that succeeds would say nothing of this name.
                try? directory.remove(name + fileSuffix)
                throw error
            }
        }
    }

    /// Both copies of a new store's header, and a CKPT of no trees.
    private static func firstBytes(_ options: EngineOptions) -> [UInt8] {
        let environment = options.environment
        let random = environment.randomBytes(32)
        func id(_ at: Int) -> UUIDValue {
            var words: [UInt64] = [0, 0]
            for index in 0..<16 {
                words[index / 8] = words[index / 8] << 8 | UInt64(random[at + index])
            }
            return UUIDValue(high: words[0], low: words[1])
        }
        let header = FileHeader(
            storeID: options.newStoreID ?? id(0),
            fileID: id(16),
            generation: 1,
            createdMicroseconds: environment.wallClockMicroseconds(),
            creator: options.creator
        )
        var bytes = ByteWriter(capacity: 16 << 10)
        bytes.raw(header.encoded())
        bytes.raw(header.encoded())
        var record = CommitRecord()
        record.bodyStart = FileHeader.logStart
        record.bodyHash = header.fileSeed
        record.durableEnd = FileHeader.logStart
        record.objectIDHighWater = min(
            options.newStoreFirstObjectID,
            CommitRecord.countersEnd - 1
        )
        record.epoch = environment.randomNumber()
        record.clockMicroseconds = environment.wallClockMicroseconds()
        var roots = ByteWriter()
        TreeRoots.append([], to: &roots)
        _ = Frame.append(
            to: &bytes,
            kind: .checkpoint,
            front: record.encoded(),
            body: roots.bytes,
            compresses: false,
            previousCommit: FileOffset(0),
            at: FileHeader.logStart,
            seed: header.fileSeed
        )
        return bytes.bytes
    }

    /// Files of a creation that did not end: ours by name and by the lock that we hold.
    static func removeLeftovers(
        _ name: String,
        in directory: any StoreDirectory
    ) throws(EngineError) {
        try io { () throws(IOError) in
            for entry in try directory.list() where isTemporary(entry, of: name) {
                do throws(IOError) { try directory.remove(entry) } catch {
                    // We make no folders of such names.
                    let isFolder = (try? directory.directory(entry, create: false)) != nil
                    if !isFolder { throw error }
                }
            }
        }
    }

    /// Whether a name is one that `temporaryName` gives, the whole of it, by its bytes: a store may
    /// have a name that begins so.
    static func isTemporary(_ entry: String, of name: String) -> Bool {
        let prefix = (name + newSuffix).utf8
        return entry.utf8.count == prefix.count + 16 && entry.utf8.starts(with: prefix)
            && entry.utf8.dropFirst(prefix.count).allSatisfy {
                (0x30...0x39).contains($0) || (0x61...0x66).contains($0)
            }
    }
}
