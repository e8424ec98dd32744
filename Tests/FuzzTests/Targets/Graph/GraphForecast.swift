// What a save should come to: the edits over the newest commit, and what others changed meanwhile.

struct GraphForecast {
    /// The newest commit with the edits.
    let after: ModelState
    let isDenied: Bool
    /// Whether the context itself, on its older commit, sees what forbids a deletion.
    let isDeniedHere: Bool
    /// Whether a relationship would lead to too few or too many.
    let isMiscounted: Bool
    /// Whether two objects would have one code.
    let hasDuplicates: Bool
    /// Rows that the save changes or deletes, or whose edits lead nowhere, and others changed.
    let mustConflict: Bool
    /// Whether there is a cause at all.
    let mayConflict: Bool
    /// Whether a policy has something to decide.
    var isContested: Bool { mustConflict }
    /// Edits that a later one took back: they may count as a wish or as nothing.
    let isUncertain: Bool
    let reason: String

    init(_ world: GraphWorld, _ editor: GraphEditor) {
        let newest = world.newest
        let after = editor.applied(to: newest)
        self.after = after
        isDenied = after.isDenied
        isDeniedHere = editor.shown.isDenied
        isMiscounted = !after.miscounts.isEmpty
        func duplicates(_ kind: Character) -> Bool {
            let codes = after.living(kind).compactMap { after.objects[$0]?.code }
            return Set(codes).count != codes.count
        }
        hasDuplicates = duplicates("A") || duplicates("B")
        func isNewer(_ id: Int) -> Bool { world.versions[id, default: 0] > editor.commit }
        var written: Set<Int> = []
        for (id, object) in after.objects where !object.isNew {
            guard let stored = newest.objects[id] else { continue }
            if object.isDead || !stored.sameRow(as: object) { written.insert(id) }
        }
        let shown = editor.shown
        let deletedHere = editor.endedByBoth.union(
            shown.objects.filter(\.value.isDead).keys
        )
        for (id, object) in shown.objects where !object.isNew {
            // What is shown as deleted is, wherever others put it since.
            if object.isDead, newest.objects[id] != nil { written.insert(id) }
            if let base = editor.base.objects[id], newest.objects[id] != nil,
                !base.sameRow(as: object)
            {
                written.insert(id)
            }
        }
        var homeless = Set(after.homeless).subtracting(deletedHere)
        let lost = after.lost.filter {
            !deletedHere.contains($0.id) && !deletedHere.contains($0.target)
        }
        for (id, _) in editor.attributes {
            if newest.objects[id] == nil, after.objects[id]?.isNew != true {
                // What both deleted was edited for nothing.
                if shown.objects[id]?.isDead != true { homeless.insert(id) }
            } else {
                written.insert(id)
            }
        }
        let newer = written.filter(isNewer)
        var named: Set<Int> = []
        var uncertain = false
        for edit in editor.edits {
            guard let subject = edit.subject else { continue }
            named.insert(subject.id)
            // Its column was set, by itself or by the list that it is in, and others deleted it.
            if newest.objects[subject.id] == nil,
                let base = editor.base.objects[subject.id],
                let now = shown.objects[subject.id], !now.isDead, !base.sameRow(as: now)
            {
                homeless.insert(subject.id)
            }
            if case .relate(_, _, let target?) = edit { named.insert(target) }
            if isNewer(subject.id),
                editor.base.objects[subject.id]?.ones[subject.name]
                    == shown.objects[subject.id]?.ones[subject.name]
            {
                uncertain = true
            }
        }
        mustConflict = !newer.isEmpty || !homeless.isEmpty || !lost.isEmpty
        reason =
            "rows \(newer.sorted()), deleted \(homeless.sorted()), lost "
            + "\(lost.map { "#\($0.id).\($0.name) -> #\($0.target)" })"
        isUncertain = uncertain
        // A new object takes the place of a stored one with its code, and with it the partners that
        // others gave that one meanwhile.
        let new = after.objects.values.filter { $0.isNew && !$0.isDead && $0.code != nil }
        let replaced = newest.objects.contains { id, object in
            isNewer(id) && new.contains { $0.kind == object.kind && $0.code == object.code }
        }
        mayConflict =
            mustConflict || uncertain || named.contains(where: isNewer)
            || replaced && !editor.edits.isEmpty
    }
}
