// Leaves decoded in place against the careful way: the same nodes from the same bytes, and none
// where the careful way refuses.

import Testing
import VarveBase
import VarveFormat
import VarveTesting

@testable import VarveEngine

@Suite(.verified) struct LeafDecodingTests {
    let tree = TreeID(7)
    private let seed: UInt64 = 99

    /// A leaf of random entries: keys of a few or of many bytes, with and without a shared prefix.
    private func randomLeaf(_ random: inout SeededRandom) -> TreeNode {
        let prefix = [UInt8]((0..<random.below(14)).map { _ in UInt8(random.below(3)) })
        let keyMax = [1, 3, 8, 9, 40][random.below(5)]
        var keys: Set<[UInt8]> = []
        for _ in 0...random.below(90) {
            let more = (0..<random.below(keyMax + 1)).map { _ in UInt8(random.below(5)) }
            keys.insert(random.below(10) == 0 ? more : prefix + more)
        }
        let node = TreeNode(stamp: TreeNode.cleanStamp, level: 0)
        for key in keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            let value = (0..<random.below(random.below(8) == 0 ? 400 : 30)).map { _ in
                UInt8(random.below(4))
            }
            node.insert(key, value, at: node.count)
        }
        return node
    }

    func frame(
        _ front: [UInt8],
        _ body: [UInt8],
        compresses: Bool,
        rawLength: Int? = nil,
        at offset: UInt64 = 8192
    ) throws -> FrameBytes {
        let prepared = Frame.prepare(
            .page,
            front: front,
            body: body,
            compresses: compresses,
            seed: seed
        )
        var writer = ByteWriter()
        var placed = Frame.append(
            prepared,
            to: &writer,
            previousCommit: FileOffset(0),
            at: FileOffset(offset),
            seed: seed
        )
        if let rawLength { placed.header.rawLength = UInt32(rawLength) }
        let start = FrameHeader.length
        return FrameBytes(
            header: placed.header,
            bytes: writer.bytes,
            payload: start..<start + Int(placed.header.storedLength),
            offset: FileOffset(offset)
        )
    }

    func expectEqual(_ one: TreeNode, _ two: TreeNode, _ seed: UInt64) {
        #expect(one.count == two.count && one.level == two.level, "seed \(seed)")
        #expect(one.liveBytes == two.liveBytes && one.rows == two.rows, "seed \(seed)")
        guard one.count == two.count else { return }
        for index in 0..<one.count {
            #expect(one.key(index) == two.key(index), "seed \(seed)")
            #expect(one.value(index) == two.value(index), "seed \(seed)")
            #expect(one.lowerBound(two.key(index)) == (index, true), "seed \(seed)")
        }
    }

    @Test(arguments: 0..<40 as Range<UInt64>)
    func leavesAreTheSameBothWays(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        for _ in 0..<20 {
            let node = randomLeaf(&random)
            let (front, body) = PageCoding.payload(of: node, tree: tree, commit: CommitNumber(3))
            let frame = try frame(front, body, compresses: random.below(2) == 0)
            let leaf = try #require(LeafDecoding.leaf(frame, tree: tree), "seed \(seed)")
            expectEqual(leaf, node, seed)
            expectEqual(try PageCoding.carefulNode(frame, tree: tree, level: 0), node, seed)
            // A copy for a transaction takes over what the block has besides entries, or packs.
            for slack in [0, 40, 4000] {
                let copy = TreeNode(copying: leaf, stamp: 5, slack: slack)
                expectEqual(copy, node, seed)
                copy.insert([255, 255, 255, 255, 255, 255, 255, 255, 255], [1], at: copy.count)
                #expect(copy.count == node.count + 1)
                copy.remove(at: copy.count - 1)
                expectEqual(copy, node, seed)
            }
            #expect(LeafDecoding.leaf(frame, tree: TreeID(8)) == nil)
        }
    }

    /// Edits a page in a place or two. Gives the length to claim for it, if not the true one.
    func edit(
        _ front: inout [UInt8],
        _ body: inout [UInt8],
        _ random: inout SeededRandom
    ) -> Int? {
        for _ in 0...(random.below(4) / 3) {
            switch random.below(5) {
            case 0: body[random.below(min(body.count, 4))] = UInt8(random.below(256))
            case 1: body[random.below(body.count)] ^= UInt8(1 << random.below(8))
            case 2: body.insert(UInt8(random.below(256)), at: random.below(body.count))
            case 3: if body.count > 1 { body.remove(at: random.below(body.count)) }
            default: front[random.below(8)] ^= UInt8(1 << random.below(8))
            }
        }
        return random.below(6) == 0 ? front.count + body.count + random.below(9) - 4 : nil
    }

    /// Edited bodies under hashes that are right: whatever one way says, the other says too.
    @Test(arguments: 0..<40 as Range<UInt64>)
    func bothWaysRefuseTheSameBytes(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var (refused, taken) = (0, 0)
        for _ in 0..<200 {
            let node = randomLeaf(&random)
            var (front, body) = PageCoding.payload(of: node, tree: tree, commit: CommitNumber(3))
            let rawLength = edit(&front, &body, &random)
            let frame = try frame(
                front,
                body,
                compresses: random.below(2) == 0,
                rawLength: rawLength
            )
            let careful = try? PageCoding.carefulNode(frame, tree: tree, level: 0)
            let quick = LeafDecoding.leaf(frame, tree: tree)
            #expect((careful == nil) == (quick == nil), "seed \(seed)")
            if let careful, let quick {
                taken += 1
                expectEqual(quick, careful, seed)
            } else {
                refused += 1
            }
        }
        // Both happen, else nothing was compared.
        #expect(refused > 10 && taken > 10, "seed \(seed): \(refused) and \(taken)")
    }
}

extension SeededRandom {
    mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }
}
