// Where a caller goes on behind an asynchronous call of the library.

import Foundation
import Testing

@Suite("Continuations", .verified) struct ContinuationTests {
    /// In functions that run on their caller's actor, Swift 6.3.1 leaves out the way back to that
    /// actor behind a continuation, when it optimises. What release builds do cannot be seen in a
    /// debug build, so this looks at the source: functions that make continuations are
    /// `@concurrent`.
    @Test("Only these functions make continuations, and not on their caller's actor")
    func continuationsAreMadeInFewPlaces() throws {
        let makers = [
            "WorkerPool.swift": ["@concurrent func run<"],
            "LiveSignal.swift": ["@concurrent func wait("],
            "WriterGate.swift": [
                "@concurrent func wait(", "@concurrent public func granted(",
            ],
        ]
        let root = URL(filePath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let sources = root.appending(path: "Sources")
        let files = try #require(
            FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil)
        )
        var found = 0
        for case let file as URL in files where file.pathExtension == "swift" {
            let text = try String(contentsOf: file, encoding: .utf8)
            let makes = text.contains("Continuation { ") || text.contains("Continuation(")
            guard makes else { continue }
            found += 1
            let maker = try #require(makers[file.lastPathComponent])
            for name in maker { #expect(text.contains(name)) }
        }
        #expect(found == makers.count)
    }
}
