// Leaves that a transaction comes to next, restored by another thread meanwhile.
//
// Invariants
// - It reads a published state as any reader does, and changes nothing but the node cache. What it
//   fails on the transaction meets itself, and reports.
// - It stays near the transaction's place, so that the cache still has what it restored.
// - It is over before the transaction goes on to anything else.
//
// Why: changes in the order of a tree touch leaf after leaf, and restoring their pages was a
// quarter of a large update, beside a processor that had nothing to do.

internal import Synchronization
internal import VarveBase
internal import VarveIO

final class LeafReadAhead: Sendable {
    /// Fewer changes are not worth a thread.
    static let changesMin = 1024
    /// Changes that it may be ahead: at one a leaf some 4 MB of the node cache.
    private static let distance = 256
    /// Changes between two looks of the reader at where the transaction is.
    private static let step = 64

    private let count: Int
    private let restore: @Sendable (Int) throws(EngineError) -> Int
    /// The change that the transaction is at.
    private let position = Atomic<Int>(0)
    private let isOver = Atomic<Bool>(false)
    private let wake = Parker()
    private let finished = Parker()

    private init(_ count: Int, _ restore: @escaping @Sendable (Int) throws(EngineError) -> Int) {
        self.count = count
        self.restore = restore
    }

    /// Begins. Nil when there is little to read, or no thread for it.
    ///
    /// - Parameters:
    ///   - options: the transaction's; a replay has none, and reads alone.
    ///   - restore: reads the leaf of one change; returns the next change of another leaf.
    static func start(
        _ count: Int,
        _ options: EngineOptions?,
        _ restore: @escaping @Sendable (Int) throws(EngineError) -> Int
    ) -> LeafReadAhead? {
        guard let options, options.readingThreads > 1, count >= changesMin else { return nil }
        let ahead = LeafReadAhead(count, restore)
        return BackgroundThread.start { ahead.run() } ? ahead : nil
    }

    private func run() {
        var next = 0
        while next < count, !isOver.load(ordering: .acquiring) {
            let here = position.load(ordering: .acquiring)
            if next >= here + Self.distance {
                wake.park()
                continue
            }
            // What the transaction has passed needs no reading.
            let change = max(next, here)
            guard change < count, let after = try? restore(change), after > change else { break }
            next = after
        }
        finished.unpark()
    }

    /// The transaction is at a change.
    func advance(from before: Int, to now: Int) {
        position.store(now, ordering: .releasing)
        if before / Self.step != now / Self.step { wake.unpark() }
    }

    /// Ends it. To be called once, in any case.
    func end() {
        isOver.store(true, ordering: .releasing)
        wake.unpark()
        finished.park()
    }
}
