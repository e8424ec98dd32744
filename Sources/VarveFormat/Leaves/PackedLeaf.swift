// FENCE: a leaf of layout 1, read where it lies.
//
// Invariants
// - `init` checks every place in the front and in the tuples, so that they are loaded without
//   comparing; places in the heap come from codes, and are compared with its end at each read.
// - Behind the body there are `padding` bytes that may be read: a word can begin at the last bit.
// - Keys ascend: `init` reads all of them.
// Format.md, chapter "Leaves of layout 1".

/// A leaf read where it lies. Plain words, valid while somebody keeps the bytes and the set.
@unsafe public struct PackedLeaf {
    /// Readable bytes behind the body that the caller provides.
    public static let padding = 8

    /// Bytes of the fields in front of the plans.
    static let frontLength = 56
    /// Where the 32 bytes about the set of tables begin.
    static let setOffset = 24
    /// Plans in front of those of the columns: keys, heap, versions.
    static let frontPlans = 3
    /// The most bytes of a packed row in such a leaf.
    public static let rowBytesLimit = 65_536
    /// Bytes of all rows of a leaf, versions among them: what a reader may have to make room for.
    public static let rawBytesLimit = 16 << 20
    /// Cells of a leaf: rows times columns, the version being one of them.
    public static let cellsLimit = 1 << 20

    @usableFromInline @unsafe let base: UnsafeRawPointer
    /// Memory of the set's tables, one after the other.
    @unsafe let tables: UnsafeRawPointer?
    /// Bytes of the body.
    let end: Int
    /// Number of rows.
    public let count: Int
    /// Bytes of the versions as varints and of the packed rows.
    public let rawBytes: Int
    /// Bytes of the largest packed row.
    public let rowBytesMax: Int
    /// Columns of the widest row.
    public let columnCount: Int
    @usableFromInline let tupleBits: Int
    /// Where the far bases begin.
    let bases: Int
    /// Where the tuples begin, in bits.
    @usableFromInline let tuples: Int
    /// Where the heap begins.
    let heap: Int
    /// Where row 0 begins in the heap, by the line alone.
    let heapBase: Int
    let heapSlope: Int
    @usableFromInline let keyBase: UInt64
    /// First bit of a key's code in a tuple.
    @usableFromInline let keyBit: Int
    @usableFromInline let keyMask: UInt64
    @usableFromInline let keySlope: Int
    /// What every row's count and tags take at least.
    let headLeast: Int

    /// Where a leaf says its set of tables is; nil: it has none.
    /// - Throws: when no frames can lie there, or the body is too short.
    public static func symbolSet(
        of body: UnsafeRawBufferPointer
    ) throws(FormatError) -> SymbolSetAddress? {
        guard unsafe body.count >= frontLength, let base = body.baseAddress else {
            throw FormatError(
                place: "leaf",
                field: "front",
                found: "\(body.count) bytes",
                expected: unsafe "at least \(frontLength)"
            )
        }
        // The 32 bytes are in front of `frontLength`.
        return unsafe try SymbolSetAddress(
            first: word(base, setOffset),
            twin: word(base, setOffset + 8),
            hash: word(base, setOffset + 16),
            lengths: word(base, setOffset + 24),
            place: "leaf"
        )
    }

    /// Checks the front of a leaf, its plans and its keys.
    /// - Complexity: O(columns + rows), and the texts of dictionaries.
    public init(
        decoding body: UnsafeRawBufferPointer,
        count: Int,
        symbols: SymbolSet?,
        place: FormatPlace
    ) throws(FormatError) {
        guard unsafe body.count >= Self.frontLength, let base = body.baseAddress,
            count > 0, count <= Int(UInt16.max)
        else {
            throw unsafe Self.error(place, "front", "\(body.count) bytes, \(count) rows", "a leaf")
        }
        unsafe self.base = base
        unsafe tables = symbols.map { unsafe UnsafeRawPointer($0.memory.base) }
        unsafe end = body.count
        unsafe self.count = count
        // Inside the front.
        let first = unsafe Self.word(base, 0)
        let sizes = unsafe Self.word(base, 8)
        let line = unsafe Self.word(base, 16)
        unsafe columnCount = Int(first & 0xFFFF)
        unsafe tupleBits = Int(first >> 16 & 0xFFFF)
        unsafe rawBytes = Int(sizes & 0xFFFF_FFFF)
        unsafe rowBytesMax = Int(sizes >> 32)
        unsafe heapSlope = Int(line & 0xFFFF_FFFF)
        unsafe bases = Self.frontLength + LeafPlan.length * (Self.frontPlans + columnCount)
        let tupleStart = unsafe bases + 8 * Int(first >> 32 & 0xFFFF)
        unsafe tuples = tupleStart * 8
        unsafe heap = tupleStart + (count * tupleBits + 7) >> 3
        unsafe heapBase = heap + Int(Int32(truncatingIfNeeded: line >> 32))
        guard first >> 48 == 0, unsafe columnCount <= RowCoding.columnsMax else {
            throw unsafe Self.error(place, "columns", "\(columnCount)", "at most 1024, then 0")
        }
        guard unsafe heap <= end else {
            throw unsafe Self.error(place, "tuples", "\(end) bytes", "at least \(heap)")
        }
        try unsafe Self.checkSizes(place, count, columnCount, (rawBytes, rowBytesMax))
        // The front ends before the plans begin, and those before the heap.
        let keys = unsafe LeafPlanWord(Self.word(base, Self.frontLength))
        unsafe keyBit = keys.bit
        unsafe keyMask = ~(UInt64.max &<< UInt64(keys.width))
        unsafe keySlope = keys.scale
        unsafe keyBase = unsafe UInt64(
            bitPattern: Self.farOrNear(base, keys, bases, tupleStart)
        )
        unsafe headLeast = unsafe Self.headLeast(base, columnCount)
        try unsafe check(place, tableCount: symbols?.tableCount ?? 0)
        guard unsafe headLeast <= rowBytesMax else {
            throw unsafe Self.error(place, "largest row", "\(rowBytesMax)", "at least \(headLeast)")
        }
        try unsafe checkKeys(place)
    }

    /// The object of a row, which must be below `count`.
    @inlinable @inline(__always)
    public func object(_ index: Int) -> UInt64 {
        unsafe assert(index >= 0 && index < count)
        let bit = unsafe tuples &+ index &* tupleBits &+ keyBit
        // A code of a tuple; its plan was checked.
        let word = unsafe base.loadUnaligned(fromByteOffset: bit &>> 3, as: UInt64.self)
        let code = unsafe word.littleEndian &>> UInt64(truncatingIfNeeded: bit & 7) & keyMask
        return unsafe keyBase &+ UInt64(truncatingIfNeeded: index &* keySlope) &+ code
    }

    /// The first row whose object is not below one, and whether it is that one.
    /// - Complexity: O(1) where objects follow a straight line, else O(log rows).
    public func index(of object: UInt64) -> (index: Int, isEqual: Bool) {
        var low = 0
        var high = unsafe count
        let first = unsafe self.object(0)
        if object <= first { return (0, object == first) }
        let last = unsafe self.object(count &- 1)
        if object >= last { return unsafe object == last ? (count &- 1, true) : (count, false) }
        // Between two keys, so less than 2^57 from the base, which may lie below 0.
        let distance = unsafe Int(truncatingIfNeeded: object &- keyBase)
        let slope = unsafe keySlope
        if distance >= 0 {
            // A code is at least 0 and at most the mask.
            let mask = unsafe Int(truncatingIfNeeded: keyMask)
            high = unsafe min(count &- 1, (slope == 1 ? distance : distance / slope) &+ 1)
            low = min(high, max(0, distance &- mask) / slope)
        }
        while low < high {
            let middle = (low &+ high) &>> 1
            if unsafe self.object(middle) < object { low = middle &+ 1 } else { high = middle }
        }
        // At most the last row, whose key is above.
        return unsafe (low, self.object(low) == object)
    }

    /// The version of a row, which must be below `count`; 0 where the bytes are damaged.
    @inline(__always)
    public func version(_ index: Int) -> UInt64 { unsafe soundVersion(index) ?? 0 }

    /// The version of a row; nil where the bytes are damaged.
    @inline(__always)
    func soundVersion(_ index: Int) -> UInt64? {
        unsafe assert(index >= 0 && index < count)
        let tuple = unsafe tuples &+ index &* tupleBits
        // The third plan, which was checked.
        let plan = unsafe LeafPlanWord(Self.word(base, Self.frontLength &+ 16))
        if plan.coding == UInt64(LeafCoding.raw.rawValue) {
            return unsafe Self.word(base, (tuple &+ plan.bit) &>> 3)
        }
        let code = unsafe bits(tuple &+ plan.bit, plan.tupleWidth)
        let base = unsafe UInt64(bitPattern: planBase(plan))
        if plan.coding == UInt64(LeafCoding.packed.rawValue) { return base &+ code }
        if code < plan.specials { return base }
        // Versions are in front of all other values of a row.
        return unsafe sparseCode(plan, heapStart(index, tuple)).map { base &+ $0 }
    }

    /// Asks for the memory of a row that is read now. Its tuple says where its heap begins, so that
    /// one would be waited for after the other; but the line says nearly as much.
    @inline(__always)
    public func foresee(_ index: Int) {
        unsafe assert(index >= 0 && index < count)
        let tuple = unsafe (tuples &+ index &* tupleBits) &>> 3
        // Only asked for, and mostly inside the body.
        unsafe ComingMemory.foresee(base + tuple, tupleBits &>> 3)
        let start = unsafe heapBase &+ index &* heapSlope
        unsafe ComingMemory.foreseeLines(base + start, Self.heapForeseen)
    }

    /// Bytes behind the line: how far a row of usual texts begins behind it, and its own.
    private static let heapForeseen = 320

    // MARK: Places

    /// The plan of a column, which must be below `columnCount`.
    @inline(__always)
    func plan(_ column: Int) -> LeafPlanWord {
        // One of the plans, which were checked.
        let at = unsafe Self.frontLength &+ LeafPlan.length &* (Self.frontPlans &+ column)
        return unsafe LeafPlanWord(Self.word(base, at))
    }

    /// Where the heap of a row begins; anywhere, where the bytes are damaged.
    @inline(__always)
    func heapStart(_ index: Int, _ tuple: Int) -> Int {
        // The second plan, which was checked.
        let plan = unsafe LeafPlanWord(Self.word(base, Self.frontLength &+ 8))
        let code = unsafe bits(tuple &+ plan.bit, plan.width)
        return unsafe heapBase &+ index &* heapSlope &+ Int(truncatingIfNeeded: code)
    }

    /// The sparse value of at most 64 bits at a place; nil outside the heap.
    @inline(__always)
    func sparseCode(_ plan: LeafPlanWord, _ at: Int) -> UInt64? {
        let bytes = (plan.width &+ 7) &>> 3
        guard unsafe at >= heap, unsafe at &+ bytes <= end else { return nil }
        // Inside the heap; behind it 8 bytes may be read.
        let word = unsafe Self.word(base, at)
        return bytes == 8 ? word : word & ~(UInt64.max &<< UInt64(8 &* bytes))
    }

    /// At most 56 bits at a bit of the tuples.
    @inline(__always)
    func bits(_ position: Int, _ width: Int) -> UInt64 {
        // At most at the end of the body, behind which there is a word.
        let word = unsafe Self.word(base, position &>> 3)
        return word &>> UInt64(truncatingIfNeeded: position & 7)
            & ~(UInt64.max &<< UInt64(truncatingIfNeeded: width))
    }

    /// The base of a plan that was checked.
    @inline(__always)
    func planBase(_ plan: LeafPlanWord) -> Int64 {
        if !plan.isFar { return plan.nearBase }
        // One of the far bases.
        return unsafe Int64(bitPattern: Self.word(base, bases &+ 8 &* plan.last))
    }

    @inline(__always)
    @unsafe static func word(_ base: UnsafeRawPointer, _ at: Int) -> UInt64 {
        // The caller says that 8 bytes may be read there.
        unsafe base.loadUnaligned(fromByteOffset: at, as: UInt64.self).littleEndian
    }

    static func error(
        _ place: FormatPlace,
        _ field: String,
        _ found: String,
        _ expected: String
    ) -> FormatError {
        FormatError(place: place, field: field, found: found, expected: expected)
    }
}
