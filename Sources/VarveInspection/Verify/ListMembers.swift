// Members of one list that come in any order: which of them come twice, in bounded memory.
//
// Invariants
// - At most 2 x `max` members are held: one pass keeps the `max` lowest above those of the pass
//   before, so each pass is over another part of the IDs.

import VarveBase

/// Finds repeated members. Add all, take what is repeated, and add all again while
/// `beginsNextPass` says so.
struct ListMembers {
    private struct Member {
        let id: ObjectID
        let link: ObjectID
    }

    private let max: Int
    private var members: [Member] = []
    /// Members up to this one were dealt with by earlier passes.
    private var done: ObjectID?
    private var leftOut = false

    init(max: Int) { self.max = Swift.max(2, max) }

    /// - Complexity: O(log `max`) amortised.
    mutating func add(_ id: ObjectID, _ link: ObjectID) {
        if let done, id <= done { return }
        members.append(Member(id: id, link: link))
        if members.count == 2 * max { cut() }
    }

    private mutating func sort() {
        members.sort { ($0.id, $0.link) < ($1.id, $1.link) }
    }

    private mutating func cut() {
        sort()
        if members.count <= max { return }
        members.removeLast(members.count - max)
        leftOut = true
    }

    /// The repeated members of this pass, each with the link row that repeats it, ascending.
    mutating func takeRepeated() -> [(member: ObjectID, link: ObjectID)] {
        cut()
        sort()
        var repeated: [(member: ObjectID, link: ObjectID)] = []
        for (before, member) in zip(members, members.dropFirst()) where before.id == member.id {
            repeated.append((member.id, member.link))
        }
        // The last one may be repeated by what was left out: it is looked at again, unless it is
        // all there is.
        if leftOut, let last = members.last {
            let first = members.first?.id
            if first == last.id {
                done = last.id
            } else {
                repeated.removeAll { $0.member == last.id }
                done = ObjectID(last.id.rawValue - 1)
            }
        }
        return repeated
    }

    /// Whether members were left out. They are to be added again then.
    mutating func beginsNextPass() -> Bool {
        members.removeAll(keepingCapacity: true)
        defer { leftOut = false }
        return leftOut
    }

    /// Ready for another list.
    mutating func clear() {
        members.removeAll(keepingCapacity: true)
        done = nil
        leftOut = false
    }
}
