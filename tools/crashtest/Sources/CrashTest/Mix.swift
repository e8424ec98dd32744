// What a seed's workload is made of: kinds of operation, each never, rare or often.

import VarveTesting

/// Kinds of operation that a seed may have and `--without` switches off.
enum Kind: String, CaseIterable {
    case insert, update, delete, text, blob, file, folder
    case bulk, clear, relaxed, checkpoint, compact, reopen, kill, snapshot
}

/// How often each kind comes, and the settings of the store.
struct Mix {
    var weights: [Kind: Int] = [:]
    var retention = Retention.newest
    var steps = 34
    var usesSmallCache = false
    /// Whether transactions write pages before they commit: then each of them is a TREE.
    var writesEarly = false
    /// Whether compactions pack leaves, whatever the rest says.
    var alwaysPacks = false
    /// Whether compactions pack leaves.
    var packsLeaves: Bool {
        if alwaysPacks { return true }
        // Without a random number of its own: those of a seed stay what they were.
        return weights.values.reduce(0, +) % 2 == 0
    }

    init(_ random: inout SeededRandom, without: Set<Kind>) {
        for kind in Kind.allCases {
            let rate = [0, 1, 1, 4][Int(random.next() % 4)]
            weights[kind] = without.contains(kind) ? 0 : rate
        }
        // Something must happen.
        if weights[.insert] == 0 && weights[.bulk] == 0 { weights[.insert] = 2 }
        switch random.next() % 4 {
        case 0: retention = .commits(4)
        case 1: retention = .all
        default: break
        }
        usesSmallCache = random.next() % 2 == 0
        writesEarly = random.next() % 4 == 0
    }

    /// Whether a kind comes now, `often` being every third time and `rare` every twelfth.
    func comes(_ kind: Kind, _ random: inout SeededRandom) -> Bool {
        Int(random.next() % 12) < weights[kind] ?? 0
    }

    func options(_ environment: any Environment) -> RecordOptions {
        var options = RecordOptions()
        options.engine.nodeWeightMax = 512
        options.engine.tailRoomMin = 4 << 10
        options.engine.tailRoomMax = 8 << 10
        options.engine.tailReserve = 2 << 10
        options.engine.checkpointTailMin = 6 << 10
        options.engine.checkpointTailMax = 6 << 10
        options.engine.deltaBytesMax = 3 << 10
        options.engine.earlyWriteBytes = 12 << 10
        options.engine.inlineValueBytesMax = 256
        if writesEarly {
            options.engine.sortBytesMax = 1 << 10
            options.engine.appendedBytesMax = 3 << 10
            options.engine.changedBytesMax = 5 << 10
        }
        options.engine.compactedLeafBytes = 1 << 10
        options.engine.packsLeaves = packsLeaves
        options.engine.packsAnyLeaf = true
        options.engine.compactsAutomatically = false
        options.engine.maintenance = .inline
        options.engine.nodeCacheBytes = usesSmallCache ? 8 << 10 : 1 << 20
        options.engine.retention = retention
        options.engine.environment = environment
        options.unreferencedRowBytes = 4 << 10
        return options
    }
}
