// The layers `shim` and `call`: one call of a writer's process goes wrong, or is its last.
//
// A seed is a store that another process has left, closed or killed, and a few steps of work on it.
// The calls of that work are counted in a run where nothing goes wrong; each case then picks one of
// them. `shim` does it with a library for LD_PRELOAD, `call` with strace: slower, but the kernel's
// own calls, whoever makes them.

import Foundation
import VarveTesting

/// What goes wrong in one case.
struct Trouble: CustomStringConvertible {
    var description: String
    /// What stands before the program's name.
    var under: [String] = []
    var environment: [String: String] = [:]
    /// Whether the process is killed.
    var kills = false
    /// Whether it goes wrong once: then the process has to get over it.
    var isOnce = false
}

/// A way to make calls go wrong.
protocol Troublemaker {
    /// How the run in which calls are counted is started.
    func counting(_ log: String) -> Trouble
    /// What was counted.
    func counted(_ log: String) throws -> [String]
    /// What may happen to one of the calls counted.
    func trouble(_ calls: [String], _ random: inout SeededRandom) -> Trouble
}

/// A layer that makes calls go wrong.
final class CallLayer: Layer {
    /// Cases that share the store that they begin with.
    static let casesPerStore = 25
    /// Steps of the work that meets trouble.
    static let steps = 12

    private let orders: Orders
    private let tally: Tally
    private let maker: any Troublemaker

    init(_ orders: Orders, _ tally: Tally, _ maker: any Troublemaker) {
        self.orders = orders
        self.tally = tally
        self.maker = maker
    }

    func run() throws {
        var seed = orders.seed
        while tally.cases < orders.cycles, !tally.hasViolations {
            try runStore(seed, most: orders.cycles - tally.cases)
            seed += 1
        }
    }

    private func runStore(_ seed: UInt64, most: Int) throws {
        var random = SeededRandom(seed: seed)
        let folder = try Folder(orders)
        let base = Referee(seed, Place(folder: folder.path))
        let calls: [String]
        do {
            try makeBase(base, folder, &random)
            calls = try count(base, folder)
        } catch let violation as Violation {
            return report(violation, seed, nil, base, folder, nil)
        }
        for number in 0..<min(Self.casesPerStore, most) {
            if let only = orders.only, only != number { continue }
            var chance = random.branch(UInt64(number))
            let trouble = maker.trouble(calls, &chance)
            let copy = try Folder(orders, copying: folder)
            let referee = Referee(copying: base, Place(folder: copy.path))
            referee.note(trouble.description)
            do {
                try meet(trouble, referee, copy, goesOn: chance.next() % 4 == 0)
            } catch let violation as Violation {
                return report(violation, seed, number, referee, copy, trouble)
            }
            tally.count()
            for (text, count) in referee.errors { tally.note("told at \(text)", count) }
        }
        if orders.only != nil { tally.count(orders.cycles - tally.cases) }
    }

    private func report(
        _ violation: Violation,
        _ seed: UInt64,
        _ number: Int?,
        _ referee: Referee,
        _ folder: Folder,
        _ trouble: Trouble?
    ) {
        let again = number.map { "--case \($0)" } ?? "--cycles 1"
        tally.report(
            Finding(
                message: "store \(seed), case \(number ?? 0): \(violation)",
                details: [trouble?.description ?? "before any trouble"]
                    + referee.story.suffix(12) + folder.errorLines,
                again: "\(orders.layer) --seed \(seed) \(again)",
                folder: folder.keep()
            )
        )
    }

    /// The store that the cases begin with: closed, or left by a process that was killed.
    private func makeBase(
        _ referee: Referee,
        _ folder: Folder,
        _ random: inout SeededRandom
    ) throws {
        let steps = 6 + Int(random.next() % 40)
        let isKilled = random.next() % 2 == 0
        let child = try folder.role(
            "writer",
            referee.seed,
            [
                "--writer", "1", "--inline", "--compacts", "--steps",
                isKilled ? "100000" : "\(steps)",
            ]
        )()
        if isKilled {
            while referee.acknowledged < steps, !child.isAtEnd {
                Child.wait(for: [child], milliseconds: 100)
                for line in child.hear() { try referee.hear(line, from: 1) }
            }
            child.signal(SIGKILL)
        }
        try listen(child, referee, expects: isKilled ? [.killed(SIGKILL)] : [.exited(0)])
    }

    private func count(_ base: Referee, _ folder: Folder) throws -> [String] {
        let copy = try Folder(orders, copying: folder)
        let log = "\(copy.path).calls"
        defer { try? FileManager.default.removeItem(atPath: log) }
        let referee = Referee(copying: base, Place(folder: copy.path))
        let child = try start(maker.counting(log), referee.seed, copy)
        try listen(child, referee, expects: [.exited(0)])
        try referee.look()
        let calls = try maker.counted(log)
        if calls.count < 20 { throw Skip("the calls of a process cannot be counted here") }
        return calls
    }

    private func start(_ trouble: Trouble, _ seed: UInt64, _ folder: Folder) throws -> Child {
        let more = [
            "--writer", "1", "--inline", "--compacts", "--marks", "--steps", "\(Self.steps)",
        ]
        return try folder.role(
            "writer",
            seed,
            more,
            under: trouble.under,
            environment: trouble.environment
        )()
    }

    private func listen(_ child: Child, _ referee: Referee, expects: [Ending]) throws {
        let start = ContinuousClock.now
        while !child.isAtEnd {
            Child.wait(for: [child], milliseconds: 100)
            for line in child.hear() { try referee.hear(line, from: 1) }
            if ContinuousClock.now - start > .seconds(Group.patience) {
                throw Violation("the process does not come to an end")
            }
        }
        for line in child.hear() { try referee.hear(line, from: 1) }
        let ending = child.wait()
        referee.note("ended with \(ending)")
        if !expects.contains(ending) { throw Violation("the process ended with \(ending)") }
    }

    private func meet(
        _ trouble: Trouble,
        _ referee: Referee,
        _ folder: Folder,
        goesOn: Bool
    ) throws {
        referee.allowsErrors = !trouble.kills
        let child = try start(trouble, referee.seed, folder)
        var endings: [Ending] = [.exited(0)]
        if trouble.kills {
            endings.append(.killed(SIGKILL))
        } else {
            // Whose close fails says so and ends; who meets trouble again and again gives up.
            endings.append(.exited(Writer.closeFailed))
            if !trouble.isOnce { endings.append(.exited(Writer.gaveUp)) }
        }
        try listen(child, referee, expects: endings)
        if case .killed = child.wait() { tally.note("killed", 1) }
        referee.allowsErrors = false
        try referee.look(opensTwice: true)
        guard goesOn else { return }
        let next = try folder.role("writer", referee.seed, ["--writer", "1", "--steps", "4"])()
        try listen(next, referee, expects: [.exited(0)])
        try referee.look()
    }
}

/// Trouble by the library for LD_PRELOAD.
struct Shim: Troublemaker {
    let library: String

    init(_ orders: Orders) throws {
        guard let shim = orders.shim else {
            throw Skip("there is no C compiler for the library, or no LD_PRELOAD")
        }
        library = shim
    }

    private func with(_ values: [String: String], _ description: String) -> Trouble {
        var values = values
        values["LD_PRELOAD"] = library
        return Trouble(description: description, environment: values)
    }

    func counting(_ log: String) -> Trouble { with(["VARVE_SHIM_LOG": log], "counting") }

    func counted(_ log: String) throws -> [String] {
        let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
        return text.map { String($0) }
    }

    private static let kinds = [
        "w": "write", "p": "read", "s": "sync", "t": "truncation", "r": "rename", "u": "removal",
        "d": "making of a folder", "o": "opening",
    ]

    func trouble(_ calls: [String], _ random: inout SeededRandom) -> Trouble {
        func pick<T>(_ from: [T]) -> T { from[Int(random.next() % UInt64(from.count))] }
        // Rare calls as often as frequent ones, half of the time.
        var places = Array(calls.indices)
        if pick([true, false]) {
            let kind = pick(Set(calls).sorted())
            places = places.filter { calls[$0] == kind }
        }
        let place = pick(places)
        let kind = calls[place]
        let name = Self.kinds[kind] ?? kind
        var values = ["VARVE_SHIM_CALL": "\(place + 1)"]
        var actions = ["kill", "kill-after", "fail", "fail", "fail"]
        if kind == "w" { actions += ["kill-half", "short"] }
        if kind == "p" { actions += ["short"] }
        // A rename that is done and reported as failed is not an error that a local disk knows.
        if kind == "s" { actions += ["fail-after"] }
        let action = pick(actions)
        values["VARVE_SHIM_ACTION"] = action
        let place0 = "call \(place + 1) of \(calls.count), a \(name): \(action)"
        if action.hasPrefix("kill") {
            var trouble = with(values, place0)
            trouble.kills = true
            return trouble
        }
        let isOnce = action == "short" || pick([true, true, false])
        values["VARVE_SHIM_TIMES"] = isOnce ? "1" : "0"
        if !isOnce, pick([true, false]) { values["VARVE_SHIM_ANY"] = "1" }
        let errors: [Int32] =
            switch kind {
            case "w": [EIO, ENOSPC, ENOSPC, EFBIG, EDQUOT, EINTR]
            case "s": [EIO, EIO, ENOSPC, EDQUOT]
            case "p": [EIO, EIO, EINTR]
            case "o": [EIO, EACCES, EMFILE, ENOSPC, EROFS]
            case "t": [EIO, EINTR]
            default: [EIO, ENOSPC, EACCES, EROFS]
            }
        // Interrupted for ever is a process that hangs, not a disk.
        let error = pick(isOnce ? errors : errors.filter { $0 != EINTR })
        values["VARVE_SHIM_ERRNO"] = "\(error)"
        let times = isOnce ? "once" : values["VARVE_SHIM_ANY"] == nil ? "for ever" : "for ever, all"
        var trouble = with(values, "\(place0) \(times), \(String(cString: strerror(error)))")
        trouble.isOnce = isOnce
        return trouble
    }
}

/// Trouble by strace.
struct Strace: Troublemaker {
    private let program: String
    private static let calls = [
        "pwrite64", "fdatasync", "fsync", "renameat", "renameat2", "unlinkat", "openat",
        "ftruncate", "mkdirat", "pread64",
    ]

    init() throws {
        guard let found = findProgram("strace") else { throw Skip("strace is not installed") }
        program = found
    }

    func counting(_ log: String) -> Trouble {
        let all = (Self.calls + ["access", "faccessat"]).map { "?\($0)" }.joined(separator: ",")
        return Trouble(
            description: "counting",
            under: [program, "-qq", "-f", "-o", log, "-e", "trace=\(all)", "-e", "signal=none"]
        )
    }

    /// Kinds of call with their number in the whole process: strace counts from its beginning, and
    /// each thread for itself. The main thread's count.
    func counted(_ log: String) throws -> [String] {
        let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
        var main: Substring?
        var hasBegun = false
        var numbers: [String: Int] = [:]
        var calls: [String] = []
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
            guard words.count == 2 else { continue }
            main = main ?? words[0]
            guard words[0] == main, let end = words[1].firstIndex(of: "(") else { continue }
            let name = String(words[1][..<end]).trimmingCharacters(in: .whitespaces)
            if name.hasSuffix("access") || name == "faccessat" {
                if words[1].contains("varve-work-begins") { hasBegun = true }
                continue
            }
            numbers[name, default: 0] += 1
            if hasBegun { calls.append("\(name) \(numbers[name] ?? 0)") }
        }
        return calls
    }

    func trouble(_ calls: [String], _ random: inout SeededRandom) -> Trouble {
        func pick<T>(_ from: [T]) -> T { from[Int(random.next() % UInt64(from.count))] }
        var places = calls
        func kind(_ call: String) -> String { String(call.prefix { $0 != " " }) }
        if pick([true, false]) {
            let wanted = pick(Set(calls.map(kind)).sorted())
            places = places.filter { kind($0) == wanted }
        }
        let call = pick(places)
        let name = kind(call)
        let number = call.dropFirst(name.count + 1)
        let kills = pick([true, true, false, false, false])
        let isOnce = pick([true, true, false])
        let error =
            switch name {
            case "pwrite64": pick(["EIO", "ENOSPC", "ENOSPC", "EFBIG"])
            case "fdatasync", "fsync": pick(["EIO", "EIO", "ENOSPC", "EDQUOT"])
            case "pread64", "ftruncate": "EIO"
            case "openat": pick(["EIO", "EACCES", "EMFILE"])
            default: pick(["EIO", "ENOSPC", "EACCES"])
            }
        let what =
            kills
            ? "signal=SIGKILL:when=\(number)"
            : "error=\(error):when=\(number)\(isOnce ? "" : "+")"
        return Trouble(
            description: "\(name), call \(number): \(what)",
            under: [
                program, "-qq", "-f", "-o", "/dev/null", "-e", "trace=\(name)", "-e",
                "signal=none", "-e", "inject=\(name):\(what)",
            ],
            kills: kills,
            isOnce: isOnce
        )
    }
}

/// A program's path, looked for as the shell does.
func findProgram(_ name: String) -> String? {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    // Tools of an administrator are not in everybody's path.
    for folder in (path + ":/usr/sbin:/sbin").split(separator: ":") {
        let candidate = "\(folder)/\(name)"
        if access(candidate, X_OK) == 0 { return candidate }
    }
    return nil
}
