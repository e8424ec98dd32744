// The plain model of a graph of objects: what edits mean, written down once more without caches,
// commits or faults. The fuzzer holds the library against it (docs/Architecture.md, "Edits").

/// A relationship as the model knows it.
struct ModelRelation {
    enum Rule { case nullify, cascade, deny, noAction }

    let name: String
    /// "A" or "B".
    let owner: Character
    let target: Character
    var isMany = false
    var isOrdered = false
    var rule = Rule.nullify
    var inverse: String?
    /// To how many objects it may lead when it is saved; nil: to any number.
    var count: (@Sendable (Int) -> Bool)?

    static let all: [ModelRelation] = [
        .init(name: "parent", owner: "A", target: "A", inverse: "children"),
        .init(
            name: "children",
            owner: "A",
            target: "A",
            isMany: true,
            rule: .cascade,
            inverse: "parent"
        ),
        .init(name: "book", owner: "A", target: "B", inverse: "chapters"),
        .init(
            name: "chapters",
            owner: "B",
            target: "A",
            isMany: true,
            isOrdered: true,
            inverse: "book"
        ),
        .init(name: "guardian", owner: "A", target: "B", inverse: "guarded"),
        .init(
            name: "guarded",
            owner: "B",
            target: "A",
            isMany: true,
            rule: .deny,
            inverse: "guardian"
        ),
        .init(name: "keeper", owner: "A", target: "B", inverse: "kept"),
        .init(
            name: "kept",
            owner: "B",
            target: "A",
            isMany: true,
            rule: .noAction,
            inverse: "keeper"
        ),
        .init(name: "next", owner: "A", target: "A", inverse: "previous"),
        .init(name: "previous", owner: "A", target: "A", inverse: "next"),
        .init(name: "part", owner: "A", target: "B", rule: .cascade, inverse: "whole"),
        .init(name: "whole", owner: "B", target: "A", inverse: "part"),
        .init(name: "loose", owner: "A", target: "A"),
        .init(name: "stale", owner: "A", target: "B", rule: .noAction),
        .init(name: "patron", owner: "B", target: "B", rule: .deny),
        .init(name: "picks", owner: "A", target: "B", isMany: true),
        .init(name: "playlist", owner: "A", target: "A", isMany: true, isOrdered: true),
        .init(name: "owned", owner: "B", target: "A", isMany: true, rule: .cascade),
        .init(
            name: "left",
            owner: "A",
            target: "A",
            isMany: true,
            isOrdered: true,
            inverse: "right"
        ),
        .init(
            name: "right",
            owner: "A",
            target: "A",
            isMany: true,
            isOrdered: true,
            inverse: "left"
        ),
        .init(name: "tags", owner: "A", target: "B", isMany: true, inverse: "tagged"),
        .init(name: "tagged", owner: "B", target: "A", isMany: true, inverse: "tags"),
        .init(
            name: "steps",
            owner: "A",
            target: "B",
            isMany: true,
            isOrdered: true,
            inverse: "stepOf"
        ),
        .init(name: "stepOf", owner: "B", target: "A", isMany: true, inverse: "steps"),
    ]

    /// With those that have a count, which only some runs use (`ModellingWorld`).
    static let every = all + counted
    static let named = Dictionary(uniqueKeysWithValues: every.map { ($0.name, $0) })
    var back: ModelRelation? { inverse.flatMap { Self.named[$0] } }
}

/// What the app wanted.
enum ModelEdit {
    case insert(Int, Character)
    case relate(Int, String, Int?)
    /// Nil: behind all others; else between two neighbours.
    case link(Int, String, Int, (before: Int?, behind: Int?)?)
    case unlink(Int, String, Int)
    case arrange(Int, String, [Int])
    case delete(Int)

    /// Whether it is about a relationship of an object, on either side.
    func mentions(_ id: Int) -> Bool {
        switch self {
        case .insert, .delete: false
        case .relate(let owner, let name, let target):
            owner == id || target == id && ModelRelation.named[name]?.inverse != nil
        case .link(let owner, let name, let member, _), .unlink(let owner, let name, let member):
            owner == id || member == id && ModelRelation.named[name]?.inverse != nil
        case .arrange(let owner, _, _): owner == id
        }
    }

    /// What is left of an edit without objects that never were: what they took away stays away.
    func without(_ gone: Set<Int>) -> ModelEdit? {
        switch self {
        case .insert(let id, _), .delete(let id): return gone.contains(id) ? nil : self
        case .relate(let id, let name, let target):
            if gone.contains(id) {
                guard let target, !gone.contains(target),
                    let back = ModelRelation.named[name]?.back, !back.isMany
                else { return nil }
                return .relate(target, back.name, nil)
            }
            return target.map(gone.contains) == true ? .relate(id, name, nil) : self
        case .link(let id, let name, let member, _), .unlink(let id, let name, let member):
            if !gone.contains(id), !gone.contains(member) { return self }
            guard case .link = self, !gone.contains(member),
                let back = ModelRelation.named[name]?.back, !back.isMany
            else { return nil }
            return .relate(member, back.name, nil)
        case .arrange(let id, let name, let ids):
            return gone.contains(id) ? nil : .arrange(id, name, ids.filter { !gone.contains($0) })
        }
    }

    /// The object and relationship whose own value it sets.
    var subject: (id: Int, name: String)? {
        switch self {
        case .insert, .delete: return nil
        case .relate(let id, let name, _), .arrange(let id, let name, _): return (id, name)
        case .link(let id, let name, let member, _), .unlink(let id, let name, let member):
            if let back = ModelRelation.named[name]?.back, !back.isMany {
                return (member, back.name)
            }
            return (id, name)
        }
    }
}

/// The objects of one moment.
struct ModelState {
    struct Object: Equatable {
        var kind: Character
        /// By bytes: two spellings of a letter are two names.
        var name: [UInt8] = []
        var number = 0
        var code: String?
        /// May lead to what is gone: only `noAction` leaves that.
        var ones: [String: Int] = [:]
        var lists: [String: [Int]] = [:]
        var isDead = false
        /// In no commit yet.
        var isNew = false
        /// The object whose cascade deleted it.
        var killer: Int?

        /// What is in its row.
        func sameRow(as other: Object) -> Bool {
            name == other.name && number == other.number && code == other.code
                && ones == other.ones
        }
    }

    private(set) var objects: [Int: Object] = [:]
    /// Relationships that wanted what is gone.
    private(set) var lost: [(id: Int, name: String, target: Int)] = []
    /// Edits of relationships of objects that others deleted.
    private(set) var homeless: [Int] = []

    func isAlive(_ id: Int) -> Bool { objects[id].map { !$0.isDead } ?? false }
    var living: [Int] { objects.filter { !$0.value.isDead }.keys.sorted() }
    func living(_ kind: Character) -> [Int] {
        objects.filter { !$0.value.isDead && $0.value.kind == kind }.keys.sorted()
    }

    func one(_ id: Int, _ name: String) -> Int? {
        objects[id]?.ones[name].flatMap { isAlive($0) ? $0 : nil }
    }

    func list(_ id: Int, _ name: String) -> [Int] {
        (objects[id]?.lists[name] ?? []).filter(isAlive)
    }

    mutating func add(_ id: Int, _ object: Object) { objects[id] = object }
    mutating func set(_ id: Int, _ change: (inout Object) -> Void) {
        guard var object = objects[id] else { return }
        change(&object)
        objects[id] = object
    }

    mutating func apply(_ edit: ModelEdit) {
        switch edit {
        case .insert(let id, let kind): objects[id] = Object(kind: kind, isNew: true)
        case .relate(let id, let name, let target): relate(id, name, target)
        case .link(let id, let name, let member, let place): link(id, name, member, place)
        case .unlink(let id, let name, let member): unlink(id, name, member)
        case .arrange(let id, let name, let ids):
            guard isHome(id) else { return }
            let present = list(id, name)
            let order = ids.filter(present.contains) + present.filter { !ids.contains($0) }
            objects[id]?.lists[name] = order
        case .delete(let id): delete(id)
        }
    }

    /// Whether an object is there to be edited; one that its own context deleted is no loss.
    private mutating func isHome(_ id: Int) -> Bool {
        if isAlive(id) { return true }
        if objects[id] == nil { homeless.append(id) }
        return false
    }

    private mutating func relate(_ id: Int, _ name: String, _ wanted: Int?) {
        guard let relation = ModelRelation.named[name], isHome(id) else { return }
        lost.removeAll { $0.id == id && $0.name == name }
        var target = wanted
        if let wanted, !isAlive(wanted) {
            lost.append((id, name, wanted))
            target = nil
        }
        let old = objects[id]?.ones[name]
        if old == target { return }
        objects[id]?.ones[name] = target
        guard let back = relation.back else { return }
        if back.isMany {
            if let old { objects[old]?.lists[back.name]?.removeAll { $0 == id } }
            if let target { objects[target]?.lists[back.name, default: []].append(id) }
            return
        }
        if let old, isAlive(old), objects[old]?.ones[back.name] == id {
            objects[old]?.ones[back.name] = nil
        }
        guard let target else { return }
        if let former = objects[target]?.ones[back.name], former != id, isAlive(former),
            objects[former]?.ones[name] == target
        {
            objects[former]?.ones[name] = nil
        }
        objects[target]?.ones[back.name] = id
    }

    private mutating func link(
        _ id: Int,
        _ name: String,
        _ member: Int,
        _ place: (before: Int?, behind: Int?)?
    ) {
        guard let relation = ModelRelation.named[name], isHome(id) else { return }
        guard isAlive(member) else {
            lost.append((id, name, member))
            return
        }
        if !list(id, name).contains(member) {
            if let back = relation.back, !back.isMany {
                relate(member, back.name, id)
            } else {
                objects[id]?.lists[name, default: []].append(member)
                if let back = relation.back {
                    objects[member]?.lists[back.name, default: []].append(id)
                }
            }
        }
        guard relation.isOrdered, let place else { return }
        var list = list(id, name).filter { $0 != member }
        var index = list.count
        if let before = place.before {
            index =
                list.firstIndex(of: before).map { $0 + 1 }
                ?? place.behind.flatMap { list.firstIndex(of: $0) } ?? list.count
        } else {
            index = place.behind.flatMap { list.firstIndex(of: $0) } ?? 0
        }
        list.insert(member, at: index)
        objects[id]?.lists[name] = list
    }

    private mutating func unlink(_ id: Int, _ name: String, _ member: Int) {
        guard let relation = ModelRelation.named[name], isHome(id) else { return }
        lost.removeAll { $0.id == id && $0.name == name && $0.target == member }
        guard list(id, name).contains(member) else { return }
        if let back = relation.back, !back.isMany {
            relate(member, back.name, nil)
            return
        }
        objects[id]?.lists[name]?.removeAll { $0 == member }
        if let back = relation.back { objects[member]?.lists[back.name]?.removeAll { $0 == id } }
    }

    // MARK: Deleting

    private func targets(_ id: Int, _ relation: ModelRelation) -> [Int] {
        relation.isMany ? list(id, relation.name) : one(id, relation.name).map { [$0] } ?? []
    }

    private mutating func delete(_ first: Int) {
        guard isAlive(first) else { return }
        var doomed = [first]
        objects[first]?.isDead = true
        var next = 0
        while next < doomed.count {
            let id = doomed[next]
            next += 1
            for relation in relations(id) where relation.rule == .cascade {
                for target in targets(id, relation) {
                    objects[target]?.isDead = true
                    objects[target]?.killer = id
                    doomed.append(target)
                }
            }
        }
        for id in doomed { detach(id) }
    }

    private func relations(_ id: Int) -> [ModelRelation] {
        guard let kind = objects[id]?.kind else { return [] }
        return ModelRelation.every.filter { $0.owner == kind }
    }

    private mutating func detach(_ id: Int) {
        guard let gone = objects[id] else { return }
        for (other, object) in objects where !object.isDead {
            for (name, target) in object.ones where target == id {
                guard let relation = ModelRelation.named[name] else { continue }
                let rule = relation.back?.rule ?? relation.rule
                let stays = rule == .noAction || rule == .deny && relation.back != nil
                if stays, !gone.isNew { continue }
                objects[other]?.ones[name] = nil
            }
            for (name, list) in object.lists where list.contains(id) {
                objects[other]?.lists[name] = list.filter { $0 != id }
            }
        }
    }

    /// Whether a rule forbids some deletion.
    var isDenied: Bool {
        objects.contains { id, object in
            object.isDead && !object.isNew
                && ModelRelation.all.contains { relation in
                    guard relation.owner == object.kind, relation.rule == .deny else {
                        return false
                    }
                    guard let back = relation.back else { return !targets(id, relation).isEmpty }
                    return objects.contains { !$1.isDead && $1.ones[back.name] == id }
                }
        }
    }

    /// The state once it is saved.
    mutating func settle() {
        lost = []
        homeless = []
        objects = objects.filter { !$0.value.isDead }
        for id in objects.keys { objects[id]?.isNew = false }
    }
}
