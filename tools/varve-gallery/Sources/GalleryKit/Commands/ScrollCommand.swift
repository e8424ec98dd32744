// `gallery scroll`, and the hidden command that runs one round in a process of its own.

import ArgumentParser
import Foundation

struct ScrollCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "scroll",
        abstract: "Scrolls through the pictures in four rounds and measures resident memory.",
        discussion: """
            1 keeps every picture's bytes; 2 drops the view's copy when it leaves the window; \
            3 also turns the objects back into faults; 4 reads in a background context and holds \
            nothing. Each round is a process of its own. Rounds 1 and 2 run at up to \
            \(ScrollRound.mostPicturesHeld) pictures only.
            """
    )

    @Argument(help: "The store's file.")
    var store: String

    @Option(help: "How many pictures go by. Can be given more than once.")
    var pictures: [Int] = [100, 400]

    @Option(help: "How many rows are visible at once.")
    var window = 10

    @Option(help: "Where to write the chart (SVG).")
    var chart = "gallery-memory.svg"

    @Flag(help: "Print one JSON object per round.")
    var json = false

    func validate() throws {
        guard pictures.allSatisfy({ $0 > 0 }), window > 0 else {
            throw ValidationError("--pictures and --window must be above 0")
        }
    }

    func run() async throws {
        try perform()
    }

    func perform() throws {
        var table = TextTable(header: [
            "round", "pictures", "window", "start", "peak", "over start", "end", "read",
            "row cache",
        ])
        let campaign = ScrollCampaign(store: store, pictures: pictures, window: window)
        let outcomes = try campaign.run { result in
            if json { StandardOutput.line(result.json.text) }
            let start = result.residentBytesAtStart
            table.rows.append([
                "\(result.round)",
                result.pictures.grouped, result.windowBytesMax.megabytes, start.megabytes,
                result.residentBytesPeak.megabytes, (result.residentBytesPeak - start).megabytes,
                result.residentBytesEnd.megabytes, result.blobBytesRead.megabytes,
                result.rowCacheBytes.kilobytes,
            ])
        }
        let memory = MemoryChart(outcomes)
        try memory.svg.write(
            to: URL(filePath: chart),
            atomically: true,
            encoding: .utf8
        )
        if !json {
            StandardOutput.line(table.text)
            StandardOutput.line("\n" + memory.text(inColor: StandardOutput.hasColors) + "\n")
            StandardOutput.line(Self.verdict(on: outcomes.map(\.result)))
            StandardOutput.line("The same chart as a picture: \(URL(filePath: chart).path)")
        }
    }

    /// How rounds 3 and 4 stand to what they may hold.
    private static func verdict(on results: [ScrollRound.Result]) -> String {
        let flat = results.filter { $0.round >= 3 }
        let held = flat.map { $0.residentBytesPeak - $0.residentBytesAtStart }.max() ?? 0
        let bound = (flat.map(\.windowBytesMax).min() ?? 0) + MemoryChart.allowance
        return "Rounds 3 and 4 held at most \(held.megabytes) over their start; "
            + "the largest window and 24 MB are \(bound.megabytes)."
    }
}

/// One round, in the process that `scroll` started for it.
struct ScrollRoundCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: ScrollCampaign.childCommand,
        abstract: "Runs one round of scroll in this process.",
        shouldDisplay: false
    )

    @Argument var store: String
    @Option var round: Int
    @Option var pictures: Int
    @Option var window: Int

    func run() async throws {
        let (result, samples) = try await ScrollRound(
            round: round,
            pictures: pictures,
            window: window
        ).run(on: store)
        let report = try JSONEncoder().encode(ChildReport(result: result, samples: samples))
        StandardOutput.line(String(decoding: report, as: UTF8.self))
    }
}
