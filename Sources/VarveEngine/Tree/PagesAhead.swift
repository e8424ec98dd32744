// FENCE: pages of a short list of rows, asked for together before they are read one by one.
//
// Invariants
// - It changes what is in memory only as reading the rows would, and fails as that would: errors
//   are left to whoever reads.
// - Level by level: the pages of one level are all asked for before the first of them is read.
//
// Why: the rows of a list by another column lie in a leaf each. Read one after the other, each
// waits for the disk; a disk serves many at once.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension NodeCache {
    /// Rows of a list whose pages are asked for together, at most: a few screens. What it would
    /// bring to longer lists was not measured.
    static let foreseenMax = 512

    /// Bytes of a page that are asked for: all of nearly every page.
    private static let askedBytesMax = 64 << 10

    /// Rows whose pages are looked for, to know whether those of others may be missing.
    private static let samples = 4

    /// Asks the system for the pages of some rows, unless a look at few of them finds those in
    /// memory. The tree is published.
    ///
    /// - Parameter objects: ascending.
    /// - Complexity: O(depth) where the pages are in memory; else O(objects x depth), and the inner
    ///   pages are read. Nothing where the cache was made small: it would read them twice.
    func foresee(_ root: RootPointer, _ objects: [ObjectID]) throws(EngineError) {
        if unsafe root.isEmpty || root.level == 0 { return }
        if objects.count < 2 || budget.isScarce { return }
        let step = (objects.count + Self.samples - 1) / Self.samples
        let isThere = try operation { () throws(EngineError) in
            // Where the leaf that was looked at last ends.
            var end: UInt64 = 0
            for index in stride(from: 0, to: objects.count, by: step)
            where objects[index].rawValue >= end {
                if unsafe !isInMemory(root, objects[index], &end) { return false }
            }
            return true
        }
        if !isThere { unsafe try askForPages(root, objects) }
    }

    /// Whether the pages on the way to an object are in memory. Nothing counts as visited by it.
    ///
    /// - Parameter end: becomes the first object that may lie behind its leaf.
    private func isInMemory(
        _ root: RootPointer,
        _ object: ObjectID,
        _ end: inout UInt64
    ) -> Bool {
        end = .max
        var level = unsafe root.level
        var pointer = unsafe root.child
        while true {
            guard let node = unsafe pointer.node ?? peek(pointer.offset) else { return false }
            let view = unsafe node._withUnsafeGuaranteedRef { unsafe $0.view }
            // A page that is another one than its parent says is told of by whoever reads it.
            guard level > 0, unsafe view.level == level else { return true }
            let index = unsafe view.childIndex(object: object)
            if unsafe index + 1 < view.count { end = unsafe min(end, view.head(index + 1)) }
            unsafe pointer = view.child(index).pointee
            level -= 1
        }
    }

    private func askForPages(_ root: RootPointer, _ objects: [ObjectID]) throws(EngineError) {
        let tree = unsafe root.id
        var level = unsafe root.level
        var nodes = unsafe [(root.child, objects.indices)]
        while level > 0 {
            var children: [(NodePointer, Range<Int>)] = unsafe []
            for place in unsafe nodes.indices {
                let (pointer, range) = unsafe nodes[place]
                try operation { () throws(EngineError) in
                    let node = unsafe try node(pointer, tree: tree, level: level)
                    let view = unsafe node._withUnsafeGuaranteedRef { unsafe $0.view }
                    var start = range.lowerBound
                    while start < range.upperBound {
                        let index = unsafe view.childIndex(object: objects[start])
                        var end = start + 1
                        while end < range.upperBound,
                            unsafe view.childIndex(object: objects[end]) == index
                        {
                            end += 1
                        }
                        unsafe children.append((view.child(index).pointee, start..<end))
                        start = end
                    }
                }
            }
            unsafe askFor(children.map(\.0))
            unsafe nodes = children
            level -= 1
        }
    }

    /// Asks for the pages that are not in memory; one alone is read as soon as it is asked for.
    private func askFor(_ children: [NodePointer]) {
        var missing: [PageAddress] = []
        let ticket = epochs.enter()
        for place in unsafe children.indices {
            let pointer = unsafe children[place]
            if unsafe pointer.node == nil, unsafe peek(pointer.offset) == nil,
                let address = unsafe pointer.address
            {
                missing.append(address)
            }
        }
        epochs.leave(ticket)
        if missing.count < 2 { return }
        for address in missing {
            // A page says how long another one is: a forged one has the system read no more.
            let count = FrameHeader.length + Int(address.storedLength)
            log.file.adviseWillNeed(at: address.offset, count: min(count, Self.askedBytesMax))
        }
    }
}
