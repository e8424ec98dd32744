// FENCE: layout 0, LZ4 over packed rows with one prefix of keys; whole, or in smaller blocks.
//
// A leaf is blocks: u16 bytes, u16 raw bytes (as many when it is not compressed), u32 first key
// less the leaf's. Layout 0 has one block a leaf and no such front: it is charged 8 bytes too much.

internal import CLZ4Blocks

/// LZ4 over packed rows.
@safe public final class BlockLeaves: LeafLayout {
    /// What it is called in the tables.
    public let name: String
    private let blockBytes: Int
    private let blocks: Int
    private var columns = 0
    private let scratch: UnsafeMutablePointer<UInt8>
    /// As the engine's: key, value, and one word for each entry.
    private var slots: [(UInt64, Int, Int)] = []
    private static let scratchBytes = 1 << 17

    /// Leaves of so many blocks of so many raw bytes.
    public init(_ name: String, blockBytes: Int, blocks: Int) {
        self.name = name
        self.blockBytes = blockBytes
        self.blocks = blocks
        let scratch = UnsafeMutablePointer<UInt8>.allocate(capacity: Self.scratchBytes)
        unsafe scratch.initialize(repeating: 0, count: Self.scratchBytes)
        unsafe self.scratch = scratch
        slots.reserveCapacity(4096)
    }

    deinit {
        // Allocated by `init`.
        unsafe scratch.deallocate()
    }

    /// Notes the columns.
    public func prepare(_ data: Dataset) {
        columns = data.types.count
    }

    /// Makes all leaves of a dataset.
    public func encode(_ data: Dataset) throws(LeafError) -> Leaves {
        var leaves = Leaves()
        var row = 0
        var leaf: [UInt8] = []
        while row < data.count {
            leaf.removeAll(keepingCapacity: true)
            let firstKey = data.keys[row]
            for _ in 0..<blocks where row < data.count && data.keys[row] - firstKey < 1 << 32 {
                let first = row
                var size = 0
                while row < data.count {
                    let next = data.range(row).count + 8
                    if row > first && size + next > blockBytes { break }
                    size += next
                    row += 1
                }
                append(block(data, first..<row), data.keys[first] - firstKey, &leaf)
            }
            leaves.append(leaf, firstKey: firstKey)
        }
        leaves.finish()
        return leaves
    }

    /// Prefix, lengths, keys and values, as Format.md says.
    private func block(_ data: Dataset, _ rows: Range<Int>) -> [UInt8] {
        let difference = data.keys[rows.lowerBound] ^ data.keys[rows.upperBound - 1]
        let prefix = min(7, difference.leadingZeroBitCount / 8)
        let first = data.keys[rows.lowerBound]
        var bytes: [UInt8] = [UInt8(rows.count & 255), UInt8(rows.count >> 8), UInt8(prefix)]
        for index in 0..<prefix {
            bytes.append(UInt8(truncatingIfNeeded: first >> (56 - 8 * index)))
        }
        for _ in rows { bytes.append(UInt8(8 - prefix)) }
        for row in rows {
            let commit = data.commits[row] < 128 ? 1 : data.commits[row] < 16384 ? 2 : 3
            DatasetBuilder.append(varint: UInt64(data.range(row).count + commit), &bytes)
        }
        for row in rows {
            for index in prefix..<8 {
                bytes.append(UInt8(truncatingIfNeeded: data.keys[row] >> (56 - 8 * index)))
            }
        }
        for row in rows {
            DatasetBuilder.append(varint: data.commits[row], &bytes)
            bytes += data.rows[data.range(row)]
        }
        return bytes
    }

    private func append(_ block: [UInt8], _ key: UInt64, _ leaf: inout [UInt8]) {
        precondition(block.count < 65536, "a row that is too long for the laboratory")
        var stored = [UInt8](repeating: 0, count: block.count)
        let most = block.count - (block.count + 7) / 8
        // LZ4 reads the block and writes at most as much as it is told.
        let written = unsafe block.withUnsafeBytes { from in
            unsafe stored.withUnsafeMutableBytes { to in
                guard let from = from.baseAddress, let to = to.baseAddress else { return 0 }
                return unsafe Int(
                    LZ4_compress_default(
                        from.assumingMemoryBound(to: CChar.self),
                        to.assumingMemoryBound(to: CChar.self),
                        Int32(block.count),
                        Int32(most)
                    )
                )
            }
        }
        let size = written > 0 ? written : block.count
        for number in [size & 255, size >> 8, block.count & 255, block.count >> 8] {
            leaf.append(UInt8(number))
        }
        for index in 0..<4 { leaf.append(UInt8(truncatingIfNeeded: key >> (8 * index))) }
        leaf += written > 0 ? stored[..<written] : block[...]
    }

    /// Restores the block at a place into the scratch memory and lays out its slots; moves to the
    /// next one.
    private func restore(
        _ leaf: ByteView,
        _ at: inout Int
    ) throws(LeafError) -> ByteView {
        let front = try leaf.word(at)
        let size = Int(front & 0xFFFF)
        let raw = Int(front >> 16 & 0xFFFF)
        let stored = try unsafe leaf.buffer(at + 8, size)
        at += 8 + size
        guard let from = stored.baseAddress else { throw .damage }
        if size == raw {
            // The scratch memory is longer than any block.
            unsafe scratch.update(from: from, count: raw)
        } else {
            // The same; LZ4 stays inside what it is told.
            let written = unsafe LZ4_decompress_safe(
                UnsafeRawPointer(from).assumingMemoryBound(to: CChar.self),
                UnsafeMutableRawPointer(scratch).assumingMemoryBound(to: CChar.self),
                Int32(size),
                Int32(raw)
            )
            guard Int(written) == raw else { throw .damage }
        }
        let view = unsafe ByteView(UnsafePointer(scratch), count: raw)
        try layOut(view)
        return view
    }

    private func layOut(_ view: ByteView) throws(LeafError) {
        let count = Int(try view.byte(0)) | Int(try view.byte(1)) << 8
        let prefix = Int(try view.byte(2))
        var prefixed: UInt64 = 0
        for index in 0..<prefix { prefixed = prefixed << 8 | UInt64(try view.byte(3 + index)) }
        var keyLengths = 3 + prefix
        var valueLengths = keyLengths
        for _ in 0..<count { _ = try PackedRow.varint(view, &valueLengths) }
        var keys = valueLengths
        for _ in 0..<count { _ = try PackedRow.varint(view, &keys) }
        var values = keys
        let start = keyLengths
        for _ in 0..<count {
            values += Int(truncatingIfNeeded: try PackedRow.varint(view, &keyLengths))
        }
        keyLengths = start
        slots.removeAll(keepingCapacity: true)
        for _ in 0..<count {
            let length = Int(truncatingIfNeeded: try PackedRow.varint(view, &keyLengths))
            let size = Int(truncatingIfNeeded: try PackedRow.varint(view, &valueLengths))
            guard length <= 8, length > 0 else { throw .damage }
            let word = try view.word(keys).byteSwapped >> UInt64(64 - 8 * length)
            let key = length == 8 ? word : prefixed << UInt64(8 * length) | word
            slots.append((key, values, size))
            keys += length
            values += size
        }
        guard values == view.count else { throw .damage }
    }

    /// Reads the row of a key with all its columns.
    public func row(
        _ leaf: ByteView,
        firstKey: UInt64,
        _ key: UInt64,
        _ digest: inout Digest
    ) throws(LeafError) {
        var block = 0
        var next = 0
        while next < leaf.count {
            let front = try leaf.word(next)
            if firstKey + (front >> 32) > key { break }
            block = next
            next += 8 + Int(front & 0xFFFF)
        }
        try find(try restore(leaf, &block), key, &digest)
    }

    private func find(
        _ view: ByteView,
        _ key: UInt64,
        _ digest: inout Digest
    ) throws(LeafError) {
        var low = 0
        var high = slots.count
        while low < high {
            let middle = (low + high) / 2
            if slots[middle].0 < key { low = middle + 1 } else { high = middle }
        }
        guard low < slots.count, slots[low].0 == key else { throw .missingKey }
        var at = slots[low].1
        digest.add(2000, word: try PackedRow.varint(view, &at))
        try PackedRow.digest(view, at, columns, &digest)
    }

    /// Counts the rows whose integer column is above a value.
    public func count(_ leaf: ByteView, column: Int, above: Int64) throws(LeafError) -> Int {
        var sum = 0
        var at = 0
        while at < leaf.count {
            let view = try restore(leaf, &at)
            for slot in slots {
                var place = slot.1
                _ = try PackedRow.varint(view, &place)
                if let int = try PackedRow.int(view, place, column), int > above { sum += 1 }
            }
        }
        return sum
    }

    /// Reads all rows with all their columns.
    public func scan(_ leaf: ByteView, _ digest: inout Digest) throws(LeafError) {
        var at = 0
        while at < leaf.count {
            let view = try restore(leaf, &at)
            for slot in slots {
                var place = slot.1
                digest.add(2001, word: slot.0)
                digest.add(2000, word: try PackedRow.varint(view, &place))
                try PackedRow.digest(view, place, columns, &digest)
            }
        }
    }
}
