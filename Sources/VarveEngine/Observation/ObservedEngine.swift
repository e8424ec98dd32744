// The state that an observer found, as an engine that only reads.
//
// Invariants
// - The state is that of the observer's tail, or of the last commit before one that cannot be
//   applied; nothing that is damaged is guessed.

internal import Synchronization
public import VarveBase
public import VarveFormat
internal import VarveIO

extension Engine {
    /// Opens what an observer sees, for reading only: same file, same moment, no lock.
    ///
    /// - Returns: the engine, and what is wrong with the newest commit: the damage that keeps it
    ///   from being applied, so that an earlier one is shown, or in its list of changed objects.
    /// - Throws: `damaged` when no state can be built at all, `ioFailed`.
    /// - Complexity: O(log bytes since the last checkpoint).
    public static func open(
        observing observer: LogObserver,
        options: EngineOptions = EngineOptions(),
        delegate: any EngineDelegate
    ) throws(EngineError) -> (engine: Engine, failure: EngineError?) {
        guard let recovered = observer.recovered else {
            throw observer.failure ?? .damaged("the log holds no sound commit")
        }
        let counters = EngineCounters()
        let budget = NodeBudget(bytesMax: options.nodeCacheBytes, options.environment)
        let generation = Generation(
            file: observer.file,
            header: observer.header,
            budget: budget,
            counters: counters
        )
        let replay = Replay(
            generation: generation,
            delegate: delegate,
            options: options,
            counters: counters,
            stamp: TreeNode.cleanStamp + 1
        )
        var (state, failure) = try replay.state(upToDamageIn: recovered)
        // No state needs a TREE's list of changed objects, but the next settle and the history do.
        if failure == nil, recovered.effectiveBase.header.kind == .tree {
            do throws(EngineError) {
                try Replay.checkChanges(of: recovered.effectiveBase)
            } catch {
                failure = error
            }
        }
        let log = LogWriter(behind: recovered, in: generation, options, counters)
        let engine = Engine(
            names: DirectoryNames(observer.directory),
            fileName: observer.fileName,
            options: options,
            delegate: delegate,
            nodeBudget: budget,
            counters: counters,
            blobStore: BlobStore(files: observer.blobs),
            role: .readerOfOneMoment,
            state: state,
            durable: recovered.unsettled.isEmpty ? nil : recovered.proven.number,
            writer: WriterState(
                log: log,
                epoch: recovered.newest.record.epoch,
                state: state,
                isClosed: recovered.isClosed,
                recordedHighWater: recovered.newest.record.objectIDHighWater
            ),
            nextObjectID: max(recovered.newest.record.objectIDHighWater, 1)
        )
        return (engine, failure)
    }
}

extension Snapshot {
    /// The index entries that the stored schema derives from a row of this commit.
    ///
    /// - Throws: `FormatError` when the row cannot be read.
    public func deriveEntries(
        entity: EntityID,
        object: ObjectID,
        row: [UInt8],
        emit: (TreeID, [UInt8]) -> Void
    ) throws(FormatError) {
        guard let deriver = state.deriver else { return }
        var keys = EntryKeys()
        try deriver.entries(
            entity: entity,
            object: object,
            row: row.span,
            changed: nil,
            into: &keys
        )
        for index in 0..<keys.count { emit(keys.tree(index), Array(keys.bytes[keys.key(index)])) }
    }
}
