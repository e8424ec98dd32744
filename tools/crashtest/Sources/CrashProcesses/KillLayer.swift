// The layer `kill`: processes on one store, killed with SIGKILL at moments that nobody chose.
//
// A cycle starts one to three writers, and sometimes readers and one process that compacts. After
// some saves all of them are killed at once, or one, and then the others must get on: what the dead
// held is free. Every third time the next cycle's processes, not the referee, find what is left.

import Foundation
import VarveTesting

final class KillLayer: Layer {
    /// Cycles that one store lives through; each store has a seed of its own.
    static let cyclesPerStore = 25

    private let orders: Orders
    private let tally: Tally
    private var random = SeededRandom(seed: 0)

    init(_ orders: Orders, _ tally: Tally) {
        self.orders = orders
        self.tally = tally
    }

    func run() throws {
        var seed = orders.seed
        while tally.cases < orders.cycles {
            try live(seed, cycles: min(Self.cyclesPerStore, orders.cycles - tally.cases))
            if tally.hasViolations { return }
            seed += 1
        }
    }

    /// One store from its first commit on.
    private func live(_ seed: UInt64, cycles: Int) throws {
        let folder = try Folder(orders)
        let place = Place(folder: folder.path)
        random = SeededRandom(seed: seed)
        let referee = Referee(seed, place)
        for cycle in 0..<cycles {
            do {
                try Library.open(place).close()
                try self.cycle(referee, folder)
                if cycle % 3 != 2 || cycle == cycles - 1 {
                    try referee.look(verifies: cycle % 2 == 0, opensTwice: cycle % 5 == 0)
                }
                if cycle == cycles - 1 { try referee.clean() }
                tally.count()
            } catch let violation as Violation {
                tally.report(
                    Finding(
                        message: "store \(seed), cycle \(cycle + 1): \(violation)",
                        details: Array(referee.story.suffix(12)) + folder.errorLines,
                        again: "kill --seed \(seed) --cycles \(cycles)",
                        folder: folder.keep()
                    )
                )
                return
            }
        }
        tally.note("saves acknowledged", referee.acknowledged)
    }

    private func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }

    private func cycle(_ referee: Referee, _ folder: Folder) throws {
        let writers = [1, 1, 1, 2, 2, 3][pick(6)]
        let readers = [0, 0, 0, 1, 1, 2][pick(6)]
        let compactors = [0, 0, 0, 1][pick(4)]
        var group = Group(referee, tally)
        for number in 0..<writers {
            var more = ["--writer", "\(number + 1)"]
            if pick(2) == 0 { more += ["--compacts"] }
            try group.add(.writer(UInt64(number + 1)), folder.role("writer", referee.seed, more))
        }
        for _ in 0..<readers { try group.add(.reader, folder.role("reader", referee.seed)) }
        for _ in 0..<compactors {
            try group.add(.compactor, folder.role("compactor", referee.seed))
        }
        // Often at work, sometimes while they open.
        if pick(6) == 0 {
            group.pause(microseconds: pick(30_000))
        } else {
            try group.waitForSaves(1 + pick(40))
            group.pause(microseconds: pick(3000))
        }
        switch pick(4) {
        case 0, 1: try group.killAll()
        case 2:
            try group.kill(pick(group.count))
            try group.waitForSaves(4)
            try group.killAll()
        default:
            try group.kill(pick(group.count))
            try group.waitForSaves(2)
            try group.dismissAll()
        }
    }
}

/// Processes on one store.
struct Group {
    enum Role { case writer(UInt64), reader, compactor }
    private var children: [(role: Role, child: Child)] = []
    private let referee: Referee
    private let tally: Tally
    /// A machine with other work does not make a store hang: a minute without a save does.
    static let patience: Double = 60

    init(_ referee: Referee, _ tally: Tally) {
        self.referee = referee
        self.tally = tally
    }

    var count: Int { children.count }

    mutating func add(_ role: Role, _ start: () throws -> Child) throws {
        children.append((role, try start()))
    }

    func pause(microseconds: Int) { usleep(UInt32(microseconds)) }

    private var hasWriters: Bool {
        children.contains { if case .writer = $0.role { true } else { false } }
    }

    /// Hears everyone once.
    private func hear() throws {
        for (role, child) in children {
            for line in child.hear() {
                switch role {
                case .writer(let number): try referee.hear(line, from: number)
                case .reader, .compactor:
                    referee.note("\(child.name): \(line)")
                    if line.hasPrefix("x ") {
                        throw Violation("\(child.name): \(line.dropFirst(2))")
                    }
                    if line == "c" { tally.note("compactions", 1) }
                }
            }
            if child.isAtEnd {
                throw Violation("\(child.name) ended by itself: \(child.wait())")
            }
        }
    }

    /// Returns when so many more saves were acknowledged.
    func waitForSaves(_ count: Int) throws {
        guard hasWriters else { return pause(microseconds: 5000) }
        let wanted = referee.acknowledged + count
        let start = ContinuousClock.now
        while referee.acknowledged < wanted {
            Child.wait(for: children.map(\.child), milliseconds: 100)
            try hear()
            if ContinuousClock.now - start > .seconds(Self.patience) {
                throw Violation("nobody saved for a minute")
            }
        }
    }

    /// What was said before the end counts.
    private func hearRest(_ role: Role, _ child: Child) throws {
        for line in child.hear() {
            if case .writer(let number) = role {
                try referee.hear(line, from: number)
            } else if line.hasPrefix("x ") {
                throw Violation("\(child.name): \(line.dropFirst(2))")
            }
        }
    }

    private func judge(_ role: Role, _ child: Child, _ expected: Ending) throws {
        let ending = child.wait()
        try hearRest(role, child)
        if ending != expected { throw Violation("\(child.name) ended with \(ending)") }
    }

    mutating func kill(_ index: Int) throws {
        let (role, child) = children.remove(at: index)
        child.signal(SIGKILL)
        referee.note("killed \(child.name)")
        try judge(role, child, .killed(SIGKILL))
    }

    mutating func killAll() throws {
        for (_, child) in children { child.signal(SIGKILL) }
        referee.note("killed all")
        for (role, child) in children { try judge(role, child, .killed(SIGKILL)) }
        children = []
    }

    /// They close the store and end.
    mutating func dismissAll() throws {
        for (_, child) in children { child.dismiss() }
        let start = ContinuousClock.now
        for (role, child) in children {
            while !child.isAtEnd {
                Child.wait(for: [child], milliseconds: 100)
                try hearRest(role, child)
                if ContinuousClock.now - start > .seconds(Self.patience) {
                    throw Violation("\(child.name) does not close the store")
                }
            }
            try judge(role, child, .exited(0))
        }
        children = []
    }
}
