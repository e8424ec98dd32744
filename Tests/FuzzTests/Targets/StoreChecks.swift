// What must hold of any bytes that somebody calls a store.
//
// - Looking at it, verifying it, reading all of it and writing to it give answers or typed errors.
// - What the full check calls sound can be read to its end without an error.
// - A store that opens for writing takes one commit and opens again with it, or refuses the commit.
// - Nothing that was written is overwritten or cut off.

import VarveInspection
import VarveTesting

enum StoreChecks {
    /// The most bytes of a store that is looked at: larger ones show nothing more.
    static let bytesMax = 256 << 10
    /// Entries that a scan of one tree reads at most.
    static let entriesMax = 20_000

    /// A disk that holds one store file, and nothing else.
    static func disk(_ bytes: [UInt8]) -> SimulatedDisk {
        var state = SimulatedDisk.State()
        state.apply(.create(folder: "", name: "test.varve", file: 1))
        state.overwrite(1, at: 0, bytes)
        state.apply(.syncFolder(""))
        return SimulatedDisk(state)
    }

    static func run(on bytes: [UInt8]) throws {
        guard bytes.count <= bytesMax else { return }
        try run(on: disk(bytes))
    }

    /// All checks of the store "test" on a disk.
    static func run(on disk: SimulatedDisk) throws {
        defer { disk.kill() }
        let calls = disk.calls
        let isSound = try look(disk)
        if disk.calls != calls { throw Violation("looking changed the disk") }
        try write(disk, wasSound: isSound)
        if let violation = disk.violations.first { throw Violation(violation) }
    }

    static func options(_ mode: StoreOpenMode = .existing) -> RecordOptions {
        var options = RecordOptions()
        options.mode = mode
        options.engine.maintenance = .inline
        options.engine.environment = FixedEnvironment()
        options.engine.nodeWeightMax = 512
        options.engine.tailRoomMin = 4 << 10
        options.engine.tailRoomMax = 4 << 10
        options.engine.tailReserve = 0
        options.engine.nodeCacheBytes = 1 << 20
        options.engine.compactsAutomatically = false
        options.engine.encodingThreads = 1
        return options
    }

    // MARK: Looking

    /// Observes, verifies and reads everything. True when the full check calls the store sound.
    static func look(_ disk: SimulatedDisk) throws -> Bool {
        let observer: StoreObserver
        do throws(InspectionError) {
            observer = try StoreObserver.open(disk.location())
        } catch {
            return false
        }
        var isSound = false
        do throws(InspectionError) {
            let report = try observer.verify(level: .full)
            isSound = report.isSound && report.isComplete && report.notChecked.isEmpty
            _ = report.json
        } catch {
            isSound = false
        }
        tell(observer)
        let store: RecordStore
        do throws(RecordError) {
            store = try RecordStore.openAsStored(disk.location(), options: options(.readOnly))
        } catch {
            if isSound { throw Violation("verify calls it sound, opening says: \(error)") }
            return false
        }
        defer { try? store.close() }
        do {
            try scan(store)
        } catch let error where !(error is Violation) {
            if isSound { throw Violation("verify calls it sound, a scan says: \(error)") }
        }
        return isSound
    }

    /// The reports behind `varve info`, `schema`, `log`, `frames` and `rows`.
    private static func tell(_ observer: StoreObserver) {
        _ = try? observer.info().json
        _ = try? observer.schema().json
        try? observer.frames { _ in true }
        guard let schema = try? observer.schema() else { return }
        for entity in schema.entities.prefix(4) {
            var request = RowsRequest(entity: entity.name)
            request.limit = 20
            _ = try? observer.rows(request)
        }
    }

    /// Reads every row with its values and blobs, and every index.
    static func scan(_ store: RecordStore) throws {
        let snapshot = try store.snapshot()
        for entity in snapshot.schema.all {
            var cursor = snapshot.storage.cursor(entity.tree)
            var count = 0
            var hasRow = try cursor.first()
            while hasRow, count < entriesMax {
                count += 1
                let object = try cursor.trailingObjectID()
                let stored = try cursor.row()
                try RowView(stored.bytes).validate()
                guard try snapshot.storage.row(entity.tree, object) != nil else {
                    throw Contradiction("a row of a cursor is not found by its object ID")
                }
                hasRow = try cursor.next()
                if entity.isHiddenLink { continue }
                guard let row = try snapshot.row(entity.id, object) else {
                    throw Contradiction("a row of an entity is not found by its object ID")
                }
                for attribute in entity.attributes {
                    let value = try snapshot.value(of: row, attribute.column)
                    if case .blob(let reference) = value {
                        _ = try snapshot.storage.blob(reference)?.readAll()
                    }
                }
            }
            for index in entity.indexes {
                for tree in [index.tree, index.cutTree].compactMap(\.self) {
                    try scan(tree, snapshot.storage)
                }
            }
        }
    }

    private static func scan(_ tree: TreeID, _ snapshot: Snapshot) throws {
        var cursor = snapshot.cursor(tree)
        var count = 0
        var last: [UInt8]?
        var hasEntry = try cursor.first()
        while hasEntry, count < entriesMax {
            count += 1
            let key = cursor.key
            if let last, !last.lexicographicallyPrecedes(key) {
                throw Violation("a cursor gives keys that do not ascend")
            }
            last = key
            hasEntry = try cursor.next()
        }
    }

    // MARK: Writing

    private static func write(_ disk: SimulatedDisk, wasSound: Bool) throws {
        let store: RecordStore
        do throws(RecordError) {
            store = try RecordStore.openAsStored(disk.location(), options: options())
        } catch {
            if wasSound, error.engineCode == .damaged {
                throw Violation("verify calls it sound, opening for writing says: \(error)")
            }
            return
        }
        var killed = disk
        let made = try commit(store) { killed = disk.killed() }
        do { try store.close() } catch {}
        guard let commit = made else { return }
        disk.kill()
        // Right behind the commit, from its own frame; and with the pages written later.
        try open(killed, with: commit)
        try open(disk, with: commit)
        if wasSound {
            let observer = try StoreObserver.open(disk.location())
            let report = try observer.verify(level: .full)
            if let problem = report.problems.first {
                throw Violation("sound before a commit, not behind it: \(problem)")
            }
        }
    }

    private static func open(_ disk: SimulatedDisk, with commit: CommitNumber) throws {
        do throws(RecordError) {
            let again = try RecordStore.openAsStored(disk.location(), options: options())
            let number = again.engine.snapshot().number
            if number < commit {
                throw RecordError.unknownEntity("commit \(number) after \(commit)")
            }
            do { try again.close() } catch {}
        } catch {
            throw Violation("it took commit \(commit.rawValue) and does not open again: \(error)")
        }
    }

    /// One commit, a checkpoint, another commit. Gives the first; nil when it was refused.
    ///
    /// - Parameter committed: called behind the first.
    @discardableResult
    static func commit(
        _ store: RecordStore,
        committed: () -> Void = {}
    ) throws -> CommitNumber? {
        let before = store.engine.snapshot().number
        var commit: CommitNumber?
        do {
            commit = try store.write(author: "fuzz") { try change($0, store) }.commit
        } catch {
            guard error is RecordError || error is EngineError else { throw error }
        }
        committed()
        do { try store.engine.checkpoint() } catch {}
        guard let commit else { return nil }
        do { _ = try store.write(author: "again") { try change($0, store) } } catch {}
        do { _ = try store.compact() } catch {}
        if commit <= before { throw Violation("commit \(commit) behind commit \(before)") }
        return commit
    }

    /// Adds an object of each entity, changes one and takes one out.
    private static func change(_ transaction: RecordTransaction, _ store: RecordStore) throws {
        for entity in transaction.schema.entities.prefix(4) {
            let ids = try transaction.fetchIDs(RecordQuery(entity: entity.id, limit: 40))
            let id = store.allocateObjectIDs(1)
            var values: [ColumnValue] = []
            for attribute in entity.attributes where !attribute.isOptional {
                if let value = sample(attribute.type, id) {
                    values.append(ColumnValue(attribute.column, value))
                }
            }
            try transaction.insert(entity.id, id, values)
            if let first = ids.first { try transaction.update(entity.id, first, values) }
            for last in ids.dropFirst(1).suffix(30) { try transaction.delete(entity.id, last) }
        }
    }

    static func sample(_ type: AttributeType, _ id: ObjectID) -> StoredValue? {
        switch type {
        case .bool: .bool(true)
        case .int8, .int16, .int32, .int64, .uint8, .uint16, .uint32, .uint64:
            .int(Int64(id.rawValue % 100))
        case .float: .float(1.5)
        case .double: .double(2.5)
        case .date: .date(1000)
        case .text: .text("sample \(id.rawValue)")
        case .url: .text("https://example.org/\(id.rawValue)")
        case .data: .data([1, 2, 3])
        case .uuid: .uuid(UUIDValue(high: id.rawValue, low: 1))
        case .decimal: .decimal(.zero)
        case .blob: nil
        }
    }
}

/// Answers that do not go together: a finding in a store that the full check calls sound.
struct Contradiction: Error {
    let message: String
    init(_ message: String) { self.message = message }
}

extension RecordError {
    /// What kind of failure it is for the engine; nil for other errors.
    var engineCode: EngineError.Code? {
        if case .engine(let error) = self { error.code } else { nil }
    }
}
