// `gallery list`.

import ArgumentParser
import VarveObjects

struct ListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Opens the sorted list of all cities, jumps through it and pages.",
        discussion: "Shows for each step what it read and what it brought into memory."
    )

    @Argument(help: "The store's file.")
    var store: String

    @Flag(help: "Print one JSON object per step.")
    var json = false

    func run() async throws {
        try await perform()
    }

    @MainActor
    func perform() async throws {
        let container = try await GalleryStore.open(store)
        var table = TextTable(
            header: ["step", "ms", "rows read", "objects realised", "row cache", "on the screen"])
        let scenario = try ListScenario(container)
        try scenario.run { step in
            if json { StandardOutput.line(step.json.text) }
            table.rows.append([
                step.name, step.duration.milliseconds.fixed(2), step.rowsRead.grouped,
                step.objectsRealised.grouped, step.rowCacheBytes.kilobytes, step.shown,
            ])
        }
        if !json { StandardOutput.line(table.text) }
        try await container.close()
    }
}
