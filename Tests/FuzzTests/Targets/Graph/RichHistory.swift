// Rich values of earlier commits: contexts of the past, what commits and versions tell, reverts.

import VarveObjects
import VarveTesting

extension RichWorld {
    /// The commits, oldest first.
    private var commits: [CommitNumber] { copies.keys.sorted() }

    func pick<Value>(_ values: [Value], _ random: inout SeededRandom) throws -> Value {
        guard !values.isEmpty else { throw fail("there is nothing to pick") }
        return values[Int(random.next() % UInt64(values.count))]
    }

    /// A commit, and what the store held then.
    func pickCopy(
        _ random: inout SeededRandom
    ) throws -> (number: CommitNumber, columns: [RichColumns]) {
        let number = try pick(commits, &random)
        guard let columns = copies[number] else { throw fail("there is no copy of \(number)") }
        return (number, columns)
    }

    // MARK: Contexts of the past

    func lookBack(_ random: inout SeededRandom) throws {
        let (number, columns) = try pickCopy(&random)
        let isToken = random.next() % 2 == 0
        let point: HistoryPoint =
            isToken ? .token(try container.historyToken(at: number)) : .commit(number)
        script.append("a context of \(number.rawValue)")
        let past = RichEditor(try container.newContext(at: point), columns, number)
        try compare(past)
        let place = "at \(number.rawValue)"
        let object = Int(random.next() % UInt64(ids.count))
        switch random.next() % 4 {
        case 0: try ask(past, place, &random)
        case 1:
            change(try self.object(object, past), past, object, &random)
            past.context.advance()
            try compare(past)
            try ask(past, place, &random)
            past.context.rollback()
            past.edits = [:]
        case 2: try branch(past, place, &random)
        default:
            let other = try pickCopy(&random)
            script.append("   #\(object) as of \(other.number.rawValue)")
            let left = try past.context.revert(ids[object], to: .commit(other.number))
            try expect(left, [], "a revert left something")
            past.lay(object, other.columns[object])
        }
        try compare(past)
    }

    // MARK: What is told

    func tellHistory(_ number: Int, _ random: inout SeededRandom) throws {
        let (first, columns) = try pickCopy(&random)
        script.append("the history after \(first.rawValue), the versions of #\(number)")
        let told = try container.history(after: container.historyToken(at: first)).commits()
        try expect(told.map(\.number), commits.filter { $0 > first }, "commits")
        var before = columns
        let looked = told.isEmpty ? first : try pick(told, &random).number
        for commit in told {
            let after = copies[commit.number] ?? []
            let changes = commit.changes(of: Alpha.self)
            let name = "of commit \(commit.number.rawValue)"
            try expect(changes.inserted + changes.deleted, [], "insertions and deletions \(name)")
            let updated = Set(changes.updated)
            for number in ids.indices {
                let may = touched[commit.number]?.contains(number) == true
                let isOther = before[number] != after[number]
                if updated.contains(ids[number]) ? !may : isOther {
                    throw fail("\(name): the changes are \(updated)")
                }
            }
            if commit.number == looked {
                try expect(try commit.values(of: ids), after, "the values \(name)")
                try expect(try commit.valuesBefore(of: ids), before, "the values before \(name)")
            }
            before = after
        }
        try tellVersions(number, &random)
    }

    private func expect(
        _ values: [Alpha.ID: Alpha.Snapshot],
        _ columns: [RichColumns],
        _ what: String
    ) throws {
        try expect(values.count, ids.count, what)
        for (id, wanted) in zip(ids, columns) {
            try expect(values[id].map { RichValues($0).parts }, wanted.parts, what)
        }
    }

    /// The versions of an object are what the copies of the store have of it.
    private func tellVersions(_ number: Int, _ random: inout SeededRandom) throws {
        var versions: [ObjectVersion<Alpha>] = []
        let page = 1 + Int(random.next() % 8)
        while true {
            let before = versions.last?.commit
            let more = try container.versions(of: ids[number], limit: page, before: before)
            versions += more
            if more.count < page { break }
        }
        var left = versions.reversed()[...]
        var before: RichColumns?
        for commit in commits {
            guard let now = copies[commit]?[number] else { continue }
            let name = "#\(number) in commit \(commit.rawValue)"
            guard let version = left.first, version.commit == commit else {
                if before != now { throw fail("there is no version of \(name)") }
                continue
            }
            left.removeFirst()
            try expect(version.values.map { RichValues($0).parts }, now.parts, name)
            let old = version.previous.map { RichValues($0).parts }
            try expect(old, before?.parts, "\(name), before")
            try expect(version.change, before == nil ? .inserted : .updated, name)
            if let before {
                // What is derived is of no interest here.
                let changed = Set(version.changedProperties).intersection(now.texts.keys)
                try expect(changed, before.changes(to: now), "\(name), changed")
                let mayBeSame = touched[commit]?.contains(number) == true
                if before == now, !mayBeSame { throw fail("there is a version of \(name)") }
            }
            before = now
        }
        try expect(left.map(\.commit), [], "#\(number): versions of unknown commits")
    }

    // MARK: Reverts

    func revertObject(
        _ editor: RichEditor,
        _ number: Int,
        _ place: Int,
        _ random: inout SeededRandom
    ) throws {
        let before = editor.shown(number)
        let (commit, columns) = try pickCopy(&random)
        script.append("\(place): #\(number) as of \(commit.rawValue)")
        let left = try editor.context.revert(ids[number], to: .commit(commit))
        try expect(left, [], "a revert left something")
        editor.lay(number, columns[number])
        if before == columns[number] || random.next() % 3 > 0 { return }
        try compare(editor)
        script.append("\(place): undone")
        try expect(try editor.context.undo(), [], "an undo left something")
        editor.lay(number, before)
    }

    func revertCommit(
        _ editor: RichEditor,
        _ place: Int,
        _ random: inout SeededRandom
    ) throws {
        let commit = try pick(commits, &random)
        guard let old = copies[CommitNumber(commit.rawValue - 1)], let new = copies[commit] else {
            return
        }
        let (policy, name): (RevertPolicy, String) = try pick(
            [(.error, "error"), (.skip, "skip"), (.overwrite, "overwrite")],
            &random
        )
        script.append("\(place): revert \(commit.rawValue), \(name)")
        var wanted = editor.shown
        var conflicts: Set<RichColumn> = []
        for number in ids.indices {
            var names = old[number].changes(to: new[number])
            let (before, after) = (old[number].texts, new[number].texts)
            let now = wanted[number].texts
            for name in names where now[name] != before[name] && now[name] != after[name] {
                conflicts.insert(RichColumn(id: ids[number].objectID, name: name))
                if policy != .overwrite { names.remove(name) }
            }
            wanted[number] = wanted[number].with(names, of: old[number])
        }
        do {
            let left = try editor.context.revert(commit: commit, policy: policy)
            if commit > editor.commit { throw fail("a commit is reverted that is not seen") }
            if policy == .error, !conflicts.isEmpty { throw fail("a revert passed a conflict") }
            let told = policy == .overwrite ? [] : conflicts
            try expect(RichColumn.all(left), told, "what a revert left")
        } catch let error as StoreError where error.code == .invalidRequest {
            if commit <= editor.commit { throw error }
            return
        } catch let error as StoreError where error.code == .revertConflict {
            let told = error.details.compactMap { detail in
                detail.objects.first.map { RichColumn(id: $0, name: detail.place.attribute ?? "") }
            }
            if policy != .error || conflicts.isEmpty { throw error }
            return try expect(Set(told), conflicts, "conflicts of a revert")
        }
        for number in ids.indices { editor.lay(number, wanted[number]) }
    }
}

/// A column of an object, as what was left and conflicts name it.
struct RichColumn: Hashable {
    let id: ManagedObjectID
    let name: String

    static func all(_ edits: [SkippedEdit]) -> Set<RichColumn> {
        Set(edits.map { RichColumn(id: $0.object, name: $0.property ?? "") })
    }
}

extension RichValues {
    init(_ row: Alpha.Snapshot) {
        self.init()
        (home, trip, words, scores) = (row.home, row.trip, row.words, row.scores)
        (look, price) = (row.look, row.price)
        (stay, pause) = (row.stay.value, row.pause?.value)
    }
}
