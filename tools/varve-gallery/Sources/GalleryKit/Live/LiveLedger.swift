// What commits did to the cities, against what a live list told of it.
//
// Invariants
// - A step of the list tells of all commits since the step before. What they did together is
//   expected: a city that came and went between two steps is not told of.

import Foundation
package import VarveObjects

/// Counts what a live list left out and what it told twice, or without a reason.
package struct LiveLedger {
    /// What is expected of one city, by the commits since the last step.
    private enum Fate { case inserted, updated, deleted, cameAndWent }

    private var waiting: [(commit: CommitNumber, change: CommitNotice.Change, ids: [City.ID])] = []
    /// More changed objects than this may be told as a list that was replaced.
    package static let changesMax = 10_000

    /// Commits of which the list told.
    package private(set) var commits = 0
    /// Changes of a city that were not told.
    package private(set) var missed = 0
    /// Changes that were told twice, or that no commit had made.
    package private(set) var doubled = 0

    package init() {}

    /// A commit that the list is going to tell of.
    package mutating func add(_ notice: CommitNotice) {
        commits += 1
        // Commits of which nobody told: what they changed cannot be judged, so they are missed.
        missed += notice.missed
        for change in [CommitNotice.Change.inserted, .updated, .deleted] {
            let ids = notice.ids(of: City.self, change)
            if !ids.isEmpty { waiting.append((notice.commit, change, ids)) }
        }
    }

    /// What the list told when it had reached `commit`; nil: nothing.
    package mutating func close(at commit: CommitNumber, _ told: LiveChange<City>?) {
        var fates: [City.ID: Fate] = [:]
        for (number, change, ids) in waiting where number <= commit {
            for id in ids { fates[id] = Self.fate(after: fates[id], change) }
        }
        waiting.removeAll { $0.commit <= commit }
        if let told, told.isReplaced {
            // Allowed only where too much changed to be told one by one.
            if fates.count <= Self.changesMax { missed += fates.count }
            return
        }
        take(told?.inserted.map(\.id) ?? [], [.inserted], &fates)
        take(told?.deleted.map(\.id) ?? [], [.deleted], &fates)
        let changed = (told?.moved.map(\.id) ?? []) + (told?.updated.map(\.id) ?? [])
        take(changed, [.updated], &fates)
        missed += fates.values.count { $0 != .cameAndWent }
    }

    private mutating func take(_ ids: [City.ID], _ right: [Fate], _ fates: inout [City.ID: Fate]) {
        for id in ids {
            if let fate = fates[id], right.contains(fate) {
                fates[id] = nil
            } else {
                doubled += 1
            }
        }
    }

    private static func fate(after fate: Fate?, _ change: CommitNotice.Change) -> Fate {
        switch (fate, change) {
        case (nil, .inserted), (.inserted, .updated), (.cameAndWent, .inserted): .inserted
        case (.inserted, .deleted), (.cameAndWent, .deleted): .cameAndWent
        case (_, .deleted): .deleted
        default: .updated
        }
    }
}
