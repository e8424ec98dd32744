// A value is the same when its bytes are: NFC over NFD and -0.0 over 0.0 are edits.

import Foundation
import Testing
import VarveObjects

private final class Measure: ManagedObject {
    static let entityName = "Measure"
    struct Columns: Sendable {
        let amount = Column<Measure, Double?>("amount")
        let word = Column<Measure, String?>("word")
        let note = Column<Measure, String>("note", default: "")
    }
    static let columns = Columns()
    static var uniqueConstraints: [EntityConstraint] {
        [EntityConstraint(columns.amount), EntityConstraint(columns.word)]
    }
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var amount: Double? {
        get { storedValue(Self.columns.amount, \.amount) }
        set { setStoredValue(newValue, Self.columns.amount, \.amount) }
    }
    var word: String? {
        get { storedValue(Self.columns.word, \.word) }
        set { setStoredValue(newValue, Self.columns.word, \.word) }
    }
    var note: String {
        get { storedValue(Self.columns.note, \.note) }
        set { setStoredValue(newValue, Self.columns.note, \.note) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Measure: Sendable {}

private enum MeasureSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Measure.self] }
}

@Suite(.verified) struct SameBytesTests {
    private let composed = "caf\u{e9}"
    private let decomposed = "cafe\u{301}"

    private func bytes(_ text: String?) -> [UInt8]? { text.map { Array($0.utf8) } }

    @Test func otherBytesAreAnEdit() throws {
        let container = try graph()
        let context = container.newContext()
        let node = try nodes(decomposed, in: context)[0]
        #expect(composed == decomposed)
        node.name = composed
        #expect(node.isUpdated && bytes(node.name) == bytes(composed))
        #expect(bytes(node.snapshot().name) == bytes(composed))
        node.score = -0.0
        #expect(node.score.sign == .minus)
        try context.save()
        let fresh = container.newContext()
        let stored = try #require(try fresh.existingObject(with: node.id))
        #expect(bytes(stored.name) == bytes(composed) && stored.score.sign == .minus)
        // The same bytes are none, and going back takes the edit out.
        stored.name = composed
        stored.score = -0.0
        #expect(!fresh.hasChanges)
        stored.name = decomposed
        stored.score = 0.0
        #expect(stored.isUpdated)
        stored.name = composed
        stored.score = -0.0
        #expect(!fresh.hasChanges)
    }

    @Test func aConflictIsWhereBytesDiffer() throws {
        let container = try graph()
        let context = container.newContext()
        let node = try nodes(decomposed, in: context)[0]
        node.name = "mine"
        let other = container.newContext()
        try #require(try other.existingObject(with: node.id)).name = composed
        try other.save()
        try context.save(mergePolicy: .storeWinsByProperty)
        #expect(bytes(node.name) == bytes(composed))
    }

    @Test(arguments: [false, true]) func filtersCompareStoredAndUnsavedAlike(isSaved: Bool) throws {
        let container = try graph()
        let context = container.newContext()
        let all = try nodes("", "", in: context)
        let (composed, decomposed) = (composed, decomposed)
        all[0].name = composed
        all[0].score = 0.0
        all[1].name = decomposed
        all[1].score = -0.0
        if isSaved { try context.save() }
        func found(_ request: FetchDescriptor<Node>) throws -> [Int] {
            try context.fetch(request).compactMap { node in all.firstIndex { $0 === node } }
        }
        #expect(try found(Node.where { $0.name == composed }) == [0])
        #expect(try found(Node.where { $0.name == decomposed }) == [1])
        #expect(try found(Node.where { $0.name != composed }) == [1])
        #expect(try found(Node.all.sorted { [$0.name.ascending] }) == [1, 0])
        // Zeros are one number, as in an index, though each keeps its sign.
        #expect(try found(Node.where { $0.score == 0.0 }) == [0, 1])
        #expect(try found(Node.where { $0.score == -0.0 }) == [0, 1])
        #expect(try found(Node.where { $0.score < 0.0 }) == [])
        #expect(try found(Node.all.sorted { [$0.score.ascending] }) == [0, 1])
        #expect(all.map(\.score.sign) == [.plus, .minus])
        #expect(try context.selectDistinct(Node.all) { $0.name }.count == 2)
    }

    @Test func uniquenessComparesBytes() throws {
        let container = try PersistentContainer.inMemory(schema: MeasureSchema.self)
        let context = container.newContext()
        let all = (0..<2).map { _ in Measure(in: context) }
        all[0].word = composed
        all[1].word = decomposed
        try context.save()
        #expect(try container.newContext().count(Measure.all) == 2)
        all[1].word = composed
        #expect(code { try context.save() } == .notUnique)
        all[1].word = decomposed
        #expect(!context.hasChanges)
        // An exchange of the two in one save.
        (all[0].word, all[1].word) = (decomposed, composed)
        try context.save()
        let fresh = container.newContext()
        let stored = try #require(try fresh.existingObject(with: all[0].id))
        #expect(bytes(stored.word) == bytes(decomposed))
        // Zeros are one number, and whoever holds it may change its sign.
        all[0].amount = 0.0
        try context.save()
        all[0].amount = -0.0
        #expect(all[0].isUpdated)
        try context.save()
        fresh.advance()
        #expect(stored.amount?.sign == .minus)
        all[1].amount = 0.0
        #expect(code { try context.save() } == .notUnique)
        context.rollback()
    }

    @Test func anUpsertComparesBytes() throws {
        let container = try graph()
        let context = container.newContext()
        let old = try nodes("old", in: context)[0]
        old.key = composed
        try context.save()
        let new = Node(in: context)
        new.key = decomposed
        new.name = "new"
        #expect(try context.save().replaced.isEmpty)
        let third = Node(in: context)
        third.key = decomposed
        third.name = "third"
        #expect(try context.save().replaced == [third.objectID: new.objectID])
        #expect(try storedNames(container) == ["old", "third"])
    }
}
