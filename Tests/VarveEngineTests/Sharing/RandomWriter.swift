// Random transactions and the rows that must be there after them.

import Foundation
import Testing
import VarveBase
import VarveIO
import VarveTesting

@testable import VarveEngine

/// Rows by object, as `Snapshot.contents` spells them.
struct RowModel: Equatable {
    var rows: [UInt64: (int: Int64, text: String)] = [:]

    static func == (a: RowModel, b: RowModel) -> Bool { a.contents == b.contents }

    var contents: [UInt64: String] {
        rows.mapValues { row in
            let values: [StoredValue?] = [.int(row.int), .text(row.text)]
            return "\(values)"
        }
    }

    /// Changes rows in a transaction and here.
    mutating func change(
        _ engine: Engine,
        _ transaction: WriteTransaction,
        _ random: inout SeededRandom
    ) throws {
        let entity = TestDelegate.entity
        let many = Int.random(in: 0..<15, using: &random) == 0
        for _ in 0..<Int.random(in: many ? 30...60 : 1...5, using: &random) {
            let int = Int64.random(in: 0..<100, using: &random)
            let length = Int.random(in: 0..<10, using: &random) == 0 ? 500 : 9
            let text = String((0..<length).map { _ in "abcdefgh".randomElement(using: &random)! })
            let known = rows.keys.sorted().randomElement(using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 6..<8:
                guard let known else { continue }
                try transaction.update(entity, ObjectID(known), patch: patch(int, text))
                rows[known] = (int, text)
            case 8...:
                guard let known else { continue }
                try transaction.delete(entity, ObjectID(known))
                rows[known] = nil
            default:
                let id = engine.allocateObjectIDs(1)
                try transaction.insert(entity, id, row: row(int, text))
                rows[id.rawValue] = (int, text)
            }
        }
    }
}

/// Small nodes, little room and early checkpoints, so that everything happens often.
func adjustSmall(_ options: inout EngineOptions) {
    options.nodeWeightMax = 512
    options.tailRoomMin = 4096
    options.tailRoomMax = 16 << 10
    options.checkpointTailMin = 6 << 10
    options.checkpointTailMax = 6 << 10
    options.deltaBytesMax = 3 << 10
    options.inlineValueBytesMax = 256
    options.maintenance = .inline
    options.turnMilliseconds = 60_000
}

/// A folder that goes with the test; each opening in it is a process as far as locks go.
final class WritersFolder {
    let path: String
    private let witness = OpeningWitnesses.current
    init() throws {
        path =
            FileManager.default.temporaryDirectory
            .appendingPathComponent("varve-writers-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }
    deinit {
        witness?.folderGoes(path)
        try? FileManager.default.removeItem(atPath: path)
    }
    func open(
        _ mode: StoreOpenMode = .createIfMissing,
        _ adjust: (inout EngineOptions) -> Void = { _ in }
    ) throws -> Engine {
        try Engine.openTest(PosixDirectory.open(path: path), mode: mode) {
            adjustSmall(&$0)
            $0.maintenance = .automatic
            adjust(&$0)
        }
    }
}

/// Waits up to a minute: other tests may hold the machine.
func waitAMinute(until isTrue: () throws -> Bool) rethrows {
    for _ in 0..<60_000 {
        if try isTrue() { return }
        _ = Parker().park(milliseconds: 1)
    }
    Issue.record("waited a minute in vain")
}
