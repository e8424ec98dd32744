// Live lists in a run of the object layer's fuzzer: what they show is what a fetch gives, and what
// they told makes the one list of the other.

import VarveObjects
import VarveTesting

/// A live list, and a copy that only its changes keep up to date.
final class LiveMirror {
    let list: LiveResults<Alpha>
    private(set) var ids: [Alpha.ID]
    private var observation: LiveObservation?

    init(_ list: LiveResults<Alpha>) {
        self.list = list
        ids = list.results.ids
        observation = list.onChange { [unowned self] in take($0) }
    }

    private func take(_ change: LiveChange<Alpha>) {
        if change.isReplaced {
            ids = list.results.ids
            return
        }
        let out = change.deleted.map(\.place.offset) + change.moved.map(\.from.offset)
        for offset in out.sorted(by: >) where offset < ids.count { ids.remove(at: offset) }
        let put =
            change.inserted.map { (id: $0.id, offset: $0.place.offset) }
            + change.moved.map { (id: $0.id, offset: $0.to.offset) }
        for (id, offset) in put.sorted(by: { $0.offset < $1.offset }) {
            ids.insert(id, at: min(offset, ids.count))
        }
    }
}

extension GraphWorld {
    /// Some lists for a context; which, follows from the run.
    func addLists(_ editor: GraphEditor) throws {
        var random = SeededRandom(seed: UInt64(editors.count) &+ listSeed)
        for _ in 0..<Int(random.next() % 4) {
            var (text, request) = listRequest(Int(random.next() % 8), &random)
            if random.next() % 3 == 0 { request = request.limit(Int(random.next() % 5)) }
            if random.next() % 3 == 0 { request = request.offset(Int(random.next() % 3)) }
            text += ", limit \(request.limit ?? -1), offset \(request.offset)"
            note("context \(editors.count) has a live list: \(text)")
            editor.lists.append(LiveMirror(try editor.context.live(request)))
        }
    }

    private func listRequest(
        _ kind: Int,
        _ random: inout SeededRandom
    ) -> (String, FetchDescriptor<Alpha>) {
        let bound = Int(random.next() % 8)
        func uses(_ name: String) -> Bool { relations.contains { $0.name == name } }
        switch kind {
        case 0 where uses("parent"):
            return (
                "by parent.number",
                Alpha.where { $0.parent.number > bound }.sorted { [$0.parent.number.ascending] }
            )
        case 1 where uses("children"):
            return ("any child", Alpha.where { $0.children.any { $0.number < bound } })
        case 2 where uses("playlist"):
            return ("playlist.count", Alpha.where { $0.playlist.count >= bound % 3 })
        case 3 where uses("tags"):
            return ("all tags", Alpha.where { $0.tags.all { $0.number < bound } })
        case 4 where uses("loose"):
            return ("loose.loose", Alpha.where { $0.loose.loose.number <= bound })
        case 5:
            return (
                "number < \(bound) by name",
                Alpha.where { $0.number < bound }.sorted { [$0.name.descending] }
            )
        case 6:
            return ("by number", Alpha.all.sorted { [$0.number.ascending, $0.name.descending] })
        default: return ("everything", Alpha.all)
        }
    }

    /// All lists of a context against fresh fetches.
    func compareLists(_ editor: GraphEditor) throws {
        if editor.lists.isEmpty { return }
        editor.context.processPendingChanges()
        for mirror in editor.lists {
            let who = "a live list of context \(index(editor))"
            if let failure = mirror.list.failure { throw fail("\(who): \(failure)") }
            func numbers(_ ids: [Alpha.ID]) -> [Int] { ids.map { number($0.objectID) } }
            let fresh = numbers(try editor.context.fetchIDs(mirror.list.descriptor))
            try expect(numbers(mirror.list.results.ids), fresh, who)
            try expect(numbers(mirror.ids), fresh, "\(who), as its changes say")
        }
    }
}
