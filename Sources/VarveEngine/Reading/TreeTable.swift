// FENCE: the roots of a state by tree: a sorted array, since a store has few trees and each read
// asks.
//
// Invariants
// - Ascending by tree, each tree once.
// - A tree without entries is not in the table.
// - A `RootPointer` holds nothing: it is valid while the table is held, and unchanged.

internal import VarveBase

struct TreeTable: Sendable {
    struct Element: Sendable {
        let id: TreeID
        var root: TreeRoot
    }

    private var elements: ContiguousArray<Element> = []

    /// Trees in ascending order.
    var keys: [TreeID] { elements.map(\.id) }
    /// Roots in the order of their trees.
    var values: [TreeRoot] { elements.map(\.root) }
    var isEmpty: Bool { elements.isEmpty }

    /// - Complexity: O(log trees); setting O(trees).
    subscript(id: TreeID) -> TreeRoot? {
        get {
            let place = place(of: id)
            guard place < elements.count, elements[place].id == id else { return nil }
            return elements[place].root
        }
        set {
            let place = place(of: id)
            let isThere = place < elements.count && elements[place].id == id
            if let newValue {
                if isThere {
                    elements[place].root = newValue
                } else {
                    elements.insert(Element(id: id, root: newValue), at: place)
                }
            } else if isThere {
                elements.remove(at: place)
            }
        }
    }

    /// A root without a reference.
    @inline(__always)
    func pointer(_ id: TreeID) -> RootPointer? {
        let place = place(of: id)
        guard place < elements.count, elements[place].id == id else { return nil }
        return unsafe RootPointer(id, elements[place].root)
    }

    /// Entries of a tree.
    func rows(_ id: TreeID) -> UInt64 {
        let place = place(of: id)
        guard place < elements.count, elements[place].id == id else { return 0 }
        return elements[place].root.rows
    }

    /// Index of the first tree that is not below `id`.
    @inline(__always)
    private func place(of id: TreeID) -> Int {
        var first = 0
        var length = elements.count
        while length > 0 {
            let half = length / 2
            if elements[first + half].id.rawValue < id.rawValue {
                first += half + 1
                length -= half + 1
            } else {
                length = half
            }
        }
        return first
    }
}
