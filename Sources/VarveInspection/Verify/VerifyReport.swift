// What a check of a store found.

/// How thorough a check is.
public enum VerifyLevel: String, Hashable, Sendable, CaseIterable {
    /// Header, tail, and every page of the newest commit against its parent.
    case quick
    /// Also what the pages say: rows against indexes both ways, relationships, large values, that
    /// blobs are there with the right length.
    case normal
    /// Also every frame of the file, needed or not, and the digest of every blob.
    case full
}

/// Something that is wrong.
public struct VerifyProblem: Hashable, Sendable {
    /// What kind of thing is wrong.
    public enum Kind: String, Hashable, Sendable {
        /// Bytes are not what was written.
        case damaged
        /// Sound bytes that contradict each other.
        case inconsistent
        /// A blob's file is not there.
        case missing
    }

    /// What kind of thing is wrong.
    public var kind: Kind
    /// "leaf of Loan", "DELTA", "row Book:12", ...
    public var subject: String
    /// The frame at fault; nil when it is not one frame.
    public var place: UInt64?
    /// Bytes of that frame.
    public var bytes: UInt64?
    /// Whether the newest commit needs it.
    public var isNeeded: Bool
    /// One sentence.
    public var message: String
    /// Entries that cannot be reached because of it.
    public var rows: UInt64?
    /// Objects that are touched, as far as they are known; at most 1,000.
    public var objects: [String] = []
    /// What else is known.
    public var details: [String] = []

    /// The problem as JSON.
    public var json: JSON {
        .members([
            ("kind", .string(kind.rawValue)), ("subject", .string(subject)),
            ("place", place.map { .string(Spelling.place($0)) }),
            ("bytes", bytes.map { .uint($0) }), ("needed", .bool(isNeeded)),
            ("message", .string(message)), ("rows", rows.map { .uint($0) }),
            ("objects", objects.isEmpty ? nil : .array(objects.map { .string($0) })),
            ("details", details.isEmpty ? nil : .array(details.map { .string($0) })),
        ])
    }
}

/// The result of a check.
public struct VerifyReport: Hashable, Sendable {
    /// How thorough it was.
    public var level: VerifyLevel
    /// The commit that was checked; nil when none can be read.
    public var commit: UInt64?
    /// Whether it came to its end; false after a time limit.
    public var isComplete = true
    /// Bytes of the file that were read and checked.
    public var bytes: UInt64 = 0
    /// Pages of the newest commit.
    public var pages: UInt64 = 0
    /// Frames of the whole file; 0 unless the check was a full one.
    public var frames: UInt64 = 0
    /// Rows, those of hidden link entities included.
    public var rows: UInt64 = 0
    /// Index entries.
    public var indexEntries: UInt64 = 0
    /// Large values.
    public var values: UInt64 = 0
    /// Blobs.
    public var blobs: UInt64 = 0
    /// What is wrong; in the order in which it was found.
    public var problems: [VerifyProblem] = []
    /// Problems that were left out because there were too many.
    public var problemsLeftOut = 0
    /// What is worth knowing and not wrong.
    public var notes: [String] = []
    /// What could not be checked, and why.
    public var notChecked: [String] = []

    /// Bytes that a check may take for what grows with the damage, unless said otherwise.
    public static let memoryBytesMax = 256 << 20
    /// The most problems that a report lists.
    static let problemsMax = 1000

    /// Whether nothing is wrong.
    public var isSound: Bool { problems.isEmpty }

    /// The answer as JSON.
    public var json: JSON {
        .members([
            ("format", .int(1)), ("level", .string(level.rawValue)),
            ("sound", .bool(isSound)), ("complete", .bool(isComplete)),
            ("commit", commit.map { .uint($0) } ?? .null), ("bytes", .uint(bytes)),
            ("pages", .uint(pages)), ("frames", .uint(frames)), ("rows", .uint(rows)),
            ("indexEntries", .uint(indexEntries)), ("values", .uint(values)),
            ("blobs", .uint(blobs)), ("problems", .array(problems.map(\.json))),
            ("problemsLeftOut", problemsLeftOut > 0 ? .count(problemsLeftOut) : nil),
            ("notes", .array(notes.map { .string($0) })),
            ("notChecked", .array(notChecked.map { .string($0) })),
        ])
    }

    mutating func add(_ problem: VerifyProblem) {
        if problems.count < Self.problemsMax {
            problems.append(problem)
        } else {
            problemsLeftOut += 1
        }
    }
}
