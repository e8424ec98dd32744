// Pictures and large texts in two contexts of one store: whoever may show bytes shows them, and no
// file stays that nothing names.
//
// Relationships are read out behind merges and not foretold: other worlds are about them. Values
// are foretold everywhere but in an undo that meets what others did.

import VarveInspection
import VarveObjects
import VarveTesting

final class PictureWorld: FuzzedWorld {
    private(set) var disk = SimulatedDisk()
    private let options: ContainerOptions
    private(set) var container: PersistentContainer
    var desks: [PictureDesk] = []
    /// What the newest commit has, and its number.
    var stored: [ManagedObjectID: PictureCard] = [:]
    var commits = 0
    /// The commit that changed or deleted an object last; and one that wrote it as it was.
    var touched: [ManagedObjectID: Int] = [:]
    var rewritten: [ManagedObjectID: Int] = [:]
    /// Blobs that the app kept, with the numbers of their contents.
    var kept: [(blob: Blob, number: Int)] = []
    var script: [String] = []
    private var names: [ManagedObjectID: Int] = [:]
    /// Files in the folder of blobs that are none of the store's.
    private var foreignFiles: Set<String> = []
    private let observes: Bool
    private var observers: [GraphObserver] = []
    /// What an observer could not read.
    private var failure: (any Error)?

    init(_ setup: UInt64, _ options: ContainerOptions, observes: Bool) throws {
        (self.options, self.observes) = (options, observes)
        container = try PersistentContainer.openNow(
            on: disk,
            schema: PictureSchema.self,
            options: options
        )
        try makeDesks()
    }

    private func makeDesks() throws {
        desks = ["0", "1"].map { PictureDesk($0, container.newContext(), stored) }
        // A context stands on the commit that it reads first.
        for desk in desks {
            desk.state.commit = commits
            try check(desk)
        }
        desks[0].context.undoLimit = 1_000
        desks[0].steps = [desks[0].state]
    }

    func end() {
        (desks, kept, observers) = ([], [], [])
        try? container.closeNow(discardingEdits: true)
    }

    func note(_ line: @autoclosure () -> String) { script.append(line()) }

    func name(_ id: ManagedObjectID?) -> String { id.map { "#\(number($0))" } ?? "nil" }

    private func number(_ id: ManagedObjectID) -> Int {
        if let known = names[id] { return known }
        names[id] = names.count
        return names.count - 1
    }

    /// One of some objects, in an order that a seed repeats.
    func pick(
        _ ids: some Collection<ManagedObjectID>,
        _ random: inout SeededRandom
    ) -> ManagedObjectID? {
        ids.sorted { number($0) < number($1) }.randomElement(using: &random)
    }

    // MARK: Steps

    func step(_ number: UInt64) throws {
        var random = SeededRandom(seed: number)
        if random.next() % 128 == 0 { return try reopen(&random) }
        let desk = desks[random.next() % 3 == 0 ? 1 : 0]
        switch random.next() % 32 {
        case 0...8: try group(desk, &random)
        case 9...13: try save(desk, &random)
        case 14...15: try advance(desk)
        case 16...17: try undo(desk)
        case 18: try redo(desk)
        case 19: try fail(desk, &random)
        case 20...21: try branch(desk, &random)
        case 22...23: try hold(desk, &random)
        case 24: if let id = pick(desk.held.keys, &random) { letGo(desk, id) }
        case 25: try refresh(desk, &random)
        case 26: try rollBack(desk)
        case 27: try compact()
        case 28...29: try meddle(&random)
        case 30: try check(desk)
        default: try checkHeld(desk)
        }
        if random.next() % 6 == 0 { try checkHeld(desk) }
    }

    func finish() throws {
        for desk in desks {
            try check(desk)
            try save(desk, .overwrite, "overwrite")
        }
        var random = SeededRandom(seed: 1)
        try reopen(&random)
        try reopen(&random)
    }

    /// The other context changes or deletes what this one holds, and saves; the store is compacted.
    private func meddle(_ random: inout SeededRandom) throws {
        let held = desks[0].held.keys.filter { desks[1].state.shown[$0] != nil }
        if let id = pick(held, &random) { try strike(desks[1], id, &random) }
        try save(desks[1], .overwrite, "overwrite")
        if random.next() % 2 == 0 { try compact() }
        if random.next() % 2 == 0 { try advance(desks[0]) }
        try checkHeld(desks[0])
    }

    private func compact() throws {
        note("compact")
        try container.compactOnThisThread()
    }

    private func hold(_ desk: PictureDesk, _ random: inout SeededRandom) throws {
        guard let id = pick(desk.state.shown.keys, &random) else { return }
        let object = try desk.object(id)
        desk.held[id] = object
        let reads = observes || random.next() % 2 == 0
        note("\(desk.name): hold \(name(id))\(reads ? ", read" : "")")
        if reads { _ = try PictureCard(object) }
        if random.next() % 2 == 0, let blob = object.large ?? object.small {
            kept.append((blob, try PictureContents.number(of: blob)))
            if kept.count > 3 { kept.removeFirst() }
        }
        if observes { look(desk, id, object) }
    }

    /// Somebody looks at an object, and reads everything held when it changes: that means nothing.
    private func look(_ desk: PictureDesk, _ id: ManagedObjectID, _ object: any Pictured) {
        let observer = GraphObserver { [weak self, weak desk] in
            for (_, object) in desk?.held ?? [:] where !object.isDeleted {
                do { _ = try PictureCard(object) } catch { self?.failure = error }
            }
        }
        observer.watch { _ = (object.caption, object.text, object.small, object.large) }
        observers.append(observer)
    }

    func letGo(_ desk: PictureDesk, _ id: ManagedObjectID) {
        note("\(desk.name): let go of \(name(id))")
        desk.held[id] = nil
        desk.tidy()
    }

    // MARK: Checking

    /// All that a context shows.
    func check(_ desk: PictureDesk) throws {
        try same(try PictureDesk.read(desk.context), desk.state.shown, "\(desk.name) shows")
        try checkHeld(desk)
        // What a branch deletes may be new in its parent.
        let isQuiet = !desk.state.isEdited && !desk.state.mayConflict
        if isQuiet, desk.context.hasChanges, desk.context.parent == nil {
            throw Violation("\(desk.name) has changes")
        }
    }

    /// What somebody holds, whether it is there or others deleted it.
    func checkHeld(_ desk: PictureDesk) throws {
        if let failure { throw Violation("an observer: \(failure)") }
        for (id, object) in desk.held {
            let gone = desk.state.gone[id]
            guard let card = desk.state.shown[id] ?? gone?.card else { continue }
            let now: PictureCard
            do { now = try PictureCard(object) } catch {
                throw Violation("\(desk.name): \(name(id))\(gone == nil ? "" : ", gone"): \(error)")
            }
            if now.values != card.values {
                throw Violation("\(desk.name): \(name(id)) is \(now.values), not \(card.values)")
            }
            if object.isDeleted != (gone != nil) {
                throw Violation("\(desk.name): \(name(id)) is deleted: \(object.isDeleted)")
            }
        }
        for (blob, number) in kept where try PictureContents.number(of: blob) != number {
            throw Violation("a blob has other bytes")
        }
    }

    func same(
        _ now: [ManagedObjectID: PictureCard],
        _ expected: [ManagedObjectID: PictureCard],
        _ what: String
    ) throws {
        if now == expected { return }
        for (id, card) in expected where now[id] != card {
            throw Violation("\(what): \(name(id)) is \(say(now[id])), not \(say(card))")
        }
        for (id, card) in now where expected[id] == nil {
            throw Violation("\(what): \(name(id)) is there: \(say(card))")
        }
    }

    func say(_ card: PictureCard?) -> String {
        guard let card else { return "nothing" }
        return "\(card.values) in \(name(card.album)), guest of \(name(card.guestOf))"
    }

    func verify(_ level: VerifyLevel = .normal) throws {
        let report = try StoreObserver.open(disk.location()).verify(level: level)
        if let problem = report.problems.first { throw Violation("verify: \(problem)") }
    }

    // MARK: Opening again

    private func reopen(_ random: inout SeededRandom) throws {
        note("reopen")
        (desks, kept, observers) = ([], [], [])
        try container.closeNow(discardingEdits: true)
        try checkFiles()
        leaveFiles(&random)
        container = try PersistentContainer.openNow(
            on: disk,
            schema: PictureSchema.self,
            options: options
        )
        try same(try PictureDesk.read(container.newContext()), stored, "opened again")
        try verify(.full)
        try makeDesks()
    }

    /// A clean close leaves the files that rows name, and what is none of the store's.
    private func checkFiles() throws {
        let files = Set(disk.state.folders[Self.folder]?.cache.keys.map { $0 } ?? [])
        let blobs = Set(stored.values.flatMap { $0.values[2...] }).subtracting([-1])
        let named = Set(blobs.map { PictureContents.fileNames[$0] })
        if let file = files.subtracting(named).subtracting(foreignFiles).min() {
            throw Violation("the file \(file) is left over")
        }
        if let file = foreignFiles.subtracting(files).min() {
            throw Violation("the foreign file \(file) was removed")
        }
    }

    private static let folder = "test.varve-blobs"

    /// Puts files into the folder of blobs, as a crash or somebody else leaves them.
    private func leaveFiles(_ random: inout SeededRandom) {
        var state = disk.state
        guard state.folders[Self.folder] != nil else { return }
        let content = PictureContents.blobs.indices.randomElement(using: &random) ?? 0
        let left: [(name: String, bytes: [UInt8])] = [
            ("new-0123456789abcdef", [1, 2, 3]),
            (String(repeating: "5a", count: 32), [4]),
            (PictureContents.fileNames[content], Array(PictureContents.blobs[content])),
            ("holiday.jpg", [5, 6]),
        ]
        for (name, bytes) in left where random.next() % 2 == 0 {
            if state.file(name, in: Self.folder) != nil { continue }
            note("a file is left: \(name)")
            let file = (state.files.keys.max() ?? 0) + 1
            state.apply(.create(folder: Self.folder, name: name, file: file))
            state.apply(.write(file: file, at: 0, bytes))
            state.apply(.sync(file: file))
            state.apply(.syncFolder(Self.folder))
            if name == "holiday.jpg" { foreignFiles.insert(name) }
        }
        disk = SimulatedDisk(state)
    }
}
