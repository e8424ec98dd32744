// Calls that fail and reads that go wrong, at any moment of a workload, and the work that goes on.
//
// Invariants
// - What was acknowledged stays; what was refused is absent; what is unknown is known after the
//   next opening, and stays known after a power cut.
// - A call that failed is told as what it is: nobody calls a sound store damaged.
// - Reads that return what was never written give errors, never other data.

import VarveTesting

/// What goes wrong in one case.
struct Trouble: CustomStringConvertible {
    var fault: SimulatedDisk.Fault?
    var readFault: SimulatedDisk.ReadFault?
    /// Whether the disk is full before the store is opened.
    var isFull = false
    /// Whether the last sync of the process before failed: the system shows what is lost.
    var hasLostSync = false

    /// - Parameter file: the store's file as the system shows it.
    init(_ random: inout SeededRandom, _ file: [UInt8]) {
        let forEver = 1_000_000
        let call = 1 + Int(random.next() % 28)
        let read = 1 + Int(random.next() % 80)
        func calls(_ count: Int, _ code: Int32) -> SimulatedDisk.Fault {
            SimulatedDisk.Fault(first: call, count: count, code: code)
        }
        func reads(_ kind: SimulatedDisk.ReadFault.Kind, _ count: Int = 1) {
            readFault = SimulatedDisk.ReadFault(first: read, count: count, kind: kind)
        }
        switch random.next() % 15 {
        case 0, 1: fault = calls(1, SimulatedDisk.inputOutput)
        case 2: fault = calls(forEver, SimulatedDisk.inputOutput)
        case 3: fault = calls(1, SimulatedDisk.noSpace)
        case 4: fault = calls(3, SimulatedDisk.noSpace)
        case 5: fault = calls(forEver, SimulatedDisk.noSpace)
        case 6: reads(.fails(SimulatedDisk.inputOutput))
        case 7: reads(.fails(SimulatedDisk.inputOutput), forEver)
        case 8: reads(.flippedBit(random.next()))
        case 9: reads(.zeros)
        case 10: reads(.elsewhere([-4096, -512, 512, 4096][Int(random.next() % 4)]))
        case 11: reads(.short)
        default:
            isFull = true
            hasLostSync = random.next() % 2 == 0
            // Nothing has room behind what is written, or there are the zeros, and a little more.
            let end = (file.lastIndex { $0 != 0 } ?? -1) + 1
            let extra = Int(random.next() % 3) << 10
            fault = SimulatedDisk.Fault(
                first: 1,
                count: forEver,
                code: SimulatedDisk.noSpace,
                writesPast: random.next() % 2 == 0 ? end : file.count + extra
            )
        }
    }

    /// Whether the error may be any of those that speak of wrong bytes.
    var mayLookDamaged: Bool {
        guard let readFault else { return false }
        if case .fails = readFault.kind { return false }
        return true
    }

    func begin(on disk: SimulatedDisk) {
        disk.setFault(fault)
        disk.setReadFault(readFault)
    }

    static func end(on disk: SimulatedDisk) {
        disk.setFault(nil)
        disk.setReadFault(nil)
    }

    var description: String {
        if isFull {
            return "no space behind byte \(fault?.writesPast ?? 0)"
                + (hasLostSync ? ", and a sync failed before" : "")
        }
        if let fault {
            return "call \(fault.first) and \(fault.count - 1) more fail: \(fault.code)"
        }
        return "read \(readFault?.first ?? 0) goes wrong: "
            + (readFault.map { "\($0.kind), \($0.count) times" } ?? "")
    }
}

extension SeedRun {
    /// Moments of a workload at which its process is killed and a new one meets trouble.
    static let moments = 12
    /// Kinds of trouble at each.
    static let troubles = 4

    func runErrors(_ recorded: Recorded) throws {
        let steps = recorded.recording.steps
        var chance = random.branch(5)
        let moments = (0..<Self.moments)
            .map { _ in Int(chance.next() % UInt64(steps.count)) }.sorted()
        var state = recorded.recording.start
        var done = 0
        for (index, moment) in moments.enumerated() {
            for step in steps[done..<max(done, moment)] { state.apply(step.operation) }
            done = max(done, moment)
            let window = Window(note: steps[moment].note)
            guard window.acknowledged > 0 else { continue }
            for number in 0..<Self.troubles {
                if tally.isOver { return }
                guard wants(.errors, [index, number]) else { continue }
                var random = self.random.branch(UInt64(100_000 + index * 1000 + number))
                let file = state.file("test.varve")
                let bytes = file.flatMap { state.files[$0]?.cache } ?? []
                let trouble = Trouble(&random, bytes)
                var left = state
                if trouble.hasLostSync, let file { left.apply(.loseSync(file: file)) }
                var story = ["killed before call \(moment)", "\(trouble)"]
                do {
                    try meet(trouble, left, window, recorded, random, &story)
                    tally.count(.errors)
                } catch {
                    report(
                        CaseName(.errors, [index, number]),
                        error,
                        details: story,
                        size: moment
                    )
                    return
                }
            }
        }
    }

    private func meet(
        _ trouble: Trouble,
        _ state: SimulatedDisk.State,
        _ window: Window,
        _ recorded: Recorded,
        _ random: SeededRandom,
        _ story: inout [String]
    ) throws {
        let disk = SimulatedDisk(state)
        defer { disk.kill() }
        var past = Workload.Past(
            window: window,
            model: Model(),
            states: recorded.states,
            contents: recorded.contents
        )
        trouble.begin(on: disk)
        var opening = 0
        func open(_ story: inout [String]) throws -> Workload {
            while true {
                opening += 1
                if opening > 3 { Trouble.end(on: disk) }
                disk.kill()
                do {
                    let work = try Workload(
                        disk,
                        mix,
                        random.branch(UInt64(opening)),
                        plant: orders.plant,
                        from: past
                    )
                    story.append("call \(disk.calls): opened at commit \(work.number)")
                    if trouble.isFull { try look(at: work, on: disk) }
                    return work
                } catch {
                    story.append("call \(disk.calls): not opened: \(error)")
                    try judge(error, trouble)
                    if opening > 3 { throw Violation("without any trouble: \(error)") }
                }
            }
        }
        var work = try open(&story)
        var steps = 0
        while steps < 5 {
            steps += 1
            do {
                try work.step()
                story.append("call \(disk.calls): saved commit \(work.number)")
                continue
            } catch {
                story.append("call \(disk.calls), behind commit \(work.number): \(error)")
                try judge(error, trouble)
                tally.note("told \(error.engineCode.map { $0.rawValue } ?? "otherwise")")
                if work.canGoOn { try stillReads(work, trouble) }
                past = work.past(after: error.engineCode)
                let isOver = work.canGoOn ? try isPoisoned(work, error.engineCode) : true
                if !isOver && steps % 2 == 0 && work.canGoOn { continue }
            }
            work = try open(&story)
        }
        // The disk is sound again: everything that was acknowledged is there, and stays.
        Trouble.end(on: disk)
        past = work.past(after: nil)
        opening = 3
        let last = try open(&story)
        try compare(last)
        try verify(disk, last.number)
        if let violation = disk.violations.first { throw Violation(violation) }
        try staysThroughPowerCuts(last, on: disk, random.branch(77))
    }

    /// A full disk or not: what an opening has shown, every later one shows.
    private func look(at work: Workload, on disk: SimulatedDisk) throws {
        let settled = Int(work.store.engine.statistics.settledInPlace)
        tally.note("commits settled in place", settled)
        tally.note("opened on a full disk")
        try staysThroughPowerCuts(work, on: disk, random.branch(UInt64(disk.calls)))
    }

    private func staysThroughPowerCuts(
        _ work: Workload,
        on disk: SimulatedDisk,
        _ chance: SeededRandom
    ) throws {
        var chance = chance
        let left = disk.state
        for image in [CrashImage(), CrashImage.random(of: left, &chance)] {
            let cut = SimulatedDisk(left.after(image))
            let found = try Workload(
                cut,
                mix,
                chance,
                plant: orders.plant,
                from: work.past(after: nil)
            )
            defer { cut.kill() }
            if found.number != work.number {
                throw Violation("after a power cut it shows \(found.number), not \(work.number)")
            }
            try compare(found)
        }
    }

    /// Only errors that say what is the case.
    private func judge(_ error: any Error, _ trouble: Trouble) throws {
        if error is Violation { throw error }
        if trouble.mayLookDamaged, error is RecordError || error is EngineError { return }
        switch error.engineCode {
        case .noSpace, .ioFailed, .outcomeUnknown, .poisoned, .closed: return
        default: throw Violation("it says of a call that failed: \(error)")
        }
    }

    /// After an error the handle shows what was acknowledged last, or says that it cannot read.
    private func stillReads(_ work: Workload, _ trouble: Trouble) throws {
        do {
            try compare(work)
        } catch {
            if trouble.readFault == nil { throw error }
            try judge(error, trouble)
        }
    }

    private func compare(_ work: Workload) throws {
        if let difference = try work.model.difference(
            try work.store.snapshot(),
            work.columns,
            work.contents
        ) {
            throw Violation("commit \(work.number) is not as it was saved: \(difference)")
        }
    }

    /// A poisoned handle writes nothing more.
    private func isPoisoned(_ work: Workload, _ code: EngineError.Code?) throws -> Bool {
        guard code == .outcomeUnknown || code == .poisoned else { return false }
        do {
            _ = try work.store.engine.write { try $0.replaceSchema([1], version: 1) }
        } catch {
            if error.engineCode == .poisoned || error.engineCode == .closed { return true }
        }
        throw Violation("a handle whose sync failed goes on writing")
    }
}
