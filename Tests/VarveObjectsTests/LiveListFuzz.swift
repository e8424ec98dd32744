// Random edits beside live lists of every kind: the list before, the change it told, and a fresh
// fetch must agree after each step.

import Foundation
import VarveTesting

@testable import VarveObjects

/// A live list, and a copy of it that only its changes keep up to date.
final class Mirror {
    let name: String
    let list: LiveResults<Item>
    private let context: ManagedObjectContext
    private let sections: (() -> [(key: String, count: Int)])?
    private var ids: [Item.ID]
    private var counts: [Int]
    private var observation: LiveObservation?
    /// Why the copy and a change do not fit together.
    private var mistake: String?
    private(set) var changes = 0

    init(
        _ name: String,
        _ list: LiveResults<Item>,
        sections: (() -> [(key: String, count: Int)])? = nil
    ) {
        (self.name, self.list, self.sections) = (name, list, sections)
        context = list.context
        ids = list.results.ids
        counts = sections?().map(\.count) ?? []
        observation = list.onChange { [unowned self] in take($0) }
    }

    private func take(_ change: LiveChange<Item>) {
        changes += 1
        if change.isReplaced {
            if change.count > 0 { mistake = "a replaced list tells more" }
            ids = list.results.ids
        } else {
            if change.count == 0 { mistake = "a change that tells nothing" }
            apply(change)
        }
        counts = sections?().map(\.count) ?? []
    }

    private func apply(_ change: LiveChange<Item>) {
        var named: Set<Item.ID> = []
        for id in change.deleted.map(\.id) + change.inserted.map(\.id) + change.moved.map(\.id)
            + change.updated.map(\.id)
        where !named.insert(id).inserted { mistake = "\(id) is named twice" }
        for item in change.deleted { expect(item.id, at: item.place, "deleted") }
        for move in change.moved { expect(move.id, at: move.from, "moved from") }
        let out = Set(change.deleted.map(\.place.offset) + change.moved.map(\.from.offset))
        for offset in out.sorted(by: >) where offset < ids.count { ids.remove(at: offset) }
        let all = change.inserted.map { ($0.id, $0.place) } + change.moved.map { ($0.id, $0.to) }
        for (id, place) in all.sorted(by: { $0.1.offset < $1.1.offset }) {
            if place.offset <= ids.count {
                ids.insert(id, at: place.offset)
            } else {
                mistake = "\(id) comes in at \(place.offset) of \(ids.count)"
            }
        }
        applySections(change)
        for item in change.updated { expect(item.id, at: item.place, "updated") }
        for (id, place) in all { expect(id, at: place, "put in") }
    }

    /// The sections before and the change make the sections now.
    private func applySections(_ change: LiveChange<Item>) {
        guard let sections else { return }
        for place in change.deleted.map(\.place) + change.moved.map(\.from) {
            counts[place.section] -= 1
        }
        for section in change.deletedSections.reversed() where counts.remove(at: section) != 0 {
            mistake = "section \(section) ended, and its objects are not told of"
        }
        for section in change.insertedSections { counts.insert(0, at: section) }
        for place in change.inserted.map(\.place) + change.moved.map(\.to) {
            counts[place.section] += 1
        }
        let now = sections().map(\.count)
        if counts != now { mistake = "its changes make sections of \(counts), not \(now)" }
        counts = now
    }

    private func expect(_ id: Item.ID, at place: LiveChange<Item>.Place, _ what: String) {
        if place.offset >= ids.count || ids[place.offset] != id {
            mistake = "\(what): \(id) is not at \(place.offset)"
        }
        if sections == nil {
            if place.section != 0 || place.item != place.offset { mistake = "a section of none" }
            return
        }
        guard place.section < counts.count, place.item < counts[place.section] else {
            mistake = "\(what): no item \(place.item) in section \(place.section) of \(counts)"
            return
        }
        if counts[..<place.section].reduce(place.item, +) != place.offset {
            mistake = "\(what): item and offset differ"
        }
    }

    /// What is wrong; nil: nothing. The context has just processed its edits.
    func fault() throws -> String? {
        if let mistake { return "\(name): \(mistake)" }
        if let failure = list.failure { return "\(name): \(failure)" }
        let fresh = try expected()
        if list.results.ids != fresh { return "\(name): shows \(list.results.ids), not \(fresh)" }
        if ids != fresh { return "\(name): its changes make \(ids), not \(fresh)" }
        if list.count != fresh.count { return "\(name): counts \(list.count)" }
        guard let sections else { return nil }
        let told = sections()
        if told.reduce(0, { $0 + $1.count }) != fresh.count { return "\(name): sections \(told)" }
        return told.contains { $0.count == 0 } ? "\(name): an empty section" : nil
    }

    var expected: () throws -> [Item.ID] = { [] }
}

/// One run.
final class LiveListFuzz {
    let container: PersistentContainer
    let context: ManagedObjectContext
    let other: ManagedObjectContext
    var mirrors: [Mirror] = []
    var script: [String] = []
    private var random: SeededRandom

    init(seed: UInt64, _ options: ContainerOptions = ContainerOptions()) throws {
        random = SeededRandom(seed: seed)
        container = try memory(options)
        context = container.newContext()
        other = container.newContext()
        for number in 0..<Int(random.next() % 30) { make(number, in: other) }
        try other.save()
        context.advance()
        try addMirrors()
    }

    private func pick(_ count: Int) -> Int { Int(random.next() % UInt64(max(1, count))) }

    @discardableResult private func make(_ number: Int, in context: ManagedObjectContext) -> Item {
        let item = Item(in: context)
        item.number = pick(12)
        item.title = ["a", "b", "e\u{301}", "\u{e9}", "ab"][pick(5)]
        item.priority = [.low, .normal, .high][pick(3)]
        item.timestamp = Date(timeIntervalSinceReferenceDate: Double(pick(6)))
        return item
    }

    private var requests: [(name: String, request: FetchDescriptor<Item>)] {
        let bound = pick(12)
        return [
            ("all", Item.all),
            ("by number", Item.all.sorted { [$0.number.ascending] }),
            ("by number down", Item.all.sorted { [$0.number.descending] }),
            (
                "high by time",
                Item.where { $0.priority == .high }.sorted { [$0.timestamp.ascending] }
            ),
            (
                "high by time down",
                Item.where { $0.priority == .high }.sorted { [$0.timestamp.descending] }
            ),
            ("below by number", Item.where { $0.number < bound }.sorted { [$0.number.ascending] }),
            ("by title", Item.all.sorted { [$0.title.ascending, $0.number.descending] }),
            (
                "a by number",
                Item.where { $0.title.hasPrefix("a") }.sorted { [$0.number.ascending] }
            ),
            ("in folder", Item.where { $0.folder.name == "x" }.sorted { [$0.title.ascending] }),
            ("by folder", Item.all.sorted { [$0.folder.name.descending, $0.number.ascending] }),
            ("tagged", Item.where { $0.tags.any { $0.name == "t" } }),
            ("many tags", Item.where { $0.tags.count > 1 }.sorted { [$0.number.ascending] }),
            (
                "in a range",
                Item.where { $0.number.isIn(bound..<bound + 4) }.sorted { [$0.number.ascending] }
            ),
            (
                "folded",
                Item.where {
                    $0.title.hasPrefix("E", ignoringCase: true, ignoringDiacritics: true)
                }
            ),
            ("not tagged", Item.where { $0.tags.none { $0.name == "t" } }),
            (
                "by weekday",
                Item.where { $0.timestamp.year(in: .gmt) == 2001 && $0.number < bound }
                    .sorted { [$0.timestamp.weekday(in: .gmt).descending] }
            ),
            (
                "in folders of a request",
                Item.where { $0.folder.isIn(Folder.where { $0.name == "x" }) }
                    .sorted { [$0.number.ascending] }
            ),
            (
                "not of the lowest",
                Item.where { _ in
                    !.isIn(Item.all.sorted { [$0.number.ascending] }.limit(bound))
                }
            ),
            ("one", Item.where { $0.number == bound }),
            ("either", Item.where { $0.number == bound || $0.priority == .low }),
        ]
    }

    /// A request with limit, offset, without edits.
    private func windowed(_ request: FetchDescriptor<Item>) -> FetchDescriptor<Item> {
        var request = request
        if pick(3) == 0 { request = request.limit(pick(8)) }
        if pick(4) == 0 { request = request.offset(pick(5)) }
        if pick(5) == 0 { request = request.includingPendingChanges(false) }
        return request
    }

    private func addMirrors() throws {
        for (name, base) in requests where pick(2) == 0 {
            let request = windowed(base)
            let list = try context.live(request)
            let mirror = Mirror("\(name) \(request.limit ?? -1)+\(request.offset)", list)
            mirror.expected = { [context] in try context.fetchIDs(list.descriptor) }
            mirrors.append(mirror)
        }
        try addSections()
    }

    private func addSections() throws {
        let (name, base) = requests[pick(requests.count)]
        let request = windowed(base)
        func add<Value>(
            _ what: String,
            _ sectioned: SectionedResults<Item, Value>,
            _ term: VarveObjects.SortTerm<Item>
        ) {
            let mirror = Mirror("\(name) by \(what)", sectioned.list) {
                sectioned.sections.map { ("\($0.id)", $0.count) }
            }
            mirror.expected = { [context] in
                let shown = sectioned.list.descriptor
                return try context.fetchIDs(shown.sorted { _ in [term] + shown.sortTerms })
            }
            mirrors.append(mirror)
        }
        switch pick(3) {
        case 0:
            add(
                "priority",
                try context.live(request, sectionedBy: { $0.priority }),
                Item.columns.priority.ascending
            )
        case 1:
            let list = try context.live(
                request,
                sectionedBy: { $0.number },
                isDescending: true
            )
            add("number", list, Item.columns.number.descending)
        default:
            add(
                "folder",
                try context.live(request, sectionedBy: { $0.folder.name }),
                Item.columns.folder.name.ascending
            )
        }
    }

    /// Random steps; throws what went wrong.
    func run(steps: Int) throws {
        do {
            for _ in 0..<steps {
                try step()
                if pick(3) > 0 { try check() }
            }
            try context.save(mergePolicy: .objectWinsByProperty)
            try check()
        } catch {
            let lists = mirrors.map(\.name).joined(separator: ", ")
            throw Finding(message: "\(error)\n  \(lists)\n  " + script.joined(separator: "\n  "))
        }
    }

    private func check() throws {
        context.processPendingChanges()
        for mirror in mirrors {
            if let fault = try mirror.fault() { throw Finding(message: fault) }
        }
    }

    struct Finding: Error, CustomStringConvertible {
        let message: String
        var description: String { message }
    }

    private func step() throws {
        switch pick(16) {
        case 0: try saveBoth()
        case 1: try save(context, "here")
        case 2, 3: try save(other, "elsewhere")
        case 4:
            note("advance")
            context.advance()
        case 5:
            note("roll back")
            context.rollback()
        case 6:
            if pick(4) == 0 {
                note("reset")
                context.reset()
                _ = try context.count(Item.all)
            }
        case 7: try batch()
        case 8: try change(mirrors.isEmpty ? nil : mirrors[pick(mirrors.count)])
        default: try edit(pick(2) == 0 ? context : other)
        }
    }

    private func saveBoth() throws {
        try save(other, "elsewhere")
        try save(context, "here")
    }

    private func save(_ saving: ManagedObjectContext, _ who: String) throws {
        note("save \(who)")
        do {
            try saving.save(mergePolicy: .objectWinsByProperty)
        } catch let error as StoreError {
            note("  \(error.code)")
            saving.rollback()
        }
    }

    private func batch() throws {
        switch pick(3) {
        case 0:
            note("insert a batch")
            try other.batchInsert(Item.self, Array(0..<pick(6))) { row, number in
                row.number = number
                row.title = "a"
            }
        case 1:
            note("update a batch")
            let bound = pick(12)
            try other.batchUpdate(Item.where { $0.number < bound }) { row in
                row.priority = .high
                row.number = bound
            }
        default:
            note("delete a batch")
            let bound = pick(12)
            try other.batchDelete(Item.where { $0.number == bound })
        }
    }

    /// Another request for a list.
    private func change(_ mirror: Mirror?) throws {
        guard let mirror, pick(3) == 0 else { return }
        let (name, request) = requests[pick(requests.count)]
        note("\(mirror.name) asks for \(name)")
        mirror.list.descriptor = windowed(request)
    }

    private func edit(_ editing: ManagedObjectContext) throws {
        let who = editing === context ? "here" : "elsewhere"
        let items = try editing.fetch(Item.all)
        guard !items.isEmpty, pick(4) > 0 else {
            note("insert \(who)")
            make(0, in: editing)
            return
        }
        let item = items[pick(items.count)]
        note("edit \(item.id) \(who)")
        switch pick(8) {
        case 0: editing.delete(item)
        case 1: item.number = pick(12)
        case 2: item.title = ["a", "e\u{301}", "\u{e9}", "z"][pick(4)]
        case 3: item.priority = [.low, .normal, .high][pick(3)]
        case 4: item.folder = try folder(editing)
        case 5: item.folder?.name = ["x", "y"][pick(2)]
        case 6: item.tags.append(try tag(editing))
        default:
            if let first = item.tags.first {
                if pick(2) == 0 { item.tags.remove(first) } else { editing.delete(first) }
            }
        }
    }

    private func folder(_ editing: ManagedObjectContext) throws -> Folder? {
        if pick(4) == 0 { return nil }
        let known = try editing.fetch(Folder.all)
        if known.count > 2 { return known[pick(known.count)] }
        let made = Folder(in: editing)
        made.name = ["x", "y"][pick(2)]
        return made
    }

    private func tag(_ editing: ManagedObjectContext) throws -> Tag {
        let known = try editing.fetch(Tag.all)
        if known.count > 2 { return known[pick(known.count)] }
        let made = Tag(in: editing)
        made.name = ["t", "u"][pick(2)]
        return made
    }

    private func note(_ line: String) { script.append(line) }
}
