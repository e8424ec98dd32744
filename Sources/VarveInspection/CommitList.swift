// The commits of a store, newest first, as their own frames tell them.

import VarveBase
import VarveEngine
import VarveFormat
import VarveRecords

/// What one commit did.
public struct CommitReport: Hashable, Sendable {
    /// Rows of one entity.
    public struct Change: Hashable, Sendable {
        /// The entity's name.
        public var entity: String
        /// Rows that are new.
        public var added: UInt64
        /// Rows that have other values.
        public var changed: UInt64
        /// Rows that went.
        public var deleted: UInt64
    }

    /// Its number.
    public var number: UInt64
    /// When it was made, in microseconds since 1970.
    public var timeMicroseconds: Int64
    /// Who made it.
    public var author: String
    /// DELTA, TREE, CKPT or CLOSE.
    public var kind: String
    /// Whether it writes unproven commits of a crash once more.
    public var isSettle: Bool
    /// Where its frame is.
    public var place: UInt64
    /// Bytes of the frame and of its body.
    public var bytes: UInt64
    /// What it did to which entity.
    public var changes: [Change]
    /// Version of the schema it was written with.
    public var schemaVersion: UInt32

    /// One line of JSON Lines.
    public var json: JSON {
        .members([
            ("format", .int(1)), ("commit", .uint(number)),
            ("time", .string(Spelling.time(timeMicroseconds))), ("author", .string(author)),
            ("kind", .string(kind)), ("settle", isSettle ? .bool(true) : nil),
            ("place", .string(Spelling.place(place))), ("bytes", .uint(bytes)),
            ("schemaRevision", .uint(UInt64(schemaVersion))),
            (
                "changes",
                .array(
                    changes.map {
                        .members([
                            ("entity", .string($0.entity)), ("added", .uint($0.added)),
                            ("changed", .uint($0.changed)), ("deleted", .uint($0.deleted)),
                        ])
                    }
                )
            ),
        ])
    }
}

/// Commits, newest first.
public struct CommitList: Hashable, Sendable {
    /// The commits.
    public var commits: [CommitReport]
    /// Where the chain of commits breaks, when it does before its beginning.
    public var brokenAt: UInt64?
    /// Whether a limit left older commits out.
    public var isCut: Bool
}

extension StoreObserver {
    /// The commits that are in the file, newest first.
    ///
    /// Those before the newest one are kept only until a compaction.
    ///
    /// - Parameters:
    ///   - limit: at most so many.
    ///   - entity: only commits that changed rows of this entity.
    ///   - includesCheckpoints: also frames that repeat a state (CKPT).
    /// - Throws: `badRequest` for an unknown entity, `ioFailed`.
    /// - Complexity: O(commits).
    public func commits(
        limit: Int = .max,
        entity: String? = nil,
        includesCheckpoints: Bool = false
    ) throws(InspectionError) -> CommitList {
        let wanted = try entity.map { name throws(InspectionError) in try self.entity(name).id }
        var list = CommitList(commits: [], isCut: false)
        var next = log.tail?.newest
        while let frame = next {
            let isChange = frame.header.flags.contains(.carriesChanges)
            let isShown = isChange || (includesCheckpoints && frame.header.kind != .close)
            let fits =
                wanted.map { id in frame.record.entityCounts.contains { $0.entity == id } } ?? true
            if isShown && fits {
                if list.commits.count == limit {
                    list.isCut = true
                    return list
                }
                list.commits.append(report(frame))
            }
            next = try engine { () throws(EngineError) in try log.commit(before: frame) }
            if next == nil, frame.header.previousCommit.rawValue != 0 {
                list.brokenAt = frame.header.previousCommit.rawValue
            }
        }
        return list
    }

    func report(_ frame: CommitFrame) -> CommitReport {
        let record = frame.record
        return CommitReport(
            number: record.number.rawValue,
            timeMicroseconds: record.clockMicroseconds,
            author: record.author,
            kind: frame.header.kind.label,
            isSettle: frame.header.flags.contains(.settle),
            place: frame.offset.rawValue,
            bytes: frame.end.rawValue - min(record.bodyStart.rawValue, frame.offset.rawValue),
            changes: record.entityCounts.map {
                CommitReport.Change(
                    entity: names.name($0.entity),
                    added: $0.added,
                    changed: $0.changed,
                    deleted: $0.deleted
                )
            },
            schemaVersion: record.schemaVersion
        )
    }
}
