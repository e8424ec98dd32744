// Sets of objects: what a commit changed, whether that is one object or ten million.
//
// Invariants
// - Runs ascend, are not empty and do not touch each other: a set has one form only.
// - `count` is the sum of the runs' lengths.

/// Objects in ascending order, held as runs of consecutive IDs: an import of any size is one run.
///
/// 16 bytes a run, and a run an object at worst.
public struct ObjectIDSet: Hashable, Sendable {
    /// Consecutive IDs.
    public struct Run: Hashable, Sendable {
        /// The first ID.
        public var first: UInt64
        /// The last ID: not the one after it, which need not exist.
        public var last: UInt64
    }

    /// The runs, ascending.
    public private(set) var runs: [Run] = []
    /// Number of objects. - Complexity: O(1).
    public private(set) var count = 0

    /// The empty set.
    public init() {}

    /// The set of some objects, in any order.
    public init(_ objects: some Sequence<ObjectID>) {
        var collector = ObjectIDCollector()
        for object in objects { collector.add(object) }
        self = collector.finish()
    }

    /// Whether it has no object.
    public var isEmpty: Bool { count == 0 }

    /// Whether an object is in it. - Complexity: O(log runs).
    public func contains(_ object: ObjectID) -> Bool {
        var (low, high) = (0, runs.count)
        while low < high {
            let middle = (low + high) / 2
            if runs[middle].last < object.rawValue { low = middle + 1 } else { high = middle }
        }
        return low < runs.count && runs[low].first <= object.rawValue
    }

    /// Adds consecutive IDs after all that it has.
    public mutating func append(_ first: UInt64, through last: UInt64) {
        precondition(first <= last && runs.last.map { $0.last < first } ?? true)
        extend(first, last)
    }

    /// Adds consecutive IDs that do not begin before the last run.
    private mutating func extend(_ first: UInt64, _ last: UInt64) {
        guard let end = runs.last?.last, first <= end || first - 1 == end else {
            runs.append(Run(first: first, last: last))
            count += Int(last - first) + 1
            return
        }
        if last <= end { return }
        runs[runs.count - 1].last = last
        count += Int(last - end)
    }

    /// What is in either. - Complexity: O(runs of both), as for the next two.
    public func union(_ other: ObjectIDSet) -> ObjectIDSet {
        if isEmpty || other.isEmpty { return isEmpty ? other : self }
        var result = ObjectIDSet()
        result.runs.reserveCapacity(Swift.max(runs.count, other.runs.count))
        var (mine, theirs) = (runs[...], other.runs[...])
        while let run = mine.first ?? theirs.first {
            if let their = theirs.first, their.first < run.first || mine.isEmpty {
                result.extend(their.first, their.last)
                theirs.removeFirst()
            } else {
                result.extend(run.first, run.last)
                mine.removeFirst()
            }
        }
        return result
    }

    /// What is in both.
    public func intersection(_ other: ObjectIDSet) -> ObjectIDSet {
        var result = ObjectIDSet()
        var (mine, theirs) = (runs[...], other.runs[...])
        while let run = mine.first, let their = theirs.first {
            let (first, last) = (Swift.max(run.first, their.first), Swift.min(run.last, their.last))
            if first <= last { result.append(first, through: last) }
            if run.last == last { mine.removeFirst() } else { theirs.removeFirst() }
        }
        return result
    }

    /// What is in this one only.
    public func subtracting(_ other: ObjectIDSet) -> ObjectIDSet {
        if isEmpty || other.isEmpty { return self }
        var result = ObjectIDSet()
        var theirs = other.runs[...]
        for run in runs {
            var rest: Run? = run
            while let left = rest {
                while let their = theirs.first, their.last < left.first { theirs.removeFirst() }
                guard let their = theirs.first, their.first <= left.last else {
                    result.append(left.first, through: left.last)
                    break
                }
                if left.first < their.first { result.append(left.first, through: their.first - 1) }
                rest = their.last < left.last ? Run(first: their.last + 1, last: left.last) : nil
            }
        }
        return result
    }
}

extension ObjectIDSet: Sequence {
    /// The objects one by one.
    public struct Iterator: IteratorProtocol {
        private let runs: [Run]
        private var index = 0
        private var step: UInt64 = 0

        init(_ runs: [Run]) { self.runs = runs }

        /// The next object.
        public mutating func next() -> ObjectID? {
            guard index < runs.count else { return nil }
            let run = runs[index]
            let id = run.first + step
            if id == run.last { (index, step) = (index + 1, 0) } else { step += 1 }
            return ObjectID(id)
        }
    }

    /// Ascending. - Complexity: O(1).
    public func makeIterator() -> Iterator { Iterator(runs) }

    /// What `Sequence` reserves for.
    public var underestimatedCount: Int { count }
}

/// Gathers objects in any order, each as often as it comes.
///
/// Ascending ones become runs at once. Others wait in a list of at least 4,096, at most a half of
/// the runs, and are merged together: O(log n) per object on average.
public struct ObjectIDCollector: Sendable {
    private var gathered = ObjectIDSet()
    private var waiting: [UInt64] = []

    /// Nothing yet.
    public init() {}

    /// Whether nothing was added.
    public var isEmpty: Bool { gathered.isEmpty && waiting.isEmpty }

    /// Adds an object.
    public mutating func add(_ object: ObjectID) {
        let id = object.rawValue
        guard let run = gathered.runs.last, id <= run.last else {
            return gathered.append(id, through: id)
        }
        if id >= run.first { return }
        waiting.append(id)
        if waiting.count >= max(4096, gathered.runs.count / 2) { merge() }
    }

    /// All of them. The collector can go on.
    public mutating func finish() -> ObjectIDSet {
        merge()
        return gathered
    }

    private mutating func merge() {
        if waiting.isEmpty { return }
        waiting.sort()
        var sorted = ObjectIDSet()
        for id in waiting where sorted.runs.last.map({ $0.last < id }) ?? true {
            sorted.append(id, through: id)
        }
        waiting.removeAll(keepingCapacity: true)
        gathered = gathered.union(sorted)
    }
}
