// What must hold of a graph at any moment: what a context shows is what the model says, in every
// way to ask for it; the newest commit is sound.

import VarveInspection
import VarveObjects
import VarveTesting

extension GraphWorld {
    /// All objects and relationships of a context against the model.
    func compare(_ editor: GraphEditor) throws {
        editor.process()
        try compare(editor.context, editor.shown, "context \(index(editor))")
        let has = editor.context.hasChanges
        if !editor.hasEdits, has { throw fail("context \(index(editor)) has edits without any") }
        try compareLists(editor)
    }

    func compare(_ context: ManagedObjectContext, _ state: ModelState, _ who: String) throws {
        let alphas = try context.fetchIDs(Alpha.all).map { self.number($0.objectID) }
        let betas = try context.fetchIDs(Beta.all).map { self.number($0.objectID) }
        try expect(alphas, ordered(state.living("A")), "\(who): all of Alpha")
        try expect(betas, ordered(state.living("B")), "\(who): all of Beta")
        // Their lists are gone through below.
        var all = try prefetched(context, state)
        for id in state.living {
            guard let object = try context.existingObject(with: ids[id]) else {
                throw fail("\(who): \(name(id)) is fetched and not there")
            }
            all.append(object)
            try compare(object, id, state, who)
        }
        for (id, object) in state.objects where object.isDead {
            if try context.existingObject(with: ids[id]) != nil {
                throw fail("\(who): the deleted \(name(id)) is there")
            }
        }
        if !context.readFailures.isEmpty {
            throw fail("\(who): a read failed: \(context.readFailures)")
        }
    }

    /// Objects with lists that were prefetched, at every third time.
    private func prefetched(
        _ context: ManagedObjectContext,
        _ state: ModelState
    ) throws -> [any ManagedObject] {
        if (commit + state.living.count) % 3 != 0 { return [] }
        let alphas = Alpha.all.prefetch {
            ($0.children, $0.playlist, $0.tags, $0.picks, $0.steps, $0.parent, $0.book.chapters)
        }
        let betas = Beta.all.prefetch { ($0.chapters, $0.guests, $0.tagged, $0.stepOf) }
        return try context.fetch(alphas) as [any ManagedObject] + context.fetch(betas)
    }

    private func compare(
        _ object: any ManagedObject,
        _ id: Int,
        _ state: ModelState,
        _ who: String
    ) throws {
        guard let expected = state.objects[id] else { return }
        let who = "\(who): \(name(id))"
        if let alpha = object as? Alpha {
            try expect(Array(alpha.name.utf8), expected.name, "\(who).name")
            try expect(alpha.number, expected.number, "\(who).number")
            try expect(alpha.code, expected.code, "\(who).code")
            try compareLabel(alpha, who)
        } else if let beta = object as? Beta {
            try expect(Array(beta.name.utf8), expected.name, "\(who).name")
            try expect(beta.number, expected.number, "\(who).number")
            try expect(beta.code, expected.code, "\(who).code")
        }
        for relation in relations.flatMap({ [$0] + [$0.back].compactMap(\.self) })
        where relation.owner == expected.kind {
            if !relation.isMany {
                let target = access.ones[relation.name]?.get(object).map { number($0.objectID) }
                try expect(target, state.one(id, relation.name), "\(who).\(relation.name)")
                continue
            }
            guard let list = access.lists[relation.name]?(object) else { continue }
            var members = state.list(id, relation.name)
            if !relation.isOrdered { members = ordered(members) }
            if id % 2 == 0 {
                try expect(list.count(), members.count, "\(who).\(relation.name).count")
            }
            if id % 3 == 0 {
                // Before the list as a whole is read.
                let positions = id % 2..<3
                let page = try list.page(positions).map { number($0.objectID) }
                let expected = Array(members[positions.clamped(to: members.indices)])
                try expect(page, expected, "\(who).\(relation.name).page(\(positions))")
            }
            try expect(list.ids().map(number), members, "\(who).\(relation.name)")
            try expect(list.count(), members.count, "\(who).\(relation.name).count")
            let objects = list.objects()
            try expect(objects.map { number($0.objectID) }, members, "\(who).\(relation.name)")
            for member in objects where !list.contains(member) {
                throw fail("\(who).\(relation.name) does not contain what it has")
            }
        }
    }

    /// The derived value that is kept, and what requests find by it.
    private func compareLabel(_ alpha: Alpha, _ who: String) throws {
        let label = alpha.label
        try expect(Array(alpha.snapshot().label.utf8), Array(label.utf8), "\(who).label")
        guard let context = alpha.context, alpha.number % 3 == 0 else { return }
        let found = try context.fetchIDs(Alpha.where { $0.label == label })
        if !found.contains(alpha.id) { throw fail("\(who) is not found by its label") }
    }

    /// In the order in which the library lists objects by themselves.
    func ordered(_ numbers: [Int]) -> [Int] { numbers.sorted { ids[$0] < ids[$1] } }

    func expect<Value: Equatable>(_ value: Value, _ expected: Value, _ what: String) throws {
        if value != expected { throw fail("\(what) is \(value), the model says \(expected)") }
    }

    // MARK: The newest commit

    /// What a fresh context reads.
    func stored() throws -> ModelState {
        let context = container.newContext()
        var state = ModelState()
        let objects: [any ManagedObject] =
            try context.fetch(Alpha.all) as [any ManagedObject] + context.fetch(Beta.all)
        for object in objects {
            var plain = ModelState.Object(kind: object is Alpha ? "A" : "B")
            if let alpha = object as? Alpha {
                (plain.name, plain.number) = (Array(alpha.name.utf8), alpha.number)
                plain.code = alpha.code
                try compareLabel(alpha, "stored")
            } else if let beta = object as? Beta {
                (plain.name, plain.number) = (Array(beta.name.utf8), beta.number)
                plain.code = beta.code
            }
            for relation in ModelRelation.every where relation.owner == plain.kind {
                if relation.isMany {
                    let members = access.lists[relation.name]?(object).ids().map(number) ?? []
                    if !members.isEmpty { plain.lists[relation.name] = members }
                } else if let target = access.ones[relation.name]?.get(object) {
                    plain.ones[relation.name] = number(target.objectID)
                }
            }
            state.add(number(object.objectID), plain)
        }
        return state
    }

    /// Both sides of each relationship, unique codes, and the store's own check.
    func checkSound(_ state: ModelState) throws {
        for (id, object) in state.objects {
            for (name, target) in object.ones {
                guard let back = ModelRelation.named[name]?.back else { continue }
                let other = state.objects[target]
                let agrees =
                    back.isMany
                    ? other?.lists[back.name]?.contains(id) == true
                    : other?.ones[back.name] == id
                if !agrees { throw fail("stored: #\(id).\(name) has no other side") }
            }
            for (name, members) in object.lists {
                if Set(members).count != members.count {
                    throw fail("stored: #\(id).\(name) twice")
                }
                for member in members {
                    guard let other = state.objects[member] else {
                        throw fail("stored: #\(id).\(name) leads to nothing")
                    }
                    guard let back = ModelRelation.named[name]?.back else { continue }
                    let agrees =
                        back.isMany
                        ? other.lists[back.name]?.contains(id) == true
                        : other.ones[back.name] == id
                    if !agrees { throw fail("stored: #\(id).\(name) has no other side") }
                }
            }
        }
        if let wrong = state.miscounts.first { throw fail("stored: \(wrong)") }
        for kind in ["A", "B"] as [Character] {
            let codes = state.objects.values.filter { $0.kind == kind }.compactMap(\.code)
            if Set(codes).count != codes.count { throw fail("stored: a code twice") }
        }
    }

    /// The store's own check.
    func verify() throws {
        let report = try StoreObserver.open(disk.location()).verify(level: .normal)
        if let problem = report.problems.first { throw fail("verify: \(problem)") }
        if !report.isSound { throw fail("verify: not sound") }
    }

    /// A commit was made: by a save, or a batch. `after` is what must be there now.
    func committed(_ after: ModelState?) throws {
        let now = try stored()
        try checkSound(now)
        if let after {
            let context = container.newContext()
            try compare(context, after, "stored")
        }
        if verifies || commit % 16 == 15 { try verify() }
        var after = after ?? now
        after.settle()
        commit += 1
        previous = newest
        for (id, object) in after.objects
        where newest.objects[id].map({ !$0.sameRow(as: object) }) ?? true {
            versions[id] = commit
        }
        for id in newest.objects.keys where after.objects[id] == nil { versions[id] = commit }
        newest = after
    }

    // MARK: Saving

    func save(
        _ editor: GraphEditor,
        _ random: inout SeededRandom,
        policy given: Int? = nil
    ) throws {
        let policies: [(String, MergePolicy)] = [
            ("error", .error), ("objectWins", .objectWinsByProperty),
            ("storeWins", .storeWinsByProperty), ("overwrite", .overwrite),
            ("rollback", .rollback),
        ]
        let number = given ?? max(0, Int(random.next() % 8) - 3)
        let (policyName, policy) = policies[number]
        editor.process()
        note("\(index(editor)): save, \(policyName)")
        let before = editor.context.hasChanges
        let forecast = GraphForecast(self, editor)
        let result: SaveResult
        do {
            result = try editor.context.save(mergePolicy: policy)
        } catch let error as StoreError {
            return try failed(editor, error, forecast, number, &random)
        }
        if forecast.isDenied, !forecast.isContested, !editor.isWild {
            throw fail("a save passed over deny")
        }
        if number == 0, forecast.mustConflict, !forecast.isUncertain {
            throw fail("a save passed over a conflict: \(forecast.reason)")
        }
        let isCertain =
            !forecast.isContested && !forecast.isUncertain && !editor.isWild
            && !forecast.hasDuplicates
        if isCertain, !result.replaced.isEmpty { throw fail("what is unique was replaced") }
        if result.commit != nil {
            try committed(isCertain ? forecast.after : nil)
            if !isCertain {
                try checkNothingCameBack(editor, number)
                try checkRevived(editor)
                // References that `noAction` left read as nil: from here on the model would guess.
                isOver = relations.contains { ["stale", "keeper", "kept"].contains($0.name) }
            }
        } else if isCertain, before, !forecast.after.sameAs(newest) {
            throw fail("a save wrote nothing")
        }
        editor.forget()
        editor.base = newest
        editor.commit = commit
        if !editor.context.readFailures.isEmpty {
            throw fail("after a save: \(editor.context.readFailures)")
        }
        if editor.context.hasChanges { throw fail("edits are left behind a save") }
        try compare(editor)
    }

    /// What was deleted is there again only where a policy says so, and with edits.
    private func checkNothingCameBack(_ editor: GraphEditor, _ policy: Int) throws {
        for id in newest.objects.keys where versions[id] == commit {
            let isNew = editor.edits.contains {
                if case .insert(id, _) = $0 { return true }
                return false
            }
            let wasThere = previous.objects[id] != nil
            if !isNew, !wasThere, policy != 1, policy != 3 {
                throw fail("\(name(id)) came back from the dead")
            }
        }
    }

    /// What a policy brings back, it brings back with the links that it had.
    private func checkRevived(_ editor: GraphEditor) throws {
        for (id, before) in editor.base.objects {
            guard previous.objects[id] == nil, let now = newest.objects[id] else { continue }
            func isUntouched(_ other: Int, _ name: String) -> Bool {
                newest.objects[other] != nil && previous.objects[other] != nil
                    && !editor.edits.contains { edit in
                        edit.mentions(id) || edit.mentions(other)
                    }
            }
            for (name, target) in before.ones {
                guard let relation = ModelRelation.named[name], relation.back?.isMany != false,
                    isUntouched(target, name)
                else { continue }
                if now.ones[name] != target { throw fail("\(self.name(id)) lost its \(name)") }
            }
            for (name, members) in before.lists {
                guard let relation = ModelRelation.named[name], relation.back?.isMany != false
                else { continue }
                for member in members where isUntouched(member, name) {
                    if now.lists[name]?.contains(member) == true { continue }
                    throw fail("\(self.name(id)) came back without its \(name)")
                }
            }
        }
    }

    private func failed(
        _ editor: GraphEditor,
        _ error: StoreError,
        _ forecast: GraphForecast,
        _ policy: Int,
        _ random: inout SeededRandom
    ) throws {
        note("   throws \(error.code)")
        let context = container.newContext()
        try compare(context, newest, "stored after a failed save")
        switch error.code {
        case .conflict:
            guard policy == 0, forecast.mayConflict else {
                throw fail("a conflict without a cause: \(error)")
            }
        case .deleteDenied:
            guard
                forecast.isDenied || forecast.isDeniedHere || forecast.isContested || editor.isWild
            else {
                throw fail("a deletion was denied without a cause: \(error)")
            }
        case .invalid:
            guard
                forecast.isMiscounted || forecast.isContested || forecast.isUncertain
                    || forecast.hasDuplicates || editor.isWild
            else {
                throw fail("a save was refused without a cause: \(error)")
            }
        case .notUnique:
            guard forecast.hasDuplicates || forecast.isContested else {
                throw fail("not unique without a cause: \(error)")
            }
        default:
            throw fail("a save threw \(error)")
        }
        try compare(editor)
        switch random.next() % 8 {
        case 0: break
        case 1...2: try advance(editor)
        case 3...5 where error.code == .conflict:
            try save(editor, &random, policy: 1 + Int(random.next() % 4))
        default:
            note("\(index(editor)): rollback")
            editor.context.rollback()
            editor.forget()
            try compare(editor)
        }
    }
}

extension ModelState {
    func sameAs(_ other: ModelState) -> Bool {
        objects.filter { !$0.value.isDead }.mapValues(\.plain)
            == other.objects.filter { !$0.value.isDead }.mapValues(\.plain)
    }
}

extension ModelState.Object {
    fileprivate var plain: ModelState.Object {
        var plain = self
        plain.isNew = false
        plain.killer = nil
        plain.lists = lists.filter { !$0.value.isEmpty }
        return plain
    }
}
