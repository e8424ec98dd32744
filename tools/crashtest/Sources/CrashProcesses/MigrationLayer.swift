// The layer `migrate`: a process that migrates a store is killed with SIGKILL at any moment.
//
// Afterwards the store has the old schema with all rows and blobs, or the new one with all of them,
// and no file that nobody needs. Every other time another process migrates what is left to its end.

import Foundation
import Synchronization
import VarveInspection
import VarveObjects
import VarveTesting

final class MigrationLayer: Layer {
    /// Cases that begin with one store; each store has a seed of its own.
    static let casesPerStore = 50
    /// So many that the migration writes pages long before its commit.
    static let rows = 20_000

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
            try kill(seed, cases: min(Self.casesPerStore, orders.cycles - tally.cases))
            if tally.hasViolations { return }
            seed += 1
        }
        // A campaign that kills before the first write, or behind the last one, shows nothing.
        if orders.cycles >= 20, tally.notes["old"] == nil || tally.notes["new"] == nil {
            tally.report(
                Finding(
                    message: "all stores were old, or all were new: \(tally.notes)",
                    again: "migrate --seed \(orders.seed) --cycles \(orders.cycles)",
                    folder: "nowhere"
                )
            )
        }
    }

    private func url(_ folder: Folder) -> URL {
        URL(fileURLWithPath: Place(folder: folder.path).path)
    }

    /// One store, migrated from its beginning again and again.
    private func kill(_ seed: UInt64, cases: Int) throws {
        random = SeededRandom(seed: seed)
        let notes = Notes(seed: seed, count: Self.rows)
        let original = try Folder(orders)
        try notes.make(url(original))
        // How long it takes where nobody kills it.
        let whole = try Folder(orders, copying: original)
        let start = ContinuousClock.now
        try migrateToTheEnd(whole, seed)
        let microseconds = Int((ContinuousClock.now - start) / .microseconds(1))
        guard try notes.isMigrated(url(whole)) else { throw SetUpError("nothing was migrated") }
        for number in 0..<cases {
            let folder = try Folder(orders, copying: original)
            do {
                try killOnce(folder, notes, number, microseconds)
                tally.count()
            } catch let violation as Violation {
                tally.report(
                    Finding(
                        message: "store \(seed), case \(number + 1): \(violation)",
                        details: folder.errorLines,
                        again: "migrate --seed \(seed) --cycles \(cases)",
                        folder: folder.keep()
                    )
                )
                return
            }
        }
    }

    private func killOnce(
        _ folder: Folder,
        _ notes: Notes,
        _ number: Int,
        _ microseconds: Int
    ) throws {
        let child = try folder.role("migrator", notes.seed)()
        // Most of its time is work on rows; the commit at the end is short, and half of the kills
        // are for it.
        let from = number % 2 == 0 ? 0 : microseconds * 7 / 10
        usleep(UInt32(from + Int(random.next() % UInt64(microseconds * 5 / 4 - from))))
        child.signal(SIGKILL)
        let ending = child.wait()
        let lines = child.hear()
        if ending != .killed(SIGKILL), ending != .exited(0) {
            throw Violation("the migration ended with \(ending): \(lines.joined(separator: " "))")
        }
        var isNew = try look(folder, notes)
        if lines.contains("m"), !isNew { throw Violation("a migration that was done is gone") }
        tally.note(isNew ? "new" : "old", 1)
        if lines.contains("p") { tally.note("killed at work on rows, or later", 1) }
        if number % 2 == 1 {
            try migrateToTheEnd(folder, notes.seed)
            isNew = try look(folder, notes)
            if !isNew { throw Violation("the second migration has come to nothing") }
        }
        try clean(folder, notes, isNew)
    }

    private func migrateToTheEnd(_ folder: Folder, _ seed: UInt64) throws {
        let child = try folder.role("migrator", seed)()
        let ending = child.wait()
        let lines = child.hear()
        guard ending == .exited(0), lines.contains("m") else {
            throw Violation("a migration that nobody kills ended with \(ending): \(lines)")
        }
    }

    /// What the store is; throws where it is neither old nor new, or `verify` finds something.
    private func look(_ folder: Folder, _ notes: Notes) throws -> Bool {
        do {
            let isNew = try notes.isMigrated(url(folder))
            let place = Place(folder: folder.path)
            let report = try StoreObserver.open(place.location).verify(level: .full)
            if let problem = report.problems.first {
                throw Violation("verify says of it: \(problem.subject): \(problem.message)")
            }
            return isNew
        } catch let error as StoreError {
            throw Violation("the store cannot be read: \(error)")
        }
    }

    /// Behind a compaction no file is left that nobody needs.
    private func clean(_ folder: Folder, _ notes: Notes, _ isNew: Bool) throws {
        let place = Place(folder: folder.path)
        do {
            let schema: any VersionedSchema.Type =
                isNew ? AppAfter.Schema.self : AppBefore.Schema.self
            let container = try PersistentContainer.openNow(at: url(folder), schema: schema)
            try waiting { _ = try await container.compact() }
            try container.closeNow()
        } catch {
            throw Violation("the store cannot be compacted: \(error)")
        }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: place.blobs)) ?? []
        let needed = notes.files(isMigrated: isNew)
        if names.count != needed {
            throw Violation("\(names.count) blob files are left, the store names \(needed)")
        }
    }
}

/// Runs what waits from code that does not.
private func waiting(_ body: @escaping @Sendable () async throws -> Void) throws {
    let failure = Mutex<(any Error)?>(nil)
    let done = DispatchSemaphore(value: 0)
    Task.detached {
        do { try await body() } catch { failure.withLock { $0 = error } }
        done.signal()
    }
    done.wait()
    if let failure = failure.withLock({ $0 }) { throw failure }
}

/// The process that migrates: says `p` when it is at work, `m` when it is done.
enum Migrator {
    static func run(_ orders: RoleOrders) -> Int32 {
        do {
            var options = ContainerOptions()
            options.onMigrationProgress = { _ in Output.say("p") }
            let container = try PersistentContainer.openNow(
                at: URL(fileURLWithPath: orders.place.path),
                schema: AppAfter.Schema.self,
                migrations: AppAfter.Plan.self,
                options: options
            )
            Output.say("m")
            try container.closeNow()
            return 0
        } catch {
            Output.say("x migrator: \(error)")
            return 4
        }
    }
}
