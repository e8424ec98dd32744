// The commits after a token: who, when, what, and what reading them costs.

import Foundation
import Testing
import VarveBase
import VarveEngine
import VarveRecords
import VarveTesting

@testable import VarveObjects

@Suite(.verified) struct CommitHistoryTests {
    @Test func `Each commit tells its author, its time and what it changed`() async throws {
        let container = try memory(historyOptions())
        let begin = try container.historyToken
        let (kept, _) = try saveTitle("kept", in: container, author: "first")
        let (gone, _) = try saveTitle("gone", in: container, author: "first")
        let context = container.newContext(author: "second")
        let item = try #require(try context.existingObject(with: kept))
        let tag = Tag(in: context)
        item.title = "changed"
        try context.existingObject(with: gone).map { context.delete($0) }
        try context.save()
        let commits = try container.history(after: begin).commits()
        #expect(commits.map(\.author) == ["first", "first", "second"])
        #expect(commits.map(\.known) == [.exactly, .exactly, .exactly])
        #expect(commits[0].changes(of: Item.self).inserted == [kept])
        let last = try #require(commits.last)
        let changes = last.changes(of: Item.self)
        #expect(changes.inserted.isEmpty && changes.updated == [kept] && changes.deleted == [gone])
        #expect(last.changes(of: Tag.self).inserted == [tag.id])
        #expect(last.changes(of: Folder.self).isEmpty)
        #expect(last.ids(.inserted) == [tag.id.objectID] && last.changedObjects == 3)
        #expect(last.ids(of: Item.self, .deleted) == [gone])
        #expect(abs(last.date.timeIntervalSinceNow) < 60 && !last.changesSchema)
        // What it deleted had these values; what it changed had others.
        let before = try last.valuesBefore(of: [kept, gone])
        #expect(before[gone]?.title == "gone" && before[kept]?.title == "kept")
        #expect(try last.values(of: [kept, gone]).mapValues(\.title) == [kept: "changed"])
        // The same, a page at a time, and from each token on.
        var streamed: [CommitNumber] = []
        for try await commit in try container.history(after: begin) {
            streamed.append(commit.number)
        }
        #expect(streamed == commits.map(\.number))
        for (index, commit) in commits.enumerated() {
            let rest = try container.history(after: commit.token).commits()
            #expect(rest.map(\.number) == streamed.suffix(commits.count - index - 1))
        }
        #expect(try container.history(after: nil).commits().first?.changesSchema == true)
        #expect(try container.history(after: begin).commits(2).count == 2)
    }

    @Test func `Links alone are no change of an object, to-one relationships are`() throws {
        let container = try memory(historyOptions())
        let context = container.newContext()
        let (item, tag, folder) = (Item(in: context), Tag(in: context), Folder(in: context))
        try context.save()
        let token = try container.historyToken
        item.tags.append(tag)
        try context.save()
        item.folder = folder
        try context.save()
        let commits = try container.history(after: token).commits()
        #expect(commits.map(\.changedObjects) == [0, 1])
        #expect(commits[1].changes(of: Item.self).updated == [item.id])
        #expect(try container.history(after: token, changing: [Tag.self]).commits().isEmpty)
    }

    @Test func `Commits are chosen by author and by entity`() throws {
        let container = try memory(historyOptions(checkpoint: 4 << 10))
        let begin = try container.historyToken
        var expected: [(author: String, isTag: Bool)] = []
        for step in 0..<120 {
            let author = ["a", "b", "c"][step % 3]
            let context = container.newContext(author: author)
            let isTag = step % 5 == 0
            if isTag { Tag(in: context).name = "\(step)" } else { Item(in: context).number = step }
            try context.save()
            expected.append((author, isTag))
        }
        func authors(_ history: CommitHistory) throws -> [String] {
            try history.commits().map(\.author)
        }
        #expect(try authors(container.history(after: begin)) == expected.map(\.author))
        #expect(
            try authors(container.history(after: begin, by: ["a", "c"]))
                == expected.map(\.author).filter { $0 != "b" }
        )
        #expect(
            try authors(container.history(after: begin, notBy: ["a"], changing: [Tag.self]))
                == expected.filter { $0.isTag && $0.author != "a" }.map(\.author)
        )
        let both = try container.history(after: begin, changing: [Tag.self, Item.self])
        #expect(try authors(both).count == 120)
        #expect(
            code { _ = try container.history(after: begin, changing: [Node.self]) }
                == .unknownEntity
        )
    }

    @Test func `After a compaction nothing is known of the oldest commit's changes`() throws {
        let container = try memory(historyOptions(.commits(3)))
        let (id, _) = try saveTitle("0", in: container)
        for step in 1...6 { try saveTitle("\(step)", of: id, in: container) }
        _ = try container.store.engine.compact()
        let commits = try container.history(after: nil).commits()
        #expect(commits.map(\.known) == [.unknown, .exactly, .exactly])
        #expect(commits[0].changedObjects == 0 && commits[0].author == "test")
        #expect(code { _ = try commits[0].valuesBefore(of: [id]) } == .commitExpired)
        #expect(try commits[1].valuesBefore(of: [id])[id]?.title == "4")
    }

    @Test func `The end of a long history costs what it is`() throws {
        for count in [1_000, 2_000] {
            let container = try memory(historyOptions(checkpoint: 32 << 10))
            let (id, _) = try saveTitle("0", in: container)
            let context = container.newContext()
            let item = try #require(try context.existingObject(with: id))
            for step in 1...count {
                item.number = step
                try context.save()
            }
            let newest = container.statistics.newestCommit.rawValue
            func cost(_ commits: Int) throws -> Int {
                let token = try container.historyToken(
                    at: CommitNumber(newest - UInt64(commits))
                )
                var cursor = try container.history(after: token).makeCursor()
                var found = 0
                while try cursor.next() != nil { found += 1 }
                #expect(found == commits)
                return cursor.framesRead
            }
            for commits in [5, 10, 20] { #expect(try cost(commits) <= 2 * commits + 6) }
            let checkpoints = Int(container.store.engine.statistics.checkpoints)
            #expect(checkpoints > 2)
            #expect(try cost(count / 2) <= count + 3 * checkpoints + 6)
        }
    }

    @Test func `A history that is read while others save ends where it began`() async throws {
        let folder = try TemporaryFolder()
        let container = try folder.open(historyOptions(.newest, checkpoint: 4 << 10))
        let begin = try container.historyToken
        let (id, _) = try saveTitle("0", in: container)
        for step in 1...150 { try saveTitle("\(step)", of: id, in: container) }
        let newest = try container.historyToken.commit
        var numbers: [CommitNumber] = []
        for try await commit in try container.history(after: begin) {
            numbers.append(commit.number)
            if numbers.count == 70 {
                try saveTitle("later", of: id, in: container)
                // The file that it reads is replaced, and stays readable.
                _ = try container.store.engine.compact()
            }
        }
        #expect(numbers.count == 151 && numbers.last == newest)
        try container.closeNow()
    }

    @Test func `A loop over the history ends when its task is cancelled`() async throws {
        let container = try memory(historyOptions())
        let (id, _) = try saveTitle("0", in: container)
        for step in 1...200 { try saveTitle("\(step)", of: id, in: container) }
        let task = Task {
            var count = 0
            for try await _ in try container.history(after: nil) {
                count += 1
                if count == 3 { unsafe withUnsafeCurrentTask { unsafe $0?.cancel() } }
            }
            return count
        }
        await #expect(throws: CancellationError.self) { try await task.value }
    }
}
