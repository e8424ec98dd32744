// Saves and moves of a run about pictures: what they write is foretold from what each side has.

import VarveObjects
import VarveTesting

/// What a save may write.
struct PictureForecast {
    /// By object, the numbers that each attribute may have; objects that are not here go.
    var values: [ManagedObjectID: [Set<Int>]] = [:]
    /// Objects that may also be gone.
    var unsure: Set<ManagedObjectID> = []
    /// Objects of others that come back.
    var revived: Set<ManagedObjectID> = []
    var mustConflict = false
    var mayConflict = false
    /// Both sides brought an object back.
    var meetsReturned = false

    init(_ world: PictureWorld, _ state: PictureState, _ policy: String) {
        mayConflict = state.mayConflict || !state.relinked.isEmpty
        let givesUp = policy == "store" || policy == "rollback"
        let giveUps = givesUp && state.deleted.contains { world.isChanged($0, since: state) }
        for (id, theirs) in world.stored {
            values[id] = theirs.values.map { [$0] }
            // A deletion takes the link of a guest that others put there.
            if theirs.guestOf.map(state.deleted.contains) == true { mayConflict = true }
            if state.deleted.contains(id) {
                if world.isTouched(id, since: state) { mustConflict = true }
                if world.isChanged(id, since: state) { mayConflict = true }
                if giveUps { unsure.insert(id) } else { values[id] = nil }
            } else if theirs.album.map(state.deleted.contains) == true {
                // Others put it in the reach of a deletion.
                (mayConflict, values[id]) = (true, Self.any)
                unsure.insert(id)
            } else if let mine = state.shown[id] {
                merge(id, mine, theirs, world, state, policy)
            } else if state.gone[id] != nil {
                (mayConflict, values[id]) = (true, Self.any)
            }
        }
        for (id, mine) in state.shown where world.stored[id] == nil {
            if state.base[id] == nil {
                // New.
                values[id] = mine.values.map { [$0] }
                let ends = [mine.album, mine.guestOf].compactMap(\.self)
                if ends.contains(where: { world.stored[$0] == nil }) { mayConflict = true }
                continue
            }
            meet(id, mine, mine.album, state, state.edits[id] ?? [], givesUp)
            if state.edits[id] == nil, state.relinked.contains(id) {
                (values[id], mayConflict) = (mine.values.map { [$0] }, true)
                unsure.insert(id)
            }
        }
        for (id, known) in state.gone where world.stored[id] == nil {
            meet(id, known.card, known.row.album, state, known.edits, givesUp)
            // With a relationship alone it comes back as well, unless it leads where it led.
            if known.edits.isEmpty, known.isRelinked, !givesUp {
                (values[id], mayConflict) = (known.row.values.map { [$0] }, true)
                unsure.insert(id)
                revived.insert(id)
            }
        }
    }

    private static let any = [Set<Int>](repeating: Set(-1..<100), count: 4)

    /// Both sides have it.
    private mutating func merge(
        _ id: ManagedObjectID,
        _ mine: PictureCard,
        _ theirs: PictureCard,
        _ world: PictureWorld,
        _ state: PictureState,
        _ policy: String
    ) {
        guard let base = state.base[id] else {
            // Both brought it back, of which no custom policy is asked.
            (mayConflict, meetsReturned, values[id]) = (true, true, Self.any)
            return
        }
        let edits = state.edits[id] ?? []
        if edits.isEmpty, !state.relinked.contains(id) { return }
        let isTouched = world.isTouched(id, since: state)
        let isChanged = world.isChanged(id, since: state)
        if isTouched, !edits.isEmpty { mustConflict = true }
        if isChanged { mayConflict = true }
        values[id] = mine.values.indices.map { slot in
            let (own, other) = (mine.values[slot], theirs.values[slot])
            let edited = edits.contains(slot) ? own : other
            if !isChanged { return [edited] }
            switch policy {
            case "object": return [edited]
            case "overwrite": return edits.isEmpty ? [own, other] : isTouched ? [own] : [edited]
            case "store": return [other == base.values[slot] ? edited : other]
            default: return isTouched ? [other] : [edited, other]
            }
        }
    }

    /// Others deleted it: it comes back with what was edited, or stays away.
    private mutating func meet(
        _ id: ManagedObjectID,
        _ mine: PictureCard,
        _ album: ManagedObjectID?,
        _ state: PictureState,
        _ edits: Set<Int>,
        _ givesUp: Bool
    ) {
        if edits.isEmpty { return }
        mustConflict = true
        mayConflict = true
        if givesUp { return }
        values[id] = mine.values.map { [$0] }
        revived.insert(id)
        // It comes back where a deletion reaches it.
        if let album, state.deleted.contains(album) { unsure.insert(id) }
    }
}

extension PictureWorld {
    /// Whether others changed or deleted an object behind a context's commit.
    func isTouched(_ id: ManagedObjectID, since state: PictureState) -> Bool {
        touched[id] ?? 0 > state.commit
    }

    /// The same, or wrote it as it was.
    func isChanged(_ id: ManagedObjectID, since state: PictureState) -> Bool {
        max(touched[id] ?? 0, rewritten[id] ?? 0) > state.commit
    }

    // MARK: Saving

    func save(_ desk: PictureDesk, _ random: inout SeededRandom) throws {
        let kinds: [(name: String, policy: MergePolicy, resolution: ConflictResolution)] = [
            ("error", .error, .fail), ("object", .objectWinsByProperty, .objectWinsByProperty),
            ("overwrite", .overwrite, .overwrite), ("rollback", .rollback, .rollback),
            ("store", .storeWinsByProperty, .storeWinsByProperty),
        ]
        let kind = kinds[Int(random.next() % 5)]
        let isCustom = kind.name != "error" && random.next() % 2 == 0
        let policy = isCustom ? asking(kind.resolution) : kind.policy
        try save(desk, policy, kind.name, isCustom: isCustom)
    }

    /// Reads the bytes of all sides first.
    private func asking(_ resolution: ConflictResolution) -> MergePolicy {
        .custom { conflict in
            for side in [conflict.base, conflict.mine, conflict.theirs] {
                let photo = side?.snapshot(of: Photo.self)
                let album = side?.snapshot(of: Album.self)
                for blob in [photo?.small, photo?.large, album?.small, album?.large] {
                    _ = try PictureContents.number(of: blob ?? nil)
                }
                for text in [photo?.text, album?.text] {
                    if let text { _ = try PictureContents.number(of: text) }
                }
            }
            return resolution
        }
    }

    func save(
        _ desk: PictureDesk,
        _ policy: MergePolicy,
        _ name: String,
        isCustom: Bool = false
    ) throws {
        note("\(desk.name): save, \(name)\(isCustom ? " by a custom policy" : "")")
        let forecast = PictureForecast(self, desk.state, name)
        let (state, before) = (desk.state, stored)
        let isForeign = state.commit != commits
        let result: SaveResult
        do { result = try desk.context.save(mergePolicy: policy) } catch let error as StoreError
            where error.code == .conflict
            && (name == "error" && forecast.mayConflict || isCustom && forecast.meetsReturned)
        {
            note("   conflict")
            return try check(desk)
        }
        if name == "error", forecast.mustConflict { throw Violation("nobody told of a conflict") }
        try take(try PictureDesk.read(container.newContext()), forecast, result, state)
        settle(desk, before)
        desk.tidy()
        try check(desk)
        try verify()
        if isForeign || !forecast.revived.isEmpty { meetOthers(desk) }
    }

    /// What is stored now.
    private func take(
        _ now: [ManagedObjectID: PictureCard],
        _ forecast: PictureForecast,
        _ result: SaveResult,
        _ state: PictureState
    ) throws {
        for (id, card) in now {
            guard let allowed = forecast.values[id] else {
                throw Violation("stored: \(name(id)) is there: \(say(card))")
            }
            for (slot, value) in card.values.enumerated() where !allowed[slot].contains(value) {
                throw Violation("stored: \(name(id)) is \(say(card)), not \(allowed)")
            }
        }
        for id in forecast.values.keys where now[id] == nil && !forecast.unsure.contains(id) {
            throw Violation("stored: \(name(id)) is not there")
        }
        guard result.commit != nil else {
            return try same(now, stored, "stored by a save of nothing")
        }
        commits += 1
        for id in Set(now.keys).union(stored.keys) {
            if now[id] != stored[id] { touched[id] = commits }
            if state.edits[id] != nil || state.relinked.contains(id) { rewritten[id] = commits }
        }
        stored = now
    }

    /// The context has no edits now, and stands on the newest commit.
    private func settle(_ desk: PictureDesk, _ before: [ManagedObjectID: PictureCard]) {
        let old = desk.state
        var new = PictureState()
        (new.commit, new.base, new.shown) = (commits, stored, stored)
        for (id, row) in old.base where stored[id] == nil && before[id] == nil {
            if old.deleted.contains(id) { continue }
            new.gone[id] = GonePicture(card: row, row: row)
        }
        for (id, known) in old.gone where stored[id] == nil {
            new.gone[id] = GonePicture(card: known.row, row: known.row)
        }
        desk.state = new
        desk.ended = [:]
        // What the save gave up, no step brings again. A save of nothing gives nothing up.
        if !old.isEdited, !old.gone.contains(where: { $0.value.isRelinked }) { return }
        for step in desk.steps.indices {
            for id in desk.steps[step].gone.keys { desk.steps[step].dropEdits(ofGone: id) }
        }
    }

    // MARK: Moving

    func advance(_ desk: PictureDesk) throws {
        note("\(desk.name): advance")
        desk.context.advance()
        try follow(desk)
    }

    /// The context stands on the newest commit, with its edits.
    func follow(_ desk: PictureDesk) throws {
        guard desk.state.commit != commits else { return try check(desk) }
        let old = desk.state
        var new = old
        (new.commit, new.base, new.edits) = (commits, stored, [:])
        new.deleted = old.deleted.filter { stored[$0] != nil }
        for id in old.deleted.subtracting(new.deleted) { desk.ended[id] = old.base[id] }
        new.gone = old.gone.filter { stored[$0.key] == nil }
        new.shown = old.shown.filter { old.base[$0.key] == nil }
        for (id, row) in old.base where stored[id] == nil && !old.deleted.contains(id) {
            if row.isAlbum || old.relinked.contains(id) { new.mayConflict = true }
            guard let card = old.shown[id] else { continue }
            new.gone[id] = GonePicture(
                card: card,
                row: row,
                edits: old.edits[id] ?? [],
                isRelinked: old.relinked.contains(id) && card.leadsElsewhere(row)
            )
        }
        let now = try PictureDesk.read(desk.context)
        for (id, theirs) in stored where !new.deleted.contains(id) {
            if old.gone[id] != nil || old.base[id] == nil && old.shown[id] != nil {
                // Others brought it back; what was edited here is an edit of that.
                new.shown[id] = now[id]
                new.edits[id] = edits(now[id], theirs)
                new.mayConflict = true
                continue
            }
            new.shown[id] = theirs
            guard let mine = old.shown[id], let slots = old.edits[id] else { continue }
            for slot in slots { new.shown[id]?.values[slot] = mine.values[slot] }
            new.edits[id] = slots
        }
        try takeReach(now, &new)
        new.relinked = old.relinked.filter { new.shown[$0] != nil && stored[$0] != nil }
        for (id, card) in new.shown where stored[id].map(card.leadsElsewhere) == true {
            new.relinked.insert(id)
        }
        desk.state = new
        desk.tidy()
        try check(desk)
        meetOthers(desk)
    }

    private func edits(_ mine: PictureCard?, _ theirs: PictureCard) -> Set<Int>? {
        let slots = theirs.values.indices.filter { mine?.values[$0] != theirs.values[$0] }
        return slots.isEmpty ? nil : Set(slots)
    }

    /// What others put in the reach of a deletion, or took out of it, and where things lead.
    private func takeReach(
        _ now: [ManagedObjectID: PictureCard],
        _ new: inout PictureState
    ) throws {
        for (id, card) in new.shown {
            if let shown = now[id] {
                new.shown[id]?.album = shown.album
                new.shown[id]?.guestOf = shown.guestOf
                continue
            }
            let album = stored[id]?.album ?? card.album
            guard album.map(new.deleted.contains) == true else { continue }
            new.shown[id] = nil
            new.edits[id] = nil
            if stored[id] != nil { new.deleted.insert(id) }
        }
        for id in new.deleted {
            guard let shown = now[id], let theirs = stored[id] else { continue }
            new.deleted.remove(id)
            new.shown[id] = shown
            new.edits[id] = edits(shown, theirs)
        }
    }

    /// Steps to undo meet what others did from here on; or there are none.
    private func meetOthers(_ desk: PictureDesk) {
        if desk.steps.isEmpty { return }
        if commits % 2 == 0 { return desk.forgetSteps() }
        desk.isForeign = true
    }
}
