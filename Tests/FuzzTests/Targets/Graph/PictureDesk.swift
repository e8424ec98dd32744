// One context of a run about pictures, and a plain account of what it must show.

import VarveObjects

/// What an object shows: numbers of contents.
struct PictureCard: Equatable {
    var isAlbum: Bool
    /// Caption, text, small blob, large blob.
    var values = [0, 0, -1, -1]
    var album: ManagedObjectID?
    var guestOf: ManagedObjectID?

    init(isAlbum: Bool) { self.isAlbum = isAlbum }

    /// Reads an object, with all bytes of its blobs.
    init(_ object: any Pictured) throws {
        isAlbum = object is Album
        values = [
            object.caption.isEmpty ? 0 : Int(object.caption) ?? -1,
            try PictureContents.number(of: object.text),
            try PictureContents.number(of: object.small),
            try PictureContents.number(of: object.large),
        ]
        if let photo = object as? Photo {
            (album, guestOf) = (photo.album?.objectID, photo.guestOf?.objectID)
        }
    }

    func leadsElsewhere(_ row: PictureCard) -> Bool {
        album != row.album || guestOf != row.guestOf
    }
}

/// An object that others deleted and somebody has still.
struct GonePicture: Equatable {
    var card: PictureCard
    /// Its last row.
    var row: PictureCard
    /// The attributes that were edited.
    var edits: Set<Int> = []
    /// Whether it was led elsewhere before.
    var isRelinked = false
}

/// What a context must show.
struct PictureState {
    /// The number of its commit, and what that has.
    var commit = 0
    var base: [ManagedObjectID: PictureCard] = [:]
    var shown: [ManagedObjectID: PictureCard] = [:]
    /// Edited attributes of what was stored.
    var edits: [ManagedObjectID: Set<Int>] = [:]
    /// Stored photos whose relationships were edited.
    var relinked: Set<ManagedObjectID> = []
    /// Deleted here, and stored.
    var deleted: Set<ManagedObjectID> = []
    var gone: [ManagedObjectID: GonePicture] = [:]
    /// Something that edits led to is gone, or steps were undone beside others: a save may fail.
    var mayConflict = false

    var isEdited: Bool {
        !edits.isEmpty || !relinked.isEmpty || !deleted.isEmpty
            || gone.contains { !$0.value.edits.isEmpty }
            || shown.contains { base[$0.key] == nil }
    }

    /// Notes that an attribute of an object has another value.
    mutating func set(_ slot: Int, of id: ManagedObjectID, to value: Int) {
        if var known = gone[id] {
            known.card.values[slot] = value
            if known.row.values[slot] == value {
                known.edits.remove(slot)
            } else {
                known.edits.insert(slot)
            }
            gone[id] = known
            return
        }
        shown[id]?.values[slot] = value
        noteEdit(slot, of: id, value)
    }

    private mutating func noteEdit(_ slot: Int, of id: ManagedObjectID, _ value: Int) {
        guard let stored = base[id] else { return }
        var slots = edits[id] ?? []
        if stored.values[slot] == value { slots.remove(slot) } else { slots.insert(slot) }
        edits[id] = slots.isEmpty ? nil : slots
    }

    mutating func link(_ id: ManagedObjectID, to album: ManagedObjectID?) {
        shown[id]?.guestOf = album
        if base[id] != nil { relinked.insert(id) }
    }

    /// Deletes an object with the photos of an album; returns what went.
    mutating func delete(_ id: ManagedObjectID) -> Set<ManagedObjectID> {
        var doomed: Set<ManagedObjectID> = [id]
        for (other, card) in shown where card.album == id { doomed.insert(other) }
        for other in doomed {
            shown[other] = nil
            (edits[other], gone[other]) = (nil, nil)
            relinked.remove(other)
            if base[other] != nil { deleted.insert(other) }
        }
        for (other, card) in shown where card.guestOf == id { link(other, to: nil) }
        return doomed
    }

    /// Of an object that others deleted its last row is shown.
    mutating func dropEdits(ofGone id: ManagedObjectID) {
        guard let known = gone[id] else { return }
        gone[id] = GonePicture(card: known.row, row: known.row)
    }

    /// The same commit, with what an undo, a branch or a refresh made of the edits.
    mutating func adopt(
        _ now: [ManagedObjectID: PictureCard],
        _ goneNow: [ManagedObjectID: GonePicture]
    ) {
        for (id, card) in now {
            let before = shown[id] ?? base[id]
            for slot in card.values.indices where before?.values[slot] != card.values[slot] {
                noteEdit(slot, of: id, card.values[slot])
            }
            if let stored = base[id] {
                if card.leadsElsewhere(stored) {
                    relinked.insert(id)
                } else {
                    relinked.remove(id)
                }
            }
        }
        shown = now
        gone = goneNow
        edits = edits.filter { now[$0.key] != nil }
        relinked = relinked.filter { now[$0] != nil }
        deleted = Set(base.keys.filter { now[$0] == nil && goneNow[$0] == nil })
    }
}

/// A context, what the app holds of it, and its steps to undo.
final class PictureDesk {
    let name: String
    let context: ManagedObjectContext
    var state = PictureState()
    var held: [ManagedObjectID: any Pictured] = [:]
    /// The last rows of what others deleted as well: an undo of the own deletion leaves its edits.
    var ended: [ManagedObjectID: PictureCard] = [:]
    /// What was shown before the first step that can be undone, and behind each; empty: nothing is
    /// recorded.
    var steps: [PictureState] = []
    var place = 0
    /// Others' commits came between: what an undo shows then is the truth.
    var isForeign = false

    init(_ name: String, _ context: ManagedObjectContext, _ stored: [ManagedObjectID: PictureCard])
    {
        (self.name, self.context) = (name, context)
        (state.base, state.shown) = (stored, stored)
    }

    /// Reads all that a context shows.
    static func read(_ context: ManagedObjectContext) throws -> [ManagedObjectID: PictureCard] {
        var all: [ManagedObjectID: PictureCard] = [:]
        for photo in try context.fetch(Photo.all) { all[photo.objectID] = try PictureCard(photo) }
        for album in try context.fetch(Album.all) { all[album.objectID] = try PictureCard(album) }
        if let failure = context.readFailures.first { throw Violation("read failed: \(failure)") }
        return all
    }

    /// The object that somebody holds, or a fault.
    func object(_ id: ManagedObjectID) throws -> any Pictured {
        if let object = held[id] { return object }
        guard let object = try context.object(with: id) as? any Pictured else {
            throw Violation("another kind of object")
        }
        return object
    }

    /// What nobody can hold any more is let go of.
    func tidy() {
        held = held.filter { state.shown[$0.key] != nil || state.gone[$0.key] != nil }
        state.gone = state.gone.filter { id, known in
            held[id] != nil || !known.edits.isEmpty
                || known.isRelinked && context.registeredObject(with: id) != nil
        }
    }

    func forgetSteps() {
        guard !steps.isEmpty else { return }
        context.removeAllUndoSteps()
        (steps, place, isForeign) = ([state], 0, false)
    }

    /// Behind edits that are one step.
    func madeStep(since before: PictureState) {
        if steps.isEmpty || isForeign { return }
        if before.shown == state.shown, before.gone == state.gone { return forgetSteps() }
        steps.removeSubrange((place + 1)...)
        steps.append(state)
        place += 1
    }
}
