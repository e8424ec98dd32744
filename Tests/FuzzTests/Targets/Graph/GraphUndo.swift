// Undo, redo and transactions: what a context shows is read out whole before and after each step,
// and must be the same again.

import VarveInspection
import VarveObjects
import VarveTesting

/// Thrown by transactions that are to fail.
struct Refused: Error {}

/// One run with one context that can undo.
class UndoWorld: EditingWorld {
    let access = GraphAccess()
    let disk = SimulatedDisk()
    let options: ContainerOptions
    var container: PersistentContainer
    var context: ManagedObjectContext
    /// What was shown before the first step that can be undone, and after each.
    var states: [ShownGraph] = []
    /// How many of them have been done.
    var place = 0
    /// What the newest commit has.
    var stored: ShownGraph
    /// Objects live as long as somebody looks at them.
    var held: [ManagedObjectID: any ManagedObject] = [:]
    let relations: [ModelRelation]
    var codes = 0
    var script: [String] = []
    var names: [ManagedObjectID: String] = [:]
    /// Objects that others made, and those that others gave another name.
    var foreign: Set<ManagedObjectID> = []
    var renamed: Set<ManagedObjectID> = []

    required init(_ setup: UInt64, _ options: ContainerOptions, observes: Bool) throws {
        var random = SeededRandom(seed: setup)
        self.options = options
        let kinds = 1 + Int(random.next() % 6)
        relations = Array(ModelRelation.all.shuffled(using: &random).prefix(kinds))
        container = try PersistentContainer.openNow(
            on: disk,
            schema: FuzzedSchema.self,
            options: options
        )
        context = container.newContext()
        stored = try ShownGraph(context, access)
        script.append("uses \(relations.map(\.name).joined(separator: " "))")
        try begin()
    }

    func end() {
        held = [:]
        context = container.newContext()
        try? container.closeNow(discardingEdits: true)
    }

    func begin() throws {
        context.undoLimit = 1_000
        states = [try shown()]
        place = 0
    }

    /// What the context shows, without what others did.
    func shown(_ other: ManagedObjectContext? = nil) throws -> ShownGraph {
        var shown = try ShownGraph(other ?? context, access)
        for id in foreign { shown.objects[id] = nil }
        for id in renamed { shown.objects[id]?.values[0] = "renamed" }
        return shown
    }

    func note(_ line: @autoclosure () -> String) { script.append(line()) }

    func name(_ object: any ManagedObject) -> String {
        let id = object.objectID
        if let known = names[id] { return known }
        names[id] = "#\(names.count)/\(id.uri.suffix(4))"
        return names[id] ?? ""
    }

    func keep(_ object: any ManagedObject, of context: ManagedObjectContext) {
        if context === self.context { held[object.objectID] = object }
    }

    func makeCode(_ random: inout SeededRandom) -> String? {
        codes += 1
        return "c\(codes)"
    }

    func expect(_ expected: ShownGraph, _ what: String) throws {
        let now = try shown()
        if now != expected { throw Violation("\(what): \(expected.difference(now))") }
        if !context.readFailures.isEmpty {
            throw Violation("\(what): a read failed: \(context.readFailures)")
        }
    }

    // MARK: Steps

    func step(_ number: UInt64) throws {
        var random = SeededRandom(seed: number)
        switch random.next() % 20 {
        case 16...17: try branch(context, &random, depth: 0)
        case 18...19: try others(&random)
        case 0...5: try group(&random)
        case 6...8: try undo(1 + Int(random.next() % 4))
        case 9...10: try redo(1 + Int(random.next() % 4))
        case 11: try fail(&random)
        case 12...13: try save()
        case 14: held = [:]
        default: try reopen(&random)
        }
    }

    func finish() throws {
        try undo(states.count)
        try redo(states.count)
        try save()
        try undo(states.count)
        try save()
        guard try StoreObserver.open(disk.location()).verify(level: .normal).isSound else {
            throw Violation("verify: not sound")
        }
    }

    /// Edits that are one step.
    func group(_ random: inout SeededRandom) throws {
        let before = try shown()
        let count = 1 + Int(random.next() % 5)
        let isNamed = random.next() % 2 == 0
        note("group of \(count) {")
        var inner = random
        try context.withUndoGroup(isNamed ? "edit" : "") {
            for _ in 0..<count { try edit(context, &inner) }
        }
        note("}")
        let after = try shown()
        if before == after {
            try resetSteps(after)
            return
        }
        states.removeSubrange((place + 1)...)
        states.append(after)
        place += 1
        madeStep()
    }

    /// A step that shows nothing may or may not be one: begin anew.
    func resetSteps(_ now: ShownGraph) throws {
        context.removeAllUndoSteps()
        states = [now]
        place = 0
    }

    func undo(_ count: Int) throws {
        for _ in 0..<min(count, place) {
            note("undo")
            let instances = held
            try beginUndo()
            let skipped = try context.undo()
            place -= 1
            try checkOthers("an undo")
            if try isOver(skipped) { return }
            try expect(states[place], "after an undo")
            try checkInstances(instances)
        }
        if place == 0, context.canUndo { throw Violation("there is more to undo") }
    }

    func redo(_ count: Int) throws {
        for _ in 0..<min(count, states.count - 1 - place) {
            note("redo")
            try beginUndo()
            let skipped = try context.redo()
            place += 1
            try checkOthers("a redo")
            if try isOver(skipped) { return }
            try expect(states[place], "after a redo")
        }
        if place == states.count - 1, context.canRedo { throw Violation("there is more to redo") }
    }

    /// Behind an edit that is a step.
    func madeStep() {}

    /// Before an undo or redo.
    func beginUndo() throws {}

    /// What others did is theirs.
    func checkOthers(_ what: String) throws {}

    /// What somebody holds is the object that the context shows.
    func checkInstances(_ instances: [ManagedObjectID: any ManagedObject]) throws {
        for (id, object) in instances where states[place].objects[id] != nil {
            guard let now = try context.existingObject(with: id) else { continue }
            if now !== object { throw Violation("\(name(object)) is another instance") }
        }
    }

    /// A transaction that throws.
    func fail(_ random: inout SeededRandom) throws {
        let before = try shown()
        let had = context.hasChanges
        let count = 1 + Int(random.next() % 5)
        note("transaction {")
        var inner = random
        var failure: (any Error)?
        do {
            try context.transaction {
                for _ in 0..<count { try edit(context, &inner) }
                throw Refused()
            }
        } catch is Refused {
            failure = nil
        } catch { failure = error }
        if let failure { throw failure }
        note("} throws")
        try expect(before, "after a transaction that threw")
        if !had, context.hasChanges { throw Violation("a transaction that threw left edits") }
        try resetSteps(before)
    }

    func save() throws {
        note("save")
        let before = try shown()
        do {
            try context.save()
        } catch let error as StoreError where error.code == .deleteDenied {
            note("   denied")
            try expect(before, "after a denied save")
            context.rollback()
            try expect(stored, "after a rollback")
            try resetSteps(stored)
            return
        }
        try expect(before, "after a save")
        let fresh = try shown(container.newContext())
        if fresh != before { throw Violation("stored: \(before.difference(fresh))") }
        stored = before
        let report = try StoreObserver.open(disk.location()).verify(level: .normal)
        if let problem = report.problems.first { throw Violation("verify: \(problem)") }
    }

    /// Edits that meet what others did are left: what is shown then is the truth.
    func isOver(_ skipped: [SkippedEdit], resets: Bool = true) throws -> Bool {
        if skipped.isEmpty { return false }
        if foreign.isEmpty, renamed.isEmpty { throw Violation("skipped: \(skipped)") }
        note("   skipped \(skipped.count)")
        for skip in skipped where skip.property == nil && skip.reason == .changedSince {
            guard try context.existingObject(with: skip.object) == nil else { continue }
            throw Violation("\(skip.object) is said to stay, and is gone")
        }
        if resets { try resetSteps(try shown()) }
        return true
    }

    /// Another context makes objects and gives names, and this one follows.
    func others(_ random: inout SeededRandom) throws {
        let other = container.newContext()
        let all = try other.fetch(Alpha.all)
        if let object = all.randomElement(using: &random) {
            note("another one gives \(name(object)) a name")
            object.name = "by others \(random.next() % 100)"
            renamed.insert(object.objectID)
        }
        let new = Beta(in: other)
        note("another one makes \(name(new))")
        foreign.insert(new.objectID)
        try other.save()
        context.advance()
        for index in states.indices {
            for id in renamed { states[index].objects[id]?.values[0] = "renamed" }
        }
        for id in renamed { stored.objects[id]?.values[0] = "renamed" }
        try expect(states[place], "after a merge")
    }

    /// An edit sheet.
    func branch(
        _ parent: ManagedObjectContext,
        _ random: inout SeededRandom,
        depth: Int
    ) throws {
        let before = try shown(parent)
        note("branch {")
        let branch = try parent.branch()
        try same(try shown(branch), before, "a new branch")
        if branch.hasChanges { throw Violation("a new branch has changes") }
        for _ in 0..<(1 + random.next() % 4) { try edit(branch, &random) }
        if depth < 2, random.next() % 3 == 0 {
            try self.branch(branch, &random, depth: depth + 1)
        }
        let mine = try shown(branch)
        if mine != before, !branch.hasChanges { throw Violation("a branch hides its changes") }
        try same(try shown(parent), before, "the parent of a branch")
        switch random.next() % 6 {
        case 0: note("} dropped")
        case 1:
            note("} rolled back")
            branch.rollback()
            try same(try shown(branch), before, "a branch that was rolled back")
            if branch.hasChanges { throw Violation("a branch has changes after a rollback") }
        case 2:
            try meet(parent, branch, &random)
            if depth == 0 { return try resetSteps(try shown()) }
        default:
            if random.next() % 3 == 0 {
                note("   advance")
                branch.advance()
                try same(try shown(branch), mine, "a branch that advanced")
            }
            note("} merged")
            do { try branch.mergeIntoParent() } catch let error as StoreError
                where error.code == .deleteDenied
            {
                note("   denied")
                break
            }
            try same(try shown(parent), mine, "the parent after a merge")
            try same(try shown(branch), mine, "a branch that was merged")
            if branch.hasChanges { throw Violation("a branch has changes after its merge") }
        }
        if depth > 0 { return }
        let after = try shown()
        if after == before { return try resetSteps(after) }
        states.removeSubrange((place + 1)...)
        states.append(after)
        place += 1
        madeStep()
    }

    /// The parent is edited as well.
    func meet(
        _ parent: ManagedObjectContext,
        _ branch: ManagedObjectContext,
        _ random: inout SeededRandom
    ) throws {
        note("   its parent:")
        var inner = random
        try parent.withUndoGroup { for _ in 0..<2 { try edit(parent, &inner) } }
        let before = try shown(parent)
        note("} merged")
        do { try branch.mergeIntoParent() } catch let error as StoreError
            where error.code == .conflict || error.code == .deleteDenied
        {
            try same(try shown(parent), before, "the parent after a conflict")
            if error.code == .deleteDenied { return note("   denied") }
            let wins = random.next() % 2 == 0
            note("   conflict, \(wins ? "the branch" : "its parent") wins")
            do { try branch.mergeIntoParent(wins ? .branchWins : .parentWins) } catch let error
                as StoreError where error.code == .deleteDenied
            { return note("   denied") }
        }
        try same(try shown(branch), try shown(parent), "a branch that was merged")
    }

    func same(_ now: ShownGraph, _ expected: ShownGraph, _ what: String) throws {
        if now != expected { throw Violation("\(what): \(expected.difference(now))") }
    }

    func reopen(_ random: inout SeededRandom) throws {
        guard random.next() % 4 == 0 else { return }
        try save()
        note("reopen")
        held = [:]
        context = container.newContext()
        try container.closeNow(discardingEdits: true)
        container = try PersistentContainer.openNow(
            on: disk,
            schema: FuzzedSchema.self,
            options: options
        )
        context = container.newContext()
        try expect(stored, "opened again")
        try begin()
    }
}
