// What an app did to the relationships of a context's objects, in the order in which it did it.
//
// Invariants
// - A journal and a state of the store give the graph: applied to the context's commit, what the
//   context shows; applied to the newest commit, what a save writes. Both by `GraphEvaluator`.
// - Values of attributes are not in it. They depend on nothing but their object, so the last one
//   counts and stands in the object's edits.
// - An intent names objects by ID, and places between neighbours, not by number: a list may have
//   other members in another commit.

import VarveBase
import VarveRecords

/// Where a member of an ordered relationship goes.
enum LinkPlace: Equatable {
    /// After all others.
    case end
    /// After the first and before the second, as they stood when the app said so; nil: none there.
    case between(ObjectID?, ObjectID?)
}

/// One thing that the app wanted.
enum Intent: Equatable {
    /// A to-one relationship leads to an object, or to none.
    case relate(EntityModel, ObjectID, slot: Int, to: ObjectID?)
    /// An object becomes a member of a to-many relationship, or moves within an ordered one.
    case link(EntityModel, ObjectID, slot: Int, ObjectID, LinkPlace)
    /// An object is a member no more.
    case unlink(EntityModel, ObjectID, slot: Int, ObjectID)
    /// The members of an ordered relationship come in this order.
    case arrange(EntityModel, ObjectID, slot: Int, [ObjectID])
    /// An object is deleted, and its delete rules run.
    case delete(EntityModel, ObjectID)

    /// The property that the intent changes: its object and slot. Of two properties that are kept
    /// equal, the one that is a column. Nil: a deletion.
    var subject: ToManyKey? {
        switch self {
        case .relate(_, let id, let slot, _), .arrange(_, let id, let slot, _):
            return ToManyKey(owner: id, slot: slot)
        case .link(let model, let id, let slot, let member, _),
            .unlink(let model, let id, let slot, let member):
            if let relationship = model.properties[slot].relationship,
                relationship.isKeptByInverse, let inverse = relationship.inverseSlot
            {
                return ToManyKey(owner: member, slot: inverse)
            }
            return ToManyKey(owner: id, slot: slot)
        case .delete: return nil
        }
    }

    /// The other end of a one-to-one relationship, whose column the intent changes as well.
    var partner: ToManyKey? {
        guard case .relate(let model, _, let slot, let target?) = self,
            let relationship = model.properties[slot].relationship,
            let inverse = relationship.inverseSlot, !relationship.inverseIsToMany
        else { return nil }
        return ToManyKey(owner: target, slot: inverse)
    }

    /// Whether a relationship of `id` is what the intent is about, on either side.
    func mentions(_ id: ObjectID) -> Bool {
        switch self {
        case .relate(let model, let owner, let slot, let target):
            owner == id
                || target == id && model.properties[slot].relationship?.inverseSlot != nil
        case .link(let model, let owner, let slot, let member, _),
            .unlink(let model, let owner, let slot, let member):
            owner == id
                || member == id && model.properties[slot].relationship?.inverseSlot != nil
        case .arrange(_, let owner, _, _): owner == id
        case .delete: false
        }
    }

    /// Whether it names one of some objects.
    func names(_ ids: Set<ObjectID>) -> Bool {
        switch self {
        case .relate(_, let id, _, let target): ids.contains(id) || target.map(ids.contains) == true
        case .link(_, let id, _, let member, _), .unlink(_, let id, _, let member):
            ids.contains(id) || ids.contains(member)
        case .arrange(_, let id, _, _), .delete(_, let id): ids.contains(id)
        }
    }

    /// The same intent with other objects in the place of some.
    func replacing(_ replaced: [ObjectID: ObjectID]) -> Intent {
        func other(_ id: ObjectID) -> ObjectID { replaced[id] ?? id }
        switch self {
        case .relate(let model, let id, let slot, let target):
            return .relate(model, other(id), slot: slot, to: target.map(other))
        case .link(let model, let id, let slot, let member, let place):
            var moved = place
            if case .between(let before, let behind) = place {
                moved = .between(before.map(other), behind.map(other))
            }
            return .link(model, other(id), slot: slot, other(member), moved)
        case .unlink(let model, let id, let slot, let member):
            return .unlink(model, other(id), slot: slot, other(member))
        case .arrange(let model, let id, let slot, let ids):
            return .arrange(model, other(id), slot: slot, ids.map(other))
        case .delete(let model, let id): return .delete(model, other(id))
        }
    }
}

/// The intents of one context since its last save.
struct Journal {
    /// In the order of the app's calls; nil where a later one took its place.
    private var entries: [Intent?] = []
    /// Where the last word about a to-one relationship stands, as long as a later one may take its
    /// place; nil: nobody has asked since `wordsBegin`. An app that makes objects sets each of
    /// their relationships once, and never asks.
    private var lastWords: [ToManyKey: Int]?
    /// The first entry in whose place a later one may come.
    private var wordsBegin = 0
    private var dead = 0
    /// Whether some property may be named by more than its last word.
    private var hasHistory = false
    /// Where the edit under way begins, with those that its observers make; nil: there is none.
    private var begun: Int?
    /// Entries in whose place those of the edit under way come when it has ended.
    private var replaced: [Int] = []
    /// Edits under way that were taken out, one in an observer of another.
    private var aside: [[Intent]] = []

    /// New objects that were deleted again, and are still in the entries.
    private var phantoms: Set<ObjectID> = []
    private var schema: SchemaModel?

    var isEmpty: Bool {
        mutating get {
            takeOutPhantoms()
            return entries.count == dead
        }
    }
    /// With those that do not count any more.
    var entryCount: Int { entries.count }

    /// In the order of the app's calls.
    var intents: [Intent] {
        mutating get {
            takeOutPhantoms()
            return entries.compactMap(\.self)
        }
    }

    /// Adds an intent. A to-one relationship that is set again and again leaves one entry.
    ///
    /// - Parameter isFirst: whether the property was as in the store: no earlier entry has to be
    ///   looked for. One that is there nevertheless does no harm, the later one counts.
    mutating func append(_ intent: Intent, isFirst: Bool = false) {
        let key = Self.replaceable(intent)
        if let key, !isFirst || lastWords != nil {
            if lastWords == nil { findLastWords() }
            if let earlier = lastWords?.updateValue(entries.count, forKey: key) {
                if let begun, earlier < begun {
                    replaced.append(earlier)
                } else {
                    entries[earlier] = nil
                    dead += 1
                }
            }
        }
        entries.append(intent)
        // What follows stands on what was there.
        if key == nil { endWords() }
        if begun == nil, dead > 64, dead > entries.count / 2 { compact() }
    }

    /// An edit begins, or one of an observer in the middle of it: until it has ended it can be
    /// taken out again.
    /// - Returns: whether it stands in no other one: then the caller ends it.
    mutating func begin() -> Bool {
        if begun != nil { return false }
        begun = entries.count
        return true
    }

    /// The edit stands.
    mutating func end() {
        for place in replaced where entries[place] != nil {
            entries[place] = nil
            dead += 1
        }
        replaced.removeAll(keepingCapacity: true)
        begun = nil
        if dead > 64, dead > entries.count / 2 { compact() }
    }

    /// Puts what was added since the edit under way began aside; false: there is nothing.
    /// - Complexity: O(n)
    mutating func takeBegun() -> Bool {
        guard let begun else { return false }
        let taken = entries[begun...].compactMap(\.self)
        entries.removeSubrange(begun...)
        replaced = []
        self.begun = nil
        dead = entries.count { $0 == nil }
        endWords()
        if taken.isEmpty { return false }
        aside.append(taken)
        takeOutPhantoms()
        return true
    }

    /// What was put aside last, without new objects that have ended since.
    mutating func takeFromAside() -> [Intent] {
        takeOutPhantoms()
        return aside.popLast() ?? []
    }

    /// Whether the edit under way deletes something.
    var deletes: Bool {
        guard let begun else { return false }
        return entries[begun...].contains { intent in
            if case .delete? = intent { return true }
            return false
        }
    }

    /// No entry gives its place to a later one any more.
    private mutating func endWords() {
        lastWords = nil
        wordsBegin = entries.count
        hasHistory = true
    }

    private mutating func findLastWords() {
        var found: [ToManyKey: Int] = [:]
        for (index, entry) in entries.enumerated().dropFirst(wordsBegin) {
            guard let entry, let key = Self.replaceable(entry) else { continue }
            if let earlier = found.updateValue(index, forKey: key) {
                entries[earlier] = nil
                dead += 1
            }
        }
        lastWords = found
    }

    /// The property of which only the last word counts; nil where each step does: setting a
    /// one-to-one frees others' partners, adding to an order gives a place.
    private static func replaceable(_ intent: Intent) -> ToManyKey? {
        guard case .relate(let model, let id, let slot, _) = intent,
            let relationship = model.properties[slot].relationship,
            relationship.inverseSlot == nil || relationship.inverseIsToMany,
            !relationship.inverseIsOrdered
        else { return nil }
        return ToManyKey(owner: id, slot: slot)
    }

    /// A property has the value again that it has in the store: as if it had never been set.
    mutating func takeBack(_ key: ToManyKey) {
        if hasHistory { return }
        // The earlier word counts again if the edit under way is taken out.
        if replaced.contains(where: { entries[$0].flatMap(Self.replaceable) == key }) { return }
        if lastWords == nil { findLastWords() }
        guard let place = lastWords?.removeValue(forKey: key) else { return }
        entries[place] = nil
        dead += 1
    }

    /// Takes out what does not count any more.
    mutating func removeAll(where isOut: (Intent) -> Bool) {
        takeOutPhantoms()
        dropReplaced()
        begun = begun.map { begun in entries[..<begun].count { !($0.map(isOut) ?? true) } }
        entries.removeAll { $0.map(isOut) ?? true }
        dead = 0
        endWords()
    }

    /// Takes out the edit under way, and leaves those that its observers made.
    mutating func takeBack() {
        guard let begun, begun < entries.count, let intent = entries[begun] else { return }
        if let key = Self.replaceable(intent) {
            replaced.removeAll { entries[$0].flatMap(Self.replaceable) == key }
        }
        entries[begun] = nil
        dead += 1
        endWords()
    }

    /// Takes the newest one out.
    mutating func removeLast() {
        while entries.count > begun ?? 0, let last = entries.popLast() {
            if last != nil { break }
            dead -= 1
        }
        endWords()
    }

    private mutating func dropReplaced() {
        if replaced.isEmpty { return }
        let outer = begun
        end()
        begun = outer
    }

    /// New objects that were deleted again leave the journal: what led to them leads nowhere. No
    /// later intent names them, so all of them leave together when the journal is next read.
    mutating func forget(_ phantoms: Set<ObjectID>, _ schema: SchemaModel) {
        self.phantoms.formUnion(phantoms)
        self.schema = schema
        endWords()
    }

    /// Before one of them comes back: from then on later intents may name it.
    mutating func settle() { takeOutPhantoms() }

    private mutating func takeOutPhantoms() {
        guard !phantoms.isEmpty, let schema else { return }
        let phantoms = phantoms
        self.phantoms = []
        entries = entries.map { $0.flatMap { Self.without(phantoms, $0, schema) } }
        aside = aside.map { $0.compactMap { Self.without(phantoms, $0, schema) } }
        dead = entries.count { $0 == nil }
        compact()
        endWords()
    }

    private static func without(
        _ phantoms: Set<ObjectID>,
        _ intent: Intent,
        _ schema: SchemaModel
    ) -> Intent? {
        switch intent {
        case .relate(let model, let id, let slot, let target):
            if !phantoms.contains(id) {
                guard let target, phantoms.contains(target) else { return intent }
                return .relate(model, id, slot: slot, to: nil)
            }
            // The partner lost who he had before.
            guard let partner = intent.partner, !phantoms.contains(partner.owner),
                let relationship = model.properties[slot].relationship,
                let far = schema.entity(relationship.target)
            else { return nil }
            return .relate(far, partner.owner, slot: partner.slot, to: nil)
        case .link(let model, let id, let slot, let member, _),
            .unlink(let model, let id, let slot, let member):
            if !phantoms.contains(id), !phantoms.contains(member) { return intent }
            guard case .link = intent, !phantoms.contains(member),
                let relationship = model.properties[slot].relationship,
                relationship.isKeptByInverse, let inverse = relationship.inverseSlot,
                let far = schema.entity(relationship.target)
            else { return nil }
            return .relate(far, member, slot: inverse, to: nil)
        case .arrange(let model, let id, let slot, let ids):
            if phantoms.contains(id) { return nil }
            return .arrange(model, id, slot: slot, ids.filter { !phantoms.contains($0) })
        case .delete(_, let id): return phantoms.contains(id) ? nil : intent
        }
    }

    private mutating func compact() {
        dropReplaced()
        begun = begun.map { begun in entries[..<begun].count { $0 != nil } }
        var kept: [Intent?] = []
        var places: [Int: Int] = [:]
        for (index, entry) in entries.enumerated() {
            guard let entry else { continue }
            places[index] = kept.count
            kept.append(entry)
        }
        wordsBegin = kept.count - places.keys.count { $0 >= wordsBegin }
        entries = kept
        lastWords = lastWords?.compactMapValues { places[$0] }
        dead = 0
    }
}
