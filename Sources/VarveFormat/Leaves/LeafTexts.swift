// FENCE: the texts and data of a leaf that is made: coded with symbols, kept once where few differ.
//
// Invariants
// - A text's place lies inside the rows' bytes, or inside the codes where its column is coded.
// - The codes have room for twice the rows' bytes, so that each text of each row has its room.

/// The texts and data of a leaf that is made.
@safe final class LeafTexts {
    private let set: SymbolSet?
    /// Dictionaries, one after the other.
    private(set) var dictionaries: [UInt8] = []
    /// Codes of texts.
    @unsafe let codes: UnsafeMutableRawPointer
    private var codesEnd = 0
    /// Which columns' texts lie in the codes.
    private(set) var isCoded: [Bool]

    init(_ set: SymbolSet?, of cells: LeafCells) {
        self.set = set
        isCoded = [Bool](repeating: false, count: cells.columns)
        // Given back by `deinit`.
        unsafe codes = .allocate(
            byteCount: set == nil ? 16 : 2 * cells.sourceCount + 16,
            alignment: 8
        )
    }

    deinit {
        // Allocated by `init`.
        unsafe codes.deallocate()
    }

    /// Decides how the texts of a column are stored, and codes them.
    func plan(_ cells: LeafCells, _ column: Int, _ plan: inout LeafPlan) {
        let first = column * cells.rows
        plan.coding = .text
        let table = plan.type == .text ? set?.number(ofColumn: column - 1) ?? 0 : 0
        var dictionary = LeafDictionary(cells, first)
        if table > 0 { code(cells, column, table, &dictionary, &plan) }
        var most = 0
        var bytes = 0
        for cell in first..<first + cells.rows where cells.hasValue(cell) {
            // One of the cells.
            let length = unsafe Int(cells.values[cell] >> 32)
            most = max(most, length)
            bytes += length
        }
        plan.width = LeafPlan.bits(UInt64(most + plan.specials))
        if let dictionary { take(dictionary, cells, first, bytes, &plan) }
    }

    /// Codes the texts of a column, unless that makes them no shorter.
    private func code(
        _ cells: LeafCells,
        _ column: Int,
        _ table: Int,
        _ dictionary: inout LeafDictionary?,
        _ plan: inout LeafPlan
    ) {
        guard let memory = set?.memory else { return }
        // The number of a table that is there.
        let symbols = unsafe memory.base + (table - 1) * SymbolMemory.tableBytes
        let first = column * cells.rows
        let start = codesEnd
        var coded: [UInt64] = []
        coded.reserveCapacity(cells.rows)
        var raw = 0
        func add(_ value: UInt64) {
            let at = Int(value & 0xFFFF_FFFF)
            let length = Int(value >> 32)
            raw += length
            // The text lies in the rows' bytes, and no text is coded twice.
            let count = unsafe SymbolMemory.encode(
                symbols,
                cells.source + at,
                length,
                readable: cells.sourceCount - at,
                codes + codesEnd
            )
            coded.append(UInt64(codesEnd) | UInt64(count) << 32)
            codesEnd += count
        }
        if let texts = dictionary?.texts {
            for text in texts { add(text) }
        } else {
            for cell in first..<first + cells.rows where cells.hasValue(cell) {
                // One of the cells.
                unsafe add(cells.values[cell])
            }
        }
        if codesEnd - start >= raw {
            codesEnd = start
            return
        }
        plan.base = Int64(table)
        isCoded[column] = true
        var next = 0
        for cell in first..<first + cells.rows where cells.hasValue(cell) {
            let number = dictionary?.number(cell - first) ?? next
            // One of the cells.
            unsafe cells.values[cell] = coded[number]
            next += 1
        }
        dictionary?.texts = coded
    }

    /// Keeps each text once where that is shorter.
    private func take(
        _ dictionary: LeafDictionary,
        _ cells: LeafCells,
        _ first: Int,
        _ bytes: Int,
        _ plan: inout LeafPlan
    ) {
        let count = dictionary.texts.count
        let textBytes = dictionary.texts.reduce(0) { $0 + Int($1 >> 32) }
        let width = LeafPlan.bits(UInt64(count - 1 + plan.specials))
        let size = cells.rows * width + 8 * (2 + 2 * count + textBytes)
        if size >= cells.rows * plan.width + 8 * bytes || textBytes > Int(UInt16.max) { return }
        let start = dictionaries.count
        append(UInt64(plan.base))
        var end = 0
        for text in dictionary.texts {
            end += Int(text >> 32)
            append(UInt64(end))
        }
        let isCoded = plan.base > 0
        for text in dictionary.texts {
            let at = Int(text & 0xFFFF_FFFF)
            // In the codes or in the rows' bytes.
            let source = unsafe isCoded ? UnsafeRawPointer(codes) : cells.source
            unsafe dictionaries.append(
                contentsOf: UnsafeRawBufferPointer(start: source + at, count: Int(text >> 32))
            )
        }
        plan.coding = .dictionary
        plan.width = width
        plan.scale = count
        // From the beginning of the heap, in front of the rows' bytes.
        plan.base = Int64(start)
        for cell in first..<first + cells.rows where cells.hasValue(cell) {
            // One of the cells.
            unsafe cells.values[cell] = UInt64(dictionary.number(cell - first))
        }
    }

    private func append(_ word: UInt64) {
        dictionaries.append(UInt8(truncatingIfNeeded: word))
        dictionaries.append(UInt8(truncatingIfNeeded: word >> 8))
    }
}

/// The different texts of a column, with the number of each row's.
struct LeafDictionary {
    /// The most texts of a dictionary.
    static let countMax = 255

    /// The number of each row's text; of those without a text it has no meaning.
    private var numbers: [UInt8] = []
    /// Where each text lies, and its length.
    var texts: [UInt64] = []

    /// The number of a row's text.
    @inline(__always)
    func number(_ row: Int) -> Int { Int(numbers[row]) }

    /// Gathers the texts of a column; nil when more than half of them are different.
    init?(_ cells: LeafCells, _ first: Int) {
        let most = min(Self.countMax, cells.rows / 2)
        // Open addressing: at most half of the slots are taken.
        var slots = [UInt8](repeating: 0, count: 512)
        numbers.reserveCapacity(cells.rows)
        for cell in first..<first + cells.rows {
            guard cells.hasValue(cell) else {
                numbers.append(0)
                continue
            }
            // One of the cells; its text lies in the rows' bytes.
            let value = unsafe cells.values[cell]
            let text = unsafe cells.source + Int(value & 0xFFFF_FFFF)
            let length = Int(value >> 32)
            var slot = unsafe Self.hash(text, length) & 511
            while slots[slot] != 0 {
                let other = texts[Int(slots[slot]) - 1]
                if other >> 32 == value >> 32 {
                    // As above, and as long.
                    let start = unsafe cells.source + Int(other & 0xFFFF_FFFF)
                    if unsafe Self.isEqual(text, start, length) { break }
                }
                slot = (slot + 1) & 511
            }
            if slots[slot] == 0 {
                if texts.count == most { return nil }
                // Given up early where the first rows are all different.
                if numbers.count == 32 && texts.count > 24 { return nil }
                texts.append(value)
                slots[slot] = UInt8(texts.count)
            }
            numbers.append(slots[slot] - 1)
        }
        if texts.isEmpty { return nil }
    }

    @inline(__always)
    private static func hash(_ text: UnsafeRawPointer, _ count: Int) -> Int {
        var hash = UInt64(truncatingIfNeeded: count)
        var at = 0
        while at &+ 8 <= count {
            // In front of the end.
            let word = unsafe text.loadUnaligned(fromByteOffset: at, as: UInt64.self)
            hash = (hash ^ word) &* 0x9E37_79B1_85EB_CA87
            hash ^= hash &>> 32
            at &+= 8
        }
        while at < count {
            // As above.
            let byte = unsafe text.load(fromByteOffset: at, as: UInt8.self)
            hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
            at &+= 1
        }
        return Int(truncatingIfNeeded: (hash ^ hash &>> 29) & 0xFFFF_FFFF)
    }

    @inline(__always)
    private static func isEqual(
        _ left: UnsafeRawPointer,
        _ right: UnsafeRawPointer,
        _ count: Int
    ) -> Bool {
        var at = 0
        while at &+ 8 <= count {
            // In front of the end of both.
            let one = unsafe left.loadUnaligned(fromByteOffset: at, as: UInt64.self)
            let two = unsafe right.loadUnaligned(fromByteOffset: at, as: UInt64.self)
            if one != two { return false }
            at &+= 8
        }
        while at < count {
            // As above.
            let one = unsafe left.load(fromByteOffset: at, as: UInt8.self)
            let two = unsafe right.load(fromByteOffset: at, as: UInt8.self)
            if one != two { return false }
            at &+= 1
        }
        return true
    }
}
