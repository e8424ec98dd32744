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
        nodes = NodeCache(log: log, budget: budget, counters: counters)
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
    /// Lets go of every clean node, of the store file and of those that snapshots still read, and
    /// of the buffers that pages are read into, which all engines share. What readers are looking
    /// at goes when they are done. Reads get it again from the file.
    public func trimMemory() {
        let states = published.withLock { published in
            [published.state] + published.pins.all(published.state, now: 0).map(\.0)
        }
        var seen: Set<ObjectIdentifier> = []
        for state in states where seen.insert(ObjectIdentifier(state.generation)).inserted {
            state.generation.nodes.evictAll()
        }
        _ = published.withLock { $0.forgetRetired() }
        ReadBuffers.drop()
    }
}

/// Bytes of clean nodes that the generations of one engine may keep together, and who reads them.
final class NodeBudget: Sendable {
    let bytesMax: Int
    let readers = ReaderEpochs()
    /// Threads that restore the leaves of one scan; 1: the scan alone.
    let scanThreads: Int
    private let used = Atomic<Int>(0)
    private let limbo = Atomic<Int>(0)
    private let isHelped = Atomic<Bool>(false)

    init(bytesMax: Int, scanThreads: Int = 1) {
        self.bytesMax = bytesMax
        self.scanThreads = scanThreads
    }

    /// Whether a scan may have other threads now. One at a time: several scans have a thread each.
    func startHelp() -> Bool {
        isHelped.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged
    }

    /// To be called after `startHelp` gave true, when the threads are done.
    func endHelp() { isHelped.store(false, ordering: .relaxed) }

    var usedBytes: Int { used.load(ordering: .relaxed) }
    /// Bytes of evicted nodes that a reader may still be using.
    var limboBytes: Int { limbo.load(ordering: .relaxed) }
    var isExceeded: Bool { usedBytes > bytesMax }
    func hasRoom(_ bytes: Int) -> Bool { usedBytes + bytes <= bytesMax }
    func take(_ bytes: Int) { used.add(bytes, ordering: .relaxed) }
    func give(_ bytes: Int) { used.subtract(bytes, ordering: .relaxed) }
    func enterLimbo(_ bytes: Int) { limbo.add(bytes, ordering: .relaxed) }
    func leaveLimbo(_ bytes: Int) { limbo.subtract(bytes, ordering: .relaxed) }
}
