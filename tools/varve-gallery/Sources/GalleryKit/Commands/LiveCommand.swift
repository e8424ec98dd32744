// `gallery live`, and the hidden command that writes in a process of its own.

import ArgumentParser
import Foundation
import VarveObjects

struct LiveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "live",
        abstract: "Keeps the list of all cities open while another process changes it.",
        discussion: """
            The other process inserts, edits and deletes cities, a few in each commit. After each \
            commit the list is brought along, and what it tells is compared with what the commit \
            did.
            """
    )

    @Argument(help: "The store's file.")
    var store: String

    @Option(help: "How long the other process writes.")
    var seconds = 10.0

    @Option(help: "Commits per second; 0: as many as go.")
    var rate = 100.0

    @Option(help: "Other random changes.")
    var seed: UInt64 = 1

    @Flag(help: "Put the list in sections, one for each country.")
    var sections = false

    @Flag(help: "Open the store for reading only.")
    var readOnly = false

    @Flag(help: "Print one JSON object per commit, and one at the end.")
    var json = false

    func validate() throws {
        guard (0.1...1_000_000).contains(seconds), (0...1_000_000).contains(rate) else {
            throw ValidationError("--seconds and --rate must not be negative, nor above 1,000,000")
        }
    }

    func run() async throws {
        try await perform()
    }

    @MainActor
    func perform() async throws {
        var options = ContainerOptions()
        options.isReadOnly = readOnly
        let container = try await GalleryStore.open(store, options: options)
        let watch = try LiveWatch(container, hasSections: sections)
        let memory = try ResidentMemory()
        let start = try memory.sample()
        // Listens before the other process begins: nothing can be missed for a late start.
        let notices = container.commits(bufferSize: 1 << 20)
        var summary = LiveSummary(rows: watch.count, sections: watch.sectionCount)
        let writer = try OtherProcess([
            LiveWriterCommand.configuration.commandName ?? "", store, "--seconds", "\(seconds)",
            "--rate", "\(rate)", "--seed", "\(seed)",
        ])
        // One that fails before its last commit ends the loop.
        let following = Task { @MainActor in
            try await watch.follow(notices) { step in
                if json { StandardOutput.line(step.json.text) }
                if let line = try summary.add(step, memory.sample()), !json {
                    StandardOutput.line(line)
                }
            }
        }
        let status = await writer.end()
        if status != 0 { following.cancel() }
        try await following.value
        guard status == 0 else { throw GalleryError("the process that writes failed") }
        // Before the list is compared: that fetch takes memory of its own.
        let peak = try memory.peak()
        let result = LiveSummary.Result(
            commits: watch.ledger.commits,
            missed: watch.ledger.missed,
            doubled: watch.ledger.doubled,
            equalsFetch: try watch.equalsFetch(),
            residentBytesAtStart: start,
            residentBytesPeak: peak
        )
        StandardOutput.line(json ? result.json.text : summary.text(result))
        try await container.close()
    }
}

/// Writes while `live` looks on.
struct LiveWriterCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "live-writer",
        abstract: "Changes cities, commit after commit.",
        shouldDisplay: false
    )

    @Argument var store: String
    @Option var seconds: Double
    @Option var rate: Double
    @Option var seed: UInt64

    func run() async throws {
        let container = try await GalleryStore.open(store)
        let writer = LiveWriter(container, seconds: seconds, rate: rate, seed: seed)
        StandardOutput.line("\(try await writer.run())")
        try await container.close()
    }
}

/// Another process of this program.
struct OtherProcess {
    private let status: AsyncStream<Int32>

    init(_ arguments: [String]) throws {
        guard let program = Bundle.main.executableURL else {
            throw GalleryError("the path of this program is not known")
        }
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.standardOutput = FileHandle.nullDevice
        let (stream, end) = AsyncStream.makeStream(of: Int32.self)
        process.terminationHandler = { process in
            end.yield(process.terminationReason == .exit ? process.terminationStatus : -1)
            end.finish()
        }
        status = stream
        try process.run()
    }

    /// Waits for its end. Returns its exit status; -1 after a signal.
    func end() async -> Int32 {
        for await status in status { return status }
        return -1
    }
}
