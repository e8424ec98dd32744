// No frame has a sector of zeros: random payloads at random places, and the worst that there are.

import Testing
import VarveBase
import VarveTesting

@testable import VarveFormat

@Suite("Zeros in frames") struct FrameZerosTests {
    private static let seed: UInt64 = 0x5EED

    /// Appends a frame as a log does, and checks the bytes that would be written.
    private static func check(
        _ kind: FrameKind,
        front: [UInt8],
        body: [UInt8],
        compresses: Bool,
        at offset: UInt64,
        _ comment: Comment
    ) throws {
        var writer = ByteWriter()
        let placed = Frame.append(
            to: &writer,
            kind: kind,
            front: front,
            body: body,
            compresses: compresses,
            previousCommit: FileOffset(0),
            at: FileOffset(offset),
            seed: seed
        )
        var header = placed.header
        if kind.isCommitFrame {
            header = Frame.sealCommit(
                in: &writer,
                at: 0,
                placed: placed,
                previousHash: 0,
                durableEnd: FileOffset(0),
                isStacked: false,
                seed: seed
            )
        }
        let bytes = writer.bytes
        #expect(bytes.count == Int(header.frameLength), comment)
        // Each sector, as recovery looks at them: one flipped bit must not make it look missing.
        var start = 0
        while start < bytes.count {
            let sector = (offset + UInt64(start)) / 512
            let end = min(bytes.count, Int((sector + 1) * 512 - offset))
            let others = bytes[start..<end].count { $0 != 0 }
            if others < 2 {
                Issue.record("sector \(sector) has \(others) bytes that are not zero; \(comment)")
            }
            start = end
        }
        var run = 0
        for byte in bytes {
            run = byte == 0 ? run + 1 : 0
            if run == FrameHeader.zerosEnd { Issue.record("256 zeros in a row; \(comment)") }
        }
        // What is read is what was written.
        let payload = FrameHeader.length..<(FrameHeader.length + Int(header.storedLength))
        let (read, range) = try Frame.body(
            of: bytes,
            payload: payload,
            header: header,
            frontLength: front.count,
            place: "test"
        )
        #expect(read[range].elementsEqual(body), comment)
    }

    private static func front(_ kind: FrameKind, _ random: inout SeededRandom) -> [UInt8] {
        switch kind {
        case .page: return [UInt8](repeating: random.next() % 2 == 0 ? 0 : 3, count: 16)
        case .value: return [UInt8](repeating: random.next() % 2 == 0 ? 0 : 3, count: 24)
        default:
            var record = CommitRecord()
            record.number = CommitNumber(random.next() % 2)
            record.author = random.next() % 3 == 0 ? String(repeating: "\0", count: 64) : ""
            return record.encoded()
        }
    }

    /// Found by flipping bits: a body that ended with 511 zeros, and the padding behind it, made a
    /// sector of zeros. A flipped bit elsewhere in that commit then made it look like a torn write,
    /// and it was rolled back without a word.
    @Test("Zeros at the end, at the front and alone, of every length")
    func zerosOfEveryLength() throws {
        var random = SeededRandom(seed: 1)
        for kind in FrameKind.allCases {
            for count in (240..<300).map({ $0 }) + Array(495..<530) + [1023, 1024, 5000] {
                let zeros = [UInt8](repeating: 0, count: count)
                let noise = random.bytes(300).map { $0 | 1 }
                for (name, body) in [
                    ("end", noise + zeros), ("front", zeros + noise), ("alone", zeros),
                    ("middle", noise + zeros + noise),
                ] {
                    let offset = UInt64.random(in: 0..<64, using: &random) * 8
                    try Self.check(
                        kind,
                        front: Self.front(kind, &random),
                        body: body,
                        compresses: random.next() % 2 == 0,
                        at: offset,
                        "\(kind), \(count) zeros at the \(name), offset \(offset)"
                    )
                }
            }
        }
    }

    @Test("Random lengths and contents at random places", arguments: 1...4)
    func randomFrames(seed: Int) throws {
        var random = SeededRandom(seed: UInt64(seed))
        for round in 0..<600 {
            let kind = random.pick(FrameKind.allCases)
            var body: [UInt8] = []
            for _ in 0..<Int.random(in: 0..<6, using: &random) {
                let count = random.pick([1, 7, 60, 64, 65, 250, 255, 256, 511, 512, 600, 2000])
                let exact = max(0, count + Int.random(in: -2...2, using: &random))
                switch random.next() % 4 {
                case 0, 1: body += [UInt8](repeating: 0, count: exact)
                case 2: body += random.bytes(exact)
                default: body += (0..<exact).map { $0 % 200 == 0 ? 1 : 0 }
                }
            }
            let offset = UInt64.random(in: 0..<640, using: &random) * 8
            try Self.check(
                kind,
                front: Self.front(kind, &random),
                body: body,
                compresses: random.next() % 2 == 0,
                at: offset,
                "seed \(seed), round \(round)"
            )
        }
    }

    /// liblz4 looks at every hundredth place, and fewer, of long bytes that do not compress.
    @Test("Runs of zeros far inside of bytes that do not compress")
    func runsThatACompressorPassesOver() throws {
        var random = SeededRandom(seed: 9)
        var body: [UInt8] = []
        while body.count < 1 << 20 {
            body += random.bytes(Int.random(in: 20_000..<200_000, using: &random))
            body += [UInt8](repeating: 0, count: Int.random(in: 250..<700, using: &random))
        }
        for compresses in [true, false] {
            try Self.check(
                .value,
                front: Self.front(.value, &random),
                body: body,
                compresses: compresses,
                at: 8192,
                "\(body.count) bytes"
            )
        }
    }

    @Test("A block of zero runs is restored by LZ4, and grows no more than one of LZ4")
    func blocksOfZeroRuns() throws {
        var random = SeededRandom(seed: 3)
        for round in 0..<3000 {
            var raw: [UInt8] = []
            for _ in 0..<Int.random(in: 0..<5, using: &random) {
                let count = Int.random(in: 0..<random.pick([3, 20, 90, 700]), using: &random)
                raw +=
                    random.next() % 2 == 0
                    ? [UInt8](repeating: 0, count: count) : random.bytes(count)
            }
            let block = ZeroRuns.block(raw)
            #expect(block.count <= raw.count + raw.count / 255 + 16)
            let again = try BlockCompression.decompress(
                block,
                range: 0..<block.count,
                rawLength: raw.count,
                limit: raw.count
            )
            #expect(again == raw, "round \(round)")
            #expect(!ZeroRuns.hasRun(of: 100, in: block), "round \(round)")
        }
    }
}
