// The workloads of rows, each as a function of the contestant.

import BenchmarkHarness

enum Events {
    struct BulkInsert: Event {
        func contestant<Peer: RowPeer>(_ entry: Entry, _ type: Peer.Type) -> Contestant {
            .bulkInsert(entry.name, entry.level, type, entry.options, missing: entry.missing)
        }
    }

    struct DurableCommits: Event {
        func contestant<Peer: RowPeer>(_ entry: Entry, _ type: Peer.Type) -> Contestant {
            .durableCommits(
                entry.name,
                entry.level,
                type,
                entry.options.with { $0.keepsOldLogs = true },
                missing: entry.missing
            )
        }
    }

    struct OrderedScan: Event {
        func contestant<Peer: RowPeer>(_ entry: Entry, _ type: Peer.Type) -> Contestant {
            .orderedScan(entry.name, entry.level, type, entry.options, missing: entry.missing)
        }
    }

    struct SortedFetch: Event {
        func contestant<Peer: RowPeer>(_ entry: Entry, _ type: Peer.Type) -> Contestant {
            .sortedFetch(entry.name, entry.level, type, entry.options, missing: entry.missing)
        }
    }

    struct BulkChanges: Event {
        func contestant<Peer: RowPeer>(_ entry: Entry, _ type: Peer.Type) -> Contestant {
            .bulkChanges(entry.name, entry.level, type, entry.options, missing: entry.missing)
        }
    }

    struct Opening: Event {
        func contestant<Peer: RowPeer>(_ entry: Entry, _ type: Peer.Type) -> Contestant {
            .opening(entry.name, entry.level, type, entry.options, missing: entry.missing)
        }
    }

    struct MixedWork: Event {
        func contestant<Peer: RowPeer>(_ entry: Entry, _ type: Peer.Type) -> Contestant {
            .mixedWork(
                entry.name,
                entry.level,
                type,
                entry.options.with { $0.keepsOldLogs = true },
                missing: entry.missing
            )
        }
    }

    struct Queries: Event {
        func contestant<Peer: RowPeer>(_ entry: Entry, _ type: Peer.Type) -> Contestant {
            .queries(entry.name, entry.level, type, entry.options, missing: entry.missing)
        }
    }

    struct LiveList: ObjectEvent {
        func contestant<Peer: ObjectPeer>(_ entry: Entry, _ type: Peer.Type) -> Contestant {
            .liveList(entry.name, entry.level, type, entry.options, missing: entry.missing)
        }
    }

    struct ManyLists: ObjectEvent {
        func contestant<Peer: ObjectPeer>(_ entry: Entry, _ type: Peer.Type) -> Contestant {
            .manyLists(entry.name, entry.level, type, entry.options, missing: entry.missing)
        }
    }

    struct LongList: ObjectEvent {
        func contestant<Peer: ObjectPeer>(_ entry: Entry, _ type: Peer.Type) -> Contestant {
            .longList(entry.name, entry.level, type, entry.options, missing: entry.missing)
        }
    }

    /// With 64 MiB of caches each, with memory for all data, and with Varve's row cache as large as
    /// that.
    struct RandomReads: Event {
        func contestant<Peer: RowPeer>(_ entry: Entry, _ type: Peer.Type) -> Contestant {
            let isVarve = entry.name.hasPrefix(Report.varve)
            return .randomReads(
                entry.name,
                entry.level,
                type,
                entry.modest,
                roomy: entry.roomy,
                rowCache: isVarve ? entry.roomy.with { $0.rowCacheBytes = 1 << 30 } : entry.roomy,
                missing: entry.missing
            )
        }
    }
}

extension Events {
    /// The same work in stores of one size.
    struct ScaleChart: Event {
        let rows: Int

        func contestant<Peer: RowPeer>(_ entry: Entry, _ type: Peer.Type) -> Contestant {
            .scaleChart(
                entry.name,
                entry.level,
                type,
                entry.modest.with { $0.keepsOldLogs = true },
                rows: rows,
                missing: entry.missing
            )
        }
    }
}

// What users feel.
extension Events {
    struct FirstScreen: FeltEvent {
        func contestant<Peer: FeltPeer>(_ entry: Entry, _ type: Peer.Type) -> Contestant {
            .firstScreen(entry.name, entry.level, type, entry.options, missing: entry.missing)
        }
    }

    struct Scrolling: FeltEvent {
        func contestant<Peer: FeltPeer>(_ entry: Entry, _ type: Peer.Type) -> Contestant {
            .scrolling(entry.name, entry.level, type, entry.options, missing: entry.missing)
        }
    }

    struct ObjectMemory: FeltEvent {
        func contestant<Peer: FeltPeer>(_ entry: Entry, _ type: Peer.Type) -> Contestant {
            .objectMemory(entry.name, entry.level, type, entry.options, missing: entry.missing)
        }
    }

    struct BusySaves: FeltEvent {
        func contestant<Peer: FeltPeer>(_ entry: Entry, _ type: Peer.Type) -> Contestant {
            .busySaves(entry.name, entry.level, type, entry.options, missing: entry.missing)
        }
    }

    struct SmallEdits: FeltEvent {
        func contestant<Peer: FeltPeer>(_ entry: Entry, _ type: Peer.Type) -> Contestant {
            .smallEdits(entry.name, entry.level, type, entry.options, missing: entry.missing)
        }
    }
}
