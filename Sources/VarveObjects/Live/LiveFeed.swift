// Brings the live lists and values of one context to where the context is.
//
// Invariants
// - All of them show one commit, `snapshot`, and the edits that were unsaved when it was reached.
// - A commit costs the rows that it changed, and each list that looks at an entity that changed.
//   The others are not looked at.
// - All have moved before the first of them tells anybody. What those who are told do is taken up
//   afterwards, one step after another.

import Synchronization
import VarveBase
import VarveRecords

/// A list or value that follows the store.
protocol LiveFollower: AnyObject {
    /// The entities that it looks at.
    var entities: Set<EntityID> { get }
    /// Whether unsaved edits are part of what it shows.
    var hasEdits: Bool { get }
    /// Where its IDs come from; nil: it has none.
    var source: ListSource? { get }
    /// It missed a step: the next one makes it anew.
    func noteBehind()
    /// Works out what it shows after a step; nil: the same as before.
    func prepare(_ step: LiveStep) -> LiveTurn?
}

/// A change that was worked out.
struct LiveTurn {
    /// Tells observers that it comes: they may still read what was shown before.
    var announce: () -> Void = {}
    /// Makes it so. Runs no code of an app.
    let show: () -> Void
    /// Tells that it came.
    var tell: () -> Void = {}
}

/// The members that ended, on whatever thread: they are taken out at the next step.
final class EndedMembers: Sendable {
    private let ended = Mutex<[Int]>([])

    func add(_ serial: Int) { ended.withLock { $0.append(serial) } }
    func take() -> [Int] {
        ended.withLock { ended in
            defer { ended = [] }
            return ended
        }
    }
}

final class LiveFeed {
    private struct Member {
        weak var follower: (any LiveFollower)?
        let entities: Set<EntityID>
        /// A collection of it may outlive it.
        weak var source: ListSource?
    }

    private struct ReadSource {
        weak var source: ListSource?
    }

    private weak var context: ManagedObjectContext?
    private let container: PersistentContainer
    private var held = HeldCommit()
    /// The commit that the lists show.
    private(set) var snapshot: RecordSnapshot? {
        didSet {
            if context?.isOfThePast != true { container.pins.set(&held, snapshot?.number) }
        }
    }
    /// By serial number: the one that was made first is told first.
    private var members: [Int: Member] = [:]
    private var serials: [EntityID: Set<Int>] = [:]
    /// Those that show unsaved edits.
    private var edited: Set<Int> = []
    let ended = EndedMembers()
    /// Sources that hold `snapshot`, since somebody read them.
    private var read: [ReadSource] = []
    private var serial = 0
    private var isMoving = false
    private var movesAgain = false
    /// The next step makes all lists anew: their objects are others.
    var replacesAll = false

    init(_ context: ManagedObjectContext) {
        self.context = context
        container = context.container
    }

    deinit { container.pins.set(&held, nil) }

    // MARK: Members

    /// Takes a member in. Returns its number, which goes to `remove` or `ended`.
    func add(_ follower: any LiveFollower) -> Int {
        serial += 1
        members[serial] = Member(
            follower: follower,
            entities: follower.entities,
            source: follower.source
        )
        for entity in follower.entities { serials[entity, default: []].insert(serial) }
        if follower.hasEdits { edited.insert(serial) }
        return serial
    }

    func remove(_ serial: Int) {
        guard let member = members.removeValue(forKey: serial) else { return }
        for entity in member.entities {
            serials[entity]?.remove(serial)
            if serials[entity]?.isEmpty == true { serials[entity] = nil }
        }
        edited.remove(serial)
    }

    private func removeEnded() {
        for serial in ended.take() {
            members[serial]?.source?.freeze(at: snapshot)
            remove(serial)
        }
        if members.isEmpty { (snapshot, read, replacesAll) = (nil, [], false) }
    }

    /// A source that holds the commit until the next one is reached.
    func noteRead(_ source: ListSource) { read.append(ReadSource(source: source)) }

    /// The commit for a new member: that of the others.
    func begin() throws(StoreError) -> RecordSnapshot {
        try container.checkOpen()
        if let snapshot { return snapshot }
        guard let context else { preconditionFailure("a live list is made by its context") }
        let current = try context.currentSnapshot()
        snapshot = current
        return current
    }

    // MARK: Moving

    /// Brings all members to the context's commit and edits.
    /// - Complexity: O(rows changed + members that look at their entities); with unsaved edits,
    ///   O(edits) for each member that looks at theirs.
    func move() {
        guard !isMoving else {
            movesAgain = true
            return
        }
        isMoving = true
        defer { isMoving = false }
        repeat {
            movesAgain = false
            moveOnce()
        } while movesAgain
    }

    private func moveOnce() {
        for tell in show() { tell() }
    }

    /// Moves all members. Returns what tells of it: by then the commit before is let go.
    private func show() -> [() -> Void] {
        removeEnded()
        guard let context, !members.isEmpty else { return [] }
        // If nothing can be read, the lists stay as they are.
        guard let newer = try? context.currentSnapshot() else { return [] }
        if snapshot == nil { replacesAll = true }
        let older = snapshot ?? newer
        var changes: [ObjectChanges]?
        if !replacesAll {
            changes =
                newer.number == older.number
                ? [] : container.feed.changes(after: older.number, through: newer.number)
        }
        replacesAll = false
        let last = serial
        let step = LiveStep(context, from: older, to: newer, changes)
        let wanted = followers(step, context)
        let turns = wanted.compactMap { members[$0]?.follower?.prepare(step) }
        for turn in turns { turn.announce() }
        snapshot = newer
        for turn in turns { turn.show() }
        read.removeAll { $0.source?.forget(unlessAt: newer.number) ?? true }
        for serial in wanted { noteShown(serial) }
        // What observers made meanwhile began at the commit before.
        for serial in members.keys where serial > last {
            members[serial]?.follower?.noteBehind()
            noteShown(serial)
            movesAgain = true
        }
        return turns.map(\.tell)
    }

    private func noteShown(_ serial: Int) {
        guard let follower = members[serial]?.follower else { return }
        if follower.hasEdits { edited.insert(serial) } else { edited.remove(serial) }
        members[serial]?.source = follower.source
    }

    /// Those that a step may concern, in their order.
    private func followers(_ step: LiveStep, _ context: ManagedObjectContext) -> [Int] {
        guard let entities = step.entities else { return members.keys.sorted() }
        var wanted = edited
        for entity in entities { if let all = serials[entity] { wanted.formUnion(all) } }
        for entity in context.editedEntities {
            if let all = serials[entity] { wanted.formUnion(all) }
        }
        return wanted.sorted()
    }
}

extension ManagedObjectContext {
    /// The entities with unsaved edits.
    /// - Complexity: O(edits).
    var editedEntities: Set<EntityID> {
        var entities: Set<EntityID> = []
        for object in changed.values { entities.insert(object.storage.model.record.id) }
        for edit in toManyEdits.values { entities.insert(edit.model.record.id) }
        return entities
    }

    /// Brings live lists and values to where the context is.
    func moveLive() {
        // In the middle of a save nothing is as it will be; its end moves them.
        if phase == .idle, hookObject == nil { live?.move() }
        announceStates()
    }

    /// In the view context edits show as soon as the main actor has time.
    func noteLiveEdit() {
        if live != nil, core.observes, phase == .idle { container.scheduleLive() }
    }

    /// What brings live lists along, made with the first of them.
    func liveFeed() -> LiveFeed {
        if let live { return live }
        let made = LiveFeed(self)
        live = made
        return made
    }
}
