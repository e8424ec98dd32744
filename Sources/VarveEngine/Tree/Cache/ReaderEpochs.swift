// FENCE: who may still be reading a node that was evicted. Raw memory: one line per thread.
//
// Invariants
// - A reader enters before it loads a pointer from the node table and leaves after its last use.
//   While it is inside, its line shows the epoch that it read on entering, never 0.
// - What was taken out of the table is tagged with the epoch of that moment, and the epoch goes up
//   by one afterwards. It may be freed when no line shows that epoch or an earlier one.
// - Only the thread that owns a line writes it. A line passes to another thread only at 0.
//
// Why that is enough. All stores and loads named here are sequentially consistent: (S) the reader's
// store of its epoch, (L) its load of a table entry, (U) the store that empties the entry, (C) the
// load of the reader's line by whoever wants to free. U comes before C in program order and S
// before L. If C misses S, then C < S, so U < L: the reader finds the entry empty. If C sees an
// epoch above the tag, the reader read it after the epoch went up, which was after U: again it
// finds the entry empty. In every other case the line shows the tag or less, and the node stays.

private import CVarve
internal import Synchronization

@safe final class ReaderEpochs: Sendable {
    /// What `enter` found; goes back to `leave`.
    struct Ticket {
        /// A line's number; `nested` inside another operation of the thread; below that, a place in
        /// `others`.
        fileprivate let place: Int
        fileprivate static let nested = -1
    }

    /// Bytes from line to line: two cache lines, since processors fetch them in pairs.
    private static let stride = 128
    private static let lines = Int(VARVE_THREAD_SLOTS)
    private static let hitsOffset = 8
    private static let missesOffset = 16

    private nonisolated(unsafe) let memory: UnsafeMutableRawPointer
    private let epoch = Atomic<UInt64>(1)
    /// Readers on threads without a line: their epochs, 0 where free.
    private let others = Mutex<[UInt64]>([])
    private let otherHits = Atomic<UInt64>(0)
    private let otherMisses = Atomic<UInt64>(0)

    init() {
        unsafe memory = .allocate(byteCount: Self.lines * Self.stride, alignment: Self.stride)
        for line in 0..<Self.lines {
            for offset in [0, Self.hitsOffset, Self.missesOffset] {
                // Three words of the line's own 128 bytes.
                unsafe (memory + line * Self.stride + offset)
                    .bindMemory(to: Atomic<UInt64>.self, capacity: 1)
                    .initialize(to: Atomic(0))
            }
        }
    }

    deinit {
        // An atomic integer needs no end of its own, and nobody enters a store that is gone.
        unsafe memory.deallocate()
    }

    /// A word of a thread's line.
    @inline(__always)
    private func word(_ line: Int, _ offset: Int) -> UnsafeMutablePointer<Atomic<UInt64>> {
        // Bound by init; `line` is below `lines`.
        unsafe (memory + line * Self.stride + offset)
            .assumingMemoryBound(to: Atomic<UInt64>.self)
    }

    // MARK: Readers

    /// Begins an operation: what the table shows from now on stays in memory until `leave`.
    @inline(__always)
    func enter() -> Ticket {
        let line = Int(varve_thread_slot())
        guard line >= 0 else { return enterWithoutLine() }
        let word = unsafe word(line, 0)
        // The line is this thread's own: no other store can come between.
        if unsafe word.pointee.load(ordering: .relaxed) != 0 {
            return Ticket(place: Ticket.nested)
        }
        let now = epoch.load(ordering: .acquiring)
        unsafe word.pointee.store(now, ordering: .sequentiallyConsistent)
        return Ticket(place: line)
    }

    /// Ends an operation. Tickets of one thread end in reverse order.
    @inline(__always)
    func leave(_ ticket: Ticket) {
        if ticket.place >= 0 {
            unsafe word(ticket.place, 0).pointee.store(0, ordering: .releasing)
        } else if ticket.place < Ticket.nested {
            others.withLock { $0[Ticket.nested - 1 - ticket.place] = 0 }
        }
    }

    @inline(never)
    func enterWithoutLine() -> Ticket {
        others.withLock { epochs in
            let now = epoch.load(ordering: .sequentiallyConsistent)
            if let free = epochs.firstIndex(of: 0) {
                epochs[free] = now
                return Ticket(place: Ticket.nested - 1 - free)
            }
            epochs.append(now)
            return Ticket(place: Ticket.nested - epochs.count)
        }
    }

    // MARK: Freeing

    /// The epoch that what was just taken out of the table is tagged with; a new one begins.
    func close() -> UInt64 {
        epoch.wrappingAdd(1, ordering: .sequentiallyConsistent).oldValue
    }

    /// The oldest epoch that a reader is in; `.max` when nobody reads.
    /// - Complexity: O(threads that ever read).
    func oldest() -> UInt64 {
        var oldest = UInt64.max
        // First those under the lock: it orders them as the lines' own stores order the lines.
        others.withLock { epochs in
            for epoch in epochs where epoch != 0 { oldest = min(oldest, epoch) }
        }
        for line in 0..<Int(varve_thread_slots_used()) {
            let epoch = unsafe word(line, 0).pointee.load(ordering: .sequentiallyConsistent)
            if epoch != 0 { oldest = min(oldest, epoch) }
        }
        return oldest
    }

    // MARK: Counters

    /// Counts a node that was found in the table: in the line that the thread writes anyway.
    @inline(__always)
    func countHit() { count(Self.hitsOffset, otherHits) }
    /// Counts a node that had to be read.
    func countMiss() { count(Self.missesOffset, otherMisses) }

    @inline(__always)
    private func count(_ offset: Int, _ other: borrowing Atomic<UInt64>) {
        let line = Int(varve_thread_slot())
        guard line >= 0 else {
            other.wrappingAdd(1, ordering: .relaxed)
            return
        }
        let word = unsafe word(line, offset)
        let next = unsafe word.pointee.load(ordering: .relaxed) &+ 1
        unsafe word.pointee.store(next, ordering: .relaxed)
    }

    /// Nodes found and nodes read since opening.
    var counts: (hits: UInt64, misses: UInt64) {
        var hits = otherHits.load(ordering: .relaxed)
        var misses = otherMisses.load(ordering: .relaxed)
        for line in 0..<Int(varve_thread_slots_used()) {
            hits &+= unsafe word(line, Self.hitsOffset).pointee.load(ordering: .relaxed)
            misses &+= unsafe word(line, Self.missesOffset).pointee.load(ordering: .relaxed)
        }
        return (hits, misses)
    }
}
