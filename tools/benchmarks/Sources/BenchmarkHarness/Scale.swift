// How much work a run does.

/// How much work a run does.
public struct Scale: Codable, Equatable, Sendable {
    /// Rows of the stores of workloads a, c, d, f, h, i, k, n, p, q, r and t, edits of u.
    public var rows: Int
    /// Rows in the store before workload b begins.
    public var rowsBeforeCommits: Int
    /// One-row durable commits of workload b.
    public var commits: Int
    /// One-row durable commits of all concurrent savers of workload b together.
    public var sharedCommits: Int
    /// Random reads of workload c inside one snapshot.
    public var reads: Int
    /// Random reads of workload c in a transaction of their own.
    public var isolatedReads: Int
    /// Pages of 50 rows of workload d.
    public var pages: Int
    /// Rows of workload e.
    public var listRows: Int
    /// Repeated fetches of workload e.
    public var listRepeats: Int
    /// Rows that workload f updates, and rows that it deletes.
    public var changes: Int
    /// Blobs of 1 MB of workload g.
    public var largeBlobs: Int
    /// Blobs of 10 KB of workload g.
    public var smallBlobs: Int
    /// Openings of workloads h, p and s.
    public var openings: Int
    /// Seconds of each half of workload i.
    public var mixedSeconds: Double
    /// Repeats of the queries of workload k; those of microseconds are repeated more often.
    public var queries: Int
    /// Rows of the list of workload l.
    public var liveRows: Int
    /// Commits that the lists of workloads l and m follow.
    public var liveCommits: Int
    /// Lists of workload m.
    public var lists: Int
    /// Openings and jumps of workload n.
    public var jumps: Int
    /// Photos of workload o.
    public var photos: Int
    /// Photos of workload o that one save changes.
    public var ratings: Int
    /// Saves of one photo of workload o.
    public var graphSaves: Int
    /// Rows that workload q touches, 120 a second.
    public var touches: Int
    /// Objects of workload r.
    public var registered: Int
    /// Objects of workload s whose relationship is prefetched.
    public var prefetched: Int
    /// Saves of 100 rows of workload t, alone and beside a compaction.
    public var busySaves: Int
    /// Seconds for which the files of workload u must stay as they are to be weighed.
    public var idleSeconds: Double

    /// The sizes of the published results.
    public static let full = Scale(
        rows: 1_000_000,
        rowsBeforeCommits: 10_000,
        commits: 2_000,
        sharedCommits: 4_096,
        reads: 500_000,
        isolatedReads: 100_000,
        pages: 500,
        listRows: 40_000,
        listRepeats: 9,
        changes: 100_000,
        largeBlobs: 100,
        smallBlobs: 10_000,
        openings: 7,
        mixedSeconds: 2,
        queries: 5,
        liveRows: 100_000,
        liveCommits: 15,
        lists: 1_000,
        jumps: 31,
        photos: 100_000,
        ratings: 10_000,
        graphSaves: 1_000,
        touches: 480,
        registered: 10_000,
        prefetched: 1_000,
        busySaves: 1_000,
        idleSeconds: 1
    )
    /// At most five minutes on two idle processors.
    public static let quick = Scale(
        rows: 50_000,
        rowsBeforeCommits: 5_000,
        commits: 600,
        sharedCommits: 512,
        reads: 50_000,
        isolatedReads: 15_000,
        pages: 100,
        listRows: 40_000,
        listRepeats: 3,
        changes: 10_000,
        largeBlobs: 20,
        smallBlobs: 2_000,
        openings: 3,
        mixedSeconds: 0.4,
        queries: 3,
        liveRows: 100_000,
        liveCommits: 7,
        lists: 1_000,
        jumps: 15,
        photos: 20_000,
        ratings: 2_000,
        graphSaves: 300,
        touches: 120,
        registered: 10_000,
        prefetched: 1_000,
        busySaves: 200,
        idleSeconds: 0.5
    )
    /// Seconds; only the checks of such a run mean anything.
    public static let smoke = Scale(
        rows: 600,
        rowsBeforeCommits: 100,
        commits: 20,
        sharedCommits: 64,
        reads: 500,
        isolatedReads: 50,
        pages: 5,
        listRows: 400,
        listRepeats: 2,
        changes: 100,
        largeBlobs: 2,
        smallBlobs: 10,
        openings: 2,
        mixedSeconds: 0.03,
        queries: 2,
        liveRows: 500,
        liveCommits: 4,
        lists: 20,
        jumps: 5,
        photos: 400,
        ratings: 40,
        graphSaves: 5,
        touches: 6,
        registered: 100,
        prefetched: 30,
        busySaves: 10,
        idleSeconds: 0.02
    )
}
