// A progress bar for terminals.

import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// One line on the standard error stream that grows while work is done. It writes nothing when that
/// stream is not a terminal, so that logs and pipes stay clean.
package final class ProgressBar {
    private static let width = 28

    private let title: String
    private let total: Int
    private let isShown: Bool
    private let clock = ContinuousClock()
    private var lastDrawn: ContinuousClock.Instant?
    private var lastLine = ""

    init(_ title: String, total: Int, isShown: Bool = ProgressBar.errorStreamIsTerminal) {
        self.title = title
        self.total = total
        self.isShown = isShown
    }

    /// Whether the standard error stream is a terminal that can redraw a line.
    static var errorStreamIsTerminal: Bool {
        isatty(2) == 1 && ProcessInfo.processInfo.environment["TERM"] != "dumb"
    }

    /// Shows that `done` of the total is done. Draws at most 20 times a second.
    func update(_ done: Int) {
        guard isShown else { return }
        if let lastDrawn, clock.now - lastDrawn < .milliseconds(50), done < total { return }
        lastDrawn = clock.now
        draw(Self.line(title: title, done: done, total: total))
    }

    /// Leaves the line as it stands and moves to the next.
    func finish() {
        guard isShown, !lastLine.isEmpty else { return }
        write("\n")
    }

    /// The text of the line, without terminal control.
    package static func line(title: String, done: Int, total: Int) -> String {
        let share = total == 0 ? 1 : min(1, max(0, Double(done) / Double(total)))
        let eighths = Int(share * Double(width * 8))
        let partial = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8]
        let bar = String(repeating: "█", count: eighths / 8) + partial
        let rest = String(repeating: "░", count: width - bar.count)
        let percent = "\(Int(share * 100)) %".leftPadded(to: 5)
        return "\(title.rightPadded(to: 10)) \(bar)\(rest) \(percent)  "
            + "\(done.grouped) of \(total.grouped)"
    }

    private func draw(_ line: String) {
        guard line != lastLine else { return }
        lastLine = line
        write("\r\u{1b}[K" + line)
    }

    private func write(_ text: String) {
        try? FileHandle.standardError.write(contentsOf: Data(text.utf8))
    }
}
