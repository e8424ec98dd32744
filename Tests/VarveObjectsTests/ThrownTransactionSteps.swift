// Steps of the worlds of transactions that throw: what they say, and how chance picks them.

import VarveTesting

/// An edit. Numbers are places of objects; the last places of each kind begin empty.
enum ThrownEdit: CustomStringConvertible {
    case title(Int, Int), number(Int, Int), serial(Int, Int?), caption(Int, Int), name(Int, Int)
    case folder(Int, Int?), picture(Int, Int?), tag(Int, Int), untag(Int, Int)
    case data(Int, Int), sameData(Int, Int), insert(Int, Int), delete(Int, Int)

    static let kinds = ["item", "picture", "folder", "tag"]

    var description: String {
        func text(_ place: Int?) -> String { place.map { "\($0)" } ?? "nil" }
        return switch self {
        case .title(let at, let value): "item\(at).title = \(value)"
        case .number(let at, let value): "item\(at).number = \(value)"
        case .serial(let at, let value): "item\(at).serial = \(text(value))"
        case .caption(let at, let value): "picture\(at).caption = \(value)"
        case .name(let at, let value): "folder\(at).name = \(value)"
        case .folder(let at, let to): "item\(at).folder = \(text(to))"
        case .picture(let at, let to): "item\(at).picture = \(text(to))"
        case .tag(let at, let to): "item\(at).tags += \(to)"
        case .untag(let at, let to): "item\(at).tags -= \(to)"
        case .data(let at, let value): "picture\(at).data = \(value)"
        case .sameData(let at, let from): "picture\(at).data = picture\(from).data"
        case .insert(let kind, let at): "insert \(Self.kinds[kind])\(at)"
        case .delete(let kind, let at): "delete \(Self.kinds[kind])\(at)"
        }
    }
}

/// A step of a world.
indirect enum ThrownStep: CustomStringConvertible {
    case edit([ThrownEdit])
    /// The same, as one step to undo.
    case group([ThrownEdit])
    /// Another context makes the edits and saves them.
    case others([ThrownEdit])
    /// Below a branch, its parent is edited.
    case above([ThrownEdit])
    case advance, compact, refresh, rollback, undo, redo
    /// A transaction that throws; the twin leaves its edits out.
    case thrown([ThrownStep])
    /// A transaction that does not throw.
    case kept([ThrownStep])
    /// A branch, and the number of the policy that merges it; nil: it is dropped.
    case branch([ThrownStep], Int?)
    case save(Int)

    var description: String {
        func block(_ name: String, _ steps: [ThrownStep], _ end: String = "") -> String {
            let lines = steps.flatMap { "\($0)".split(separator: "\n") }.map { "    \($0)\n" }
            return "\(name) {\n\(lines.joined())}\(end)"
        }
        func line(_ name: String, _ edits: [ThrownEdit]) -> String {
            "\(name): " + edits.map { "\($0)" }.joined(separator: "; ")
        }
        return switch self {
        case .edit(let edits): line("edit", edits)
        case .group(let edits): line("group", edits)
        case .others(let edits): line("others", edits)
        case .above(let edits): line("above", edits)
        case .advance: "advance"
        case .compact: "compact"
        case .refresh: "refresh"
        case .rollback: "rollback"
        case .undo: "undo"
        case .redo: "redo"
        case .thrown(let steps): block("thrown", steps)
        case .kept(let steps): block("kept", steps)
        case .branch(let steps, let policy):
            block("branch", steps, policy.map { " merge \($0)" } ?? " drop")
        case .save(let policy): "save \(policy)"
        }
    }
}

/// Picks steps.
struct ThrownChance {
    private var random: SeededRandom
    /// Whether this context deletes and inserts; others do in any case.
    private let changesWhatIsThere: Bool

    init(seed: UInt64) {
        random = SeededRandom(seed: seed)
        changesWhatIsThere = seed % 2 == 0
    }

    private mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    /// The places that begin full are picked more often.
    private mutating func place() -> Int {
        below(changesWhatIsThere ? 4 : 3) < 3 ? below(ThrownWorld.full) : below(ThrownWorld.places)
    }

    private mutating func maybe() -> Int? { below(2) == 0 ? place() : nil }

    private mutating func edit(_ mayDelete: Bool) -> ThrownEdit {
        let number = below(9)
        return switch below(mayDelete ? 20 : 15) {
        case 0, 1: .title(place(), number)
        case 2: .number(place(), number)
        case 3: .serial(place(), number < 6 ? number % 3 : nil)
        case 4: .folder(place(), maybe())
        case 5: .tag(place(), place())
        case 6: .untag(place(), place())
        case 7, 8: .data(place(), number)
        case 9: .sameData(place(), place())
        case 10, 11: .caption(place(), number)
        case 12, 13: .picture(place(), maybe())
        case 14: .name(place(), number)
        case 15, 16: .insert(below(4), ThrownWorld.full + below(2))
        default: .delete(below(4), place())
        }
    }

    private mutating func edits(_ mayDelete: Bool) -> [ThrownEdit] {
        var edits: [ThrownEdit] = []
        for _ in 0...below(3) { edits.append(edit(mayDelete)) }
        return edits
    }

    private mutating func mine() -> [ThrownEdit] { edits(changesWhatIsThere) }

    /// A part of a transaction or branch.
    private mutating func part(_ depth: Int, inBranch: Bool) -> ThrownStep {
        switch below(20) {
        case 0...7: .edit(mine())
        case 8...11: .others(edits(true))
        case 12...14: .advance
        case 15: .group(mine())
        case 16: below(6) == 0 ? .rollback : .refresh
        case 17 where depth < 2: .thrown(parts(depth + 1, inBranch: inBranch))
        case 18 where depth < 2: .kept(parts(depth + 1, inBranch: inBranch))
        case 19 where depth < 2 && !inBranch: branch(depth + 1)
        default: .edit(mine())
        }
    }

    private mutating func parts(_ depth: Int, inBranch: Bool) -> [ThrownStep] {
        var parts: [ThrownStep] = []
        for _ in 0...below(4) { parts.append(part(depth, inBranch: inBranch)) }
        return parts
    }

    private mutating func branch(_ depth: Int) -> ThrownStep {
        var steps: [ThrownStep] = []
        for _ in 0...below(3) {
            switch below(4) {
            case 0: steps.append(.thrown(parts(depth + 1, inBranch: true)))
            case 1: steps.append(below(3) == 0 ? .above(mine()) : .edit(mine()))
            default: steps.append(part(depth + 1, inBranch: true))
            }
        }
        return .branch(steps, below(4) == 0 ? nil : below(3))
    }

    /// Others delete an item, and a transaction that throws edits one relationship of it: nothing
    /// but the journal tells of that.
    private mutating func gone() -> [ThrownStep] {
        let at = below(ThrownWorld.full)
        let edit: ThrownEdit =
            switch below(4) {
            case 0: .folder(at, maybe())
            case 1: .picture(at, maybe())
            case 2: .tag(at, place())
            default: .untag(at, at)
            }
        let others = ThrownStep.others([.delete(0, at)])
        return below(2) == 0
            ? [others, .advance, .thrown([.edit([edit])])]
            : [others, .thrown([.edit([edit]), .advance])]
    }

    private mutating func step() -> ThrownStep {
        switch below(24) {
        case 0...3: .edit(mine())
        case 4: .group(mine())
        case 5: .others(edits(true))
        case 6: .advance
        case 7: below(2) == 0 ? .compact : .refresh
        case 8...14: .thrown(parts(0, inBranch: false))
        case 15: .kept(parts(0, inBranch: false))
        case 16: branch(0)
        case 17, 18: .save(below(4))
        case 19: below(2) == 0 ? .rollback : .advance
        case 20, 21: .undo
        case 22: .redo
        default: .edit(mine())
        }
    }

    mutating func steps(_ count: Int) -> [ThrownStep] {
        var steps: [ThrownStep] = []
        for _ in 0..<count {
            if below(12) == 0 { steps += gone() } else { steps.append(step()) }
        }
        return steps
    }
}
