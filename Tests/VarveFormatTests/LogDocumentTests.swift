// Format.md's chapters on the log, held against what the code writes.

import Testing
import VarveBase
import VarveIO
import VarveTesting

@testable import VarveEngine
@testable import VarveFormat

@Suite struct LogDocumentTests {
    private let document: FormatDocument

    init() throws { document = try FormatDocument() }

    /// The value of each field as the document lays it out, little-endian, up to 8 bytes of it.
    /// Also checks that the fields follow each other without a gap and fill `bytes`.
    private func fields(_ table: String, of bytes: [UInt8]) throws -> [String: UInt64] {
        var end = 0
        var values: [String: UInt64] = [:]
        for row in try document.table(table).rows {
            let at = Int(try #require(FormatDocument.number(row["At"] ?? "")))
            let size = Int(try #require(FormatDocument.number(row["Size"] ?? "")))
            #expect(at == end, "\(table): a gap at \(at)")
            end = at + size
            let part = bytes[at..<min(end, at + 8)]
            values[row["Field"] ?? ""] = part.reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
        #expect(end == bytes.count, "\(table) has \(end) bytes")
        return values
    }

    private let header = FileHeader(
        formatVersion: 1,
        readerNeeds: 2,
        writerNeeds: 3,
        storeID: UUIDValue(high: 4, low: 5),
        fileID: UUIDValue(high: 6, low: 7),
        generation: 8,
        createdMicroseconds: 9,
        creator: "ab"
    )

    @Test func theFileHeader() throws {
        let bytes = header.encoded()
        let fields = try fields("File header fields", of: bytes)
        #expect(fields["formatVersion"] == 1 && fields["readerNeeds"] == 2)
        #expect(fields["writerNeeds"] == 3 && fields["zero"] == 0 && fields["zeros"] == 0)
        #expect(fields["storeID"] == UInt64(4).byteSwapped)
        #expect(fields["fileID"] == UInt64(6).byteSwapped)
        #expect(fields["generation"] == 8 && fields["createdMicroseconds"] == 9)
        #expect(fields["creatorLength"] == 2 && fields["creator"] == 0x6261)
        #expect(fields["hash"] == FrameHash.xxh64(bytes, range: 0..<4088))
        #expect(header.fileSeed == FrameHash.xxh64(bytes, range: 40..<56))
        #expect(try FileHeader(decoding: bytes) == header)
        let table = try document.table("File header constants")
        let constants = table.rows.reduce(into: [:]) { $0[$1["Name"] ?? ""] = $1["Value"] ?? "" }
        #expect(constants["length"] == "\(FileHeader.length)")
        #expect(constants["logStart"] == "\(FileHeader.logStart.rawValue)")
        #expect(constants["version"] == "\(FileHeader.currentVersion)")
        #expect(constants["packedVersion"] == "\(FileHeader.packedVersion)")
        #expect(constants["editedVersion"] == "\(FileHeader.editedVersion)")
        #expect(try FormatDocument.bytes(constants["magic"] ?? "") == FileHeader.magic)
        #expect(Array(bytes[..<8]) == FileHeader.magic)
    }

    @Test func theLockFile() throws {
        let state = SharedState(
            fileID: UUIDValue(high: 3, low: 4),
            generation: 5,
            number: CommitNumber(6),
            frame: FileOffset(8200),
            durableEnd: FileOffset(8300),
            sequence: 9,
            isComplete: true,
            logEnd: FileOffset(8304),
            preparedEnd: FileOffset(12288),
            nextObjectID: 10,
            process: 11
        )
        let bytes = state.encoded()
        #expect(bytes.count == SharedState.length)
        let fields = try fields("Lock file fields", of: bytes)
        #expect(fields["magic"] == ByteReader.load64(SharedState.magic, 0))
        #expect(fields["version"] == UInt64(SharedState.currentVersion) && fields["flags"] == 1)
        #expect(fields["fileIDHigh"] == 3 && fields["fileIDLow"] == 4)
        #expect(fields["generation"] == 5 && fields["number"] == 6)
        #expect(fields["frame"] == 8200 && fields["durableEnd"] == 8300)
        #expect(fields["sequence"] == 9 && fields["zeros"] == 0)
        #expect(fields["logEnd"] == 8304 && fields["preparedEnd"] == 12288)
        #expect(fields["nextObjectID"] == 10 && fields["process"] == 11)
        #expect(fields["hash"] == FrameHash.xxh64(bytes, range: 0..<120, seed: 0))
        #expect(SharedState(decoding: bytes) == state)
        let locks = try document.table("Lock bytes").rows
        let numbers = [LockByte.writer, LockByte.reading, LockByte.writing, LockByte.next]
        #expect(locks.map { $0["Byte"] } == numbers.map { "\($0)" })
        // Any other byte makes it no shared state.
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 1
            #expect(SharedState(decoding: changed) == nil)
        }
    }

    @Test func frames() throws {
        let seed = header.fileSeed
        let offset = FileOffset(8192)
        var writer = ByteWriter()
        let placed = Frame.append(
            to: &writer,
            kind: .value,
            front: [1, 2, 3],
            body: [4, 5],
            compresses: false,
            previousCommit: FileOffset(4096),
            at: offset,
            seed: seed
        )
        let bytes = writer.bytes
        #expect(bytes.count == 48 && placed.end == FileOffset(8240))
        let fields = try fields("Frame header fields", of: Array(bytes[..<32]))
        let constants = try document.table("Frame constants").numbers()
        #expect(fields["magic"] == constants["magic"])
        #expect(fields["kind"] == 6 && fields["flags"] == 0)
        #expect(fields["storedLength"] == 5 && fields["rawLength"] == 5)
        #expect(fields["previousCommit"] == 4096)
        #expect(fields["payloadHash"] == FrameHash.xxh64([1, 2, 3, 4, 5], seed: seed))
        var blank = Array(bytes[..<32])
        blank.replaceSubrange(12..<16, with: [0, 0, 0, 0])
        let hash = FrameHash.xxh64(blank, seed: seed ^ offset.rawValue)
        #expect(fields["headerHash"] == hash & 0xffff_ffff)
        #expect(Array(bytes[32..<40]) == [1, 2, 3, 4, 5, 0, 0, 0])
        let tail = bytes[40..<48].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        #expect(tail == constants["tailMagic"].map { $0 << 32 | 6 })
        #expect(
            constants == [
                "magic": UInt64(FrameHeader.magic), "tailMagic": UInt64(FrameHeader.tailMagic),
                "headerLength": UInt64(FrameHeader.length),
                "tailLength": UInt64(FrameHeader.tailLength),
                "alignment": FrameHeader.alignment,
                "zerosEnd": UInt64(FrameHeader.zerosEnd),
            ]
        )
        // The same bytes elsewhere are no frame.
        #expect(throws: FormatError.self) {
            try FrameHeader(decoding: bytes, at: 0, offset: FileOffset(8200), seed: seed)
        }
    }

    @Test func framesWithRunsOfZerosAreCompressed() throws {
        for (zeros, isCompressed) in [(255, false), (256, true)] {
            var writer = ByteWriter()
            let body = [UInt8](repeating: 7, count: 99) + [UInt8](repeating: 0, count: zeros) + [9]
            let placed = Frame.append(
                to: &writer,
                kind: .value,
                front: [1],
                body: body,
                compresses: false,
                previousCommit: FileOffset(0),
                at: FileOffset(8192),
                seed: 1
            )
            #expect(placed.header.flags.contains(.compressed) == isCompressed)
            let payload = 32..<(32 + Int(placed.header.storedLength))
            let (bytes, range) = try Frame.body(
                of: writer.bytes,
                payload: payload,
                header: placed.header,
                frontLength: 1,
                place: "test"
            )
            #expect(Array(bytes[range]) == body)
        }
    }

    @Test func kindsFlagsAndTags() throws {
        let names: [FrameKind: String] = [
            .delta: "DELTA", .tree: "TREE", .checkpoint: "CKPT", .close: "CLOSE", .page: "PAGE",
            .value: "VALUE",
        ]
        let kinds = try document.table("Frame kinds")
        #expect(
            try kinds.numbers()
                == Dictionary(
                    uniqueKeysWithValues: FrameKind.allCases.map {
                        (names[$0] ?? "", UInt64($0.rawValue))
                    }
                )
        )
        #expect(
            try kinds.numbers("Name", "Largest payload")
                == Dictionary(
                    uniqueKeysWithValues: FrameKind.allCases.map {
                        (names[$0] ?? "", UInt64($0.payloadBytesMax))
                    }
                )
        )
        #expect(
            try document.table("Frame flags").numbers() == [
                "compressed": UInt64(FrameFlags.compressed.rawValue),
                "carriesChanges": UInt64(FrameFlags.carriesChanges.rawValue),
                "settle": UInt64(FrameFlags.settle.rawValue),
                "encrypted": UInt64(FrameFlags.encrypted.rawValue),
                "stacked": UInt64(FrameFlags.stacked.rawValue),
            ]
        )
        #expect(!FrameFlags.known.contains(.encrypted))
        #expect(
            try document.table("Changes").numbers() == [
                "inserted": UInt64(RowChangeKind.inserted.rawValue),
                "updated": UInt64(RowChangeKind.updated.rawValue),
                "deleted": UInt64(RowChangeKind.deleted.rawValue),
            ]
        )
        #expect(
            try document.table("New places").numbers() == [
                "largeValue": UInt64(NewPlace.largeValueTag),
                "blobFrame": UInt64(NewPlace.blobFrameTag),
                "blobFile": UInt64(NewPlace.blobFileTag),
            ]
        )
        #expect(
            try document.table("Operations").numbers() == [
                "insert": UInt64(DeltaOperation.insertTag),
                "update": UInt64(DeltaOperation.updateTag),
                "delete": UInt64(DeltaOperation.deleteTag),
                "put": UInt64(DeltaOperation.putTag),
                "remove": UInt64(DeltaOperation.removeTag),
            ]
        )
        #expect(
            try document.table("Tree limits").numbers() == [
                "levelMax": UInt64(TreeRoots.levelMax),
                "keyBytesMax": UInt64(DeltaOps.keyBytesMax),
            ]
        )
        #expect(
            try document.table("Engine trees").numbers() == [
                "catalog": UInt64(TreeID.catalog.rawValue), "blobs": UInt64(TreeID.blobs.rawValue),
                "droppedBlobs": UInt64(TreeID.droppedBlobs.rawValue),
                "largeValues": UInt64(TreeID.largeValues.rawValue),
                "firstFree": UInt64(TreeID.firstFree.rawValue),
            ]
        )
        #expect(
            try document.table("Blob places").numbers() == [
                "frame": UInt64(BlobEntry.frameTag), "file": UInt64(BlobEntry.fileTag),
            ]
        )
    }

    @Test func theCounterFile() throws {
        let counters = LiveCounters(
            isClosed: true,
            fileID: UUIDValue(high: 1, low: 2),
            processID: 3,
            openedMicroseconds: 4,
            writtenMicroseconds: 5,
            sequence: 6,
            values: [7, 8]
        )
        let bytes = counters.encoded()
        let fields = try fields("Counter file fields", of: Array(bytes[..<80]))
        #expect(
            fields == [
                "magic": 0x5649_4C45_5652_4156, "version": 1, "state": 2,
                "fileID": UInt64(1).byteSwapped, "process": 3, "openedMicroseconds": 4,
                "writtenMicroseconds": 5, "sequence": 6, "count": 2, "zero": 0, "firstCounter": 7,
            ]
        )
        #expect(bytes.count == 96 && LiveCounters.fixedLength == 72)
        #expect(try LiveCounters(decoding: bytes) == counters)
        let names = try document.table("Counters").rows.map { ($0["Value"], $0["Name"]) }
        #expect(names.map { $0.1 } == LiveCounters.names)
        #expect(names.map { $0.0 } == LiveCounters.names.indices.map { "\($0)" })
    }

    @Test func theCommitRecord() throws {
        var record = CommitRecord()
        record.number = CommitNumber(1)
        record.previousHash = 2
        record.bodyStart = FileOffset(3)
        record.bodyHash = 4
        record.checkpoint = FileOffset(5)
        record.durableEnd = FileOffset(6)
        record.epoch = 7
        record.clockMicroseconds = 8
        record.liveBytes = 9
        record.objectIDHighWater = 10
        record.schemaVersion = 11
        record.operationCount = 13
        record.author = "me"
        record.entityCounts = [.init(entity: EntityID(3), added: 1, changed: 2, deleted: 300)]
        let bytes = record.encoded()
        let fields = try fields("Commit record fields", of: Array(bytes[..<96]))
        #expect(
            fields == [
                "number": 1, "previousHash": 2, "bodyStart": 3, "bodyHash": 4, "checkpoint": 5,
                "durableEnd": 6, "epoch": 7, "clockMicroseconds": 8, "liveBytes": 9,
                "objectIDHighWater": 10, "schemaVersion": 11, "flags": 0, "operationCount": 13,
                "extraLength": UInt64(bytes.count - 96),
            ]
        )
        #expect(Array(bytes[96...]) == [2, 0x6D, 0x65, 1, 3, 1, 2, 0xAC, 0x02])
        let decoded = try CommitRecord.decode(bytes, offset: FileOffset(8192))
        #expect(decoded.record == record && decoded.length == bytes.count)
        record.durableEnd = FileOffset(9000)
        #expect(throws: FormatError.self) {
            try CommitRecord.decode(record.encoded(), offset: FileOffset(8192))
        }
    }

    @Test func frontsOfPagesAndValues() throws {
        let page = PageHeader(tree: TreeID(1), level: 2, count: 3, commit: CommitNumber(4))
        let fields = try fields("Page front fields", of: page.encoded())
        #expect(fields == ["tree": 1, "level": 2, "layout": 0, "count": 3, "commit": 4])
        let value = ValueHeader(
            entity: EntityID(1),
            column: ColumnID(2),
            object: ObjectID(3),
            commit: CommitNumber(4)
        )
        #expect(
            try self.fields("Value front fields", of: value.encoded()) == [
                "entity": 1, "column": 2, "zero": 0, "object": 3, "commit": 4,
            ]
        )
        #expect(ValueHeader.blobEntity == EntityID(65535))
    }

    /// Whoever counts on from an object must not overflow.
    @Test func objectsEndBelowTwoToThe62() throws {
        let end = UInt64(1) << 62
        for (number, isSound) in [(end - 1, true), (end, false), (.max, false)] {
            let object = ObjectID(number)
            for operation in [
                DeltaOperation.insert(entity: EntityID(1), object: object, row: []),
                .update(entity: EntityID(1), object: object, patch: []),
                .delete(entity: EntityID(1), object: object),
            ] {
                var writer = ByteWriter()
                DeltaOps.append(operation, to: &writer)
                var reader = ByteReader(writer.bytes)
                let found = try? DeltaOps.decodeOperation(&reader)
                #expect((found != nil) == isSound, "\(operation)")
            }
            var set = ObjectIDSet([ObjectID(7)])
            set.append(number, through: number)
            let list = ChangedObjects(entity: EntityID(1), kind: .deleted, objects: set)
            var writer = ByteWriter()
            ChangedObjects.append([list], to: &writer)
            var reader = ByteReader(writer.bytes)
            #expect(isSound == ((try? ChangedObjects.decode(&reader, limit: 9)) == [list]))
        }
    }

    /// Random bytes into every decoder of the log: an error or a value, never a trap.
    @Test(arguments: [UInt64(41), 42])
    func hostileBytes(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        for _ in 0..<3000 {
            let bytes = (0..<Int.random(in: 0...300, using: &random)).map { _ in
                Bool.random(using: &random)
                    ? UInt8.random(in: 0...255, using: &random)
                    : UInt8.random(in: 0...3, using: &random)
            }
            var reader = ByteReader(bytes)
            _ = try? TreeRoots.decode(&reader, offset: FileOffset(1 << 40))
            reader = ByteReader(bytes)
            _ = try? ChangedObjects.decode(&reader, limit: 10_000)
            reader = ByteReader(bytes)
            _ = try? DeltaOps.decodePlaces(&reader, below: FileOffset(1 << 40))
            reader = ByteReader(bytes)
            while (try? DeltaOps.decodeOperation(&reader)) != nil {}
            _ = try? CommitRecord.decode(bytes, offset: FileOffset(1 << 40))
            let range = 0..<bytes.count
            if let header = try? PageHeader(decoding: bytes, range: range, place: "") {
                _ = try? PageBody(
                    decoding: bytes,
                    range: min(16, bytes.count)..<bytes.count,
                    header: header,
                    offset: FileOffset(1 << 40)
                )
            }
            _ = try? BlobEntry(decoding: bytes)
            _ = try? FrameHeader(decoding: bytes, at: 0, offset: FileOffset(8192), seed: 1)
        }
    }
}
