// The counter file beside an open store: written now and then, never needed.
//
// Invariants
// - Nothing depends on it, nothing waits for it and no failure of it fails anything: it is tried
//   again with the next round.
// - It is a regular file with one name, or nothing is written.
// - It is never synced, and written at most once a second, and at the end.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

final class LiveCounterFile: Sendable {
    private struct State {
        var file: (any StoreFile)?
        var sequence: UInt64 = 0
        var values: [UInt64] = []
        var writtenAt: UInt64?
        var isClosed = false
    }
    /// An unchanged file is written again after so long, as a sign of life.
    static let heartbeatNanoseconds: UInt64 = 10_000_000_000
    static let pauseNanoseconds: UInt64 = 1_000_000_000

    private let directory: any StoreDirectory
    private let name: String
    private let environment: any Environment
    private let opened: Int64
    private let state = Mutex(State())

    init(_ directory: any StoreDirectory, _ name: String, _ environment: any Environment) {
        self.directory = directory
        self.name = name
        self.environment = environment
        opened = environment.wallClockMicroseconds()
    }

    /// Writes the counters unless that was done less than a second ago.
    func write(
        isClosed: Bool,
        _ fileID: UUIDValue,
        _ statistics: () -> EngineStatistics
    ) {
        let now = environment.monotonicNanoseconds()
        state.withLock { state in
            let age = state.writtenAt.map { now - min(now, $0) } ?? .max
            guard !state.isClosed, isClosed || age >= Self.pauseNanoseconds else { return }
            state.isClosed = isClosed
            let values = statistics().liveCounters
            guard isClosed || age >= Self.heartbeatNanoseconds || values != state.values else {
                return
            }
            state.sequence += 1
            let counters = LiveCounters(
                isClosed: isClosed,
                fileID: fileID,
                processID: UInt64(UInt32(bitPattern: environment.processID())),
                openedMicroseconds: opened,
                writtenMicroseconds: environment.wallClockMicroseconds(),
                sequence: state.sequence,
                values: values
            )
            do throws(IOError) {
                let file = if let file = state.file { file } else { try open() }
                state.file = file
                let bytes = counters.encoded()
                try file.write(bytes, at: FileOffset(0))
                // What a newer library left behind the end.
                if try file.size() > UInt64(bytes.count) { try file.cut(to: UInt64(bytes.count)) }
                state.values = values
                state.writtenAt = now
            } catch {
                state.file?.close()
                state.file = nil
                state.writtenAt = now
            }
            if isClosed {
                state.file?.close()
                state.file = nil
            }
        }
    }

    private func open() throws(IOError) -> any StoreFile {
        guard try directory.exists(name) else {
            return try directory.openFile(name, mode: .createExclusive)
        }
        let file = try directory.openFile(name, mode: .readWrite)
        do throws(IOError) { try file.checkOnlyName(name) } catch {
            file.close()
            throw error
        }
        return file
    }
}

extension Engine {
    /// Suffix of the counter file's name.
    public static let liveSuffix = ".varve-live"

    /// Brings the counter file up to date, where there is one.
    func writeLiveCounters(isClosed: Bool = false) {
        guard let live = role.live else { return }
        let fileID = published.withLock { $0.state.generation.header.fileID }
        live.write(isClosed: isClosed, fileID) { statistics }
    }
}

extension EngineStatistics {
    /// In the order of `LiveCounters.names`.
    var liveCounters: [UInt64] {
        [
            deltaCommits, treeCommits, relaxedCommits, checkpoints, witnesses, batches,
            batchedCommits, largestBatch, bytesWritten, syncs, roomExtensions, nodeHits,
            nodeMisses, nodeEvictions, nodeCacheBytes, nodeLimboBytes, backgroundPages,
            replayedOperations, settledCommits, valueBytesRead, blobFilesSwept, compactions,
            compactionBytesReclaimed, liveBytes, deadBytes, logBytes, newestCommit,
            UInt64(pinnedSnapshots), oldestPinnedCommit,
        ] + (0..<16).map { $0 < syncTimes.count ? syncTimes[$0] : 0 }
    }
}
