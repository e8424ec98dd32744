// The target of the engine against a plain model: the input says what is done, what fails and when.
//
// - What a save returned for is there, also after a power cut; what it refused is not.
// - After any error the store reads as before, or says that it is poisoned.
// - A save whose outcome was unknown is there whole or not at all, and stays so.

import VarveInspection
import VarveTesting

enum ModelTarget {
    private typealias Rows = [UInt64: String]

    static func run(_ input: [UInt8]) throws {
        guard input.count <= 512 else { return }
        var reader = InputReader(input)
        let work = try Work(retention: reader.byte() % 3, weight: reader.byte())
        while !reader.isAtEnd { try work.step(&reader) }
        try work.finish()
    }

    private final class Work {
        private var disk = SimulatedDisk()
        private var store: RecordStore
        private let adjust: (inout EngineOptions) -> Void
        /// What is known to be there; and what a save of unknown outcome would make of it.
        private var model: Rows = [:]
        private var doubtful: Rows?
        private var next: UInt64 = 0

        init(retention: UInt8, weight: UInt8) throws {
            adjust = { options in
                options.retention = [.newest, .commits(2), .all][Int(retention)]
                options.nodeWeightMax = weight % 2 == 0 ? 256 : 4096
                options.packsLeaves = weight & 2 != 0
                options.packsAnyLeaf = true
                options.inlineValueBytesMax = 256
            }
            store = try Self.open(disk, adjust)
        }

        private static func open(
            _ disk: SimulatedDisk,
            _ adjust: (inout EngineOptions) -> Void
        ) throws -> RecordStore {
            var options = StoreChecks.options(.createIfMissing)
            adjust(&options.engine)
            return try RecordStore.open(
                disk.location(),
                schema: SeedMaker.schema,
                options: options
            )
        }

        func step(_ reader: inout InputReader) throws {
            switch reader.byte() % 16 {
            case 0...6: try save(&reader)
            case 7: try attempt { try store.engine.checkpoint() }
            case 8: try attempt { _ = try store.compact() }
            case 9:
                try attempt { try store.close() }
                try reopen()
            case 10: try reopen()
            case 11: try cut(reader.number64())
            case 12, 13:
                let code =
                    reader.byte() & 1 == 0 ? SimulatedDisk.inputOutput : SimulatedDisk.noSpace
                disk.setFault(
                    SimulatedDisk.Fault(
                        first: disk.calls + 1 + Int(reader.byte() % 12),
                        count: disk.failures + 1 + Int(reader.byte() % 3),
                        code: code
                    )
                )
            case 14: disk.setFault(nil)
            default: try check()
            }
        }

        /// One save of a few changes.
        private func save(_ reader: inout InputReader) throws {
            var planned = model
            guard let group = try store.schema.entity(named: "Group"),
                let name = group.attribute(named: "name")
            else { throw Violation("the schema is gone") }
            var changes: [(RecordTransaction) throws -> Void] = []
            for _ in 0..<(1 + reader.byte() % 6) {
                let live = planned.keys.sorted()
                let choice = reader.byte()
                let length = Int(reader.byte() % 8) * Int(reader.byte() % 60)
                next += 1
                let id = live.isEmpty || choice % 3 == 0 ? next : live[Int(choice) % live.count]
                // Unique, and now and then too large for its row.
                let text = "\(next) " + String(repeating: "x", count: length)
                if choice % 3 == 2, planned[id] != nil {
                    planned[id] = nil
                    changes.append { try $0.delete(group.id, ObjectID(id)) }
                } else if planned[id] != nil {
                    planned[id] = text
                    changes.append {
                        try $0.update(
                            group.id,
                            ObjectID(id),
                            [ColumnValue(name.column, .text(text))]
                        )
                    }
                } else {
                    planned[id] = text
                    changes.append {
                        try $0.insert(
                            group.id,
                            ObjectID(id),
                            [ColumnValue(name.column, .text(text))]
                        )
                    }
                }
            }
            do {
                _ = try store.write { transaction in
                    for change in changes { try change(transaction) }
                }
                model = planned
            } catch {
                try judge(error)
                if code(error) == .outcomeUnknown {
                    doubtful = planned
                    try reopen()
                }
            }
        }

        private func attempt(_ body: () throws -> Void) throws {
            do { try body() } catch { try judge(error) }
        }

        private func code(_ error: any Error) -> EngineError.Code? {
            (error as? EngineError)?.code ?? (error as? RecordError)?.engineCode
        }

        /// Only errors that say what is the case: calls failed, nothing is damaged.
        private func judge(_ error: any Error) throws {
            switch code(error) {
            case .noSpace, .ioFailed, .outcomeUnknown, .poisoned, .closed: return
            default: throw Violation("it says of calls that failed: \(error)")
            }
        }

        /// The next process, on a disk that works.
        private func reopen() throws {
            disk.setFault(nil)
            disk.kill()
            do {
                store = try Self.open(disk, adjust)
            } catch {
                throw Violation("an intact store does not open: \(error)")
            }
            try settle()
        }

        private func cut(_ seed: UInt64) throws {
            var random = SeededRandom(seed: seed)
            disk.setFault(nil)
            let state = disk.state
            disk.kill()
            disk = SimulatedDisk.powerCut(state, &random)
            try reopen()
        }

        /// What was unknown is known now.
        private func settle() throws {
            if let doubtful, try rows() == doubtful { model = doubtful }
            doubtful = nil
            try check()
        }

        private func rows() throws -> Rows {
            let snapshot = try store.snapshot()
            guard let group = snapshot.schema.entity(named: "Group"),
                let name = group.attribute(named: "name")
            else { return [:] }
            var found: Rows = [:]
            for id in try snapshot.fetchIDs(RecordQuery(entity: group.id)) {
                guard let row = try snapshot.row(group.id, id),
                    case .text(let text) = try snapshot.value(of: row, name.column)
                else { throw Violation("row \(id.rawValue) is not there") }
                found[id.rawValue] = text
            }
            return found
        }

        private func check() throws {
            let found: Rows
            do {
                found = try rows()
            } catch let error where !(error is Violation) {
                return try judge(error)
            }
            if found != model {
                let other = Set(found.keys).symmetricDifference(model.keys).sorted()
                throw Violation("\(found.count) rows, not \(model.count); others are \(other)")
            }
        }

        func finish() throws {
            try reopen()
            let report = try StoreObserver.open(disk.location()).verify(level: .full)
            if !report.isSound || !report.notChecked.isEmpty {
                throw Violation("verify finds: \(report.problems) \(report.notChecked)")
            }
            try store.close()
            disk.kill()
            if let violation = disk.violations.first { throw Violation(violation) }
        }
    }
}
