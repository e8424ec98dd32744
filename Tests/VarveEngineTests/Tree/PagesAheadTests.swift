// Pages of a short list of rows are asked for together, and only those that are missing.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

/// Notes what is asked for before it is read.
private final class AskedFile: ReadOnlyFile {
    enum Call: Equatable {
        case asked(FileOffset, Int)
        case read(FileOffset)
    }
    let base: any ReadOnlyFile
    let calls = Mutex<[Call]>([])
    init(_ base: any ReadOnlyFile) { self.base = base }

    var name: String { base.name }
    func read(at offset: FileOffset, count: Int) throws(IOError) -> [UInt8] {
        calls.withLock { $0.append(.read(offset)) }
        return try base.read(at: offset, count: count)
    }
    func size() throws(IOError) -> UInt64 { try base.size() }
    func identity() throws(IOError) -> FileIdentity { try base.identity() }
    func adviseDontNeed() {}
    func adviseWillNeed(at offset: FileOffset, count: Int) {
        calls.withLock { $0.append(.asked(offset, count)) }
    }
    func close() {}

    func take() -> [Call] {
        calls.withLock { calls in
            defer { calls = [] }
            return calls
        }
    }
}

@Suite("Pages that are asked for together", .verified) struct PagesAheadTests {
    /// A store of many small pages, none of which is in memory.
    private static func reopened(_ directory: MemoryDirectory, rows: Int) throws -> Engine {
        let engine = try Engine.openTest(directory) {
            $0.nodeWeightMax = 512
            $0.packsLeaves = false
        }
        _ = try engine.write { transaction in
            for object in 1...rows {
                try transaction.insert(
                    TestDelegate.entity,
                    ObjectID(UInt64(object)),
                    row: row(Int64(object), "row \(object)")
                )
            }
        }
        try engine.close()
        return try Engine.openTest(directory, mode: .existing) { $0.nodeWeightMax = 512 }
    }

    @Test func missingPagesAreAskedForLevelByLevel() throws {
        let engine = try Self.reopened(MemoryDirectory(), rows: 2_000)
        let state = engine.snapshot().state
        let root = try #require(state.trees[TestDelegate.rows])
        #expect(root.level >= 2)
        let file = AskedFile(state.generation.file)
        let nodes = NodeCache(
            log: LogReader(copying: state.generation.log, file: file),
            budget: NodeBudget(bytesMax: 16 << 20, SystemEnvironment()),
            counters: EngineCounters()
        )
        let wanted = (0..<40).map { ObjectID(UInt64(1 + $0 * 50)) }
        state.trees.foresee(TestDelegate.rows, wanted, nodes)
        let calls = file.take()
        let asked = calls.compactMap { call -> FileOffset? in
            if case .asked(let offset, let count) = call {
                #expect(count > FrameHeader.length)
                return offset
            }
            return nil
        }
        #expect(Set(asked).count == asked.count)
        // All pages of a level are asked for before the first of them is read: as many runs of
        // questions as there are levels below the root.
        var runs = 0
        var wasAsked = false
        for call in calls {
            if case .asked = call {
                if !wasAsked { runs += 1 }
                wasAsked = true
            } else {
                wasAsked = false
            }
        }
        #expect(runs == root.level)
        // Of those below the root nothing is read that was not asked for before, and nothing twice.
        var known: Set<FileOffset> = []
        for (place, call) in calls.enumerated() {
            switch call {
            case .asked(let offset, _): known.insert(offset)
            case .read(let offset): #expect(place == 0 || known.remove(offset) != nil)
            }
        }
        // What the rows are then read from, but for the root, was asked for.
        var seen = 0
        try state.trees.visit(TestDelegate.rows, wanted, nodes, passes: false) { _, _, _ in
            seen += 1
            return true
        }
        #expect(seen == wanted.count)
        let leaves = file.take()
        #expect(leaves.count > 30)
        #expect(
            leaves.allSatisfy { call in
                guard case .read(let offset) = call else { return false }
                return asked.contains(offset)
            }
        )
        // Nothing is missing any more; and a single row is just read.
        state.trees.foresee(TestDelegate.rows, wanted, nodes)
        state.trees.foresee(TestDelegate.rows, [ObjectID(77)], nodes)
        #expect(file.take().isEmpty)
    }

    /// A damaged page fails whoever reads it, not who asks for it, and no other row.
    @Test(.damagesStores("a leaf is damaged")) func aDamagedPageFailsWhoeverReadsIt() throws {
        let directory = MemoryDirectory()
        let engine = try Self.reopened(directory, rows: 600)
        let ids = (0..<12).map { ObjectID(UInt64(1 + $0 * 50)) }
        let state = engine.snapshot().state
        let root = try #require(try state.tree(TestDelegate.rows).rootNode())
        var inner = root
        while inner.level > 1 {
            inner = try state.tree(TestDelegate.rows).child(of: inner, at: 0)
        }
        let address = try #require(inner.children[1].address)
        let file = try directory.openFile("test.varve", mode: .readWrite)
        let place = FileOffset(address.offset.rawValue + 40)
        var bytes = try file.read(at: place, count: 1)
        bytes[0] ^= 1
        try file.write(bytes, at: place)
        file.close()
        engine.trimMemory()
        let first = try #require(ObjectID(bigEndian: inner.key(1)))
        let others = ids.filter { abs(Int($0.rawValue) - Int(first.rawValue)) > 40 }
        let blocks = try engine.snapshot().rowBlocks(TestDelegate.rows, others)
        #expect(blocks.reduce(0) { $0 + $1.rows.count } == others.count && others.count > 8)
        let error = #expect(throws: EngineError.self) {
            try engine.snapshot().rowBlocks(TestDelegate.rows, (ids + [first]).sorted())
        }
        #expect(error?.code == .damaged)
    }
}

extension ObjectID {
    /// What a separator begins with; zeros where it is shorter.
    fileprivate init?(bigEndian key: [UInt8]) {
        guard key.count <= 8 else { return nil }
        let bytes = key + [UInt8](repeating: 0, count: 8 - key.count)
        self.init(bytes.reduce(0) { $0 << 8 | UInt64($1) })
    }
}
