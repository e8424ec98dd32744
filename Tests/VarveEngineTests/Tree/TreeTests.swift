// Trees against a sorted array.

import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

/// A store of nodes in which nothing is in the file.
func noNodes() -> NodeCache {
    NodeCache(
        log: LogReader(file: EmptyFile(), seed: 0),
        budget: NodeBudget(bytesMax: 0, SystemEnvironment()),
        counters: EngineCounters()
    )
}

private final class EmptyFile: ReadOnlyFile {
    let name = "nothing"
    func read(at offset: FileOffset, count: Int) throws(IOError) -> [UInt8] { [] }
    func size() throws(IOError) -> UInt64 { 0 }
    func identity() throws(IOError) -> FileIdentity {
        FileIdentity(device: 0, inode: 0, links: 1, size: 0)
    }
    func adviseDontNeed() {}
    func close() {}
}

@Suite(.verified) struct TreeTests {
    /// A node of a tree in memory, and all that it leads to.
    private static func nodes(below node: TreeNode?) -> [TreeNode] {
        guard let node else { return [] }
        return [node] + node.children.flatMap { nodes(below: $0.node) }
    }

    /// Random puts, removals and lookups agree with a sorted array, at several node sizes.
    /// Heads of keys are filled up with zeros: a forged key of seven bytes looks like an object.
    @Test func aShorterKeyIsNoObjectThatALeafSpans() {
        let leaf = TreeNode(stamp: 1, level: 0)
        leaf.insert(EngineKeys.object(ObjectID(5)), [1], at: 0)
        leaf.insert([0, 0, 0, 0, 0, 0, 7], [1], at: 1)
        #expect(leaf.spans(ObjectID(5)) && leaf.spans(ObjectID(1_791)))
        #expect(!leaf.spans(ObjectID(1_792)) && !leaf.spans(ObjectID(4)))
        let sound = TreeNode(stamp: 1, level: 0)
        sound.insert(EngineKeys.object(ObjectID(1_792)), [1], at: 0)
        #expect(sound.spans(ObjectID(1_792)))
    }

    @Test(arguments: [UInt64(1), 2, 3, 4, 5, 6])
    func treeAgreesWithASortedArray(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let weight = [256, 512, 1024, 4096].randomElement(using: &random)!
        let innerWeight = weight / [1, 2, 4].randomElement(using: &random)!
        let keyLength = Int.random(in: 1...12, using: &random)
        let editor = TreeEditor(
            id: TreeID(20),
            stamp: 1,
            loader: noNodes(),
            splitWeight: weight,
            innerWeight: innerWeight,
            root: .empty
        )
        var model: [[UInt8]: [UInt8]] = [:]
        for step in 0..<4000 {
            let length = Int.random(in: 1...keyLength, using: &random)
            let key = (0..<length).map { _ in UInt8.random(in: 0...7, using: &random) * 36 }
            if Int.random(in: 0..<10, using: &random) < (step < 2500 ? 7 : 3) {
                let value = [UInt8](
                    repeating: UInt8(step & 0xff),
                    count: Int.random(in: 0...40, using: &random)
                )
                #expect(try editor.put(key, value) == (model[key] == nil))
                model[key] = value
            } else {
                #expect(try editor.remove(key) == (model[key] != nil))
                model[key] = nil
            }
        }
        let sorted = model.keys.sorted { $0.lexicographicallyPrecedes($1) }
        #expect(editor.root.rows == UInt64(sorted.count))
        let tooHeavy = Self.nodes(below: editor.root.node).filter {
            $0.weight > weight && $0.count > ($0.isLeaf ? 1 : 3)
                || !$0.isLeaf && $0.weight > innerWeight && $0.count > TreeEditor.childrenMin
        }
        #expect(tooHeavy.isEmpty)
        var cursor = TreeCursor(editor.tree)
        var position = 0
        var hasEntry = try cursor.first()
        while hasEntry {
            #expect(cursor.key == sorted[position])
            #expect(cursor.value == model[sorted[position]])
            #expect(cursor.position == UInt64(position))
            position += 1
            hasEntry = try cursor.next()
        }
        #expect(position == sorted.count)
        for _ in 0..<300 {
            let key = (0..<Int.random(in: 0...keyLength, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            let rank = sorted.count { $0.lexicographicallyPrecedes(key) }
            #expect(try editor.tree.position(of: key) == UInt64(rank))
            #expect(try editor.tree.value(key) == model[key])
            #expect(try cursor.seek(atOrAfter: key) == (rank < sorted.count))
            if rank < sorted.count { #expect(cursor.key == sorted[rank]) }
            #expect(try cursor.seek(before: key) == (rank > 0))
            if rank > 0 { #expect(cursor.key == sorted[rank - 1]) }
        }
        for rank in stride(from: 0, to: sorted.count, by: max(1, sorted.count / 50)) {
            #expect(try cursor.seek(position: UInt64(rank)))
            #expect(cursor.key == sorted[rank])
            var back = 0
            while back < 5, try cursor.previous() { back += 1 }
            #expect(back == min(5, rank))
        }
        // Everything goes away again, in random order.
        for key in sorted.shuffled(using: &random) { #expect(try editor.remove(key)) }
        #expect(editor.root.rows == 0 && editor.root.node == nil)
    }

    /// Each row count of a node is that of what is below it.
    private static func rowsAgree(below node: TreeNode) -> Bool {
        node.isLeaf
            || node.children.allSatisfy { child in
                guard let below = child.node else { return false }
                return child.rows == below.rows && rowsAgree(below: below)
            }
    }

    /// Rows go behind the last one, many of them before anybody looks at the root, and others are
    /// changed, put and taken out between them: at the end, at the row before, anywhere.
    @Test(arguments: UInt64(1)...8)
    func rowsBehindTheLastOneAreCounted(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let editor = TreeEditor(
            id: TreeID(20),
            stamp: 1,
            loader: noNodes(),
            splitWeight: [256, 512, 2048].randomElement(using: &random)!,
            innerWeight: 256,
            root: .empty
        )
        var model: Set<UInt64> = []
        var next: UInt64 = 1_000
        let row = [UInt8](repeating: 0, count: 20)
        func id(_ range: Range<UInt64>) -> ObjectID {
            ObjectID(UInt64.random(in: range, using: &random))
        }
        for step in 0..<6_000 {
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<12:
                next += UInt64.random(in: 1...3, using: &random)
                #expect(try editor.insertRow(ObjectID(next), CommitNumber(1), row))
                model.insert(next)
            case 12:
                let other = id(1..<next + 2)
                #expect(
                    try editor.insertRow(other, CommitNumber(1), row)
                        == !model.contains(other.rawValue),
                    "seed \(seed) step \(step)"
                )
                model.insert(other.rawValue)
                next = max(next, other.rawValue)
            case 13, 14:
                // Larger rows, so that leaves split.
                let other = id(max(1, next - 40)..<next + 1)
                let wasThere = try editor.changeRow(other) { _, value in
                    EngineKeys.append(CommitNumber(2), to: &value)
                    value += [UInt8](repeating: 1, count: 60)
                    return true
                }
                #expect(wasThere == (model.contains(other.rawValue) ? true : nil))
            case 15...18:
                let other = step % 3 == 0 ? id(1..<next + 1) : id(max(1, next - 20)..<next + 1)
                let went = try editor.removeRow(other) { _ in true }
                #expect(went == (model.remove(other.rawValue) == nil ? nil : true))
            default:
                #expect(editor.root.rows == UInt64(model.count), "seed \(seed) step \(step)")
                guard let root = editor.root.node else { continue }
                #expect(Self.rowsAgree(below: root), "seed \(seed) step \(step)")
            }
        }
        #expect(editor.tree.root.rows == UInt64(model.count))
        for rank in stride(from: 0, to: model.count, by: 97) {
            var cursor = TreeCursor(editor.tree)
            #expect(try cursor.seek(position: UInt64(rank)))
            #expect(cursor.key == EngineKeys.object(ObjectID(model.sorted()[rank])))
        }
    }

    @Test func rowsBehindTheLastOneEndWithTheirTree() throws {
        let row = [UInt8](repeating: 0, count: 20)
        for removes in [true, false] {
            let editor = TreeEditor(
                id: TreeID(20),
                stamp: 1,
                loader: noNodes(),
                splitWeight: 512,
                root: .empty
            )
            for id in UInt64(1)...100 {
                #expect(try editor.insertRow(ObjectID(id), CommitNumber(1), row))
            }
            if removes { editor.removeAll() } else { editor.retire() }
            #expect(editor.root.rows == (removes ? 0 : 100))
        }
    }

    /// Keys of a kilobyte that differ at their ends: descending, so that no node is filled from
    /// behind, and random.
    @Test("Long keys do not make a deep tree", arguments: [true, false])
    func longKeys(isDescending: Bool) throws {
        var random = SeededRandom(seed: 7)
        let options = EngineOptions()
        let editor = TreeEditor(
            id: TreeID(20),
            stamp: 1,
            loader: noNodes(),
            splitWeight: options.nodeWeightMax,
            innerWeight: options.innerSplitWeight,
            root: .empty
        )
        var numbers = Array(0..<3_000)
        if isDescending { numbers.reverse() } else { numbers.shuffle(using: &random) }
        for number in numbers {
            let end = EngineKeys.object(ObjectID(UInt64(number)))
            try editor.put([UInt8](repeating: 7, count: 1_000) + end, [])
        }
        #expect(editor.root.rows == 3_000)
        #expect(editor.root.level <= 8, "level \(editor.root.level)")
    }

    @Test func objectIDsAreTakenALeafAtATimeInBothDirections() throws {
        let editor = TreeEditor(
            id: TreeID(20),
            stamp: 1,
            loader: noNodes(),
            splitWeight: 512,
            root: .empty
        )
        for object in 0..<1000 {
            try editor.put(
                [UInt8(object / 100)] + EngineKeys.object(ObjectID(UInt64(object))),
                []
            )
        }
        var cursor = TreeCursor(editor.tree)
        var list: [ObjectID] = []
        _ = try cursor.seek(atOrAfter: [3])
        #expect(
            try cursor.takeObjectIDs(limit: .max, isForward: true, end: [5], into: &list) == 200
        )
        #expect(list.map(\.rawValue) == (300..<500).map { UInt64($0) })
        list = []
        _ = try cursor.seek(before: [5])
        #expect(
            try cursor.takeObjectIDs(limit: 150, isForward: false, end: [3], into: &list) == 150
        )
        #expect(
            try cursor.takeObjectIDs(limit: .max, isForward: false, end: [3], into: &list) == 50
        )
        #expect(list.map(\.rawValue) == (300..<500).reversed().map { UInt64($0) })
    }

    /// A visit from any place up to any end, in both directions, shows what an array shows.
    @Test(arguments: [UInt64(11), 12, 13])
    func rowsAreLentInBothDirections(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let editor = TreeEditor(
            id: TreeID(20),
            stamp: 1,
            loader: noNodes(),
            splitWeight: 300,
            root: .empty
        )
        var objects: [UInt64] = []
        for object in UInt64(1)...700 where Int.random(in: 0..<3, using: &random) > 0 {
            objects.append(object)
            let row = [UInt8(7)] + [UInt8](repeating: UInt8(object & 0xff), count: Int(object % 9))
            try editor.put(EngineKeys.object(ObjectID(object)), row)
        }
        for isPublished in [true, false] {
            let tree = Tree(
                id: TreeID(20),
                root: editor.root,
                loader: noNodes(),
                isPublished: isPublished
            )
            for _ in 0..<200 {
                let start = UInt64.random(in: 0...710, using: &random)
                let end = UInt64.random(in: 0...710, using: &random)
                let hasEnd = Bool.random(using: &random)
                let isForward = Bool.random(using: &random)
                let limit = Int.random(in: 1...60, using: &random)
                var cursor = TreeCursor(tree)
                let key = EngineKeys.object(ObjectID(start))
                let isThere =
                    isForward ? try cursor.seek(atOrAfter: key) : try cursor.seek(before: key)
                var wanted =
                    isForward
                    ? objects.filter { $0 >= start && !(hasEnd && $0 >= end) }
                    : objects.reversed().filter { $0 < start && !(hasEnd && $0 < end) }
                var found: [UInt64] = []
                if isThere {
                    try cursor.visitRows(
                        isForward: isForward,
                        end: hasEnd ? EngineKeys.object(ObjectID(end)) : nil
                    ) { object, version, row in
                        #expect(version.rawValue == 7 && row.count == Int(object.rawValue % 9))
                        if row.count > 0 { #expect(row[0] == UInt8(object.rawValue & 0xff)) }
                        found.append(object.rawValue)
                        return found.count < limit
                    }
                }
                let isCut = wanted.count >= limit
                wanted = Array(wanted.prefix(limit))
                #expect(found == wanted)
                if isThere, isCut, let last = wanted.last {
                    #expect(try cursor.trailingObjectID() == ObjectID(last))
                } else if isThere {
                    #expect(!cursor.isValid)
                }
            }
        }
    }

    @Test func ascendingInsertsFillTheirLeaves() throws {
        let editor = TreeEditor(
            id: TreeID(20),
            stamp: 1,
            loader: noNodes(),
            splitWeight: 4096,
            root: .empty
        )
        for object in 1...20_000 {
            try editor.put(EngineKeys.object(ObjectID(UInt64(object))), [1, 2, 3, 4])
        }
        var leaves = 0
        var weight = 0
        func visit(_ node: TreeNode) {
            if node.isLeaf {
                leaves += 1
                weight += node.weight
            }
            for child in node.children { child.node.map(visit) }
        }
        editor.root.node.map(visit)
        #expect(Double(weight) / Double(leaves * 4096) > 0.9)
    }
}
