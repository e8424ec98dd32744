// FENCE: writes the bytes of a leaf of layout 1: front, plans, tuples, heap.
//
// Invariants
// - The room is counted before the first byte is written, and has 16 bytes more: codes are put into
//   place a word at a time.
// - Tuples are written before the heap, which lies behind them.

internal import VarveBase

/// The bytes of a leaf that is made.
struct LeafBody {
    private let cells: LeafCells
    private let texts: LeafTexts
    private var plans: [LeafPlan]
    private let keyCodes: [UInt64]
    /// Columns whose values lie in the rows' parts of the heap.
    private let heapColumns: [Int]
    private var starts: [Int] = []
    private var heapBytes = 0
    private var heapSlope = 0
    private var heapBase = 0
    private var tupleBits = 0

    /// Lays out a leaf; nil where a number does not fit into its field.
    init?(_ cells: LeafCells, _ texts: LeafTexts, objects: [UInt64]) {
        self.cells = cells
        self.texts = texts
        guard let keys = KeyLine(objects) else { return nil }
        keyCodes = keys.codes
        plans = [LeafPlan](repeating: LeafPlan(.int), count: 2) + cells.plans
        plans[0].base = Int64(bitPattern: keys.base)
        plans[0].scale = keys.slope
        plans[0].width = LeafPlan.bits(keys.codes.max() ?? 0)
        heapColumns = cells.plans.indices.filter { cells.plans[$0].coding.usesHeap }
        layOutHeap()
        layOutTuples()
        guard tupleBits <= Int(UInt16.max), plans[1].width <= LeafPlan.widthMax,
            heapBase <= Int(Int32.max), heapBase >= Int(Int32.min), heapSlope <= Int(UInt32.max),
            plans.allSatisfy({ $0.width <= 128 })
        else { return nil }
    }

    /// Where each row begins in the heap, as a line and distances from it.
    private mutating func layOutHeap() {
        let rows = cells.rows
        var lengths = [Int](repeating: 0, count: rows)
        for column in heapColumns {
            let first = column * rows
            for row in 0..<rows { lengths[row] += heapLength(column, first + row) }
        }
        let front = texts.dictionaries.count
        starts.reserveCapacity(rows)
        var end = front
        for length in lengths {
            starts.append(end)
            end += length
        }
        heapBytes = end
        heapSlope = (end - front) / rows
        var least = Int.max
        for row in 0..<rows { least = min(least, starts[row] - row * heapSlope) }
        heapBase = least
        var most = 0
        for row in 0..<rows { most = max(most, starts[row] - row * heapSlope - least) }
        plans[1].width = LeafPlan.bits(UInt64(most))
    }

    /// Bytes of a cell in the heap.
    @inline(__always)
    private func heapLength(_ column: Int, _ cell: Int) -> Int {
        guard cells.hasValue(cell) else { return 0 }
        let plan = cells.plans[column]
        // One of the cells.
        let (tag, value) = unsafe (cells.tags[cell], cells.values[cell])
        switch plan.coding {
        case .text: return Int(value >> 32)
        case .body: return Int(value >> 32) + ByteWriter.varintSize(UInt64(tag))
        default:
            return plan.hasCommon && value == UInt64(bitPattern: plan.base) ? 0 : plan.heapBytes
        }
    }

    /// Gives each plan its bit: whole bytes first, so that they begin at whole bytes.
    private mutating func layOutTuples() {
        var bit = 0
        for index in plans.indices where plans[index].coding == .raw {
            plans[index].bit = bit
            bit += plans[index].tupleBits
        }
        let hasRaw = bit > 0
        for index in plans.indices where plans[index].coding != .raw {
            plans[index].bit = bit
            bit += plans[index].tupleBits
        }
        // With whole bytes in front, the next tuple begins with whole bytes, too.
        tupleBits = hasRaw ? (bit + 7) / 8 * 8 : bit
    }

    /// The bytes; nil where they are too many.
    func bytes(_ address: SymbolSetAddress?) -> [UInt8]? {
        var bases: [Int64] = []
        let words = plans.map { $0.encoded(&bases) }
        guard bases.count <= Int(UInt16.max) else { return nil }
        var writer = unsafe ByteWriter(capacity: PackedLeaf.frontLength)
        writer.u16(UInt16(cells.columns - 1))
        writer.u16(UInt16(tupleBits))
        writer.u16(UInt16(bases.count))
        writer.u16(0)
        writer.u32(UInt32(cells.rawBytes))
        writer.u32(UInt32(cells.rowBytesMax))
        writer.u32(UInt32(heapSlope))
        writer.u32(UInt32(bitPattern: Int32(heapBase)))
        writer.u64(address?.first.rawValue ?? 0)
        writer.u64(address?.twin.rawValue ?? 0)
        writer.u64(address?.payloadHash ?? 0)
        writer.u64(UInt64(address?.storedLength ?? 0))
        for word in words { writer.u64(word) }
        for base in bases { writer.i64(base) }
        let front = writer.bytes
        let tupleBytes = (cells.rows * tupleBits + 7) / 8
        let count = front.count + tupleBytes + heapBytes
        // Counted above; everything below lies in front of `count`, but for 16 bytes.
        return unsafe [UInt8](unsafeUninitializedCapacity: count + 16) { target, used in
            guard let base = UnsafeMutableRawPointer(target.baseAddress) else { return }
            unsafe front.withUnsafeBytes { bytes in
                guard let source = bytes.baseAddress else { return }
                unsafe base.copyMemory(from: source, byteCount: bytes.count)
            }
            let tuples = unsafe base + front.count
            unsafe tuples.initializeMemory(as: UInt8.self, repeating: 0, count: tupleBytes + 8)
            unsafe writeTuples(tuples)
            unsafe writeHeap(tuples + tupleBytes)
            used = count
        }
    }

    private func writeTuples(_ tuples: UnsafeMutableRawPointer) {
        let rows = cells.rows
        let heapBit = plans[1].bit
        let keyBit = plans[0].bit
        for row in 0..<rows {
            let code = UInt64(starts[row] - row * heapSlope - heapBase)
            // Bits of a tuple.
            unsafe Self.put(tuples, row * tupleBits + heapBit, code)
            unsafe Self.put(tuples, row * tupleBits + keyBit, keyCodes[row])
        }
        for column in 0..<cells.columns {
            // As above.
            unsafe writeColumn(tuples, column, plans[column + 2])
        }
    }

    private func writeColumn(
        _ tuples: UnsafeMutableRawPointer,
        _ column: Int,
        _ plan: LeafPlan
    ) {
        let rows = cells.rows
        var cell = column * rows
        var bit = plan.bit
        if plan.coding == .raw {
            for _ in 0..<rows {
                // One of the cells; 8 or 16 whole bytes of a tuple.
                let value = unsafe cells.values[cell]
                let at = unsafe tuples + (bit >> 3)
                if plan.type == .uuid {
                    let source = unsafe cells.source + Int(value & 0xFFFF_FFFF)
                    unsafe at.copyMemory(from: source, byteCount: 16)
                } else {
                    unsafe at.storeBytes(of: value.littleEndian, as: UInt64.self)
                }
                cell += 1
                bit += tupleBits
            }
            return
        }
        if plan.tupleBits == 0 { return }
        let specials = UInt64(plan.specials)
        let absent: UInt64 = plan.hasNil ? 1 : 0
        let base = UInt64(bitPattern: plan.base)
        for _ in 0..<rows {
            // One of the cells.
            let (tag, value) = unsafe (cells.tags[cell], cells.values[cell])
            var code = absent
            if tag > UInt32(RowTag.null) {
                switch plan.coding {
                case .text: code = value >> 32 &+ specials
                case .body:
                    code = value >> 32 &+ specials &+ UInt64(ByteWriter.varintSize(UInt64(tag)))
                case .dictionary: code = value &+ specials
                case .sparse, .sparseDecimal, .sparseBinary:
                    code = plan.hasCommon && value == base ? specials &- 1 : specials
                default: code = value &- base &+ specials
                }
            } else if tag == UInt32(RowTag.null) {
                code = 0
            }
            // Bits of a tuple.
            unsafe Self.put(tuples, bit, code)
            cell += 1
            bit += tupleBits
        }
    }

    /// Puts a code of at most 56 bits where there are zeros.
    @inline(__always)
    private static func put(_ tuples: UnsafeMutableRawPointer, _ bit: Int, _ code: UInt64) {
        let at = unsafe tuples + (bit &>> 3)
        // At most 8 bytes behind the tuples.
        let word = unsafe at.loadUnaligned(as: UInt64.self).littleEndian
        let next = word | code &<< UInt64(truncatingIfNeeded: bit & 7)
        unsafe at.storeBytes(of: next.littleEndian, as: UInt64.self)
    }

    private func writeHeap(_ heap: UnsafeMutableRawPointer) {
        unsafe texts.dictionaries.withUnsafeBytes { bytes in
            guard let source = bytes.baseAddress else { return }
            // Counted as the beginning of the heap.
            unsafe heap.copyMemory(from: source, byteCount: bytes.count)
        }
        var end = texts.dictionaries.count
        let columns = heapColumns.map { HeapColumn(cells, texts, $0) }
        for row in 0..<cells.rows {
            // Every length was counted, and behind the last one are 8 bytes.
            for column in columns { unsafe column.write(heap, row, &end) }
        }
    }
}

/// A column that has values in the heap.
@safe private struct HeapColumn {
    private let cells: LeafCells
    private let plan: LeafPlan
    private let first: Int
    private let source: UnsafeRawPointer

    init(_ cells: LeafCells, _ texts: LeafTexts, _ column: Int) {
        self.cells = cells
        plan = cells.plans[column]
        first = column * cells.rows
        // Where the column's texts lie.
        unsafe source = texts.isCoded[column] ? UnsafeRawPointer(texts.codes) : cells.source
    }

    /// Writes a row's value behind the others.
    @inline(__always)
    func write(_ heap: UnsafeMutableRawPointer, _ row: Int, _ end: inout Int) {
        let cell = first &+ row
        guard cells.hasValue(cell) else { return }
        // One of the cells.
        let value = unsafe cells.values[cell]
        let length = Int(truncatingIfNeeded: value &>> 32)
        let at = Int(truncatingIfNeeded: value & 0xFFFF_FFFF)
        switch plan.coding {
        case .text:
            // As many bytes of the texts, and as many of the heap.
            unsafe (heap + end).copyMemory(from: source + at, byteCount: length)
            end &+= length
        case .body:
            var tag = unsafe cells.tags[cell]
            while tag >= 0x80 {
                // The tag was counted.
                unsafe heap.storeBytes(
                    of: UInt8(truncatingIfNeeded: tag) | 0x80,
                    toByteOffset: end,
                    as: UInt8.self
                )
                end &+= 1
                tag &>>= 7
            }
            unsafe heap.storeBytes(
                of: UInt8(truncatingIfNeeded: tag),
                toByteOffset: end,
                as: UInt8.self
            )
            end &+= 1
            // As above.
            unsafe (heap + end).copyMemory(from: cells.source + at, byteCount: length)
            end &+= length
        default:
            if plan.type == .uuid {
                // 16 bytes of a body.
                unsafe (heap + end).copyMemory(from: cells.source + at, byteCount: 16)
                end &+= 16
                return
            }
            if plan.hasCommon, value == UInt64(bitPattern: plan.base) { return }
            let word = (value &- UInt64(bitPattern: plan.base)).littleEndian
            // What is too much is covered by the next value, or lies behind the leaf.
            unsafe heap.storeBytes(of: word, toByteOffset: end, as: UInt64.self)
            end &+= plan.heapBytes
        }
    }
}

/// The keys of a leaf as distances from a straight line.
struct KeyLine {
    let slope: Int
    let base: UInt64
    let codes: [UInt64]

    /// The most that keys of a leaf may be apart.
    static let rangeMax: UInt64 = 1 << 48
    static let slopeMax: UInt64 = 255

    /// Ascending keys; nil where they are too far apart.
    init?(_ keys: [UInt64]) {
        guard let first = keys.first, let last = keys.last, last >= first,
            last - first < Self.rangeMax
        else { return nil }
        let gaps = UInt64(max(1, keys.count - 1))
        let slope = Int(min(Self.slopeMax, max(1, (last - first) / gaps)))
        var line: [Int] = []
        line.reserveCapacity(keys.count)
        var least = 0
        var previous = first
        for (index, key) in keys.enumerated() {
            precondition(index == 0 || key > previous, "keys that do not ascend")
            previous = key
            let distance = Int(key - first) - slope * index
            least = min(least, distance)
            line.append(distance)
        }
        self.slope = slope
        base = first &+ UInt64(bitPattern: Int64(least))
        codes = line.map { UInt64($0 - least) }
    }
}
