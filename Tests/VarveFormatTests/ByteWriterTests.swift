// That building an encoding costs the same per byte however long it gets.
import Testing
import VarveFormat

@Suite struct ByteWriterTests {
    /// A commit of 100,000 rows once took 5 s: each frame reserved room for itself, and each
    /// reservation copied every frame before it.
    @Test func `reserving room again and again moves the bytes only seldom`() {
        var writer = ByteWriter()
        var moves = 0
        var capacity = writer.bytes.capacity
        for _ in 0..<20_000 {
            writer.reserve(64)
            writer.zeros(64)
            if writer.bytes.capacity != capacity { moves += 1 }
            capacity = writer.bytes.capacity
        }
        #expect(writer.count == 20_000 * 64)
        #expect(moves < 30)
    }

    @Test func `a part of an array is appended, of itself too`() {
        var bytes: [UInt8] = []
        ByteWriter.append([], 0..<0, to: &bytes)
        #expect(bytes.isEmpty)
        let source = (0..<100).map { UInt8($0) }
        ByteWriter.append(source, 20..<20, to: &bytes)
        ByteWriter.append(source, 20..<23, to: &bytes)
        #expect(bytes == [20, 21, 22])
        let copy = bytes
        ByteWriter.append(copy, 1..<3, to: &bytes)
        #expect(bytes == [20, 21, 22, 21, 22] && copy == [20, 21, 22])
        ByteWriter.append(source, source.indices, to: &bytes)
        #expect(bytes == [20, 21, 22, 21, 22] + source)
    }
}
