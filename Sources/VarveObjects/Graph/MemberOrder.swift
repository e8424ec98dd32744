// The members of an ordered relationship while they are edited: a list in which every step is
// O(log n), also finding where a member stands.
//
// Invariants
// - Each member stands in it once.
// - A tree by place, balanced by priorities that come from the members' IDs: nothing is random.
// - It knows in how many places it goes on as the commit's list does, so that it can tell at once
//   whether it is that list again.

import VarveBase

struct MemberOrder {
    private struct Node {
        let id: ObjectID
        let priority: UInt64
        var left = MemberOrder.none
        var right = MemberOrder.none
        var parent = MemberOrder.none
        /// Nodes from here down.
        var count = 1

        init(_ id: ObjectID) {
            self.id = id
            // A bijection, so that no two are equal.
            var mixed = id.rawValue &+ 0x9E37_79B9_7F4A_7C15
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            priority = mixed ^ (mixed >> 31)
        }
    }

    private static let none = -1

    private var nodes: [Node] = []
    private var places: [ObjectID: Int] = [:]
    private var free: [Int] = []
    private var root = Self.none
    /// The commit's list.
    private let base: [ObjectID]
    private let following: [ObjectID: ObjectID]
    /// Neighbours here that are neighbours there; each end counts as one.
    private var sameNeighbours = 0

    /// The list of some members, over that of a commit. - Complexity: O(n).
    init(_ ids: [ObjectID], over base: [ObjectID]) {
        self.base = base
        following = Dictionary(zip(base, base.dropFirst())) { first, _ in first }
        nodes.reserveCapacity(ids.count)
        places.reserveCapacity(ids.count)
        var spine: [Int] = []
        for id in ids where places[id] == nil {
            let node = nodes.count
            nodes.append(Node(id))
            places[id] = node
            var last = Self.none
            while let top = spine.last, nodes[top].priority < nodes[node].priority {
                spine.removeLast()
                update(top)
                last = top
            }
            nodes[node].left = last
            if let top = spine.last { nodes[top].right = node }
            spine.append(node)
        }
        root = spine.first ?? Self.none
        while let top = spine.popLast() { update(top) }
        var previous: ObjectID?
        for id in self.ids {
            if areNeighbours(previous, id) { sameNeighbours += 1 }
            previous = id
        }
        if areNeighbours(previous, nil) { sameNeighbours += 1 }
    }

    /// Number of members. - Complexity: O(1).
    var count: Int { size(root) }

    /// Whether it is the commit's list. - Complexity: O(1).
    var isBase: Bool { count == base.count && sameNeighbours == count + 1 }

    /// The members in their order. - Complexity: O(n).
    var ids: [ObjectID] {
        var result: [ObjectID] = []
        result.reserveCapacity(count)
        var open: [Int] = []
        var node = root
        while node != Self.none || !open.isEmpty {
            while node != Self.none {
                open.append(node)
                node = nodes[node].left
            }
            guard let top = open.popLast() else { break }
            result.append(nodes[top].id)
            node = nodes[top].right
        }
        return result
    }

    /// Members between a member and the root, at most: what a step costs. - Complexity: O(n).
    var depth: Int {
        var deepest = 0
        for var node in places.values {
            var depth = 1
            while nodes[node].parent != Self.none {
                node = nodes[node].parent
                depth += 1
            }
            deepest = max(deepest, depth)
        }
        return deepest
    }

    func contains(_ id: ObjectID) -> Bool { places[id] != nil }

    /// Where a member stands. - Complexity: O(log n).
    func index(of id: ObjectID) -> Int? {
        guard var node = places[id] else { return nil }
        var index = size(nodes[node].left)
        while nodes[node].parent != Self.none {
            let parent = nodes[node].parent
            if nodes[parent].right == node { index += size(nodes[parent].left) + 1 }
            node = parent
        }
        return index
    }

    /// The member at a place; nil outside. - Complexity: O(log n).
    subscript(index: Int) -> ObjectID? {
        guard index >= 0, index < count else { return nil }
        var (node, left) = (root, index)
        while true {
            let before = size(nodes[node].left)
            if left == before { return nodes[node].id }
            if left < before {
                node = nodes[node].left
            } else {
                left -= before + 1
                node = nodes[node].right
            }
        }
    }

    /// Puts a new member at a place from 0 to `count`. - Complexity: O(log n).
    mutating func insert(_ id: ObjectID, at index: Int) {
        precondition(places[id] == nil && index >= 0 && index <= count, "a member stands once")
        let (before, behind) = (self[index - 1], self[index])
        if areNeighbours(before, behind) { sameNeighbours -= 1 }
        if areNeighbours(before, id) { sameNeighbours += 1 }
        if areNeighbours(id, behind) { sameNeighbours += 1 }
        let node: Int
        if let place = free.popLast() {
            node = place
            nodes[place] = Node(id)
        } else {
            node = nodes.count
            nodes.append(Node(id))
        }
        places[id] = node
        let (left, right) = split(root, index)
        setRoot(merge(merge(left, node), right))
    }

    /// Takes a member out; nothing happens when it is none. - Complexity: O(log n).
    mutating func remove(_ id: ObjectID) {
        guard let index = index(of: id), let node = places.removeValue(forKey: id) else { return }
        let (before, behind) = (self[index - 1], self[index + 1])
        if areNeighbours(before, id) { sameNeighbours -= 1 }
        if areNeighbours(id, behind) { sameNeighbours -= 1 }
        if areNeighbours(before, behind) { sameNeighbours += 1 }
        let (left, rest) = split(root, index)
        let (_, right) = split(rest, 1)
        setRoot(merge(left, right))
        free.append(node)
    }

    // MARK: The tree

    /// Whether two members (nil: an end) stand side by side in the commit's list.
    private func areNeighbours(_ first: ObjectID?, _ second: ObjectID?) -> Bool {
        guard let first else { return base.first == second }
        guard let second else { return base.last == first }
        return following[first] == second
    }

    private func size(_ node: Int) -> Int { node == Self.none ? 0 : nodes[node].count }

    private mutating func update(_ node: Int) {
        let (left, right) = (nodes[node].left, nodes[node].right)
        nodes[node].count = size(left) + size(right) + 1
        if left != Self.none { nodes[left].parent = node }
        if right != Self.none { nodes[right].parent = node }
    }

    private mutating func setRoot(_ node: Int) {
        root = node
        if node != Self.none { nodes[node].parent = Self.none }
    }

    /// The first `count` nodes of a tree, and the others. Depth: that of the tree, O(log n).
    private mutating func split(_ node: Int, _ count: Int) -> (left: Int, right: Int) {
        if node == Self.none { return (Self.none, Self.none) }
        let before = size(nodes[node].left)
        if count <= before {
            let (left, right) = split(nodes[node].left, count)
            nodes[node].left = right
            update(node)
            return (left, node)
        }
        let (left, right) = split(nodes[node].right, count - before - 1)
        nodes[node].right = left
        update(node)
        return (node, right)
    }

    private mutating func merge(_ left: Int, _ right: Int) -> Int {
        if left == Self.none { return right }
        if right == Self.none { return left }
        if nodes[left].priority > nodes[right].priority {
            nodes[left].right = merge(nodes[left].right, right)
            update(left)
            return left
        }
        nodes[right].left = merge(left, nodes[right].left)
        update(right)
        return right
    }
}
