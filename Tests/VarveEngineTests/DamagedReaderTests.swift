// A damaged log opened for reading: the last sound commit and the reason, never other data.

import Testing
import VarveBase
import VarveFormat
import VarveIO

@testable import VarveEngine

@Suite struct DamagedReaderTests {
    @Test(arguments: [UInt64(201), 202])
    func aReaderSeesTheLastSoundCommit(seed: UInt64) throws {
        let directory = MemoryDirectory()
        var history = RandomHistory(seed: seed)
        var frames: [FileOffset] = []
        // Not closed, so that every commit is read again when the store is opened.
        let engine = try Engine.openTest(directory)
        for _ in 0..<8 {
            try history.commit(engine)
            frames.append(engine.snapshot().state.frame)
        }
        let crashed = try directory.copyWithBlobs()
        var refused = 0
        for frame in frames {
            let copy = try crashed.copyWithBlobs()
            let file = try copy.openFile("test.varve", mode: .readWrite)
            let place = FileOffset(frame.rawValue + 50)
            let byte = try file.read(at: place, count: 1)
            try file.write([byte[0] ^ 1], at: place)
            do {
                let writer = try Engine.openTest(copy)
                #expect(try writer.snapshot().everything() == history.newest)
            } catch let error as EngineError {
                #expect(error.code == .damaged || error.code == .newestCommitDamaged)
                refused += 1
            }
            let reader = try Engine.openTest(copy, mode: .readOnly)
            let number = reader.snapshot().number
            if number < history.states.keys.max() ?? number { #expect(reader.damage != nil) }
            if let state = history.states[number] {
                #expect(try reader.snapshot().everything() == state)
            }
        }
        #expect(refused > 5)
        print("damaged commits refused for writing \(refused), seed \(seed)")
    }
}
