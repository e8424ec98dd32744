// Progress on a terminal, and what ends a long command early: a time limit, Ctrl-C.
//
// Invariants
// - stdout never sees progress, and stderr only when it is a terminal.
// - After Ctrl-C the command ends by itself and prints what it has; a second one ends the process.

import ArgumentParser
import Foundation
import Synchronization
import VarveInspection

/// One line of progress that is written again and again.
final class ProgressLine {
    private let name: String
    private let isShown: Bool
    private let timeLimit: Double?
    private let clock = ContinuousClock()
    private let start: ContinuousClock.Instant
    private var lastShown: ContinuousClock.Instant
    private var hasLine = false
    /// Whether the user wanted it to end.
    var isInterrupted: Bool { Interrupt.isPending }
    /// Since the beginning.
    var elapsed: Duration { clock.now - start }

    init(_ name: String, isShown: Bool, timeLimit: Double? = nil) {
        self.name = name
        self.isShown = isShown && isatty(STDERR_FILENO) == 1
        self.timeLimit = timeLimit
        start = clock.now
        lastShown = start
        Interrupt.listen()
    }

    /// Shows where the work is; whether it is to go on.
    func show(_ bytes: UInt64, _ problems: Int) -> Bool {
        if isInterrupted { return false }
        let now = clock.now
        if isShown, now - lastShown > .milliseconds(500) {
            lastShown = now
            hasLine = true
            let text = "\(name)  \(Spelling.size(bytes))  \(problems) problems"
            FileHandle.standardError.write(Data("\r\u{1B}[K\(text)".utf8))
        }
        guard let timeLimit else { return true }
        return now - start < .seconds(timeLimit)
    }

    /// Takes the line away.
    func end() {
        if hasLine { FileHandle.standardError.write(Data("\r\u{1B}[K".utf8)) }
        hasLine = false
    }
}

/// Ctrl-C, as a question instead of an end.
enum Interrupt {
    private static let count = Atomic(0)

    static var isPending: Bool { count.load(ordering: .relaxed) > 0 }

    static func listen() {
        // Made here, so that the handler finds it there.
        _ = isPending
        signal(SIGINT) { _ in
            if Interrupt.count.add(1, ordering: .relaxed).newValue > 1 { _exit(130) }
        }
    }
}

/// "30s", "1.5", "2m": a time limit.
struct Seconds: ExpressibleByArgument {
    let seconds: Double

    init?(argument: String) {
        let factor: Double = argument.hasSuffix("m") ? 60 : 1
        let hasUnit = argument.hasSuffix("m") || argument.hasSuffix("s")
        guard let number = Double(hasUnit ? argument.dropLast() : Substring(argument)),
            number >= 0, number < 1e9
        else { return nil }
        seconds = number * factor
    }
}
