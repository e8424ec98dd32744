// A flipped bit at every byte of a small store with every kind of frame.
//
// Invariants
// - Each one is harmless, refused, or reported where it is: never other data, never a trap.
// - One in symbol tables is harmless: they are there twice.

import VarveInspection
import VarveTesting

/// A store at rest, and what it holds.
private struct Rest {
    let name: String
    let state: SimulatedDisk.State
    let number: UInt64
    let model: Model
    let contents: [BlobReference: [UInt8]]
    /// Where symbol tables lie in the store's file.
    var symbols: [Range<UInt64>] = []
}

extension SeedRun {
    /// Bytes of one store that a seed looks at, unless all are wanted.
    static let flipsPerStore = 40

    /// - Parameter isComplete: every byte, not a sample.
    func runFlips(isComplete: Bool) throws {
        for (variant, rest) in try rests().enumerated() {
            for file in rest.state.files.keys.sorted() where isNamed(file, rest.state) {
                let count = rest.state.files[file]?.durable.count ?? 0
                var chance = random.branch(UInt64(9000 + variant * 100 + file))
                let positions =
                    isComplete
                    ? Array(0..<count)
                    : (0..<min(count, Self.flipsPerStore)).map { _ in
                        Int(chance.next() % UInt64(count))
                    }
                for position in positions {
                    if tally.isOver { return }
                    let name = [variant, file, position]
                    guard wants(.flips, name) else { continue }
                    do {
                        let outcome = try flip(rest, file, position)
                        let isTable =
                            rest.state.file("test.varve") == file
                            && rest.symbols.contains { $0.contains(UInt64(position)) }
                        if isTable, outcome != "harmless" {
                            throw Violation("a bit of symbol tables is \(outcome)")
                        }
                        tally.note((isTable ? "flip of tables " : "flip ") + outcome)
                        tally.count(.flips)
                    } catch {
                        report(
                            CaseName(.flips, name),
                            error,
                            details: ["\(rest.name), byte \(position) of \(count), file \(file)"],
                            size: position
                        )
                        return
                    }
                }
            }
        }
    }

    private func isNamed(_ file: Int, _ state: SimulatedDisk.State) -> Bool {
        state.folders.values.contains { $0.durable.values.contains(.file(file)) }
    }

    /// A store that was killed behind a checkpoint and some commits, one that was closed, and one
    /// that was packed before.
    private func rests() throws -> [Rest] {
        var random = self.random.branch(6)
        var mix = Mix(&random, without: [])
        for kind in [Kind.insert, .update, .delete, .text, .blob, .file, .folder] {
            mix.weights[kind] = 3
        }
        for kind in [Kind.clear, .compact, .reopen, .kill, .relaxed, .snapshot] {
            mix.weights[kind] = 0
        }
        mix.weights[.bulk] = 1
        mix.weights[.checkpoint] = 0
        let disk = SimulatedDisk()
        let work = try Workload(disk, mix, random.branch(1), plant: orders.plant)
        for _ in 0..<2 { try work.step() }
        // A settle, a checkpoint, and commits behind it.
        try work.reopen()
        try work.step()
        try work.store.engine.checkpoint()
        for _ in 0..<2 { try work.step() }
        func rest(_ name: String) -> Rest {
            Rest(
                name: name,
                state: disk.state.after(.everything(of: disk.state)),
                number: work.number,
                model: work.model,
                contents: work.contents
            )
        }
        let killed = rest("a store that was not closed")
        try work.store.close()
        let closed = rest("a store that was closed")
        disk.kill()
        return [killed, closed, try packed(mix), try packed(mix, changes: 5)]
    }

    /// A store that a compaction packed. After some changes leaves are packed ones with changes, or
    /// were written whole.
    private func packed(_ mix: Mix, changes: Int = 0) throws -> Rest {
        var mix = mix
        mix.alwaysPacks = true
        mix.weights[.insert] = 4
        mix.weights[.bulk] = 2
        mix.weights[.delete] = 1
        mix.retention = .newest
        let disk = SimulatedDisk()
        let work = try Workload(disk, mix, random.branch(7), plant: orders.plant)
        defer { disk.kill() }
        // Texts enough to learn from.
        for _ in 0..<60 where work.model.items.count < 40 { try work.step() }
        _ = try work.store.compact()
        for _ in 0..<changes { try work.step() }
        try work.store.close()
        var rest = Rest(
            name: changes == 0 ? "a store that was packed" : "a packed store with changes",
            state: disk.state.after(.everything(of: disk.state)),
            number: work.number,
            model: work.model,
            contents: work.contents
        )
        let log = try LogObserver.open(disk.location())
        for root in log.tail?.roots ?? [] {
            try log.audit(root) { page, _ in
                let start = page.address.offset.rawValue
                let end = start + page.address.frameLength
                if page.isSymbols { rest.symbols.append(start..<end) }
                return true
            }
        }
        if changes == 0, rest.symbols.isEmpty { throw Violation("nothing was packed") }
        return rest
    }

    private func flip(_ rest: Rest, _ file: Int, _ position: Int) throws -> String {
        var state = rest.state
        let old = state.files[file]?.durable[position] ?? 0
        state.overwrite(file, at: position, [old ^ (1 << UInt8(position % 8))])
        let disk = SimulatedDisk(state)
        defer { disk.kill() }
        let store: RecordStore
        do {
            store = try Workload.open(
                disk,
                mix,
                random.branch(8),
                orders.plant,
                mode: .existing
            )
        } catch {
            guard error.engineCode == .damaged || error.engineCode == .newestCommitDamaged else {
                throw Violation("a flipped bit is called: \(error)")
            }
            try isReported(state, file, position)
            return "refused"
        }
        let number = store.engine.snapshot().number.rawValue
        if number != rest.number {
            throw Violation("commit \(rest.number) is gone, shown is \(number)")
        }
        do {
            let columns = try Columns(store)
            let difference = try rest.model.difference(try store.snapshot(), columns, rest.contents)
            if let difference { throw Violation("other data: \(difference)") }
        } catch let error where !(error is Violation) {
            guard error is EngineError || error is RecordError else { throw error }
            try isReported(state, file, position)
            return "reported"
        }
        return "harmless"
    }

    /// Whether the inspector names the frame, or the blob, that the byte lies in.
    private func isReported(
        _ state: SimulatedDisk.State,
        _ file: Int,
        _ position: Int
    ) throws {
        // Costs more than the rest together.
        if position % 4 != 0 && orders.only == nil { return }
        let disk = SimulatedDisk(state)
        let report = try StoreObserver.open(disk.location()).verify(level: .full)
        if report.isSound { throw Violation("verify calls it sound") }
        guard state.file("test.varve") == file else { return }
        let isNamed = report.problems.contains { problem in
            guard let place = problem.place else { return false }
            return position >= Int(place) && position < Int(place + (problem.bytes ?? 64))
        }
        if !isNamed {
            let places = report.problems.prefix(4).map {
                "\($0.subject) at \($0.place.map { "\($0)" } ?? "no place")"
            }
            throw Violation("verify blames \(places.joined(separator: ", "))")
        }
    }
}
