// What the trees of a commit say, compared with each other.
//
// Rows are read once, in order; from each the entries that it must have elsewhere are summed up
// as hashes. Then each other tree is read once and summed up too. Equal sums and counts mean
// equal sets; only a difference is looked into, entry by entry.

import VarveBase
import VarveEngine
import VarveFormat
import VarveRecords

/// A set of byte strings as a count and two sums of hashes.
private struct SetSum: Equatable {
    var count: UInt64 = 0
    private var first: UInt64 = 0
    private var second: UInt64 = 0

    mutating func add(_ bytes: [UInt8], times: UInt64 = 1) {
        count &+= times
        first &+= times &* FrameHash.xxh64(bytes, seed: 1)
        second &+= times &* FrameHash.xxh64(bytes, seed: 2)
    }
}

/// The checks of one commit's content.
struct ContentChecks {
    let observer: StoreObserver
    let snapshot: RecordSnapshot
    let damagedTrees: [TreeID: [AuditedPage]]
    let level: VerifyLevel
    let progress: (UInt64, Int) -> Bool
    var report: VerifyReport

    private var expectedEntries: [TreeID: SetSum] = [:]
    private var expectedValues = SetSum()
    private var expectedBlobs = SetSum()
    private var badBlobs: [BlobDigest: Int] = [:]
    private var rowsAreWhole = true

    static let objectsMax = 1000
    static let entriesPerCall: UInt64 = 4096
    private var entries: UInt64 = 0
    /// Indexes that do not say what the rows say.
    private(set) var wrongIndexes: Set<TreeID> = []

    init(
        observer: StoreObserver,
        snapshot: RecordSnapshot,
        damagedTrees: [TreeID: [AuditedPage]],
        level: VerifyLevel,
        progress: @escaping (UInt64, Int) -> Bool,
        report: VerifyReport
    ) {
        self.observer = observer
        self.snapshot = snapshot
        self.damagedTrees = damagedTrees
        self.level = level
        self.progress = progress
        self.report = report
    }

    var storage: Snapshot { snapshot.storage }
    var names: TreeNames { observer.names }

    mutating func run() throws(InspectionError) {
        let entities = snapshot.schema.all
        // Blobs first, so that the rows that name a bad one can be told.
        let blobs = try checkBlobs()
        let values = try checkValues()
        for entity in entities where report.isComplete { try checkRows(entity) }
        guard report.isComplete else { return }
        try checkIdentities(entities)
        guard report.isComplete else { return }
        compare(blobs, expectedBlobs, "blobs", .blobs)
        compare(values, expectedValues, "large values", .largeValues)
        for entity in entities {
            for index in entity.indexes where report.isComplete {
                try checkIndex(index.tree, entity)
                if let cut = index.cutTree { try checkIndex(cut, entity) }
            }
            if damagedTrees[entity.tree] != nil, !entity.indexes.isEmpty {
                let names = entity.indexes.map { TreeNames.name(of: $0, entity) }
                report.notChecked.append("against those rows: " + names.joined(separator: ", "))
            }
            try nameHiddenObjects(entity)
        }
        // After all indexes, which relationships are read by.
        try checkRelationships()
        try checkBlobFiles()
    }

    // MARK: Rows

    private mutating func checkRows(_ entity: RecordEntity) throws(InspectionError) {
        guard isReadable(entity.tree, "rows of \(entity.name)") else {
            rowsAreWhole = false
            return
        }
        var count: UInt64 = 0
        var sums: [TreeID: SetSum] = [:]
        var cursor = storage.cursor(entity.tree)
        var more = try engine { () throws(EngineError) in try cursor.first() }
        while more {
            count += 1
            let object: ObjectID
            let row: StoredRow
            do throws(EngineError) {
                guard let found = try SharedObjectIDs.object(at: cursor) else {
                    throw EngineError(.damaged, "its key is no object ID")
                }
                object = found
                row = try cursor.row()
            } catch {
                report.add(problem("entry of \(entity.name)", error.message))
                more = try engine { () throws(EngineError) in try cursor.next() }
                continue
            }
            func add(_ message: String) {
                let name = names.object(entity.id, object)
                report.add(problem("row \(name)", message, objects: [name]))
            }
            do throws(FormatError) {
                try self.add(row, object, entity, &sums)
            } catch {
                rowsAreWhole = false
                add("it cannot be read: \(error)")
            }
            if row.version > snapshot.number {
                add("it names commit \(row.version.rawValue), which is not there")
            }
            if count % 4096 == 0, !goesOn() { return }
            more = try engine { () throws(EngineError) in try cursor.next() }
        }
        for (tree, sum) in sums { expectedEntries[tree] = sum }
        for index in entity.indexes {
            for tree in [index.tree, index.cutTree].compactMap(\.self)
            where expectedEntries[tree] == nil { expectedEntries[tree] = SetSum() }
        }
        report.rows += count
        if count != storage.count(entity.tree) {
            report.add(
                problem(
                    "rows of \(entity.name)",
                    "there are \(count), their tree counts \(storage.count(entity.tree))"
                )
            )
        }
    }

    private mutating func add(
        _ row: StoredRow,
        _ object: ObjectID,
        _ entity: RecordEntity,
        _ sums: inout [TreeID: SetSum]
    ) throws(FormatError) {
        let view = try RowView(row.bytes)
        try view.validate()
        var local = sums
        sums = [:]
        defer { sums = local }
        try storage.deriveEntries(entity: entity.id, object: object, row: row.bytes) { tree, key in
            local[tree, default: SetSum()].add(key)
        }
        for column in try RowCoding.outsideColumns(in: row.bytes) {
            let outside = try view.outside(view.slot(column))
            expectedValues.add(Self.valueFact(entity.id, object, column, outside.length))
        }
        for blob in try RowCoding.blobReferences(in: row.bytes) {
            expectedBlobs.add(Self.blobFact(blob))
            if let index = badBlobs[blob.digest], report.problems.indices.contains(index),
                report.problems[index].objects.count < Self.objectsMax
            {
                report.problems[index].objects.append(names.object(entity.id, object))
            }
        }
    }

    private static func valueFact(
        _ entity: EntityID,
        _ object: ObjectID,
        _ column: ColumnID,
        _ length: UInt64
    ) -> [UInt8] {
        var writer = ByteWriter(capacity: 20)
        writer.u16(entity.rawValue)
        writer.u64(object.rawValue)
        writer.u16(column.rawValue)
        writer.u64(length)
        return writer.bytes
    }

    private static func blobFact(_ blob: BlobReference) -> [UInt8] {
        var writer = ByteWriter(capacity: 40)
        writer.raw(blob.digest.bytes)
        writer.u64(blob.length)
        return writer.bytes
    }

    // MARK: Values and blobs

    private mutating func checkValues() throws(InspectionError) -> SetSum? {
        guard isReadable(.largeValues, "large values") else { return nil }
        var sum = SetSum()
        var found: [KnownValue] = []
        try observer.forEachValue(storage) { value throws(InspectionError) in
            found.append(value)
            sum.add(Self.valueFact(value.entity, value.object, value.column, value.place.length))
            if found.count == 1024 {
                try check(found)
                found.removeAll(keepingCapacity: true)
            }
        }
        try check(found)
        return sum
    }

    private mutating func check(_ values: [KnownValue]) throws(InspectionError) {
        for value in values where report.isComplete {
            report.values += 1
            report.bytes += value.place.address.frameLength
            do throws(EngineError) {
                try observer.log.check(value)
            } catch {
                guard error.code == .damaged else { throw InspectionError(error) }
                let object = names.object(value.entity, value.object)
                let column = snapshot.schema.entity(value.entity)?.column(value.column)
                report.add(
                    VerifyProblem(
                        kind: .damaged,
                        subject: "value of \(object).\(column?.name ?? "?")",
                        place: value.place.address.offset.rawValue,
                        bytes: value.place.address.frameLength,
                        isNeeded: true,
                        message: error.message,
                        objects: [object],
                        details: ["the rest of the row is not touched"]
                    )
                )
            }
            if report.values % 256 == 0, !goesOn() { return }
        }
    }

    private mutating func checkBlobs() throws(InspectionError) -> SetSum? {
        guard isReadable(.blobs, "blobs") else { return nil }
        var sum = SetSum()
        var found: [KnownBlob] = []
        try observer.forEachBlob(storage) { blob throws(InspectionError) in
            sum.add(Self.blobFact(blob.reference), times: blob.references)
            found.append(blob)
            if found.count == 1024 {
                try check(found)
                found.removeAll(keepingCapacity: true)
            }
        }
        try check(found)
        return sum
    }

    private mutating func check(_ blobs: [KnownBlob]) throws(InspectionError) {
        for blob in blobs where report.isComplete {
            report.blobs += 1
            report.bytes += blob.place?.address.frameLength ?? 0
            do throws(EngineError) {
                try observer.log.check(blob, readsContent: level == .full)
            } catch {
                let codes: [EngineError.Code] = [.blobMissing, .blobDamaged, .damaged]
                guard codes.contains(error.code) else { throw InspectionError(error) }
                if report.problems.count < VerifyReport.problemsMax {
                    badBlobs[blob.reference.digest] = report.problems.count
                }
                report.add(
                    VerifyProblem(
                        kind: error.code == .blobMissing ? .missing : .damaged,
                        subject: "blob \(Spelling.blob(blob.reference.digest.hexText)), "
                            + Spelling.size(blob.reference.length),
                        place: blob.place?.address.offset.rawValue,
                        bytes: blob.place?.address.frameLength,
                        isNeeded: true,
                        message: error.message,
                        details: blob.place == nil
                            ? ["its file is named \(blob.reference.digest.hexText)"] : []
                    )
                )
            }
            if !goesOn() { return }
        }
    }

    /// Files that no row names are not wrong: the store sweeps them when it may.
    private mutating func checkBlobFiles() throws(InspectionError) {
        guard damagedTrees[.blobs] == nil, report.isComplete else { return }
        let files = try engine { () throws(EngineError) in try observer.log.blobFiles() }
        var orphans = 0
        for digest in files {
            let value = try engine { () throws(EngineError) in
                try storage.value(.blobs, digest.bytes)
            }
            if value == nil { orphans += 1 }
        }
        if orphans > 0 {
            report.notes.append(
                "\(orphans) of \(files.count) blob files are named by no row of this commit"
            )
        }
    }

    private mutating func compare(
        _ found: SetSum?,
        _ expected: SetSum,
        _ what: String,
        _ tree: TreeID
    ) {
        guard let found else { return }
        guard rowsAreWhole else {
            report.notChecked.append("\(what) against rows: not all rows can be read")
            return
        }
        guard found != expected else { return }
        report.add(
            problem(
                what,
                "rows name \(expected.count), the tree \(names.name(tree)) holds \(found.count); "
                    + "they are not the same"
            )
        )
    }

    // MARK: Indexes

    private mutating func checkIndex(
        _ tree: TreeID,
        _ entity: RecordEntity
    ) throws(InspectionError) {
        let name = names.name(tree)
        guard isReadable(tree, "index \(name)") else { return }
        guard let expected = expectedEntries[tree] else {
            return
        }
        var found = SetSum()
        try observer.forEachEntry(tree, of: storage) { cursor throws(InspectionError) in
            try countEntry()
            found.add(cursor.key)
        }
        report.indexEntries += found.count
        guard goesOn(), found != expected else { return }
        wrongIndexes.insert(tree)
        try explain(tree, entity)
    }

    /// Which entries are missing from an index and which stand there without a row.
    private mutating func explain(
        _ tree: TreeID,
        _ entity: RecordEntity
    ) throws(InspectionError) {
        var missing: [String] = []
        var wrong: [String] = []
        var missingCount = 0
        var wrongCount = 0
        try observer.forEachEntry(entity.tree, of: storage) { cursor throws(InspectionError) in
            try countEntry()
            let found = try engine { () throws(EngineError) in
                try SharedObjectIDs.object(at: cursor)
            }
            // Rows without an object were told.
            guard let object = found else { return }
            for key in try entries(of: object, entity, tree) {
                let value = try engine { () throws(EngineError) in try storage.value(tree, key) }
                guard value == nil else { continue }
                missingCount += 1
                if missing.count < Self.objectsMax {
                    missing.append(names.object(entity.id, object))
                }
            }
        }
        try observer.forEachEntry(tree, of: storage) { cursor throws(InspectionError) in
            try countEntry()
            let object = try? cursor.trailingObjectID()
            if let object, try entries(of: object, entity, tree).contains(cursor.key) { return }
            wrongCount += 1
            if let object, wrong.count < Self.objectsMax {
                wrong.append(names.object(entity.id, object))
            }
        }
        let name = names.name(tree)
        if missingCount > 0 {
            report.add(
                problem("index \(name)", "\(missingCount) rows are missing in it", objects: missing)
            )
        }
        if wrongCount > 0 {
            report.add(
                problem("index \(name)", "\(wrongCount) entries fit no row", objects: wrong)
            )
        }
    }

    private func entries(
        of object: ObjectID,
        _ entity: RecordEntity,
        _ tree: TreeID
    ) throws(InspectionError) -> [[UInt8]] {
        let row = try engine { () throws(EngineError) in try storage.row(entity.tree, object) }
        guard let row else { return [] }
        var keys: [[UInt8]] = []
        do throws(FormatError) {
            try storage.deriveEntries(entity: entity.id, object: object, row: row.bytes) {
                at,
                key in
                if at == tree { keys.append(key) }
            }
        } catch {
            return []
        }
        return keys
    }

    // MARK: Helpers

    private mutating func isReadable(_ tree: TreeID, _ what: String) -> Bool {
        guard let pages = damagedTrees[tree] else { return true }
        let places = pages.prefix(3).map { Spelling.place($0.address.offset.rawValue) }
        report.notChecked.append("\(what): \(places.joined(separator: ", ")) cannot be read")
        return false
    }

    /// Called for each entry of a tree; asks now and then whether to go on.
    mutating func countEntry() throws(InspectionError) {
        entries += 1
        if entries % Self.entriesPerCall == 0, !goesOn() {
            throw InspectionError(.cancelled, "the check was ended")
        }
    }

    mutating func goesOn() -> Bool {
        if !progress(report.bytes, report.problems.count) { report.isComplete = false }
        return report.isComplete
    }

    func problem(
        _ subject: String,
        _ message: String,
        objects: [String] = []
    ) -> VerifyProblem {
        VerifyProblem(
            kind: .inconsistent,
            subject: subject,
            isNeeded: true,
            message: message,
            objects: objects
        )
    }
}
