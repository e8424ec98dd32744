// What a reader and a writer make of each end of a log: the table "Verdicts" of Format.md, row by
// row, made of bytes and tried on the library and on tools/read-store.py.

import Foundation
import Testing
import VarveBase
import VarveEngine
import VarveFormat
import VarveInspection
import VarveRecords
import VarveTesting

/// A store's file at one moment, and its frames.
private struct Log {
    var bytes: [UInt8]
    let seed: UInt64

    init(_ bytes: [UInt8]) throws {
        self.bytes = bytes
        seed = try FileHeader(decoding: Array(bytes[..<FileHeader.length])).fileSeed
    }

    var dataEnd: Int { (bytes.lastIndex { $0 != 0 } ?? 0) + 1 }

    /// Every frame from the beginning on, as long as one follows the other.
    var frames: [(offset: Int, header: FrameHeader)] {
        var frames: [(Int, FrameHeader)] = []
        var offset = 8192
        while let header = try? FrameHeader(
            decoding: bytes,
            at: offset,
            offset: FileOffset(UInt64(offset)),
            seed: seed
        ) {
            frames.append((offset, header))
            offset += Int(header.frameLength)
        }
        return frames
    }

    /// The n-th frame of a kind from the end: 0 is the last.
    func last(_ kind: FrameKind, _ back: Int = 0) throws -> (offset: Int, header: FrameHeader) {
        let found = frames.filter { $0.header.kind == kind }
        try #require(found.count > back)
        return found[found.count - 1 - back]
    }

    mutating func flip(_ place: Int) { bytes[place] ^= 0x20 }

    mutating func zero(_ range: Range<Int>) {
        for place in range { bytes[place] = 0 }
    }

    /// The first whole 512-byte sector of a frame.
    mutating func loseSector(of frame: (offset: Int, header: FrameHeader)) throws {
        let start = (frame.offset + FrameHeader.length + 511) / 512 * 512
        try #require(start + 512 <= frame.offset + Int(frame.header.storedLength))
        zero(start..<(start + 512))
    }

    /// Sets `flags` of the record of the newest DELTA, with all hashes.
    mutating func setFeatures(_ features: UInt32) throws {
        let (offset, header) = try last(.delta)
        let payload = (offset + FrameHeader.length)..<(offset + 32 + Int(header.storedLength))
        for index in 0..<4 {
            bytes[payload.lowerBound + 84 + index] = UInt8(features >> UInt32(8 * index) & 0xFF)
        }
        var changed = header
        changed.payloadHash = FrameHash.xxh64(bytes, range: payload, seed: seed)
        var writer = ByteWriter(capacity: FrameHeader.length)
        changed.append(to: &writer, at: FileOffset(UInt64(offset)), seed: seed)
        bytes.replaceSubrange(offset..<(offset + FrameHeader.length), with: writer.bytes)
    }
}

/// The file of one store at moments of its life. Commit 1 is the schema; 2 to 4 are saves.
private struct Moments {
    /// Three saves, each synced, and nothing behind them.
    let unproven: Log
    /// The same, with a checkpoint behind them.
    let checkpointed: Log
    /// The same, closed.
    let closed: Log
    /// The third save and a fourth one without a sync between them.
    let batch: Log
    /// Compacted and not closed.
    let compacted: Log

    static let schema = SchemaDescription(
        version: 5,
        entities: [
            EntityDescription(
                name: "Item",
                attributes: [
                    AttributeDescription(name: "data", type: .data, isOptional: true),
                    AttributeDescription(name: "large", type: .data, isOptional: true),
                ]
            )
        ]
    )

    private static func open(_ place: TemporaryStore, seed: UInt64) throws -> RecordStore {
        var options = RecordOptions()
        options.engine.environment = FixedEnvironment(seed: seed)
        options.engine.maintenance = .inline
        options.engine.tailRoomMin = 4 << 10
        options.engine.tailRoomMax = 4 << 10
        options.engine.tailReserve = 0
        options.engine.retention = .all
        options.engine.compactsAutomatically = false
        return try RecordStore.open(
            .file(directory: place.folder.path, name: "test"),
            schema: schema,
            options: options
        )
    }

    init() throws {
        let place = try TemporaryStore()
        var random = SeededRandom(seed: 12)
        var store = try Self.open(place, seed: 11)
        let item = try #require(try store.schema.entity(named: "Item")).id
        _ = store.allocateObjectIDs(10)
        func save(_ id: UInt64, _ durability: Durability = .full) throws {
            let values = [
                ColumnValue(ColumnID(0), .data(random.bytes(1900))),
                ColumnValue(ColumnID(1), .data(random.bytes(3000))),
            ]
            _ = try store.write(durability: durability) {
                try $0.insert(item, ObjectID(id), values)
            }
        }
        func log() throws -> Log { try Log([UInt8](try Data(contentsOf: place.url))) }
        for id in UInt64(1)...3 { try save(id) }
        unproven = try log()
        try store.engine.checkpoint()
        checkpointed = try log()
        try store.close()
        closed = try log()
        store = try Self.open(place, seed: 13)
        for id in UInt64(4)...5 { try save(id, .relaxed) }
        batch = try log()
        _ = try store.compact()
        compacted = try log()
        try store.close()
    }
}

/// A row of the table, made of bytes.
private struct Situation {
    let name: String
    var log: Log
    /// The number of the commit that `newest` means.
    var newest: UInt64 = 4
    /// The number of the commit that `before` means.
    var before: UInt64 = 3

    init(_ name: String, _ log: Log, _ change: (inout Log) throws -> Void = { _ in }) throws {
        self.name = name
        self.log = log
        try change(&self.log)
    }
}

@Suite struct VerdictTests {
    /// The table, by its first column.
    private var table: [String: (reader: String, writer: String)] {
        get throws {
            let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .deletingLastPathComponent().deletingLastPathComponent()
            let text = try String(contentsOf: root.appending(path: "Format.md"), encoding: .utf8)
            let lines = text.components(separatedBy: "\n")
            let start = try #require(lines.firstIndex(of: "### Verdicts"))
            let rows = lines[start...].drop { !$0.hasPrefix("|") }.prefix { $0.hasPrefix("|") }
            var table: [String: (String, String)] = [:]
            for row in rows.dropFirst(2) {
                let cells = row.split(separator: "|").map {
                    $0.trimmingCharacters(in: .whitespaces)
                }
                try #require(cells.count == 4, "\(row)")
                table[cells[0]] = (cells[2], cells[3])
            }
            return table
        }
    }

    /// Every row, some of them in more than one way.
    private func situations() throws -> [Situation] {
        let moments = try Moments()
        let unproven = moments.unproven
        var nameless = try Situation("nameless", moments.compacted) { log in
            // Whoever gives the name writes a second CLOSE behind the one with the epoch 0.
            log.bytes.removeSubrange(try log.last(.close).offset...)
        }
        nameless.newest = 6
        var batch = try Situation("torn batch", moments.batch) {
            try $0.loseSector(of: try $0.last(.delta, 1))
        }
        (batch.newest, batch.before) = (6, 4)
        let value = try unproven.last(.value)
        let delta = try unproven.last(.delta)
        return [
            try Situation("closed", moments.closed),
            try Situation("unproven", unproven),
            try Situation("checkpointed", moments.checkpointed),
            nameless,
            try Situation("garbage", unproven) { log in
                let end = (log.dataEnd + 7) & ~7
                log.bytes.replaceSubrange(end..<(end + 5), with: [0x46, 0x56, 1, 2, 0x90])
            },
            try Situation("torn", unproven) { try $0.loseSector(of: delta) },
            try Situation("torn", unproven) { try $0.loseSector(of: value) },
            try Situation("cut", unproven) { $0.zero((delta.offset + 32)..<$0.bytes.count) },
            batch,
            try Situation("torn checkpoint", moments.checkpointed) {
                $0.flip(try $0.last(.checkpoint).offset + 40)
            },
            try Situation("rotten payload", unproven) { $0.flip(delta.offset + 200) },
            try Situation("rotten payload", unproven) { $0.flip(value.offset + 200) },
            try Situation("rotten header", unproven) { $0.flip(delta.offset + 12) },
            try Situation("wrong below", moments.closed) {
                $0.flip(try $0.last(.checkpoint).offset + 40)
            },
            try Situation("missed", unproven) { log in
                let missed = try log.last(.delta, 1)
                let later = try log.last(.value)
                log.zero(missed.offset..<(missed.offset + Int(missed.header.frameLength)))
                log.zero((later.offset + 32)..<log.bytes.count)
            },
            try Situation("reader's bit", unproven) { try $0.setFeatures(0x8000) },
            try Situation("writer's bit", unproven) { try $0.setFeatures(0x1_0000) },
            try Situation("nothing", unproven) { $0.zero(8192..<$0.bytes.count) },
        ]
    }

    private static func options(_ mode: StoreOpenMode) -> RecordOptions {
        var options = RecordOptions()
        options.mode = mode
        options.engine.maintenance = .inline
        return options
    }

    private static func put(_ situation: Situation) throws -> TemporaryStore {
        let place = try TemporaryStore()
        try Data(situation.log.bytes).write(to: place.url)
        return place
    }

    private static func open(_ place: TemporaryStore, _ mode: StoreOpenMode) throws -> RecordStore {
        try RecordStore.openAsStored(
            .file(directory: place.folder.path, name: "test"),
            options: options(mode)
        )
    }

    @Test func everyRowIsTried() throws {
        #expect(Set(try situations().map(\.name)) == Set(try table.keys))
    }

    @Test func aReaderShowsWhatTheTableSays() throws {
        let table = try table
        for situation in try situations() {
            let expected = try #require(table[situation.name]).reader
            let place = try Self.put(situation)
            var found = "refuses"
            do {
                let store = try Self.open(place, .readOnly)
                let damage = store.engine.damage
                switch try store.snapshot().number.rawValue {
                case _ where damage?.code == .damaged: found = "refuses"
                case situation.newest where damage == nil: found = "newest"
                case situation.before where damage == nil: found = "before"
                case situation.before: found = "before, and says so"
                case let number: found = "commit \(number), \(String(describing: damage))"
                }
                try store.close()
            } catch RecordError.engine(let error) {
                #expect([.damaged, .formatTooNew].contains(error.code), "\(situation.name)")
            }
            #expect(found == expected, "\(situation.name)")
        }
    }

    @Test func aWriterDoesWhatTheTableSays() throws {
        let table = try table
        for situation in try situations() {
            let expected = try #require(table[situation.name]).writer
            let place = try Self.put(situation)
            let end = situation.log.dataEnd
            var found: [String] = []
            do {
                let store = try Self.open(place, .existing)
                let settles = store.engine.statistics.settledCommits > 0
                let item = try #require(try store.schema.entity(named: "Item")).id
                let id = store.allocateObjectIDs(1)
                _ = try store.write { try $0.insert(item, id, []) }
                try store.close()
                let observer = try LogObserver.open(
                    .file(directory: place.folder.path, name: "test")
                )
                let before = try FileHeader(decoding: Array(situation.log.bytes[..<4096]))
                let page = (end + 4095) & ~4095
                if observer.header.generation > before.generation {
                    found = ["writes the file once more (\"Generations\")"]
                } else if try observer.frame(at: FileOffset(UInt64(page))) != nil {
                    found = ["goes on at a multiple of 4,096"] + (settles ? ["settles"] : [])
                } else if try observer.frame(at: FileOffset(UInt64(end))) != nil, !settles {
                    found = ["goes on after it"]
                }
                #expect(try StoreObserver.open(place.url.path).verify(level: .full).isSound)
            } catch RecordError.engine(let error) {
                let codes: [EngineError.Code] = [.damaged, .newestCommitDamaged, .formatTooNew]
                #expect(codes.contains(error.code), "\(situation.name)")
                found = ["refuses"]
                #expect([UInt8](try Data(contentsOf: place.url)) == situation.log.bytes)
            }
            #expect(found.contains(expected), "\(situation.name): \(found)")
        }
    }

    @Test(.enabled("python3 is missing: the stranger's reader is not run") { python != nil })
    func theStrangersReaderShowsWhatTheTableSays() throws {
        let table = try table
        for situation in try situations() {
            let expected = try #require(table[situation.name]).reader
            let place = try Self.put(situation)
            let (lines, status) = try readStore([place.url.path], mayComplain: true)
            let commit = lines.first { $0.hasPrefix("commit ") }
            let found: String
            switch (status, commit) {
            case (1, nil): found = "refuses"
            case (0, "commit \(situation.newest) schema 5"): found = "newest"
            case (0, "commit \(situation.before) schema 5"): found = "before"
            case (2, "commit \(situation.before) schema 5"): found = "before, and says so"
            default: found = "\(status) \(commit ?? "")"
            }
            #expect(found == expected, "\(situation.name)")
        }
    }
}
