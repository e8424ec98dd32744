// FENCE: leaves that a scan comes to next, from the cache or restored by several threads.
//
// Invariants
// - A batch holds a reference to each leaf that was in memory; what is restored goes into the cache
//   as leaves that pass.
// - The first leaf of a batch is always restored; what is beyond its bytes is asked for again.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension NodeCache {
    /// Leaves under one parent, some of which may have to be restored.
    ///
    /// Like the cursor that has it, it is one thread's. It holds a reference to each leaf that was
    /// in memory.
    final class LeafBatch {
        fileprivate var leaves: [Result<TreeNode, EngineError>?] = []
        fileprivate var missing: [MissingLeaf] = []
        fileprivate let tree: TreeID
        fileprivate let bytesMax: Int
        /// Other threads restore those that are missing.
        fileprivate var work: WorkUnderWay<MissingLeaf, Result<TreeNode, EngineError>?>?

        fileprivate init(_ tree: TreeID, bytesMax: Int) {
            self.tree = tree
            self.bytesMax = bytesMax
        }
    }

    fileprivate struct MissingLeaf {
        let place: Int
        let address: PageAddress
        let rows: UInt64
    }

    /// Fewer leaves are not worth a thread.
    private static let leavesPerThreadMin = 8

    /// Looks for leaves under one parent, in the order of `indices`.
    ///
    /// The parent is of a published tree, and held meanwhile.
    ///
    /// - Parameters:
    ///   - bytesMax: what leaves that are restored take together, about.
    ///   - restoresNow: whether other threads begin with those that are not in memory, when they
    ///     are enough and no other scan has threads.
    func findLeaves(
        under parent: TreeNode,
        _ indices: [Int],
        tree: TreeID,
        bytesMax: Int,
        restoresNow: Bool
    ) -> LeafBatch {
        let batch = LeafBatch(tree, bytesMax: bytesMax)
        batch.leaves.reserveCapacity(indices.count)
        // Restored they are no less: what is beyond would be given up, and asked for again.
        var storedBytes = 0
        let ticket = epochs.enter()
        for index in indices {
            if storedBytes > bytesMax { break }
            let pointer = unsafe parent.view.child(index).pointee
            if let node = unsafe pointer.node ?? find(pointer.offset) {
                let leaf = unsafe node.takeUnretainedValue()
                let isChanged = unsafe pointer.node != nil
                let fits =
                    unsafe leaf.isLeaf && leaf.rows == pointer.rows
                    && (isChanged || leaf.isPage(pointer, of: tree))
                batch.leaves.append(fits ? .success(leaf) : unsafe .failure(Self.unfit(pointer)))
            } else if let address = unsafe pointer.address {
                epochs.countMiss()
                storedBytes += Int(address.storedLength)
                let place = batch.leaves.count
                unsafe batch.missing.append(
                    MissingLeaf(place: place, address: address, rows: pointer.rows)
                )
                batch.leaves.append(nil)
            } else {
                preconditionFailure("a child is in memory or in the file")
            }
        }
        epochs.leave(ticket)
        let threads = min(budget.scanThreads - 1, batch.missing.count / Self.leavesPerThreadMin)
        if restoresNow, threads > 0, budget.startHelp() {
            batch.work = BackgroundThread.begin(
                batch.missing,
                threads: threads,
                together: 2,
                atEnd: { [budget] in budget.endHelp() },
                restoring(batch)
            )
        }
        return batch
    }

    /// The leaves of a batch, with references: at least the first, and as many as take its bytes
    /// when they are restored. Called once for a batch.
    func restoredLeaves(_ batch: LeafBatch) -> [Result<TreeNode, EngineError>] {
        let restored = batch.work?.take() ?? restore(batch)
        var leaves = batch.leaves
        for (leaf, result) in zip(batch.missing, restored) {
            if case .success(let node)? = result {
                leaves[leaf.place] = .success(
                    insert(node, of: batch.tree, at: leaf.address, passes: true)
                )
            } else {
                leaves[leaf.place] = result
            }
        }
        // After the first that was too much, others may have been restored before that showed.
        return leaves.prefix { $0 != nil }.compactMap(\.self)
    }

    private func restore(_ batch: LeafBatch) -> [Result<TreeNode, EngineError>?] {
        let restored = restoring(batch)
        let threads = min(budget.scanThreads, batch.missing.count / Self.leavesPerThreadMin)
        guard threads > 1, budget.startHelp() else { return batch.missing.map(restored) }
        defer { budget.endHelp() }
        return BackgroundThread.map(batch.missing, threads: threads, together: 2, restored)
    }

    /// Bytes that may still be restored.
    private final class Room: Sendable {
        let left: Atomic<Int>
        init(_ bytes: Int) { left = Atomic(bytes) }
    }

    /// Gives nil for what would be too much; never for the first.
    private func restoring(
        _ batch: LeafBatch
    ) -> @Sendable (MissingLeaf) -> Result<TreeNode, EngineError>? {
        let (room, tree) = (Room(batch.bytesMax), batch.tree)
        return { leaf in
            if leaf.place > 0, room.left.load(ordering: .relaxed) <= 0 { return nil }
            do throws(EngineError) {
                let node = try self.checked(leaf.address, rows: leaf.rows, tree: tree, level: 0)
                room.left.subtract(node.footprint, ordering: .relaxed)
                return .success(node)
            } catch {
                return .failure(error)
            }
        }
    }
}
