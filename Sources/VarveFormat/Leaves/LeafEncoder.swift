// Leaves of layout 1, made from packed rows. Read in PackedLeaf.swift.

internal import VarveBase

/// Makes the bodies of leaves of layout 1.
public enum LeafEncoder {
    /// The body, or nil where layout 0 is the better one or the only one possible.
    /// - Complexity: O(bytes of the rows).
    public static func body(
        of rows: LeafRows,
        symbols: (set: SymbolSet, address: SymbolSetAddress)?
    ) -> [UInt8]? {
        anyBody(of: rows, symbols: symbols)
    }

    /// The body, also where layout 0 would be shorter.
    static func anyBody(
        of rows: LeafRows,
        symbols: (set: SymbolSet, address: SymbolSetAddress)?
    ) -> [UInt8]? {
        let count = rows.count
        guard count > 0, count <= Int(UInt16.max) else { return nil }
        var cells: [[[UInt8]?]] = []
        var columns = 0
        var raw = 0
        var largest = 0
        for index in 0..<count {
            let range = rows.range(index)
            guard let row = try? RowView(Array(rows.bytes[range])) else { return nil }
            var cell: [[UInt8]?] = []
            row.layout.forEachSlot(in: row.bytes.span) { _, slot in
                if slot.tag <= 1 {
                    cell.append(slot.tag == 0 ? nil : [])
                    return
                }
                var writer = ByteWriter()
                writer.varint(slot.tag)
                writer.raw(row.bytes[slot.body])
                cell.append(writer.bytes)
            }
            if let last = cell.last, last == nil { return nil }
            columns = max(columns, cell.count)
            cells.append(cell)
            raw += range.count + ByteWriter.varintSize(rows.versions[index])
            largest = max(largest, range.count)
        }
        if unsafe largest > PackedLeaf.rowBytesLimit { return nil }
        var plans = [LeafPlan](repeating: LeafPlan(.int), count: 3)
        var widths: [Int] = []
        let first = rows.objects[0]
        guard let last = rows.objects.last, last - first < 1 << 48 else { return nil }
        plans[0].base = Int64(bitPattern: first)
        plans[0].scale = 1
        let codes = rows.objects.enumerated().map { $1 - first - UInt64($0) }
        plans[0].width = LeafPlan.bits(codes.max() ?? 0)
        let leastVersion = rows.versions.min() ?? 0
        plans[2].base = Int64(bitPattern: leastVersion)
        plans[2].width = LeafPlan.bits((rows.versions.max() ?? 0) - leastVersion)
        for column in 0..<columns {
            var plan = LeafPlan(.any)
            plan.coding = .body
            plan.hasNil = true
            plan.hasAbsent = true
            plan.width = LeafPlan.bits(
                UInt64(cells.map { column < $0.count ? ($0[column]?.count ?? 0) : 0 }.max() ?? 0)
                    + 2
            )
            plans.append(plan)
        }
        var heap: [UInt8] = []
        var starts: [Int] = []
        for cell in cells {
            starts.append(heap.count)
            for part in cell { heap += part ?? [] }
        }
        plans[1].width = LeafPlan.bits(UInt64(starts.max() ?? 0))
        var bit = 0
        for index in plans.indices {
            plans[index].bit = bit
            bit += plans[index].width
            widths.append(plans[index].width)
        }
        guard bit <= 65535, widths.allSatisfy({ $0 <= 56 }) else { return nil }
        var bits = [UInt8](repeating: 0, count: (bit * count + 7) / 8)
        var position = 0
        func write(_ code: UInt64, _ width: Int) {
            for index in 0..<width {
                bits[position >> 3] |= UInt8(code >> UInt64(index) & 1) << UInt8(position & 7)
                position += 1
            }
        }
        for index in 0..<count {
            write(codes[index], widths[0])
            write(UInt64(starts[index]), widths[1])
            write(rows.versions[index] - leastVersion, widths[2])
            for column in 0..<columns {
                guard column < cells[index].count, let part = cells[index][column] else {
                    write(1, widths[3 + column])
                    continue
                }
                write(part.isEmpty ? 0 : UInt64(part.count + 2), widths[3 + column])
            }
        }
        var bases: [Int64] = []
        let words = plans.map { $0.encoded(&bases) }
        var writer = ByteWriter()
        writer.u16(UInt16(columns))
        writer.u16(UInt16(bit))
        writer.u16(UInt16(bases.count))
        writer.u16(0)
        writer.u32(UInt32(raw))
        writer.u32(UInt32(largest))
        writer.u32(0)
        writer.u32(0)
        writer.u64(symbols?.address.first.rawValue ?? 0)
        writer.u64(symbols?.address.twin.rawValue ?? 0)
        writer.u64(symbols?.address.payloadHash ?? 0)
        writer.u64(UInt64(symbols?.address.storedLength ?? 0))
        for word in words { writer.u64(word) }
        for base in bases { writer.i64(base) }
        writer.raw(bits)
        writer.raw(heap)
        return writer.bytes
    }
}
