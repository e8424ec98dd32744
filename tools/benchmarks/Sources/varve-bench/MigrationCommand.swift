// `varve-bench migration`: a migration of many rows beside reading them.

import ArgumentParser
import Foundation

struct MigrationCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migration",
        abstract: "Migrates rows in stages, and says in how many times of reading them."
    )

    @Option(help: "Where the stores are made, and removed.")
    var directory: String
    @Option(help: "Rows of the store.")
    var rows = 1_000_000

    func run() throws {
        let folder = URL(filePath: directory, directoryHint: .isDirectory)
            .appending(path: "varve-migration-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try MigrationMeasure(folder: folder, rows: rows).run()
    }
}
