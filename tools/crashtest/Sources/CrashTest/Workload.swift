// One seed's work on a store: what is saved, and what the store should hold after each save.
//
// Invariants
// - Everything follows from the seed: the same seed twice makes the same calls with the same bytes.
// - `model` is the newest commit that is known to be there; `states` has every commit ever begun.

import VarveTesting

/// What an image may hold: commits from the last one acknowledged to the last one begun.
struct Window: Equatable {
    var acknowledged: UInt64
    var begun: UInt64

    var note: Int { Int(acknowledged | begun << 32) }
    init(_ acknowledged: UInt64, _ begun: UInt64) {
        self.acknowledged = acknowledged
        self.begun = begun
    }
    init(note: Int) {
        acknowledged = UInt64(note) & 0xFFFF_FFFF
        begun = UInt64(note) >> 32
    }
}

/// A store at work on a simulated disk.
final class Workload {
    let disk: SimulatedDisk
    let mix: Mix
    let plant: PlantedBug?
    private(set) var store: RecordStore
    private(set) var columns: Columns
    var random: SeededRandom
    var model: Model
    var states: [UInt64: Model]
    var contents: [BlobReference: [UInt8]]
    var window: Window { didSet { disk.note(window.note) } }
    private var next: UInt64
    private var openings: UInt64 = 0
    private var held: (snapshot: RecordSnapshot, model: Model)?
    /// What a commit in progress would make of the model.
    private(set) var planned: Model?

    /// What is known of a store that others made.
    struct Past {
        var window: Window
        var model: Model
        var states: [UInt64: Model]
        var contents: [BlobReference: [UInt8]]

        /// What an opening may show.
        func model(at number: UInt64) throws -> Model {
            if number < window.acknowledged {
                throw Violation(
                    "commit \(window.acknowledged) was acknowledged, found is \(number)"
                )
            }
            if number > window.begun {
                throw Violation("commit \(window.begun) was the last one begun, found is \(number)")
            }
            if let model = states[number] { return model }
            if window.acknowledged == 0 { return Model() }
            throw Violation("commit \(number) was never made")
        }
    }

    /// What is known after an error of this code, or after none.
    func past(after code: EngineError.Code?) -> Past {
        var past = Past(window: window, model: model, states: states, contents: contents)
        let number = number
        // Only an unknown outcome may still bring what was being saved.
        if code == .outcomeUnknown, let failed = planned {
            past.states[number + 1] = failed
            past.window.begun = number + 1
        } else {
            past.states[number + 1] = nil
            past.window.begun = number
        }
        past.window.acknowledged = min(window.acknowledged, number)
        return past
    }

    /// Whether an error left the handle in use: not while it was closed and opened again.
    private(set) var canGoOn = true

    /// Opens the store, or makes it.
    init(
        _ disk: SimulatedDisk,
        _ mix: Mix,
        _ random: SeededRandom,
        plant: PlantedBug?,
        from past: Past? = nil
    ) throws {
        self.disk = disk
        self.mix = mix
        self.random = random
        self.plant = plant
        model = past?.model ?? Model()
        states = past?.states ?? [:]
        contents = past?.contents ?? [:]
        next = 0
        window = past?.window ?? Window(0, 1 << 20)
        disk.note(window.note)
        store = try Self.open(disk, mix, random.branch(1000), plant)
        columns = try Columns(store)
        if let past {
            model = try past.model(at: store.engine.snapshot().number.rawValue)
            // IDs of other objects than those that a branch before has made.
            let ids = [1 << 20] + model.items.keys + model.folders.keys
            next = (ids.max() ?? 0) + 1
        }
        acknowledgeAll()
    }

    /// What opens a store of the campaign, everywhere.
    static func open(
        _ disk: SimulatedDisk,
        _ mix: Mix,
        _ random: SeededRandom,
        _ plant: PlantedBug?,
        mode: StoreOpenMode = .createIfMissing
    ) throws -> RecordStore {
        let planted = plant.map { PlantedSystem($0, seed: random.seed) }
        var options = mix.options(planted ?? FixedEnvironment(seed: random.seed))
        options.mode = mode
        let root = planted.map { $0.directory(disk.root) } ?? disk.root
        return try RecordStore.open(
            .directory(root, name: "test"),
            schema: Library.description,
            options: options
        )
    }

    var number: UInt64 { store.engine.snapshot().number.rawValue }

    private func acknowledgeAll() {
        let number = number
        if states[number] == nil { states[number] = model }
        window = Window(number, number)
    }

    /// The next process: the one before was killed, or has closed the store.
    func reopen() throws {
        held = nil
        countWork()
        disk.kill()
        openings += 1
        store = try Self.open(disk, mix, random.branch(1000 + openings), plant)
        columns = try Columns(store)
    }

    /// What the store did: a kind of work that never comes is not tested.
    private(set) var work: [String: Int] = [:]

    func countWork() {
        let statistics = store.engine.statistics
        work["commits as DELTA", default: 0] += Int(statistics.deltaCommits)
        work["commits as TREE", default: 0] += Int(statistics.treeCommits)
        work["commits relaxed", default: 0] += Int(statistics.relaxedCommits)
        work["checkpoints", default: 0] += Int(statistics.checkpoints)
        work["compactions", default: 0] += Int(statistics.compactions)
        work["commits settled", default: 0] += Int(statistics.settledCommits)
        work["room extended", default: 0] += Int(statistics.roomExtensions)
        work["blob files swept", default: 0] += Int(statistics.blobFilesSwept)
    }

    /// The next process must find what this one left: nothing is lost without a power cut.
    private func goOn() throws {
        let before = number
        try reopen()
        if number != before {
            throw Violation("commit \(before) was the newest, the next process finds \(number)")
        }
        acknowledgeAll()
    }

    /// One step of the work. Throws what the store throws, and `Violation`.
    func step() throws {
        if mix.comes(.snapshot, &random) {
            try checkHeld()
            held = (try store.snapshot(), model)
        }
        if mix.comes(.checkpoint, &random) {
            // Relaxed commits may stay so: a TREE needs no checkpoint.
            try store.engine.checkpoint()
            // It sweeps blobs: right here it shows whether a snapshot lost one.
            try compareHeld()
        } else if mix.comes(.compact, &random) {
            try compact()
        } else if mix.comes(.reopen, &random) {
            canGoOn = false
            try store.close()
            acknowledgeAll()
            try goOn()
        } else if mix.comes(.kill, &random) {
            canGoOn = false
            try goOn()
        }
        canGoOn = true
        try save()
        try checkHeld()
    }

    func compact() throws {
        _ = try store.compact()
        acknowledgeAll()
    }

    /// What a snapshot shows stays what it was, whatever happens meanwhile.
    private func checkHeld() throws {
        if held == nil { return }
        try compareHeld()
        if random.next() % 4 == 0 { held = nil }
    }

    private func compareHeld() throws {
        guard let held else { return }
        if let difference = try held.model.difference(held.snapshot, columns, contents) {
            throw Violation("a snapshot that is held shows something else: \(difference)")
        }
    }

    /// One transaction.
    func save() throws {
        var plan = Plan(model, next: next)
        defer {
            next = plan.next
            pendingBlobs = []
        }
        planned = nil
        let isBulk = mix.comes(.bulk, &random)
        if mix.comes(.clear, &random), mix.comes(.clear, &random) { plan.clear() }
        for _ in 0..<(isBulk ? 60 : 1 + Int(random.next() % 8)) { try change(&plan, isBulk) }
        let durability: Durability = mix.comes(.relaxed, &random) ? .relaxed : .full
        let number = store.engine.snapshot().number.rawValue + 1
        planned = plan.model
        states[number] = plan.model
        window.begun = number
        let columns = columns
        let changes = plan.changes
        let (_, commit) = try store.write(author: "campaign", durability: durability) {
            transaction in
            for change in changes { try change(transaction, columns) }
        }
        guard let commit else {
            states[number] = nil
            window.begun = number - 1
            planned = nil
            return
        }
        model = plan.model
        planned = nil
        if commit.rawValue != number { throw Violation("commit \(commit.rawValue), not \(number)") }
        if durability == .full { window.acknowledged = number }
    }

    private func change(_ plan: inout Plan, _ isBulk: Bool) throws {
        let live = plan.model.items.keys.sorted()
        let inserts = isBulk ? 1 : mix.weights[.insert] ?? 0
        let updates = isBulk || live.isEmpty ? 0 : mix.weights[.update] ?? 0
        let deletes = isBulk || live.isEmpty ? 0 : mix.weights[.delete] ?? 0
        let folders = isBulk ? 0 : mix.weights[.folder] ?? 0
        let sum = inserts + updates + deletes + folders
        guard sum > 0 else { return }
        var choice = Int(random.next() % UInt64(sum))
        if choice < inserts { return plan.insert(try item(plan.model, isBulk)) }
        choice -= inserts
        if choice < updates {
            return plan.update(live[pick(live.count)], try item(plan.model, isBulk))
        }
        choice -= updates
        if choice < deletes { return plan.delete(live[pick(live.count)]) }
        let known = plan.model.folders.keys.sorted()
        if known.count > 3 {
            plan.deleteFolder(known[pick(known.count)])
        } else {
            plan.insertFolder()
        }
    }

    private func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }

    private func item(_ model: Model, _ isBulk: Bool) throws -> Model.Item {
        let letters = Array("abcdefgh")
        func text(_ length: Int) -> String {
            String((0..<length).map { _ in letters[pick(letters.count)] })
        }
        // What titles have in common gives compactions something to learn.
        let title = text(4 + pick(10)) + " in the garden"
        var item = Model.Item(title: title, rank: Int64(pick(20)))
        if random.next() % 3 == 0 { item.code = Int64(random.next() % (1 << 40)) }
        if !isBulk && mix.comes(.text, &random) { item.body = text(300 + pick(600)) }
        let folders = model.folders.keys.sorted()
        if !folders.isEmpty && random.next() % 2 == 0 { item.folder = folders[pick(folders.count)] }
        if !isBulk { item.picture = try picture() }
        return item
    }

    private func picture() throws -> BlobReference? {
        let isFile = mix.comes(.file, &random)
        guard isFile || mix.comes(.blob, &random) else { return nil }
        let sizes = Picture.sizes.filter { isFile == ($0 > Picture.externalLimit) }
        let bytes = Picture.bytes(
            size: sizes[pick(sizes.count)],
            letter: UInt8(1 + pick(3))
        )
        let writer = try store.engine.makeBlobWriter(externalLimit: Picture.externalLimit)
        try writer.append(bytes)
        let pending = try writer.finish()
        contents[pending.reference] = bytes
        pendingBlobs.append(pending)
        return pending.reference
    }
    private var pendingBlobs: [PendingBlob] = []
}

/// One transaction to be, with what it makes of the model.
struct Plan {
    var model: Model
    var next: UInt64
    var changes: [(RecordTransaction, Columns) throws -> Void] = []

    init(_ model: Model, next: UInt64) {
        self.model = model
        self.next = next
    }

    mutating func insert(_ item: Model.Item) {
        next += 1
        let id = next
        model.items[id] = item
        changes.append { try $0.insert($1.item.id, ObjectID(id), $1.values(item)) }
    }

    mutating func update(_ id: UInt64, _ item: Model.Item) {
        model.items[id] = item
        changes.append { try $0.update($1.item.id, ObjectID(id), $1.values(item)) }
    }

    mutating func delete(_ id: UInt64) {
        model.items[id] = nil
        changes.append { try $0.delete($1.item.id, ObjectID(id)) }
    }

    mutating func insertFolder() {
        next += 1
        let id = next
        model.folders[id] = "folder \(id)"
        changes.append {
            try $0.insert(
                $1.folder.id,
                ObjectID(id),
                [ColumnValue($1.folderTitle, .text("folder \(id)"))]
            )
        }
    }

    mutating func deleteFolder(_ id: UInt64) {
        for (item, old) in model.items.sorted(by: { $0.key < $1.key }) where old.folder == id {
            var new = old
            new.folder = nil
            update(item, new)
        }
        model.folders[id] = nil
        changes.append { try $0.delete($1.folder.id, ObjectID(id)) }
    }

    mutating func clear() {
        for id in model.items.keys.sorted() { delete(id) }
    }
}

/// A promise that was broken.
struct Violation: Error {
    let message: String
    init(_ message: String) { self.message = message }
}

extension Error {
    /// What kind of failure it is for the engine; nil for other errors.
    var engineCode: EngineError.Code? {
        if let error = self as? EngineError { return error.code }
        if case .engine(let error)? = self as? RecordError { return error.code }
        return nil
    }
}
