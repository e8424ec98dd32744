// What a large transaction writes before it ends, so that its memory stays within a budget.
//
// Invariants
// - Lives inside one `Engine.write` call, under the writer lock, and has the log meanwhile.
// - What it appends is body of the commit to come: pages that nothing names until its frame. A
//   transaction that fails leaves them to the body of the next commit, as bytes that nobody needs.
// - Everything appended is handed to the system before anyone could read it.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

final class Spill {
    let engine: Engine
    private var log: LogWriter?
    private let directory: any StoreDirectory
    private let storeName: String
    /// One for all runs of the transaction.
    private var runFile: (any StoreFile)?
    private var runEnd: UInt64 = 0
    private var canPutAside = true
    let options: EngineOptions
    private let counters: EngineCounters
    /// Whether the log went on.
    private(set) var hasWritten = false

    init(_ engine: Engine, _ log: LogWriter) {
        self.engine = engine
        self.log = log
        directory = engine.directory
        storeName = String(engine.fileName.dropLast(Engine.fileSuffix.count))
        options = engine.options
        counters = engine.counters
    }

    /// Gives the log back; nothing can be written any more.
    func end(_ log: inout LogWriter) {
        if hasWritten, let written = self.log { log = written }
        self.log = nil
        runFile = nil
    }

    /// Writes changed nodes of the editors; they go on with the addresses.
    ///
    /// - Throws: `noSpace`, `ioFailed`: the transaction cannot go on.
    func write(
        _ editors: [TreeEditor],
        _ nodes: NodeCache,
        commit: CommitNumber,
        _ changed: TransactionNodes
    ) throws(EngineError) {
        guard var log = log else { return }
        // One owner of the buffer while it grows.
        self.log = nil
        hasWritten = true
        let mark = log.mark
        defer { self.log = log }
        var pages = PageWriter(
            commit: commit,
            nodes: nodes,
            flushBytes: options.earlyWriteBytes,
            keepsNodes: false,
            threads: options.encodingThreads
        )
        do throws(EngineError) {
            for editor in editors {
                try editor.spill { (child, level) throws(EngineError) in
                    try pages.write(child, of: editor.id, level: level, to: &log)
                }
            }
            try log.handBody()
        } catch {
            log.rollback(to: mark)
            throw error
        }
        changed.note(pages.leaves)
        counters.spills.add(1, ordering: .relaxed)
    }

    /// Writes the large values and blobs of a transaction that are nowhere yet, and counts the
    /// blobs that come. False: there were none.
    ///
    /// - Throws: `noSpace`, `ioFailed`, `blobMissing`: the transaction cannot go on.
    func place(valuesOf editor: StateEditor) throws(EngineError) -> Bool {
        let blobs = try editor.blobsWithoutPlace()
        if editor.pendingValues.isEmpty && blobs.isEmpty { return false }
        guard var log = log else { return false }
        self.log = nil
        hasWritten = true
        let mark = log.mark
        defer { self.log = log }
        do throws(EngineError) {
            try place(valuesOf: editor, blobs, &log)
            try log.handBody()
        } catch {
            log.rollback(to: mark)
            throw error
        }
        return true
    }

    private func place(
        valuesOf editor: StateEditor,
        _ blobs: [BlobReference],
        _ log: inout LogWriter
    ) throws(EngineError) {
        for pending in editor.pendingValues.values.sorted(by: {
            ($0.entity, $0.object, $0.value.column) < ($1.entity, $1.object, $1.value.column)
        }) {
            let header = ValueHeader(
                entity: pending.entity,
                column: pending.value.column,
                object: pending.object,
                commit: editor.number
            )
            let place = try append(header, pending.value.bytes, &log)
            try editor.place(pending.entity, pending.object, pending.value.column, at: place)
        }
        var places: [BlobReference: BlobEntry.Place] = [:]
        for reference in blobs {
            guard let bytes = try engine.blobStore.bytes(of: reference) else {
                places[reference] = .file
                continue
            }
            let header = ValueHeader(of: reference, commit: editor.number)
            places[reference] = .frame(try append(header, bytes, &log))
        }
        if places.values.contains(.file) {
            let store = engine.blobStore
            try store.engineError { () throws(BlobError) in try store.files.publish() }
        }
        try editor.countBlobsNow(places)
    }

    private func append(
        _ header: ValueHeader,
        _ bytes: [UInt8],
        _ log: inout LogWriter
    ) throws(EngineError) -> ValuePlace {
        guard bytes.count <= EngineOptions.valueBytesMax else {
            throw EngineError(
                .limitExceeded,
                "a value has \(bytes.count) bytes, the limit is \(EngineOptions.valueBytesMax)"
            )
        }
        let address = log.appendBody(
            .value,
            front: header.encoded(),
            body: bytes,
            compresses: bytes.count >= 256
        )
        if log.bufferedBytes > options.earlyWriteBytes { try log.handBody() }
        return ValuePlace(address: address, length: UInt64(bytes.count))
    }

    /// Puts sorted entries aside. Nil when there is no file or no space for them.
    func putAside(_ sorted: PendingEntries) -> SortedRun? {
        guard log != nil, canPutAside else { return nil }
        do throws(IOError) {
            let file: any StoreFile
            if let runFile {
                file = runFile
            } else {
                file = try SortedRun.makeFile(directory, storeName, options.environment)
                runFile = file
            }
            let run = try SortedRun.write(sorted, to: file, from: runEnd)
            runEnd = run.end
            counters.sortedRuns.add(1, ordering: .relaxed)
            return run
        } catch {
            // Then they go into the tree at once, which costs time and no temporary space.
            runFile = nil
            canPutAside = false
            return nil
        }
    }
}
