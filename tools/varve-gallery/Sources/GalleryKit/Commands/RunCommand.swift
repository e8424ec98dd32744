// `gallery run`: import, list and scroll on a store of its own.

import ArgumentParser
import Foundation

struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Import, list and scroll on a store of its own, which is removed at the end."
    )

    @Flag(help: "Also scroll through 4,000 pictures.")
    var full = false

    @Option(help: "Where to write the chart (SVG). By default in the folder for temporary files.")
    var chart: String?

    @Option(help: "A folder of picture files. Without it, PNGs of 1 to 3 MB are generated.")
    var photos: String?

    @Flag(help: "Leave the store in place and say where it is.")
    var keepStore = false

    func run() async throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "varve-gallery-\(ProcessInfo.processInfo.processIdentifier)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let store = folder.appending(path: "gallery.varve").path
        let chart = chart ?? folder.path + "-memory.svg"
        defer { if !keepStore { try? FileManager.default.removeItem(at: folder) } }

        let counts = full ? [100, 400, 4_000] : [100, 400]
        StandardOutput.line("1. Import")
        var arguments = ["--into", store, "--pictures", "\(counts.max() ?? 0)"]
        if let photos { arguments += ["--photos", photos] }
        StandardOutput.line(try await ImportCommand.parse(arguments).perform().text)

        StandardOutput.line("\n2. A list of 40,000 rows")
        try await ListCommand.parse([store]).perform()

        StandardOutput.line("\n3. Pictures going by, 10 visible at a time")
        try ScrollCommand.parse(
            [store, "--chart", chart] + counts.flatMap { ["--pictures", "\($0)"] }
        ).perform()
        if keepStore { StandardOutput.line("Store: \(store)") }
    }
}
