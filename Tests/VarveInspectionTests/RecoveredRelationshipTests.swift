// That a store whose relationships disagree is recovered with sides that agree.

import Testing
import VarveTesting

@testable import VarveInspection

extension RelationshipTests {
    /// A store that a bug left with sides that disagree can still be recovered.
    @Test(arguments: Break.all) func `A recovered store has no such break`(
        broken: Break
    ) throws {
        let web = try Web()
        try broken.make(web)
        try web.store.close()
        let place = StoreLocation.directory(web.directory, name: "fixed")
        let report = try StoreObserver.open(web.location).salvage(to: place)
        // Indexes follow from rows.
        let isIndex = broken.told[0][0].hasPrefix("index")
        #expect((report.settledCount == 0) == isIndex, "\(report)")
        #expect(report.isWhole == isIndex)
        let fixed = try StoreObserver.open(place).verify(level: .full)
        #expect(fixed.problems == [])
    }

    @Test func `What one side leaves open is completed, what it contradicts is taken out`() throws {
        let web = try Web()
        try web.set(6, "next", 7)
        try web.set(8, "next", 2)
        try web.set(6, "book", 1)
        try web.addLink("chapters", 1, 7, 1 << 40)
        try web.addLink("chapters", 6, 2, 1)
        try web.addLink("playlist", 1, 7, 1 << 20)
        try web.store.close()
        let place = StoreLocation.directory(web.directory, name: "fixed")
        let report = try StoreObserver.open(web.location).salvage(to: place)
        let fixed = try StoreObserver.open(place)
        func related(_ object: String, _ name: String) throws -> [String] {
            try #require(try fixed.object(object).relationships.first { $0.name == name }).objects
        }
        #expect(try related("Node:7", "previous") == ["Node:6"])
        #expect(try related("Node:8", "next") == [])
        #expect(try related("Node:2", "previous") == ["Node:1"])
        #expect(try related("Node:1", "chapters") == ["Node:3", "Node:2", "Node:7", "Node:6"])
        #expect(try related("Node:7", "book") == ["Node:1"])
        #expect(try related("Node:6", "chapters") == [])
        #expect(
            try related("Node:1", "playlist") == ["Node:5", "Node:7", "Node:2", "Node:6", "Node:1"]
        )
        #expect(report.settledCount == 6)
        #expect(
            report.settledRelationships.contains(
                "Node:8.next leads to Node:2, whose previous leads to Node:1: cleared"
            ),
            "\(report.settledRelationships)"
        )
    }
}
