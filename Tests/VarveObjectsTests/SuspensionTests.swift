// Suspended containers: which locks are held, what can be read, and what resuming finds.
//
// A second container of the same file stands for another process: its locks belong to openings of
// its own.

import Foundation
import Synchronization
import Testing
import VarveBase

@testable import VarveObjects

@Suite(.verified) struct SuspensionTests {
    #if os(Linux)
    /// Locks of the system on files of a folder, each as the system's list has it.
    private static func locks(in folder: URL) throws -> [String] {
        var inodes: Set<String> = []
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
            let path = folder.appending(path: name).path
            let facts = try FileManager.default.attributesOfItem(atPath: path)
            if let number = facts[.systemFileNumber] as? NSNumber {
                inodes.insert(":\(number.uint64Value)")
            }
        }
        let list = try String(contentsOfFile: "/proc/locks", encoding: .utf8)
        return list.split(separator: "\n").map(String.init).filter { line in
            // 1: OFDLCK ADVISORY READ -1 00:2d:1234 2 2
            line.split(separator: " ").contains { word in
                inodes.contains { word.hasSuffix($0) && word.split(separator: ":").count == 3 }
            }
        }
    }

    /// Descriptors of this process that lead into a folder, with their locks.
    private static func descriptors(in folder: URL) throws -> [(path: String, locks: Int)] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { number in
            let link = "/proc/self/fd/\(number)"
            guard let path = try? FileManager.default.destinationOfSymbolicLink(atPath: link),
                path.hasPrefix(folder.path)
            else { return nil }
            let text = try String(contentsOfFile: "/proc/self/fdinfo/\(number)", encoding: .utf8)
            return (path, text.components(separatedBy: "lock:").count - 1)
        }
    }

    @Test(arguments: [false, true]) func noLockIsHeldWhileSuspended(isReadOnly: Bool) throws {
        let folder = try TemporaryFolder()
        do {
            let maker = try folder.open()
            try makeItems(3, in: maker)
            try maker.closeNow()
        }
        let container = try folder.open(ContainerOptions(isReadOnly: isReadOnly))
        if !isReadOnly { try makeItems(10, in: container) }
        #expect(try !Self.locks(in: folder.url).isEmpty)
        #expect(try Self.descriptors(in: folder.url).contains { $0.locks > 0 })
        for _ in 0..<3 {
            try container.suspendNow()
            #expect(container.isSuspended)
            #expect(try Self.locks(in: folder.url) == [])
            #expect(try !Self.descriptors(in: folder.url).contains { $0.locks > 0 })
            // Twice does nothing; what tries to write takes no lock either.
            try container.suspendNow()
            if !isReadOnly {
                #expect(code { try makeItems(1, in: container) } == .suspended)
                let context = container.newContext()
                let rows = code {
                    _ = try context.batchInsert(Item.self, count: 1) { _, _ in }
                }
                #expect(rows == .suspended)
            }
            #expect(try container.newContext().count(Item.all) >= 3)
            #expect(try Self.locks(in: folder.url) == [])
            try container.resumeNow()
            #expect(!container.isSuspended)
            #expect(try !Self.locks(in: folder.url).isEmpty)
            try container.resumeNow()
        }
        try container.suspendNow()
        // Closing takes none either.
        try container.closeNow()
        #expect(try Self.locks(in: folder.url) == [])
        #expect(code { try container.suspendNow() } == .closed)
        #expect(code { try container.resumeNow() } == .closed)
        let again = try folder.open()
        #expect(try again.newContext().count(Item.all) == (isReadOnly ? 3 : 13))
        try again.closeNow()
    }
    #endif

    @Test(arguments: [false, true]) func editsAndObjectsOutliveIt(isInMemory: Bool) throws {
        let folder = try TemporaryFolder()
        let container = try isInMemory ? memory() : folder.open()
        let ids = try makeItems(300, in: container)
        let context = container.newContext()
        let edited = try context.object(with: ids[0])
        edited.title = "edited"
        let made = Item(in: context)
        made.title = "new"
        let fault = try context.object(with: ids[200])
        container.trimMemory(.everything)
        try container.suspendNow()
        // Reads go on, from the file.
        #expect(fault.title == "item 200")
        #expect(try context.count(Item.all) == 301)
        let later = Item(in: context)
        later.title = "made meanwhile"
        #expect(code { try context.save() } == .suspended)
        #expect(context.hasChanges && edited.title == "edited")
        #expect(context.readFailures.isEmpty)
        try container.resumeNow()
        try context.save()
        #expect(try context.existingObject(with: ids[0]) === edited)
        let other = container.newContext()
        #expect(try other.existingObject(with: ids[0])?.title == "edited")
        #expect(try other.existingObject(with: made.id)?.title == "new")
        #expect(try other.existingObject(with: later.id)?.title == "made meanwhile")
        try container.closeNow()
    }

    /// Others save and compact, so that the store is in another file.
    @Test(arguments: [0, 1, 2]) func whatOthersDidMeanwhileIsThere(compactions: Int) async throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let ids = try makeItems(200, in: container)
        let held = container.newContext()
        let fault = try held.object(with: ids[150])
        let context = container.newContext()
        let edited = try context.object(with: ids[1])
        edited.title = "ours"
        let made = Item(in: context)
        made.title = "ours, new"
        #expect(try held.count(Item.all) == 200)
        try container.suspendNow()
        // The other one is alone: it gives no turn to anybody, and takes IDs that are nobody's.
        let other = try folder.open(ContainerOptions(compactsAutomatically: false))
        var theirs: [Item.ID] = []
        for round in 0...compactions {
            theirs += try makeItems(50, in: other) { item, _ in item.title = "theirs \(round)" }
            if round < compactions { try await other.compact() }
        }
        let change = other.newContext()
        try change.object(with: ids[150]).title = "theirs"
        try change.object(with: ids[1]).number = 7_777
        change.delete(try change.object(with: ids[2]))
        try change.save()
        try other.closeNow()
        // What is made now has an ID that the other did not give.
        let meanwhile = (0..<10).map { _ in Item(in: context) }
        #expect(Set(theirs).isDisjoint(with: meanwhile.map(\.id) + [made.id]))
        // A held commit is what it was, in the file that is no more.
        container.trimMemory(.everything)
        #expect(fault.title == "item 150")
        #expect(try held.count(Item.all) == 200)
        try container.resumeNow()
        #expect(fault.title == "item 150")
        #expect(try held.count(Item.all) == 200)
        held.advance()
        #expect(fault.title == "theirs")
        #expect(try held.count(Item.all) == 199 + theirs.count)
        #expect(edited.title == "ours" && context.hasChanges)
        try context.save(mergePolicy: .objectWinsByProperty)
        #expect(edited.title == "ours" && edited.number == 7_777)
        let fresh = container.newContext()
        #expect(try fresh.count(Item.all) == 199 + theirs.count + 11)
        #expect(try fresh.existingObject(with: ids[2]) == nil)
        try container.closeNow()
    }

    @Test @MainActor func theViewContextFollows() async throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let ids = try makeItems(3, in: container)
        let view = container.viewContext
        let item = try view.object(with: ids[0])
        #expect(item.title == "item 0")
        try await container.suspend()
        let other = try folder.open()
        let change = other.newContext()
        try change.object(with: ids[0]).title = "theirs"
        try change.save()
        #expect(item.title == "item 0")
        try await container.resume()
        for _ in 0..<2_000 where item.title != "theirs" {
            try await Task.sleep(for: .milliseconds(2))
        }
        #expect(item.title == "theirs")
        try other.closeNow()
        try container.closeNow()
    }

    @Test func aReaderComesBackToWhatWasSaved() async throws {
        let folder = try TemporaryFolder()
        let maker = try folder.open()
        try makeItems(5, in: maker)
        let reader = try folder.open(ContainerOptions(isReadOnly: true))
        let context = reader.newContext()
        #expect(try context.count(Item.all) == 5)
        try reader.suspendNow()
        try makeItems(4, in: maker)
        #expect(try reader.newContext().count(Item.all) == 5)
        try reader.resumeNow()
        #expect(try reader.newContext().count(Item.all) == 9)
        #expect(try context.count(Item.all) == 5)
        try reader.suspendNow()
        try makeItems(1, in: maker)
        try await maker.compact()
        try makeItems(1, in: maker)
        try maker.closeNow()
        try reader.resumeNow()
        #expect(try reader.newContext().count(Item.all) == 11)
        context.advance()
        #expect(try context.count(Item.all) == 11)
        try reader.closeNow()
    }

    @Test func compactionsAndBackupsEndBefore() async throws {
        let folder = try TemporaryFolder()
        let container = try folder.open(ContainerOptions(compactsAutomatically: false))
        try makeItems(20_000, in: container)
        let started = AsyncStream.makeStream(of: Void.self)
        let goesOn = DispatchSemaphore(value: 0)
        let compaction = Task {
            try await container.compact { _ in
                started.continuation.yield()
                // Not before the suspension waits for it, or was too late.
                _ = goesOn.wait(timeout: .now() + 0.2)
            }
        }
        for await _ in started.stream { break }
        try await container.suspend()
        goesOn.signal()
        #expect(container.isSuspended)
        do {
            _ = try await compaction.value
        } catch let error as StoreError {
            #expect(error.code == .suspended)
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        #expect(!names.contains { $0.contains("-new-") })
        await #expect(throws: StoreError.self) { try await container.compact() }
        let copy = folder.url.appending(path: "copy.varve")
        do {
            try await container.backup(to: copy)
            Issue.record("a backup while suspended")
        } catch let error as StoreError {
            #expect(error.code == .suspended)
        }
        try container.resumeNow()
        try await container.compact()
        try await container.backup(to: copy)
        try container.closeNow()
    }

    /// A backup was brought to the place meanwhile: the objects here are of another history.
    @Test func aStoreThatWasReplacedIsGone() async throws {
        let folder = try TemporaryFolder()
        let copy = folder.url.appending(path: "copy.varve")
        let container = try folder.open()
        let ids = try makeItems(5, in: container)
        try await container.backup(to: copy)
        try makeItems(5, in: container)
        try container.suspendNow()
        try await PersistentContainer.restore(from: copy, to: folder.store, replacing: true)
        let other = try folder.open()
        try makeItems(1, in: other)
        #expect(code { try container.resumeNow() } == .storeGone)
        #expect(container.isSuspended)
        // What was read can be read, and the store that is there now is not touched.
        #expect(try container.newContext().existingObject(with: ids[0])?.title == "item 0")
        try container.closeNow()
        #expect(try other.newContext().count(Item.all) == 6)
        try other.closeNow()
    }

    @Test func aLockFileThatIsAnotherOneIsToldOf() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        try makeItems(2, in: container)
        try container.suspendNow()
        try FileManager.default.removeItem(at: folder.url.appending(path: "test.varve-lock"))
        #expect(code { try container.resumeNow() } == .ioFailed)
        try container.closeNow()
        let again = try folder.open()
        #expect(try again.newContext().count(Item.all) == 2)
        try again.closeNow()
    }

    /// A blob of an old commit that others have dropped is not damage.
    @Test func aBlobThatOthersSweptIsSaidToBe() async throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let context = container.newContext()
        let picture = Picture(in: context)
        picture.data = try context.makeBlob(
            Data(repeating: 9, count: 50_000),
            for: Picture.columns.data
        )
        try context.save()
        let id = picture.id
        try container.suspendNow()
        let other = try folder.open()
        let change = other.newContext()
        change.delete(try change.object(with: id))
        try change.save()
        change.reset()
        try await other.compact()
        try other.closeNow()
        try container.resumeNow()
        #expect(code { _ = try picture.data?.readAll() } == .blobSwept)
        try container.closeNow()
    }

    @Test func savesOnOtherThreadsEndOrAreRefused() async throws {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        let saved = Shared(0)
        let isOver = Shared(false)
        let savers = (0..<3).map { number in
            Task.detached {
                while !isOver.withLock({ $0 }) {
                    do {
                        try makeItems(1, in: container)
                        saved.withLock { $0 += 1 }
                        // The test needs a thread, too.
                        try await Task.sleep(for: .microseconds(100))
                    } catch let error as StoreError where error.code == .suspended {
                        try await Task.sleep(for: .microseconds(300 + 100 * number))
                    }
                }
            }
        }
        for _ in 0..<25 {
            try await Task.sleep(for: .milliseconds(3))
            try await container.suspend()
            #if os(Linux)
            #expect(try Self.locks(in: folder.url) == [])
            #endif
            let other = try folder.open()
            try makeItems(1, in: other)
            saved.withLock { $0 += 1 }
            try other.closeNow()
            #if os(Linux)
            #expect(try Self.locks(in: folder.url) == [])
            #endif
            try await container.resume()
        }
        isOver.withLock { $0 = true }
        for saver in savers { try await saver.value }
        let count = saved.withLock { $0 }
        #expect(try container.newContext().count(Item.all) == count)
        #expect(count > 25)
        try container.closeNow()
    }
}
