// A damaged log opened for reading: the last sound commit and the reason, never other data.

import Testing
import VarveBase
import VarveFormat
import VarveIO

@testable import VarveEngine

@Suite(.damagesStores("bytes of the file are changed")) struct DamagedReaderTests {
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

    /// A commit that changes rows of a sound page before it meets a damaged one.
    @Test("Half of a commit that cannot be applied is not shown")
    func noHalves() throws {
        let directory = MemoryDirectory()
        let small: (inout EngineOptions) -> Void = {
            $0.nodeWeightMax = 512
            $0.maintenance = .inline
        }
        func set(_ engine: Engine, _ objects: [UInt64], _ text: String) throws {
            _ = try engine.write { transaction in
                for object in objects {
                    try transaction.update(
                        TestDelegate.entity,
                        ObjectID(object),
                        patch: patch(nil, text)
                    )
                }
            }
        }
        let engine = try Engine.openTest(directory, small)
        _ = try engine.write { transaction in
            for object in UInt64(1)...400 {
                try transaction.insert(
                    TestDelegate.entity,
                    ObjectID(object),
                    row: row(Int64(object), "first")
                )
            }
        }
        try engine.checkpoint()
        let pages = engine.snapshot().state.frame.rawValue
        let objects: [UInt64] = [5, 390, 17, 340, 60, 111, 222, 333, 281]
        var states = [engine.snapshot().number: try engine.contents()]
        try set(engine, objects, "second")
        states[engine.snapshot().number] = try engine.contents()
        // The last one goes to a page that no commit before it needed.
        try set(engine, objects + [150], "third, and so much longer that leaves are split for it")
        states[engine.snapshot().number] = try engine.contents()
        let crashed = try directory.copyWithBlobs()
        let bytes = try crashed.openFile("test.varve", mode: .readWrite)
            .read(at: FileOffset(0), count: Int(pages))
        var halves = 0
        for place in stride(from: 8_200, to: Int(pages), by: 97) {
            let copy = try crashed.copyWithBlobs()
            let file = try copy.openFile("test.varve", mode: .readWrite)
            try file.write([bytes[place] ^ 1], at: FileOffset(UInt64(place)))
            guard let reader = try? Engine.openTest(copy, mode: .readOnly, small),
                let damage = reader.damage
            else { continue }
            #expect(damage.code == .damaged)
            // Rows of sound pages are those of the commit that is shown.
            let shown = try #require(states[reader.snapshot().number])
            for object in objects {
                let stored = try? reader.snapshot().row(TestDelegate.rows, ObjectID(object))
                guard let stored else { continue }
                let values = try (0..<2).map {
                    try RowView(stored.bytes).value(ColumnID(UInt16($0)))
                }
                #expect("\(values)" == shown[object], "byte \(place), object \(object)")
            }
            if shown[5]?.contains("second") == true { halves += 1 }
        }
        #expect(halves > 0)
    }
}
