// What a step of a run does. A step is a number: it picks from what is there, so that taking steps
// out leaves the others with a meaning.

import VarveInspection
import VarveObjects
import VarveTesting

extension GraphWorld {
    /// One step.
    func doStep(_ number: UInt64) throws {
        if isOver { return }
        var random = SeededRandom(seed: number)
        let editor = editors[Int(random.next() % UInt64(editors.count))]
        if looks {
            chance = SeededRandom(seed: ~number)
            if chance.next() % 3 == 0 { try look(editor, &chance) }
        }
        switch random.next() % 64 {
        case 0...8: try insert(editor, &random)
        case 9...16: try setAttribute(editor, &random)
        case 17...28: try relate(editor, &random)
        case 29...38: try editList(editor, &random)
        case 39...42: try delete(editor, &random)
        case 43: try editDeleted(editor, &random)
        case 44: try process(editor)
        case 45...46: try advance(editor)
        case 47: rollback(editor)
        case 48: try refresh(editor, &random)
        case 49: refreshAll(editor)
        case 50...51: try batch(editor, &random)
        case 52: try reopen(&random)
        case 53: editor.held = [:]
        case 54...55: try compare(editor)
        case 56...58: try query(editor, &random)
        case 59: try takeCode(editor, &random)
        case 60: try meet(editor, &random)
        default: try save(editor, &random)
        }
        for editor in editors { editor.simplify() }
        // A container that was opened again has other contexts.
        guard editors.contains(where: { $0 === editor }) else { return }
        if random.next() % 16 < UInt64(density) { try compare(editor) }
    }

    /// Behind the last step: all is saved, and a fresh context agrees.
    func finish() throws {
        for editor in editors where !isOver {
            try compare(editor)
            var random = SeededRandom(seed: 1)
            try save(editor, &random, policy: 1)
        }
        try verify()
    }

    func pick(_ ids: [Int], _ random: inout SeededRandom) -> Int? {
        ids.isEmpty ? nil : ids[Int(random.next() % UInt64(ids.count))]
    }

    // MARK: Attributes

    private func insert(_ editor: GraphEditor, _ random: inout SeededRandom) throws {
        let isAlpha = random.next() % 2 == 0
        let object: any ManagedObject =
            isAlpha ? Alpha(in: editor.context) : Beta(in: editor.context)
        let id = self.number(object.objectID)
        editor.held[id] = object
        editor.edits.append(.insert(id, isAlpha ? "A" : "B"))
        note("\(index(editor)): \(name(id)) = \(isAlpha ? "Alpha" : "Beta")")
        try set(editor, id, object, name: "n\(random.next() % 8)")
        try set(editor, id, object, number: Int(random.next() % 8))
        try setCode(editor, id, object, &random)
    }

    private func setAttribute(_ editor: GraphEditor, _ random: inout SeededRandom) throws {
        guard let id = pick(alive(editor), &random) else { return }
        let object = try object(id, editor)
        switch random.next() % 8 {
        case 0...3: try set(editor, id, object, number: Int(random.next() % 8))
        case 4: try set(editor, id, object, name: ["e\u{301}", "\u{e9}"][Int(random.next() % 2)])
        case 5: try set(editor, id, object, name: "n\(random.next() % 8)")
        default: try setCode(editor, id, object, &random)
        }
    }

    func set(
        _ editor: GraphEditor,
        _ id: Int,
        _ object: any ManagedObject,
        name: String? = nil,
        number: Int? = nil,
        code: String?? = nil
    ) throws {
        var given = editor.attributes[id] ?? ModelAttributes()
        let stored = editor.base.objects[id]
        if let name {
            (object as? Alpha)?.name = name
            (object as? Beta)?.name = name
            note("\(index(editor)): \(self.name(id)).name = \(Array(name.utf8))")
            given.name =
                stored?.name == Array(name.utf8) ? nil : name
        }
        if let number {
            (object as? Alpha)?.number = number
            (object as? Beta)?.number = number
            note("\(index(editor)): \(self.name(id)).number = \(number)")
            given.number = stored?.number == number ? nil : number
        }
        if let code {
            (object as? Alpha)?.code = code
            (object as? Beta)?.code = code
            note("\(index(editor)): \(self.name(id)).code = \(code ?? "nil")")
            given.code = stored.map { $0.code == code } == true ? nil : .some(code)
        }
        editor.attributes[id] = given.isEmpty ? nil : given
    }

    private func setCode(
        _ editor: GraphEditor,
        _ id: Int,
        _ object: any ManagedObject,
        _ random: inout SeededRandom
    ) throws {
        guard codes > 0 else { return }
        let code = random.next() % 3 == 0 ? "c\(random.next() % UInt64(codes))" : nil
        try set(editor, id, object, code: .some(code))
    }

    /// An object gives its code up, and a new one takes it.
    private func takeCode(_ editor: GraphEditor, _ random: inout SeededRandom) throws {
        let shown = editor.shown
        guard codes > 0,
            let id = pick(alive(editor, "A").filter { shown.objects[$0]?.code != nil }, &random),
            let code = shown.objects[id]?.code
        else { return }
        try set(editor, id, try object(id, editor), code: .some("d\(id)"))
        let new = Alpha(in: editor.context)
        let number = number(new.objectID)
        editor.held[number] = new
        editor.edits.append(.insert(number, "A"))
        note("\(index(editor)): \(name(number)) = Alpha")
        try set(editor, number, new, code: .some(code))
    }

    /// The objects that may be edited.
    func alive(_ editor: GraphEditor) -> [Int] {
        editor.shown.living.filter { !editor.isMarked($0) }
    }

    private func alive(_ editor: GraphEditor, _ kind: Character) -> [Int] {
        editor.shown.living(kind).filter { !editor.isMarked($0) }
    }

    // MARK: Relationships

    private func relate(_ editor: GraphEditor, _ random: inout SeededRandom) throws {
        let ones = relations.filter { !$0.isMany }
        guard !ones.isEmpty else { return try editList(editor, &random) }
        let relation = ones[Int(random.next() % UInt64(ones.count))]
        guard let id = pick(alive(editor, relation.owner), &random) else { return }
        let target =
            random.next() % 4 == 0 ? nil : pick(alive(editor, relation.target), &random)
        let shown = editor.shown
        let object = try object(id, editor)
        let other = try target.map { try self.object($0, editor) }
        note("\(index(editor)): \(name(id)).\(relation.name) = \(target.map(name) ?? "nil")")
        let ends =
            [(object, relation as ModelRelation?)] + (other.map { [($0, relation.back)] } ?? [])
        if interrupting(editor, ends, { access.ones[relation.name]?.set(object, other) }) { return }
        // Nothing new is nothing said, unless the relationship wanted what is gone.
        let wanted = shown.lost.contains { $0.id == id && $0.name == relation.name }
        if shown.objects[id]?.ones[relation.name] == target, !wanted { return }
        if !shown.lost.isEmpty { editor.isWild = true }
        // What is set anew does not want what it could not have. An order keeps each step: whoever
        // left it comes back behind all others.
        if wanted, relation.back?.isOrdered != true {
            editor.removeEdits { edit in
                guard case .relate(id, relation.name, _) = edit else { return false }
                return true
            }
        }
        editor.append(.relate(id, relation.name, target))
    }

    private func editList(_ editor: GraphEditor, _ random: inout SeededRandom) throws {
        let lists = relations.filter(\.isMany)
        guard !lists.isEmpty else { return }
        let relation = lists[Int(random.next() % UInt64(lists.count))]
        guard let id = pick(alive(editor, relation.owner), &random),
            let list = try access.lists[relation.name]?(object(id, editor))
        else { return }
        let candidates = alive(editor, relation.target)
        let members = editor.shown.list(id, relation.name).filter { !editor.isMarked($0) }
        let choice = random.next() % 16
        if choice < 10 {
            guard let member = pick(candidates, &random) else { return }
            let place =
                relation.isOrdered && choice % 2 == 0 ? Int(random.next() % 8) - 1 : nil
            try add(editor, relation, id, list, member, place)
        } else if choice < 13 {
            guard let member = pick(random.next() % 8 == 0 ? candidates : members, &random) else {
                return
            }
            note("\(index(editor)): \(name(id)).\(relation.name) - \(name(member))")
            let (owner, target) = (try object(id, editor), try object(member, editor))
            let ends = [(owner, relation as ModelRelation?), (target, relation.back)]
            if interrupting(editor, ends, { list.remove(target) }) { return }
            try unlink(editor, relation, id, member)
        } else if choice == 13 {
            // Before rules run, what is marked is still a member, and may not be edited.
            guard !editor.shown.list(id, relation.name).contains(where: editor.isMarked) else {
                return
            }
            note("\(index(editor)): \(name(id)).\(relation.name) - all")
            let all = editor.shown.list(id, relation.name)
            list.removeAll()
            for member in all { try unlink(editor, relation, id, member) }
        } else {
            guard !editor.shown.list(id, relation.name).contains(where: editor.isMarked) else {
                return
            }
            var wanted = candidates.filter { _ in random.next() % 2 == 0 }
            wanted.shuffle(using: &random)
            try replace(editor, relation, id, list, wanted)
        }
    }

    private func add(
        _ editor: GraphEditor,
        _ relation: ModelRelation,
        _ id: Int,
        _ list: GraphAccess.Many,
        _ member: Int,
        _ place: Int?
    ) throws {
        let (owner, object) = (try object(id, editor), try object(member, editor))
        let ends = [(owner, relation as ModelRelation?), (object, relation.back)]
        let members = editor.shown.list(id, relation.name)
        guard let place else {
            note("\(index(editor)): \(name(id)).\(relation.name) + \(name(member))")
            if interrupting(editor, ends, { list.append(object) }) { return }
            if members.contains(member) { return }
            if let back = relation.back, !back.isMany, !relation.isOrdered {
                editor.append(.relate(member, back.name, id))
            } else {
                editor.append(.link(id, relation.name, member, nil))
            }
            return
        }
        note("\(index(editor)): \(name(id)).\(relation.name) + \(name(member)) at \(place)")
        if interrupting(editor, ends, { list.insert(object, place) }) { return }
        let others = members.filter { $0 != member }
        let index = min(max(place, 0), others.count)
        if members.firstIndex(of: member) == index { return }
        editor.append(
            .link(
                id,
                relation.name,
                member,
                (
                    before: index > 0 ? others[index - 1] : nil,
                    behind: index < others.count ? others[index] : nil
                )
            )
        )
    }

    private func unlink(
        _ editor: GraphEditor,
        _ relation: ModelRelation,
        _ id: Int,
        _ member: Int
    ) throws {
        guard editor.shown.list(id, relation.name).contains(member) else { return }
        if let back = relation.back, !back.isMany {
            editor.append(.relate(member, back.name, nil))
        } else {
            editor.append(.unlink(id, relation.name, member))
        }
    }

    private func replace(
        _ editor: GraphEditor,
        _ relation: ModelRelation,
        _ id: Int,
        _ list: GraphAccess.Many,
        _ wanted: [Int]
    ) throws {
        note("\(index(editor)): \(name(id)).\(relation.name) = \(wanted.map(name))")
        list.replaceAll(try wanted.map { try object($0, editor) })
        let before = editor.shown.list(id, relation.name)
        for member in before where !wanted.contains(member) {
            try unlink(editor, relation, id, member)
        }
        for member in wanted where !before.contains(member) {
            if let back = relation.back, !back.isMany, !relation.isOrdered {
                editor.append(.relate(member, back.name, id))
            } else {
                editor.append(.link(id, relation.name, member, nil))
            }
        }
        if relation.isOrdered, editor.shown.list(id, relation.name) != wanted {
            editor.append(.arrange(id, relation.name, wanted))
        }
    }

    // MARK: Deleting and dropping

    private func delete(_ editor: GraphEditor, _ random: inout SeededRandom) throws {
        guard let id = pick(alive(editor), &random) else { return }
        note("\(index(editor)): delete \(name(id))")
        editor.context.erase(try object(id, editor))
        editor.marked.append(id)
    }

    /// An edit of what is deleted is refused, and said.
    private func editDeleted(_ editor: GraphEditor, _ random: inout SeededRandom) throws {
        let dead = editor.held.keys.sorted().filter { id in
            !editor.shown.isAlive(id) || editor.isMarked(id)
        }
        guard let id = pick(dead, &random), let object = editor.held[id], object.context != nil,
            editor.context.hasChanges || object.isDeleted, object.isDeleted,
            editor.attributes[id] == nil
        else { return }
        // Deleted by others, it may still be edited: the save tells.
        guard editor.isMarked(id) || editor.base.objects[id] != nil else { return }
        let before = editor.context.refusedEdits.count
        (object as? Alpha)?.number = 99
        (object as? Beta)?.number = 99
        guard editor.context.refusedEdits.count > before else {
            throw fail("\(index(editor)): an edit of the deleted \(name(id)) was taken")
        }
        note("\(index(editor)): \(name(id)).number = 99 is refused")
        do {
            try editor.context.save()
            throw fail("\(index(editor)): a save did not tell of a refused edit")
        } catch let error as StoreError {
            guard error.code == .objectDeleted else {
                throw fail("\(index(editor)): a refused edit gave \(error)")
            }
        }
        editor.context.acknowledgeRefusedEdits()
    }

    private func process(_ editor: GraphEditor) throws {
        note("\(index(editor)): process")
        editor.context.processPendingChanges()
        editor.process()
    }

    func advance(_ editor: GraphEditor) throws {
        note("\(index(editor)): advance")
        editor.context.advance()
        moved(editor)
    }

    /// The context stands on the newest commit now.
    func moved(_ editor: GraphEditor) {
        guard editor.commit != commit else { return }
        editor.process()
        let dead = editor.shown.objects.filter {
            $0.value.isDead && !$0.value.isNew && newest.objects[$0.key] == nil
        }
        editor.endedByBoth.formUnion(dead.keys)
        for id in dead.keys { editor.attributes[id] = nil }
        endWithOwners(editor)
        if !editor.endedByBoth.isEmpty {
            editor.removeEdits { edit in
                if case .delete(let id) = edit { return editor.endedByBoth.contains(id) }
                return edit.subject.map { editor.endedByBoth.contains($0.id) } ?? false
            }
        }
        editor.base = newest
        editor.commit = commit
        // What others brought back is there to be deleted once more.
        editor.endedByBoth = editor.endedByBoth.filter { newest.objects[$0] == nil }
    }

    /// A new object that is shown as deleted, because its owner is, goes with it.
    private func endWithOwners(_ editor: GraphEditor) {
        if editor.endedByBoth.isEmpty { return }
        let new = editor.shown.objects.filter { $0.value.isDead && $0.value.isNew }
        var gone: Set<Int> = []
        while true {
            let ended = new.filter { id, object in
                !gone.contains(id)
                    && object.killer.map {
                        editor.endedByBoth.contains($0) || gone.contains($0)
                    } == true
            }
            if ended.isEmpty { break }
            gone.formUnion(ended.keys)
        }
        if gone.isEmpty { return }
        // What their cascades reached is deleted for itself.
        let reached = editor.shown.objects.filter { _, object in
            object.isDead && !object.isNew && object.killer.map(gone.contains) == true
        }
        for id in gone { editor.attributes[id] = nil }
        editor.replaceEdits { $0.without(gone) }
        for id in reached.keys.sorted() { editor.append(.delete(id)) }
    }

    private func rollback(_ editor: GraphEditor) {
        note("\(index(editor)): rollback")
        editor.context.rollback()
        editor.forget()
    }

    private func refresh(_ editor: GraphEditor, _ random: inout SeededRandom) throws {
        guard let id = pick(alive(editor), &random) else { return }
        let merges = random.next() % 3 == 0
        note("\(index(editor)): refresh \(name(id)), merges \(merges)")
        let isNew = editor.shown.objects[id]?.isNew ?? false
        editor.context.reread(try object(id, editor), merges)
        if merges || isNew { return }
        editor.attributes[id] = nil
        editor.removeEdits { $0.mentions(id) }
    }

    private func refreshAll(_ editor: GraphEditor) {
        note("\(index(editor)): refresh all")
        editor.context.refreshAllObjects()
        moved(editor)
    }

    private func reopen(_ random: inout SeededRandom) throws {
        guard random.next() % 4 == 0 else { return }
        note("reopen")
        let count = editors.count
        try closeWithEdits()
        editors = []
        container = try PersistentContainer.openNow(
            on: disk,
            schema: FuzzedSchema.self,
            options: options
        )
        for _ in 0..<count { try addEditor() }
    }

    /// A close says whose edits it would drop, and drops them when it is told to.
    private func closeWithEdits() throws {
        let unsaved = editors.count { $0.context.hasChanges }
        if unsaved > 0 {
            var told: Int?
            do {
                try container.closeNow()
            } catch let error as StoreError where error.code == .unsavedChanges {
                told = error.details.count
            }
            try expect(told, unsaved, "contexts whose edits a close would drop")
        }
        try container.closeNow(discardingEdits: unsaved > 0)
    }
}

extension ManagedObjectContext {
    fileprivate func erase(_ object: any ManagedObject) {
        func open<Entity: ManagedObject>(_ object: Entity) { delete(object) }
        open(object)
    }

    fileprivate func reread(_ object: any ManagedObject, _ merges: Bool) {
        func open<Entity: ManagedObject>(_ object: Entity) { refresh(object, mergeChanges: merges) }
        open(object)
    }
}
