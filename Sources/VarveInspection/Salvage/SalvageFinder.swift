// Where the large values, the blobs and the schema of a damaged store are.
//
// Invariants
// - A large value is taken from an older state only when its row was not changed since.
// - A blob is what its digest says, wherever it is found.

import VarveBase
import VarveEngine
import VarveFormat
import VarveRecords

struct SalvageFinder {
    let log: LogObserver
    let base: CommitFrame
    private let chain: SalvageChain
    /// The state that is kept, then older ones, newest first; found when they are needed.
    private var states: [(number: CommitNumber, roots: [TreeID: StoredRoot])]
    private var isComplete = false

    private static let statesMax = 256

    init(log: LogObserver, base: CommitFrame, roots: [TreeID: StoredRoot]) {
        self.log = log
        self.base = base
        chain = SalvageChain(log: log)
        states = [(base.record.number, roots.filter { $0.key < .firstFree })]
    }

    /// The value of a key, or nil; throws `damaged` when the page is.
    static func value(
        _ log: LogObserver,
        _ root: StoredRoot?,
        _ key: [UInt8]
    ) throws -> [UInt8]? {
        guard let root else { return nil }
        var found: [UInt8]?
        try log.forEachEntry(
            of: root,
            from: key,
            to: key + [0],
            entry: { _, value in found = value },
            damaged: { _, error in throw error }
        )
        return found
    }

    // MARK: Older states

    private mutating func findOlder() throws(InspectionError) {
        if isComplete { return }
        isComplete = true
        var commit = base
        while states.count < Self.statesMax {
            switch try chain.step(from: commit) {
            case .commit(let before), .bridged(let before, _): commit = before
            case .beginning, .broken: return
            }
            guard commit.header.kind == .tree || commit.header.kind == .checkpoint else { continue }
            let (log, frame) = (log, commit)
            guard case .trees(let roots, _)? = try? log.content(of: frame) else { continue }
            let own = roots.filter { $0.tree < .firstFree }
            states.append(
                (
                    commit.record.number,
                    Dictionary(own.map { ($0.tree, $0) }, uniquingKeysWith: { first, _ in first })
                )
            )
        }
    }

    // MARK: Large values

    /// The bytes of a value outside its row; nil when they cannot be read.
    mutating func value(
        _ entity: EntityID,
        _ object: ObjectID,
        _ column: ColumnID,
        _ outside: OutsideValue,
        version: CommitNumber,
        told: ValuePlace?
    ) throws -> [UInt8]? {
        if let told, let bytes = try bytes(at: told, outside) { return bytes }
        var writer = ByteWriter(capacity: 12)
        writer.u16(entity.rawValue.byteSwapped)
        writer.u64(object.rawValue.byteSwapped)
        writer.u16(column.rawValue.byteSwapped)
        let key = writer.bytes
        var index = 0
        while true {
            if index == 1 { try findOlder() }
            guard index < states.count else { return nil }
            let state = states[index]
            // A later change of the row may have been one of this value.
            guard index == 0 || version <= state.number else { return nil }
            index += 1
            do {
                guard let value = try Self.value(log, state.roots[.largeValues], key) else {
                    continue
                }
                let known = try KnownValue(key: key, value: value)
                if let bytes = try bytes(at: known.place, outside) { return bytes }
            } catch let error as EngineError {
                guard error.code == .damaged else { throw error }
            } catch is FormatError {
                // An entry that cannot be read: an older one may do.
            }
        }
    }

    private func bytes(at place: ValuePlace, _ outside: OutsideValue) throws -> [UInt8]? {
        guard place.length == outside.length else { return nil }
        do throws(EngineError) {
            let bytes = try log.bytes(at: place)
            return bytes.starts(with: outside.prefix) ? bytes : nil
        } catch {
            guard error.code == .damaged else { throw error }
            return nil
        }
    }

    // MARK: Blobs

    /// Where the bytes of a blob may be, the most likely first.
    mutating func places(of reference: BlobReference, told: ValuePlace??) throws -> [ValuePlace?] {
        var places: [ValuePlace?] = []
        if let told { places.append(told) }
        var index = 0
        while true {
            if index == 1 {
                // Its file needs no entry.
                if !places.contains(nil) { places.append(nil) }
                if index < states.count || places.count < 2 { try findOlder() }
            }
            guard index < states.count else { break }
            let state = states[index]
            index += 1
            do {
                guard
                    let value = try Self.value(log, state.roots[.blobs], reference.digest.bytes)
                else { continue }
                let place = try KnownBlob(key: reference.digest.bytes, value: value).place
                if !places.contains(place) { places.append(place) }
                if index == 1, place != nil { break }
            } catch let error as EngineError {
                guard error.code == .damaged else { throw error }
            } catch is FormatError {
                // As above.
            }
        }
        if !places.contains(nil) { places.append(nil) }
        return places
    }

    /// Hands a blob over from one of its places; false when what is there is not the blob.
    func read(
        _ reference: BlobReference,
        at place: ValuePlace?,
        _ body: ([UInt8]) throws(EngineError) -> Void
    ) throws(EngineError) {
        guard let place else { return try log.readBlobFile(reference, body) }
        let bytes = try log.bytes(at: place)
        guard UInt64(bytes.count) == reference.length,
            BlobHasher.digest(of: bytes) == reference.digest
        else {
            throw EngineError(
                .blobDamaged,
                "blob \(Spelling.blob(reference.digest.hexText)) is not what its digest says",
                place: place.address.offset
            )
        }
        try body(bytes)
    }

    // MARK: Schema

    /// The schema of a state; empty when it has none. After damage that of an older state with the
    /// same revision.
    static func schema(
        _ log: LogObserver,
        _ chain: SalvageChain,
        _ base: CommitFrame,
        _ catalog: StoredRoot?,
        _ record: CommitRecord
    ) throws(InspectionError) -> [UInt8] {
        let key = Array("schema".utf8)
        var commit = base
        var root = catalog
        var failure: InspectionError?
        while true {
            do {
                if let bytes = try value(log, root, key) {
                    if failure == nil { return bytes }
                    if try SchemaRecord(decoding: bytes).revision == record.schemaVersion {
                        return bytes
                    }
                } else if failure == nil {
                    return []
                }
            } catch let error as EngineError {
                guard error.code == .damaged else { throw InspectionError(error) }
                failure = failure ?? InspectionError(error)
            } catch {
                failure = failure ?? InspectionError(.damaged, "\(error)")
            }
            step: while true {
                switch try chain.step(from: commit) {
                case .commit(let before), .bridged(let before, _): commit = before
                case .beginning, .broken:
                    let failure = failure ?? InspectionError(.damaged, "there is no schema")
                    throw InspectionError(
                        .damaged,
                        "no copy of the stored schema can be read: \(failure.message)",
                        hint: "without it no row can be told from another; use a backup",
                        place: failure.place
                    )
                }
                let frame = commit
                guard case .trees(let roots, _)? = try? log.content(of: frame) else { continue }
                root = roots.first { $0.tree == .catalog }
                break step
            }
        }
    }
}
