// FENCE: the bytes of slots, as `NodeView` describes them, and of what stands in front of a row.
//
// Invariants
// - Callers hold a block with room for what they write; only `append` makes room itself.

internal import VarveBase
internal import VarveFormat

extension TreeNode {
    @inline(__always)
    static func setSlot(
        _ slot: UnsafeMutableRawPointer,
        head: UInt64,
        key: (start: Int, count: Int),
        value: (start: Int, count: Int)
    ) {
        // Blocks and everything in them are below 4 GiB.
        unsafe slot.storeBytes(of: head.bigEndian, as: UInt64.self)
        unsafe slot.storeBytes(
            of: UInt32(truncatingIfNeeded: key.start),
            toByteOffset: 8,
            as: UInt32.self
        )
        unsafe slot.storeBytes(
            of: UInt32(truncatingIfNeeded: key.count),
            toByteOffset: 12,
            as: UInt32.self
        )
        unsafe slot.storeBytes(
            of: UInt32(truncatingIfNeeded: value.start),
            toByteOffset: 16,
            as: UInt32.self
        )
        unsafe slot.storeBytes(
            of: UInt32(truncatingIfNeeded: value.count),
            toByteOffset: 20,
            as: UInt32.self
        )
    }

    /// Moves the offsets in all slots.
    func shiftOffsets(by shift: Int) {
        if shift == 0 { return }
        for index in 0..<count {
            for field in unsafe words.packedRow(index) == nil ? [8, 16] : [] {
                let place = index * Self.slotSize + field
                let offset = unsafe words.base.load(fromByteOffset: place, as: UInt32.self)
                unsafe words.base.storeBytes(
                    of: UInt32(truncatingIfNeeded: Int(offset) + shift),
                    toByteOffset: place,
                    as: UInt32.self
                )
            }
        }
    }

    /// Writes a number of `size` bytes as LEB128.
    @inline(__always)
    static func store(_ number: UInt64, _ size: Int, at target: UnsafeMutableRawPointer) {
        var rest = number
        for place in 0..<size {
            let more: UInt8 = place + 1 < size ? 0x80 : 0
            unsafe target.storeBytes(
                of: UInt8(truncatingIfNeeded: rest & 0x7F) | more,
                toByteOffset: place,
                as: UInt8.self
            )
            rest &>>= 7
        }
    }
}

extension TreeNode {
    /// The shortest key that is above every key of `left` and not above any key of `right`.
    static func separator(left: [UInt8], right: [UInt8]) -> [UInt8] {
        var length = 0
        while length < left.count && length < right.count && left[length] == right[length] {
            length += 1
        }
        precondition(length < right.count, "keys of a node must ascend")
        return [UInt8](right[0...length])
    }

    /// Appends an entry whose key is `prefix` followed by a range of `source`; false unless the key
    /// is above the last one. For decoding a page.
    func append(
        prefix: Range<Int>,
        suffix: Range<Int>,
        value: Range<Int>,
        of source: [UInt8]
    ) -> Bool {
        precondition(prefix.upperBound <= source.count && suffix.upperBound <= source.count)
        precondition(value.upperBound <= source.count)
        let keyCount = prefix.count + suffix.count
        let index = count
        // The key is put together in front of the value, and stays there if it is long.
        let size = keyCount + value.count
        makeRoom(size + Self.slotSize)
        let base = unsafe words.base
        let keyStart = unsafe heapStart - size
        let valueStart = keyStart + keyCount
        let head = unsafe source.withUnsafeBytes { raw in
            guard let from = raw.baseAddress else { return UInt64(0) }
            let target = unsafe base + keyStart
            unsafe target.copyMemory(from: from + prefix.lowerBound, byteCount: prefix.count)
            unsafe (target + prefix.count).copyMemory(
                from: from + suffix.lowerBound,
                byteCount: suffix.count
            )
            unsafe (target + keyCount).copyMemory(
                from: from + value.lowerBound,
                byteCount: value.count
            )
            return unsafe NodeView.head(of: UnsafeRawBufferPointer(start: target, count: keyCount))
        }
        let isLong = keyCount > Self.slotKeyMax
        unsafe heapStart = isLong ? keyStart : valueStart
        unsafe Self.setSlot(
            base + index * Self.slotSize,
            head: head,
            key: (keyStart, keyCount),
            value: (valueStart, value.count)
        )
        unsafe words.count = index + 1
        unsafe live += isLong ? size : value.count
        if index == 0 { return true }
        return unsafe NodeView.compare(words.keyBytes(index - 1), words.keyBytes(index)) < 0
    }
}
