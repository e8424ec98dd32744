// The example of the article Logging and metrics that needs no adapter.
#if Macros
import Foundation
import Synchronization
import Testing
import Varve

@Suite("Guide: logging and metrics") struct LoggingAndMetricsGuide {
    private final class Slow: Sendable {
        let saves = Mutex<[Duration]>([])
    }

    @Test("A handler of an app's own hears of saves") func ownHandler() throws {
        let slow = Slow()
        // Shown in LoggingAndMetrics: a handler of one's own
        var options = ContainerOptions()
        options.trace = TraceHandler { event in
            if case .save(let save) = event, save.duration > .milliseconds(20) {
                slow.saves.withLock { $0.append(save.duration) }
            }
        }
        // End.
        let container = try PersistentContainer.inMemory(schema: AppSchema.self, options: options)
        let context = container.newContext()
        let note = Note(in: context)
        note.title = "Bread"
        try context.save()
        #expect(slow.saves.withLock { $0.allSatisfy { $0 > .milliseconds(20) } })
    }
}
#endif
