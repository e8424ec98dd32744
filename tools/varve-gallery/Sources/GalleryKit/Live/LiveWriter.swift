// The other process of `gallery live`: it inserts, edits and deletes cities, commit after commit.

import Foundation
package import VarveObjects

/// Writes small commits into a store: each inserts, edits and deletes some cities.
///
/// Its own cities have negative numbers. It keeps a few hundred of them, so that the list stays as
/// long as it was; those that are left from a run before are its own too.
package struct LiveWriter: Sendable {
    package static let author = "gallery live"
    /// The author of the last commit: whoever follows knows that nothing comes behind it.
    package static let lastAuthor = "gallery live, end"
    /// Cities of its own that it keeps.
    package static let ownCities = 300

    let container: PersistentContainer
    let seconds: Double
    /// Commits per second; 0: as many as go.
    let rate: Double
    let seed: UInt64

    package init(_ container: PersistentContainer, seconds: Double, rate: Double, seed: UInt64) {
        (self.container, self.seconds, self.rate, self.seed) = (container, seconds, rate, seed)
    }

    /// Writes until the time is over. Returns the number of commits, the last one included.
    package func run() async throws -> Int {
        let commits = try await container.performBackgroundTask(author: Self.author) { context in
            try write(context)
        }
        try await container.performBackgroundTask(author: Self.lastAuthor) { context in
            let first = try context.fetch(City.all.sorted { [$0.population.descending] }.limit(1))
            first.first?.division = "last, after \(commits)"
            try context.save()
        }
        return commits + 1
    }

    private func write(_ context: ManagedObjectContext) throws -> Int {
        var random = SeededRandom(seed: seed)
        let ids = try context.fetchIDs(City.where { $0.geonameID >= 0 })
        let countries = try context.fetch(Country.all)
        var own = try context.fetchIDs(City.where { $0.geonameID < 0 })
        var lowest = try context.minimum(City.all) { $0.geonameID } ?? 0
        lowest = min(lowest, 0)
        let start = ContinuousClock.now
        var commits = 0
        while true {
            let elapsed = (ContinuousClock.now - start).milliseconds / 1_000
            if elapsed >= seconds { return commits }
            if rate > 0, Double(commits) / rate > elapsed {
                usleep(UInt32(min(100_000, (Double(commits) / rate - elapsed) * 1_000_000)))
                continue
            }
            commits += 1
            // A row that is edited twice between two looks still shows another value than before.
            let mark = "live \(commits)"
            for _ in 0..<Int.random(in: 1...2, using: &random) where !ids.isEmpty {
                let city = try context.object(
                    with: ids[Int.random(in: 0..<ids.count, using: &random)]
                )
                city.division = mark
                if Bool.random(using: &random) {
                    city.population = Int.random(in: 1_000...2_000_000, using: &random)
                }
            }
            if own.count > Self.ownCities
                || (!own.isEmpty && Int.random(in: 0..<4, using: &random) == 0)
            {
                let place = Int.random(in: 0..<own.count, using: &random)
                context.delete(try context.object(with: own[place]))
                own.swapAt(place, own.count - 1)
                own.removeLast()
            }
            var new: City?
            if Int.random(in: 0..<3, using: &random) == 0 {
                lowest -= 1
                let city = City(in: context)
                city.geonameID = lowest
                city.name = "New Town \(-lowest)"
                city.population = Int.random(in: 1_000...2_000_000, using: &random)
                city.country = countries.randomElement(using: &random)
                new = city
            }
            try context.save()
            if let new { own.append(new.id) }
        }
    }
}
