// Salvage: a new store with everything of a damaged one that is sound, and a report of the rest.
//
// Invariants
// - The damaged store is only read. What is written gets its name when it is whole and verified.
// - A row enters the new store when it is known to be the row of the commit that is kept: from a
//   sound page of its checkpoint, or from an older one with every change since. A row that a later
//   commit deleted does not come back; one that a commit may have changed is set aside.
// - Memory is bounded by `memoryBytesMax`: when what must be kept in mind exceeds it, the rest of
//   the damaged pages counts as lost and the report says that it is not complete.

import VarveBase
public import VarveEngine
import VarveFormat
import VarveIO
import VarveRecords

/// What a salvage is to do.
public struct SalvageOptions: Sendable {
    /// The commit whose state is wanted; nil for the newest.
    public var commit: UInt64?
    /// Whether rows that cannot be told as of that commit enter the new store as they were before.
    public var usesOlder = false
    /// Bytes that row changes kept in mind may take, and with them a batch of rows to be written.
    public var memoryBytesMax = 256 << 20

    /// The default settings: the newest commit, nothing older.
    public init() {}
}

extension StoreObserver {
    /// What `salvage` would do. Writes nothing.
    ///
    /// Reads all of the commit's pages and values; of blob files only that they are there with
    /// their length.
    ///
    /// - Parameters:
    ///   - options: which commit, and how much memory.
    ///   - progress: as in `verify`.
    /// - Throws: `damaged` when nothing can be kept, `badRequest` when the commit is not in the
    ///   file, `limit`, `cancelled`, `ioFailed`.
    /// - Complexity: O(bytes of the commit), and O(log) for what is damaged.
    public func salvagePlan(
        _ options: SalvageOptions = SalvageOptions(),
        progress: (UInt64, Int) -> Bool = { _, _ in true }
    ) throws(InspectionError) -> SalvageReport {
        try withoutActuallyEscaping(progress) { progress throws(InspectionError) in
            let salvage = try Salvage(self, options, progress)
            try salvage.run(into: nil)
            return salvage.report
        }
    }

    /// Writes everything that is sound into a new store, and reports the rest.
    ///
    /// Object IDs and the store's identity are kept; commit numbers begin anew. Blobs are copied
    /// and checked. References to rows that are lost are cleared, and where the two sides of a
    /// relationship disagree they are made to agree; both are reported. The new store is verified
    /// before it gets its name.
    ///
    /// - Parameters:
    ///   - location: where it goes; the name must be free.
    ///   - options: as in `salvagePlan`.
    ///   - progress: as in `verify`; false ends it, and nothing is left.
    /// - Throws: `exists` when the name is taken, otherwise as `salvagePlan`.
    /// - Complexity: O(bytes of the commit + n log n for the entries of indexes + blobs).
    public func salvage(
        to location: StoreLocation,
        _ options: SalvageOptions = SalvageOptions(),
        progress: (UInt64, Int) -> Bool = { _, _ in true }
    ) throws(InspectionError) -> SalvageReport {
        let (directory, name) = try Self.place(location)
        if let taken = try SalvageWriter.isTaken(name, in: directory) {
            throw InspectionError(.exists, "\(taken) is there already; nothing was written")
        }
        return try withoutActuallyEscaping(progress) { progress throws(InspectionError) in
            // 1. Which state, and its schema: what cannot be kept at all leaves no trace.
            let salvage = try Salvage(self, options, progress)
            let writer = try SalvageWriter(
                name,
                in: directory,
                identity: log.header.storeID,
                objectIDsFrom: salvage.target.record.objectIDHighWater,
                batchBytesMax: max(1 << 20, min(options.memoryBytesMax / 8, 32 << 20))
            )
            do throws(InspectionError) {
                // 2. Its rows.
                try salvage.run(into: writer)
                // 3. The name.
                try writer.finish(progress)
            } catch {
                writer.abandon()
                throw error
            }
            salvage.report.isWritten = true
            return salvage.report
        }
    }

    /// The same for a path: "NAME.varve", or without the suffix.
    ///
    /// - Throws: as above; `badRequest` for a path that names a folder.
    public func salvage(
        toPath path: String,
        _ options: SalvageOptions = SalvageOptions(),
        progress: (UInt64, Int) -> Bool = { _, _ in true }
    ) throws(InspectionError) -> SalvageReport {
        let slash = path.lastIndex(of: "/")
        let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let name = slash.map { String(path[path.index(after: $0)...]) } ?? path
        guard !name.isEmpty, name != SalvageWriter.fileSuffix else {
            throw InspectionError(.badRequest, "\(path) names a folder, not a store")
        }
        return try salvage(to: .file(directory: folder, name: name), options, progress: progress)
    }

    private static func place(
        _ location: StoreLocation
    ) throws(InspectionError) -> (any StoreDirectory, String) {
        func plain(_ name: String) -> String {
            name.hasSuffix(SalvageWriter.fileSuffix)
                ? String(name.dropLast(SalvageWriter.fileSuffix.count)) : name
        }
        switch location {
        case .memory: return (MemoryDirectory(), "memory")
        case .directory(let directory, let name): return (directory, plain(name))
        case .file(let path, let name):
            do throws(IOError) {
                return (try PosixDirectory.open(path: path), plain(name))
            } catch {
                throw InspectionError(
                    error.isMissing ? .missing : .ioFailed,
                    "the folder \(path) cannot be opened: \(error.description)"
                )
            }
        }
    }
}

/// One salvage at work.
final class Salvage {
    let log: LogObserver
    let options: SalvageOptions
    let progress: (UInt64, Int) -> Bool
    let target: CommitFrame
    let ground: SalvageChain.Ground
    let roots: [TreeID: StoredRoot]
    /// The schema alone, in a store in memory: decoded, and with the rules of its indexes.
    let shape: RecordStore
    let rules: Snapshot
    let schema: RecordSchema
    let schemaBytes: [UInt8]
    let names: TreeNames
    var report = SalvageReport()
    var stories = RowStories()
    var damage = SalvageDamage()
    var finder: SalvageFinder
    var writer: SalvageWriter?
    private var bytesRead: UInt64 = 0

    init(
        _ observer: StoreObserver,
        _ options: SalvageOptions,
        _ progress: @escaping (UInt64, Int) -> Bool
    ) throws(InspectionError) {
        log = observer.log
        self.options = options
        self.progress = progress
        let chain = SalvageChain(log: log)
        let newest = try chain.newest()
        if let number = options.commit {
            guard let found = try chain.commit(number) else {
                throw InspectionError(
                    .badRequest,
                    "commit \(Spelling.commit(number)) is not in the file, or what it stands on is "
                        + "damaged",
                    hint: "varve log lists the commits that are"
                )
            }
            (target, ground) = found
        } else {
            guard let newest else {
                throw InspectionError(.damaged, "no commit stands on sound frames")
            }
            (target, ground) = newest
        }
        let log = log
        let base = ground.base
        let content = try engine { () throws(EngineError) in try log.content(of: base) }
        guard case .trees(let list, _) = content else {
            throw InspectionError(.damaged, "a checkpoint without roots")
        }
        roots = Dictionary(list.map { ($0.tree, $0) }, uniquingKeysWith: { first, _ in first })
        finder = SalvageFinder(log: log, base: base, roots: roots)
        schemaBytes = try SalvageFinder.schema(log, chain, base, roots[.catalog], target.record)
        (shape, schema) = try Self.decoded(schemaBytes, target.record.schemaVersion)
        rules = shape.engine.snapshot()
        names = TreeNames(schema)
        report.commit = target.record.number.rawValue
        report.start = base.record.number.rawValue
        report.startPlace = base.offset.rawValue
        report.deltas = ground.deltas
        report.bridged = ground.bridges.map(\.rawValue)
    }

    private static func decoded(
        _ bytes: [UInt8],
        _ version: UInt32
    ) throws(InspectionError) -> (RecordStore, RecordSchema) {
        let store = try records { () throws(RecordError) in
            try RecordStore.openAsStored(.memory)
        }
        if bytes.isEmpty {
            return (store, try records { () throws(RecordError) in try store.schema })
        }
        do {
            _ = try store.engine.write { transaction in
                try transaction.replaceSchema(bytes, version: version)
            }
        } catch {
            throw InspectionError(.damaged, "the stored schema cannot be read: \(error)")
        }
        return (store, try records { () throws(RecordError) in try store.schema })
    }

    /// Reads everything, and writes it when there is a writer.
    func run(into writer: SalvageWriter?) throws(InspectionError) {
        self.writer = writer
        do {
            // 1. What lies after the state that is kept.
            try tellLostCommits()
            // 2. Row changes between its checkpoint and the commit.
            try gather()
            if !schemaBytes.isEmpty {
                try writer?.begin(schema: schemaBytes, version: target.record.schemaVersion)
            }
            // 3. Rows of sound pages.
            for entity in schema.all { try keepRows(of: entity) }
            // 4. Rows of damaged pages, from older ones and what changed since.
            try rebuild()
            try writer?.flush()
            // 5. What else is known of the rest.
            for entity in schema.all { try askIndexes(about: entity) }
            tellDamage()
            try checkOtherTrees()
            // 6. An ID is that of one row, no reference leads to a row that is lost, and both sides
            // of every relationship agree.
            if let writer {
                try dropSharedIDs(in: writer)
                try clearReferences(in: writer)
                try mendRelationships(in: writer)
            }
            report.entities = schema.all.compactMap { damage.counts[$0.id] }.filter {
                $0.kept + $0.lost + $0.unnamed > 0
            }
        } catch let error as InspectionError {
            throw error
        } catch let error as EngineError {
            throw InspectionError(error)
        } catch {
            throw InspectionError(.ioFailed, "\(error)")
        }
    }

    func goOn(_ bytes: UInt64) throws(InspectionError) {
        bytesRead += bytes
        guard progress(bytesRead, report.damage.count + damage.pages.count) else {
            throw InspectionError(.cancelled, "the recovery was ended; nothing was written")
        }
    }

    // MARK: 1. Lost commits

    private func tellLostCommits() throws {
        if let failure = log.failure, let place = failure.place {
            let frame = try log.frame(at: place)
            report.damage.append(
                SalvageReport.Damage(
                    subject: frame.map { $0.header.kind.label } ?? "frame",
                    place: place.rawValue,
                    bytes: frame.map { $0.header.frameLength },
                    message: failure.message,
                    outcome: ground.bridges.contains(place)
                        ? "it only repeated its commit: passed over"
                        : "what it changed is not known"
                )
            )
        }
        guard options.commit == nil else { return }
        if let failure = log.failure, let place = failure.place {
            report.isOlder =
                !ground.bridges.contains(place) && place.rawValue > target.offset.rawValue
        }
        var end = FileOffset(log.dataEnd)
        while let commit = try log.newestCommit(below: end), commit.offset > target.offset {
            end = commit.offset
            guard commit.header.flags.contains(.carriesChanges),
                commit.record.number > target.record.number
            else { continue }
            report.isOlder = true
            report.add(
                SalvageReport.LostCommit(
                    number: commit.record.number.rawValue,
                    place: commit.offset.rawValue,
                    kind: commit.header.kind.label,
                    author: commit.record.author,
                    objects: changed(by: commit)
                ),
                to: \.lostCommits
            )
        }
    }

    private func changed(by commit: CommitFrame) -> [String] {
        guard let content = try? log.content(of: commit) else { return [] }
        var objects: [String] = []
        switch content {
        case .trees(_, let changes):
            for list in changes {
                objects += list.objects.prefix(100).map { names.object(list.entity, $0) }
            }
        case .changes(_, let operations):
            for operation in operations.prefix(100) {
                switch operation {
                case .insert(let entity, let object, _), .update(let entity, let object, _),
                    .delete(let entity, let object):
                    objects.append(names.object(entity, object))
                case .put, .remove: break
                }
            }
        case .nothing: break
        }
        return Array(objects.prefix(100))
    }

    // MARK: 2. Row changes

    private func gather() throws {
        let chain = SalvageChain(log: log)
        var commit = target
        while commit.offset > ground.base.offset {
            stories.add(
                try log.content(of: commit),
                of: commit.record.number,
                bytesMax: options.memoryBytesMax
            ) { _, _ in true }
            guard stories.bytes <= options.memoryBytesMax else {
                throw InspectionError(
                    .limit,
                    "the row changes since the last checkpoint take more memory than allowed"
                )
            }
            try goOn(commit.header.frameLength)
            switch try chain.step(from: commit) {
            case .commit(let before), .bridged(let before, _): commit = before
            case .beginning, .broken: return
            }
        }
    }

    // MARK: 3. Rows of sound pages

    private func keepRows(of entity: RecordEntity) throws {
        damage.counts[entity.id] = SalvageReport.Entity(
            name: entity.isHiddenLink ? "links \(entity.name)" : entity.name
        )
        if let root = roots[entity.tree] {
            try log.forEachEntry(
                of: root,
                from: [],
                to: nil,
                entry: { key, value in
                    try keep(entity, key, value, at: finder.base.record.number, isRebuilt: false)
                },
                damaged: { page, error in try damage.add(page, error, entity.id, options) }
            )
        }
        for object in stories.objects(of: entity.id)
        where !damage.isHidden(entity.id, object) {
            guard let story = stories.take(story: object, of: entity.id) else { continue }
            try tell(entity, object, story, on: nil, isRebuilt: false)
        }
    }

    /// One entry of a row tree.
    func keep(
        _ entity: RecordEntity,
        _ key: [UInt8],
        _ value: [UInt8],
        at commit: CommitNumber,
        isRebuilt: Bool
    ) throws {
        try goOn(UInt64(key.count + value.count))
        var reader = ByteReader(key, place: "row key")
        var content = ByteReader(value, place: "row")
        let object: ObjectID
        let row: StoredRow
        do throws(FormatError) {
            object = ObjectID(try reader.u64("object").byteSwapped)
            try reader.finish("row key")
            let version = CommitNumber(try content.varint("version"))
            row = StoredRow(version: version, bytes: Array(value[content.position...]))
        } catch {
            damage.counts[entity.id]?.unnamed += 1
            report.add("an entry of \(entity.name) cannot be read: \(error)", to: \.notes)
            return
        }
        // In a hole the newest that is there is told: a leaf's own rows, then older trees.
        guard !damage.isHidden(entity.id, object) || damage.tellFirst(entity.id, object) else {
            return
        }
        if let story = stories.take(story: object, of: entity.id) {
            try tell(entity, object, story, on: row, isRebuilt: isRebuilt)
        } else {
            try emit(entity, object, row, isRebuilt: isRebuilt)
        }
    }

    /// A row of which the log says something.
    func tell(
        _ entity: RecordEntity,
        _ object: ObjectID,
        _ story: RowStory,
        on older: StoredRow?,
        isRebuilt: Bool
    ) throws {
        let isKnown = story.unknownSince == nil
        let version = isKnown ? story.now : story.before
        let row: [UInt8]?
        do throws(FormatError) {
            row = try version.row(on: older?.bytes)
        } catch {
            lose(entity, object, "its changes cannot be read: \(error)")
            return
        }
        if let commit = story.unknownSince {
            let reason =
                "commit \(Spelling.commit(commit.rawValue)) changed it, and the page is damaged"
            try setAside(entity, object, row, asOf: story.beforeCommit, reason)
        } else if let row {
            let stored = StoredRow(version: story.version, bytes: row)
            try emit(entity, object, stored, isRebuilt: isRebuilt)
        } else if case .older = version.beginning {
            lose(entity, object, "a commit changed it, and what it was before is not there")
        }
    }
}
