// What an engine is beside others that have the store open: each role has its parts and no others.
//
// Invariants
// - A role is chosen at opening and stays; `close` ends what others see of it, once or more often.
// - One that may write has the writer's lock until it is closed, or writes in turns.

internal import Synchronization
internal import VarveIO

enum EngineRole: Sendable {
    /// Reads, and hears of commits of others.
    case reader(Follower)
    /// Reads the store as it was, and hears of nothing: nobody can tell it.
    case readerOfOneMoment
    /// Writes alone. The page, where other processes can be, tells those that read.
    case soleWriter(WriterTools, lock: SoleLock, page: SharedPage?)
    /// Writes when it is its turn, and follows others while it is not.
    case sharingWriter(WriterTools, WriterTurn, Follower)

    /// What writers of both kinds have.
    struct WriterTools {
        /// Nil where savers do its work themselves.
        let maintenance: MaintenanceThread?
        /// Where tools read the counters.
        let live: LiveCounterFile?

        init(_ directory: any StoreDirectory, _ name: String, _ options: EngineOptions) {
            let isInline =
                switch options.maintenance {
                case .automatic: !directory.isSharedBetweenProcesses
                case .background: false
                case .inline: true
                }
            maintenance = isInline ? nil : MaintenanceThread()
            live =
                options.writesLiveCounters
                ? LiveCounterFile(directory, name + Engine.liveSuffix, options.environment) : nil
        }
    }

    var isReadOnly: Bool { tools == nil }

    /// What an opening that has the store alone does with files whose making did not end.
    var leftovers: LogStart.Leftovers {
        switch self {
        case .reader, .readerOfOneMoment: .stay
        case .soleWriter: .goAtOnce
        case .sharingWriter: .waitForWriting
        }
    }

    /// How it hears of commits of others.
    var follower: Follower? {
        switch self {
        case .reader(let follower), .sharingWriter(_, _, let follower): follower
        case .readerOfOneMoment, .soleWriter: nil
        }
    }

    /// Whose turn it is; nil where this engine never has to wait for one.
    var turn: WriterTurn? {
        if case .sharingWriter(_, let turn, _) = self { turn } else { nil }
    }

    /// Where processes tell each other of commits.
    var page: SharedPage? {
        if case .soleWriter(_, _, let page) = self { page } else { follower?.page }
    }

    var soleLock: SoleLock? { if case .soleWriter(_, let lock, _) = self { lock } else { nil } }

    var maintenance: MaintenanceThread? { tools?.maintenance }
    var live: LiveCounterFile? { tools?.live }

    private var tools: WriterTools? {
        switch self {
        case .reader, .readerOfOneMoment: nil
        case .soleWriter(let tools, _, _), .sharingWriter(let tools, _, _): tools
        }
    }

    /// Lets go of the lock file.
    func close() {
        if case .soleWriter(_, let lock, _) = self { lock.release() }
        if let turn { turn.close() } else { page?.close() }
        follower?.thread.withLock { $0 = nil }
    }
}
