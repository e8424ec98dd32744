// Compaction, backup, restore and suspension of a record store.

public import VarveBase
public import VarveEngine

extension RecordStore {
    /// Copies what the store needs into a new file; see `Engine.compact`.
    ///
    /// With `skipDamaged`, indexes that lost entries, or whose rows did, are built again, so that
    /// they name the rows that are left.
    public func compact(
        damage: CompactionDamage = .stop,
        progress: (CompactionProgress) -> Void = { _ in },
        isCancelled: () -> Bool = { false }
    ) throws(RecordError) -> CompactionReport {
        let report = try RecordError.ofEngine { () throws(EngineError) in
            try engine.compact(damage: damage, progress: progress, isCancelled: isCancelled)
        }
        let lost = Set(report.damage.map(\.tree))
        if !lost.isEmpty { try rebuildIndexes(touching: lost) }
        return report
    }

    private func rebuildIndexes(touching lost: Set<TreeID>) throws(RecordError) {
        try writeOwn(author: "compaction") { transaction in
            for entity in try self.schema(transaction.schema).all {
                let trees = entity.indexes.flatMap { [$0.tree, $0.cutTree].compactMap(\.self) }
                if lost.isDisjoint(with: trees + [entity.tree]) { continue }
                try transaction.rebuildIndexes(trees, of: entity.id)
            }
        }
    }

    /// Copies the store to another place, or brings an earlier copy there up to date; see
    /// `Engine.backup`.
    public func backup(
        to location: StoreLocation,
        progress: (_ done: UInt64, _ all: UInt64) -> Void = { _, _ in },
        isCancelled: () -> Bool = { false }
    ) throws(RecordError) -> BackupReport {
        try RecordError.ofEngine { () throws(EngineError) in
            try engine.backup(to: location, progress: progress, isCancelled: isCancelled)
        }
    }

    /// Gives up every lock; see `Engine.suspend`.
    public func suspend() throws(RecordError) {
        try RecordError.ofEngine { () throws(EngineError) in try engine.suspend() }
    }

    /// Takes them again; see `Engine.resume`.
    public func resume() throws(RecordError) {
        try RecordError.ofEngine { () throws(EngineError) in try engine.resume() }
    }

    /// What the files of the store hold; see the calls of the engine.
    public func spaceUse() throws(RecordError) -> SpaceUse {
        try RecordError.ofEngine { () throws(EngineError) in
            SpaceUse(
                file: engine.statistics.fileBytes,
                log: try engine.spaceReport(),
                blobs: try engine.blobFiles(),
                oldest: try engine.oldestCommit()
            )
        }
    }

    /// What the files of a store hold.
    public struct SpaceUse: Sendable {
        /// Bytes of the store file.
        public let file: UInt64
        /// Bytes of its log by what they are for.
        public let log: SpaceReport
        /// Blobs in files of their own.
        public let blobs: (count: Int, bytes: UInt64)
        /// The oldest commit in the file.
        public let oldest: (number: CommitNumber, time: Int64)
    }

    /// Opens a backup for reading, to restore it. A damaged one is refused.
    public static func openBackup(_ location: StoreLocation) throws(RecordError) -> RecordStore {
        let store = try openAsStored(location, options: RecordOptions(mode: .readOnly))
        guard let damage = store.engine.damage else { return store }
        try? store.close()
        throw .engine(damage)
    }

    /// Makes this store the one at another place; see `Engine.restore`.
    public func restore(
        to location: StoreLocation,
        replacing: Bool,
        progress: (_ done: UInt64, _ all: UInt64) -> Void = { _, _ in },
        isCancelled: () -> Bool = { false }
    ) throws(RecordError) -> BackupReport {
        try RecordError.ofEngine { () throws(EngineError) in
            try engine.restore(
                to: location,
                replacing: replacing,
                progress: progress,
                isCancelled: isCancelled
            )
        }
    }
}
