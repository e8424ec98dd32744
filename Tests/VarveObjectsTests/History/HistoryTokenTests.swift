// Tokens: what they survive, and when a store refuses one.

import Foundation
import Testing
import VarveBase
import VarveEngine
import VarveRecords
import VarveTesting

@testable import VarveObjects

/// A store whose checkpoints come often, and whose compactions keep what a test says.
func historyOptions(
    _ retention: Retention = .newest,
    checkpoint: UInt64 = 1 << 20
) -> ContainerOptions {
    var options = ContainerOptions()
    options.adjustingEngine = {
        $0.retention = retention
        $0.maintenance = .inline
        $0.compactsAutomatically = false
        $0.checkpointTailMin = checkpoint
        $0.checkpointTailMax = max(checkpoint, $0.checkpointTailMin)
    }
    return options
}

/// Saves one change of a new or known item; returns the commit.
@discardableResult
func saveTitle(
    _ title: String,
    of id: Item.ID? = nil,
    in container: PersistentContainer,
    author: String = "test"
) throws -> (id: Item.ID, commit: CommitNumber) {
    let context = container.newContext(author: author)
    let known = try id.flatMap { try context.existingObject(with: $0) }
    let item = known ?? Item(in: context)
    item.title = title
    return (item.id, try #require(try context.save().commit))
}

@Suite(.verified) struct HistoryTokenTests {
    @Test func `A token is a text, and comes back from it`() throws {
        let container = try memory()
        try saveTitle("a", in: container)
        let token = try container.historyToken
        #expect(token.commit == container.statistics.newestCommit)
        #expect(HistoryToken(text: token.text) == token)
        let coded = try JSONEncoder().encode([token])
        #expect(try JSONDecoder().decode([HistoryToken].self, from: coded) == [token])
        #expect(try container.historyToken(at: token.commit) == token)
        for text in ["", "varve-history:", "varve-history:x/1/2", "\(token.text)/1", "varve:1/2/3"]
        {
            #expect(HistoryToken(text: text) == nil, "\(text)")
            let json = Data("[\"\(text)\"]".utf8)
            #expect(throws: DecodingError.self) {
                try JSONDecoder().decode([HistoryToken].self, from: json)
            }
        }
    }

    @Test func `A context's token is that of the commit it reads`() throws {
        let container = try memory()
        let (id, first) = try saveTitle("a", in: container)
        let context = container.newContext()
        #expect(try context.historyToken == nil)
        _ = try context.existingObject(with: id)
        try saveTitle("b", of: id, in: container)
        #expect(try context.historyToken?.commit == first)
        let token = try #require(try context.historyToken)
        #expect(try container.history(after: token).commits().count == 1)
        context.advance()
        #expect(try context.historyToken == container.historyToken)
        try container.closeNow()
        #expect(code { _ = try container.historyToken } == .closed)
        #expect(code { _ = try container.history(after: token) } == .closed)
    }

    @Test func `A token of another store is foreign, and one of no commit unknown`() throws {
        let (container, other) = (try memory(), try memory())
        try saveTitle("a", in: container)
        let foreign = try other.historyToken
        #expect(code { _ = try container.history(after: foreign) } == .foreignID)
        #expect(code { _ = try container.newContext(at: .token(foreign)) } == .foreignID)
        let token = try container.historyToken
        let text = token.text.replacing("/\(token.commit.rawValue)/", with: "/\(UInt64.max)/")
        let later = try #require(HistoryToken(text: text))
        #expect(code { _ = try container.history(after: later) } == .unknownCommit)
        #expect(code { _ = try container.hasHistory(after: later) } == .unknownCommit)
        #expect(code { _ = try container.historyToken(at: token.commit.next) } == .unknownCommit)
        #expect(code { _ = try container.historyToken(at: CommitNumber(0)) } == .unknownCommit)
    }

    @Test func `A token survives launches and compactions that keep its commit`() throws {
        let folder = try TemporaryFolder()
        var container = try folder.open(historyOptions(.commits(5)))
        let (id, _) = try saveTitle("0", in: container)
        let first = try container.historyToken
        for step in 1...3 { try saveTitle("\(step)", of: id, in: container) }
        try container.closeNow()
        container = try folder.open(historyOptions(.commits(5)))
        #expect(try container.history(after: first).commits().count == 3)
        _ = try container.store.engine.compact()
        #expect(try container.hasHistory(after: first))
        #expect(try container.history(after: first).commits().count == 3)
        for step in 4...9 { try saveTitle("\(step)", of: id, in: container) }
        _ = try container.store.engine.compact()
        #expect(try !container.hasHistory(after: first))
        let oldest = try container.retainedCommits.lowerBound
        do {
            _ = try container.history(after: first)
            Issue.record("the token is too old")
        } catch let error as StoreError {
            #expect(error.code == .commitExpired && error.place.commit == oldest)
            #expect(error.message.contains("oldest commit left is \(oldest.rawValue)"))
            #expect(error.suggestion?.contains("retention") == true)
        }
        #expect(code { _ = try container.newContext(at: .token(first)) } == .commitExpired)
        #expect(
            try container.history(after: container.historyToken(at: oldest)).commits().count == 4
        )
        try container.closeNow()
    }

    /// Numbers alone would name other commits: the copy goes on under the same ones.
    @Test func `After a backup was put back, tokens of what it lacks are unknown`() throws {
        let folder = try TemporaryFolder()
        let container = try folder.open(historyOptions())
        let (id, _) = try saveTitle("0", in: container)
        let common = try container.historyToken
        let copy = folder.url.appending(path: "copy.varve")
        _ = try container.store.engine.backup(
            to: .file(directory: folder.url.path, name: "copy")
        )
        try saveTitle("lost", of: id, in: container)
        let lost = try container.historyToken
        try container.closeNow()
        let restored = try PersistentContainer.openNow(at: copy, schema: TestSchema.self)
        #expect(code { _ = try restored.history(after: lost) } == .unknownCommit)
        #expect(try restored.history(after: common).commits().isEmpty)
        try saveTitle("other", of: id, in: restored)
        #expect(try restored.historyToken.commit == lost.commit)
        #expect(code { _ = try restored.history(after: lost) } == .unknownCommit)
        #expect(code { _ = try restored.newContext(at: .token(lost)) } == .unknownCommit)
        #expect(try restored.history(after: common).commits().map(\.number) == [lost.commit])
        try restored.closeNow()
    }
}
