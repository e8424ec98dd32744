// FENCE: a leaf from its page without a copy: the body is restored into the node's own block, and
// the slots are laid out in front of it.
//
// Invariants
// - It makes a node exactly where `PageCoding.carefulNode` makes one, with the same entries; where
//   that throws, it gives nil, and the careful way says what is wrong.
// - Bytes from disk are compared with the room before anything is read by them: every offset that
//   is written into a slot lies inside the block.
// - Nothing is allocated but the block, and a second one where long keys share a prefix.
//
// Why: a store that is larger than its cache reads a page for most lookups. Going by way of arrays
// of ranges and copied entries was three quarters of that time; restoring the bytes is the rest.

internal import VarveBase
internal import VarveFormat

/// What the front of a page and the header of its frame say of the body.
@unsafe struct DecodingFront {
    /// Number of entries, at least 1.
    let count: Int
    /// The body as it is stored, not empty.
    let stored: UnsafeRawBufferPointer
    let isCompressed: Bool
    /// Bytes of the body once it is restored.
    let bodyCount: Int

    /// Nil unless the page is a node of that tree and level, in rows, and may be restored.
    init?(_ payload: UnsafeRawBufferPointer, _ header: FrameHeader, tree: TreeID, level: Int) {
        let front = PageHeader.length
        guard payload.count > front else { return nil }
        // The front is there by the line above: tree 4, level 1, layout 1, count 2, commit 8.
        let entries = unsafe payload.loadUnaligned(fromByteOffset: 6, as: UInt16.self)
        unsafe count = Int(entries.littleEndian)
        guard unsafe payload.loadUnaligned(as: UInt32.self).littleEndian == tree.rawValue,
            unsafe Int(payload[4]) == level, unsafe payload[5] == PageHeader.rowLayout,
            unsafe count > 0
        else { return nil }
        unsafe stored = UnsafeRawBufferPointer(rebasing: payload[front...])
        unsafe isCompressed = header.flags.contains(.compressed)
        unsafe bodyCount = Int(header.rawLength) - front
        let bodyMax =
            unsafe isCompressed
            ? min(header.kind.payloadBytesMax, 255 * stored.count + 64) : stored.count
        guard unsafe bodyCount > 0 && bodyCount <= bodyMax,
            unsafe isCompressed || header.rawLength == header.storedLength
        else { return nil }
    }
}

enum LeafDecoding {
    /// The leaf of a verified page; nil where anything is not as it should be.
    /// - Complexity: O(raw bytes).
    static func leaf(_ frame: FrameBytes, tree: TreeID) -> TreeNode? {
        precondition(frame.payload.upperBound <= frame.bytes.count)
        // The array lives for the closure, and the range lies inside it by the line above.
        return unsafe frame.bytes.withUnsafeBytes { raw in
            let payload = unsafe UnsafeRawBufferPointer(rebasing: raw[frame.payload])
            return unsafe leaf(payload, frame.header, tree)
        }
    }

    private static func leaf(
        _ payload: UnsafeRawBufferPointer,
        _ header: FrameHeader,
        _ tree: TreeID
    ) -> TreeNode? {
        guard let front = unsafe DecodingFront(payload, header, tree: tree, level: 0),
            unsafe front.bodyCount > 2 * front.count
        else { return nil }
        let (count, bodyCount) = unsafe (front.count, front.bodyCount)
        let slots = count * TreeNode.slotSize
        let capacity = slots + bodyCount
        let block = unsafe TreeNode.block(capacity)
        let body = unsafe UnsafeMutableRawBufferPointer(start: block + slots, count: bodyCount)
        // What lies after the body is read with the last key's word, and masked out.
        unsafe (block + slots + bodyCount).storeBytes(of: 0, as: UInt64.self)
        var isRestored = true
        if unsafe front.isCompressed {
            isRestored = unsafe BlockCompression.decompress(front.stored, into: body)
        } else {
            unsafe body.copyMemory(from: front.stored)
        }
        guard isRestored, let parts = unsafe Parts(block, count, UnsafeRawBufferPointer(body))
        else {
            unsafe TreeNode.free(block, capacity)
            return nil
        }
        if parts.prefix > 0, parts.hasLongKeys {
            defer { unsafe TreeNode.free(block, capacity) }
            return unsafe unfolded(block, count, slots, parts)
        }
        guard let live = unsafe layOut(block, count, slots, parts) else {
            unsafe TreeNode.free(block, capacity)
            return nil
        }
        return unsafe TreeNode(
            decoded: block,
            capacity: capacity,
            heapStart: slots,
            live: live,
            count: count
        )
    }

    /// Where things stand in a body. The lengths of keys and values are in the slots by then.
    private struct Parts {
        var prefix = 0
        var prefixStart = 0
        /// Key suffixes, one after another.
        var keys = 0
        var keyBytes = 0
        /// Values, one after another.
        var values = 0
        var valueBytes = 0
        var hasLongKeys = false

        /// Nil unless prefix, lengths, keys and values fill the body exactly.
        init?(
            _ block: UnsafeMutableRawPointer,
            _ count: Int,
            _ body: UnsafeRawBufferPointer
        ) {
            var at = 0
            guard let prefix = unsafe LeafDecoding.length(body, &at), prefix <= body.count - at
            else {
                return nil
            }
            self.prefix = prefix
            prefixStart = at
            at += prefix
            var slot = unsafe block
            for _ in 0..<count {
                guard let length = unsafe LeafDecoding.length(body, &at) else { return nil }
                keyBytes += length
                if prefix + length > TreeNode.slotKeyMax { hasLongKeys = true }
                unsafe slot.storeBytes(
                    of: UInt32(truncatingIfNeeded: prefix + length),
                    toByteOffset: 12,
                    as: UInt32.self
                )
                unsafe slot += TreeNode.slotSize
            }
            unsafe slot = block
            for _ in 0..<count {
                guard let length = unsafe LeafDecoding.length(body, &at) else { return nil }
                valueBytes += length
                unsafe slot.storeBytes(
                    of: UInt32(truncatingIfNeeded: length),
                    toByteOffset: 20,
                    as: UInt32.self
                )
                unsafe slot += TreeNode.slotSize
            }
            keys = at
            values = at + keyBytes
            guard values + valueBytes == body.count else { return nil }
        }
    }

    /// A varint of at most 4 bytes in its shortest form; nil: none before the end, or too large.
    @inline(__always)
    static func length(_ body: UnsafeRawBufferPointer, _ at: inout Int) -> Int? {
        guard at < body.count else { return nil }
        // Below the count by the line above, and by those below.
        let first = Int(unsafe body[at])
        at += 1
        if first < 0x80 { return first }
        var value = first & 0x7F
        var shift = 7
        while at < body.count, shift < 28 {
            let byte = Int(unsafe body[at])
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80 {
                return byte == 0 || value > FrameKind.page.payloadBytesMax ? nil : value
            }
            shift += 7
        }
        return nil
    }

    /// Fills the slots; keys and values stay where the body has them. The bytes of both that a node
    /// counts; nil unless the keys ascend.
    private static func layOut(
        _ block: UnsafeMutableRawPointer,
        _ count: Int,
        _ slots: Int,
        _ parts: Parts
    ) -> Int? {
        let body = unsafe block + slots
        var live = parts.valueBytes
        var keyAt = parts.keys
        var valueAt = parts.values
        // Only short keys have a prefix here.
        var prefixHead: UInt64 = 0
        for place in 0..<min(parts.prefix, TreeNode.slotKeyMax) {
            let byte = UInt64(
                unsafe body.load(fromByteOffset: parts.prefixStart + place, as: UInt8.self)
            )
            prefixHead |= byte << UInt64(56 - 8 * place)
        }
        for index in 0..<count {
            let slot = unsafe block + index * TreeNode.slotSize
            let keyCount = Int(unsafe slot.load(fromByteOffset: 12, as: UInt32.self))
            let valueCount = Int(unsafe slot.load(fromByteOffset: 20, as: UInt32.self))
            // 8 bytes after the body are the block's own.
            let word = UInt64(
                bigEndian: unsafe body.loadUnaligned(fromByteOffset: keyAt, as: UInt64.self)
            )
            var head = prefixHead | word >> UInt64(8 * parts.prefix)
            if keyCount < TreeNode.slotKeyMax {
                head &= ~(UInt64.max >> UInt64(8 * keyCount))
            } else if keyCount > TreeNode.slotKeyMax {
                live += keyCount
            }
            unsafe fill(slot, head, key: slots + keyAt, value: slots + valueAt)
            keyAt += keyCount - parts.prefix
            valueAt += valueCount
            guard unsafe index == 0 || ascends(block, index, head) else { return nil }
        }
        return live
    }

    /// The same in a block of its own, with every long key as a whole.
    private static func unfolded(
        _ source: UnsafeMutableRawPointer,
        _ count: Int,
        _ slots: Int,
        _ parts: Parts
    ) -> TreeNode? {
        // As a page says: prefixes that unfold to more than a page may hold are refused.
        let prefixes = count.multipliedReportingOverflow(by: parts.prefix)
        guard !prefixes.overflow, prefixes.partialValue <= FrameKind.page.payloadBytesMax else {
            return nil
        }
        let capacity = slots + prefixes.partialValue + parts.keyBytes + parts.valueBytes
        let block = unsafe TreeNode.block(capacity)
        let body = unsafe source + slots
        var live = parts.valueBytes
        var suffix = parts.keys
        var keyAt = slots
        var valueAt = slots + prefixes.partialValue + parts.keyBytes
        // Room for all values was counted.
        unsafe (block + valueAt).copyMemory(from: body + parts.values, byteCount: parts.valueBytes)
        for index in 0..<count {
            let old = unsafe source + index * TreeNode.slotSize
            let slot = unsafe block + index * TreeNode.slotSize
            let keyCount = Int(unsafe old.load(fromByteOffset: 12, as: UInt32.self))
            let valueCount = Int(unsafe old.load(fromByteOffset: 20, as: UInt32.self))
            // Room for all keys, as wholes, was counted.
            let key = unsafe block + keyAt
            unsafe key.copyMemory(from: body + parts.prefixStart, byteCount: parts.prefix)
            unsafe (key + parts.prefix).copyMemory(
                from: body + suffix,
                byteCount: keyCount - parts.prefix
            )
            let counts = (UInt32(clamping: keyCount), UInt32(clamping: valueCount))
            unsafe slot.storeBytes(of: counts.0, toByteOffset: 12, as: UInt32.self)
            unsafe slot.storeBytes(of: counts.1, toByteOffset: 20, as: UInt32.self)
            let head = unsafe NodeView.head(of: UnsafeRawBufferPointer(start: key, count: keyCount))
            unsafe fill(slot, head, key: keyAt, value: valueAt)
            if keyCount > TreeNode.slotKeyMax { live += keyCount }
            keyAt += keyCount
            suffix += keyCount - parts.prefix
            valueAt += valueCount
            guard unsafe index == 0 || ascends(block, index, head) else {
                unsafe TreeNode.free(block, capacity)
                return nil
            }
        }
        return unsafe TreeNode(
            decoded: block,
            capacity: capacity,
            heapStart: slots,
            live: live,
            count: count
        )
    }

    /// Writes the rest of a slot, whose lengths are there.
    @inline(__always)
    private static func fill(
        _ slot: UnsafeMutableRawPointer,
        _ head: UInt64,
        key: Int,
        value: Int
    ) {
        // A slot of the block; blocks are below 4 GiB.
        unsafe slot.storeBytes(of: head.bigEndian, as: UInt64.self)
        unsafe slot.storeBytes(
            of: UInt32(truncatingIfNeeded: key),
            toByteOffset: 8,
            as: UInt32.self
        )
        unsafe slot.storeBytes(
            of: UInt32(truncatingIfNeeded: value),
            toByteOffset: 16,
            as: UInt32.self
        )
    }

    /// Whether a key is above the one before; both slots are filled.
    @inline(__always)
    static func ascends(
        _ block: UnsafeMutableRawPointer,
        _ index: Int,
        _ head: UInt64
    ) -> Bool {
        let view = unsafe NodeView(
            base: block,
            children: nil,
            childCount: 0,
            count: index + 1,
            level: 0
        )
        let before = unsafe view.head(index - 1)
        if before != head { return before < head }
        return unsafe NodeView.compare(view.keyBytes(index - 1), view.keyBytes(index)) < 0
    }
}
