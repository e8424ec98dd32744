// What became of a commit whose sync failed: asked for after the store was opened again.
//
// Invariants
// - An opening writes commits under a random number of its own, its epoch; epoch and number name a
//   commit. The catalog says with which commit each epoch began, so that compactions and history
//   that goes do not change the answer.
// - The entry is part of the commit that it tells of: it is there exactly when the commit is.
// - A store that was recovered from a damaged one has other commits under the same numbers. It says
//   so by an entry for number 0, and never says `absent`: the commit may have been there.
// - An answer stays: what is present is on disk, and what is absent is behind a commit frame of
//   this opening that is on disk, so that no late byte can bring it back. An engine that cannot
//   make sure of that says `unknown`.

internal import Synchronization
public import VarveBase
internal import VarveFormat
internal import VarveIO

/// Where the catalog says with which commit an opening began.
enum EpochAccount {
    private static let prefix = [UInt8]("epoch/".utf8)
    /// After all keys with the prefix.
    private static let end = [UInt8]("epoch0".utf8)
    /// Openings, or turns after other processes', that the account reaches back.
    static let entriesMax: UInt64 = 4096

    /// "epoch/" and the number of the first commit, big-endian: ascending by commit.
    static func key(_ first: UInt64) -> [UInt8] {
        var writer = ByteWriter(appendingTo: prefix)
        writer.bigEndian64(first)
        return writer.bytes
    }

    static func value(_ epoch: UInt64) -> [UInt8] {
        var writer = ByteWriter(capacity: 8)
        writer.u64(epoch)
        return writer.bytes
    }

    /// The epoch that a commit with this number would be of; nil when the account does not reach
    /// back to it.
    static func epoch(
        of number: UInt64,
        in catalog: Tree
    ) throws(EngineError) -> UInt64? {
        var cursor = TreeCursor(catalog)
        let isThere =
            number == .max ? try cursor.seek(before: end) : try cursor.seek(before: key(number + 1))
        guard isThere, cursor.keyHasPrefix(prefix) else { return nil }
        var reader = ByteReader(cursor.value, place: "epoch")
        do throws(FormatError) {
            let epoch = try reader.u64("epoch")
            try reader.finish("epoch")
            return epoch
        } catch {
            throw .damaged(error)
        }
    }

    /// The oldest entry when there are so many that it has to go for the next one.
    static func surplus(in catalog: Tree) throws(EngineError) -> [UInt8]? {
        let first = try catalog.position(of: key(1))
        guard try catalog.position(of: end) - first >= entriesMax else { return nil }
        var cursor = TreeCursor(catalog)
        guard try cursor.seek(position: first), cursor.keyHasPrefix(prefix) else { return nil }
        return cursor.key
    }

    /// What a recovered store begins with. No commit has the number 0, no opening the epoch 0.
    static let recovered = (key: key(0), value: value(0))

    /// The keys of all openings in the account.
    static func keys(in catalog: Tree) throws(EngineError) -> [[UInt8]] {
        var keys: [[UInt8]] = []
        var cursor = TreeCursor(catalog)
        var isThere = try cursor.seek(atOrAfter: key(1))
        while isThere, cursor.keyHasPrefix(prefix) {
            keys.append(cursor.key)
            isThere = try cursor.next()
        }
        return keys
    }
}

extension Engine {
    /// What became of a commit that failed with `outcomeUnknown`; to be asked after the store was
    /// opened again. Not to be called inside `write` or from what a commit calls.
    ///
    /// - Throws: `damaged`, `ioFailed`, `noSpace`, `busy`, `closed`; `poisoned` when the sync of
    ///   the answer failed.
    /// - Complexity: O(log n). The answer `absent` may write a checkpoint.
    public func outcome(of commit: CommitIdentity) throws(EngineError) -> CommitOutcome {
        // 1. What this opening sees, if that is on disk for good. What is durable first: all of it
        // is part of what is seen after it.
        follow()
        let durable = published.withLock { $0.durable.rawValue }
        let snapshot = snapshot()
        let known = try Self.account(of: commit, in: snapshot.state)
        if known == .unknown || known == .present && commit.number <= durable { return known }
        // 2. An engine that cannot write cannot make sure of it, and a poisoned one does not know.
        if role.isReadOnly || !writer.withLock({ Self.canTell(of: commit, $0) }) {
            return .unknown
        }
        // 3. The same question after everything that was on its way, and its answer on disk.
        return try exclusively { writer throws(EngineError) in
            try checkWritable(writer)
            try syncHanded(&writer)
            // What waited may have been refused: its number is free again.
            if !Self.canTell(of: commit, writer) { return .unknown }
            let known = try Self.account(of: commit, in: published.withLock { $0.state })
            if known == .absent, !writer.log.hasHandedCommit {
                // Bytes that did not read as a commit until now could do so after the next power
                // cut, unless a commit frame is on disk that does not chain to them.
                writer.wantCheckpoint()
                try checkpoint(&writer)
            }
            return known
        }
    }

    /// Not of what this opening may still write, and not when it failed.
    private static func canTell(
        of commit: CommitIdentity,
        _ writer: borrowing WriterState
    ) -> Bool {
        if case .poisoned = writer.status { return false }
        if commit.epoch != writer.epoch { return true }
        return commit.number <= writer.pending.number.rawValue
    }

    private static func account(
        of commit: CommitIdentity,
        in state: StoreState
    ) throws(EngineError) -> CommitOutcome {
        let catalog = state.tree(.catalog)
        if commit.number <= state.number.rawValue {
            let epoch = try EpochAccount.epoch(of: commit.number, in: catalog)
            guard let epoch else { return .unknown }
            if epoch == commit.epoch { return .present }
        }
        return try catalog.value(EpochAccount.recovered.key) == nil ? .absent : .unknown
    }

    /// Puts this opening into the account with its first commit, and with the first after another
    /// process's.
    func noteEpoch(
        in transaction: WriteTransaction,
        _ writer: inout WriterState
    ) throws(EngineError) {
        let noted = writer.epochNoted
        let isNoted = noted.map { $0.turn == writer.turns && $0.first <= writer.pending.number }
        if transaction.isEmpty || isNoted == true { return }
        // A turn ends with each idle pause, and mostly nobody else had one since.
        if try transaction.newestEpoch() == writer.epoch {
            writer.epochNoted = (writer.turns, writer.pending.number)
            return
        }
        let isRecovered = options.newStoreID != nil && writer.pending.number.rawValue == 0
        try transaction.noteEpoch(writer.epoch, isRecovered: isRecovered)
        writer.epochNoted = (writer.turns, transaction.number)
    }
}
