// Undo and branches of rich values: at once, behind saves, and over what others did meanwhile.

import VarveObjects
import VarveTesting

extension RichWorld {
    /// Another value for an attribute, or all values of an earlier commit.
    private func changeOrRevert(
        _ editor: RichEditor,
        _ number: Int,
        _ random: inout SeededRandom
    ) throws {
        let object = try object(number, editor)
        if random.next() % 4 > 0 { return change(object, editor, number, &random) }
        let (commit, columns) = try pickCopy(&random)
        script.append("   #\(number) as of \(commit.rawValue)")
        try expect(
            try editor.context.revert(object, to: .commit(commit)),
            [],
            "a revert left something"
        )
        editor.lay(number, columns[number])
    }

    // MARK: Undo

    /// A step, undone and maybe redone; between them maybe a save, and a commit of others.
    func undo(
        _ editor: RichEditor,
        _ number: Int,
        _ place: Int,
        _ random: inout SeededRandom
    ) throws {
        let before = editor.shown(number)
        let own = editor.edits[number]?.names ?? []
        script.append("\(place): a group")
        try editor.context.withUndoGroup("edits") {
            for _ in 0..<(1 + random.next() % 3) { try changeOrRevert(editor, number, &random) }
        }
        let after = editor.shown(number)
        if before == after { return }
        var isSaved = false
        if random.next() % 3 == 0 {
            script.append("\(place): save, the object wins")
            isSaved = !editor.edits.isEmpty
            try settled(editor, try editor.context.save(mergePolicy: .objectWinsByProperty))
        }
        if random.next() % 3 == 0 { try others(editor, number, &random) }
        script.append("\(place): undo")
        var left = try editor.context.undo()
        var names: Set<String> = []
        var told: Set<String> = []
        let (now, row) = (editor.shown(number).texts, editor.base[number].texts)
        for name in before.changes(to: after) {
            let old = before.texts[name]
            if !isSaved, !own.contains(name), row[name] != old {
                // What others saved beneath the edit.
                told.insert(name)
                editor.uncover(number, [name])
            } else if now[name] != old {
                if now[name] == after.texts[name] { names.insert(name) } else { told.insert(name) }
            }
        }
        editor.lay(number, editor.shown(number).with(names, of: before))
        try expect(RichColumn.all(left), columns(number, told), "what an undo left")
        try compare(editor)
        if random.next() % 2 == 0 { return }
        if random.next() % 4 == 0 { try others(editor, number, &random) }
        script.append("\(place): redo")
        left = try editor.context.redo()
        let wanted = editor.shown(number)
        names = before.changes(to: after).filter { wanted.texts[$0] != after.texts[$0] }
        told = names.filter { wanted.texts[$0] != before.texts[$0] }
        editor.lay(number, wanted.with(names.subtracting(told), of: after))
        try expect(RichColumn.all(left), columns(number, told), "what a redo left")
    }

    private func columns(_ number: Int, _ names: Set<String>) -> Set<RichColumn> {
        Set(names.map { RichColumn(id: ids[number].objectID, name: $0) })
    }

    /// Another context changes the same object, and this one moves on.
    private func others(
        _ editor: RichEditor,
        _ number: Int,
        _ random: inout SeededRandom
    ) throws {
        guard let other = editors.first(where: { $0 !== editor }) else { return }
        script.append("the other one, saved:")
        try changeOrRevert(other, number, &random)
        try settled(other, try other.context.save(mergePolicy: .objectWinsByProperty))
        editor.context.advance()
        moved(editor)
    }

    // MARK: Branches

    /// A branch with edits, its parent with some behind it, and what becomes of both.
    func branch(
        _ editor: RichEditor,
        _ place: String,
        _ random: inout SeededRandom
    ) throws {
        script.append("\(place): a branch")
        let branch = RichEditor(try editor.context.branch(), editor.shown, editor.commit)
        try compare(branch)
        for _ in 0..<(1 + random.next() % 3) {
            let number = Int(random.next() % UInt64(ids.count))
            try changeOrRevert(branch, number, &random)
            if random.next() % 3 == 0 {
                script.append("   its parent:")
                try changeOrRevert(editor, number, &random)
            }
            if random.next() % 8 == 0, !editor.context.isOfThePast {
                script.append("   its parent is saved")
                try settled(editor, editor.context.save(mergePolicy: .objectWinsByProperty))
            }
            if random.next() % 4 == 0 {
                script.append("   it advances")
                branch.context.advance()
                branch.move(to: editor.shown, editor.commit)
                branch.forgetEqual()
            }
        }
        try compare(branch)
        if random.next() % 4 == 0 { return }
        try merge(branch, editor, &random)
        try compare(branch)
        try compare(editor)
    }

    private func merge(
        _ branch: RichEditor,
        _ editor: RichEditor,
        _ random: inout SeededRandom
    ) throws {
        let (policy, name): (BranchMergePolicy, String) = try pick(
            [(.error, "error"), (.branchWins, "branchWins"), (.parentWins, "parentWins")],
            &random
        )
        script.append("   it is merged, \(name)")
        var wanted = editor.shown
        var conflicts: Set<RichColumn> = []
        for (number, edit) in branch.edits {
            let now = wanted[number].texts
            let (before, after) = (branch.base[number].texts, edit.values.texts)
            var names = edit.names.filter { now[$0] != after[$0] }
            let met = names.filter { policy != .branchWins && now[$0] != before[$0] }
            conflicts.formUnion(columns(number, met))
            names.subtract(met)
            wanted[number] = wanted[number].with(names, of: edit.values)
        }
        do {
            let left = try branch.context.mergeIntoParent(policy)
            if policy == .error, !conflicts.isEmpty { throw fail("a merge passed a conflict") }
            try expect(RichColumn.all(left), conflicts, "what a merge left")
        } catch let error as StoreError where error.code == .conflict {
            if policy != .error || conflicts.isEmpty { throw error }
            let told = error.details.compactMap { detail in
                detail.objects.first.map { RichColumn(id: $0, name: detail.place.attribute ?? "") }
            }
            return try expect(Set(told), conflicts, "conflicts of a merge")
        }
        for number in ids.indices { editor.lay(number, wanted[number]) }
        branch.edits = [:]
        branch.move(to: editor.shown, editor.commit)
    }
}
