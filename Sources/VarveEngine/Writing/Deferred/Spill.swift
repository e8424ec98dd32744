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
        commit: CommitNumber
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
        counters.spills.add(1, ordering: .relaxed)
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
