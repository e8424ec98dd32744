// Unproven commits written once more where they stand: the settle of a disk without room.
//
// Invariants
// - What is written are the bytes that are there: frames made of a header and a payload whose
//   hashes are right, as they were made once. Nothing that was read without a hash is written, so
//   a read that goes wrong changes no byte.
// - So a byte is the same whether a power cut lets the write arrive or not, and a crash leaves the
//   same choice to the next opening.
// - Every frame of the chain above the proven end is written, up to the newest commit with changes:
//   all that its state names lies in those or is proven. What lies between them is a void, a CKPT
//   after them repeats them: neither is written, and nothing names them.
// - Nothing is appended, so it needs no room. The next commit chains to the newest of them, and its
//   `durableEnd` proves them.
// - It is the last way. Bytes are written over here, and only here, which a save was perhaps told
//   are on disk: nothing is left of them where a device spoils a sector that it is writing.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension Settle {
    /// Writes the commits again in place and syncs. Then `state` is on disk as it is.
    ///
    /// - Parameter log: with nothing gathered; goes on after all that is there.
    /// - Throws: `ioFailed`, `noSpace` where the file system writes nothing in place.
    func runInPlace(
        _ recovered: RecoveredLog,
        _ log: inout LogWriter
    ) throws(EngineError) {
        guard let newest = recovered.unsettled.last else { return }
        let chain = recovered.unproven.prefix { $0.offset <= newest.offset }
        let scan = LogScan(log: generation.log, size: try generation.log.size())
        options.environment.yield(.settleInPlaceWrite)
        var again = FramesAgain(log: log, options.environment)
        for commit in chain {
            try writeBody(of: commit, scan, &again)
            let payload = commit.frame.bytes[commit.frame.payload]
            try again.add(commit.header, payload, at: commit.offset)
        }
        try again.flush()
        let base = chain.last { $0.header.kind == .tree || $0.header.kind == .checkpoint }
        options.environment.yield(.settleInPlaceSync)
        try Engine.io { () throws(IOError) in
            try log.goOn(behind: newest, checkpoint: base?.offset ?? recovered.base.offset)
        }
    }

    private func writeBody(
        of commit: ScannedCommit,
        _ scan: LogScan,
        _ again: inout FramesAgain
    ) throws(EngineError) {
        var place = commit.record.bodyStart.rawValue
        var hash = scan.log.seed
        while place < commit.offset.rawValue {
            guard let header = try scan.header(at: place), !header.kind.isCommitFrame,
                header.frameLength <= commit.offset.rawValue - place
            else { throw Self.changed }
            if place + header.frameLength > provenEnd.rawValue {
                let payload = try scan.read(
                    at: FileOffset(place + UInt64(FrameHeader.length)),
                    count: Int(header.storedLength)
                )
                guard payload.count == Int(header.storedLength),
                    scan.isSound(payload, payload.indices, of: header)
                else { throw Self.changed }
                try again.add(header, payload[...], at: FileOffset(place))
            }
            hash = FrameHash.combine(hash, with: header.payloadHash)
            place += header.frameLength
        }
        guard hash == commit.record.bodyHash else { throw Self.changed }
    }

    /// The system has forgotten what it had in its memory only, since the log was read.
    static let changed = EngineError(
        .ioFailed,
        "reads of the store's log contradict each other"
    )
}

/// Frames that are about to be written where they stand, neighbours together.
private struct FramesAgain {
    let log: LogWriter
    /// True in tests that plant this bug, never else.
    let isLeftOut: Bool
    private var writer = ByteWriter()
    private var start = FileOffset(0)

    private static let pieceBytes: UInt64 = 1 << 20

    init(log: LogWriter, _ environment: any Environment) {
        self.log = log
        isLeftOut = environment.leavesOut(.writeInPlace)
    }

    mutating func add(
        _ header: FrameHeader,
        _ payload: ArraySlice<UInt8>,
        at place: FileOffset
    ) throws(EngineError) {
        let gathered = UInt64(writer.count)
        let isNext = start.rawValue + gathered == place.rawValue
        if !isNext || gathered + header.frameLength > Self.pieceBytes {
            try flush()
            start = place
        }
        Frame.append(header, payload: payload, to: &writer, at: place, seed: log.seed)
    }

    mutating func flush() throws(EngineError) {
        if writer.count == 0 { return }
        if !isLeftOut {
            try Engine.io { () throws(IOError) in try log.writeAgain(writer.bytes, at: start) }
        }
        writer = ByteWriter()
    }
}
