// Looking at a store from outside: its header, its log and what recovery says of it.
//
// Invariants
// - Nothing is written, created, locked or mended; the file is opened for reading only.
// - What recovery accepts is what an opening would accept: the same code decides.
// - The file is looked at as it was when the observer opened it: what is appended later is not
//   seen.

public import VarveBase
public import VarveFormat
internal import VarveIO

/// A commit frame whose hash is right.
public struct CommitFrame: Sendable {
    /// Where it starts.
    public let offset: FileOffset
    /// Its frame header.
    public let header: FrameHeader
    /// What it says of its commit.
    public let record: CommitRecord

    init(_ commit: ScannedCommit) {
        offset = commit.offset
        header = commit.header
        record = commit.record
    }

    /// The first byte after it.
    public var end: FileOffset { FileOffset(offset.rawValue + header.frameLength) }
}

/// The end of a log as recovery reads it.
public struct LogTail: Sendable {
    /// The newest accepted commit frame.
    public let newest: CommitFrame
    /// The newest commit frame that a later sync proves.
    public let proven: CommitFrame
    /// The TREE or CKPT whose roots the newest state starts from.
    public let base: CommitFrame
    /// Commits whose row changes are applied to those roots, oldest first.
    public let replayed: [CommitFrame]
    /// Roots of `base`, ascending by tree.
    public let roots: [StoredRoot]
    /// Everything below was synced once.
    public let durableEnd: FileOffset
    /// Whether the log ends with a CLOSE and nothing after it.
    public let isClosed: Bool
}

/// One store, seen read-only.
///
/// Takes no lock and writes nothing; works while an app writes the store, and on read-only media.
public final class LogObserver: Sendable {
    /// The store file's name.
    public let fileName: String
    /// A sound copy of the file header.
    public let header: FileHeader
    /// Where a copy of the header is damaged; opening needs one sound copy only.
    public let damagedHeaders: [FileOffset]
    /// Bytes of the file when it was opened.
    public let fileSize: UInt64
    /// The first byte after everything that is not zero.
    public let dataEnd: UInt64
    /// The newest state that recovery accepts; after damage the newest one that stands on sound
    /// frames alone. Nil when there is none.
    public let tail: LogTail?
    /// Why opening the store for writing would be refused.
    public let failure: EngineError?

    let directory: any StoreDirectory
    let name: String
    let file: any StoreFile
    let log: LogReader
    let scan: LogScan
    let recovered: RecoveredLog?
    let blobs: BlobFiles

    /// Opens a store for looking at it.
    ///
    /// - Throws: `missing`, `missingDirectory`, `permission`, `notAStore`, `formatTooNew`,
    ///   `damaged` when both copies of the header are, `ioFailed`. Any other damage is told by
    ///   `failure`.
    /// - Complexity: O(log bytes since the last checkpoint), without the row changes themselves.
    public static func open(_ location: StoreLocation) throws(EngineError) -> LogObserver {
        let (directory, name) = try Engine.place(location)
        let fileName = name + Engine.fileSuffix
        guard try Engine.io({ () throws(IOError) in try directory.exists(fileName) }) else {
            throw EngineError(.missing, "there is no store named \(fileName) in \(directory.name)")
        }
        let file = try Engine.openFile(fileName, in: directory, true)
        let (header, damaged) = try readHeaders(file, fileName)
        return try LogObserver(directory, name, file, header, damaged)
    }

    private init(
        _ directory: any StoreDirectory,
        _ name: String,
        _ file: any StoreFile,
        _ header: FileHeader,
        _ damagedHeaders: [FileOffset]
    ) throws(EngineError) {
        self.directory = directory
        self.name = name
        self.file = file
        self.header = header
        self.damagedHeaders = damagedHeaders
        fileName = name + Engine.fileSuffix
        log = LogReader(file: file, seed: header.fileSeed)
        fileSize = try log.size()
        scan = LogScan(log: log, size: fileSize)
        dataEnd = try scan.dataEnd()
        blobs = BlobFiles(
            in: DirectoryNames(directory),
            name: name + Engine.blobSuffix,
            environment: SystemEnvironment()
        )
        (recovered, failure) = try Recovery(scan: scan).survey()
        tail = try recovered.map { log throws(EngineError) in try LogTail(log) }
    }

    /// The first sound copy, and which copies are not.
    private static func readHeaders(
        _ file: any StoreFile,
        _ name: String
    ) throws(EngineError) -> (FileHeader, [FileOffset]) {
        var header: FileHeader?
        var damaged: [FileOffset] = []
        var failure: FormatError?
        for copy in [0, FileHeader.length] {
            let offset = FileOffset(UInt64(copy))
            let bytes = try Engine.io { () throws(IOError) in
                try file.read(at: offset, count: FileHeader.length)
            }
            do throws(FormatError) {
                let sound = try FileHeader(decoding: bytes)
                if header == nil { header = sound }
            } catch {
                damaged.append(offset)
                failure = failure ?? error
            }
        }
        guard let header else { throw Engine.noHeader(name, failure) }
        guard header.readerNeeds <= FileHeader.newestVersion else {
            throw EngineError(
                .formatTooNew,
                "\(name) needs a reader of format version \(header.readerNeeds); this one knows "
                    + "\(FileHeader.newestVersion)"
            )
        }
        return (header, damaged)
    }

    // MARK: Commits

    /// The commit frame at an offset, or nil when no sound one is there.
    ///
    /// - Throws: `ioFailed`.
    public func commit(at offset: FileOffset) throws(EngineError) -> CommitFrame? {
        try scan.commit(at: offset).map { CommitFrame($0) }
    }

    /// The commit frame before `commit` in the chain; nil at the first one, and where the chain is
    /// broken (then `commit` names a frame that is not there).
    ///
    /// - Throws: `ioFailed`.
    public func commit(before commit: CommitFrame) throws(EngineError) -> CommitFrame? {
        guard let scanned = try scan.commit(at: commit.offset) else { return nil }
        return try scan.previous(of: scanned).map { CommitFrame($0) }
    }

    /// Whether every frame of a commit's body is sound.
    ///
    /// - Throws: `ioFailed`.
    /// - Complexity: O(body).
    public func hasSoundBody(_ commit: CommitFrame) throws(EngineError) -> Bool {
        guard let scanned = try scan.commit(at: commit.offset) else { return false }
        return try scan.brokenBody(of: scanned, checksPayloads: true) == nil
    }
}

extension LogTail {
    fileprivate init(_ log: RecoveredLog) throws(EngineError) {
        newest = CommitFrame(log.newest)
        proven = CommitFrame(log.proven)
        let base = log.effectiveBase
        self.base = CommitFrame(base)
        replayed = log.effectiveReplay.map { CommitFrame($0) }
        roots = try Replay.roots(of: base)
        durableEnd = log.durableEnd
        isClosed = log.isClosed
    }
}

extension RecoveredLog {
    /// The frame whose roots the newest state really starts from: an unproven TREE brings its own.
    var effectiveBase: ScannedCommit { unsettled.last { $0.header.kind == .tree } ?? base }

    /// What is applied to those roots.
    var effectiveReplay: [ScannedCommit] {
        guard let tree = unsettled.lastIndex(where: { $0.header.kind == .tree }) else {
            return replay + unsettled
        }
        return Array(unsettled[(tree + 1)...])
    }
}

extension Recovery {
    /// What an observer may look at: the log as `run` reads it, or, after damage, the newest state
    /// that stands on sound frames alone, with the reason why `run` refuses.
    ///
    /// - Throws: `ioFailed`.
    func survey() throws(EngineError) -> (log: RecoveredLog?, failure: EngineError?) {
        do throws(EngineError) {
            return (try run(), nil)
        } catch {
            guard error.code == .damaged || error.code == .newestCommitDamaged else { throw error }
            let dataEnd = try scan.dataEnd()
            let recovery = Recovery(scan: scan.bounded(dataEnd: dataEnd))
            return (try recovery.newestSound(dataEnd), error)
        }
    }

    private func newestSound(_ dataEnd: UInt64) throws(EngineError) -> RecoveredLog? {
        var found: RecoveredLog?
        // Every later commit stands on a frame that is known to be damaged.
        var ceiling = UInt64.max
        var broken = BrokenChains()
        do throws(EngineError) {
            try scan.searchBackward(from: dataEnd) { offset, header throws(EngineError) in
                // Commit frames alone, as in `run`.
                guard offset < ceiling, header.kind.isCommitFrame,
                    let candidate = try scan.commit(at: FileOffset(offset))
                else { return true }
                let chain: Chain
                switch try self.chain(of: candidate, broken) {
                case .sound(let sound): chain = sound
                case .brokenTail(let passed):
                    broken.add(passed, of: candidate)
                    return true
                case .brokenBelowDurableEnd: return true
                }
                do throws(EngineError) {
                    let (base, replay) = try history(of: chain.proven)
                    found = RecoveredLog(
                        newest: candidate,
                        proven: chain.proven,
                        unproven: chain.unproven,
                        base: base,
                        replay: replay,
                        durableEnd: candidate.record.durableEnd,
                        dataEnd: dataEnd
                    )
                    return false
                } catch {
                    guard error.code == .damaged else { throw error }
                    ceiling = error.place?.rawValue ?? offset
                    return true
                }
            }
        } catch {
            guard error.code == .damaged else { throw error }
        }
        return found
    }
}
