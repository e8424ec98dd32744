// Whole workloads of a sound disk: nothing crashes, nothing fails.
//
// Invariants
// - What a snapshot shows stays, whatever is swept, compacted or written meanwhile.
// - What the last process left is there for the next one, and sound.
// - A case takes a hundredth of what the crashes of a seed take: mistakes that need no crash are
//   found by many short workloads, not by a long look at few.

import VarveTesting

extension SeedRun {
    /// Workloads of each seed.
    static let works = 12

    func runWork() {
        for number in 0..<Self.works {
            if tally.isOver { return }
            guard wants(.work, [number]) else { continue }
            do {
                try work(random.branch(UInt64(200_000 + number)), packs: number % 2 == 0)
                tally.count(.work)
            } catch {
                report(CaseName(.work, [number]), error, size: number)
                return
            }
        }
    }

    private func work(_ random: SeededRandom, packs: Bool) throws {
        var chance = random.branch(1)
        var mix = Mix(&chance, without: orders.without)
        mix.steps = orders.steps ?? mix.steps
        // Snapshots that outlive what they show: rows, pages and files are replaced under them.
        for kind in [Kind.update, .delete, .file, .snapshot, .checkpoint]
        where !orders.without.contains(kind) {
            mix.weights[kind] = max(2, mix.weights[kind] ?? 0)
        }
        mix.alwaysPacks = packs
        let disk = SimulatedDisk()
        defer { disk.kill() }
        let work = try Workload(disk, mix, random.branch(2), plant: orders.plant)
        for _ in 0..<mix.steps { try work.step() }
        if packs && !orders.without.contains(.compact) {
            // Leaves that were packed and then changed are what the next process reads.
            try work.compact()
            try work.save()
        }
        let number = work.number
        try work.store.close()
        try work.reopen()
        if work.number != number {
            throw Violation("commit \(number) was the newest, then \(work.number) is found")
        }
        if let difference = try work.model.difference(
            try work.store.snapshot(),
            work.columns,
            work.contents
        ) {
            throw Violation("commit \(work.number) is not as it was saved: \(difference)")
        }
        try work.store.close()
        try verify(disk, work.number)
        if let violation = disk.violations.first { throw Violation(violation) }
    }
}
