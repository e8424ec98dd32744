// A checkpoint that writers do not wait for.
//
// Invariants
// - Nodes of a published state never change, so they are encoded, compressed and hashed without
//   any lock. A node lies in the file before its parent.
// - Pages join the body of whatever commit comes next, a chunk at a time, under the writer lock.
//   They count only once a CKPT or a later page names them.
// - The CKPT describes the pending state at the moment it is appended: what changed meanwhile is
//   written under the lock, and is little, because all the rest was written before.
// - A TREE commit, a void or a compaction in between makes the pages worthless: the checkpoint ends
//   without a trace but bytes.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension Engine {
    /// Bytes of pages that are appended under one hold of the writer lock.
    static let checkpointChunkBytes = 256 << 10

    /// What pages of a checkpoint stand on: when it is another one they are worthless.
    private struct Basis: Equatable {
        let file: ObjectIdentifier
        let checkpoint: FileOffset
        let voids: Int
        let turns: Int

        init(_ writer: borrowing WriterState) {
            file = ObjectIdentifier(writer.generation)
            checkpoint = writer.log.checkpoint
            voids = writer.log.voids
            // Without a turn it is nobody's.
            turns = writer.hasTurn ? writer.turns : -1
        }
    }

    /// Writes a checkpoint while commits go on.
    func checkpointInBackground(_ thread: MaintenanceThread) throws(EngineError) {
        // 1. What is there now, and what would make the work worthless.
        let (state, basis, progress) = writer.withLock {
            ($0.pending, Basis($0), $0.log.progress)
        }
        guard state.isDirty, basis.turns >= 0 else { return }
        guard let listener = options.checkpointed else {
            return _ = try write(state, basis, progress, thread)
        }
        // One that became worthless is told of by nobody: it left no trace.
        let start = options.environment.monotonicNanoseconds()
        let result = Result { () throws(EngineError) in
            try write(state, basis, progress, thread)
        }
        let nanoseconds = options.environment.monotonicNanoseconds() &- start
        switch result {
        case .success(let report?): listener(.success(report), nanoseconds)
        case .success(nil): break
        case .failure(let error):
            listener(.failure(error), nanoseconds)
            throw error
        }
    }

    /// Steps 2 to 4. Nil: it has become worthless, or the thread is to stop.
    private func write(
        _ state: StoreState,
        _ basis: Basis,
        _ progress: LogProgress,
        _ thread: MaintenanceThread
    ) throws(EngineError) -> CheckpointReport? {
        var pages = CheckpointPages(state)
        // Addresses are found by the identity of nodes, which must not be freed before the CKPT.
        defer { withExtendedLifetime(pages) {} }
        // 2. Pages, leaves first: prepared without a lock, appended with it.
        while !thread.isStopping, let chunk = try pages.nextChunk(Self.checkpointChunkBytes) {
            let isCurrent = try append(chunk, to: &pages, basis)
            if !isCurrent { return nil }
        }
        if thread.isStopping { return nil }
        // 3. On disk before the CKPT, so that savers who share its sync do not wait for them.
        let file = try maintenanceFile(thread, state.generation)
        do throws(IOError) { try progress.syncElsewhere(file) } catch {
            throw poisonIfSyncFailed(
                EngineError(.poisoned, "a sync failed (\(error.description))", cause: error)
            )
        }
        options.environment.yield(.checkpointPages)
        // 4. The CKPT, on its way like any commit.
        let commit = try writer.withLock { writer throws(EngineError) -> QueuedCommit? in
            try checkWritable(writer)
            guard writer.needsCheckpoint, Basis(writer) == basis else { return nil }
            return try enqueueCheckpoint(pages, &writer)
        }
        guard let commit else { return nil }
        while queue.waitOrLead(for: commit) { lead() }
        if case .failed(let error) = commit.outcome.withLock({ $0 }) { throw error }
        return commit.pages.map {
            CheckpointReport(commit.state.number, $0, isInBackground: true)
        }
    }

    /// Appends a chunk to the body of the commit to come, and hands it over.
    /// - Returns: false when the checkpoint has become worthless.
    private func append(
        _ chunk: [CheckpointPages.Page],
        to pages: inout CheckpointPages,
        _ basis: Basis
    ) throws(EngineError) -> Bool {
        let placed = try writer.withLock { writer throws(EngineError) -> [PageAddress]? in
            try checkWritable(writer)
            guard Basis(writer) == basis else { return nil }
            let mark = writer.log.mark
            let addresses = chunk.map { writer.log.appendBody($0.frame) }
            do throws(EngineError) {
                try writer.log.makeRoom(leaving: options.maintenanceReserve)
                do throws(IOError) { try writer.log.flush() } catch { throw .io(error) }
            } catch {
                throw giveUp(&writer, backTo: mark, error)
            }
            // Or savers would soon write the same pages themselves.
            writer.log.countAhead(addresses.reduce(0) { $0 + $1.frameLength })
            return addresses
        }
        guard let placed else { return false }
        pages.place(chunk, at: placed)
        counters.backgroundPages.add(UInt64(chunk.count), ordering: .relaxed)
        return true
    }

    private func enqueueCheckpoint(
        _ written: borrowing CheckpointPages,
        _ writer: inout WriterState
    ) throws(EngineError) -> QueuedCommit {
        let mark = writer.log.mark
        do throws(EngineError) {
            let (clean, pages) = try appendCheckpoint(
                known: written.addresses,
                leaving: options.maintenanceReserve,
                &writer
            )
            // Here, or deletes that share its batch would be refused with it.
            try writer.log.makeRoom(leaving: options.maintenanceReserve)
            let commit = QueuedCommit(
                epoch: writer.epoch,
                state: clean,
                changes: nil,
                pages: pages,
                durability: .full,
                end: writer.log.end
            )
            writer.take(commit)
            queue.add(commit)
            return commit
        } catch {
            throw giveUp(&writer, backTo: mark, error)
        }
    }
}

/// Changed nodes of one state on their way to pages, level by level.
struct CheckpointPages {
    struct Page {
        let node: TreeNode
        let frame: Frame.Prepared
    }

    /// Keeps the nodes alive, and so their identities.
    private let state: StoreState
    /// Changed nodes by level, leaves first; `next` is the first that is not prepared yet.
    private var levels: [[(tree: TreeID, node: TreeNode)]] = []
    private var level = 0
    private var next = 0
    /// Where the nodes are now.
    private(set) var addresses: [ObjectIdentifier: PageAddress] = [:]

    init(_ state: StoreState) {
        self.state = state
        for id in state.trees.keys.sorted() {
            guard let root = state.trees[id], let node = root.node else { continue }
            collect(node, of: id)
        }
    }

    private mutating func collect(_ node: TreeNode, of tree: TreeID) {
        while levels.count <= node.level { levels.append([]) }
        levels[node.level].append((tree, node))
        for child in node.children {
            if let changed = child.node { collect(changed, of: tree) }
        }
    }

    /// The next pages, at most about `bytes` of them; nil when all are placed. The chunk before
    /// must have been placed.
    mutating func nextChunk(_ bytes: Int) throws(EngineError) -> [Page]? {
        var chunk: [Page] = []
        var size = 0
        while level < levels.count {
            if next == levels[level].count {
                // Parents name their children: these must be placed first.
                if !chunk.isEmpty { return chunk }
                level += 1
                next = 0
                continue
            }
            let (tree, node) = levels[level][next]
            next += 1
            let frame = prepare(node, tree)
            chunk.append(Page(node: node, frame: frame))
            size += Int(frame.frameLength)
            if size >= bytes { return chunk }
        }
        return chunk.isEmpty ? nil : chunk
    }

    mutating func place(_ chunk: [Page], at places: [PageAddress]) {
        for (page, address) in zip(chunk, places) {
            addresses[ObjectIdentifier(page.node)] = address
        }
    }

    private func prepare(_ node: TreeNode, _ tree: TreeID) -> Frame.Prepared {
        var clean = node
        if !node.isLeaf {
            clean = TreeNode(copying: node, stamp: TreeNode.cleanStamp, slack: 0)
            for index in clean.children.indices {
                guard let changed = node.children[index].node else { continue }
                clean.children[index] = ChildPointer(
                    node: nil,
                    address: addresses[ObjectIdentifier(changed)],
                    rows: node.children[index].rows
                )
            }
        }
        return PageCoding.frame(
            of: clean,
            tree: tree,
            commit: state.number,
            seed: state.generation.header.fileSeed,
            edits: state.generation.nodes.writesEdits
        )
    }
}
