// A migration that is killed at each call that changes the disk, loses power there, or has the call
// refused: the store has the old schema and all of its rows and blobs, or the new one.

import Foundation
import Testing
import VarveEngine
import VarveTesting

@testable import VarveObjects

@Suite(.verified) struct MigrationCrashTests {
    private enum Plan: MigrationPlan {
        static var stages: [MigrationStage] {
            [
                .custom(to: After.Schema.self) { migration in
                    try migration.update(After.Note.self) { old, new in
                        let rank = Int(try old["rank"] as String) ?? -1
                        new.rank = rank
                        // New blobs, in the log and in files; others go.
                        if rank % 3 == 0 {
                            new.picture = try migration.makeBlob(
                                pictureBytes(1_000 + rank),
                                externalLimit: rank % 2 == 0 ? 10 : 10_000
                            )
                        }
                    }
                }
            ]
        }
    }

    private static let count = 40

    private func options() -> ContainerOptions {
        var options = ContainerOptions()
        // So small that pages and values are written long before the commit.
        options.adjustingEngine = { engine in
            engine.sortBytesMax = 1_000
            engine.appendedBytesMax = 8_000
            engine.changedBytesMax = 16_000
        }
        return options
    }

    private func filled() throws -> SimulatedDisk {
        let disk = SimulatedDisk()
        let container = try PersistentContainer.openNow(on: disk, schema: Before.Schema.self)
        let context = container.newContext()
        try context.batchInsert(Before.Note.self, 0..<Self.count) { row, number in
            row.title = "note \(number)"
            row.rank = "\(number)"
            row.number = number
            let limit = number % 2 == 0 ? 10 : 10_000
            var writer = try context.makeBlob(externalLimit: limit)
            try writer.append(pictureBytes(number))
            row.picture = try writer.finish()
        }
        try container.closeNow()
        return disk
    }

    private func migrate(_ disk: SimulatedDisk) throws {
        let container = try PersistentContainer.openNow(
            on: disk,
            schema: After.Schema.self,
            migrations: Plan.self,
            options: options()
        )
        try container.closeNow()
    }

    /// Whether the store is the new one; throws where it is neither.
    private func isMigrated(_ disk: SimulatedDisk) throws -> Bool {
        var old: PersistentContainer?
        do {
            old = try PersistentContainer.openNow(on: disk, schema: Before.Schema.self)
        } catch let error as StoreError where error.code == .schemaTooNew {}
        if let old {
            let context = old.newContext()
            let notes = try context.fetch(Before.Note.all.sorted { [$0.number.ascending] })
            try #require(notes.map(\.title) == (0..<Self.count).map { "note \($0)" })
            for (number, note) in notes.enumerated() {
                try #require(try note.picture?.readAll() == pictureBytes(number))
            }
            try old.closeNow()
            return false
        }
        let new = try PersistentContainer.openNow(on: disk, schema: After.Schema.self)
        let context = new.newContext()
        let notes = try context.fetch(After.Note.all.sorted { [$0.rank.ascending] })
        try #require(notes.map(\.number) == Array(0..<Self.count))
        for (number, note) in notes.enumerated() {
            let bytes = pictureBytes(number % 3 == 0 ? 1_000 + number : number)
            try #require(try note.picture?.readAll() == bytes)
        }
        try new.closeNow()
        return true
    }

    @Test func `Killed, or without power, at every call: the old store or the new one`() throws {
        let disk = try filled()
        disk.record()
        try migrate(disk)
        let recording = disk.takeRecording()
        var random = SeededRandom()
        let seed = random.seed
        var kinds: [Bool] = []
        for (number, moment) in recording.enumerated() {
            do {
                kinds.append(try isMigrated(SimulatedDisk(moment.state)))
                _ = try isMigrated(SimulatedDisk.powerCut(moment.state, &random))
            } catch {
                Issue.record("call \(number), seed \(seed): \(error)")
                return
            }
        }
        #expect(kinds.first == false && kinds.last == true)
        // Once it is there it does not go again.
        #expect(kinds == kinds.filter { !$0 } + kinds.filter { $0 })
        #expect(kinds.count > 20)
    }

    @Test func `Each call refused: the error is one of the store, and nothing is lost`() throws {
        let start = try filled().state
        let whole = SimulatedDisk(start)
        try migrate(whole)
        for call in 1...whole.calls {
            let disk = SimulatedDisk(start)
            disk.setFault(
                SimulatedDisk.Fault(
                    first: call,
                    count: call % 2 == 0 ? 1 : .max,
                    code: call % 3 == 0 ? SimulatedDisk.noSpace : SimulatedDisk.inputOutput
                )
            )
            do { try migrate(disk) } catch {
                #expect(error is StoreError, "call \(call): \(error)")
            }
            disk.setFault(nil)
            do {
                _ = try isMigrated(disk.killed())
            } catch {
                Issue.record("call \(call): \(error)")
                return
            }
        }
    }
}
