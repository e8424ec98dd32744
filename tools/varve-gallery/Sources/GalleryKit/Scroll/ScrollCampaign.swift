// Runs the rounds of `gallery scroll`, each in a fresh process.

import Foundation

/// Runs every round for every number of pictures, each in a fresh process of this program.
struct ScrollCampaign {
    /// The name of the hidden command that runs one round.
    static let childCommand = "scroll-round"

    let store: String
    let pictures: [Int]
    let window: Int

    /// What one process measured.
    typealias Outcome = (result: ScrollRound.Result, samples: [Int])

    /// Which rounds run for a number of pictures.
    static func rounds(for pictures: Int) -> ClosedRange<Int> {
        pictures > ScrollRound.mostPicturesHeld ? 3...4 : 1...4
    }

    func run(_ report: (ScrollRound.Result) -> Void) throws -> [Outcome] {
        var outcomes: [Outcome] = []
        for count in pictures.sorted() {
            for round in Self.rounds(for: count) {
                let outcome = try runInFreshProcess(round: round, pictures: count)
                report(outcome.result)
                outcomes.append(outcome)
            }
        }
        return outcomes
    }

    private func runInFreshProcess(round: Int, pictures: Int) throws -> Outcome {
        guard let program = Bundle.main.executableURL else {
            throw GalleryError("the path of this program is not known")
        }
        let process = Process()
        let output = Pipe()
        process.executableURL = program
        process.arguments = [
            Self.childCommand, store, "--round", "\(round)", "--pictures", "\(pictures)",
            "--window", "\(window)",
        ]
        process.standardOutput = output
        try process.run()
        let text = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationReason == .exit, process.terminationStatus == 0,
            let report = try? JSONDecoder().decode(ChildReport.self, from: text)
        else {
            throw GalleryError("round \(round) with \(pictures.grouped) pictures failed")
        }
        return (report.result, report.samples)
    }
}

/// What the process of one round tells the one that started it.
struct ChildReport: Codable {
    var result: ScrollRound.Result
    var samples: [Int]
}

extension MemoryChart {
    init(_ outcomes: [ScrollCampaign.Outcome]) {
        self.init(
            outcomes.map { outcome in
                Series(
                    round: outcome.result.round,
                    pictures: outcome.result.pictures,
                    windowBytes: outcome.result.windowBytesMax,
                    bytesOverStart: outcome.samples.map { $0 - outcome.result.residentBytesAtStart }
                )
            }
        )
    }
}
