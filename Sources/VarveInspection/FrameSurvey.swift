// The map of a file: every byte belongs to one frame or gap, and each has a class.
//
// Invariants
// - Entries come in the order of the file and leave no byte out.
// - "damaged" is said only of bytes that no later commit declares a void.

import VarveBase
import VarveEngine
import VarveFormat
import VarveRecords

/// What a piece of the file is good for.
public enum FrameClass: String, Hashable, Sendable, CaseIterable {
    /// Needed to read the newest commit.
    case live
    /// Superseded: no retained commit needs it.
    case dead
    /// Torn writes that later commits have passed over, or after the newest commit.
    case void
    /// Room after the log.
    case zeros
    /// A frame whose hash is wrong, or bytes that are no frame.
    case damaged

    /// The letter of the map.
    public var letter: Character {
        switch self {
        case .live: "L"
        case .dead: "x"
        case .void: "v"
        case .zeros: "."
        case .damaged: "!"
        }
    }
}

/// One piece of the file.
public struct FrameEntry: Hashable, Sendable {
    /// Where it starts.
    public var place: UInt64
    /// Its bytes.
    public var bytes: UInt64
    /// DELTA, TREE, CKPT, CLOSE, PAGE, VALUE; HEADER, ZEROS, or GAP where no frame begins.
    public var kind: String
    /// What it is good for.
    public var classification: FrameClass
    /// The tree of a page, the entity of a value; as the frame itself says.
    public var tree: String?
    /// The level of a page: 0 is a leaf.
    public var level: Int?
    /// Entries of a page.
    public var entries: Int?
    /// The commit that wrote it, as the frame itself says.
    public var commit: UInt64?

    /// One line of JSON Lines.
    public var json: JSON {
        .members([
            ("format", .int(1)), ("place", .string(Spelling.place(place))), ("bytes", .uint(bytes)),
            ("kind", .string(kind)), ("class", .string(classification.rawValue)),
            ("tree", tree.map { .string($0) }), ("level", level.map { .count($0) }),
            ("entries", entries.map { .count($0) }), ("commit", commit.map { .uint($0) }),
        ])
    }

    /// "leaf of Loan", "inner page of Loan.due", "DELTA", ...
    public var what: String {
        switch kind {
        case "PAGE":
            (level == 0 ? "leaf" : "inner page") + (tree.map { " of \($0)" } ?? "")
        case "VALUE": "value" + (tree.map { " of \($0)" } ?? "")
        default: kind
        }
    }
}

/// One line per file: a letter for each part of it.
public struct FrameMap: Hashable, Sendable {
    /// Bytes of one letter.
    public let cellBytes: UInt64
    private var cells: [[FrameClass: UInt64]]

    /// A map of at most `cells` letters.
    public init(fileBytes: UInt64, cells count: Int) {
        let size = (fileBytes + UInt64(max(count, 1)) - 1) / UInt64(max(count, 1))
        cellBytes = max(4096, (size + 4095) & ~4095)
        cells = Array(repeating: [:], count: Int((fileBytes + cellBytes - 1) / cellBytes))
    }

    /// Adds a piece of the file.
    public mutating func add(_ entry: FrameEntry) {
        var position = entry.place
        let end = entry.place + entry.bytes
        while position < end {
            let cell = Int(position / cellBytes)
            let next = min(end, (UInt64(cell) + 1) * cellBytes)
            if cells.indices.contains(cell) {
                cells[cell][entry.classification, default: 0] += next - position
            }
            position = next
        }
    }

    /// The letters: the class with the most bytes of each part; damage always shows.
    public var letters: String {
        String(
            cells.map { cell -> Character in
                if cell[.damaged] != nil { return FrameClass.damaged.letter }
                let order = FrameClass.allCases
                let largest = order.max { cell[$0, default: 0] < cell[$1, default: 0] }
                return (largest ?? .zeros).letter
            }
        )
    }
}

extension AuditedPage {
    /// "leaf of ", to be followed by a tree's name.
    var kindOfTree: String {
        if isSymbols { return "symbol tables of " }
        if isBasis { return "page changed by a leaf of " }
        return level == 0 ? "leaf of " : "inner page of "
    }
}

extension ValueHeader {
    /// Whose symbol tables these are.
    var symbolsTree: TreeID { TreeID(UInt32(truncatingIfNeeded: object.rawValue)) }
}

/// The frames that the newest readable commit needs.
struct NeededFrames {
    var offsets: Set<UInt64> = []

    func contains(_ range: Range<UInt64>) -> Bool { offsets.contains { range.contains($0) } }
}

extension StoreObserver {
    /// Visits every piece of the file in order, until `visit` says stop.
    ///
    /// - Throws: `ioFailed`.
    /// - Complexity: O(file); memory O(frames of the newest commit).
    public func frames(_ visit: (FrameEntry) -> Bool) throws(InspectionError) {
        try frames(needed: neededFrames(), visit)
    }

    /// The same for who knows what the newest commit needs, or does not ask.
    func frames(
        needed: NeededFrames,
        _ visit: (FrameEntry) -> Bool
    ) throws(InspectionError) {
        for copy in 0..<2 {
            let place = UInt64(copy * FileHeader.length)
            let isDamaged = log.damagedHeaders.contains(FileOffset(place))
            let entry = FrameEntry(
                place: place,
                bytes: UInt64(FileHeader.length),
                kind: "HEADER",
                classification: isDamaged ? .damaged : .live
            )
            guard visit(entry) else { return }
        }
        var survey = Survey(observer: self, needed: needed)
        var isStopped = false
        do {
            try log.forEachPiece { piece in
                for entry in try survey.add(piece) where !isStopped { isStopped = !visit(entry) }
                return !isStopped
            }
        } catch let error as EngineError {
            throw InspectionError(error)
        } catch let error as InspectionError {
            throw error
        } catch {
            throw InspectionError(.ioFailed, "\(error)")
        }
        for entry in try survey.finish() where !isStopped { isStopped = !visit(entry) }
        guard !isStopped else { return }
        let end = max(log.dataEnd, FileHeader.logStart.rawValue)
        guard log.fileSize > end else { return }
        _ = visit(
            FrameEntry(
                place: end,
                bytes: log.fileSize - end,
                kind: "ZEROS",
                classification: .zeros
            )
        )
    }

    /// Offsets of all frames that the newest readable commit needs; damaged ones included.
    func neededFrames() throws(InspectionError) -> NeededFrames {
        var needed = NeededFrames()
        guard let tail = log.tail else { return needed }
        needed.offsets.insert(tail.base.offset.rawValue)
        needed.offsets.insert(tail.newest.offset.rawValue)
        for commit in tail.replayed { needed.offsets.insert(commit.offset.rawValue) }
        for root in tail.roots {
            _ = try engine { () throws(EngineError) in
                try log.audit(root) { page, _ in
                    needed.offsets.insert(page.address.offset.rawValue)
                    return true
                }
            }
        }
        guard let snapshot = state?.snapshot.storage else { return needed }
        do throws(InspectionError) {
            try forEachBlob(snapshot) { blob in
                if let place = blob.place { needed.offsets.insert(place.address.offset.rawValue) }
            }
            try forEachValue(snapshot) { value in
                needed.offsets.insert(value.place.address.offset.rawValue)
            }
        } catch {
            // A damaged page of these trees is told by its own entry.
            guard error.kind == .damaged else { throw error }
        }
        return needed
    }

    /// Visits the entries of the tree of large values.
    func forEachValue(
        _ snapshot: Snapshot,
        _ body: (KnownValue) throws(InspectionError) -> Void
    ) throws(InspectionError) {
        try forEachEntry(.largeValues, of: snapshot) { cursor throws(InspectionError) in
            let value: KnownValue
            do throws(FormatError) {
                value = try KnownValue(key: cursor.key, value: cursor.value)
            } catch {
                throw InspectionError(.damaged, "\(error)")
            }
            try body(value)
        }
    }

    /// A frame in short, without its class.
    func entry(_ frame: ObservedFrame, _ classification: FrameClass) -> FrameEntry {
        var entry = FrameEntry(
            place: frame.offset.rawValue,
            bytes: frame.header.frameLength,
            kind: frame.header.kind.label,
            classification: classification
        )
        entry.commit =
            (frame.record?.number ?? frame.page?.commit ?? frame.value?.commit)?.rawValue
        if let page = frame.page {
            entry.tree = names.name(page.tree)
            entry.level = Int(page.level)
            entry.entries = Int(page.count)
        }
        if let value = frame.value {
            entry.tree =
                value.column == ValueHeader.symbolsColumn
                ? "symbol tables of \(names.name(value.symbolsTree))"
                : value.entity == ValueHeader.blobEntity
                    ? "blobs" : names.object(value.entity, value.object)
        }
        return entry
    }
}

/// Gives each piece its class; doubtful ones wait for the next commit, which says what they are.
private struct Survey {
    let observer: StoreObserver
    let needed: NeededFrames
    private var pending: [FrameEntry] = []
    /// Commits whose body is not whole, or that stand on such a one, or on one that is not there,
    /// and was not durable when they were written. A torn write may be what is missing; then they
    /// count for nothing. The next commit tells: it stands on them, or passes over them.
    private var suspects: [(record: CommitRecord, frame: ObservedFrame)] = []

    init(observer: StoreObserver, needed: NeededFrames) {
        self.observer = observer
        self.needed = needed
    }

    /// Takes the next piece; gives the entries whose class is known now, in order.
    mutating func add(_ piece: LogPiece) throws(InspectionError) -> [FrameEntry] {
        switch piece {
        case .gap(let range):
            pending.append(Self.entry(range, "GAP"))
            return []
        case .zeros(let range):
            pending.append(Self.entry(range, "ZEROS"))
            return []
        case .frame(let frame):
            guard frame.isPayloadSound else {
                pending.append(observer.entry(frame, .damaged))
                return []
            }
            var ready: [FrameEntry] = []
            if let record = frame.record {
                if isSuspect(record, frame) {
                    suspects.append((record, frame))
                } else {
                    ready = try resolve(record, frame)
                }
            }
            let isLive = needed.offsets.contains(frame.offset.rawValue)
            let entry = observer.entry(frame, isLive ? .live : .dead)
            if pending.isEmpty { ready.append(entry) } else { pending.append(entry) }
            return ready
        }
    }

    /// Doubtful bytes are taken for damage until a commit says otherwise.
    private static func entry(_ range: Range<UInt64>, _ kind: String) -> FrameEntry {
        FrameEntry(
            place: range.lowerBound,
            bytes: range.upperBound - range.lowerBound,
            kind: kind,
            classification: .damaged
        )
    }

    /// Entries that wait for a commit to tell, at most: a forged chain has no end. Beyond, what a
    /// commit says is taken for true.
    private static let suspectEntriesMax = 4096

    private func isSuspect(_ record: CommitRecord, _ frame: ObservedFrame) -> Bool {
        if pending.count > Self.suspectEntriesMax { return false }
        let body =
            record.bodyStart
            .rawValue..<max(
                record.bodyStart.rawValue,
                frame.offset.rawValue
            )
        let isTorn = pending.contains {
            $0.classification == .damaged && body.overlaps($0.place..<($0.place + $0.bytes))
        }
        if isTorn { return true }
        guard frame.header.flags.contains(.stacked) else { return false }
        let previous = frame.header.previousCommit
        if suspects.contains(where: { $0.frame.offset == previous }) { return true }
        return pending.contains {
            $0.classification == .damaged
                && ($0.place..<($0.place + $0.bytes)).contains(previous.rawValue)
        }
    }

    /// A sound commit says which bytes before it count for nothing.
    private mutating func resolve(
        _ record: CommitRecord,
        _ frame: ObservedFrame
    ) throws(InspectionError) -> [FrameEntry] {
        if pending.isEmpty { return [] }
        var judged: UInt64 = 0
        if let first = suspects.first,
            suspects.contains(where: { $0.frame.offset == frame.header.previousCommit })
        {
            // They were durable: so was what they consist of and stand on, and what is missing is
            // damage.
            try judge(by: first.record, first.frame, from: 0)
            judged = first.frame.offset.rawValue
        }
        suspects.removeAll()
        try judge(by: record, frame, from: judged)
        defer { pending.removeAll() }
        return pending
    }

    private mutating func judge(
        by record: CommitRecord,
        _ frame: ObservedFrame,
        from start: UInt64
    ) throws(InspectionError) {
        let observer = observer
        let before = try engine { () throws(EngineError) in
            try observer.log.commit(at: frame.header.previousCommit)
        }
        for index in pending.indices
        where pending[index].classification == .damaged && pending[index].place >= start {
            let end = pending[index].place + pending[index].bytes
            let previous = frame.header.previousCommit.rawValue
            // Zeros are the room that a writer leaves, unless a frame is known to have been there.
            let isRoom =
                pending[index].kind == "ZEROS"
                && !(pending[index].place..<end).contains(previous)
            let isBehind = before.map { $0.end.rawValue <= pending[index].place } ?? false
            if end <= record.bodyStart.rawValue, isRoom || isBehind {
                pending[index].classification = .void
            }
        }
    }

    /// What stands after the last commit: a torn write, unless recovery says that it has rotted.
    mutating func finish() throws(InspectionError) -> [FrameEntry] {
        // Recovery tells whether they count: it has passed them over, or refuses the log. Where it
        // refuses, what is missing is taken for damage.
        let isRefused = observer.log.failure != nil
        let judged = isRefused ? suspects.last?.frame.offset.rawValue ?? 0 : 0
        if let first = suspects.first { try judge(by: first.record, first.frame, from: 0) }
        let newest = observer.log.tail?.newest.end.rawValue
        let failure = observer.log.failure?.place?.rawValue
        for index in pending.indices
        where pending[index].classification == .damaged && pending[index].place >= judged {
            let range = pending[index].place..<(pending[index].place + pending[index].bytes)
            if let newest, range.lowerBound >= newest, !(failure.map(range.contains) ?? false) {
                pending[index].classification = .void
            }
        }
        defer { pending.removeAll() }
        return pending
    }
}
