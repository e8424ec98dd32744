// FENCE: filters over what stands in the heap of a leaf of layout 1: texts, dictionaries, sparse
// numbers.
//
// Invariants
// - As in PackedLeaf+Conditions.swift. A text that cannot be decoded leaves its row open, so that
//   whoever reads the row hears of the damage.

extension PackedLeaf {
    /// Columns in front of one whose bytes stand in front of its own.
    func withHeapPlans<R>(
        before column: Int,
        _ body: (UnsafeBufferPointer<UInt64>) -> R
    ) -> R {
        unsafe withUnsafeTemporaryAllocation(of: UInt64.self, capacity: max(1, column)) { room in
            var count = 0
            for index in 0..<column {
                let plan = unsafe plan(index)
                if plan.usesHeap {
                    // One for each column at most.
                    unsafe room[count] = plan.word
                    count &+= 1
                }
            }
            return unsafe body(UnsafeBufferPointer(rebasing: room[..<count]))
        }
    }

    /// Where a row's bytes begin that stand behind those of some columns.
    @inline(__always)
    func heapPlace(
        _ row: Int,
        _ tuple: Int,
        after plans: UnsafeBufferPointer<UInt64>
    ) -> Int {
        var at = unsafe heapStart(row, tuple) &+ versionBytes(tuple)
        for index in 0..<plans.count {
            at &+= unsafe heapBytes(LeafPlanWord(plans[index]), tuple)
        }
        return at
    }

    /// Bytes in the heap of a column of one row.
    @inline(__always)
    func heapBytes(_ plan: LeafPlanWord, _ tuple: Int) -> Int {
        let code = unsafe bits(tuple &+ plan.bit, plan.tupleWidth)
        let specials = plan.specials
        if code < specials { return 0 }
        if plan.isSparse { return (plan.width &+ 7) &>> 3 }
        return Int(truncatingIfNeeded: code &- specials)
    }

    /// Texts one by one.
    func texts(
        _ condition: ColumnCondition,
        _ test: (Span<UInt8>) -> Bool,
        _ column: Int,
        _ plan: LeafPlanWord,
        _ rows: LeafRowRange,
        _ special: UInt64,
        _ among: UInt64
    ) -> LeafAnswer {
        let room = unsafe rowBytesMax &+ Self.padding
        return unsafe withHeapPlans(before: column) { plans in
            unsafe withUnsafeTemporaryAllocation(byteCount: room, alignment: 8) { memory in
                var answer = LeafAnswer(exact: 0)
                var left = among & rows.all
                while left != 0 {
                    let bit = left & (0 &- left)
                    let row = rows.first &+ left.trailingZeroBitCount
                    left &= left &- 1
                    let tuple = unsafe tuples &+ row &* tupleBits
                    let code = unsafe bits(tuple &+ plan.bit, plan.width)
                    let specials = plan.specials
                    if code < specials {
                        answer.add(bit, special >> code & 1 != 0)
                        continue
                    }
                    let at = unsafe heapPlace(row, tuple, after: plans)
                    let length = Int(truncatingIfNeeded: code &- specials)
                    let passes = unsafe self.test(plan.last, at, length, memory, test)
                    answer.add(bit, passes.map { $0 != condition.isNegated })
                }
                return answer
            }
        }
    }

    /// Whether a text of the heap passes; nil where it is damaged.
    private func test(
        _ table: Int,
        _ at: Int,
        _ length: Int,
        _ memory: UnsafeMutableRawBufferPointer,
        _ test: (Span<UInt8>) -> Bool
    ) -> Bool? {
        guard unsafe at >= heap, length >= 0, unsafe at <= end &- length,
            let target = memory.baseAddress
        else { return nil }
        if table == 0 {
            // Inside the heap.
            let text = unsafe UnsafeRawBufferPointer(start: base + at, count: length)
            return unsafe test(text.assumingMemoryBound(to: UInt8.self).span)
        }
        guard let tables = unsafe tables,
            let count = unsafe SymbolMemory.decode(
                tables + (table &- 1) &* SymbolMemory.tableBytes,
                base + at,
                length,
                target,
                rowBytesMax
            )
        else { return nil }
        // So many bytes were decoded.
        let text = unsafe UnsafeRawBufferPointer(start: target, count: count)
        return unsafe test(text.assumingMemoryBound(to: UInt8.self).span)
    }

    /// Texts of a dictionary: each is asked once.
    func entries(
        _ condition: ColumnCondition,
        _ test: (Span<UInt8>) -> Bool,
        _ plan: LeafPlanWord,
        _ rows: LeafRowRange,
        _ special: UInt64,
        _ among: UInt64
    ) -> LeafAnswer {
        let room = unsafe rowBytesMax &+ Self.padding
        let count = plan.scale
        return unsafe withUnsafeTemporaryAllocation(byteCount: count &+ room, alignment: 8) {
            memory in
            // What is known of each text: 0 nothing, 1 fails, 2 passes, 3 damaged.
            let known = unsafe UnsafeMutableRawBufferPointer(rebasing: memory[..<count])
            let target = unsafe UnsafeMutableRawBufferPointer(rebasing: memory[count...])
            unsafe known.initializeMemory(as: UInt8.self, repeating: 0)
            var answer = LeafAnswer(exact: 0)
            var left = among & rows.all
            while left != 0 {
                let bit = left & (0 &- left)
                let row = rows.first &+ left.trailingZeroBitCount
                left &= left &- 1
                let code = unsafe bits(tuples &+ row &* tupleBits &+ plan.bit, plan.width)
                if code < plan.specials {
                    answer.add(bit, special >> code & 1 != 0)
                    continue
                }
                let number = Int(truncatingIfNeeded: code &- plan.specials)
                guard number < count else {
                    answer.mayPass |= bit
                    continue
                }
                if unsafe known[number] == 0 {
                    let (at, length) = unsafe entry(plan, number)
                    let table = unsafe dictionaryTable(plan)
                    let passes = unsafe self.test(table, at, length, target, test)
                    unsafe known[number] = passes.map { $0 ? 2 : 1 } ?? 3
                }
                let state = unsafe known[number]
                answer.add(bit, state == 3 ? nil : (state == 2) != condition.isNegated)
            }
            return answer
        }
    }

    /// Where a text of a dictionary lies.
    @inline(__always)
    func entry(_ plan: LeafPlanWord, _ number: Int) -> (at: Int, length: Int) {
        // The dictionary was checked: it lies in the heap, and its texts end in their order.
        let start = unsafe heap &+ Int(truncatingIfNeeded: planBase(plan))
        let ends = unsafe Self.word(base, start &+ 2 &* number)
        let from = number == 0 ? 0 : Int(ends & 0xFFFF)
        let length = Int(ends &>> 16 & 0xFFFF) &- from
        return (start &+ 2 &+ 2 &* plan.scale &+ from, length)
    }

    /// The symbol table of a dictionary; 0: none.
    @inline(__always)
    func dictionaryTable(_ plan: LeafPlanWord) -> Int {
        // As above.
        let start = unsafe heap &+ Int(truncatingIfNeeded: planBase(plan))
        return unsafe Int(Self.word(base, start) & 0xFFFF)
    }

    // MARK: Sparse numbers

    /// Numbers that stand in the heap, or are the base.
    func sparse(
        _ condition: ColumnCondition,
        _ range: LeafNumberRange,
        _ column: Int,
        _ plan: LeafPlanWord,
        _ rows: LeafRowRange,
        _ special: UInt64,
        _ among: UInt64
    ) -> LeafAnswer {
        let least = unsafe planBase(plan)
        let specials = plan.specials
        // The last special code says that the value is the base.
        let isBase = plan.hasCommon ? specials &- 1 : UInt64.max
        let basePasses = range.contains(least, in: plan) != condition.isNegated
        return unsafe withHeapPlans(before: column) { plans in
            var answer = LeafAnswer(exact: 0)
            var left = among & rows.all
            while left != 0 {
                let bit = left & (0 &- left)
                let row = rows.first &+ left.trailingZeroBitCount
                left &= left &- 1
                let tuple = unsafe tuples &+ row &* tupleBits
                let state = unsafe bits(tuple &+ plan.bit, plan.tupleWidth)
                if state == isBase {
                    answer.add(bit, basePasses)
                } else if state < specials {
                    answer.add(bit, special >> state & 1 != 0)
                } else if let code = unsafe sparseCode(plan, heapPlace(row, tuple, after: plans)) {
                    let number = least &+ Int64(bitPattern: code)
                    answer.add(bit, range.contains(number, in: plan) != condition.isNegated)
                } else {
                    answer.mayPass |= bit
                }
            }
            return answer
        }
    }
}
