// Leaves of layout 2: what was written is read, and what no writer writes is an error.

import Testing
import VarveBase
import VarveTesting

@testable import VarveFormat

@Suite("Edited leaves") struct EditedLeafTests {
    private static let basis = PageAddress(
        offset: FileOffset(8192),
        storedLength: 999,
        payloadHash: 77
    )
    private static let offset = FileOffset(1 << 20)

    private static func body(
        keptBytes: Int = 500,
        gone: [Int],
        objects: [UInt64],
        values: [[UInt8]]
    ) -> [UInt8] {
        var writer = ByteWriter(capacity: 64)
        EditedLeaf.append(
            basis: basis,
            keptBytes: keptBytes,
            gone: gone,
            objects: objects,
            valueLengths: values.map(\.count),
            to: &writer
        )
        for value in values { writer.raw(value) }
        return writer.bytes
    }

    private static func read(_ bytes: [UInt8], count: Int) throws(FormatError) -> EditedLeaf {
        try EditedLeaf(decoding: bytes, range: 0..<bytes.count, count: count, offset: offset)
    }

    @Test(arguments: 0..<20 as Range<UInt64>) func whatIsWrittenIsRead(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        for _ in 0..<100 {
            let gone = (0..<200).filter { _ in Int.random(in: 0..<9, using: &random) == 0 }
            var objects = Set(
                (0..<Int.random(in: 0..<40, using: &random)).map { _ in
                    UInt64.random(in: 0...(.max >> UInt64(8 * (seed % 8))), using: &random)
                }
            ).sorted()
            if seed == 3 { objects = [0, 1, .max] }
            let values = objects.map { _ in
                [UInt8](repeating: 7, count: Int.random(in: 0..<300, using: &random))
            }
            let bytes = Self.body(gone: gone, objects: objects, values: values)
            let leaf = try Self.read(bytes, count: 300)
            #expect(leaf.basis == Self.basis && leaf.keptBytes == 500)
            #expect(leaf.gone == gone && leaf.objects == objects)
            #expect(leaf.values.map(\.count) == values.map(\.count))
            #expect(leaf.values.last.map { $0.upperBound == bytes.count } ?? true)
        }
    }

    @Test func whatNoWriterWritesIsRefused() throws {
        let sound = Self.body(gone: [3, 4], objects: [8, 9], values: [[1, 4], [2, 4, 4]])
        #expect(throws: Never.self) { try Self.read(sound, count: 2) }
        // More rows than the leaf has.
        #expect(throws: FormatError.self) { try Self.read(sound, count: 1) }
        for length in 0..<sound.count {
            #expect(throws: FormatError.self) { try Self.read(Array(sound[..<length]), count: 2) }
        }
        #expect(throws: FormatError.self) { try Self.read(sound + [0], count: 2) }
        // A basis above the leaf, and one that is no frame.
        #expect(throws: FormatError.self) {
            let offset = Self.basis.offset
            return try EditedLeaf(decoding: sound, range: 0..<sound.count, count: 2, offset: offset)
        }
        // Objects that do not ascend.
        let twice = Self.body(gone: [], objects: [8, 8], values: [[1], [1]])
        #expect(throws: FormatError.self) { try Self.read(twice, count: 2) }
        let back = Self.body(gone: [], objects: [8, 7], values: [[1], [1]])
        #expect(throws: FormatError.self) { try Self.read(back, count: 2) }
        let far = Self.body(gone: [65_000, 66_000], objects: [], values: [])
        #expect(throws: FormatError.self) { try Self.read(far, count: 2) }
        let many = Self.body(gone: Array(0..<70_000), objects: [], values: [])
        #expect(throws: FormatError.self) { try Self.read(many, count: 2) }
        let limit = unsafe PackedLeaf.rawBytesLimit
        #expect(EditedLeaf.keptBytesMax == limit)
        let large = Self.body(
            keptBytes: EditedLeaf.keptBytesMax + 1,
            gone: [],
            objects: [],
            values: []
        )
        #expect(throws: FormatError.self) { try Self.read(large, count: 2) }
    }

    /// No bytes end the program, or make it take much memory.
    @Test(arguments: 0..<8 as Range<UInt64>) func noBytesTrap(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let sound = Self.body(
            gone: [0, 5, 90],
            objects: [1, 300, 70_000],
            values: [[1, 2], [], [4]]
        )
        var read = 0
        for _ in 0..<1_000 {
            var bytes = sound
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                bytes[place] = UInt8.random(in: 0...255, using: &random)
            }
            guard let leaf = try? Self.read(bytes, count: 100) else { continue }
            read += 1
            #expect(zip(leaf.gone, leaf.gone.dropFirst()).allSatisfy { $0 < $1 })
            #expect(zip(leaf.objects, leaf.objects.dropFirst()).allSatisfy { $0 < $1 })
            #expect(leaf.values.allSatisfy { $0.upperBound <= bytes.count })
        }
        #expect(read > 20)
    }
}
