// Stores whose rows are worth packing are compacted for it while nobody saves, once.

import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite(.verified) struct PackingGainTests {
    private static func open(
        _ directory: any StoreDirectory,
        _ change: (inout EngineOptions) -> Void = { _ in }
    ) throws -> Engine {
        try Engine.openTest(directory) {
            $0.compactionDeadBytesMin = 256 << 10
            $0.maintenance = .inline
            change(&$0)
        }
    }

    /// Numbers and a few words, which take half as much packed.
    private static func fill(_ engine: Engine) throws {
        var random = SeededRandom(seed: 4)
        let words = ["harbour", "lighthouse", "tide", "anchor", "Überfahrt", "海", "rope"]
        _ = try engine.write { transaction in
            for number in 1...8_000 as ClosedRange<UInt64> {
                let place = Int.random(in: 0..<7, using: &random)
                let number = ObjectID(number)
                let value = Int64.random(in: 0..<1_000_000, using: &random)
                try transaction.insert(TestDelegate.entity, number, row: row(value, words[place]))
            }
        }
    }

    @Test func whatWasImportedIsPackedOnce() throws {
        let directory = MemoryDirectory()
        let engine = try Self.open(directory)
        try Self.fill(engine)
        try engine.checkpoint()
        let contents = try engine.contents()
        #expect(try PackedStoreTests.layouts(directory).packed == 0)
        let report = try #require(try engine.compactIfWorthwhile())
        #expect(report.bytesAfter * 8 < report.bytesBefore * 7)
        let layouts = try PackedStoreTests.layouts(directory)
        #expect(layouts.packed > 10 && layouts.plain == 0)
        #expect(try engine.contents() == contents)
        // What is packed is not packed again, in this opening or the next.
        #expect(try engine.compactIfWorthwhile() == nil)
        try engine.close()
        let again = try Self.open(directory)
        #expect(try again.compactIfWorthwhile() == nil)
        #expect(try again.contents() == contents)
    }

    @Test func whatIsNotAskedForIsNotDone() throws {
        let refusals: [(inout EngineOptions) -> Void] = [
            { $0.packsLeaves = false }, { $0.retention = .all }, { $0.retention = .commits(3) },
            { $0.compactionDeadBytesMin = 64 << 20 },
        ]
        for refuses in refusals {
            let engine = try Self.open(MemoryDirectory(), refuses)
            try PackedStoreTests.fill(engine)
            try engine.checkpoint()
            #expect(try engine.worthwhilePackingBytes() == nil)
        }
    }

    /// The estimate is near what a compaction then does: random words and numbers, and rows that
    /// cannot be packed at all.
    @Test func theGainIsWhatACompactionGains() throws {
        let directory = MemoryDirectory()
        var engine = try Self.open(directory) { $0.packsLeaves = false }
        try PackedStoreTests.fill(engine)
        _ = try engine.compact()
        try engine.close()
        engine = try Self.open(directory)
        var state = engine.snapshot().state
        let expected = try LeafPacking.gain(of: state.tree(TestDelegate.rows, isPublished: true))
        let before = try Self.leafBytes(directory)
        _ = try engine.compact()
        let gained = try Int(before) - Int(Self.leafBytes(directory))
        print("packing: \(expected) bytes expected, \(gained) gained, of \(before)")
        #expect(Double(expected) > 0.7 * Double(gained))
        #expect(Double(expected) < 1.3 * Double(gained))
        state = engine.snapshot().state
        let left = try LeafPacking.gain(of: state.tree(TestDelegate.rows, isPublished: true))
        #expect(left * 20 < before)

        // Bytes without any order.
        let noise = try Self.open(MemoryDirectory())
        var random = SeededRandom(seed: 12)
        _ = try noise.write { transaction in
            for number in 1...2_000 as ClosedRange<UInt64> {
                let text = (0..<40).map { _ in
                    Self.letters[Int.random(in: 0..<94, using: &random)]
                }
                try transaction.insert(
                    TestDelegate.entity,
                    ObjectID(number),
                    row: row(Int64(bitPattern: random.next()), String(text))
                )
            }
        }
        try noise.checkpoint()
        #expect(try noise.worthwhilePackingBytes() == nil)
    }

    private static let letters = (33...126).map { Character(UnicodeScalar(UInt8($0))) }

    /// Stored bytes of all leaves of rows.
    private static func leafBytes(_ directory: any StoreDirectory) throws -> UInt64 {
        let observer = try LogObserver.open(.directory(directory, name: "test"))
        var bytes: UInt64 = 0
        for root in observer.tail?.roots ?? [] where root.tree == TestDelegate.rows {
            try observer.audit(root) { page, _ in
                if !page.isSymbols, page.level == 0 { bytes += UInt64(page.address.storedLength) }
                return true
            }
        }
        return bytes
    }

    /// Leaves that are jumped to may be any: rows of two that overlap are no samples.
    @Test func leavesThatOverlapAreDamage() throws {
        let engine = try Self.open(MemoryDirectory())
        let inner = TreeNode(stamp: 1, level: 1)
        for (place, first) in [1, 50].enumerated() {
            let leaf = TreeNode(stamp: 1, level: 0)
            for number in 0..<100 {
                let object = ObjectID(UInt64(first + number))
                let bytes = row(Int64(number), "a text of some words")
                leaf.insert(
                    EngineKeys.object(object),
                    EngineKeys.rowValue(CommitNumber(1), bytes),
                    at: number
                )
            }
            inner.insert(EngineKeys.object(ObjectID(UInt64(first))), [], at: place)
            inner.insertChild(ChildPointer(node: leaf, address: nil, rows: 100), at: place)
        }
        let tree = Tree(
            id: TestDelegate.rows,
            root: TreeRoot(node: inner, address: nil, level: 1, rows: 200),
            loader: engine.snapshot().state.generation.nodes
        )
        let error = #expect(throws: EngineError.self) { try LeafPacking.samples(of: tree) }
        #expect(error?.code == .damaged)
    }

    /// The rows are looked at again only once the file has grown by a quarter, so that a compaction
    /// that packs less than it seemed is not repeated.
    @Test func rowsAreLookedAtAgainWhenTheFileGrew() {
        let status = CompactionStatus()
        #expect(status.shouldLookAtRows(file: 1_000, step: 100))
        #expect(!status.shouldLookAtRows(file: 1_000, step: 100))
        #expect(!status.shouldLookAtRows(file: 1_249, step: 100))
        #expect(!status.shouldLookAtRows(file: 1_260, step: 300))
        #expect(status.shouldLookAtRows(file: 1_300, step: 300))
        // A compaction.
        #expect(!status.shouldLookAtRows(file: 400, step: 100))
        #expect(!status.shouldLookAtRows(file: 490, step: 100))
        #expect(status.shouldLookAtRows(file: 500, step: 100))
    }

    @Test func onlyRoundsInARowAreIdle() {
        let status = CompactionStatus()
        let rounds = [true, true, false, true, true, true, true]
        #expect(
            rounds.map { status.wasIdle($0, rounds: 3) }
                == [false, false, false, false, false, true, true]
        )
    }

    @Test("A store that is idle is packed by its own thread")
    func idleStoresArePacked() throws {
        let directory = MemoryDirectory()
        let engine = try Self.open(directory) {
            $0.maintenance = .background
            $0.compactsAutomatically = true
            $0.idleTailBytes = 0
            $0.idleMilliseconds = 5
        }
        try Self.fill(engine)
        let contents = try engine.contents()
        let clock = ContinuousClock()
        let end = clock.now + .seconds(60)
        while engine.statistics.compactions == 0, clock.now < end {
            _ = Parker().park(milliseconds: 5)
        }
        #expect(engine.statistics.compactions == 1)
        #expect(try engine.contents() == contents)
        try engine.close()
        #expect(try PackedStoreTests.layouts(directory).packed > 10)
    }
}
