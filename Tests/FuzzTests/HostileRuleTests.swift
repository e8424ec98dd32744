// The rules for hostile files, each with a test of its number: docs/Security.md lists them.

import Foundation
import Testing
import VarveInspection
import VarveTesting

@Suite("Hostile files") struct HostileRuleTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
    private static let edges: [UInt64] = [0, 1 << 31, 1 << 32, 1 << 62, 1 << 63, .max]

    private func seed(_ name: String) throws -> SeedStore {
        try #require(SeedStore.all.first { $0.name == name })
    }

    private func changed(_ name: String, _ change: (inout LogParts) -> Void) throws -> [UInt8] {
        var log = try #require(LogParts(try seed(name).bytes))
        change(&log)
        return log.assembled(compresses: false)
    }

    private func header(_ adjust: (inout [UInt8]) -> Void) throws {
        var writer = ByteWriter()
        FrameHeader(
            kind: .delta,
            flags: [],
            storedLength: 100,
            rawLength: 100,
            previousCommit: FileOffset(8192),
            payloadHash: 1
        ).append(to: &writer, at: FileOffset(16384), seed: 9)
        var bytes = writer.bytes
        adjust(&bytes)
        for index in 12..<16 { bytes[index] = 0 }
        let hash = FrameHash.xxh64(bytes, seed: 9 ^ 16384)
        for index in 0..<4 {
            bytes[12 + index] = UInt8(truncatingIfNeeded: hash >> UInt64(index * 8))
        }
        _ = try FrameHeader(decoding: bytes, at: 0, offset: FileOffset(16384), seed: 9)
    }

    @Test("S1: nothing is built unchecked") func nothingIsBuiltUnchecked() throws {
        for name in ["Package.swift", "tools/Package.swift", "tools/fuzz/Package.swift"] {
            let text = try String(contentsOf: Self.root.appending(path: name), encoding: .utf8)
            #expect(!text.contains("Ounchecked"))
        }
    }

    @Test("S2: numbers at which something ends are answers, never traps", arguments: 0..<12)
    func numbersAtWhichSomethingEnds(field: Int) throws {
        for edge in Self.edges {
            let bytes = try changed("open-checkpoint") { log in
                let last = log.parts.count - 1
                LogParts.put(edge, in: &log.parts[last].payload, at: field * 8)
            }
            try StoreChecks.run(on: bytes)
        }
    }

    @Test("S3: what a length promises is there before anything is allocated")
    func lengthsAreBounded() throws {
        try header { _ in }
        for field in [4, 8] {
            #expect(throws: FormatError.self) {
                try header { for index in 0..<4 { $0[field + index] = 0xFF } }
            }
        }
        // A page of 65,535 entries in a few bytes; a list of roots that cannot fit.
        let page = PageHeader(tree: TreeID(16), level: 0, count: .max, commit: CommitNumber(1))
        #expect(throws: FormatError.self) {
            _ = try PageBody(
                decoding: [0, 1, 1, 1],
                range: 0..<4,
                header: page,
                offset: FileOffset(1 << 20)
            )
        }
        var roots = ByteReader([0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 1, 2])
        #expect(throws: FormatError.self) {
            _ = try TreeRoots.decode(&roots, offset: FileOffset(1 << 20))
        }
    }

    @Test("S4: a page that two parents name is damage, and a scan of it ends")
    func aPageThatTwoParentsNameIsDamage() throws {
        let bytes = try changed("three-levels") { log in
            for part in log.parts.indices where log.parts[part].isPage {
                let payload = log.parts[part].payload
                guard payload[4] > 0, log.redirected.isEmpty else { continue }
                let pages = log.parts.indices.filter { log.parts[$0].isPage && $0 < part }
                guard let first = pages.last, pages.count > 1 else { continue }
                log.redirected[log.parts[pages[pages.count - 2]].oldHash] = first
            }
        }
        #expect(try !StoreChecks.look(StoreChecks.disk(bytes)))
        try StoreChecks.run(on: bytes)
    }

    @Test("S5: nothing names what lies above it") func nothingNamesWhatLiesAboveIt() throws {
        #expect(throws: FormatError.self) { try header { $0[17] = 0x40 } }
        var writer = ByteWriter()
        PageAddress(offset: FileOffset(16384), storedLength: 10, payloadHash: 1)
            .append(to: &writer)
        for (limit, fits) in [(16384 + 56, true), (16384 + 48, false), (16384, false)] {
            var reader = ByteReader(writer.bytes)
            let address = try? PageAddress(from: &reader, below: FileOffset(UInt64(limit)))
            #expect((address != nil) == fits)
        }
        // bodyStart, checkpoint and durableEnd of a record.
        for field in [16, 32, 40] {
            var record = CommitRecord().encoded()
            LogParts.put(16392, in: &record, at: field)
            #expect(throws: FormatError.self) {
                _ = try CommitRecord.decode(record, offset: FileOffset(16384))
            }
        }
    }

    @Test("S6: a chain that is broken at its bottom is followed to its end once a commit")
    func chainsEnd() throws {
        let maker = try SeedMaker()
        for _ in 0..<40 { try maker.items(1) }
        var log = try #require(LogParts(maker.bytes))
        maker.disk.kill()
        // All frames say that nothing below them is proven, and the first one is gone.
        for index in log.parts.indices where log.parts[index].isCommit {
            LogParts.put(8192, in: &log.parts[index].payload, at: 40)
        }
        log.parts.removeFirst()
        let disk = StoreChecks.disk(log.assembled(compresses: false))
        _ = try StoreChecks.look(disk)
        #expect(disk.reads < 40 * 40 * 20)
    }

    /// The full check walked the chain by `previousCommit` only, and a store whose older commits
    /// cannot be found was sound until somebody wrote it once more.
    @Test("S6: a commit that names another checkpoint than the newest before it is told")
    func checkpointsAreTheNewest() throws {
        for name in ["open-checkpoint", "three-levels"] {
            let count = try #require(LogParts(try seed(name).bytes)).parts.count
            for index in 0..<count {
                var isCommit = false
                let bytes = try changed(name) { log in
                    isCommit = log.parts[index].isCommit
                    guard isCommit else { return }
                    let named = ByteReader.load64(log.parts[index].payload, 32)
                    LogParts.put(named ^ 2, in: &log.parts[index].payload, at: 32)
                }
                #expect(try StoreChecks.look(StoreChecks.disk(bytes)) != isCommit, "frame \(index)")
            }
        }
    }

    @Test("S8: what has no meaning is refused") func whatHasNoMeaningIsRefused() throws {
        for kind in [UInt8(0), 7, 255] {
            #expect(throws: FormatError.self) { try header { $0[2] = kind } }
        }
        for flag in [UInt8(32), 64, 128] {
            #expect(throws: FormatError.self) { try header { $0[3] = flag } }
        }
        for (level, layout) in [(0, 3), (1, 1), (1, 2), (0, 255)] as [(UInt8, UInt8)] {
            let page = PageHeader(
                tree: TreeID(16),
                level: level,
                layout: layout,
                count: 1,
                commit: CommitNumber(1)
            ).encoded()
            #expect(throws: FormatError.self) {
                _ = try PageHeader(decoding: page, range: 0..<page.count, place: "")
            }
        }
        for tag in [UInt8(0), 6, 255] {
            var operation = ByteReader([tag, 1, 1, 1])
            #expect(throws: FormatError.self) { _ = try DeltaOps.decodeOperation(&operation) }
            var place = ByteReader([1, tag == 6 ? 4 : tag, 1, 1, 1, 1, 1, 1, 1, 1])
            #expect(throws: FormatError.self) {
                _ = try DeltaOps.decodePlaces(&place, below: FileOffset(1 << 20))
            }
        }
        #expect(throws: FormatError.self) { _ = try RowView([1, 21]) }
    }

    @Test("S9: a lock file that lies costs no byte of the log", arguments: 0..<10)
    func aLockFileThatLies(field: Int) throws {
        let store = try #require(SeedStore.all.firstIndex { $0.name == "open-delta" })
        for number in Self.edges + [8192, 8200] {
            var input: [UInt8] = [UInt8(store), 1, 6]
            LogParts.append(number, to: &input)
            try TailTarget.run(input + [UInt8(field)])
        }
    }

    @Test("S10: looking at any store writes nothing") func lookingWritesNothing() throws {
        for seed in SeedStore.all {
            let disk = StoreChecks.disk(seed.bytes)
            _ = try StoreChecks.look(disk)
            #expect(disk.calls == 0, "\(seed.name)")
        }
    }

    /// Found by `open-fixed`: such a store was called sound, since no commit of it can be shown.
    @Test("A schema that cannot be read is damage") func aSchemaThatCannotBeRead() throws {
        let bytes = try changed("types") { log in
            for index in log.parts.indices where log.parts[index].isPage {
                let payload = log.parts[index].payload
                guard
                    let front = try? PageHeader(
                        decoding: payload,
                        range: 0..<payload.count,
                        place: ""
                    ), front.tree == .catalog,
                    let body = try? PageBody(
                        decoding: payload,
                        range: PageHeader.length..<payload.count,
                        header: front,
                        offset: FileOffset(.max)
                    )
                else { continue }
                for value in body.values { log.parts[index].payload[value.lowerBound] = 99 }
            }
        }
        let observer = try StoreObserver.open(StoreChecks.disk(bytes).location())
        let report = try observer.verify(level: .full)
        #expect(report.problems.map(\.subject).contains("newest commit"))
        #expect(observer.damage != nil)
    }

    /// Found by `open-fixed`: whoever wanted to write read these roots, verify did not.
    @Test("Roots that an unproven TREE replaces are looked at by nobody")
    func rootsThatNobodyNeeds() throws {
        let maker = try SeedMaker { $0.deltaBytesMax = 100 }
        try maker.items(8)
        var log = try #require(LogParts(maker.bytes))
        maker.disk.kill()
        log.parts[0].payload.removeLast()
        let disk = StoreChecks.disk(log.assembled(compresses: false))
        let observer = try StoreObserver.open(disk.location())
        let isSound = try observer.verify(level: .full).isSound
        let store = try? RecordStore.openAsStored(disk.location(), options: StoreChecks.options())
        #expect((store != nil) == isSound)
        try StoreChecks.run(on: log.assembled(compresses: false))
    }

    /// Found by `open-fixed`: the commit behind it counted to what no record may say, and the store
    /// with that commit did not open again.
    @Test("Counters of a commit that are at their end", arguments: [0, 8, 9])
    func countersAtTheirEnd(field: Int) throws {
        for seed in ["types", "history"] {
            let bytes = try changed(seed) { log in
                // The last part is a commit; number, live bytes, object IDs.
                let last = log.parts.count - 1
                LogParts.put((1 << 62) - 1, in: &log.parts[last].payload, at: field * 8)
            }
            try StoreChecks.run(on: bytes)
        }
    }

    /// Found with `open-fixed`, behind a row whose ID two entities had.
    @Test("A counter of object IDs that is below a row's is told, and recovered")
    func aCounterBelowARow() throws {
        let bytes = try changed("types") { log in
            // The tenth field of a commit's record.
            LogParts.put(1, in: &log.parts[log.parts.count - 1].payload, at: 9 * 8)
        }
        let observer = try StoreObserver.open(StoreChecks.disk(bytes).location())
        let report = try observer.verify(level: .full)
        let told = report.problems.filter { $0.message.contains("would be given twice") }
        #expect(!told.isEmpty && told.count == report.problems.count)
        let target = SimulatedDisk()
        _ = try observer.salvage(to: target.location("Fixed"))
        #expect(try StoreObserver.open(target.location("Fixed")).verify(level: .full).isSound)
        try StoreChecks.run(on: bytes)
    }

    @Test("A row whose object ID cannot be is lost with a word")
    func anObjectIDThatCannotBe() throws {
        var changedPages = 0
        let bytes = try changed("types") { log in
            for index in log.parts.indices where log.parts[index].isPage {
                let payload = log.parts[index].payload
                guard
                    let front = try? PageHeader(
                        decoding: payload,
                        range: 0..<payload.count,
                        place: ""
                    ), front.level == 0, front.tree.rawValue >= 16,
                    let body = try? PageBody(
                        decoding: payload,
                        range: PageHeader.length..<payload.count,
                        header: front,
                        offset: FileOffset(.max)
                    ), body.values.contains(where: { !$0.isEmpty }), body.prefix.count >= 6
                else { continue }
                // The first byte of all keys of a leaf of rows: 2^62 and something.
                log.parts[index].payload[body.prefix.lowerBound] = 0x40
                changedPages += 1
            }
        }
        #expect(changedPages > 0)
        let observer = try StoreObserver.open(StoreChecks.disk(bytes).location())
        let target = SimulatedDisk()
        let report = try observer.salvage(to: target.location("Fixed"))
        let lost = report.lostRows.filter { $0.reason.contains("2^62") }
        #expect(!lost.isEmpty)
        #expect(try StoreObserver.open(target.location("Fixed")).verify(level: .full).isSound)
        try StoreChecks.run(on: bytes)
    }

    @Test("S12: only a blob's exact name is one") func onlyABlobsExactNameIsOne() throws {
        let name = String(repeating: "0a", count: 32)
        #expect(BlobDigest(hexText: name)?.hexText == name)
        for other in [
            name.uppercased(), String(name.dropLast()), name + "0", "../" + name.dropFirst(3),
            " " + name.dropFirst(), "0x" + name.dropFirst(2), "",
        ] {
            #expect(BlobDigest(hexText: other) == nil, "\(other)")
        }
    }

    @Test("S14: a store that others may write is not written")
    func aStoreThatOthersMayWriteIsNotWritten() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "varve-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let file = folder.appending(path: "test.varve")
        try Data(try seed("tree").bytes).write(to: file)
        let location = StoreLocation.file(directory: folder.path, name: "test")
        func open(_ options: RecordOptions) throws(RecordError) {
            let store = try RecordStore.openAsStored(location, options: options)
            try store.close()
        }
        for rights in [0o620, 0o602, 0o666] {
            try FileManager.default.setAttributes(
                [.posixPermissions: rights],
                ofItemAtPath: file.path
            )
            let error = #expect(throws: RecordError.self) { try open(StoreChecks.options()) }
            #expect(error?.engineCode == .permission, "\(String(describing: error))")
            try open(StoreChecks.options(.readOnly))
            var allows = StoreChecks.options()
            allows.engine.allowsForeignWriters = true
            try open(allows)
        }
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file.path)
        try open(StoreChecks.options())
    }

    @Test("S16: encrypted frames are refused until there are some")
    func encryptedFramesAreRefused() {
        #expect(throws: FormatError.self) { try header { $0[3] = FrameFlags.encrypted.rawValue } }
    }

    @Test("S18: bytes that mean nothing are zero") func bytesThatMeanNothingAreZero() throws {
        for seed in SeedStore.all where ["types", "large-values", "history"].contains(seed.name) {
            let log = try #require(LogParts(seed.bytes))
            for part in log.parts {
                let end = Int(part.oldOffset + 32 + part.oldStored)
                #expect(seed.bytes[end..<(Int(part.oldEnd) - 8)].allSatisfy { $0 == 0 })
            }
            for copy in [0, 4096] {
                let unused = (copy + 137)..<(copy + 4088)
                #expect(seed.bytes[unused].allSatisfy { $0 == 0 })
            }
        }
    }

    @Test("S19: errors tell no stored value") func errorsTellNoStoredValue() throws {
        let secret = "hush-hush"
        let maker = try SeedMaker()
        try maker.put("Item", (1...8).map { ($0, [("text", .text("\(secret) \($0)"))]) })
        try maker.put("Group", [(20, [("name", .text(secret))])])
        try maker.store.close()
        let bytes = maker.bytes
        maker.disk.kill()
        let log = try #require(LogParts(bytes))
        var random = SeededRandom(seed: 1)
        var told = 0
        for _ in 0..<150 {
            var log = log
            let part = Int(random.next() % UInt64(log.parts.count))
            let at = Int(random.next() % UInt64(log.parts[part].payload.count))
            log.parts[part].payload[at] ^= 1 << UInt8(random.next() % 8)
            let disk = StoreChecks.disk(log.assembled(compresses: false))
            var messages: [String] = []
            do {
                let observer = try StoreObserver.open(disk.location())
                messages += try observer.verify(level: .full).problems.map(\.message)
                let store = try RecordStore.openAsStored(
                    disk.location(),
                    options: StoreChecks.options()
                )
                try StoreChecks.scan(store)
                _ = try store.write { transaction in
                    for entity in transaction.schema.entities {
                        for id in try transaction.fetchIDs(RecordQuery(entity: entity.id)) {
                            try transaction.delete(entity.id, id)
                        }
                    }
                }
            } catch {
                messages.append("\(error)")
            }
            told += messages.count
            for message in messages {
                #expect(!message.contains("hush"), "\(message), seed \(random.seed)")
            }
        }
        #expect(told > 20)
    }

    @Test("S20: limits that are published are the code's") func limitsAreTheCodes() throws {
        let text = try String(
            contentsOf: Self.root.appending(path: "docs/Security.md"),
            encoding: .utf8
        )
        for (name, value) in [
            ("Columns of an entity", RowCoding.columnsMax),
            ("Bytes of a key", DeltaOps.keyBytesMax),
            ("Bytes of an author's name", CommitRecord.authorBytesMax),
            ("Bytes of a text or data, or of a blob in the log", EngineOptions.valueBytesMax),
            ("Levels of a tree", Int(TreeRoots.levelMax) + 1),
        ] {
            #expect(text.contains("| \(name) | \(value) |"), "\(name)")
        }
    }
}
