// A frame whose tail word alone is missing: no hash covers that word, so the frame looks sound, and
// its header says that it reaches to where the log may have gone on.

import Testing
import VarveBase
import VarveFormat
import VarveIO

@testable import VarveEngine

@Suite("Frames without their tail word", .verified) struct MissingTailWordTests {
    private let directory = MemoryDirectory()

    private func save(_ object: UInt64) throws {
        let engine = try Engine.openTest(directory)
        _ = try engine.write {
            try $0.insert(TestDelegate.entity, ObjectID(object), row: row(Int64(object), "kept"))
        }
        try engine.close()
    }

    private func file(_ body: (any StoreFile) throws -> Void) throws {
        let file = try directory.openFile("test.varve", mode: .readWrite)
        defer { file.close() }
        try body(file)
    }

    /// A VALUE frame of 512 bytes whose tail word would begin at `end`, without that word.
    private func value(before end: UInt64, seed: UInt64) -> [UInt8] {
        let header = ValueHeader(
            entity: ValueHeader.blobEntity,
            column: ColumnID(0),
            object: ObjectID(0),
            commit: CommitNumber(1)
        )
        let front = header.encoded()
        let payload = 512 - FrameHeader.length - FrameHeader.tailLength
        var writer = ByteWriter()
        _ = Frame.append(
            to: &writer,
            kind: .value,
            flags: [],
            front: front,
            body: [UInt8](repeating: 7, count: payload - front.count),
            compresses: false,
            previousCommit: FileOffset(0),
            at: FileOffset(end + 8 - 512),
            seed: seed
        )
        return Array(writer.bytes.dropLast(FrameHeader.tailLength))
    }

    /// The file seed, and the first multiple of 4096 with room for a frame before it.
    private func place(in file: any StoreFile) throws -> (seed: UInt64, end: UInt64) {
        let seed = try FileHeader(decoding: try file.read(at: FileOffset(0), count: 4096)).fileSeed
        return (seed, (try file.size() + 1024 + 4095) & ~4095)
    }

    private func frames() throws -> [Range<UInt64>] {
        var frames: [Range<UInt64>] = []
        let observer = try LogObserver.open(.directory(directory, name: "test"))
        try observer.forEachPiece { piece in
            if case .frame(let frame) = piece {
                #expect(frame.isPayloadSound)
                frames.append(frame.offset.rawValue..<frame.end.rawValue)
            }
            return true
        }
        return frames
    }

    @Test("A writer goes on behind the place of the missing word") func writing() throws {
        try save(1)
        var end: UInt64 = 0
        try file { file in
            let (seed, place) = try place(in: file)
            end = place
            try file.write(value(before: end, seed: seed), at: FileOffset(end + 8 - 512))
        }
        try save(2)
        let frames = try frames()
        #expect(frames.contains(end + 8 - 512..<end + 8))
        #expect(frames.contains { $0.lowerBound == end + 4096 })
        #expect(zip(frames, frames.dropFirst()).allSatisfy { $0.upperBound <= $1.lowerBound })
    }

    @Test("Where an older writer went on at that very place, its frame is found") func reading()
        throws
    {
        try save(1)
        var (seed, end) = (UInt64(0), UInt64(0))
        try file { file in
            (seed, end) = try place(in: file)
            // What the writer finds ends where the frame of which it knows nothing has its payload.
            try file.write([7], at: FileOffset(end - 9))
        }
        try save(2)
        #expect(try frames().contains { $0.lowerBound == end })
        try file { file in
            try file.write(value(before: end, seed: seed), at: FileOffset(end + 8 - 512))
        }
        #expect(try frames().contains { $0.lowerBound == end })
        #expect(try Engine.openTest(directory).contents().keys.sorted() == [1, 2])
    }
}
