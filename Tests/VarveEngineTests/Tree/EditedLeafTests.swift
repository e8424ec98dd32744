// Leaves of which few rows were changed: in memory, in the file, damaged and forged.

import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Edited leaves in a store", .verified) struct EditedLeafTests {
    /// A packed store of which one row in `every` has another number.
    private static func edited(
        _ directory: any StoreDirectory,
        every: UInt64 = 40
    ) throws -> Engine {
        let engine = try PackedStoreTests.open(directory)
        try PackedStoreTests.fill(engine)
        _ = try engine.compact()
        try change(engine, every: every)
        try engine.close()
        return try PackedStoreTests.open(directory)
    }

    private static func change(_ engine: Engine, every: UInt64, _ number: Int64 = 4) throws {
        let live = try engine.contents().keys.sorted()
        _ = try engine.write { transaction in
            for (place, object) in live.enumerated() where UInt64(place) % every == 3 {
                try transaction.update(
                    TestDelegate.entity,
                    ObjectID(object),
                    patch: patch(number, "changed")
                )
            }
        }
    }

    /// Leaves of layout 2, and what each changes.
    private static func basis(
        of directory: any StoreDirectory
    ) throws -> [(leaf: PageAddress, basis: PageAddress)] {
        let observer = try LogObserver.open(.directory(directory, name: "test"))
        var found: [(PageAddress, PageAddress)] = []
        for root in observer.tail?.roots ?? [] {
            var last: PageAddress?
            try observer.audit(root) { page, _ in
                if page.isBasis, let last { found.append((last, page.address)) }
                last = page.address
                return true
            }
        }
        return found
    }

    @Test func aCheckpointOfFewChangesWritesFewBytes() throws {
        let directory = MemoryDirectory()
        let engine = try Self.edited(directory)
        let layouts = try PackedStoreTests.layouts(directory)
        #expect(layouts.edited > 10 && layouts.plain == 0)
        let pairs = try Self.basis(of: directory)
        #expect(pairs.count == layouts.edited)
        let own = pairs.reduce(0) { $0 + $1.leaf.frameLength }
        let whole = pairs.reduce(0) { $0 + $1.basis.frameLength }
        print("\(pairs.count) leaves: \(own) bytes of changes, \(whole) bytes changed")
        #expect(2 * own < whole)
        let contents = try engine.contents()
        #expect(contents.values.count { $0.contains("changed") } == 75)
        try PackedStoreTests.checkReads(engine.snapshot(), contents)
        try engine.close()
        // Read from the file, all of it and row by row.
        for reads in 0..<2 {
            let again = try PackedStoreTests.open(directory)
            if reads == 0 { try PackedStoreTests.checkReads(again.snapshot(), contents) }
            #expect(try again.contents() == contents)
            try again.close()
        }
    }

    /// Changes that add up: each page names the packed leaf, none another page of changes.
    @Test func changesOfChangesNameTheSameBasis() throws {
        let directory = MemoryDirectory()
        var engine = try Self.edited(directory)
        let before = try Self.basis(of: directory)
        try Self.change(engine, every: 53, 9)
        try engine.close()
        engine = try PackedStoreTests.open(directory)
        let after = try Self.basis(of: directory)
        let bases = Set(before.map(\.basis.offset))
        #expect(after.contains { bases.contains($0.basis.offset) })
        #expect(Set(after.map(\.leaf.offset)).isDisjoint(with: after.map(\.basis.offset)))
        #expect(Set(after.map(\.basis.offset)).count == after.count)
        // Once most rows have changed, leaves are whole again.
        for number in 20..<24 as Range<Int64> {
            let live = try engine.contents().keys.sorted()
            _ = try engine.write { transaction in
                for object in live {
                    try transaction.update(
                        TestDelegate.entity,
                        ObjectID(object),
                        patch: patch(number, "all")
                    )
                }
            }
        }
        let contents = try engine.contents()
        try engine.close()
        let layouts = try PackedStoreTests.layouts(directory)
        #expect(layouts.edited == 0 && layouts.plain > 10)
        engine = try PackedStoreTests.open(directory)
        #expect(try engine.contents() == contents)
    }

    /// What was packed before this version is not written in a way that its readers do not know.
    @Test func anOlderFileGetsNoEditedLeaves() throws {
        let directory = MemoryDirectory()
        let engine = try PackedStoreTests.open(directory)
        try PackedStoreTests.fill(engine)
        _ = try engine.compact()
        try engine.close()
        let file = try directory.openFile("test.varve", mode: .readWrite)
        var header = try FileHeader(decoding: try file.read(at: FileOffset(0), count: 4096))
        header.readerNeeds = FileHeader.packedVersion
        header.writerNeeds = FileHeader.packedVersion
        try file.write(header.encoded() + header.encoded(), at: FileOffset(0))
        file.close()
        let again = try PackedStoreTests.open(directory)
        try Self.change(again, every: 40)
        let contents = try again.contents()
        try again.close()
        let layouts = try PackedStoreTests.layouts(directory)
        #expect(layouts.edited == 0 && layouts.plain > 10)
        #expect(try PackedStoreTests.open(directory).contents() == contents)
    }

    /// Splits and merges of leaves with packed rows.
    @Test(arguments: [81, 82, 83] as [UInt64]) func leavesGrowAndShrink(seed: UInt64) throws {
        let directory = MemoryDirectory()
        var engine = try PackedStoreTests.open(directory)
        try PackedStoreTests.fill(engine)
        _ = try engine.compact()
        var random = SeededRandom(seed: seed)
        var model = try engine.contents()
        for round in 0..<6 {
            let low = UInt64.random(in: 2..<30_000, using: &random)
            let grows = round % 2 == 0
            _ = try engine.write { transaction in
                for object in low..<low + 900 {
                    if !grows, model[object] != nil, object % 19 != 0 {
                        try transaction.delete(TestDelegate.entity, ObjectID(object))
                        model[object] = nil
                    } else if grows, model[object] == nil {
                        try transaction.insert(
                            TestDelegate.entity,
                            ObjectID(object),
                            row: row(Int64(object), "new")
                        )
                        model[object] = "\([StoredValue?.some(.int(Int64(object))), .text("new")])"
                    }
                }
            }
            #expect(try engine.contents() == model, "seed \(seed), round \(round)")
            if round % 2 == 1 { try engine.checkpoint() }
            if round == 3 {
                try engine.close()
                engine = try PackedStoreTests.open(directory)
            }
        }
        try PackedStoreTests.checkReads(engine.snapshot(), model)
    }

    /// Values that were replaced leave nothing behind, however often that is.
    @Test func aLeafThatIsChangedOftenStaysSmall() throws {
        let directory = MemoryDirectory()
        let engine = try Self.edited(directory)
        let object = try #require(try engine.contents().keys.sorted().dropFirst(500).first)
        for step in 0..<400 {
            _ = try engine.write { transaction in
                try transaction.update(
                    TestDelegate.entity,
                    ObjectID(object),
                    patch: patch(Int64(step), String(repeating: "n", count: 100 + step % 37))
                )
            }
            if step % 50 == 49 { try engine.checkpoint() }
        }
        let state = engine.snapshot().state
        let tree = state.tree(TestDelegate.rows)
        #expect(try Self.most(try #require(try tree.rootNode()), tree) < 16 << 10)
    }

    /// Bytes of the largest leaf, without what it changes.
    private static func most(_ node: TreeNode, _ tree: Tree) throws -> Int {
        if node.isLeaf { return node.footprint - (node.basis?.leaf.footprint ?? 0) }
        return try node.children.indices.reduce(0) { bytes, index in
            max(bytes, try most(try tree.child(of: node, at: index), tree))
        }
    }

    /// An edited leaf and the same entries without packed rows stay the same, whatever is done.
    @Test(arguments: 0..<12 as Range<UInt64>) func anEditedLeafIsWhatItsCopyIs(seed: UInt64) throws
    {
        var random = SeededRandom(seed: seed)
        let directory = MemoryDirectory()
        let engine = try PackedStoreTests.open(directory)
        try PackedStoreTests.fill(engine)
        _ = try engine.compact()
        try engine.close()
        let observer = try LogObserver.open(.directory(directory, name: "test"))
        var leaves: [PageAddress] = []
        for root in observer.tail?.roots ?? [] where root.tree == TestDelegate.rows {
            try observer.audit(root) { page, _ in
                if page.level == 0, !page.isSymbols { leaves.append(page.address) }
                return true
            }
        }
        let address = try #require(leaves.randomElement(using: &random))
        let frame = try observer.log.frame(address, kind: .page)
        let packed = try observer.log.node(frame, tree: TestDelegate.rows, level: 0)
        let place = FormatPlace("page", address.offset)
        var edited = TreeNode(editing: packed, at: address, stamp: 7, slack: 64)
        let model = TreeNode(copying: packed, stamp: 7, slack: 64)
        func object(_ index: Int) -> UInt64 { model.key(index).reduce(0) { $0 << 8 | UInt64($1) } }
        func check() throws {
            edited.check()
            try #require(edited.count == model.count && edited.liveBytes == model.liveBytes)
            let whole = edited.unpacked
            whole.check()
            for index in 0..<model.count {
                try #require(edited.key(index) == model.key(index))
                try #require(edited.value(index) == model.value(index), "\(seed), entry \(index)")
                try #require(whole.value(index) == model.value(index), "\(seed), entry \(index)")
            }
            guard edited.hasPackedRows else { return }
            let bytes = edited.editedBody(address)
            let offset = FileOffset(address.offset.rawValue + address.frameLength)
            let changes = try EditedLeaf(
                decoding: bytes,
                range: 0..<bytes.count,
                count: edited.count,
                offset: offset
            )
            let basis = try #require(edited.basis)
            let read = try TreeNode.edited(changes, bytes, count: edited.count, basis, place)
            read.check()
            try #require(read.count == model.count && read.liveBytes == model.liveBytes)
            for index in 0..<model.count {
                try #require(read.value(index) == model.value(index), "\(seed), entry \(index)")
            }
        }
        for step in 0..<150 {
            let index = Int.random(in: 0..<model.count, using: &random)
            let text = String(repeating: "x", count: Int.random(in: 0...90, using: &random))
            let value = EngineKeys.rowValue(CommitNumber(UInt64(step)), row(Int64(step), text))
            switch Int.random(in: 0..<12, using: &random) {
            case 0...5:
                edited.setValue(value, at: index)
                model.setValue(value, at: index)
            case 6 where model.count > 3:
                edited.remove(at: index)
                model.remove(at: index)
            case 8, 9:
                let key = EngineKeys.object(ObjectID(object(index) + 1))
                let (next, isEqual) = model.lowerBound(key)
                if isEqual { continue }
                edited.insert(key, value, at: next)
                model.insert(key, value, at: next)
            case 10:
                let slack = Int.random(in: 0...300, using: &random)
                edited =
                    edited.hasPackedRows
                    ? TreeNode(editing: edited, at: nil, stamp: 7, slack: slack)
                    : TreeNode(copying: edited, stamp: 7, slack: slack)
            default:
                // Rarely: it would not be an edited leaf for long.
                if step > 120 { edited.unfold() }
            }
            try check()
        }
    }

    // MARK: Damage

    @Test(.damagesStores("a leaf, or what it changes, is damaged"), arguments: [true, false])
    func damageOfEitherPageIsTold(ofBasis: Bool) throws {
        let directory = MemoryDirectory()
        try Self.edited(directory).close()
        let pairs = try Self.basis(of: directory)
        let (leaf, basis) = pairs[pairs.count / 2]
        let log = try LogObserver.open(.directory(directory, name: "test")).log
        let page = try log.frame(leaf, kind: .page)
        let own = try PageCoding.editedLeaf(page, tree: TestDelegate.rows).leaf.objects
        let file = try directory.openFile("test.varve", mode: .readWrite)
        let place = FileOffset((ofBasis ? basis : leaf).offset.rawValue + 60)
        var bytes = try file.read(at: place, count: 1)
        bytes[0] ^= 0x10
        try file.write(bytes, at: place)
        file.close()
        let again = try PackedStoreTests.open(directory)
        let error = #expect(throws: EngineError.self) { try again.contents() }
        #expect(error?.code == .damaged)
        let observer = try LogObserver.open(.directory(directory, name: "test"))
        var damaged: [FileOffset] = []
        for root in observer.tail?.roots ?? [] {
            try observer.audit(root) { page, error in
                if error != nil { damaged.append(page.address.offset) }
                return true
            }
        }
        #expect(damaged == (ofBasis ? [leaf.offset, basis.offset] : [leaf.offset]))
        // Of a leaf that is sound the rows that it has itself are left.
        var left: Set<UInt64> = []
        let root = try #require(observer.tail?.roots.first { $0.tree == TestDelegate.rows })
        try observer.forEachEntry(
            of: root,
            from: [],
            to: nil,
            entry: { key, _ in left.insert(key.reduce(0) { $0 << 8 | UInt64($1) }) },
            damaged: { page, _ in #expect(page.address == leaf) }
        )
        #expect(!own.isEmpty && left.count < 3_000)
        #expect(own.allSatisfy { left.contains($0) } == ofBasis)
    }

    /// Changes that do not fit what they change.
    @Test func forgedChangesAreDamage() throws {
        let directory = MemoryDirectory()
        let engine = try Self.edited(directory)
        let pair = try #require(try Self.basis(of: directory).first)
        let log = engine.snapshot().state.generation.log
        let frame = try log.frame(pair.basis, kind: .page)
        let leaf = try log.node(frame, tree: TestDelegate.rows, level: 0)
        let basis = LeafBasis(leaf: leaf, address: pair.basis)
        let place = FormatPlace("page", pair.leaf.offset)
        func node(
            kept: Int = 100,
            gone: [Int],
            own: [(UInt64, [UInt8])],
            count: Int? = nil
        ) throws -> TreeNode {
            var writer = ByteWriter(capacity: 64)
            EditedLeaf.append(
                basis: pair.basis,
                keptBytes: kept,
                gone: gone,
                objects: own.map(\.0),
                valueLengths: own.map(\.1.count),
                to: &writer
            )
            for value in own { writer.raw(value.1) }
            let rows = count ?? leaf.count - gone.count + own.count
            let changes = try EditedLeaf(
                decoding: writer.bytes,
                range: 0..<writer.count,
                count: rows,
                offset: pair.leaf.offset
            )
            return try TreeNode.edited(changes, writer.bytes, count: rows, basis, place)
        }
        let objects = (0..<leaf.count).map { leaf.key($0) }.map { key in
            key.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        }
        let value: [UInt8] = [1, 1, 4]
        let sound = try node(gone: [0, 2], own: [(0, value), (objects[2], value), (.max, value)])
        sound.check()
        #expect(sound.count == leaf.count + 1)
        #expect(sound.value(0) == value && sound.value(sound.count - 1) == value)
        #expect(throws: FormatError.self) { try node(gone: [leaf.count], own: []) }
        #expect(throws: FormatError.self) { try node(gone: [0], own: [], count: leaf.count) }
        #expect(throws: FormatError.self) { try node(gone: [], own: [(objects[3], value)]) }
        #expect(throws: FormatError.self) { try node(kept: leaf.liveBytes + 1, gone: [], own: []) }
        // All rows gone and one of its own: little is left of the basis.
        let one = try node(kept: 0, gone: Array(0..<leaf.count), own: [(5, value)])
        one.check()
        #expect(one.count == 1 && one.writableBasis == nil)
        #expect(one.unpacked.value(0) == value)
        // Kept bytes that are others show when the rows are unpacked.
        #expect(throws: FormatError.self) { try node(gone: [], own: []).wholeUnpacked(place) }
    }
}
