// Wrong orders: two contexts that undo, redo, roll back and save with any policy, and branches of
// them that are merged late. What is shown then nobody can say; that it is sound must always hold.

import VarveInspection
import VarveObjects
import VarveTesting

/// One run of two contexts and branches.
class TangleWorld: EditingWorld {
    let access = GraphAccess()
    let relations: [ModelRelation]
    private(set) var script: [String] = []
    private let disk = SimulatedDisk()
    let container: PersistentContainer
    private(set) var contexts: [ManagedObjectContext] = []
    private var branches: [ManagedObjectContext] = []
    private var held: [any ManagedObject] = []
    private var names: [ManagedObjectID: String] = [:]

    required init(_ setup: UInt64, _ options: ContainerOptions, observes: Bool) throws {
        var random = SeededRandom(seed: setup)
        let kinds = 1 + Int(random.next() % 6)
        relations = Array(ModelRelation.all.shuffled(using: &random).prefix(kinds))
        container = try PersistentContainer.openNow(
            on: disk,
            schema: FuzzedSchema.self,
            options: options
        )
        note("uses \(relations.map(\.name).joined(separator: " "))")
        for _ in 0..<2 {
            let context = container.newContext()
            context.undoLimit = 20
            contexts.append(context)
        }
        for _ in 0..<3 {
            note(
                "0: \(name(Alpha(in: contexts[0]))) = new A, \(name(Beta(in: contexts[0]))) = new B"
            )
        }
        try contexts[0].save()
        contexts[1].advance()
    }

    func end() {
        (held, branches, contexts) = ([], [], [])
        try? container.closeNow(discardingEdits: true)
    }

    func note(_ line: @autoclosure () -> String) { script.append(line()) }

    func name(_ object: any ManagedObject) -> String { name(of: object.objectID) }

    func name(of id: ManagedObjectID) -> String {
        if let known = names[id] { return known }
        names[id] = "#\(names.count)"
        return names[id] ?? ""
    }

    func keep(_ object: any ManagedObject, of context: ManagedObjectContext) {
        if held.count < 200 { held.append(object) }
    }

    func makeCode(_ random: inout SeededRandom) -> String? {
        random.next() % 4 == 0 ? nil : "c\(random.next() % 3)"
    }

    // MARK: Steps

    func step(_ number: UInt64) throws {
        var random = SeededRandom(seed: number)
        let place = Int(random.next() % 2)
        let context = contexts[place]
        note("context \(place):")
        switch random.next() % 16 {
        case 0...3:
            note("group {")
            try context.withUndoGroup { try edit(context, &random, upTo: 4) }
            note("}")
        case 4: try edit(context, &random)
        case 5...6:
            note("undo")
            try context.undo()
        case 7:
            note("redo")
            try context.redo()
        case 8: try save(context, &random)
        case 9:
            note("advance")
            context.advance()
        case 10:
            note("rollback")
            context.rollback()
        case 11: try fail(context, &random)
        case 12:
            note("branch \(branches.count) of it")
            try makeBranch(of: context)
        case 13: try editBranch(&random)
        case 14: try endBranch(&random)
        default:
            held = []
            context.refreshAllObjects()
        }
        try check()
    }

    private func edit(
        _ context: ManagedObjectContext,
        _ random: inout SeededRandom,
        upTo max: UInt64
    ) throws {
        for _ in 0..<(random.next() % max) { try edit(context, &random) }
    }

    private func fail(_ context: ManagedObjectContext, _ random: inout SeededRandom) throws {
        note("transaction {")
        var inner = random
        var isRefused = false
        do {
            try context.transaction {
                try edit(context, &inner, upTo: 4)
                if inner.next() % 2 == 0 {
                    note("   advance")
                    context.advance()
                    try edit(context, &inner, upTo: 2)
                }
                throw Refused()
            }
        } catch is Refused { isRefused = true }
        note("} throws")
        if !isRefused { throw Violation("a transaction passed over what was thrown") }
    }

    private func makeBranch(of context: ManagedObjectContext) throws {
        let branch = try context.branch()
        branch.undoLimit = 5
        branches.append(branch)
    }

    private func editBranch(_ random: inout SeededRandom) throws {
        guard let branch = branches.last else { return }
        note("in branch \(branches.count - 1):")
        try branch.withUndoGroup { try edit(branch, &random, upTo: 4) }
        if random.next() % 4 == 0 {
            note("branch \(branches.count) of branch \(branches.count - 1)")
            try makeBranch(of: branch)
        }
    }

    private func endBranch(_ random: inout SeededRandom) throws {
        guard let branch = branches.last else { return }
        note("branch \(branches.count - 1):")
        switch random.next() % 6 {
        case 0:
            note("advance")
            branch.advance()
        case 1:
            note("rollback")
            branch.rollback()
        case 2:
            note("undo")
            try branch.undo()
        default:
            branches.removeLast()
            let place = Int(random.next() % 3)
            note("merge, \(["error", "branchWins", "parentWins"][place])")
            let policies: [BranchMergePolicy] = [.error, .branchWins, .parentWins]
            do { try branch.mergeIntoParent(policies[place]) } catch let error as StoreError {
                note("   \(error.code)")
                guard [.conflict, .deleteDenied].contains(error.code) else { throw error }
                return
            }
            try sound(branch, "the branch")
            if branch.hasChanges { throw Violation("a merged branch has changes") }
        }
    }

    private func save(_ context: ManagedObjectContext, _ random: inout SeededRandom) throws {
        let all: [(String, MergePolicy)] = [
            ("error", .error), ("overwrite", .overwrite), ("rollback", .rollback),
            ("objectWins", .objectWinsByProperty), ("storeWins", .storeWinsByProperty),
        ]
        let (name, policy) = all[Int(random.next() % 5)]
        note("save, \(name)")
        do { try context.save(mergePolicy: policy) } catch let error as StoreError {
            note("   \(error.code)")
            guard [.conflict, .deleteDenied, .notUnique].contains(error.code) else {
                if refuses(error, context) { return }
                throw error
            }
            if error.code == .deleteDenied || random.next() % 2 == 0 {
                note("   rollback")
                context.rollback()
            }
        }
    }

    /// Whether a save is refused for an edit that could not be.
    func refuses(_ error: StoreError, _ context: ManagedObjectContext) -> Bool { false }

    func finish() throws {
        var random = SeededRandom(seed: 1)
        for (place, context) in contexts.enumerated() {
            note("context \(place): undo all, redo all")
            while context.canUndo { try context.undo() }
            try check()
            while context.canRedo { try context.redo() }
            try check()
            try save(context, &random)
            try check()
        }
        let report = try StoreObserver.open(disk.location()).verify(level: .normal)
        if let problem = report.problems.first { throw Violation("verify: \(problem)") }
    }

    // MARK: What must hold

    private func check() throws {
        for (place, context) in contexts.enumerated() { try sound(context, "context \(place)") }
        for (place, branch) in branches.enumerated() { try sound(branch, "branch \(place)") }
        try sound(container.newContext(), "a fresh context")
    }

    /// Both sides of every relationship agree, and none leads to what is not there.
    private func sound(_ context: ManagedObjectContext, _ who: String) throws {
        let shown = try ShownGraph(context, access)
        if !context.readFailures.isEmpty {
            throw Violation("\(who): a read failed: \(context.readFailures)")
        }
        var codes: Set<String> = []
        for (id, object) in shown.objects {
            if !context.hasChanges, context.parent == nil, object.values[2] != "nil",
                !codes.insert("\(object.kind)\(object.values[2])").inserted
            {
                throw Violation("\(who): \(object.values[2]) is there twice")
            }
            for relation in ModelRelation.all where relation.owner == object.kind {
                var targets = object.ones[relation.name].map { [$0] } ?? []
                targets += object.lists[relation.name] ?? []
                let place = "\(who): \(names[id] ?? "\(id)").\(relation.name)"
                if Set(targets).count != targets.count { throw Violation("\(place): twice") }
                for target in targets {
                    guard let other = shown.objects[target] else {
                        throw Violation("\(place) leads to what is not there")
                    }
                    guard let back = relation.back else { continue }
                    let returns =
                        back.isMany
                        ? other.lists[back.name]?.contains(id) == true
                        : other.ones[back.name] == id
                    if !returns { throw Violation("\(place) has no other side") }
                }
            }
        }
    }
}
