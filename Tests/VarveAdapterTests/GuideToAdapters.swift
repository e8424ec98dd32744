// The example of the article "Logging and metrics" that needs the adapters.

import Foundation
import Logging
import Testing
import VarveLogging
import VarveMetrics
import VarveObjects

@Suite("Guide: the adapters") struct GuideToAdapters {
    @Test("A store is opened with a log and metrics") func bothAdapters() async throws {
        let folder = try TemporaryFolder()
        let url = folder.store
        // Shown in LoggingAndMetrics: both adapters
        var logging = TraceLogging()
        logging.slowAfter = .milliseconds(50)
        var options = ContainerOptions()
        options.trace = .all([
            .logging(to: Logger(label: "notes.store"), logging),
            .metrics(prefix: "notes_store"),
        ])
        let container = try await PersistentContainer.open(
            at: url,
            schema: NoteSchema.self,
            options: options
        )
        // End.
        #expect(container.options.trace != nil)
        try await container.close()
    }
}
