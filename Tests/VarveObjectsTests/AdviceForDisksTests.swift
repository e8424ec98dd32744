// What an error of a disk, or of others who write, advises is done, and helps.

import Foundation
import Testing
import VarveBase
import VarveObjects
import VarveTesting

@testable import VarveObjects

@Suite(.verified) struct AdviceForDisksTests {
    private func open(
        _ disk: SimulatedDisk,
        _ options: ContainerOptions = ContainerOptions()
    ) throws -> PersistentContainer {
        try PersistentContainer.openNow(on: disk, schema: TestSchema.self, options: options)
    }

    /// Nothing that makes the store's file longer finds room, or a sector that can be written.
    func stop(_ disk: SimulatedDisk, _ code: Int32) throws {
        let number = try #require(disk.state.file("test.varve"))
        let length = disk.state.files[number]?.cache.count ?? 0
        disk.setFault(.init(first: 1, count: .max, code: code, writesPast: length))
    }

    /// Too long for the room ahead, and not to be made shorter.
    static let long: String = {
        var random = SeededRandom(seed: 5)
        return random.bytes(6 << 20).map { String($0, radix: 32) }.joined()
    }()

    /// What a fresh context reads.
    private func titles(_ container: PersistentContainer) throws -> [String] {
        let context = container.newContext()
        return try context.fetch(Item.all).map(\.title)
    }

    // MARK: Writing

    @Test func aFullDisk() throws {
        let disk = SimulatedDisk()
        let container = try open(disk)
        do {
            let context = container.newContext()
            try stop(disk, SimulatedDisk.noSpace)
            let item = Item(in: context)
            item.title = Self.long
            for _ in 0..<2 {
                advised(.diskFull, "Make room on the disk, then do it again: edits stand") {
                    try context.save()
                }
                let isAsItWas = item.isInserted && item.title == Self.long
                #expect(isAsItWas)
            }
            advised(.diskFull, "Make room on the disk, then do it again") {
                try context.batchInsert(Item.self, count: 1) { row, _ in row.title = Self.long }
            }
            disk.setFault(nil)
            try context.save()
            try context.batchInsert(Item.self, count: 1) { row, _ in row.title = Self.long }
            let stored = try titles(container)
            #expect(stored.count == 2 && stored.allSatisfy { $0 == Self.long })
        }
        try container.closeNow()
    }

    @Test func aDiskThatIsTooFullForABlob() throws {
        let disk = SimulatedDisk()
        let container = try open(disk)
        do {
            let context = container.newContext()
            let bytes = Data(repeating: 7, count: 50_000)
            disk.setFault(.init(first: 1, count: .max, code: SimulatedDisk.noSpace))
            advised(.diskFull, "Make room on the disk, then do it again") {
                _ = try context.makeBlob(bytes, for: Picture.columns.data)
            }
            disk.setFault(nil)
            let picture = Picture(in: context)
            picture.data = try context.makeBlob(bytes, for: Picture.columns.data)
            try context.save()
            #expect(try picture.data?.readAll() == bytes)
        }
        try container.closeNow()
    }

    @Test func aDiskThatIsTooFullForANewStore() throws {
        let disk = SimulatedDisk()
        disk.setFault(.init(first: 1, count: .max, code: SimulatedDisk.noSpace))
        advised(.diskFull, "Make room on the disk, then open the store again") {
            _ = try open(disk)
        }
        disk.setFault(nil)
        try open(disk).closeNow()
    }

    /// What a killed process left has to be made sure of, and there is no room for it.
    @Test func aDiskThatIsTooFullToOpen() throws {
        let disk = SimulatedDisk()
        let before = try open(disk)
        try makeItems(3, in: before)
        disk.kill()
        disk.setFault(.init(first: 1, count: .max, code: SimulatedDisk.noSpace))
        advised(.diskFull, "or with isReadOnly to read") { try open(disk).closeNow() }
        let reader = try open(disk, ContainerOptions(isReadOnly: true))
        #expect(try reader.newContext().count(Item.all) == 3)
        try reader.closeNow()
        disk.setFault(nil)
        let container = try open(disk)
        try makeItems(1, in: container)
        #expect(try container.newContext().count(Item.all) == 4)
        try container.closeNow()
        withExtendedLifetime(before) {}
    }

    @Test func aWriteThatFailsBeforeItsCommit() throws {
        let disk = SimulatedDisk()
        let container = try open(disk)
        do {
            let context = container.newContext()
            try stop(disk, SimulatedDisk.inputOutput)
            let item = Item(in: context)
            item.title = Self.long
            advised(.ioFailed, "Try again. Edits stand") { try context.save() }
            let isAsItWas = item.isInserted && item.title == Self.long
            #expect(isAsItWas)
            disk.setFault(nil)
            try context.save()
            let isStored = try titles(container) == [Self.long]
            #expect(isStored)
        }
        try container.closeNow()
    }

    @Test func anOpeningThatFails() throws {
        let disk = SimulatedDisk()
        try open(disk).closeNow()
        disk.setReadFault(.init(first: 1, count: .max, kind: .fails(SimulatedDisk.inputOutput)))
        advised(.ioFailed, "Check the disk and the path, then open the store again") {
            _ = try open(disk)
        }
        disk.setReadFault(nil)
        try open(disk).closeNow()
    }

    // MARK: Reading

    @Test func readsThatFail() throws {
        let disk = SimulatedDisk()
        let small = ContainerOptions(unreferencedRowBytes: 0, nodeCacheBytes: 0)
        var container = try open(disk, small)
        let ids = try makeItems(3, in: container)
        let bytes = Data(repeating: 7, count: 50_000)
        do {
            let context = container.newContext()
            Picture(in: context).data = try context.makeBlob(bytes, for: Picture.columns.data)
            try context.save()
        }
        try container.closeNow()
        container = try open(disk, small)
        do {
            let context = container.newContext()
            let item = try context.object(with: ids[0])
            let data = try #require(try context.fetch(Picture.all).first?.data)
            func fail() {
                disk.setReadFault(
                    .init(
                        first: disk.reads + 1,
                        count: disk.readFailures + 100,
                        kind: .fails(SimulatedDisk.inputOutput)
                    )
                )
            }
            let advice = "what could not be read is read anew"
            fail()
            advised(.ioFailed, advice) { _ = try context.fetch(Item.all) }
            advised(.ioFailed, advice) { try context.load(item) }
            advised(.ioFailed, advice) { _ = try data.readAll() }
            #expect(item.title == "" && item.readFailure?.code == .ioFailed)
            disk.setReadFault(nil)
            #expect(try context.fetch(Item.all).count == 3)
            #expect(item.title == "item 0" && item.readFailure == nil)
            #expect(try data.readAll() == bytes)
            // The getter gave a value that was never stored: no save before the app knows.
            item.title = "edited"
            advised(.contextFailed, "acknowledgeReadFailures()") { try context.save() }
            context.rollback()
            item.title = "edited"
            try context.save()
        }
        try container.closeNow()
    }

    // MARK: Not knowing

    /// The sync of a commit fails, and what the cache has of it arrives or not.
    @Test(arguments: [false, true]) func anOutcomeThatIsNotKnown(closes: Bool) throws {
        var answers: Set<CommitOutcome> = []
        for seed in 1...24 {
            var random = SeededRandom(seed: UInt64(seed))
            var disk = SimulatedDisk()
            let container = try open(disk)
            var commit: CommitIdentity?
            do {
                let context = container.newContext()
                let item = Item(in: context)
                item.title = "before"
                try context.save()
                item.title = "after"
                disk.record()
                // The write of the commit, or the sync behind it.
                disk.setFault(.init(first: disk.calls + 1 + seed % 2))
                let error = advised(.outcomeUnknown, "call outcome(of:) with this error's commit") {
                    try context.save()
                }
                disk.setFault(nil)
                #expect(error?.outcome == .unknown)
                commit = error?.commit
                // "until then it can be read", and the edits stand.
                #expect(item.isUpdated && item.title == "after")
                #expect(try titles(container) == ["before"])
                let later = advised(.outcomeUnknown, "Close the store and open it again to write") {
                    try context.save()
                }
                #expect(later?.outcome == .nothingSaved && later?.commit == nil)
                #expect(try container.newContext().count(Item.all) == 1)
            }
            if closes {
                // "Close the store": whatever the close says, it is closed.
                try? container.closeNow()
            } else {
                // A sync that failed may have brought all of it to the disk, or none.
                let states = disk.takeRecording().map(\.0).suffix(2)
                let state = try #require(states.randomElement(using: &random))
                disk = SimulatedDisk.powerCut(state, &random)
            }
            let again = try open(disk)
            let answer = try again.outcome(of: try #require(commit))
            answers.insert(answer)
            do {
                let context = again.newContext()
                let item = try #require(try context.fetch(Item.all).first)
                #expect(item.title == (answer == .present ? "after" : "before"), "seed \(seed)")
                if answer == .absent {
                    item.title = "after"
                    try context.save()
                }
                #expect(try titles(again) == ["after"])
            }
            try again.closeNow()
            withExtendedLifetime(container) {}
        }
        #expect(!answers.contains(.unknown) && answers.count == (closes ? 1 : 2), "\(answers)")
    }

    // MARK: Others

    /// Where locks are whole files, one process writes from opening to closing.
    @Test func aStoreThatSomebodyElseHasOpen() throws {
        let disk = SimulatedDisk()
        let first = try open(disk)
        try makeItems(2, in: first)
        advised(.busy, "open the store again when that is done, or now with isReadOnly") {
            _ = try open(disk)
        }
        let reader = try open(disk, ContainerOptions(isReadOnly: true))
        #expect(try reader.newContext().count(Item.all) == 2)
        try reader.closeNow()
        try first.closeNow()
        let second = try open(disk)
        try makeItems(1, in: second)
        #expect(try second.newContext().count(Item.all) == 3)
        try second.closeNow()
    }

    /// Elsewhere they take turns, and one turn takes too long.
    @Test func somebodyWhoWritesForTooLong() throws {
        let folder = try TemporaryFolder()
        var impatient = ContainerOptions()
        impatient.turnMilliseconds = 20
        // The one that waits for little opens while it is alone, and closes so.
        let second = try folder.open(impatient)
        let first = try folder.open()
        do {
            let (context, other) = (first.newContext(), second.newContext())
            let item = Item(in: other)
            item.title = "second"
            try context.batchInsert(Item.self, count: 1) { row, _ in
                row.title = "first"
                for _ in 0..<2 {
                    advised(.busy, "Edits stand: save again when that is done") { try other.save() }
                    #expect(item.isInserted && item.title == "second")
                }
                advised(.busy, "open the store again when that is done, or now with isReadOnly") {
                    _ = try folder.open(impatient)
                }
                let reader = try folder.open(ContainerOptions(isReadOnly: true))
                #expect(try reader.newContext().count(Item.all) == 0)
                try reader.closeNow()
            }
            // On a busy machine a turn may take longer to come than it waits: save again, for as
            // long together as a save waits by itself.
            for _ in 0..<500 where other.hasChanges {
                do { try other.save() } catch StoreError.Code.busy {}
            }
            #expect(!other.hasChanges)
            try folder.open().closeNow()
            #expect(try Set(titles(first)) == ["first", "second"])
        }
        try first.closeNow()
        try second.closeNow()
    }
}
