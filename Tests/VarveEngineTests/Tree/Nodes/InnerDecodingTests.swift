// Inner nodes decoded in one pass against the careful way: the same nodes from the same bytes, and
// none where the careful way refuses.

import Testing
import VarveBase
import VarveFormat
import VarveTesting

@testable import VarveEngine

extension LeafDecodingTests {
    /// An inner node with separators of few or of many bytes.
    private func randomInner(_ random: inout SeededRandom) -> TreeNode {
        let level = 1 + random.below(3)
        let node = TreeNode(stamp: TreeNode.cleanStamp, level: level)
        let keyMax = [2, 5, 8, 9, 40][random.below(5)]
        var keys: Set<[UInt8]> = [[]]
        for _ in 0..<random.below(120) {
            keys.insert((0...random.below(keyMax)).map { _ in UInt8(random.below(4)) })
        }
        var rows: UInt64 = 0
        for key in keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            node.insert(key, [], at: node.count)
            let place = 8192 + 8 * UInt64.random(in: 0...(1 << random.below(20)), using: &random)
            let child = ChildPointer(
                node: nil,
                address: PageAddress(
                    offset: FileOffset(place),
                    storedLength: UInt32(random.below(9000)),
                    payloadHash: random.next()
                ),
                rows: 1 + UInt64.random(in: 0..<1 << UInt64(random.below(48)), using: &random)
            )
            rows += child.rows
            node.insertChild(child, at: node.count - 1)
        }
        return node
    }

    private func expectSameChildren(_ one: TreeNode, _ two: TreeNode, _ seed: UInt64) {
        expectEqual(one, two, seed)
        #expect(one.children.count == two.children.count, "seed \(seed)")
        for (one, two) in zip(one.children, two.children) {
            #expect(one.address == two.address && one.rows == two.rows, "seed \(seed)")
            #expect(one.node == nil, "seed \(seed)")
        }
    }

    @Test(arguments: 0..<40 as Range<UInt64>)
    func innerNodesAreTheSameBothWays(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        for _ in 0..<20 {
            let node = randomInner(&random)
            let (front, body) = PageCoding.payload(of: node, tree: tree, commit: CommitNumber(3))
            let frame = try frame(front, body, compresses: random.below(2) == 0, at: 1 << 24)
            let quick = InnerDecoding.inner(frame, tree: tree, level: node.level)
            let inner = try #require(quick, "seed \(seed)")
            expectSameChildren(inner, node, seed)
            expectSameChildren(
                try PageCoding.carefulNode(frame, tree: tree, level: node.level),
                node,
                seed
            )
            // A copy for a transaction takes over what the block has, and grows.
            for slack in [0, 40, 4000] {
                let copy = TreeNode(copying: inner, stamp: 5, slack: slack)
                expectSameChildren(copy, node, seed)
                let child = inner.children[0]
                copy.insert([255, 255, 255, 255, 255, 255, 255, 255, 255], [], at: copy.count)
                copy.insertChild(child, at: copy.count - 1)
                copy.remove(at: copy.count - 1)
                copy.removeChildren(copy.count..<copy.count + 1)
                expectSameChildren(copy, node, seed)
            }
            #expect(InnerDecoding.inner(frame, tree: TreeID(8), level: node.level) == nil)
            #expect(InnerDecoding.inner(frame, tree: tree, level: node.level + 1) == nil)
        }
    }

    /// Edited bodies under hashes that are right: whatever one way says, the other says too.
    @Test(arguments: 0..<40 as Range<UInt64>)
    func bothWaysRefuseTheSameInnerNodes(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var (refused, taken) = (0, 0)
        for _ in 0..<200 {
            let node = randomInner(&random)
            var (front, body) = PageCoding.payload(of: node, tree: tree, commit: CommitNumber(3))
            let rawLength = edit(&front, &body, &random)
            let frame = try frame(
                front,
                body,
                compresses: random.below(2) == 0,
                rawLength: rawLength,
                // Some children lie above their parent.
                at: random.below(8) == 0 ? 1 << 19 : 1 << 24
            )
            let careful = try? PageCoding.carefulNode(frame, tree: tree, level: node.level)
            let quick = InnerDecoding.inner(frame, tree: tree, level: node.level)
            #expect((careful == nil) == (quick == nil), "seed \(seed)")
            if let careful, let quick {
                taken += 1
                expectSameChildren(quick, careful, seed)
            } else {
                refused += 1
            }
        }
        // Both happen, else nothing was compared.
        #expect(refused > 10 && taken > 10, "seed \(seed): \(refused) and \(taken)")
    }
}
