// The mutator of whole stores: frames are taken apart, changed, and their hashes put right.
//
// Without it no input gets behind the first hash: 17 million runs found nothing that way.

import VarveTesting

enum LogMutation {
    typealias Bytes = ([UInt8], Int) -> [UInt8]

    /// Another store file. In one of eight cases no hash is put right.
    static func mutate(_ bytes: [UInt8], seed: UInt64, bytes mutated: Bytes) -> [UInt8] {
        var random = SeededRandom(seed: seed)
        if random.next() % 8 == 0 { return plain(bytes, &random, mutated) }
        guard var log = LogParts(bytes), !log.parts.isEmpty else { return mutated(bytes, 64 << 10) }
        for _ in 0..<(1 + Int(random.next() % 3)) { change(&log, &random, mutated) }
        return log.assembled(compresses: random.next() % 4 == 0)
    }

    /// Bytes changed as they are, mostly behind the headers.
    private static func plain(
        _ bytes: [UInt8],
        _ random: inout SeededRandom,
        _ mutated: Bytes
    ) -> [UInt8] {
        guard bytes.count > 8192 else { return mutated(bytes, 64 << 10) }
        return bytes[..<8192] + mutated(Array(bytes[8192...]), 56 << 10)
    }

    private static func pick(_ count: Int, _ random: inout SeededRandom) -> Int {
        Int(random.next() % UInt64(max(1, count)))
    }

    /// Numbers at which something ends.
    static func number(_ random: inout SeededRandom) -> UInt64 {
        let edges: [UInt64] = [
            0, 1, 2, 7, 8, 127, 128, 255, 256, 4095, 4096, 65535, 65536, 1 << 24, 1 << 26,
            (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 61) - 1, 1 << 61, (1 << 62) - 1,
            1 << 62, (1 << 63) - 1, 1 << 63, .max - 7, .max - 1, .max,
        ]
        switch random.next() % 4 {
        case 0: return random.next() % 64
        case 1: return random.next()
        default: return edges[pick(edges.count, &random)]
        }
    }

    private static func change(
        _ log: inout LogParts,
        _ random: inout SeededRandom,
        _ mutated: Bytes
    ) {
        guard !log.parts.isEmpty else { return }
        let index = pick(log.parts.count, &random)
        switch random.next() % 20 {
        case 0...3: changeBytes(&log.parts[index], &random, mutated)
        case 4...7: changePage(&log, &random, mutated)
        case 8...9: changeOperations(&log, &random, mutated)
        case 10...11: changeRecord(&log, &random)
        case 12: changeNumber(&log.parts[index], &random)
        case 13: changeHeader(&log, index, &random)
        case 14:
            // An address that leads elsewhere: shared subtrees, other trees, other levels.
            let other = pick(log.parts.count, &random)
            log.redirected[log.parts[index].oldHash] = other
        case 15: log.parts.remove(at: index)
        case 16: log.parts.swapAt(index, pick(log.parts.count, &random))
        case 17:
            var copy = log.parts[index]
            copy.oldHash = random.next()
            copy.oldOffset = copy.oldOffset | 1 << 40
            log.parts.insert(copy, at: pick(log.parts.count + 1, &random))
        case 18:
            log.parts.removeLast(pick(min(4, log.parts.count), &random))
            log.rest = random.next() % 2 == 0 ? [] : mutated(log.rest, 4 << 10)
        default:
            log.rest = [UInt8](repeating: 0, count: pick(5000, &random)) + mutated([7], 64)
        }
    }

    /// A few bytes of a payload, by libFuzzer's own ways.
    private static func changeBytes(
        _ part: inout LogParts.Part,
        _ random: inout SeededRandom,
        _ mutated: Bytes
    ) {
        let front = min(part.front, part.payload.count)
        let begin = random.next() % 4 == 0 ? 0 : front
        guard begin < part.payload.count else { return }
        let from = begin + pick(part.payload.count - begin, &random)
        let end = min(part.payload.count, from + 1 + pick(64, &random))
        part.payload.replaceSubrange(from..<end, with: mutated(Array(part.payload[from..<end]), 80))
    }

    /// A varint, a word or a double word somewhere becomes a number at which something ends.
    private static func changeNumber(_ part: inout LogParts.Part, _ random: inout SeededRandom) {
        guard !part.payload.isEmpty else { return }
        let at = pick(part.payload.count, &random)
        let number = number(&random)
        if random.next() % 2 == 0 {
            var end = at
            while end < part.payload.count, part.payload[end] & 0x80 != 0, end - at < 9 { end += 1 }
            let range = at..<min(part.payload.count, end + 1)
            part.payload.replaceSubrange(range, with: LogParts.varint(number))
        } else if part.payload.count - at >= 8 {
            LogParts.put(number, in: &part.payload, at: at)
        }
    }

    private static func changeRecord(_ log: inout LogParts, _ random: inout SeededRandom) {
        let commits = log.parts.indices.filter {
            log.parts[$0].isCommit && log.parts[$0].payload.count >= 96
        }
        guard !commits.isEmpty else { return }
        let index = commits[pick(commits.count, &random)]
        let field = pick(12, &random) * 8
        var value = number(&random)
        if random.next() % 2 == 0 {
            // A place that is there.
            let other = log.parts[pick(log.parts.count, &random)]
            value = random.next() % 2 == 0 ? other.oldOffset : other.oldEnd
        } else if random.next() % 2 == 0 {
            value = ByteReader.load64(log.parts[index].payload, field) &+ random.next() % 5 &- 2
        }
        LogParts.put(value, in: &log.parts[index].payload, at: field)
    }

    private static func changeHeader(
        _ log: inout LogParts,
        _ index: Int,
        _ random: inout SeededRandom
    ) {
        switch random.next() % 5 {
        case 0: log.parts[index].kind = UInt8(1 + random.next() % 6)
        case 1: log.parts[index].flags ^= 1 << UInt8(1 + random.next() % 4)
        case 2: log.parts[index].previous = log.parts[pick(log.parts.count, &random)].oldOffset
        case 3: log.parts[index].previous = number(&random)
        default:
            let at = 8 + pick(140, &random)
            log.head[at] = UInt8(truncatingIfNeeded: random.next())
            if random.next() % 2 == 0 { log.head[4096 + at] = log.head[at] }
        }
    }

    // MARK: Pages

    /// An entry of a page, with the lengths that go with it.
    private static func changePage(
        _ log: inout LogParts,
        _ random: inout SeededRandom,
        _ mutated: Bytes
    ) {
        let pages = log.parts.indices.filter { log.parts[$0].isPage && !log.parts[$0].isOpaque }
        guard !pages.isEmpty else { return }
        let index = pages[pick(pages.count, &random)]
        let payload = log.parts[index].payload
        guard
            let header = try? PageHeader(decoding: payload, range: 0..<payload.count, place: ""),
            let body = try? PageBody(
                decoding: payload,
                range: 16..<payload.count,
                header: header,
                offset: FileOffset(.max)
            )
        else { return changeBytes(&log.parts[index], &random, mutated) }
        var front = Array(payload[..<16])
        let prefix = Array(payload[body.prefix])
        var keys = body.suffixes.map { prefix + payload[$0] }
        var values = body.values.map { Array(payload[$0]) }
        var children = body.children
        let entry = pick(keys.count, &random)
        switch random.next() % 8 {
        case 0: keys[entry] = mutated(keys[entry], 64)
        case 1 where keys.count > 1:
            keys.remove(at: entry)
            if !values.isEmpty { values.remove(at: entry) }
            if !children.isEmpty { children.remove(at: entry) }
            if header.level > 0 { keys[0] = [] }
        case 2:
            keys.insert(keys[entry] + [UInt8(random.next() % 4)], at: entry + 1)
            if !values.isEmpty { values.insert(values[entry], at: entry + 1) }
            if !children.isEmpty { children.insert(children[entry], at: entry + 1) }
        case 3 where !children.isEmpty: children[entry].rows = number(&random)
        case 3...6 where !values.isEmpty: values[entry] = mutated(values[entry], 512)
        case 4 where !children.isEmpty:
            children[entry].rows = children[entry].rows &+ random.next() % 5 &- 2
        case 5 where !children.isEmpty:
            children[entry] = children[pick(children.count, &random)]
        default: front[pick(16, &random)] = UInt8(truncatingIfNeeded: random.next())
        }
        front[6] = UInt8(truncatingIfNeeded: keys.count)
        front[7] = UInt8(truncatingIfNeeded: keys.count >> 8)
        var writer = ByteWriter(capacity: payload.count + 64)
        writer.raw(front)
        writer.count(0)
        for key in keys { writer.count(key.count) }
        for value in values { writer.count(value.count) }
        for key in keys { writer.raw(key) }
        for value in values { writer.raw(value) }
        for child in children { child.append(to: &writer) }
        log.parts[index].payload = writer.bytes
    }

    // MARK: Row changes

    /// An operation of a DELTA, with the lengths that go with it.
    private static func changeOperations(
        _ log: inout LogParts,
        _ random: inout SeededRandom,
        _ mutated: Bytes
    ) {
        let deltas = log.parts.indices.filter { log.parts[$0].kind == 1 && !log.parts[$0].isOpaque }
        guard !deltas.isEmpty else { return }
        let index = deltas[pick(deltas.count, &random)]
        let payload = log.parts[index].payload
        let front = log.parts[index].front
        var reader = ByteReader(payload, range: front..<payload.count)
        var operations: [DeltaOperation] = []
        guard (try? DeltaOps.decodePlaces(&reader, below: FileOffset(.max))) != nil else { return }
        let places = reader.position
        guard let count = try? reader.varint("count"), count < 10_000 else { return }
        for _ in 0..<count {
            guard let operation = try? DeltaOps.decodeOperation(&reader) else { return }
            operations.append(operation)
        }
        guard !operations.isEmpty else { return }
        let position = pick(operations.count, &random)
        switch random.next() % 8 {
        case 0: operations.remove(at: position)
        case 1: operations.insert(operations[position], at: pick(operations.count, &random))
        case 2: operations.swapAt(position, pick(operations.count, &random))
        default: operations[position] = changed(operations[position], &random, mutated)
        }
        var writer = ByteWriter(capacity: payload.count + 64)
        writer.raw(Array(payload[..<places]))
        writer.count(operations.count)
        for operation in operations { DeltaOps.append(operation, to: &writer) }
        log.parts[index].payload = writer.bytes
    }

    private static func changed(
        _ operation: DeltaOperation,
        _ random: inout SeededRandom,
        _ mutated: Bytes
    ) -> DeltaOperation {
        let changesNumber = random.next() % 4 == 0
        let other = ObjectID(random.next() % 2 == 0 ? number(&random) : random.next() % 64)
        switch operation {
        case .insert(let entity, let object, let row):
            if changesNumber { return .insert(entity: entity, object: other, row: row) }
            return .insert(entity: entity, object: object, row: mutated(row, 512))
        case .update(let entity, let object, let patch):
            if changesNumber { return .update(entity: entity, object: other, patch: patch) }
            return .update(entity: entity, object: object, patch: mutated(patch, 512))
        case .delete(let entity, _): return .delete(entity: entity, object: other)
        case .put(let tree, let key, let value):
            if changesNumber {
                let tree = TreeID(UInt32(truncatingIfNeeded: random.next() % 24))
                return .put(tree: tree, key: key, value: value)
            }
            if random.next() % 2 == 0 {
                return .put(tree: tree, key: mutated(key, 64), value: value)
            }
            return .put(tree: tree, key: key, value: mutated(value, 512))
        case .remove(let tree, let key): return .remove(tree: tree, key: mutated(key, 64))
        }
    }
}
