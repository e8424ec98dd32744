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
        let shift = UInt32(truncatingIfNeeded: shift)
        let view = unsafe words
        for index in unsafe 0..<view.count where unsafe view.packedRow(index) == nil {
            let slot = unsafe view.base + index * Self.slotSize
            let key = unsafe slot.load(fromByteOffset: 8, as: UInt32.self)
            let value = unsafe slot.load(fromByteOffset: 16, as: UInt32.self)
            unsafe slot.storeBytes(of: key &+ shift, toByteOffset: 8, as: UInt32.self)
            unsafe slot.storeBytes(of: value &+ shift, toByteOffset: 16, as: UInt32.self)
        }
    }

    /// Closes the gap of one slot at `index`, in front of `count` others.
    ///
    /// In pieces: where source and target overlap so closely, the system moves a few kilobytes at
    /// once in three times the time.
    func closeSlot(_ index: Int, before count: Int) {
        let piece = 80
        var (target, left) = unsafe (words.base + index * Self.slotSize, count)
        while left > 0 {
            let bytes = min(left, piece) * Self.slotSize
            unsafe target.copyMemory(from: target + Self.slotSize, byteCount: bytes)
            unsafe target += bytes
            left -= piece
        }
    }

    /// What a page of layout 0 has of the entries: what all keys of a leaf begin with, the lengths
    /// of what is left of each key and, in a leaf, of each value, then these bytes themselves. Not
    /// of a leaf with packed rows.
    /// - Complexity: O(bytes); one allocation.
    func entryBytes() -> [UInt8] {
        precondition(!hasPackedRows, "rows are unpacked before they are written")
        let (view, prefix) = unsafe (words, isLeaf ? commonPrefixCount() : 0)
        let valued = isLeaf ? count : 0
        var size = ByteWriter.varintSize(UInt64(prefix)) + prefix
        for index in unsafe 0..<view.count {
            // Keys ascend: what the first and the last begin with, all do.
            let key = unsafe view.keyLength(index) - prefix
            size += ByteWriter.varintSize(UInt64(key)) + key
            if index < valued {
                let value = unsafe view.valueLength(index)
                size += ByteWriter.varintSize(UInt64(value)) + value
            }
        }
        return unsafe [UInt8](unsafeUninitializedCapacity: size) { buffer, used in
            guard let start = UnsafeMutableRawPointer(buffer.baseAddress) else { return }
            // As much as is put there was counted above, from the same words.
            var end = unsafe start
            unsafe Self.put(prefix, &end)
            if prefix > 0 {
                unsafe Self.put(UnsafeRawBufferPointer(rebasing: view.keyBytes(0)[..<prefix]), &end)
            }
            for index in unsafe 0..<view.count {
                unsafe Self.put(view.keyLength(index) - prefix, &end)
            }
            for index in 0..<valued { unsafe Self.put(view.valueLength(index), &end) }
            for index in unsafe 0..<view.count {
                let rest = unsafe UnsafeRawBufferPointer(rebasing: view.keyBytes(index)[prefix...])
                unsafe Self.put(rest, &end)
            }
            for index in 0..<valued { unsafe Self.put(view.valueBytes(index), &end) }
            used = unsafe start.distance(to: end)
            precondition(used == size, "a page is as long as its entries")
        }
    }

    @inline(__always)
    private static func put(_ length: Int, _ end: inout UnsafeMutableRawPointer) {
        let number = UInt64(length)
        let size = ByteWriter.varintSize(number)
        unsafe store(number, size, at: end)
        unsafe end += size
    }

    @inline(__always)
    private static func put(_ bytes: UnsafeRawBufferPointer, _ end: inout UnsafeMutableRawPointer) {
        guard bytes.count > 0, let source = bytes.baseAddress else { return }
        unsafe end.copyMemory(from: source, byteCount: bytes.count)
        unsafe end += bytes.count
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
