// What the processes do that are killed and meet errors: one writes, one reads, one compacts.
//
// Each says on its standard output, one line at once, what it knows:
//
//     o N        opened; the writer's newest step is N     a N   step N is saved and on disk
//     b N        step N is tried again after an error      r N   step N is saved, `.relaxed`
//     e N CODE   saving step N failed                      f CODE WHERE   something else failed
//     s N        N snapshots are looked at                 c     compacted
//     z          closed                                    x TEXT   a promise is broken

import Foundation
import VarveTesting

/// Lines to the referee. A line is whole or not there: a pipe takes so many bytes at once.
enum Output {
    static func say(_ line: String) {
        let bytes = Array("\(line.replacing("\n", with: " "))\n".utf8)
        _ = bytes.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
    }
}

/// What a role is told.
struct RoleOrders {
    var place = Place(folder: ".")
    var seed: UInt64 = 1
    /// The writer's number.
    var writer: UInt64 = 1
    /// Steps after which it closes the store and ends.
    var steps = Int.max
    /// Whether savers do all work themselves.
    var isInline = false
    /// Whether the writer compacts at some of its steps.
    var compacts = false
    /// A call that changes nothing tells whoever counts calls where the work begins.
    var marks = false

    /// The referee has closed its end: it is time to stop.
    static var isOver: Bool {
        var poll = pollfd(fd: 0, events: Int16(POLLIN), revents: 0)
        return Foundation.poll(&poll, 1, 0) > 0
    }
}

/// A process that saves one step after the other.
final class Writer {
    private let orders: RoleOrders
    private var store: RecordStore?
    private var columns: Columns?
    private var account = Account()
    private var items: [UInt64: ObjectID] = [:]
    private var ledger: ObjectID?
    private var failures = 0
    /// Failures of one step.
    private var repeated = 0
    private var done = 0

    /// What the last save failed with.
    private var refusal: String?
    /// Whether it does nothing but save.
    private var onlySaves = false

    /// Failures after which it gives up.
    static let failuresMax = 6
    /// How it ends then, and when it was not able to close its store.
    static let gaveUp: Int32 = 3
    static let closeFailed: Int32 = 5

    init(_ orders: RoleOrders) { self.orders = orders }

    /// - Returns: the exit code.
    func run() -> Int32 {
        if orders.marks { _ = access("/varve-work-begins", F_OK) }
        while done < orders.steps, !RoleOrders.isOver {
            if failures > Self.failuresMax {
                try? store?.close()
                return Self.gaveUp
            }
            do {
                try open()
                try step()
            } catch let violation as Violation {
                Output.say("x \(violation)")
                return 4
            } catch {
                fail(error, "opening")
                store = nil
            }
        }
        do { try store?.close() } catch {
            fail(error, "closing")
            return Self.closeFailed
        }
        Output.say("z")
        return 0
    }

    private func fail(_ error: any Error, _ place: String) {
        failures += 1
        Output.say("f \(error.code) \(place): \(error)")
    }

    private func open() throws {
        if store != nil { return }
        try take(try Library.open(orders.place, isInline: orders.isInline))
    }

    /// Goes on with a store that is open.
    func take(_ store: RecordStore) throws {
        let columns = try Columns(store)
        let contents = try Contents(try store.snapshot(), columns)
        (self.store, self.columns) = (store, columns)
        account = contents.accounts[orders.writer] ?? Account()
        items = contents.items.filter { Account.writer(of: $0.key) == orders.writer }
        ledger = contents.ledgers[orders.writer]
        Output.say("o \(account.step)")
    }

    /// Saves until a save fails.
    /// - Returns: false when the referee wants no more.
    func saveUntilFull() throws -> Bool {
        onlySaves = true
        refusal = nil
        repeated = .min
        while refusal == nil {
            if RoleOrders.isOver { return false }
            try step()
        }
        if refusal != "noSpace" { throw Violation("no space is called \(refusal ?? "")") }
        return true
    }

    /// Saves so many steps, and none may fail.
    func save(_ count: Int) throws {
        refusal = nil
        repeated = .min
        for _ in 0..<count {
            try step()
            if let refusal { throw Violation("with space again: \(refusal)") }
        }
    }

    private func step() throws {
        guard let store, let columns else { return }
        let plan = Plan(orders.seed, orders.writer, behind: account)
        let number = plan.account.step
        do {
            try save(plan, store, columns)
        } catch {
            failures += 1
            refusal = error.code
            Output.say("e \(number) \(error.code) \(error)")
            // Some errors stay until the store is opened again, as that of a blob's name.
            repeated += 1
            if repeated > 2 || error.code == "outcomeUnknown" || error.code == "poisoned" {
                repeated = 0
                try? store.close()
                self.store = nil
            } else {
                Output.say("b \(number)")
            }
            return
        }
        Output.say("\(plan.durability == .full ? "a" : "r") \(number)")
        account = plan.account
        done += 1
        repeated = 0
        if onlySaves { return }
        // What was read when the work began is old: snapshots show what was acknowledged.
        if number % 16 == 0 {
            let shown = try Contents(try store.snapshot(), columns).accounts[orders.writer]
            if shown != account {
                throw Violation("step \(number) was saved, a snapshot shows \(shown?.step ?? 0)")
            }
        }
        do {
            switch plan.act {
            case .nothing: break
            case .checkpoint: try store.engine.checkpoint()
            case .compact where orders.compacts: _ = try store.compact()
            case .compact: break
            case .reopen:
                self.store = nil
                try store.close()
            }
        } catch {
            fail(error, "\(plan.act)")
            if ["outcomeUnknown", "poisoned"].contains(error.code) { self.store = nil }
        }
    }

    private func save(_ plan: Plan, _ store: RecordStore, _ columns: Columns) throws {
        var blobs: [Picture: PendingBlob] = [:]
        for edit in plan.edits {
            guard let picture = edit.item?.picture, blobs[picture] == nil else { continue }
            blobs[picture] = try write(picture, store)
        }
        var items = items
        var ledger = ledger
        _ = try store.write(author: "writer \(orders.writer)", durability: plan.durability) {
            transaction in
            for edit in plan.edits {
                switch edit {
                case .insert(let key, let item):
                    let id = store.allocateObjectIDs(1)
                    let blob = item.picture.flatMap { blobs[$0]?.reference }
                    try transaction.insert(columns.item.id, id, columns.values(key, item, blob))
                    items[key] = id
                case .update(let key, let item):
                    guard let id = items[key] else { throw Violation("item \(key) is gone") }
                    let blob = item.picture.flatMap { blobs[$0]?.reference }
                    try transaction.update(columns.item.id, id, columns.values(key, item, blob))
                case .delete(let key):
                    guard let id = items.removeValue(forKey: key) else {
                        throw Violation("item \(key) is gone")
                    }
                    try transaction.delete(columns.item.id, id)
                }
            }
            let values = columns.values(orders.writer, plan.account)
            if let ledger {
                try transaction.update(columns.ledger.id, ledger, values)
            } else {
                let id = store.allocateObjectIDs(1)
                try transaction.insert(columns.ledger.id, id, values)
                ledger = id
            }
        }
        (self.items, self.ledger) = (items, ledger)
        withExtendedLifetime(blobs) {}
    }

    private func write(_ picture: Picture, _ store: RecordStore) throws -> PendingBlob {
        let writer = try store.engine.makeBlobWriter(externalLimit: Picture.externalLimit)
        try writer.append(picture.bytes)
        return try writer.finish()
    }
}

/// A process that reads: each snapshot fits itself, none is older than the one before, and one that
/// is held stays as it was.
enum Reader {
    static func run(_ orders: RoleOrders) -> Int32 {
        var looked = 0
        do {
            let store = try Library.open(orders.place, .readOnly)
            let columns = try Columns(store)
            var held: (snapshot: RecordSnapshot, accounts: [UInt64: Account])?
            var newest: CommitNumber?
            Output.say("o 0")
            while !RoleOrders.isOver {
                let snapshot = try store.snapshot()
                if let newest, snapshot.number < newest {
                    throw Violation(
                        "a snapshot shows commit \(snapshot.number.rawValue) behind "
                            + "\(newest.rawValue)"
                    )
                }
                newest = snapshot.number
                let accounts = try Contents(snapshot, columns).accounts
                if let known = held {
                    if try Contents(known.snapshot, columns).accounts != known.accounts {
                        throw Violation("a snapshot that is held shows something else")
                    }
                    for (writer, account) in known.accounts
                    where accounts[writer]?.step ?? 0 < account.step {
                        throw Violation("writer \(writer) has fallen behind step \(account.step)")
                    }
                }
                if looked % 7 == 0 { held = (snapshot, accounts) }
                looked += 1
                if looked % 16 == 0 { Output.say("s \(looked)") }
            }
            try store.close()
            Output.say("s \(looked)")
            Output.say("z")
            return 0
        } catch {
            Output.say("x reader, \(looked) snapshots: \(error)")
            return 4
        }
    }
}

/// A process that compacts, again and again, beside others.
enum Compactor {
    static func run(_ orders: RoleOrders) -> Int32 {
        do {
            let store = try Library.open(orders.place)
            Output.say("o 0")
            while !RoleOrders.isOver {
                do {
                    _ = try store.compact()
                    Output.say("c")
                } catch {
                    // Another process compacted meanwhile.
                    if error.code != "busy" { throw error }
                }
            }
            try store.close()
            Output.say("z")
            return 0
        } catch {
            Output.say("x compactor: \(error)")
            return 4
        }
    }
}

/// A process that saves until there is no space, deletes, and goes on when there is space again.
final class FillerRole {
    private let orders: RoleOrders
    private static let ballastRows = 60
    private static let deletes = 12

    init(_ orders: RoleOrders) { self.orders = orders }

    func run() -> Int32 {
        do {
            let store = try Library.open(orders.place, isRoomy: true)
            let columns = try Columns(store)
            let first = store.allocateObjectIDs(Self.ballastRows)
            _ = try store.write { transaction in
                for number in 0..<Self.ballastRows {
                    try transaction.insert(
                        columns.ballast.id,
                        ObjectID(first.rawValue + UInt64(number)),
                        [ColumnValue(columns.weight, .text(String(repeating: "b", count: 200)))]
                    )
                }
            }
            let writer = Writer(orders)
            try writer.take(store)
            guard try writer.saveUntilFull() else { return 0 }
            // Room for deletes is kept: each is a commit of its own.
            for number in 0..<Self.deletes {
                do {
                    _ = try store.write {
                        try $0.delete(
                            columns.ballast.id,
                            ObjectID(first.rawValue + UInt64(number))
                        )
                    }
                } catch {
                    throw Violation("delete \(number + 1) on a full disk: \(error)")
                }
            }
            Output.say("full")
            _ = readLine()
            try writer.save(20)
            let left = try store.snapshot().count(RecordQuery(entity: columns.ballast.id))
            if left != Self.ballastRows - Self.deletes {
                throw Violation("\(left) rows of ballast are left")
            }
            try store.close()
            Output.say("z")
            return 0
        } catch {
            Output.say("x \(error)")
            return 4
        }
    }
}

/// A process that tries to open a store, and says what came of it.
enum Probe {
    static func run(_ orders: RoleOrders, _ mode: String) -> Int32 {
        do {
            var place = orders.place
            if mode == "create" { place.name = "another" }
            let store = try Library.open(place, mode == "read" ? .readOnly : .createIfMissing)
            _ = try Contents(try store.snapshot(), try Columns(store))
            try store.close()
            Output.say("ok")
        } catch {
            Output.say(error.code)
        }
        return 0
    }
}

extension Error {
    /// The engine's word for it, or the kind of another error.
    var code: String {
        if let error = self as? EngineError { return error.code.rawValue }
        if case .engine(let error)? = self as? RecordError { return error.code.rawValue }
        return "other"
    }
}
