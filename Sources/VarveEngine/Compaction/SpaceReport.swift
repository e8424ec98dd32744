// What the bytes of a store file are for: live, history, dead, void.
//
// Invariants
// - The four together are all bytes between the header and the newest checkpoint's frame.
// - It reads the chain of commits and nothing else, and takes no lock.

internal import Synchronization
public import VarveBase
internal import VarveFormat
internal import VarveIO

/// Bytes of a store file in front of its newest checkpoint, by what they are for.
public struct SpaceReport: Sendable, Hashable {
    /// Frames that the newest checkpoint needs.
    public var live: UInt64 = 0
    /// Frames that earlier commits need which `EngineOptions.retention` keeps.
    public var history: UInt64 = 0
    /// Frames of commits that nothing needs any more.
    public var dead: UInt64 = 0
    /// What belongs to no commit: left by writes that failed or were cut off, with the way round
    /// them, and CLOSE frames.
    public var void: UInt64 = 0

    /// All of them.
    public var total: UInt64 { live + history + dead + void }
    /// What a compaction gives back, apart from the room in pages.
    public var reclaimable: UInt64 { dead + void }
}

extension Engine {
    /// The oldest commit that the store file holds, and when it was made, in microseconds since
    /// 1970.
    ///
    /// - Throws: `damaged`, `ioFailed`.
    /// - Complexity: O(checkpoints in the file).
    public func oldestCommit() throws(EngineError) -> (number: CommitNumber, time: Int64) {
        let oldest = try CommitChain(snapshot().state).oldest()
        return (oldest.number, oldest.record.clockMicroseconds)
    }

    /// Blob files beside the store file, those of earlier commits and of unsaved blobs among them,
    /// and their bytes.
    ///
    /// - Throws: `ioFailed`, `permission`.
    /// - Complexity: O(blob files), each of which is opened.
    public func blobFiles() throws(EngineError) -> (count: Int, bytes: UInt64) {
        try blobStore.engineError { () throws(BlobError) in
            var (count, bytes): (Int, UInt64) = (0, 0)
            for digest in try blobStore.files.list() {
                guard let file = try blobStore.files.openRaw(digest) else { continue }
                defer { file.close() }
                bytes += try BlobFiles.io { () throws(IOError) in try file.size() }
                count += 1
            }
            return (count, bytes)
        }
    }

    /// What the bytes of the store file are for.
    ///
    /// - Throws: `damaged`, `ioFailed`.
    /// - Complexity: O(bytes of the commit frames in the file), without pages and values.
    public func spaceReport() throws(EngineError) -> SpaceReport {
        let snapshot = snapshot()
        let state = snapshot.state
        let oldest = try oldestRetained(state)
        let chain = try CommitChain(state)
        let newestBase = try chain.commit(at: state.baseFrame)
        var keptBase = newestBase
        if options.retention != .newest {
            keptBase = try chain.oldest()
            if let found = try chain.stretch({ $0.number <= oldest }) { keptBase = found.base }
        }
        // Gaps between a commit and the body of the next one, in front of the kept base or after.
        var report = SpaceReport(live: state.liveBytes)
        var keptVoid: UInt64 = 0
        var next: ScannedCommit? = newestBase
        while let frame = next {
            next = try chain.before(frame)
            let end = next?.end ?? FileHeader.logStart
            let start = frame.record.bodyStart
            let gap = start.rawValue - min(start, end).rawValue
            report.void += gap
            if frame.offset > keptBase.offset { keptVoid += gap }
        }
        func less(_ bytes: UInt64, _ more: UInt64) -> UInt64 { bytes - min(bytes, more) }
        let kept = newestBase.offset.rawValue - keptBase.offset.rawValue
        let isNewest = keptBase.offset == newestBase.offset
        let keptLive = isNewest ? report.live : keptBase.record.liveBytes
        report.history = less(keptLive + kept, report.live + keptVoid)
        let all = newestBase.offset.rawValue - FileHeader.logStart.rawValue
        report.dead = less(all, report.live + report.history + report.void)
        return report
    }
}
