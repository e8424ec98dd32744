// Compaction and backup of a record store.

internal import VarveBase
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
        let report: CompactionReport
        do throws(EngineError) {
            report = try engine.compact(
                damage: damage,
                progress: progress,
                isCancelled: isCancelled
            )
        } catch {
            throw .engine(error)
        }
        let lost = Set(report.damage.map(\.tree))
        if !lost.isEmpty { try rebuildIndexes(touching: lost) }
        return report
    }

    private func rebuildIndexes(touching lost: Set<TreeID>) throws(RecordError) {
        do {
            _ = try engine.write(author: "compaction") { transaction in
                for entity in try self.schema(transaction.schema).all {
                    let trees = entity.indexes.flatMap { [$0.tree, $0.cutTree].compactMap(\.self) }
                    if lost.isDisjoint(with: trees + [entity.tree]) { continue }
                    try transaction.rebuildIndexes(trees, of: entity.id)
                }
            }
        } catch let error as RecordError {
            throw error
        } catch let error as EngineError {
            throw .engine(error)
        } catch {
            preconditionFailure("a rebuild throws errors of this layer and the engine's: \(error)")
        }
    }

    /// Copies the store to another place, or brings an earlier copy there up to date; see
    /// `Engine.backup`.
    public func backup(
        to location: StoreLocation,
        progress: (_ done: UInt64, _ all: UInt64) -> Void = { _, _ in },
        isCancelled: () -> Bool = { false }
    ) throws(RecordError) -> BackupReport {
        do throws(EngineError) {
            return try engine.backup(to: location, progress: progress, isCancelled: isCancelled)
        } catch {
            throw .engine(error)
        }
    }
}
