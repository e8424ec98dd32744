// One compaction at work: trees, then commits, from the old file into the new one.
//
// Invariants
// - The state that is built has the rows of its commit in the old file, entry by entry; only the
//   addresses of pages and values differ.
// - Commits keep number, epoch, clock, author and counts.
// - Changed nodes in memory are bounded: then pages are written. Little will do for changes in the
//   order of keys; commits touch pages in any order, which would be written over and over.
// - Nothing of the old file changes, and nobody sees the new one.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

struct CompactionRun {
    static let sortedBytesMax = 4 << 20
    /// Changes between two looks at what is in memory.
    static let changesBetweenLooks = 256

    let options: EngineOptions
    let delegate: any EngineDelegate
    let counters: EngineCounters
    /// Whether commits after the oldest one stay apart.
    let keepsHistory: Bool
    let skipsDamage: Bool
    /// Threads that decode and encode leaves.
    let threads: Int
    /// Called now and then with the number of entries copied and the bytes of the new file; throws
    /// to end the run. It may wait or call the engine, so not in the last step.
    private let advance: (UInt64, UInt64) throws(EngineError) -> Void

    var file: CompactedFile
    /// What the new file holds so far.
    var state: StoreState
    /// Record of the newest commit in the new file.
    private(set) var record = CommitRecord()
    private(set) var commits: UInt64 = 0
    private(set) var damage: [DamagedRange] = []
    /// Whether savers wait for what is done now.
    var isLastStep = false
    /// Of nodes that are changed now; later ones get higher ones.
    private(set) var stamp = TreeNode.cleanStamp + 1
    private var hasBase = false
    private var changesSinceLook = 0

    init(
        file: CompactedFile,
        options: EngineOptions,
        delegate: any EngineDelegate,
        counters: EngineCounters,
        keepsHistory: Bool,
        skipsDamage: Bool,
        threads: Int,
        advance: @escaping (UInt64, UInt64) throws(EngineError) -> Void
    ) {
        self.file = file
        self.options = options
        self.delegate = delegate
        self.counters = counters
        self.keepsHistory = keepsHistory
        self.skipsDamage = skipsDamage
        self.threads = threads
        self.advance = advance
        state = StoreState(generation: file.generation)
    }

    private func step(_ entries: UInt64) throws(EngineError) {
        if !isLastStep { try advance(entries, file.log.end.rawValue) }
    }

    // MARK: The oldest commit

    /// Streams the trees of the oldest commit that is kept into full pages.
    mutating func begin(with base: StoreState) throws(EngineError) {
        take(base)
        for tree in base.trees.keys.sorted() {
            // Values stand between the pages that name them, so those are written one by one.
            let namesFrames = tree == .largeValues || tree == .blobs
            let threads = namesFrames ? 1 : threads
            var stream = LeafStream(
                tree,
                of: base,
                skipsDamage: skipsDamage,
                threads: threads
            )
            let packing =
                try options.packsLeaves && !namesFrames ? packing(of: base.tree(tree)) : nil
            var builder = TreeBuilder(
                tree: tree,
                commit: base.number,
                leafBytes: options.compactedLeafBytes,
                innerWeight: options.innerSplitWeight,
                heavyWeight: options.nodeWeightMax,
                threads: threads,
                packing: packing
            )
            while let leaf = try stream.next() {
                if namesFrames {
                    try copy(leaf, of: tree, base.generation.log, &builder)
                } else {
                    builder.append(leaf, to: &file.log)
                }
                try file.relieve()
                try step(UInt64(leaf.count))
            }
            damage += stream.damage
            let root = builder.finish(&file.log)
            state.trees[tree] = root.rows == 0 ? nil : root
        }
        let bytes = file.log.end.rawValue - FileHeader.logStart.rawValue
        try file.flush()
        (state.baseTrees, state.liveBytes) = (state.trees, bytes)
    }

    /// How the leaves of a tree are packed. Of one that is damaged nothing is learned where damage
    /// is skipped.
    private mutating func packing(of tree: Tree) throws(EngineError) -> LeafPacking? {
        do throws(EngineError) {
            return try LeafPacking.learned(
                tree,
                state.number,
                packsAny: options.packsAnyLeaf,
                writingTo: &file.log
            )
        } catch {
            guard skipsDamage, error.code == .damaged else { throw error }
            return LeafPacking(symbols: nil)
        }
    }

    private mutating func take(_ other: StoreState) {
        state.number = other.number
        state.schema = other.schema
        state.schemaVersion = other.schemaVersion
        state.deriver = other.deriver
    }

    /// Entries of a leaf whose values name frames.
    private mutating func copy(
        _ leaf: TreeNode,
        of tree: TreeID,
        _ source: LogReader,
        _ builder: inout TreeBuilder
    ) throws(EngineError) {
        for index in 0..<leaf.count {
            let key = leaf.key(index)
            do throws(EngineError) {
                let value = try moved(leaf.value(index), of: tree, key, source)
                builder.append(key, value, to: &file.log)
            } catch {
                guard skipsDamage, error.code == .damaged else { throw error }
                damage.append(
                    DamagedRange(
                        tree: tree,
                        low: key,
                        high: key + [0],
                        entries: 1,
                        place: error.place,
                        message: error.message
                    )
                )
            }
        }
    }

    /// An entry's value with the address of the copy in it.
    private mutating func moved(
        _ value: [UInt8],
        of tree: TreeID,
        _ key: [UInt8],
        _ source: LogReader
    ) throws(EngineError) -> [UInt8] {
        if tree == .blobs {
            var entry = try decoded { () throws(FormatError) in
                try BlobEntry(decoding: value)
            }
            guard case .frame(let place) = entry.place else { return value }
            // The digest vouches for the content: what is here already will do.
            if let there = try state.tree(.blobs).value(key) {
                let known = try decoded { () throws(FormatError) in
                    try BlobEntry(decoding: there)
                }
                entry.place = known.place
                if case .frame = known.place { return entry.encoded() }
            }
            entry.place = .frame(try file.copy(place, from: source))
            return entry.encoded()
        }
        let place = try decoded { () throws(FormatError) in try ValuePlace(decoding: value) }
        var writer = ByteWriter(capacity: 20)
        try file.copy(place, from: source).append(to: &writer)
        return writer.bytes
    }

    // MARK: Later commits

    /// Brings the new state from one state of the old file to a later one.
    mutating func apply(from old: StoreState, to new: StoreState) throws(EngineError) {
        take(new)
        for tree in Set(old.trees.keys).union(new.trees.keys).sorted() {
            var difference = TreeDifference(from: old.tree(tree), to: new.tree(tree))
            var editor: TreeEditor?
            var changes = 0
            while let change = try difference.next() {
                let editing = editor ?? self.editor(tree)
                editor = editing
                if let value = change.after {
                    let isPlace = tree == .largeValues || tree == .blobs
                    let stored =
                        isPlace
                        ? try moved(value, of: tree, change.key, new.generation.log) : value
                    try editing.put(change.key, stored)
                } else {
                    try editing.remove(change.key)
                }
                changes += 1
                if changes % Self.changesBetweenLooks == 0 {
                    keep(editing)
                    if try relieveMemory(Self.sortedBytesMax) { editor = nil }
                    try step(0)
                }
            }
            if let editor { keep(editor) }
        }
    }

    /// The account of openings has a gap where damage was skipped: it begins anew.
    mutating func forgetEpochs() throws(EngineError) {
        guard damage.contains(where: { $0.tree == .catalog }) else { return }
        let editor = editor(.catalog)
        for key in try EpochAccount.keys(in: editor.tree) { try editor.remove(key) }
        keep(editor)
    }

    private func editor(_ tree: TreeID) -> TreeEditor {
        TreeEditor(
            id: tree,
            stamp: stamp,
            loader: file.generation.nodes,
            splitWeight: options.nodeWeightMax,
            innerWeight: options.innerSplitWeight,
            root: state.trees[tree] ?? .empty
        )
    }

    private mutating func keep(_ editor: TreeEditor) {
        state.trees[editor.id] = editor.root.rows == 0 ? nil : editor.root
    }

    /// Applies a commit frame of the old file as the next commit of the new one.
    mutating func apply(_ commit: ScannedCommit, _ chain: CommitChain) throws(EngineError) {
        if commit.header.kind == .delta {
            try applyDelta(commit, chain.scan.log)
        } else {
            try applyTree(commit, chain)
        }
        record = commit.record
        commits += 1
        // While savers wait there is little left, and a checkpoint is none of it.
        if !isLastStep, file.log.end.rawValue - state.baseFrame.rawValue > tailMax {
            try writeCheckpoint()
        }
        try file.relieve()
        try step(0)
    }

    /// Log bytes after a checkpoint of the new file that call for the next one: four times what
    /// calls for one elsewhere, as for the old file while this runs (`Engine.dueTail`). Commits of
    /// random rows touch most pages, and a checkpoint would write all that was just written again.
    var tailMax: UInt64 {
        let tail = min(
            max(state.liveBytes / 8, options.checkpointTailMin),
            options.checkpointTailMax
        )
        return max(tail, min(4 * tail, options.checkpointTailMax))
    }

    private mutating func applyDelta(
        _ commit: ScannedCommit,
        _ source: LogReader
    ) throws(EngineError) {
        var places: [NewPlace] = []
        var reader = try decoded { () throws(FormatError) in try Replay.bodyReader(commit) }
        let listed = try decoded { () throws(FormatError) in
            try DeltaOps.decodePlaces(&reader, below: commit.offset)
        }
        for place in listed {
            switch place {
            case .largeValue(let entity, let object, let column, let old):
                let new = try file.copy(old, from: source)
                places.append(
                    .largeValue(entity: entity, object: object, column: column, place: new)
                )
            case .blobFrame(let reference, let old):
                places.append(.blobFrame(reference, try file.copy(old, from: source)))
            case .blobFile: places.append(place)
            }
        }
        // An index may cover them.
        if !places.isEmpty { try file.flush() }
        let replay = Replay(
            generation: file.generation,
            delegate: delegate,
            options: options,
            counters: counters,
            stamp: stamp
        )
        state = try replay.apply(commit, to: state, placesMovedTo: places)
        let operations = try decoded { () throws(FormatError) in
            try reader.bytes(count: reader.remaining, "operations")
        }
        var body = ByteWriter(capacity: operations.count + 64)
        DeltaOps.append(places: places, to: &body)
        body.raw(operations)
        append(.delta, flags: .carriesChanges, commit.record, body.bytes)
        changesSinceLook += Int(commit.record.operationCount)
        if changesSinceLook > Self.changesBetweenLooks {
            changesSinceLook = 0
            _ = try relieveMemory(options.changedBytesMax)
        }
    }

    private mutating func applyTree(
        _ commit: ScannedCommit,
        _ chain: CommitChain
    ) throws(EngineError) {
        let replay = Replay(
            generation: chain.generation,
            delegate: delegate,
            options: options,
            counters: counters,
            stamp: stamp
        )
        guard let before = try chain.before(commit),
            let base = before.isBase ? before : try chain.base(before: before)
        else { throw .damaged("a commit has none before it", place: commit.offset) }
        var old = try replay.state(of: base)
        for place in try chain.places(from: base, to: before, { _ in true }) {
            old = try replay.apply(chain.commit(at: place), to: old)
        }
        try apply(from: old, to: replay.state(of: commit))
        try writePages()
        var reader = try decoded { () throws(FormatError) in try Replay.bodyReader(commit) }
        let changes = try decoded { () throws(FormatError) in
            _ = try TreeRoots.decode(&reader, offset: commit.offset)
            return try reader.bytes(count: reader.remaining, "changed objects")
        }
        var body = ByteWriter(capacity: changes.count + 1024)
        TreeRoots.append(PageWriter.roots(of: state), to: &body)
        body.raw(changes)
        let flags = commit.header.flags.intersection([.carriesChanges, .settle])
        append(.tree, flags: flags, commit.record, body.bytes)
        state.becomeBase(at: state.frame, liveBytes: state.liveBytes)
        hasBase = true
    }

    private mutating func append(
        _ kind: FrameKind,
        flags: FrameFlags,
        _ source: CommitRecord,
        _ body: [UInt8]
    ) {
        var record = source
        record.liveBytes = state.liveBytes
        state.frame =
            file.log.appendCommit(kind, flags: flags, record: record, body: body).offset
    }

    // MARK: Pages

    /// Writes pages when much is in memory; whether it did.
    private mutating func relieveMemory(_ bytesMax: Int) throws(EngineError) -> Bool {
        var bytes = 0
        for tree in state.trees.keys {
            if let node = state.trees[tree]?.node { bytes += Self.changedBytes(node) }
        }
        guard bytes > bytesMax else { return false }
        try writePages()
        return true
    }

    private static func changedBytes(_ node: TreeNode) -> Int {
        var bytes = node.weight
        for child in node.children { if let node = child.node { bytes += changedBytes(node) } }
        return bytes
    }

    /// Writes what is in memory only.
    private mutating func writePages() throws(EngineError) {
        var pages = PageWriter(
            commit: state.number,
            nodes: file.generation.nodes,
            flushBytes: .max
        )
        let changed = state
        state = try pages.write(state, to: &file.log)
        try file.flush()
        pages.keepNodes()
        stamp += 1
        state.liveBytes = changed.liveBytes(withPages: pages.pageBytes)
        state.baseTrees = state.trees
    }

    /// Writes a CKPT of the state; `record` says what commit it is.
    mutating func writeCheckpoint() throws(EngineError) {
        try writePages()
        var body = ByteWriter(capacity: 1024)
        TreeRoots.append(PageWriter.roots(of: state), to: &body)
        var record = record
        record.number = state.number
        record.schemaVersion = state.schemaVersion
        record.operationCount = 0
        if hasBase {
            // Only the first one stands for its commit.
            record.author = ""
            record.entityCounts = []
        }
        append(.checkpoint, flags: [], record, body.bytes)
        state.becomeBase(at: state.frame, liveBytes: state.liveBytes)
        hasBase = true
    }

    /// What the next CKPT says of its commit: epoch, clock, author.
    mutating func describe(as record: CommitRecord) { self.record = record }

    /// Ends a round of catching up: room is made, and all is synced.
    mutating func endRound(writesPages: Bool) throws(EngineError) {
        if writesPages, state.frame != state.baseFrame { try writeCheckpoint() }
        try file.prepareRoom()
        try file.sync()
    }

    /// Ends the log: a CLOSE after everything else, all synced.
    mutating func end(objectIDHighWater: UInt64) throws(EngineError) {
        precondition(hasBase, "the log holds the roots of a state")
        record.objectIDHighWater = objectIDHighWater
        try file.sync()
        var close = record
        close.number = state.number
        close.schemaVersion = state.schemaVersion
        close.author = ""
        close.entityCounts = []
        close.operationCount = 0
        close.liveBytes = state.liveBytes
        // No opening relies on the file yet; see NewFile.swift.
        close.epoch = CommitRecord.namelessEpoch
        // IDs go on being handed out after it and leave no trace: a crash passes over them.
        close.objectIDHighWater = Engine.toldHighWater(
            close.objectIDHighWater + Engine.objectIDJump
        )
        _ = file.log.appendCommit(.close, flags: [], record: close, body: [])
        try file.flush()
        // The file's length, too.
        try Engine.io { () throws(IOError) in try file.generation.file.syncAll() }
    }
}
