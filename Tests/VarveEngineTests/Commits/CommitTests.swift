// Commits, snapshots and what opening says of files that cannot be opened.

import Testing
import VarveBase
import VarveFormat
import VarveIO

@testable import VarveEngine

@Suite(.verified) struct CommitTests {
    private let entity = TestDelegate.entity

    @Test func whatWasCommittedIsThereAfterReopening() throws {
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory)
        let first = engine.allocateObjectIDs(3)
        let (_, commit) = try engine.write(author: "me") { transaction in
            for index in 0..<3 {
                try transaction.insert(
                    entity,
                    ObjectID(first.rawValue + UInt64(index)),
                    row: row(Int64(index), "text \(index)")
                )
            }
        }
        #expect(commit == CommitNumber(2))
        let before = try engine.contents()
        #expect(before.count == 3)
        try engine.close()
        let again = try Engine.openTest(directory, mode: .existing)
        #expect(try again.contents() == before)
        #expect(again.snapshot().number == CommitNumber(2))
        // Handed-out IDs are not handed out again.
        #expect(again.allocateObjectIDs(1).rawValue == first.rawValue + 3)
    }

    @Test func theFirstObjectOfANewStoreIsNumberOne() throws {
        let engine = try Engine.openTest(MemoryDirectory())
        #expect(engine.allocateObjectIDs(1) == ObjectID(1))
    }

    @Test func aTransactionThatThrowsLeavesNothing() throws {
        struct Stop: Error {}
        let engine = try Engine.openTest(MemoryDirectory())
        #expect(throws: Stop.self) {
            _ = try engine.write { transaction in
                try transaction.insert(entity, ObjectID(1), row: row(1, "a"))
                throw Stop()
            }
        }
        #expect(try engine.contents().isEmpty)
        let (_, commit) = try engine.write { _ in }
        #expect(commit == nil)
        #expect(engine.snapshot().number == CommitNumber(1))
    }

    @Test func aSnapshotSeesItsCommitForEver() throws {
        let engine = try Engine.openTest(MemoryDirectory())
        _ = try engine.write { try $0.insert(entity, ObjectID(1), row: row(1, "a")) }
        let snapshot = engine.snapshot()
        _ = try engine.write { try $0.update(entity, ObjectID(1), patch: patch(2)) }
        try engine.checkpoint()
        _ = try engine.write { try $0.delete(entity, ObjectID(1)) }
        let seen = try snapshot.row(TestDelegate.rows, ObjectID(1))
        #expect(seen?.version == CommitNumber(2))
        #expect(try seen.map { try RowView($0.bytes).value(ColumnID(0)) } == .int(1))
        #expect(engine.statistics.pinnedSnapshots == 1)
        #expect(engine.snapshot().count(TestDelegate.rows) == 0)
    }

    @Test func largeTextsLeaveTheirRowAndComeBack() throws {
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory)
        let text = String(repeating: "größer ", count: 4000)
        _ = try engine.write { try $0.insert(entity, ObjectID(1), row: row(1, text)) }
        let changed = text + "!"
        _ = try engine.write { try $0.update(entity, ObjectID(1), patch: patch(nil, changed)) }
        let contents = try engine.contents()
        #expect(contents[1]?.contains(changed) == true)
        // Without a clean close: a replay finds the same.
        let copy = try directory.copyForCrash()
        #expect(try Engine.openTest(copy, mode: .existing).contents() == contents)
        try engine.close()
        #expect(try Engine.openTest(directory, mode: .existing).contents() == contents)
    }

    @Test func aBigTransactionIsWrittenAsTreeAndSmallOnesAsDelta() throws {
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory)
        _ = try engine.write { transaction in
            for index in 1...20_000 {
                try transaction.insert(
                    entity,
                    ObjectID(UInt64(index)),
                    row: row(Int64(index * 7919 % 20_011), "text number \(index)")
                )
            }
        }
        _ = try engine.write { try $0.delete(entity, ObjectID(17)) }
        #expect(engine.statistics.treeCommits == 2)
        #expect(engine.statistics.deltaCommits == 1)
        let contents = try engine.contents()
        #expect(contents.count == 19_999)
        #expect(
            try Engine.openTest(directory.copyForCrash(), mode: .existing).contents() == contents
        )
    }

    @Test func secondWriterIsToldThatTheStoreIsBusy() throws {
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory)
        let error = #expect(throws: EngineError.self) { try Engine.openTest(directory) }
        #expect(error?.code == .busy)
        let reader = try Engine.openTest(directory, mode: .readOnly)
        let refused = #expect(throws: EngineError.self) { try reader.write { _ in } }
        #expect(refused?.code == .readOnly)
        try engine.close()
        _ = try Engine.openTest(directory)
    }

    @Test func whatIsNoStoreIsToldSo() throws {
        let directory = MemoryDirectory()
        let file = try directory.openFile("test.varve", mode: .createExclusive)
        try file.write([UInt8]("SQLite format 3".utf8), at: FileOffset(0))
        let error = #expect(throws: EngineError.self) { try Engine.openTest(directory) }
        #expect(error?.code == .notAStore)
        let missing = #expect(throws: EngineError.self) {
            try Engine.openTest(MemoryDirectory(), mode: .existing)
        }
        #expect(missing?.code == .missing)
        let folder = #expect(throws: EngineError.self) {
            try Engine.open(
                .file(directory: "/no/such/folder", name: "x"),
                delegate: TestDelegate()
            )
        }
        #expect(folder?.code == .missingDirectory)
    }

    @Test func aNewerFormatIsToldSo() throws {
        let directory = MemoryDirectory()
        var header = FileHeader(
            storeID: UUIDValue(high: 1, low: 2),
            fileID: UUIDValue(high: 3, low: 4),
            generation: 1,
            createdMicroseconds: 0,
            creator: "tomorrow"
        )
        header.readerNeeds = 99
        let file = try directory.openFile("test.varve", mode: .createExclusive)
        try file.write(header.encoded() + header.encoded(), at: FileOffset(0))
        let error = #expect(throws: EngineError.self) { try Engine.openTest(directory) }
        #expect(error?.code == .formatTooNew)
    }

    /// Whoever chooses an ID himself, as a recovery does, has it for good.
    @Test func anIDThatTheCallerChoseIsNotHandedOutAgain() throws {
        let directory = MemoryDirectory()
        var engine = try Engine.openTest(directory)
        let first = engine.allocateObjectIDs(1).rawValue
        for object in [first + 500, first + 20] {
            _ = try engine.write { transaction in
                try transaction.insert(TestDelegate.entity, ObjectID(object), row: row(1, "text"))
            }
        }
        #expect(engine.allocateObjectIDs(1).rawValue == first + 501)
        _ = try engine.write { transaction in
            try transaction.insert(
                TestDelegate.entity,
                ObjectID(first + 510),
                row: row(1, "text")
            )
            // The next object of the same transaction.
            #expect(engine.allocateObjectIDs(1).rawValue == first + 511)
        }
        try engine.close()
        engine = try Engine.openTest(directory)
        #expect(engine.allocateObjectIDs(1).rawValue > first + 511)
        try engine.close()
    }

    /// A process that set IDs aside for itself, between its turns with others.
    @Test func anIDAtTheEndOfWhatWasSetAsideDoesNotUseItUp() {
        let objectIDs = ObjectIDs(next: 100)
        let nobodys = objectIDs.setAside()
        #expect(nobodys == 100 + ObjectIDs.lease)
        objectIDs.tookOver(ObjectID(nobodys - 1))
        let next = objectIDs.take(1)
        #expect(next >= nobodys && objectIDs.highWater > next)
        // Somebody else's: it is behind what is handed out here, and not handed out by the next.
        let far = objectIDs.highWater + 1_000
        objectIDs.tookOver(ObjectID(far))
        #expect(objectIDs.take(1) == next + 1)
        #expect(objectIDs.highWater == far + 1)
    }
}

extension MemoryDirectory {
    /// The files as they are now, in a directory of their own: what a crash leaves.
    func copyForCrash() throws -> MemoryDirectory {
        let copy = MemoryDirectory()
        for name in try list() where name.hasSuffix(".varve") {
            let source = try openFile(name, mode: .read)
            let target = try copy.openFile(name, mode: .createExclusive)
            let size = try source.size()
            try target.write(
                try source.read(at: FileOffset(0), count: Int(size)),
                at: FileOffset(0)
            )
        }
        return copy
    }
}
