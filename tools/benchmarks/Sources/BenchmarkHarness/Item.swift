// The row that every workload uses.
//
// Invariant: an item is a pure function of its ID and the seed, so any process can make any row
// without the others, and two peers that hold other bytes for one ID did other work.

/// One row: 7 fields, about 145 bytes packed.
public struct Item: Equatable, Sendable {
    /// 1, 2, 3 … in order of insertion.
    public var id: Int64
    /// Seconds; random, so that its index grows in the middle.
    public var timestamp: Double
    /// About 20 bytes of text.
    public var title: String
    /// About 94 bytes of text.
    public var note: String
    /// 0 to 999.
    public var count: Int
    /// Random.
    public var flag: Bool
    /// 0 to 999,999.
    public var pictureID: Int64

    /// Joins the fields.
    public init(
        id: Int64,
        timestamp: Double,
        title: String,
        note: String,
        count: Int,
        flag: Bool,
        pictureID: Int64
    ) {
        self.id = id
        self.timestamp = timestamp
        self.title = title
        self.note = note
        self.count = count
        self.flag = flag
        self.pictureID = pictureID
    }

    /// Makes the row of an ID.
    public init(id: Int64, seed: UInt64) {
        var random = SeededRandom(seed: seed ^ (UInt64(bitPattern: id) &* 0xD6E8_FEB8_6659_FD93))
        let timestamp = Double(random.below(315_360_000_000)) / 1000
        // The ID's digits make titles differ; the words before them make their order random.
        var title = Self.word(&random) + " " + Self.word(&random) + " "
        title += String(id)
        var note = ""
        note.reserveCapacity(110)
        while note.utf8.count < 88 {
            note += Self.word(&random)
            note += " "
        }
        self.init(
            id: id,
            timestamp: timestamp,
            title: title,
            note: note,
            count: Int(random.below(1000)),
            flag: random.next() & 1 == 1,
            pictureID: Int64(random.below(1_000_000))
        )
    }

    /// The rows of a range of IDs.
    public static func rows(_ ids: ClosedRange<Int64>, seed: UInt64) -> [Item] {
        ids.map { Item(id: $0, seed: seed) }
    }

    /// The ID of the row that has a title: its last word. For libraries whose own IDs are others.
    public static func id(ofTitle title: String) throws -> Int64 {
        guard let word = title.split(separator: " ").last, let id = Int64(word) else {
            throw BenchmarkError("no row has the title \(title)")
        }
        return id
    }

    private static func word(_ random: inout SeededRandom) -> String {
        words[Int(random.below(UInt64(words.count)))]
    }

    private static let words = [
        "amber", "basalt", "chalk", "delta", "estuary", "flint", "glacier", "harbour", "island",
        "jasper", "kettle", "lagoon", "moraine", "nodule", "outwash", "pebble", "quartz", "ravine",
        "shale", "tundra", "upland", "valley", "wetland", "xenolith", "yardang", "zeolite",
        "bedrock", "cirque", "drumlin", "esker", "floe", "loess",
    ]
}
