// FENCE: the bytes of slots, as `NodeView` describes them, and of what stands in front of a row.
//
// Invariants
// - Callers hold a block with room for what they write; nothing here looks for more.

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
}
