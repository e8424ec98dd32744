// Several processes that write: what the engine does when its turn begins and ends.
//
// Invariants
// - A turn begins on the newest durable state of all processes, and ends with everything of this
//   process on disk, nothing queued, and no thread that writes zeros.
// - From its first byte to its end the page says that somebody writes. A process that gets the lock
//   and finds the page so reads the log as after a crash, and settles what nothing proves.
// - The page is believed by a process that had the store open for writing when it was written,
//   and by one that opens it beside such a process; never by one that is alone.
// - A turn ends under the lead and the writer lock. A failed write or sync ends it at once, with
//   the page as it is.
// - Object IDs that a process hands out without its turn were set aside for it in its last one.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

/// Object IDs that this process may hand out, and what is known of all of them.
final class ObjectIDs: Sendable {
    /// IDs that a process gets for itself at once.
    static let lease: UInt64 = 1 << 32

    private let next: Atomic<UInt64>
    /// No ID from here on is this process's; `.max` while nobody else can hand out any.
    private let end = Atomic<UInt64>(.max)
    /// No process has one from here on, as far as this one knows.
    private let given: Atomic<UInt64>
    /// `given` before this process, alone, set IDs aside for itself.
    private let before = Mutex<UInt64?>(nil)

    init(next: UInt64) {
        self.next = Atomic(next)
        given = Atomic(next)
    }

    func take(_ count: UInt64) -> UInt64 {
        let end = next.add(count, ordering: .relaxed).newValue
        precondition(
            end <= self.end.load(ordering: .relaxed),
            "a process hands out billions of object IDs without saving"
        )
        return end - count
    }

    /// An object is made, in this process's turn, with an ID that may not be from here; it must not
    /// be one that another process may hand out.
    @inline(__always)
    func tookOver(_ object: ObjectID) {
        if object.rawValue >= next.load(ordering: .relaxed) { passOver(object) }
    }

    @inline(never)
    private func passOver(_ object: ObjectID) {
        given.max(object.rawValue + 1, ordering: .relaxed)
        let last = end.load(ordering: .relaxed)
        guard object.rawValue < last else { return }
        let isShort = last != .max && last - object.rawValue < Self.lease / 2
        // Others may be taking IDs: there must be some whatever they see.
        if isShort { renew() } else { next.max(object.rawValue + 1, ordering: .relaxed) }
    }

    /// Sets others aside, in this process's turn.
    private func renew() {
        let start = highWater
        end.store(start + Self.lease, ordering: .relaxed)
        next.max(start, ordering: .relaxed)
        given.max(start + Self.lease, ordering: .relaxed)
    }

    /// This process has handed out none from here on.
    var own: UInt64 { next.load(ordering: .relaxed) }

    /// No process has handed out an ID from here on.
    var highWater: UInt64 {
        max(next.load(ordering: .relaxed), given.load(ordering: .relaxed))
    }

    /// The turn ends: what this process may still hand out is set aside.
    /// - Returns: what is nobody's.
    func setAside() -> UInt64 {
        let now = next.load(ordering: .relaxed)
        let last = end.load(ordering: .relaxed)
        if last == .max {
            before.withLock { $0 = given.load(ordering: .relaxed) }
            end.store(now + Self.lease, ordering: .relaxed)
        } else if last - min(now, last) < Self.lease / 2 {
            renew()
        }
        given.max(end.load(ordering: .relaxed), ordering: .relaxed)
        return highWater
    }

    /// The turn begins, and nobody else has had one since the last.
    func takeBack() {
        before.withLock { before in
            guard let known = before else { return }
            given.store(known, ordering: .relaxed)
            end.store(.max, ordering: .relaxed)
            before = nil
        }
    }

    /// The turn begins after others.
    func learn(_ nobodys: UInt64) {
        before.withLock { $0 = nil }
        given.max(nobodys, ordering: .relaxed)
    }
}

extension Engine {
    /// IDs that a process may have got without a trace: it was not able to say so at the end of its
    /// turn, and lives.
    static let unknownLease: UInt64 = ObjectIDs.lease * 2
    /// The same when the page is gone as well: any number of processes may have some.
    static let unknownLeases: UInt64 = 1 << 40

    // MARK: Beginning

    /// Returns when it is this process's turn, which other threads may end again at once unless the
    /// caller leads. Does nothing for an engine that writes no more.
    ///
    /// - Throws: `busy`, `ioFailed`, `damaged`, `noSpace`.
    func takeTurn(milliseconds: Int? = nil) throws(EngineError) {
        guard case .sharingWriter(_, let turn, let follower) = role else { return }
        while true {
            if writer.withLock({ $0.hasTurn || !$0.isOpen }) { return }
            // Before the turn: whoever knocks later is heard. An opening has no need of it, and a
            // thread and a watch are much of what it would cost.
            if !turn.isHeard, !turn.isSuspended, hearsOthers() { turn.hear() }
            try turn.take(milliseconds: milliseconds ?? options.turnMilliseconds)
            let isDone = try writer.withLock { writer throws(EngineError) -> Bool in
                if writer.hasTurn { return true }
                guard turn.isHeld else { return false }
                guard writer.isOpen else {
                    turn.release()
                    return true
                }
                do throws(EngineError) { try beginTurn(turn, follower, &writer) } catch {
                    turn.release()
                    throw error
                }
                removeLeftoversOnce(&writer, turn)
                return true
            }
            if isDone { return }
        }
    }

    /// Before the first write, and before a close: what the opening has left for later. What cannot
    /// be removed is left to the next opening; another writer may be making a file now.
    private func removeLeftoversOnce(_ writer: inout WriterState, _ turn: WriterTurn) {
        guard writer.mayHaveLeftovers else { return }
        writer.mayHaveLeftovers = false
        if !turn.isLastWriter { return }
        try? Self.removeLeftovers(storeName, in: directory)
    }

    /// The lock is held: what others did meanwhile becomes the state to go on from.
    private func beginTurn(
        _ turn: WriterTurn,
        _ follower: Follower,
        _ writer: inout WriterState
    ) throws(EngineError) {
        try checkExists()
        // Others would open the store through another lock file, and write.
        guard try Self.io({ () throws(IOError) in try turn.isNamed() }) else {
            throw EngineError(
                .ioFailed,
                "the file \(lockName) was removed or replaced while the store was open; open the "
                    + "store again to write"
            )
        }
        try follower.exclusively { state throws(EngineError) in
            let told = turn.page.read()
            var isUnchanged = false
            // An old page that came back would lead into what others wrote since.
            if let told, told.isComplete, told == turn.page.lastWritten,
                try LogWriter.isFree(writer.generation.log, told.logEnd)
            {
                writer.log.room.revive(preparedTo: told.preparedEnd)
                isUnchanged = true
            } else {
                let isKnown = try goOn(from: told, &writer, &state)
                if !isKnown { try readAgain(told, &writer, &state) }
                counters.turnsBehindOthers.add(1, ordering: .relaxed)
            }
            try checkNamed(writer.generation.file)
            let now = published.withLock { $0.state }
            try Self.io { () throws(IOError) in
                try turn.page.write(
                    now,
                    durableEnd: writer.log.durableEnd,
                    nextObjectID: objectIDHighWater
                )
            }
            // Only now: if the page cannot be written the turn does not begin, and others may.
            if isUnchanged { objectIDs.takeBack() }
            writer.hasTurn = true
            writer.passesTurn = false
            writer.turns += 1
            turn.isWriting = true
        }
        counters.turns.add(1, ordering: .relaxed)
    }

    /// Goes on after a process that ended its turn.
    /// - Returns: false when the page does not say enough.
    private func goOn(
        from told: SharedState?,
        _ writer: inout WriterState,
        _ follower: inout Follower.State
    ) throws(EngineError) -> Bool {
        guard let told, told.isComplete else { return false }
        // What cannot be used is found in the log.
        do throws(EngineError) { try catchUp(to: told, &follower) } catch { return false }
        let state = published.withLock { $0.state }
        guard state.frame == told.frame, state.number == told.number,
            state.generation.header.fileID == told.fileID,
            let log = try LogWriter(behind: told, state, options, counters)
        else { return false }
        stand(on: state, log, &writer)
        objectIDs.learn(told.nextObjectID)
        return true
    }

    /// Reads the log as after a crash: the process that wrote last did not come to an end.
    func readAgain(
        _ told: SharedState?,
        _ writer: inout WriterState,
        _ follower: inout Follower.State
    ) throws(EngineError) {
        // From here on nobody may take the page for the truth.
        try Self.io { () throws(IOError) in try role.page?.spoil() }
        // A descriptor of its own: this one may have heard of lost writes that the old one did not.
        let file = try Self.openFile(fileName, in: directory, false)
        role.maintenance?.forgetFile()
        let header = try Self.readHeader(file, fileName, isReadOnly: false)
        try checkSameStore(file, header, writer.generation)
        follower.stamp += 2
        let generation = Generation(
            file: file,
            header: header,
            budget: nodeBudget,
            counters: counters
        )
        let start = LogStart(
            replay: Replay(
                generation: generation,
                delegate: delegate,
                options: options,
                counters: counters,
                stamp: follower.stamp - 1
            ),
            names: names,
            store: storeName,
            budget: nodeBudget,
            epoch: writer.epoch,
            isReadOnly: false,
            isNew: false,
            leftovers: .stay,
            syncsName: true
        )
        let begun = try start.run { recovered in
            objectIDs.learn(
                // Others that write alone at other times have handed out what their log says.
                role.turn == nil
                    ? Self.objectIDHighWater(after: recovered)
                    : Self.nobodysObjectIDs(behind: told, recovered)
            )
            return objectIDHighWater
        }
        try turnTo(begun.state.generation, frame: begun.state.frame, &follower)
        stand(on: published.withLock { $0.state }, begun.log, &writer)
    }

    /// Object IDs that no process has, when the last turn did not come to its end and others have
    /// the store open.
    static func nobodysObjectIDs(behind told: SharedState?, _ recovered: RecoveredLog) -> UInt64 {
        let recorded = recovered.newest.record.objectIDHighWater
        guard let told else { return recorded + unknownLeases }
        return max(told.nextObjectID, recorded) + unknownLease
    }

    private func stand(
        on state: StoreState,
        _ log: LogWriter,
        _ writer: inout WriterState
    ) {
        precondition(queue.isEmpty, "nothing is queued without a turn")
        writer.stand(on: state, log, isWitnessed: false)
    }

    // MARK: Ending

    /// Which other processes are there. The caller leads.
    func company(_ writer: borrowing WriterState) -> Company { company(hasTurn: writer.hasTurn) }

    func company(hasTurn: Bool) -> Company {
        guard let turn = role.turn else { return role.page == nil ? .alone : .readers }
        let company = hasTurn ? turn.company() : .writers
        // Else a process that waits could not make itself heard while this one is idle.
        return turn.isHeard ? company : .waiting
    }

    /// After a batch: gives the turn to a process that waits for it, as soon as nothing is queued.
    /// The caller leads.
    func passTurn(to company: Company, _ writer: inout WriterState) {
        guard role.turn != nil, writer.hasTurn, writer.isOpen else { return }
        if company < .waiting {
            writer.passesTurn = false
        } else if queue.isEmpty {
            giveTurn(&writer)
        } else {
            // Those that wait are the last ones.
            writer.passesTurn = true
        }
    }

    /// Ends the turn. The caller leads, and nothing is queued.
    func giveTurn(_ writer: inout WriterState) {
        guard let turn = role.turn, writer.hasTurn, writer.isOpen else { return }
        precondition(queue.isEmpty, "a turn ends with nothing queued")
        writer.log.rollbackToHanded()
        // A failure poisons, which gives the turn up as it is.
        if writer.log.hasHanded {
            do throws(EngineError) { try syncHanded(&writer) } catch { return }
        }
        let prepared = writer.log.room.retire()
        // If that fails the page still says that somebody writes: the next process reads the log.
        try? turn.page.write(
            published.withLock { $0.state },
            durableEnd: writer.log.durableEnd,
            log: (writer.log.end, max(prepared, writer.log.end)),
            nextObjectID: objectIDs.setAside()
        )
        writer.hasTurn = false
        writer.passesTurn = false
        turn.release()
    }

    /// Gives everything up that writers wait for, with the page as it is: the next process reads
    /// the log.
    func abandonTurn(_ writer: inout WriterState) {
        guard let turn = role.turn else { return }
        _ = writer.log.room.retire()
        writer.hasTurn = false
        turn.leave()
        turn.release()
    }

    /// Gives the turn to a process that waits for it. Called without a lock.
    func heedOthers() {
        if let turn = role.turn, turn.isWriting, turn.isWanted { drain() }
    }

    /// Another process wrote to the lock file: it waits for its turn, or tells of a commit.
    func hear() {
        if suspension.isSuspended { return }
        guard case .sharingWriter(_, let turn, let follower) = role else { return follow() }
        if turn.isWriting {
            lookForStore()
            heedOthers()
        } else if follower.wantsNews.load(ordering: .relaxed) {
            follow()
        }
    }
}
