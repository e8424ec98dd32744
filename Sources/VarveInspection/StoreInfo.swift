// The first screen: what is this file, and can it be opened.

import VarveBase
import VarveEngine
import VarveFormat
import VarveRecords

/// What a store says of itself.
public struct StoreInfo: Hashable, Sendable {
    /// A commit frame in short.
    public struct Commit: Hashable, Sendable {
        /// The commit's number.
        public var number: UInt64
        /// Where its frame is.
        public var place: UInt64
        /// DELTA, TREE, CKPT or CLOSE.
        public var kind: String
        /// Bytes of the frame.
        public var bytes: UInt64
        /// When it was written, in microseconds since 1970.
        public var timeMicroseconds: Int64
        /// Who made it.
        public var author: String

        init(_ frame: CommitFrame) {
            number = frame.record.number.rawValue
            place = frame.offset.rawValue
            kind = frame.header.kind.label
            bytes = frame.header.frameLength
            timeMicroseconds = frame.record.clockMicroseconds
            author = frame.record.author
        }
    }

    /// An entity and how many rows it has.
    public struct Entity: Hashable, Sendable {
        /// Its name.
        public var name: String
        /// Its rows.
        public var rows: UInt64
    }

    /// The path as it was given.
    public var path: String
    /// Version of the format that the file was made with.
    public var formatVersion: UInt32
    /// A reader must know this version.
    public var readerNeeds: UInt32
    /// A writer must know this version.
    public var writerNeeds: UInt32
    /// Names the store for ever.
    public var storeID: String
    /// Names this file.
    public var fileID: String
    /// Counts the files that held this store.
    public var generation: UInt64
    /// When the file was made, in microseconds since 1970.
    public var createdMicroseconds: Int64
    /// Who made it.
    public var creator: String
    /// The app's number of the stored schema; nil when there is none.
    public var schemaVersion: UInt32?
    /// The newest commit; nil when no sound one was found.
    public var newest: Commit?
    /// Whether the newest commit is known to have been synced.
    public var isNewestProven: Bool
    /// Where the newest state starts from.
    public var checkpoint: Commit?
    /// Commits after the checkpoint.
    public var replayedCommits: Int
    /// Bytes of their frames.
    public var replayedBytes: UInt64
    /// Whether the last writer closed the store.
    public var isClosed: Bool
    /// Bytes of the file.
    public var fileBytes: UInt64
    /// The newest commit's own estimate of the bytes it needs.
    public var liveBytes: UInt64
    /// Zeros after the log, room for the next commits.
    public var tailZeros: UInt64
    /// Blobs that rows name.
    public var blobs: UInt64
    /// Bytes of those blobs.
    public var blobBytes: UInt64
    /// Entities by name.
    public var entities: [Entity]
    /// What was found damaged while opening.
    public var damage: [String]

    /// The answer as JSON.
    public var json: JSON {
        .members([
            ("format", .int(1)), ("path", .string(path)),
            ("formatVersion", .uint(UInt64(formatVersion))),
            ("readerNeeds", .uint(UInt64(readerNeeds))),
            ("writerNeeds", .uint(UInt64(writerNeeds))), ("storeID", .string(storeID)),
            ("fileID", .string(fileID)), ("generation", .uint(generation)),
            ("created", .string(Spelling.time(createdMicroseconds))),
            ("creator", .string(creator)),
            ("schemaVersion", schemaVersion.map { .uint(UInt64($0)) } ?? .null),
            ("newest", newest?.json ?? .null), ("newestIsProven", .bool(isNewestProven)),
            ("checkpoint", checkpoint?.json ?? .null),
            ("replayedCommits", .count(replayedCommits)), ("replayedBytes", .uint(replayedBytes)),
            ("closed", .bool(isClosed)), ("fileBytes", .uint(fileBytes)),
            ("liveBytes", .uint(liveBytes)), ("tailZeros", .uint(tailZeros)),
            ("blobs", .uint(blobs)), ("blobBytes", .uint(blobBytes)),
            (
                "entities",
                .array(
                    entities.map {
                        .members([("name", .string($0.name)), ("rows", .uint($0.rows))])
                    }
                )
            ), ("damage", .array(damage.map { .string($0) })),
        ])
    }
}

extension StoreInfo.Commit {
    var json: JSON {
        .members([
            ("commit", .uint(number)), ("place", .string(Spelling.place(place))),
            ("kind", .string(kind)), ("bytes", .uint(bytes)),
            ("time", .string(Spelling.time(timeMicroseconds))), ("author", .string(author)),
        ])
    }
}

extension FrameKind {
    /// The name that Format.md gives it.
    var label: String {
        switch self {
        case .delta: "DELTA"
        case .tree: "TREE"
        case .checkpoint: "CKPT"
        case .close: "CLOSE"
        case .page: "PAGE"
        case .value: "VALUE"
        }
    }
}

extension StoreObserver {
    /// What the store says of itself.
    ///
    /// - Throws: `ioFailed`.
    /// - Complexity: O(blobs).
    public func info() throws(InspectionError) -> StoreInfo {
        let header = log.header
        let tail = log.tail
        // CKPT and CLOSE describe a commit without being it: the newest commit is one with changes.
        var newest = tail?.newest
        while let frame = newest, !frame.header.flags.contains(.carriesChanges) {
            let before = try engine { () throws(EngineError) in try log.commit(before: frame) }
            guard let before else { break }
            newest = before
        }
        var blobs: UInt64 = 0
        var blobBytes: UInt64 = 0
        var damage: [String] = log.damagedHeaders.map {
            "the copy of the file header at \(Spelling.place($0.rawValue)) is damaged; "
                + "the other one is sound"
        }
        if let stateFailure { damage.append(stateFailure.message) }
        if let snapshot = state?.snapshot {
            do throws(InspectionError) {
                try forEachBlob(snapshot.storage) { blob in
                    blobs += 1
                    blobBytes =
                        blobBytes.addingReportingOverflow(blob.reference.length).partialValue
                }
            } catch {
                guard error.kind == .damaged else { throw error }
                damage.append(error.message)
            }
        }
        let replayed = tail?.replayed ?? []
        let version = state?.snapshot.storage.schemaVersion ?? 0
        return StoreInfo(
            path: path,
            formatVersion: header.formatVersion,
            readerNeeds: header.readerNeeds,
            writerNeeds: header.writerNeeds,
            storeID: Spelling.uuid(header.storeID),
            fileID: Spelling.uuid(header.fileID),
            generation: header.generation,
            createdMicroseconds: header.createdMicroseconds,
            creator: header.creator,
            schemaVersion: version == 0 ? nil : state?.snapshot.schema.version,
            newest: newest.map { StoreInfo.Commit($0) },
            isNewestProven: tail.map { $0.newest.end <= $0.durableEnd || $0.isClosed } ?? false,
            checkpoint: tail.map { StoreInfo.Commit($0.base) },
            replayedCommits: replayed.count,
            replayedBytes: replayed.reduce(0) { $0 + $1.header.frameLength },
            isClosed: tail?.isClosed ?? false,
            fileBytes: log.fileSize,
            liveBytes: tail?.newest.record.liveBytes ?? 0,
            tailZeros: log.fileSize - min(log.fileSize, log.dataEnd),
            blobs: blobs,
            blobBytes: blobBytes,
            entities: visibleEntities(),
            damage: damage
        )
    }

    private func visibleEntities() -> [StoreInfo.Entity] {
        guard let snapshot = state?.snapshot else { return [] }
        return snapshot.schema.entities.map {
            StoreInfo.Entity(name: $0.name, rows: snapshot.storage.count($0.tree))
        }
    }

    /// Visits the entries of the tree of blobs.
    func forEachBlob(
        _ snapshot: Snapshot,
        _ body: (KnownBlob) throws(InspectionError) -> Void
    ) throws(InspectionError) {
        try forEachEntry(.blobs, of: snapshot) { cursor throws(InspectionError) in
            let blob: KnownBlob
            do throws(FormatError) {
                blob = try KnownBlob(key: cursor.key, value: cursor.value)
            } catch {
                throw InspectionError(.damaged, "\(error)")
            }
            try body(blob)
        }
    }

    /// Visits the entries of one tree, ascending.
    func forEachEntry(
        _ tree: TreeID,
        of snapshot: Snapshot,
        _ body: (TreeCursor) throws(InspectionError) -> Void
    ) throws(InspectionError) {
        var cursor = snapshot.cursor(tree)
        var more = try engine { () throws(EngineError) in try cursor.first() }
        while more {
            try body(cursor)
            more = try engine { () throws(EngineError) in try cursor.next() }
        }
    }
}
