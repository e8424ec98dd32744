// A store file taken apart into its frames, and put together again with every hash right.
//
// Invariants
// - Never fails: what is no frame stays as bytes at the end, what is no block stays as stored.
// - Put together unchanged, it holds the same trees at other places: addresses, chains, bodies and
//   `durableEnd` follow their frames.

import VarveTesting

struct LogParts {
    /// One frame with its payload as the reader sees it.
    struct Part {
        var kind: UInt8
        var flags: UInt8
        var previous: UInt64
        /// Front and decompressed rest; as stored when it could not be decompressed.
        var payload: [UInt8]
        /// Whether it is to be compressed again.
        var compresses: Bool
        var isOpaque = false
        /// What its parents know it by.
        var oldOffset: UInt64
        var oldStored: UInt64
        var oldHash: UInt64
        var oldEnd: UInt64

        var isCommit: Bool { (1...4).contains(kind) }
        var isPage: Bool { kind == 5 }

        /// Bytes that are never compressed.
        var front: Int { LogParts.front(kind, payload) }
    }

    /// The two copies of the file header.
    var head: [UInt8]
    var parts: [Part] = []
    /// What stands behind the last frame.
    var rest: [UInt8] = []
    /// An address of one frame that becomes that of another: by the hash of the first.
    var redirected: [UInt64: Int] = [:]

    private static let start = 8192

    static func front(_ kind: UInt8, _ payload: [UInt8]) -> Int {
        switch kind {
        case 5: return min(16, payload.count)
        case 6: return min(24, payload.count)
        default:
            guard payload.count >= 96 else { return payload.count }
            let extra = Int(ByteReader.load32(payload, 92))
            return min(payload.count, 96 + min(extra, 1 << 20))
        }
    }

    /// Takes a file apart; nil when it is too short.
    init?(_ bytes: [UInt8]) {
        guard bytes.count > Self.start + 40 else { return nil }
        head = Array(bytes[..<Self.start])
        var at = Self.start
        while bytes.count - at >= 40, ByteReader.load16(bytes, at) == 0x5646 {
            let stored = Int(ByteReader.load32(bytes, at + 4))
            let length = 40 + (stored + 7) / 8 * 8
            guard stored <= bytes.count, bytes.count - at >= length, (1...6).contains(bytes[at + 2])
            else { break }
            let payload = Array(bytes[(at + 32)..<(at + 32 + stored)])
            var part = Part(
                kind: bytes[at + 2],
                flags: bytes[at + 3],
                previous: ByteReader.load64(bytes, at + 16),
                payload: payload,
                compresses: bytes[at + 3] & 1 != 0,
                oldOffset: UInt64(at),
                oldStored: UInt64(stored),
                oldHash: ByteReader.load64(bytes, at + 24),
                oldEnd: UInt64(at + length)
            )
            if part.compresses {
                let front = part.front
                let raw = Int(ByteReader.load32(bytes, at + 8)) - front
                let rest = try? BlockCompression.decompress(
                    payload,
                    range: front..<payload.count,
                    rawLength: raw,
                    limit: 1 << 18
                )
                if let rest { part.payload = Array(payload[..<front]) + rest }
                part.isOpaque = rest == nil
            }
            parts.append(part)
            at += length
        }
        rest = Array(bytes[at...])
    }

    var seed: UInt64 { FrameHash.xxh64(Array(head[40..<56])) }

    // MARK: Together

    private struct Placed {
        var offset: UInt64
        var stored: UInt64
        var hash: UInt64
        var end: UInt64
    }

    /// The file, with all hashes put right.
    ///
    /// - Parameter compresses: whether frames that were compressed are so again.
    func assembled(compresses: Bool) -> [UInt8] {
        var head = head
        let known = parts.map(\.oldHash)
        var filter = [Bool](repeating: false, count: 1 << 12)
        var byHash: [UInt64: Int] = [:]
        for (index, hash) in known.enumerated() {
            byHash[hash] = index
            filter[Int(hash & 0xFFF)] = true
        }
        for copy in [0, 4096] {
            let hash = FrameHash.xxh64(Array(head[copy..<(copy + 4088)]))
            Self.put(hash, in: &head, at: copy + 4088)
        }
        let seed = FrameHash.xxh64(Array(head[40..<56]))
        var file = ByteWriter(capacity: head.count + 4096)
        file.raw(head)
        var places: [UInt64: UInt64] = [:]
        var placed: [Placed] = []
        for part in parts {
            let offset = UInt64(file.count)
            places[part.oldOffset] = offset
            var payload = part.payload
            if !part.isOpaque {
                payload = rewritten(part, placed, byHash, filter)
            }
            if part.isCommit, payload.count >= 96 {
                fixRecord(&payload, part, at: offset, placed, places, file, seed)
            }
            let compressed: [UInt8]?
            let front = Self.front(part.kind, payload)
            if part.isOpaque || !compresses || !part.compresses {
                compressed = nil
            } else {
                compressed = BlockCompression.compressAlways(payload, range: front..<payload.count)
                    .map { Array(payload[..<front]) + $0 }
            }
            let stored = compressed ?? payload
            let isBlock = part.isOpaque || compressed != nil
            let hash = FrameHash.xxh64(stored, seed: seed)
            let previous = places[part.previous] ?? part.previous
            var header = ByteWriter(capacity: 32)
            header.u16(0x5646)
            header.u8(part.kind)
            header.u8(isBlock ? part.flags | 1 : part.flags & ~1)
            header.u32(UInt32(truncatingIfNeeded: stored.count))
            header.u32(UInt32(truncatingIfNeeded: part.isOpaque ? 1 << 12 : payload.count))
            header.u32(0)
            header.u64(previous)
            header.u64(hash)
            let check = FrameHash.xxh64(header.bytes, seed: seed ^ offset)
            header.patch(UInt32(truncatingIfNeeded: check), at: 12)
            file.raw(header.bytes)
            file.raw(stored)
            file.zeros((8 - stored.count % 8) % 8)
            let length = UInt64(file.count) - offset + 8
            file.u32(UInt32(truncatingIfNeeded: length / 8))
            file.u32(0x4C54_5246)
            let end = UInt64(file.count)
            if places[part.oldEnd] == nil { places[part.oldEnd] = end }
            placed.append(
                Placed(offset: offset, stored: UInt64(stored.count), hash: hash, end: end)
            )
        }
        file.raw(rest)
        return file.bytes
    }

    /// The payload with addresses of frames before it brought up to date.
    private func rewritten(
        _ part: Part,
        _ placed: [Placed],
        _ byHash: [UInt64: Int],
        _ filter: [Bool]
    ) -> [UInt8] {
        let old = part.payload
        // A leaf counts the bytes of its values, so an address in it must keep its length.
        let keepsLengths = part.isPage && old.count > 4 && old[4] == 0
        var result: [UInt8] = []
        var copied = 0
        var at = part.isCommit ? 96 : 16
        while at + 8 <= old.count {
            let word = ByteReader.load64(old, at)
            guard filter[Int(word & 0xFFF)], var index = byHash[word] else {
                at += 1
                continue
            }
            let known = parts[index]
            if let other = redirected[word] { index = other }
            let before = Self.varint(known.oldOffset / 8) + Self.varint(known.oldStored)
            let begin = at - before.count
            guard begin >= copied, Array(old[begin..<at]) == before, index < placed.count else {
                at += 8
                continue
            }
            let new = Self.varint(placed[index].offset / 8) + Self.varint(placed[index].stored)
            if keepsLengths && new.count != before.count {
                at += 8
                continue
            }
            result += old[copied..<begin]
            result += new
            Self.append(placed[index].hash, to: &result)
            at += 8
            copied = at
        }
        result += old[copied...]
        return result
    }

    private func fixRecord(
        _ payload: inout [UInt8],
        _ part: Part,
        at offset: UInt64,
        _ placed: [Placed],
        _ places: [UInt64: UInt64],
        _ file: ByteWriter,
        _ seed: UInt64
    ) {
        let before = places[part.previous] ?? part.previous
        if let previous = placed.first(where: { $0.offset == before }) {
            Self.put(previous.hash, in: &payload, at: 8)
        }
        // bodyStart, checkpoint, durableEnd.
        for field in [16, 32, 40] {
            let value = ByteReader.load64(payload, field)
            if let place = places[value] { Self.put(place, in: &payload, at: field) }
        }
        let start = ByteReader.load64(payload, 16)
        var hash = seed
        for frame in placed where frame.offset >= start {
            hash = FrameHash.combine(hash, with: frame.hash)
        }
        Self.put(hash, in: &payload, at: 24)
    }

    // MARK: Helpers

    static func varint(_ value: UInt64) -> [UInt8] {
        var writer = ByteWriter(capacity: 10)
        writer.varint(value)
        return writer.bytes
    }

    static func append(_ word: UInt64, to bytes: inout [UInt8]) {
        for shift in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(shift * 8))) }
    }

    static func put(_ word: UInt64, in bytes: inout [UInt8], at position: Int) {
        for shift in 0..<8 {
            bytes[position + shift] = UInt8(truncatingIfNeeded: word >> UInt64(shift * 8))
        }
    }
}
