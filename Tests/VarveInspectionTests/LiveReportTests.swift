// The counter file as tools read it.

import Foundation
import Testing
import VarveBase
import VarveEngine
import VarveFormat
import VarveIO
import VarveRecords
import VarveTesting

@testable import VarveInspection

@Suite struct LiveReportTests {
    @Test func aLivingStoreTellsItsCounters() throws {
        let place = try TemporaryStore("live")
        let path = place.url.path
        let missing = #expect(throws: InspectionError.self) { try LiveReport.read(path) }
        #expect(missing?.kind == .missing)
        var options = RecordOptions()
        options.engine.writesLiveCounters = true
        let store = try RecordStore.open(
            .file(directory: place.folder.path, name: "live"),
            schema: SampleStore.schema,
            options: options
        )
        let living = try LiveReport.read(path)
        #expect(!living.isClosed && living.processID > 0)
        #expect(living.counters.map(\.name) == LiveCounters.names)
        try store.close()
        // Without the suffix, too.
        let closed = try LiveReport.read(String(path.dropLast(".varve".count)))
        #expect(closed.isClosed && closed.sequence > living.sequence)
        #expect(closed.counters.first { $0.name == "newestCommit" }?.value == 1)
        #expect(closed.json.text.hasPrefix("{\"format\":1,\"closed\":true,"))
        // Neither a lock nor a change of the store.
        #expect(place.files["live.varve-live"] == LiveCounters.fixedLength + 8 * 46)
    }

    @Test func bytesThatAreNoCountersAreDamage() throws {
        let directory = MemoryDirectory()
        let file = try directory.openFile("x.varve-live", mode: .createExclusive)
        try file.write([1, 2, 3], at: FileOffset(0))
        let error = #expect(throws: InspectionError.self) {
            try LiveReport.read("x.varve-live") { directory }
        }
        #expect(error?.kind == .damaged)
    }
}
