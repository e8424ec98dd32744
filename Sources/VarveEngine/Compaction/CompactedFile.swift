// The file that a compaction writes, under a temporary name until it is whole.
//
// Invariants
// - It has the store's identity, a file ID and a generation of its own.
// - It is synced every few megabytes, so that no sync is a long one and none starves readers.
// - Zeros below `preparedEnd` are written and synced with the rest: room for the savers to come.
// - Whoever gives it up removes its name; what a dead process left, the next opening removes.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

struct CompactedFile {
    static let flushBytes = 1 << 20
    static let syncBytes: UInt64 = 8 << 20

    let directory: any StoreDirectory
    let name: String
    let generation: Generation
    var log: LogWriter
    private var syncedEnd = FileHeader.logStart
    private(set) var preparedEnd = FileHeader.logStart

    init(
        beside old: Generation,
        in directory: any StoreDirectory,
        store: String,
        options: EngineOptions,
        budget: NodeBudget,
        counters: EngineCounters
    ) throws(EngineError) {
        let environment = options.environment
        let version =
            options.packsLeaves ? FileHeader.editedVersion : FileHeader.currentVersion
        let header = FileHeader(
            formatVersion: version,
            readerNeeds: version,
            writerNeeds: version,
            storeID: old.header.storeID,
            fileID: UUIDValue(
                high: environment.randomNumber(),
                low: environment.randomNumber()
            ),
            generation: old.header.generation + 1,
            createdMicroseconds: environment.wallClockMicroseconds(),
            creator: options.creator
        )
        let name = Engine.temporaryName(store, environment)
        let file = try Engine.io { () throws(IOError) in
            let file = try directory.openFile(name, mode: .createExclusive)
            do throws(IOError) {
                try file.write(header.encoded() + header.encoded(), at: FileOffset(0))
            } catch {
                file.close()
                try? directory.remove(name)
                throw error
            }
            return file
        }
        self.directory = directory
        self.name = name
        generation = Generation(
            file: file,
            header: header,
            budget: budget,
            counters: counters,
            environment: environment
        )
        log = LogWriter(beginning: file, seed: header.fileSeed, options, counters)
    }

    /// Writes what gathered when it is much, and syncs now and then.
    mutating func relieve() throws(EngineError) {
        guard log.bufferedBytes > Self.flushBytes else { return }
        try flush()
        if log.end.rawValue - syncedEnd.rawValue > Self.syncBytes { try sync() }
    }

    /// Writes what gathered, so that it can be read.
    mutating func flush() throws(EngineError) {
        do throws(IOError) { try log.flush() } catch { throw .io(error) }
    }

    mutating func sync() throws(EngineError) {
        try flush()
        do throws(IOError) { try log.sync() } catch { throw .io(error) }
        syncedEnd = log.end
    }

    /// Zeros after the log, so that no saver has to write them first. They are there after the
    /// next sync.
    mutating func prepareRoom() throws(EngineError) {
        try flush()
        let end = log.end.rawValue
        let wanted = log.room.wanted(behind: end)
        guard preparedEnd.rawValue < end + wanted / 2 else { return }
        let target = (end + wanted + 4095) & ~4095
        var position = max(preparedEnd.rawValue, end)
        while position < target {
            let zeros = [UInt8](repeating: 0, count: Int(min(target - position, 128 << 10)))
            try Engine.io { () throws(IOError) in
                try generation.file.write(zeros, at: FileOffset(position))
            }
            position += UInt64(zeros.count)
        }
        preparedEnd = FileOffset(target)
    }

    /// Copies a value of another file; its bytes are checked on the way.
    mutating func copy(
        _ place: ValuePlace,
        from source: LogReader
    ) throws(EngineError) -> ValuePlace {
        let frame = try source.frame(place.address, kind: .value)
        let front = Array(frame.bytes[frame.payload.prefix(ValueHeader.length)])
        let body: [UInt8]
        do throws(FormatError) {
            _ = try ValueHeader(decoding: front, range: 0..<front.count, place: "value")
            let (bytes, range) = try Frame.body(
                of: frame.bytes,
                payload: frame.payload,
                header: frame.header,
                frontLength: ValueHeader.length,
                place: FormatPlace("value", frame.offset)
            )
            body = Array(bytes[range])
        } catch {
            throw .damaged(error, place: frame.offset)
        }
        let address = log.appendBody(
            .value,
            front: front,
            body: body,
            compresses: frame.header.flags.contains(.compressed)
        )
        try relieve()
        return ValuePlace(address: address, length: place.length)
    }

    /// Gives the file up.
    func remove() {
        generation.file.close()
        try? directory.remove(name)
    }
}

extension Engine {
    /// A name under which a store's file is made: not a store yet.
    static func temporaryName(_ store: String, _ environment: any Environment) -> String {
        let digits = String(environment.randomNumber(), radix: 16)
        return store + newSuffix + String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// The store's name without ".varve".
    var storeName: String { String(fileName.dropLast(Self.fileSuffix.count)) }
}
