// What nodes, their cache and the log writer say of themselves is checked, and a lie ends the
// process.

import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite(.verified) struct InvariantTests {
    private static func leaf(_ keys: [UInt8], stamp: UInt64 = 1) -> TreeNode {
        let node = TreeNode(stamp: stamp, level: 0)
        for (index, key) in keys.enumerated() { node.insert([key], [7, 7], at: index) }
        return node
    }

    private static func says(_ result: ExitTest.Result?, _ message: String) -> Bool {
        String(decoding: result?.standardErrorContent ?? [], as: UTF8.self).contains(message)
    }

    @Test("Tests have the checks on") func theyAreOn() { #expect(Invariants.areChecked) }

    @Test("A node whose keys do not ascend gets no page") func keysOutOfOrder() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            Invariants.checkFromNowOn()
            let node = InvariantTests.leaf([1, 2, 3])
            node.check()
            node.setKey([9], at: 1)
            _ = PageCoding.payload(of: node, tree: TreeID(20), commit: CommitNumber(2))
        }
        #expect(Self.says(result, "keys of a node ascend"))
    }

    @Test("A node that counts the rows below it wrong is found") func wrongRows() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let node = TreeNode(stamp: 1, level: 1)
            let child = InvariantTests.leaf([1, 2, 3])
            node.insert([], [], at: 0)
            node.insertChild(ChildPointer(node: child, address: nil, rows: 3), at: 0)
            node.check()
            node.addRows(1, at: 0)
            node.check()
        }
        #expect(Self.says(result, "a parent knows the rows below its children"))
    }

    @Test("A cache that counts other bytes than it holds is found") func wrongBytes() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            Invariants.checkFromNowOn()
            let nodes = noNodes()
            for place in 1...UInt64(100) {
                let address = PageAddress(
                    offset: FileOffset(place * 8),
                    storedLength: 8,
                    payloadHash: 1
                )
                let leaf = InvariantTests.leaf([1], stamp: TreeNode.cleanStamp)
                nodes.insert(leaf, of: TreeID(1), at: address)
            }
            nodes.check()
            nodes.budget.give(1)
            nodes.check()
        }
        #expect(Self.says(result, "the budget knows the bytes of cached nodes"))
    }

    @Test("A log that is durable beyond its end is found") func durableBeyondTheEnd() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            Invariants.checkFromNowOn()
            let engine = try Engine.openTest(MemoryDirectory())
            _ = try engine.write {
                try $0.insert(TestDelegate.entity, ObjectID(1), row: row(1, "a"))
            }
            try engine.exclusively { writer throws(EngineError) in
                writer.log.check()
                writer.log.progress.raise(to: FileOffset(1 << 40))
                writer.log.rollbackToHanded()
            }
        }
        #expect(Self.says(result, "bytes are durable after they are handed over"))
    }
}
