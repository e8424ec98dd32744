// History against a model: random commits, reopened, compacted, backed up, and planted bugs.

import Foundation
import Testing

@testable import VarveObjects

@Suite(.verified) struct HistoryModelTests {
    /// A long run: `VARVE_HISTORY_SEEDS` says how many, `VARVE_HISTORY_FIRST` from which on.
    @Test func `The past is what the store held then`() throws {
        let environment = ProcessInfo.processInfo.environment
        let count = environment["VARVE_HISTORY_SEEDS"].flatMap { UInt64($0) } ?? 300
        let first = environment["VARVE_HISTORY_FIRST"].flatMap { UInt64($0) } ?? 1
        var commits = 0
        var checks = 0
        for seed in first..<first + count {
            do {
                let fuzz = try HistoryFuzz(seed: seed)
                try fuzz.run(steps: 24)
                commits += fuzz.copies.count
                checks += fuzz.checks
            } catch {
                Issue.record("seed \(seed): \(error)")
                return
            }
        }
        #expect(commits > 12 * Int(count) && checks > 100 * Int(count), "the runs mean something")
    }

    @Test(arguments: PlantedObjectBug.ofHistory)
    func `Planted bugs are found`(_ bug: PlantedObjectBug) throws {
        for seed in 1...40 as ClosedRange<UInt64> {
            do {
                try HistoryFuzz(seed: seed, [bug]).run(steps: 24)
            } catch is HistoryFuzz.Finding {
                return
            }
        }
        Issue.record("\(bug) was not found in 40 runs")
    }
}
