// FENCE: an inner node from its page in one pass, without arrays on the way.
//
// Invariants
// - It makes a node only where `PageCoding.carefulNode` makes one, with the same entries and
//   children; where anything is not as it should be it gives nil, and the careful way says what.
// - Bytes from disk are compared with the room before anything is read by them.
//
// Why: the first screen of a list reads some 45 of these, and each took 10 microseconds by way of
// ranges, entries and children that were put in one by one.

internal import VarveBase
internal import VarveFormat

enum InnerDecoding {
    /// Bytes that a child takes at least: place, length, hash, rows; and the length of its key.
    private static let childBytesMin = 12

    /// The inner node of a verified page; nil where anything is not as it should be.
    /// - Complexity: O(raw bytes).
    static func inner(_ frame: FrameBytes, tree: TreeID, level: Int) -> TreeNode? {
        precondition(frame.payload.upperBound <= frame.bytes.count)
        // The array lives for the closure, and the range lies inside it by the line above.
        return unsafe frame.bytes.withUnsafeBytes { raw in
            let payload = unsafe UnsafeRawBufferPointer(rebasing: raw[frame.payload])
            guard
                let front = unsafe DecodingFront(payload, frame.header, tree: tree, level: level),
                unsafe front.bodyCount > childBytesMin * front.count
            else { return nil }
            let place = Place(count: unsafe front.count, level: level, limit: frame.offset.rawValue)
            if unsafe !front.isCompressed { return unsafe node(front.stored, place) }
            return unsafe withUnsafeTemporaryAllocation(
                byteCount: front.bodyCount,
                alignment: 8
            ) { body in
                guard unsafe BlockCompression.decompress(front.stored, into: body) else {
                    return nil
                }
                return unsafe node(UnsafeRawBufferPointer(body), place)
            }
        }
    }

    private struct Place {
        let count: Int
        let level: Int
        /// Where the page begins: its children end there at the latest.
        let limit: UInt64
    }

    private static func node(_ body: UnsafeRawBufferPointer, _ place: Place) -> TreeNode? {
        let count = place.count
        // No prefix, and an empty first key.
        guard body.count > 2, unsafe body[0] == 0, unsafe body[1] == 0 else { return nil }
        var at = 1
        var keyBytes = 0
        for _ in 0..<count {
            guard let length = unsafe LeafDecoding.length(body, &at) else { return nil }
            keyBytes += length
        }
        guard keyBytes <= body.count - at else { return nil }
        let slots = count * TreeNode.slotSize
        let capacity = slots + keyBytes
        let block = unsafe TreeNode.block(capacity)
        // Room for the slots, the keys and a word more was asked for.
        let keys = unsafe UnsafeRawBufferPointer(rebasing: body[at..<at + keyBytes])
        unsafe UnsafeMutableRawBufferPointer(start: block + slots, count: keyBytes)
            .copyMemory(from: keys)
        unsafe (block + capacity).storeBytes(of: 0, as: UInt64.self)
        let rest = unsafe UnsafeRawBufferPointer(rebasing: body[(at + keyBytes)...])
        guard let live = unsafe layOut(block, slots, body, count),
            let children = unsafe children(rest, place)
        else {
            unsafe TreeNode.free(block, capacity)
            return nil
        }
        return unsafe TreeNode(
            decoded: block,
            capacity: capacity,
            heapStart: slots,
            live: live,
            count: count,
            level: place.level,
            children: children
        )
    }

    /// Fills the slots of keys that lie behind them. The bytes that a node counts; nil unless the
    /// keys ascend.
    private static func layOut(
        _ block: UnsafeMutableRawPointer,
        _ slots: Int,
        _ body: UnsafeRawBufferPointer,
        _ count: Int
    ) -> Int? {
        var live = 0
        var at = 1
        var keyAt = slots
        for index in 0..<count {
            // Read once before.
            guard let length = unsafe LeafDecoding.length(body, &at) else { return nil }
            // 8 bytes after the keys are the block's own.
            let word = UInt64(
                bigEndian: unsafe block.loadUnaligned(fromByteOffset: keyAt, as: UInt64.self)
            )
            var head = word
            if length < TreeNode.slotKeyMax {
                head &= ~(UInt64.max >> UInt64(8 * length))
            } else if length > TreeNode.slotKeyMax {
                live += length
            }
            unsafe TreeNode.setSlot(
                block + index * TreeNode.slotSize,
                head: head,
                key: (keyAt, length),
                value: (keyAt + length, 0)
            )
            keyAt += length
            guard unsafe index == 0 || LeafDecoding.ascends(block, index, head) else { return nil }
        }
        return live
    }

    /// The children, which are the rest of the body; nil unless they fill it and lie below.
    private static func children(
        _ rest: UnsafeRawBufferPointer,
        _ place: Place
    ) -> UnsafeMutablePointer<NodePointer>? {
        let children = UnsafeMutablePointer<NodePointer>.allocate(capacity: place.count)
        var at = 0
        var rows: UInt64 = 0
        for index in 0..<place.count {
            guard let child = unsafe child(rest, &at, place.limit) else { break }
            let more = unsafe child.rows
            let (sum, overflow) = rows.addingReportingOverflow(more)
            guard more > 0, !overflow, sum <= TreeRoots.rowsMax else { break }
            rows = sum
            // `count` children were asked for.
            unsafe (children + index).initialize(to: child)
            if index + 1 == place.count, at == rest.count { return unsafe children }
        }
        // What was put in needs no ending: these name no nodes.
        unsafe children.deallocate()
        return nil
    }

    private static func child(
        _ rest: UnsafeRawBufferPointer,
        _ at: inout Int,
        _ limit: UInt64
    ) -> NodePointer? {
        guard let words = unsafe varint(rest, &at), words < 1 << 60,
            let stored = unsafe varint(rest, &at).flatMap({ UInt32(exactly: $0) }),
            rest.count - at >= 8
        else { return nil }
        // 8 bytes are there by the line above.
        let hash = unsafe rest.loadUnaligned(fromByteOffset: at, as: UInt64.self).littleEndian
        at += 8
        guard let rows = unsafe varint(rest, &at) else { return nil }
        let address = PageAddress(
            offset: FileOffset(words * FrameHeader.alignment),
            storedLength: stored,
            payloadHash: hash
        )
        // Below 2^63 and 2^33: the sum cannot overflow.
        guard address.offset.rawValue >= FileHeader.logStart.rawValue,
            address.offset.rawValue + address.frameLength <= limit
        else { return nil }
        return unsafe NodePointer(ChildPointer(node: nil, address: address, rows: rows))
    }

    /// A varint in its shortest form; nil: none before the end, or more than 63 bits.
    @inline(__always)
    private static func varint(_ bytes: UnsafeRawBufferPointer, _ at: inout Int) -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while at < bytes.count, shift < 63 {
            // Below the count by the line above.
            let byte = unsafe bytes[at]
            at += 1
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return byte == 0 && shift > 0 ? nil : value }
            shift += 7
        }
        return nil
    }
}
