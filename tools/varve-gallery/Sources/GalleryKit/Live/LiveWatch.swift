// Follows a list while another process changes it, and measures what each commit costs.

import Foundation
package import VarveObjects

/// A list of all cities that stays open while somebody else writes.
@MainActor
package final class LiveWatch {
    /// One commit, as the list saw it.
    package struct Step: Sendable {
        package var commit: CommitNumber
        /// Cities that the commit changed.
        package var rowsChanged: Int
        /// Changes that the list told of. A step of the list may answer several commits; it counts
        /// for the first of them.
        package var events: Int
        /// The time that it took to bring the list to the commit.
        package var duration: Duration
        /// Rows and index entries that were looked at for it.
        package var rowsExamined: Int

        package init(
            commit: CommitNumber,
            rowsChanged: Int,
            events: Int,
            duration: Duration,
            rowsExamined: Int
        ) {
            (self.commit, self.rowsChanged, self.events) = (commit, rowsChanged, events)
            (self.duration, self.rowsExamined) = (duration, rowsExamined)
        }

        package var json: JSONLine {
            JSONLine(fields: [
                ("commit", .integer(Int(clamping: commit.rawValue))),
                ("rowsChanged", .integer(rowsChanged)), ("events", .integer(events)),
                ("milliseconds", .number(duration.milliseconds)),
                ("rowsExamined", .integer(rowsExamined)),
            ])
        }
    }

    private let container: PersistentContainer
    private let context: ManagedObjectContext
    private let list: LiveResults<City>
    private let sections: SectionedResults<City, String>?
    private var observation: LiveObservation?
    /// What the list told in the step that is under way.
    private var told: LiveChange<City>?
    /// The last step, until all commits that it answered are known.
    private var unjudged: (commit: CommitNumber, told: LiveChange<City>?)?
    package private(set) var ledger = LiveLedger()

    package init(_ container: PersistentContainer, hasSections: Bool) throws {
        self.container = container
        context = container.newContext()
        let request = City.all.sorted { [$0.population.descending] }
        if hasSections {
            let made = try context.live(request, sectionedBy: { $0.country.name })
            (sections, list) = (made, made.list)
        } else {
            (sections, list) = (nil, try context.live(request))
        }
        observation = list.onChange { [unowned self] change in told = change }
    }

    /// How many cities the list has.
    package var count: Int { list.count }
    /// How many sections the list has; nil: it has none.
    package var sectionCount: Int? { sections?.sections.count }

    /// Follows `commits` until the writer's last one, or until there are no more. Call it before
    /// the writer begins.
    package func follow(_ commits: CommitNotices, _ report: (Step) throws -> Void) async throws {
        for await notice in commits {
            try report(step(notice))
            if notice.author == LiveWriter.lastAuthor { break }
        }
    }

    private func step(_ notice: CommitNotice) -> Step {
        // All commits that the last step answered are known now.
        if let last = unjudged, notice.commit > last.commit { judge() }
        ledger.add(notice)
        defer { if unjudged?.commit == notice.commit { judge() } }
        var step = Step(
            commit: notice.commit,
            rowsChanged: [.inserted, .updated, .deleted].reduce(0) {
                $0 + notice.ids(of: City.self, $1).count
            },
            events: 0,
            duration: .zero,
            rowsExamined: 0
        )
        // A step before may have brought the list beyond this commit already.
        if let reached = context.commit, reached >= notice.commit { return step }
        let before = container.statistics
        let start = ContinuousClock.now
        context.advance()
        step.duration = ContinuousClock.now - start
        let after = container.statistics
        step.rowsExamined =
            after.rowsScanned + after.storeReads + after.entriesScanned
            - before.rowsScanned - before.storeReads - before.entriesScanned
        step.events = told?.count ?? 0
        unjudged = (context.commit ?? notice.commit, told)
        told = nil
        return step
    }

    private func judge() {
        if let (commit, told) = unjudged { ledger.close(at: commit, told) }
        unjudged = nil
    }

    /// Whether the list is what a fetch in a fresh context gives. Call it when nobody writes.
    package func equalsFetch() throws -> Bool {
        judge()
        context.advance()
        var request = list.descriptor
        if sections != nil {
            request = request.sorted { [$0.country.name.ascending, $0.population.descending] }
        }
        return try container.newContext().fetchIDs(request) == list.results.ids
    }
}
