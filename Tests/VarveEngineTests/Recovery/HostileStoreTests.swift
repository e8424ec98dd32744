// Stores whose hashes are right and whose contents are not: errors, never traps.

import Testing
import VarveBase
import VarveFormat
import VarveIO

@testable import VarveEngine

/// Stores whose hashes are right and whose contents lie: errors, never traps.
@Suite(.damagesStores("the files are forged")) struct HostileStoreTests {
    /// A store of pages and one CKPT with the roots that `build` returns.
    private func store(
        _ build: (inout LogWriter) -> [StoredRoot] = { _ in [] },
        _ adjust: (inout CommitRecord) -> Void = { _ in }
    ) throws -> MemoryDirectory {
        let directory = MemoryDirectory()
        try Engine.openTest(directory).close()
        let file = try directory.openFile("test.varve", mode: .readWrite)
        let header = try FileHeader(decoding: file.read(at: FileOffset(0), count: 4096))
        let reader = LogReader(file: file, seed: header.fileSeed)
        let found = try Recovery(scan: LogScan(log: reader, size: file.size())).run()
        var log = LogWriter(
            file: file,
            seed: header.fileSeed,
            options: EngineOptions(),
            counters: EngineCounters(),
            end: found.newest.end,
            durableEnd: found.durableEnd,
            lastCommit: found.proven.offset,
            lastCommitHash: found.proven.header.payloadHash,
            checkpoint: found.base.offset
        )
        let kept = try Replay.roots(of: found.base)
        var record = found.base.record
        let roots = build(&log)
        adjust(&record)
        var body = ByteWriter()
        TreeRoots.append(kept + roots, to: &body)
        log.appendCommit(.checkpoint, flags: [], record: record, body: body.bytes)
        try log.flush()
        try log.sync()
        log.appendCommit(.close, flags: [], record: record, body: [])
        try log.flush()
        try log.sync()
        try log.cutZeros()
        return directory
    }

    private func page(
        _ tree: TreeID,
        level: UInt8 = 0,
        count: Int,
        _ log: inout LogWriter,
        _ body: (inout ByteWriter) -> Void
    ) -> PageAddress {
        var writer = ByteWriter()
        body(&writer)
        let header = PageHeader(
            tree: tree,
            level: level,
            count: UInt16(count),
            commit: CommitNumber(1)
        )
        return log.appendBody(
            .page,
            front: header.encoded(),
            body: writer.bytes,
            compresses: true
        )
    }

    /// A leaf of rows with one-byte columns.
    private func leaf(_ objects: [UInt64], _ log: inout LogWriter) -> PageAddress {
        let rows = objects.map { _ in [1] + row(1, "a") }
        return page(TestDelegate.rows, count: objects.count, &log) { writer in
            writer.count(0)
            for _ in objects { writer.count(8) }
            for row in rows { writer.count(row.count) }
            for object in objects { writer.bigEndian64(object) }
            for row in rows { writer.raw(row) }
        }
    }

    private func useIt(_ directory: MemoryDirectory) throws {
        let engine = try Engine.openTest(directory, mode: .existing) { $0.nodeWeightMax = 512 }
        _ = engine.allocateObjectIDs(1)
        _ = try engine.contents()
        for object in UInt64(1)...40 {
            _ = try engine.write { transaction in
                if try transaction.row(TestDelegate.rows, ObjectID(object)) != nil {
                    try transaction.delete(TestDelegate.entity, ObjectID(object))
                } else {
                    try transaction.insert(
                        TestDelegate.entity,
                        ObjectID(object),
                        row: row(1, "a")
                    )
                }
            }
        }
        try engine.close()
    }

    private func expectDamage(_ directory: MemoryDirectory) {
        let error = #expect(throws: EngineError.self) { try useIt(directory) }
        #expect(error?.code == .damaged, "\(String(describing: error))")
    }

    private static func change(_ object: ObjectID, _ way: Int, _ engine: Engine) throws {
        _ = try engine.write { transaction in
            switch way {
            case 0: try transaction.insert(TestDelegate.entity, object, row: row(1, "a"))
            case 1: try transaction.update(TestDelegate.entity, object, patch: patch(2))
            default: try transaction.delete(TestDelegate.entity, object)
            }
        }
    }

    /// A store whose last ID is used goes on without new objects, and is no damage to the next.
    @Test func theLastObjectIDIsNoDamage() throws {
        for below in [UInt64(1), 2, 1 << 19] {
            let directory = try store(adjust: { record in
                record.objectIDHighWater = CommitRecord.countersEnd - below
            })
            for _ in 0..<3 { try useIt(directory) }
            let engine = try Engine.openTest(directory, mode: .existing)
            let behind = ObjectID(CommitRecord.countersEnd)
            var codes: [EngineError.Code?] = []
            for way in 0..<3 {
                let error = #expect(throws: EngineError.self) {
                    try Self.change(behind, way, engine)
                }
                codes.append(error?.code)
            }
            #expect(codes == [.invalid, .invalid, .invalid])
            _ = try engine.compact()
            try engine.close()
            try useIt(directory)
        }
    }

    @Test func countersAtTheirEndAreDamage() throws {
        try useIt(store())
        expectDamage(try store(adjust: { $0.number = CommitNumber(.max) }))
        expectDamage(try store(adjust: { $0.objectIDHighWater = .max }))
        expectDamage(try store(adjust: { $0.liveBytes = .max }))
    }

    private func store(adjust: (inout CommitRecord) -> Void) throws -> MemoryDirectory {
        try store({ _ in [] }, adjust)
    }

    @Test(arguments: [UInt64(1), 3, 1 << 61, .max])
    func aRowCountThatIsNotTheLeafsIsDamage(rows: UInt64) throws {
        expectDamage(
            try store({ log in
                let address = leaf([1, 2], &log)
                return [
                    StoredRoot(tree: TestDelegate.rows, level: 0, address: address, rows: rows)
                ]
            })
        )
    }

    @Test func aChildsRowCountThatIsNotItsOwnIsDamage() throws {
        expectDamage(
            try store({ log in
                let left = leaf([1, 2, 3], &log)
                let right = leaf([8, 9], &log)
                let root = page(TestDelegate.rows, level: 1, count: 2, &log) { writer in
                    writer.count(0)
                    writer.count(0)
                    writer.count(8)
                    writer.bigEndian64(8)
                    PageChild(address: left, rows: 1).append(to: &writer)
                    PageChild(address: right, rows: 2).append(to: &writer)
                }
                return [StoredRoot(tree: TestDelegate.rows, level: 1, address: root, rows: 3)]
            })
        )
    }

    @Test func leavesThatOverlapAreDamageWhenTheyMeet() throws {
        let directory = try store({ log in
            let left = leaf([1, 2, 9], &log)
            let right = leaf([8, 9], &log)
            let root = page(TestDelegate.rows, level: 1, count: 2, &log) { writer in
                writer.count(0)
                writer.count(0)
                writer.count(8)
                writer.bigEndian64(8)
                PageChild(address: left, rows: 3).append(to: &writer)
                PageChild(address: right, rows: 2).append(to: &writer)
            }
            return [StoredRoot(tree: TestDelegate.rows, level: 1, address: root, rows: 5)]
        })
        let engine = try Engine.openTest(directory, mode: .existing)
        let error = #expect(throws: EngineError.self) {
            try engine.write { try $0.delete(TestDelegate.entity, ObjectID(1)) }
        }
        #expect(error?.code == .damaged)
    }

    /// Found by the fuzzers: the scan gave 1, 2, 9, 8, 9; of a page that hangs in a tree many times
    /// it gave the entries as often.
    @Test(arguments: [true, false]) func aScanMeetsLeavesThatOverlap(isForward: Bool) throws {
        let directory = try store({ log in
            let left = leaf([1, 2, 9], &log)
            let right = leaf([8, 9], &log)
            let root = page(TestDelegate.rows, level: 1, count: 2, &log) { writer in
                writer.count(0)
                writer.count(0)
                writer.count(8)
                writer.bigEndian64(8)
                PageChild(address: left, rows: 3).append(to: &writer)
                PageChild(address: right, rows: 2).append(to: &writer)
            }
            return [StoredRoot(tree: TestDelegate.rows, level: 1, address: root, rows: 5)]
        })
        let engine = try Engine.openTest(directory, mode: .existing)
        var cursor = engine.snapshot().cursor(TestDelegate.rows)
        let error = #expect(throws: EngineError.self) {
            var hasRow = try isForward ? cursor.first() : cursor.last()
            while hasRow { hasRow = try isForward ? cursor.next() : cursor.previous() }
        }
        #expect(error?.code == .damaged)
    }

    @Test func aPageThatHangsInATreeTwiceIsReadOnce() throws {
        let directory = try store({ log in
            let shared = leaf([1, 2, 3], &log)
            let root = page(TestDelegate.rows, level: 1, count: 40, &log) { writer in
                writer.count(0)
                for key in 0..<40 { writer.count(key == 0 ? 0 : 8) }
                for key in UInt64(1)..<40 { writer.bigEndian64(key * 10) }
                for _ in 0..<40 { PageChild(address: shared, rows: 3).append(to: &writer) }
            }
            return [StoredRoot(tree: TestDelegate.rows, level: 1, address: root, rows: 120)]
        })
        let observer = try LogObserver.open(.directory(directory, name: "test"))
        let root = try #require(observer.tail?.roots.last)
        var messages: [String] = []
        try observer.audit(root) { _, error in
            if let error { messages.append(error.message) }
            return true
        }
        #expect(messages.count == 39)
        #expect(messages.allSatisfy { $0.contains("twice") })
    }

    /// Counts of which one alone is no signed number, and counts whose sum is more than a tree has.
    @Test(arguments: [1 << 62, 1 << 63, UInt64.max - 2] as [UInt64])
    func rowCountsThatCannotBeAreDamage(rows: UInt64) throws {
        var address: PageAddress?
        let directory = try store({ log in
            let left = leaf([1, 2, 3], &log)
            let right = leaf([8, 9], &log)
            address = page(TestDelegate.rows, level: 1, count: 2, &log) { writer in
                writer.count(0)
                writer.count(0)
                writer.count(8)
                writer.bigEndian64(8)
                PageChild(address: left, rows: 3).append(to: &writer)
                PageChild(address: right, rows: rows).append(to: &writer)
            }
            return []
        })
        let file = try directory.openFile("test.varve", mode: .read)
        let header = try FileHeader(decoding: file.read(at: FileOffset(0), count: 4096))
        let log = LogReader(file: file, seed: header.fileSeed)
        let frame = try log.frame(try #require(address), kind: .page)
        #expect(throws: FormatError.self) {
            try PageCoding.node(frame, tree: TestDelegate.rows, level: 1)
        }
    }

    /// No log could say that it went.
    @Test func aRowWhoseIDCannotBeIsNotTakenOut() throws {
        let object = ObjectID(1 << 62)
        let directory = try store({ log in
            let address = leaf([1, 2, object.rawValue], &log)
            return [StoredRoot(tree: TestDelegate.rows, level: 0, address: address, rows: 3)]
        })
        let engine = try Engine.openTest(directory, mode: .existing)
        #expect {
            try engine.write { transaction in
                _ = try transaction.deleteIfPresent(TestDelegate.entity, object)
            }
        } throws: { ($0 as? EngineError)?.code == .invalid }
        #expect(try engine.snapshot().contains(TestDelegate.rows, object))
        try engine.close()
    }

    /// 60,000 keys that share a prefix of a megabyte would unfold to 60 GB.
    @Test func aPrefixThatUnfoldsWithoutBoundIsDamage() throws {
        expectDamage(
            try store({ log in
                let count = 60_000
                let address = page(TestDelegate.rows, count: count, &log) { writer in
                    writer.count(1 << 20)
                    writer.zeros(1 << 20)
                    for _ in 0..<count { writer.count(2) }
                    for _ in 0..<count { writer.count(0) }
                    for key in 0..<count {
                        writer.u8(UInt8(key / 256))
                        writer.u8(UInt8(key % 256))
                    }
                }
                return [
                    StoredRoot(
                        tree: TestDelegate.rows,
                        level: 0,
                        address: address,
                        rows: UInt64(count)
                    )
                ]
            })
        )
    }

    /// A tree that is as deep as a tree may be, every node of it about to split.
    @Test func aTreeAtItsDeepestDoesNotGrow() throws {
        let directory = try store({ log in
            var address = leaf((1...20).map { UInt64($0) * 2 }, &log)
            var rows: UInt64 = 20
            for level in UInt8(1)...15 {
                let (child, below) = (address, rows)
                address = page(TestDelegate.rows, level: level, count: 4, &log) { writer in
                    writer.count(0)
                    for key in 0..<4 { writer.count(key == 0 ? 0 : 200) }
                    for key in UInt8(1)...3 { writer.raw([UInt8](repeating: key, count: 200)) }
                    for _ in 0..<4 {
                        PageChild(address: child, rows: below).append(to: &writer)
                    }
                }
                rows *= 4
            }
            return [StoredRoot(tree: TestDelegate.rows, level: 15, address: address, rows: rows)]
        })
        let engine = try Engine.openTest(directory, mode: .existing) { $0.nodeWeightMax = 512 }
        let error = #expect(throws: EngineError.self) {
            try engine.write { transaction in
                for object in UInt64(0)..<20 {
                    try transaction.insert(
                        TestDelegate.entity,
                        ObjectID(object * 2 + 1),
                        row: row(1, "a")
                    )
                }
            }
        }
        #expect(error?.code == .damaged)
    }

    /// Keys whose separators are longer than a node may weigh.
    @Test func longKeysDoNotMakeADeepTree() throws {
        let engine = try Engine.openTest(MemoryDirectory()) { $0.nodeWeightMax = 512 }
        let prefix = [UInt8](repeating: 7, count: 900)
        _ = try engine.write { transaction in
            for number in 0..<400 {
                let key = prefix + [UInt8(number * 37 % 256), UInt8(number * 37 / 256)]
                try transaction.put(TreeID(99), key, [1])
            }
        }
        #expect(engine.snapshot().count(TreeID(99)) == 400)
        #expect(try #require(engine.snapshot().state.trees[TreeID(99)]).level < 12)
        var cursor = engine.snapshot().cursor(TreeID(99))
        var found = 0
        var hasEntry = try cursor.first()
        while hasEntry {
            found += 1
            hasEntry = try cursor.next()
        }
        #expect(found == 400)
    }
}
