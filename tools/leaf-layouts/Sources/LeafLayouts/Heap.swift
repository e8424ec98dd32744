// FENCE: what does not fit into tuples: dictionaries, then row by row texts and sparse values.
//
// Invariants
// - Room is made for the sum of all lengths before the first byte is written.

/// The bytes behind the tuples of a leaf.
struct Heap {
    private(set) var bytes: [UInt8] = []
    /// Row i begins at `base` + i * `slope` + its code: most rows are about as long as others.
    private(set) var codes: [UInt64] = []
    private(set) var slope = 0
    private(set) var base = 0

    /// `tupleCodes` says of each column what its tuples hold.
    init(_ columns: LeafColumns, _ tupleCodes: [[UInt64]]) {
        let rows = columns.rows
        let there = columns.plans.indices.filter {
            columns.plans[$0].coding == .text || columns.plans[$0].coding.isSparse
        }
        var starts: [Int] = []
        starts.reserveCapacity(rows)
        // A sparse value is written as a word, of which the next one covers what is too much.
        var room = columns.coded.count + columns.dictionaries.count + 8
        for column in there where columns.plans[column].coding.isSparse {
            room += rows * columns.plans[column].heapBytes
        }
        bytes = unsafe [UInt8](unsafeUninitializedCapacity: room) { target, count in
            var end = 0
            let raw = UnsafeMutableRawBufferPointer(target)
            // Everything that is written below is part of the sum above.
            unsafe raw.copyBytes(from: columns.dictionaries)
            end += columns.dictionaries.count
            unsafe columns.coded.withUnsafeBytes { coded in
                for row in 0..<rows {
                    starts.append(end)
                    for column in there {
                        unsafe Self.write(
                            columns,
                            column,
                            row,
                            tupleCodes[column][row],
                            coded,
                            raw,
                            &end
                        )
                    }
                }
            }
            count = end
        }
        slope = (bytes.count - columns.dictionaries.count) / rows
        var least = Int.max
        for row in 0..<rows { least = min(least, starts[row] - row * slope) }
        base = least
        codes = (0..<rows).map { UInt64(starts[$0] - $0 * slope - least) }
    }

    @inline(__always)
    private static func write(
        _ columns: LeafColumns,
        _ column: Int,
        _ row: Int,
        _ code: UInt64,
        _ coded: UnsafeRawBufferPointer,
        _ target: UnsafeMutableRawBufferPointer,
        _ end: inout Int
    ) {
        let plan = columns.plans[column]
        if code < UInt64(plan.specials) { return }
        let value = columns.values[column * columns.rows + row]
        if plan.coding == .text {
            let start = Int(value & 0xFFFF_FFFF)
            let length = Int(value >> 32)
            // The text is one of those that the room was made for.
            unsafe UnsafeMutableRawBufferPointer(rebasing: target[end..<end + length])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: coded[start..<start + length]))
            end += length
            return
        }
        let word = (value &- UInt64(bitPattern: plan.base)).littleEndian
        // Room was made for each row's value, and 8 bytes more.
        unsafe target.storeBytes(of: word, toByteOffset: end, as: UInt64.self)
        end += min(8, plan.heapBytes)
        if plan.type == .uuid {
            let second = columns.seconds[column * columns.rows + row].littleEndian
            unsafe target.storeBytes(of: second, toByteOffset: end, as: UInt64.self)
            end += 8
        }
    }
}
