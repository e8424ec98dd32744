// Trees whose pages contradict each other: each page is in order, and lies about its children.

import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Forged trees", .verified) struct ForgedTreeTests {
    /// Different short keys in order.
    private static func keys(
        _ random: inout SeededRandom,
        _ counts: ClosedRange<Int>
    ) -> [[UInt8]] {
        let count = Int.random(in: counts, using: &random)
        var keys: Set<[UInt8]> = []
        while keys.count < count {
            let length = Int.random(in: 1...3, using: &random)
            keys.insert((0..<length).map { _ in UInt8.random(in: 0...5, using: &random) })
        }
        return keys.sorted { $0.lexicographicallyPrecedes($1) }
    }

    /// A node whose own keys ascend, and whose children know nothing of them.
    private static func node(level: Int, _ random: inout SeededRandom) -> TreeNode {
        let node = TreeNode(stamp: TreeNode.cleanStamp, level: level)
        if level == 0 {
            for (index, key) in keys(&random, 1...8).enumerated() {
                let value = [UInt8](repeating: 9, count: Int.random(in: 0...20, using: &random))
                node.insert(key, value, at: index)
            }
            return node
        }
        for (index, key) in ([[]] + keys(&random, 0...8)).enumerated() {
            node.insert(key, [], at: index)
            let child = Self.node(level: level - 1, &random)
            let rows = child.isLeaf ? UInt64(child.count) : child.rows
            node.insertChild(ChildPointer(node: child, address: nil, rows: rows), at: index)
        }
        return node
    }

    /// A sound tree of these keys, but for about one page in twelve below its root.
    private static func tampered(
        _ keys: ArraySlice<[UInt8]>,
        level: Int,
        isRoot: Bool = true,
        _ random: inout SeededRandom
    ) -> TreeNode {
        if !isRoot, Int.random(in: 0..<12, using: &random) == 0 {
            return Self.node(level: level, &random)
        }
        let node = TreeNode(stamp: TreeNode.cleanStamp, level: level)
        if level == 0 {
            for (index, key) in keys.enumerated() {
                let value = [UInt8](repeating: 9, count: Int.random(in: 0...20, using: &random))
                node.insert(key, value, at: index)
            }
            return node
        }
        let step = level == 1 ? 5 : 18
        for (index, start) in stride(from: keys.startIndex, to: keys.endIndex, by: step)
            .enumerated()
        {
            let part = keys[start..<min(start + step, keys.endIndex)]
            let child = tampered(part, level: level - 1, isRoot: false, &random)
            node.insert(index == 0 ? [] : part.first!, [], at: index)
            let rows = child.isLeaf ? UInt64(child.count) : child.rows
            node.insertChild(ChildPointer(node: child, address: nil, rows: rows), at: index)
        }
        return node
    }

    private static func isInOrder(_ node: TreeNode) -> Bool {
        for index in 1..<max(node.count, 1)
        where !node.key(index - 1).lexicographicallyPrecedes(node.key(index)) { return false }
        return node.children.allSatisfy { $0.node.map(isInOrder) ?? true }
    }

    /// Whether the keys of every page on the way to a key lie between those that lead there.
    private static func isInside(_ root: TreeNode, wayTo key: [UInt8]) -> Bool {
        var node = root
        var (low, high): ([UInt8], [UInt8]?) = ([], nil)
        while true {
            for index in (node.isLeaf ? 0 : 1)..<max(node.count, 1) {
                let found = node.key(index)
                if found.lexicographicallyPrecedes(low) { return false }
                if let high, !found.lexicographicallyPrecedes(high) { return false }
            }
            if node.isLeaf { return true }
            var index = node.count - 1
            while index > 0, key.lexicographicallyPrecedes(node.key(index)) { index -= 1 }
            if index > 0 { low = node.key(index) }
            if index + 1 < node.count { high = node.key(index + 1) }
            guard let child = node.children[index].node else { return true }
            node = child
        }
    }

    /// Keys and children of all nodes, as one line.
    private static func picture(_ node: TreeNode) -> String {
        let keys = (0..<node.count).map { "\(node.key($0))" }.joined(separator: " ")
        let below = node.children.map { $0.node.map(picture) ?? "-" }.joined(separator: ", ")
        return "\(keys) (\(below))"
    }

    /// A page out of order is one that the next opening cannot read: a commit that makes one has
    /// lost what it told was kept.
    @Test(
        "Changes to a forged tree are refused or leave pages in order",
        arguments: UInt64(1)...6
    )
    func changes(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var refused = 0
        var done = 0
        for _ in 0..<200 {
            let level = Int.random(in: 1...2, using: &random)
            let keys = Self.keys(&random, 30...70)
            let root = Self.tampered(keys[...], level: level, &random)
            let before = Self.picture(root)
            let editor = TreeEditor(
                id: TreeID(20),
                stamp: 1,
                loader: noNodes(),
                splitWeight: 256,
                root: TreeRoot(node: root, address: nil, level: level, rows: root.rows)
            )
            let bias = Int.random(in: 2...8, using: &random)
            do {
                for _ in 0..<60 {
                    let key = Self.keys(&random, 1...1)[0]
                    if Int.random(in: 0..<5, using: &random) == 0 {
                        var entries = PendingEntries()
                        for key in Self.keys(&random, 4...12) {
                            entries.add(key, removes: Bool.random(using: &random))
                        }
                        entries.sort()
                        try editor.apply(entries)
                    } else if Int.random(in: 0..<10, using: &random) < bias {
                        let count = Int.random(in: 0...40, using: &random)
                        try editor.put(key, [UInt8](repeating: 7, count: count))
                        let root = try #require(editor.root.node)
                        try #require(Self.isInside(root, wayTo: key), "seed \(seed)")
                    } else {
                        try editor.remove(key)
                    }
                    done += 1
                    guard let root = editor.root.node else { break }
                    try #require(Self.isInOrder(root), "seed \(seed)")
                }
            } catch let error as EngineError {
                #expect(error.code == .damaged)
                refused += 1
            }
            // Whoever reads the commit before still sees it.
            #expect(Self.picture(root) == before)
        }
        print("forged trees: \(done) changes, \(refused) refused")
        #expect(refused > 50 && done > 2000)
    }
}
