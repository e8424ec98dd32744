// The fuzzer of migrations in CI; a longer run is asked for by VARVE_MIGRATION_SEEDS.

import Foundation
import Testing
import VarveEngine
import VarveTesting

@testable import VarveObjects

@Suite(.verified) struct MigrationFuzzTests {
    /// 60 runs, or as many as VARVE_MIGRATION_SEEDS says, from VARVE_MIGRATION_FIRST on.
    @Test func `Random stages leave the store as they leave the model`() throws {
        let variables = ProcessInfo.processInfo.environment
        let count = variables["VARVE_MIGRATION_SEEDS"].flatMap(UInt64.init) ?? 60
        let first = variables["VARVE_MIGRATION_FIRST"].flatMap(UInt64.init) ?? 1
        var findings = 0
        for seed in first..<(first + count) {
            do { try MigrationFuzz.run(seed: seed) } catch {
                Issue.record("\(error)")
                findings += 1
                if findings >= 3 { break }
            }
        }
    }

    @Test(.damagesStores("the planted bugs leave them so"), arguments: PlantedObjectBug.ofMigration)
    func `Planted bugs are found`(_ bug: PlantedObjectBug) throws {
        for seed in UInt64(1)...60 {
            do { try MigrationFuzz.run(seed: seed, [bug]) } catch { return }
        }
        Issue.record("\(bug) passes 60 runs")
    }
}
