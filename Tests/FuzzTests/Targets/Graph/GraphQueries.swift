// Requests of a context with edits: each page, count and sum is that of the whole list.

import VarveObjects
import VarveTesting

extension GraphWorld {
    private struct Question {
        let text: String
        let request: FetchDescriptor<Alpha>
        let holds: (Int, ModelState) -> Bool
    }

    func query(_ editor: GraphEditor, _ random: inout SeededRandom) throws {
        editor.process()
        let state = editor.shown
        var question = question(state, &random)
        var expected = ordered(state.living("A")).filter { question.holds($0, state) }
        func number(_ id: Int) -> Int { state.objects[id]?.number ?? 0 }
        var request = question.request
        switch random.next() % 4 {
        case 0:
            request = request.sorted { [$0.number.ascending] }
            expected = stable(expected) { number($0) < number($1) }
        case 1:
            request = request.sorted { [$0.number.descending, $0.name.ascending] }
            expected = stable(expected) { left, right in
                if number(left) != number(right) { return number(left) > number(right) }
                let names = [left, right].map { state.objects[$0]?.name ?? [] }
                return names[0].lexicographicallyPrecedes(names[1])
            }
        case 2 where relations.contains { $0.name == "parent" }:
            func key(_ id: Int) -> Int { state.one(id, "parent").map(number) ?? -1 }
            request = request.sorted { [$0.parent.number.ascending] }
            expected = stable(expected) { key($0) < key($1) }
        default: break
        }
        question = Question(text: question.text, request: request, holds: question.holds)
        note("\(index(editor)): fetch where \(question.text)")
        let who = "context \(index(editor)), where \(question.text)"
        let context = editor.context
        try expect(found(context, request), expected, who)
        try expect(context.count(request), expected.count, "\(who): count")
        let sum = expected.reduce(0) { $0 + number($1) }
        try expect(context.sum(request) { $0.number }, sum, "\(who): sum")
        let numbers = expected.map(number)
        try expect(context.minimum(request) { $0.number }, numbers.min(), "\(who): minimum")
        try expect(context.maximum(request) { $0.number }, numbers.max(), "\(who): maximum")
        let offset = Int(random.next() % 5)
        let limit = Int(random.next() % 5)
        try expect(
            found(context, request.limit(limit).offset(offset)),
            Array(expected.dropFirst(offset).prefix(limit)),
            "\(who), offset \(offset), limit \(limit)"
        )
        try pages(context, request, expected, who, &random)
    }

    /// Pages between cursors.
    private func pages(
        _ context: ManagedObjectContext,
        _ request: FetchDescriptor<Alpha>,
        _ expected: [Int],
        _ who: String,
        _ random: inout SeededRandom
    ) throws {
        guard expected.count > 1 else { return }
        let start = Int(random.next() % UInt64(expected.count))
        let end = Int(random.next() % UInt64(expected.count))
        func cursor(_ place: Int) throws -> FetchCursor? {
            try context.fetchPage(request.offset(place).limit(1)).first
        }
        let after = random.next() % 2 == 0 ? try cursor(start) : nil
        let before = random.next() % 2 == 0 ? try cursor(end) : nil
        let low = after == nil ? 0 : start + 1
        let high = before == nil ? expected.count : end
        var slice = low < high ? Array(expected[low..<high]) : []
        let limit = random.next() % 3 == 0 ? nil : Int(random.next() % 4)
        let offset = random.next() % 2 == 0 ? 0 : Int(random.next() % 3)
        var page = request.after(after).before(before).limit(limit).offset(offset)
        // Before a cursor the page ends at it.
        if before != nil, after == nil {
            slice = Array(slice.dropLast(offset))
            if let limit { slice = Array(slice.suffix(limit)) }
        } else {
            slice = Array(slice.dropFirst(offset))
            if let limit { slice = Array(slice.prefix(limit)) }
        }
        try expect(
            found(context, page),
            slice,
            "\(who), after \(after == nil ? -1 : start), before \(before == nil ? -1 : end), "
                + "offset \(offset), limit \(limit ?? -1)"
        )
        page = page.returningFaults(false)
        try expect(
            context.fetch(page).map { number($0.objectID) },
            slice,
            "\(who): objects of a page"
        )
        try expect(context.count(page), slice.count, "\(who): count of a page")
    }

    private func found(
        _ context: ManagedObjectContext,
        _ request: FetchDescriptor<Alpha>
    ) throws -> [Int] {
        try context.fetchIDs(request).map { number($0.objectID) }
    }

    /// Equal ones stay in the order of their IDs.
    private func stable(_ list: [Int], _ precedes: (Int, Int) -> Bool) -> [Int] {
        list.enumerated().sorted {
            if precedes($0.element, $1.element) { return true }
            if precedes($1.element, $0.element) { return false }
            return $0.offset < $1.offset
        }.map(\.element)
    }

    private func question(_ state: ModelState, _ random: inout SeededRandom) -> Question {
        let bound = Int(random.next() % 8)
        func number(_ id: Int) -> Int { state.objects[id]?.number ?? 0 }
        func uses(_ name: String) -> Bool { relations.contains { $0.name == name } }
        switch random.next() % 10 {
        case 0:
            return Question(text: "everything", request: Alpha.all) { _, _ in true }
        case 1 where uses("parent"):
            return Question(
                text: "parent.number > \(bound)",
                request: Alpha.where { $0.parent.number > bound }
            ) { id, state in state.one(id, "parent").map { number($0) > bound } ?? false }
        case 2 where uses("children"):
            return Question(
                text: "any child's number < \(bound)",
                request: Alpha.where { $0.children.any { $0.number < bound } }
            ) { id, state in state.list(id, "children").contains { number($0) < bound } }
        case 3 where uses("playlist"):
            return Question(
                text: "playlist.count >= \(bound % 3)",
                request: Alpha.where { $0.playlist.count >= bound % 3 }
            ) { id, state in state.list(id, "playlist").count >= bound % 3 }
        case 4 where uses("tags"):
            return Question(
                text: "all tags' numbers < \(bound)",
                request: Alpha.where { $0.tags.all { $0.number < bound } }
            ) { id, state in state.list(id, "tags").allSatisfy { number($0) < bound } }
        case 5 where uses("book"):
            return Question(
                text: "book.number == \(bound)",
                request: Alpha.where { $0.book.number == bound }
            ) { id, state in state.one(id, "book").map { number($0) == bound } ?? false }
        case 6 where uses("loose"):
            return Question(
                text: "loose.loose.number <= \(bound)",
                request: Alpha.where { $0.loose.loose.number <= bound }
            ) { id, state in
                state.one(id, "loose").flatMap { state.one($0, "loose") }
                    .map { number($0) <= bound } ?? false
            }
        case 7:
            return Question(
                text: "number == \(bound)",
                request: Alpha.where { $0.number == bound }
            ) { id, _ in number(id) == bound }
        default:
            return Question(
                text: "number < \(bound)",
                request: Alpha.where { $0.number < bound }
            ) { id, _ in number(id) < bound }
        }
    }
}
