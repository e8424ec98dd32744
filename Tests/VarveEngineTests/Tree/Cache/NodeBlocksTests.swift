// Blocks and buffers that are used again: nobody has one that another has, and none grow without
// end.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO
import VarveTesting

@testable import VarveEngine

@Suite("Blocks of nodes", .verified) struct NodeBlocksTests {
    /// Nodes of all sizes on several threads, each filled with what only it has.
    @Test("Nodes keep their bytes while others come and go")
    func nodesKeepTheirBytes() {
        let damaged = Mutex(0)
        onThreads(4) { thread in
            var random = SeededRandom(seed: UInt64(thread) + 1)
            var nodes: [(node: TreeNode, byte: UInt8)] = []
            for round in 0..<4_000 {
                let byte = UInt8(truncatingIfNeeded: round &* 4 &+ thread)
                let node = TreeNode(stamp: 1, level: 0, capacity: 300)
                let value = [UInt8](
                    repeating: byte,
                    count: Int.random(in: 0...3_000, using: &random)
                )
                for key in 0..<UInt8.random(in: 1...16, using: &random) {
                    node.insert([key], value, at: node.count)
                }
                nodes.append((node, byte))
                if nodes.count > 60 {
                    let index = Int.random(in: 0..<nodes.count, using: &random)
                    let (old, byte) = nodes.remove(at: index)
                    let copy = TreeNode(copying: old, stamp: 2, slack: 100)
                    for node in [old, copy] {
                        for index in 0..<node.count
                        where node.value(index).contains(where: { $0 != byte }) {
                            damaged.withLock { $0 += 1 }
                        }
                    }
                }
            }
        }
        #expect(damaged.withLock { $0 } == 0)
        #expect(NodeBlocks.pooledBytes <= BlockPool.bytesMax)
    }

    @Test("A block that was given is the next that is taken, and the oldest kinds go first")
    func pool() {
        var pool = BlockPool()
        #expect(pool.take(4) == 0)
        let (one, two) = (BlockPool.make(4), BlockPool.make(4))
        #expect(pool.give(one, 4) == 0 && pool.give(two, 4) == 0)
        #expect(pool.bytes == 8 * BlockPool.step)
        #expect(pool.take(5) == 0)
        #expect(pool.take(4) == two && pool.take(4) == one && pool.take(4) == 0)
        #expect(pool.bytes == 0)
        BlockPool.free(one)
        BlockPool.free(two)
        // Full of blocks that nobody asks for: those that come stay, and the others go.
        while pool.bytes + 9 * BlockPool.step <= BlockPool.bytesMax {
            #expect(pool.give(BlockPool.make(9), 9) == 0)
        }
        for _ in 0..<(BlockPool.bytesMax / (20 * BlockPool.step)) {
            BlockPool.free(pool.give(BlockPool.make(20), 20))
            #expect(pool.bytes <= BlockPool.bytesMax)
        }
        var found = 0
        while true {
            let block = pool.take(20)
            if block == 0 { break }
            BlockPool.free(block)
            found += 1
        }
        #expect(found * 20 * BlockPool.step > BlockPool.bytesMax / 4)
    }

    @Test("What a block takes is what its node counts")
    func footprints() {
        for bytes in [1, 1_000, 1_023, 1_024, 1_025, 8_192, 32 << 10, (32 << 10) + 1, 1 << 20] {
            let rounded = NodeBlocks.rounded(bytes)
            #expect(rounded >= bytes && rounded - bytes < BlockPool.step)
            #expect(NodeBlocks.rounded(rounded) == rounded)
            #expect(TreeNode(stamp: 1, level: 0, capacity: bytes).footprint >= rounded)
        }
    }

    /// What an earlier reading left in the buffer is not taken for the file.
    @Test("A frame that the file has half of is damage, whatever the buffer holds")
    func halfAFrame() throws {
        let directory = MemoryDirectory()
        let engine = try Engine.openTest(directory)
        _ = try engine.write { transaction in
            for object in 1...200 {
                let id = ObjectID(UInt64(object))
                try transaction.insert(TestDelegate.entity, id, row: row(Int64(object), "text"))
            }
        }
        try engine.checkpoint()
        try engine.close()
        let file = try directory.openFile("test.varve", mode: .readWrite)
        let header = try FileHeader(decoding: file.read(at: FileOffset(0), count: 4096))
        let log = LogReader(file: file, seed: header.fileSeed)
        let found = try Recovery(scan: LogScan(log: log, size: file.size())).run()
        let address = try #require(try Replay.roots(of: found.base).last?.address)
        let whole = try log.frame(address, kind: .page, in: ReadBuffers.take())
        #expect(whole.bytes.count == ReadBuffers.length)
        #expect(
            try whole.bytes.prefix(whole.payload.upperBound)
                == log.frame(address, kind: .page).bytes[...]
        )
        for left in [0, 7, FrameHeader.length, FrameHeader.length + 9] {
            try file.cut(to: address.offset.rawValue + UInt64(left))
            #expect {
                try log.frame(address, kind: .page, in: whole.bytes)
            } throws: { ($0 as? EngineError)?.code == .damaged }
        }
    }
}
