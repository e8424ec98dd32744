// One store file that is open, with the nodes that were read from it.
//
// Invariants
// - A state, and so every snapshot, refers to the generation that its addresses belong to. After
//   compaction has put another file in its place, snapshots go on reading the old one.
// - File and nodes are let go with the last state that refers to them.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

final class Generation: Sendable {
    let header: FileHeader
    let file: any StoreFile
    let log: LogReader
    let nodes: NodeCache
    private let counters: EngineCounters

    init(
        file: any StoreFile,
        header: FileHeader,
        budget: NodeBudget,
        counters: EngineCounters,
        environment: any Environment = SystemEnvironment()
    ) {
        self.header = header
        self.file = file
        self.counters = counters
        log = LogReader(file: file, seed: header.fileSeed, environment)
        nodes = NodeCache(
            log: log,
            budget: budget,
            counters: counters,
            writesEdits: header.writerNeeds >= FileHeader.editedVersion
        )
    }

    /// Reads a large value or a small blob of this file.
    ///
    /// - Throws: `damaged`, `ioFailed`.
    func value(_ place: ValuePlace) throws(EngineError) -> [UInt8] {
        let bytes = try log.value(place)
        counters.valueBytesRead.add(UInt64(bytes.count), ordering: .relaxed)
        return bytes
    }
}

extension Engine {
    /// Bytes handed to the system for the log, since the store was opened.
    public var bytesWritten: UInt64 { counters.bytesWritten.load(ordering: .relaxed) }

    /// Lets go of every clean node, of the store file and of those that snapshots still read, and
    /// of the buffers that pages are read into, which all engines share. What readers are looking
    /// at goes when they are done. Reads get it again from the file.
    public func trimMemory() {
        for generation in generations { generation.nodes.evictAll() }
        _ = published.withLock { $0.forgetRetired() }
        ReadBuffers.drop()
        MachineMemory.giveFreedBack()
    }

    /// Gives nodes back where the machine has little memory left: for an engine that reads nothing
    /// just now. Readers look themselves.
    func giveBackIfScarce() {
        nodeBudget.lookAtMemory()
        guard nodeBudget.isScarce else { return }
        // Those of a replaced file first: fewer readers want them.
        for generation in generations.reversed() { generation.nodes.shrinkToBudget() }
        if nodeBudget.takeDebt() { MachineMemory.giveFreedBack() }
    }

    /// The store file, and those before it that snapshots still read.
    private var generations: [Generation] {
        let states = published.withLock { published in
            [published.state] + published.pins.all(published.state, now: 0).map(\.0)
        }
        var seen: Set<ObjectIdentifier> = []
        return states.map(\.generation).filter { seen.insert(ObjectIdentifier($0)).inserted }
    }
}
