// Power cuts at every call of a workload, and again in the recovery and after the next commit.
//
// Invariants
// - An image is judged with the window of the moment: nothing older than what was acknowledged,
//   nothing newer than what had begun.
// - What an opening has shown once, every later opening shows.

import VarveInspection
import VarveTesting

extension SeedRun {
    /// One image in so many is crashed again.
    static let deepOneIn: UInt64 = 24
    /// One image in so many is verified by the inspector as well.
    static let verifiedOneIn: UInt64 = 4

    private var sampling: UInt64 {
        orders.sampling ?? (orders.plant != nil ? 6 : seed % 4 == 0 ? 1 : 4)
    }

    func runImages(_ recorded: Recorded) throws {
        explore(
            recorded.recording,
            states: recorded.states,
            contents: recorded.contents,
            path: [],
            most: 48
        )
    }

    private func explore(
        _ recording: DiskRecording,
        states: [UInt64: Model],
        contents: [BlobReference: [UInt8]],
        path: [Int],
        most: Int
    ) {
        var state = recording.start
        let steps = recording.steps
        let chance = random.branch(path.reduce(7) { $0 &* 31 &+ UInt64($1) })
        for (index, step) in steps.enumerated() {
            if tally.isOver { return }
            state.apply(step.operation)
            guard wants(.images, path + [index]) else { continue }
            // More seeds show more than every call of a few.
            let isLeftOut = chance.branch(UInt64(1 << 20 + index)).seed % sampling != 0
            if isLeftOut && path.isEmpty && orders.only == nil { continue }
            let note = index + 1 < steps.count ? steps[index + 1].note : recording.lastNote
            var random = chance.branch(UInt64(index))
            let images = state.crashImages(after: step.operation, &random, most: most)
            for (number, image) in images.enumerated() {
                let name = path + [index, number]
                // Drawn for each, so that one case alone gets the same numbers.
                let luck = random.next()
                guard wants(.images, name) else { continue }
                do {
                    try check(
                        state.after(image),
                        Window(note: note),
                        states,
                        contents,
                        mayLookRotten: image.mayLookRotten,
                        luck: luck,
                        path: name
                    )
                    tally.count(.images)
                } catch {
                    let calls = steps[max(0, index - 5)...index].map { "\($0.operation)" }
                    report(
                        CaseName(.images, name),
                        error,
                        details: ["the last calls: "] + calls + ["what arrived: \(image)"],
                        size: index
                    )
                    return
                }
            }
        }
    }

    /// Opens what a power cut left and judges it.
    private func check(
        _ image: SimulatedDisk.State,
        _ window: Window,
        _ states: [UInt64: Model],
        _ contents: [BlobReference: [UInt8]],
        mayLookRotten: Bool,
        luck: UInt64,
        path: [Int]
    ) throws {
        let disk = SimulatedDisk(image)
        let isDeep = path.count == 2 && luck % Self.deepOneIn == 0
        if isDeep {
            disk.record()
            disk.note(window.note)
        }
        let chance = random.branch(luck)
        let store: RecordStore
        do {
            store = try Workload.open(disk, mix, chance, orders.plant)
        } catch {
            if mayLookRotten, error.engineCode == .newestCommitDamaged {
                return tally.note("asked about garbage")
            }
            throw Violation("it does not open: \(error)")
        }
        defer { disk.kill() }
        let number = store.engine.snapshot().number.rawValue
        let past = Workload.Past(window: window, model: Model(), states: states, contents: contents)
        let model = try past.model(at: number)
        if let difference = try model.difference(
            try store.snapshot(),
            try Columns(store),
            contents
        ) {
            throw Violation("commit \(number) is not as it was saved: \(difference)")
        }
        if luck / 64 % Self.verifiedOneIn == 0 { try verify(disk, number) }
        if let violation = disk.violations.first { throw Violation(violation) }
        if isDeep { try goOn(disk, number, model, states, contents, chance, path) }
    }

    /// What the inspector says of a sound store: nothing.
    func verify(_ disk: SimulatedDisk, _ number: UInt64) throws {
        let observer = try StoreObserver.open(disk.location())
        let report = try observer.verify(level: .normal)
        if let problem = report.problems.first {
            throw Violation("verify says of a sound store: \(problem.subject): \(problem.message)")
        }
        if report.commit != number {
            throw Violation("verify shows commit \(report.commit ?? 0), not \(number)")
        }
    }

    /// The recovered store is opened once more, saves and goes on; then every moment of the
    /// recovery and of that work is crashed.
    private func goOn(
        _ disk: SimulatedDisk,
        _ number: UInt64,
        _ model: Model,
        _ states: [UInt64: Model],
        _ contents: [BlobReference: [UInt8]],
        _ chance: SeededRandom,
        _ path: [Int]
    ) throws {
        // Until the opening returned, any commit of the window might come back; then this one.
        disk.note(Window(number, number).note)
        let recovery = disk.takeRecording()
        disk.kill()
        explore(recovery, states: states, contents: contents, path: path + [0], most: 8)
        var branch = states.filter { $0.key < number }
        branch[number] = model
        disk.record()
        let work = try Workload(
            disk,
            mix,
            chance.branch(3),
            plant: orders.plant,
            from: Workload.Past(
                window: Window(number, number),
                model: model,
                states: branch,
                contents: contents
            )
        )
        if work.number != number {
            throw Violation("opened again it shows commit \(work.number), not \(number)")
        }
        try work.save()
        if chance.seed % 3 == 0 { try work.step() }
        let more = disk.takeRecording()
        disk.kill()
        if let violation = disk.violations.first { throw Violation(violation) }
        explore(more, states: work.states, contents: work.contents, path: path + [1], most: 8)
    }
}
