// What VarveMetrics counts and times: each metric of the documentation's table, and no other.

import Foundation
import Metrics
import Testing
import VarveLogging
import VarveMetrics
import VarveObjects

@Suite("Metrics") struct MetricsTests {
    private func measured(_ prefix: String? = nil) async throws -> MetricLog {
        let log = MetricLog()
        var options = ContainerOptions(compactsAutomatically: false)
        options.trace =
            prefix.map { .metrics(prefix: $0, factory: log) } ?? .metrics(factory: log)
        try await work(try TemporaryFolder(), options)
        return log
    }

    @Test("Counters have the figures of the work") func counters() async throws {
        let counters = try await measured().counters
        let expected: [String: Int64] = [
            "varve_saves": 5,
            "varve_failures{work=save,code=invalid}": 1,
            "varve_failures{work=batch,code=invalid}": 1,
            "varve_failures{work=backup,code=storeExists}": 1,
            // Three notes and a folder; twenty of each; one more.
            "varve_rows_inserted{work=save}": 45,
            "varve_rows_deleted{work=save}": 1,
            "varve_rows_inserted{work=batch}": 100,
            "varve_rows_updated{work=batch}": 10,
            "varve_rows_deleted{work=batch}": 11,
            "varve_batches{kind=insert}": 1,
            "varve_batches{kind=update}": 2,
            "varve_batches{kind=delete}": 2,
            "varve_batch_commits": 4,
            "varve_fetches{kind=count}": 1,
            "varve_fetches{kind=objects}": 2,
            // One note, the count of twenty, the twenty.
            "varve_objects_found": 41,
            "varve_repeated_faults": 1,
            "varve_ended_contexts{use=edit}": 1,
            "varve_compactions": 1,
            "varve_backups{kind=backup}": 1,
            "varve_backups{kind=increment}": 1,
            "varve_backups{kind=restore}": 2,
            "varve_migrations{kind=migration}": 1,
        ]
        for (name, count) in expected { #expect(counters[name] == count, "\(name)") }
        for name in [
            "varve_rows_updated{work=save}", "varve_rows_scanned", "varve_merges",
            "varve_checkpoints", "varve_bytes_written{work=save}",
            "varve_bytes_written{work=batch}", "varve_bytes_written{work=checkpoint}",
            "varve_bytes_backed_up{kind=backup}", "varve_bytes_backed_up{kind=restore}",
            "varve_rows_migrated",
        ] {
            #expect(counters[name] ?? 0 > 0, "\(name)")
        }
    }

    @Test("Timers are told of what succeeded, once each") func timers() async throws {
        let timers = try await measured().timers
        let expected = [
            "varve_save_duration": 4, "varve_save_wait": 4, "varve_batch_wait": 4,
            "varve_batch_duration{kind=insert}": 1, "varve_batch_duration{kind=update}": 1,
            "varve_batch_duration{kind=delete}": 2, "varve_fetch_duration{kind=count}": 1,
            "varve_fetch_duration{kind=objects}": 2, "varve_compaction_duration": 1,
            "varve_migration_duration{kind=migration}": 1,
            "varve_backup_duration{kind=backup}": 1, "varve_backup_duration{kind=restore}": 1,
            "varve_backup_duration{kind=increment}": 1,
        ]
        for (name, count) in expected { #expect(timers[name]?.count == count, "\(name)") }
        #expect(timers["varve_save_duration"]?.allSatisfy { $0 > 0 } == true)
        #expect(timers["varve_merge_duration"]?.isEmpty == false)
        #expect(timers["varve_checkpoint_duration"]?.isEmpty == false)
    }

    @Test("The documentation's table has every metric, and none that there is not")
    func everyMetricIsInTheTable() async throws {
        // The file is reached by a link from tools/adapters, too.
        let root = URL(filePath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let article = try String(
            contentsOf: root.appending(path: "Sources/Varve/Varve.docc/LoggingAndMetrics.md"),
            encoding: .utf8
        )
        var documented: Set<String> = []
        for line in article.split(separator: "\n") where line.hasPrefix("| `varve_") {
            // Several may share a row.
            let cell = line.split(separator: "|")[0]
            documented.formUnion(
                cell.split(separator: "`").map(String.init).filter { $0.hasPrefix("varve_") }
            )
        }
        let used = try await measured().names.map { String($0.prefix { $0 != "{" }) }
        #expect(documented == Set(used))
    }

    @Test("No label has a value of the app's, and few are made") func labelsAreFew() async throws {
        let names = try await measured("notes").names
        #expect(names.allSatisfy { $0.hasPrefix("notes_") })
        let words = names.joined(separator: " ")
        for secret in ["secret", "Lovelace", "5000", "Note", "Folder", "diary"] {
            #expect(!words.contains(secret), "\(secret)")
        }
        #expect(names.count < 70)
        for name in names {
            let label = name.prefix { $0 != "{" }
            #expect(label.allSatisfy { $0.isLowercase || $0 == "_" }, "\(name)")
        }
    }

    @Test("Log and metrics hear the same work") func both() async throws {
        let lines = LineLog()
        let metrics = MetricLog()
        var options = ContainerOptions()
        options.trace = .all([.logging(to: lines.logger()), .metrics(factory: metrics)])
        let container = try PersistentContainer.inMemory(schema: NoteSchema.self, options: options)
        let context = container.newContext()
        try context.batchInsert(Note.self, count: 7) { row, number in row.number = number }
        #expect(lines.take().filter { $0.message == "batch" }.map { $0.number("inserted") } == [7])
        #expect(metrics.counters["varve_rows_inserted{work=batch}"] == 7)
        try container.closeNow()
    }
}
