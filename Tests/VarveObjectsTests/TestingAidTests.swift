// What VarveTesting gives to tests of apps: fixtures, stores without chance, checks, faults.

import Foundation
import Testing
import VarveObjects
import VarveTesting

@Suite(.verified) struct TestingAidTests {
    /// Towns come before the lands that they lead to.
    private let fixtures = """
        {
          "Town": [
            {"name": "Vík", "people": 318, "land": "IS"},
            {"name": "Oslo", "people": 700000, "land": "NO",
             "twins": [{"land": "IS", "name": "Vík"}]}
          ],
          "Land": [{"code": "IS"}, {"code": "NO", "area": 385207.5}]
        }
        """

    @Test func fixturesInAnyOrder() throws {
        let container = try PersistentContainer.inMemory(schema: LandSchema.self)
        #expect(try container.loadFixtures(fixtures) == ["Land": 2, "Town": 2])
        let towns = Town.all.sorted { [$0.name.ascending] }
        #expect(try container.stored(towns) { $0.name } == ["Oslo", "Vík"])
        #expect(try container.stored(towns) { $0.land?.code } == ["NO", "IS"])
        #expect(try container.stored(towns) { $0.twins.map(\.name) } == [["Vík"], []])
        #expect(try container.problems().isEmpty)
    }

    @Test(arguments: [
        ("{\"Town\": [{\"name\": \"a\"}, {\"name\": 7}]}", StoreError.Code.invalid, "Town, row 2"),
        ("{\"Town\": [{\"name\": \"a\", \"land\": \"XX\"}]}", .objectNotFound, "row 1"),
        ("{\"City\": []}", .unknownEntity, "City"),
        ("{\"Land\": [{\"code\": \"IS\"}, {\"code\": \"IS\"}]}", .notUnique, "row 2"),
        ("{\"Land\": [{}]}", .missingValue, "row 1"),
        ("[]", .invalid, "fixtures"),
        ("{\"Land\"", .invalid, "fixtures"),
    ])
    func aMistakeInFixturesIsNamed(json: String, code: StoreError.Code, place: String) throws {
        let container = try PersistentContainer.inMemory(schema: LandSchema.self)
        do {
            try container.loadFixtures(json)
            Issue.record("nothing was thrown")
        } catch let error as StoreError {
            #expect(error.code == code && error.message.contains(place), "\(error)")
        }
        #expect(try container.newContext().count(Town.all) == 0)
    }

    @Test func theSameSeedIsTheSameStore() throws {
        func run(_ seed: UInt64) throws -> (ids: [String], dates: [Date], bytes: [UInt8]) {
            let disk = SimulatedDisk()
            let container = try PersistentContainer.deterministic(
                schema: LandSchema.self,
                seed: seed,
                start: Date(timeIntervalSince1970: 1_000_000),
                on: disk
            )
            let recorder = try CommitRecorder(container)
            try container.loadFixtures(fixtures)
            let ids = try container.stored(Town.all) { $0.id.objectID.uri }
            let dates = try recorder.take().map(\.date)
            try container.closeNow()
            let file = try #require(disk.state.file("test.varve"))
            return (ids, dates, disk.state.files[file]?.cache ?? [])
        }
        let (first, again, other) = (try run(3), try run(3), try run(4))
        #expect(first.ids == again.ids && first.dates == again.dates)
        #expect(first.bytes == again.bytes)
        #expect(first.ids != other.ids)
        #expect(first.dates.allSatisfy { abs($0.timeIntervalSince1970 - 1_000_000) < 1_000 })
    }

    @Test func commitsAreRecorded() throws {
        let container = try PersistentContainer.inMemory(schema: LandSchema.self)
        try container.loadFixtures(fixtures)
        let recorder = try CommitRecorder(container)
        #expect(try recorder.take().isEmpty)
        let context = container.newContext(author: "editor")
        let town = try #require(try context.fetch(Town.where { $0.name == "Vík" }).first)
        town.people = 320
        try context.save()
        context.delete(town)
        try context.save()
        let commits = try recorder.take()
        #expect(commits.map(\.author) == ["editor", "editor"])
        #expect(commits.map { $0.ids(.updated) }.first == [town.objectID])
        #expect(commits.last?.ids(.deleted).contains(town.objectID) == true)
        #expect(try recorder.take().isEmpty)
    }

    @Test(arguments: [0, 1, 2, 3]) func theNthWriteOrSyncFails(_ number: Int) throws {
        for kind in [SimulatedDisk.Fault.CallKind.write, .sync] {
            let disk = SimulatedDisk()
            let container = try PersistentContainer.deterministic(
                schema: LandSchema.self,
                on: disk
            )
            try container.loadFixtures(fixtures)
            let before = disk.failures
            disk.fail(kind, after: number)
            let context = container.newContext()
            var saved = 0
            var failed: StoreError?
            for step in 0..<20 where failed == nil {
                let land = Land(in: context)
                land.code = "L\(step)"
                do {
                    try context.save()
                    saved += 1
                } catch let error as StoreError { failed = error }
            }
            #expect(failed?.code == .outcomeUnknown && disk.failures == before + 1)
            // As many went well as calls were to.
            #expect(saved <= number + 1)
            disk.heal()
            try? container.closeNow(discardingEdits: true)
            let again = try PersistentContainer.openNow(on: disk, schema: LandSchema.self)
            let codes = try again.stored(Land.all) { $0.code }
            #expect(codes.count == 2 + saved || codes.count == 3 + saved)
            #expect(try again.problems().isEmpty)
            try again.closeNow()
        }
    }

    @Test func aFullDiskAndThenRoom() throws {
        let disk = SimulatedDisk()
        let container = try PersistentContainer.openNow(on: disk, schema: LandSchema.self)
        try container.loadFixtures(fixtures)
        let context = container.newContext()
        let land = Land(in: context)
        land.code = AdviceForDisksTests.long
        disk.fillUp()
        let full = #expect(throws: StoreError.self) { try context.save() }
        #expect(full?.code == .diskFull)
        #expect(try container.stored(Land.all) { $0.code.count } == [2, 2])
        disk.heal()
        try context.save()
        #expect(try container.stored(Land.all) { $0.code.count }.max() == land.code.count)
        // Faults that were planned later count from there.
        disk.fail(.sync, with: SimulatedDisk.inputOutput)
        land.area = 1
        let broken = #expect(throws: StoreError.self) { try context.save() }
        #expect(broken?.code == .outcomeUnknown)
        disk.heal()
        try? container.closeNow(discardingEdits: true)
    }
}
