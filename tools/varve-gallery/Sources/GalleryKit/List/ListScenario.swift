// The steps of `gallery list`, and what each costs.

import Foundation
package import VarveObjects

/// The list article as a program: one list of all cities, of which only a screen is ever looked at.
@MainActor
package final class ListScenario {
    /// What one step did.
    package struct Step {
        package var name: String
        package var duration: Duration
        /// Rows that the step read from the store.
        package var rowsRead: Int
        /// Objects whose values are in memory at the end of the step.
        package var objectsRealised: Int
        /// Bytes of the row cache at the end of the step.
        package var rowCacheBytes: Int
        /// What stands on the screen, for people.
        package var shown: String

        package init(
            name: String,
            duration: Duration,
            rowsRead: Int,
            objectsRealised: Int,
            rowCacheBytes: Int,
            shown: String
        ) {
            self.name = name
            self.duration = duration
            self.rowsRead = rowsRead
            self.objectsRealised = objectsRealised
            self.rowCacheBytes = rowCacheBytes
            self.shown = shown
        }

        package var json: JSONLine {
            JSONLine(fields: [
                ("step", .text(name)), ("milliseconds", .number(duration.milliseconds)),
                ("rowsRead", .integer(rowsRead)), ("objectsRealised", .integer(objectsRealised)),
                ("rowCacheBytes", .integer(rowCacheBytes)),
            ])
        }
    }

    package static let batchSize = 50
    package static let screenSize = 15

    private let container: PersistentContainer
    private let view: ManagedObjectContext
    private var list: BatchedResults<City>
    private var screen: [City] = []

    private static let byPopulation = City.all.sorted { [$0.population.descending] }
    private static let byName = City.all.sorted { [$0.name.ascending] }

    package init(_ container: PersistentContainer) throws {
        self.container = container
        view = container.viewContext
        list = try view.fetchBatched(City.all.limit(0), size: Self.batchSize)
    }

    /// Runs every step, in order, and hands each over as it is done.
    package func run(_ report: (Step) -> Void) throws {
        report(
            try measure("open") {
                list = try view.fetchBatched(Self.byPopulation, size: Self.batchSize)
                return "\(list.count.grouped) cities, most populous first"
            }
        )
        guard list.count >= Self.screenSize else {
            throw GalleryError("the store holds too few cities for a list: \(list.count)")
        }
        report(try measure("firstScreen") { try show(from: 0) })
        report(try measure("bottom") { try show(from: list.count - Self.screenSize) })
        report(try measure("middle") { try show(from: list.count / 2) })
        report(try measure("top") { try show(from: 0) })
        report(
            try measure("sortByName") {
                list = try view.fetchBatched(Self.byName, size: Self.batchSize)
                return try show(from: 0)
            }
        )

        let offset = list.count / 2
        let page = Self.byName.limit(Self.batchSize)
        var last: FetchCursor?
        report(
            try measure("pageByOffset") {
                let found = try view.fetchPage(page.offset(offset))
                last = found.last
                return show(found.objects)
            }
        )
        report(
            try measure("pageByKey") {
                show(try view.fetchPage(page.after(last)).objects)
            }
        )
        report(
            try measure("pageWithCountries") {
                let cities = try view.fetch(page.after(last).prefetch { $0.country })
                _ = show(cities)
                return screen.first.map { "\($0.name), \($0.country?.name ?? "?")" } ?? ""
            }
        )
    }

    /// Puts the rows from `start` on the screen: reads what a list view would draw of each.
    private func show(from start: Int) throws -> String {
        let rows = start..<(start + Self.screenSize)
        screen = []
        try list.load(rows)
        return show(rows.map { list[$0] })
    }

    private func show(_ cities: [City]) -> String {
        screen = cities
        let drawn = cities.map { (name: $0.name, population: $0.population) }
        guard let first = drawn.first?.name, let last = drawn.last?.name else { return "nothing" }
        return "\(first) … \(last)"
    }

    private func measure(_ name: String, _ body: () throws -> String) throws -> Step {
        let readsBefore = container.statistics.storeReads
        let start = ContinuousClock.now
        let shown = try body()
        let duration = ContinuousClock.now - start
        let statistics = container.statistics
        return Step(
            name: name,
            duration: duration,
            rowsRead: statistics.storeReads - readsBefore,
            objectsRealised: statistics.realisedObjects,
            rowCacheBytes: statistics.rowCache.bytes,
            shown: shown
        )
    }
}
