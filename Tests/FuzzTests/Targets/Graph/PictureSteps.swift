// The steps of a run about pictures: edits, undo, transactions, branches, and what drops edits.

import Foundation
import VarveObjects
import VarveTesting

extension PictureWorld {
    // MARK: Edits

    /// Edits that are one step.
    func group(_ desk: PictureDesk, _ random: inout SeededRandom) throws {
        let before = desk.state
        var inner = random
        note("\(desk.name): group {")
        try desk.context.withUndoGroup {
            for _ in 0...(random.next() % 4) { try edit(desk, &inner) }
        }
        note("}")
        random = inner
        desk.madeStep(since: before)
    }

    func edit(_ desk: PictureDesk, _ random: inout SeededRandom) throws {
        desk.tidy()
        let ids = pick(desk.state.gone.keys, &random).map { random.next() % 3 == 0 ? [$0] : [] }
        let id = ids?.first ?? pick(desk.state.shown.keys, &random)
        guard let id, desk.state.shown.count > 1 else { return try make(desk, &random) }
        switch random.next() % 16 {
        case 0...2: try make(desk, &random)
        case 3...8: try fill(desk, id, Int(random.next() % 4), &random)
        case 9...11: try assign(desk, id, &random)
        case 12...13: try link(desk, id, &random)
        default: if desk.state.gone[id] == nil { try delete(desk, id) }
        }
    }

    /// An edit, or the end, of one object.
    func strike(_ desk: PictureDesk, _ id: ManagedObjectID, _ random: inout SeededRandom) throws {
        let before = desk.state
        var inner = random
        try desk.context.withUndoGroup {
            if inner.next() % 2 == 0 { return try delete(desk, id) }
            for slot in 0..<4 { try fill(desk, id, slot, &inner) }
        }
        random = inner
        desk.madeStep(since: before)
    }

    private func make(_ desk: PictureDesk, _ random: inout SeededRandom) throws {
        let isAlbum = random.next() % 3 == 0
        let object: any Pictured = isAlbum ? Album(in: desk.context) : Photo(in: desk.context)
        let id = object.objectID
        var card = PictureCard(isAlbum: isAlbum)
        if let photo = object as? Photo, random.next() % 2 == 0 {
            card.album = pick(albums(desk), &random)
            photo.album = try card.album.flatMap { try desk.object($0) as? Album }
        }
        desk.state.shown[id] = card
        desk.held[id] = object
        note("\(desk.name): \(name(id)) = \(isAlbum ? "Album" : "Photo") in \(name(card.album))")
        for _ in 0..<3 { try fill(desk, id, Int(random.next() % 4), &random) }
        if random.next() % 2 == 0 { desk.held[id] = nil }
    }

    private func albums(_ desk: PictureDesk) -> [ManagedObjectID] {
        desk.state.shown.filter(\.value.isAlbum).map(\.key)
    }

    private func fill(
        _ desk: PictureDesk,
        _ id: ManagedObjectID,
        _ slot: Int,
        _ random: inout SeededRandom
    ) throws {
        let object = try desk.object(id)
        let count = [20, PictureContents.texts.count][min(slot, 1)]
        var number = Int(random.next() % UInt64(slot > 1 ? PictureContents.blobs.count : count))
        if slot > 1, random.next() % 6 == 0 { number = -1 }
        note("\(desk.name): \(name(id)).\(slot) = \(number)")
        switch slot {
        case 0: object.caption = number == 0 ? "" : "\(number)"
        case 1: object.text = PictureContents.texts[number]
        case 2: object.small = try blob(number, desk, Photo.columns.small)
        default: object.large = try blob(number, desk, Photo.columns.large)
        }
        desk.state.set(slot, of: id, to: number)
    }

    private func blob(
        _ number: Int,
        _ desk: PictureDesk,
        _ column: Column<Photo, Blob?>
    ) throws -> Blob? {
        if number < 0 { return nil }
        let bytes = PictureContents.blobs[number]
        var writer = try desk.context.makeBlob(for: column)
        try writer.append(bytes.prefix(bytes.count / 2))
        try writer.append(bytes.dropFirst(bytes.count / 2))
        return try writer.finish()
    }

    /// The blob of another object, which may be gone, or one that the app kept.
    private func assign(
        _ desk: PictureDesk,
        _ id: ManagedObjectID,
        _ random: inout SeededRandom
    ) throws {
        let slot = 2 + Int(random.next() % 2)
        var (blob, number): (Blob?, Int)
        let source = pick(Array(desk.state.shown.keys) + desk.state.gone.keys, &random) ?? id
        if let own = kept.randomElement(using: &random), random.next() % 3 == 0 {
            (blob, number) = (own.blob, own.number)
            note("\(desk.name): \(name(id)).\(slot) = a blob that is kept: \(number)")
        } else {
            let from = 2 + Int(random.next() % 2)
            let other = try desk.object(source)
            blob = from == 2 ? other.small : other.large
            let card = desk.state.shown[source] ?? desk.state.gone[source]?.card
            number = card?.values[from] ?? -1
            note("\(desk.name): \(name(id)).\(slot) = \(name(source)).\(from): \(number)")
        }
        let object = try desk.object(id)
        if slot == 2 { object.small = blob } else { object.large = blob }
        desk.state.set(slot, of: id, to: number)
    }

    private func link(
        _ desk: PictureDesk,
        _ id: ManagedObjectID,
        _ random: inout SeededRandom
    ) throws {
        guard desk.state.shown[id] != nil, let photo = try desk.object(id) as? Photo else { return }
        let album = random.next() % 4 == 0 ? nil : pick(albums(desk), &random)
        note("\(desk.name): \(name(id)).guestOf = \(name(album))")
        photo.guestOf = try album.flatMap { try desk.object($0) as? Album }
        desk.state.link(id, to: album)
    }

    /// What is deleted and not saved can be read still.
    private func delete(_ desk: PictureDesk, _ id: ManagedObjectID) throws {
        note("\(desk.name): delete \(name(id))")
        let object = try desk.object(id)
        let (card, row) = (desk.state.shown[id], desk.state.base[id])
        desk.context.delete(object)
        desk.context.processPendingChanges()
        for other in desk.state.delete(id) { desk.held[other] = nil }
        guard let card, let row else { return }
        let now = try PictureCard(object)
        for slot in now.values.indices
        where now.values[slot] != card.values[slot] && now.values[slot] != row.values[slot] {
            throw Violation("\(name(id)), deleted, is \(now.values), not \(row.values)")
        }
    }

    // MARK: Undo

    func undo(_ desk: PictureDesk) throws {
        guard !desk.steps.isEmpty else { return }
        if desk.isForeign { return try layForeign(desk, isUndo: true) }
        guard desk.place > 0 else {
            if desk.context.canUndo { throw Violation("there is more to undo") }
            return
        }
        note("\(desk.name): undo")
        let skipped = try desk.context.undo()
        desk.place -= 1
        try lay(desk, skipped)
    }

    func redo(_ desk: PictureDesk) throws {
        guard !desk.steps.isEmpty else { return }
        if desk.isForeign { return try layForeign(desk, isUndo: false) }
        guard desk.place < desk.steps.count - 1 else { return }
        note("\(desk.name): redo")
        let skipped = try desk.context.redo()
        desk.place += 1
        try lay(desk, skipped)
    }

    private func lay(_ desk: PictureDesk, _ skipped: [SkippedEdit]) throws {
        // Edits of what others deleted go and come again, but for those that a save gave up.
        for skip in skipped
        where desk.state.shown[skip.object] != nil || skip.reason != .deletedSince
            || desk.state.gone[skip.object]?.edits.isEmpty == false
        {
            throw Violation("skipped: \(skipped)")
        }
        for id in desk.state.gone.keys { desk.state.dropEdits(ofGone: id) }
        var step = desk.steps[desk.place]
        for skip in skipped { step.gone[skip.object] = nil }
        desk.state.adopt(step.shown, desk.state.gone.merging(step.gone) { $1 })
        desk.tidy()
        try check(desk)
    }

    /// Others' commits came between: the bytes of all that is shown must be there.
    private func layForeign(_ desk: PictureDesk, isUndo: Bool) throws {
        guard isUndo ? desk.context.canUndo : desk.context.canRedo else { return }
        note("\(desk.name): \(isUndo ? "undo" : "redo") beside others")
        if isUndo { try desk.context.undo() } else { try desk.context.redo() }
        try takeWhatIsShown(desk)
    }

    private func takeWhatIsShown(_ desk: PictureDesk) throws {
        let now = try PictureDesk.read(desk.context)
        var gone: [ManagedObjectID: GonePicture] = [:]
        let deleted = Set(desk.context.deletedObjects.map(\.objectID))
        let ids = Set(desk.state.gone.keys).union(desk.ended.keys)
        for id in ids where now[id] == nil && !deleted.contains(id) {
            // An edit of it keeps it, as long as no step takes that back.
            guard let row = desk.state.gone[id]?.row ?? desk.ended[id],
                let object = desk.context.registeredObject(with: id) as? any Pictured
            else { continue }
            var known = GonePicture(card: try PictureCard(object), row: row)
            known.edits = Set(
                known.card.values.indices.filter { known.card.values[$0] != known.row.values[$0] }
            )
            known.isRelinked = desk.state.gone[id]?.isRelinked == true
            gone[id] = known
        }
        // A redo may edit again what an undo leaves without edits.
        for (id, known) in desk.state.gone { desk.ended[id] = known.row }
        desk.state.adopt(now, gone)
        // Taken back, an edit is none, also where others have saved the same value.
        for (id, slots) in desk.state.edits {
            let left = slots.filter { now[id]?.values[$0] != desk.state.base[id]?.values[$0] }
            desk.state.edits[id] = left.isEmpty ? nil : left
        }
        desk.state.mayConflict = true
        desk.tidy()
        try checkHeld(desk)
    }

    // MARK: Edits that come to nothing

    /// A transaction that throws, in which the context may move on.
    func fail(_ desk: PictureDesk, _ random: inout SeededRandom) throws {
        let before = desk.state
        let moves = random.next() % 3 == 0
        var inner = random
        var failure: (any Error)?
        note("\(desk.name): transaction {")
        do {
            try desk.context.transaction {
                for _ in 0...(random.next() % 4) { try edit(desk, &inner) }
                if moves { desk.context.advance() }
                throw Refused()
            }
        } catch is Refused {
            failure = nil
        } catch { failure = error }
        if let failure { throw failure }
        note(moves ? "   moved on, } throws" : "} throws")
        desk.state = before
        if moves { try follow(desk) }
        desk.tidy()
        try check(desk)
        desk.forgetSteps()
    }

    func rollBack(_ desk: PictureDesk) throws {
        note("\(desk.name): roll back")
        desk.context.rollback()
        for id in desk.state.gone.keys { desk.state.dropEdits(ofGone: id) }
        desk.state.shown = desk.state.base
        desk.state.edits = [:]
        desk.state.relinked = []
        desk.state.deleted = []
        desk.state.mayConflict = false
        desk.tidy()
        desk.forgetSteps()
        try check(desk)
    }

    func refresh(_ desk: PictureDesk, _ random: inout SeededRandom) throws {
        let id = pick(desk.held.keys, &random)
        guard random.next() % 3 > 0, let id, let object = desk.held[id] else {
            note("\(desk.name): refresh all")
            desk.context.refreshAllObjects()
            return try follow(desk)
        }
        let keeps = random.next() % 2 == 0
        note("\(desk.name): refresh \(name(id))\(keeps ? ", its edits stay" : "")")
        refresh(object, desk.context, keeps)
        if !keeps {
            if desk.state.gone[id] != nil {
                desk.state.dropEdits(ofGone: id)
            } else if let row = desk.state.base[id] {
                desk.state.shown[id]?.values = row.values
                desk.state.edits[id] = nil
            }
            try takeLinks(desk)
            desk.forgetSteps()
        }
        try check(desk)
    }

    private func refresh(
        _ object: some ManagedObject,
        _ context: ManagedObjectContext,
        _ keeps: Bool
    ) {
        context.refresh(object, mergeChanges: keeps)
    }

    /// The relationships that are shown, whatever led to them.
    private func takeLinks(_ desk: PictureDesk) throws {
        for (id, card) in try PictureDesk.read(desk.context) {
            desk.state.shown[id]?.album = card.album
            desk.state.shown[id]?.guestOf = card.guestOf
        }
    }

    // MARK: Branches

    func branch(_ desk: PictureDesk, _ random: inout SeededRandom) throws {
        note("\(desk.name): branch {")
        let branch = PictureDesk("\(desk.name)'", try desk.context.branch(), [:])
        branch.state = desk.state
        for (id, known) in desk.state.gone where !known.edits.isEmpty {
            let now = try PictureCard(try branch.object(id))
            if now.values != known.card.values {
                throw Violation("in a branch \(name(id)) is \(now), not \(known.card)")
            }
        }
        // Of what others deleted a branch knows what its parent edited.
        branch.state.gone = [:]
        for _ in 0...(random.next() % 4) { try edit(branch, &random) }
        try check(branch)
        try check(desk)
        let before = desk.state
        switch random.next() % 4 {
        case 0: note("} dropped")
        case 1:
            note("} rolled back")
            branch.context.rollback()
            try same(try PictureDesk.read(branch.context), before.shown, "rolled back")
        default:
            note("} merged")
            try branch.context.mergeIntoParent()
            try check(branch)
            branch.held = [:]
            desk.state.adopt(branch.state.shown, before.gone)
            desk.tidy()
            try check(desk)
            desk.madeStep(since: before)
        }
    }
}
