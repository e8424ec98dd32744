// The program `crash-processes`: its arguments, and which layer or role it plays.

import Foundation
import VarveTesting

@main
struct CrashProcesses {
    static let help = """
        usage: tools/crashtest/processes LAYER [--cycles N] [--seed S] [--json]

        Attacks stores on real file systems with real processes. Exit 0: no violation; 1: one, or
        fewer cases than asked for; 77: the machine does not allow the layer.

        kill        writers, readers and one that compacts, killed at any moment
        shim        one call of a writer goes wrong, or is its last, by a library for LD_PRELOAD
        call        the same by strace
        full        a disk that is full, a limit on the size of files, missing rights
        powercut    a file system in a file, cut off; --fs ext4 or xfs
        migrate     a process that migrates a store of objects and blobs, killed at any moment

        --cycles N  so many cases; 200 without it
        --seed S    the first seed; 1 without it
        --json      one line: layer, cases, casesPerSecond, violations, seed
        --case N    only this case of the seed (shim, call)
        --in PATH   where the stores are made; the folder for temporary files without it
        """

    static func main() {
        // A child that died while it was told something is seen by its end.
        signal(SIGPIPE, SIG_IGN)
        var words = CommandLine.arguments.dropFirst()[...]
        if words.first == "--role" { exit(play(words)) }
        var orders = Orders()
        orders.program = program
        var isJSON = false
        orders.layer = words.popFirst() ?? ""
        while let word = words.popFirst() {
            var isFine = true
            switch word {
            case "--json": isJSON = true
            case "--cycles": isFine = take(&words, &orders.cycles) { Int($0) }
            case "--seed": isFine = take(&words, &orders.seed) { UInt64($0) }
            case "--case": isFine = take(&words, &orders.only) { Int($0) }
            case "--fs": isFine = take(&words, &orders.fileSystem) { $0 }
            case "--in": isFine = take(&words, &orders.parent) { $0 }
            case "--shim": isFine = take(&words, &orders.shim) { $0 }
            default: isFine = false
            }
            if !isFine { complain("\(word) is not understood") }
        }
        let tally = Tally()
        let name = orders.layer
        do {
            guard let layer = try layer(orders, tally) else { complain("no layer \(name)") }
            try layer.run()
        } catch let skip as Skip {
            print(
                isJSON
                    ? "{\"layer\":\"\(name)\",\"skipped\":\"\(skip.reason)\"}"
                    : "SKIPPED \(name): \(skip.reason)"
            )
            exit(77)
        } catch {
            FileHandle.standardError.write(Data("\(name): \(error)\n".utf8))
            exit(70)
        }
        isJSON ? tally.printJSON(orders, name) : tally.printText(orders, name)
        exit(tally.hasViolations || tally.cases < orders.cycles ? 1 : 0)
    }

    private static func layer(_ orders: Orders, _ tally: Tally) throws -> (any Layer)? {
        switch orders.layer {
        case "kill": KillLayer(orders, tally)
        case "shim": CallLayer(orders, tally, try Shim(orders))
        case "call": CallLayer(orders, tally, try Strace())
        case "full": FullLayer(orders, tally)
        case "powercut": PowerLayer(orders, tally)
        case "migrate": MigrationLayer(orders, tally)
        default: nil
        }
    }

    private static func take<T>(
        _ words: inout ArraySlice<String>,
        _ value: inout T,
        _ convert: (String) -> T?
    ) -> Bool {
        guard let converted = words.popFirst().flatMap(convert) else { return false }
        value = converted
        return true
    }

    private static func complain(_ text: String) -> Never {
        FileHandle.standardError.write(Data("\(text)\n\(help)\n".utf8))
        exit(64)
    }

    /// The path of this program, for its children.
    private static var program: String {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
            ?? CommandLine.arguments[0]
    }

    /// A child's part.
    private static func play(_ arguments: ArraySlice<String>) -> Int32 {
        var words = arguments.dropFirst()
        let role = words.popFirst() ?? ""
        var orders = RoleOrders()
        var mode = ""
        while let word = words.popFirst() {
            var isFine = true
            switch word {
            case "--folder": isFine = take(&words, &orders.place.folder) { $0 }
            case "--seed": isFine = take(&words, &orders.seed) { UInt64($0) }
            case "--writer": isFine = take(&words, &orders.writer) { UInt64($0) }
            case "--steps": isFine = take(&words, &orders.steps) { Int($0) }
            case "--mode": isFine = take(&words, &mode) { $0 }
            case "--inline": orders.isInline = true
            case "--compacts": orders.compacts = true
            case "--marks": orders.marks = true
            default: isFine = false
            }
            if !isFine { complain("\(word) is not understood") }
        }
        switch role {
        case "writer": return Writer(orders).run()
        case "reader": return Reader.run(orders)
        case "compactor": return Compactor.run(orders)
        case "filler": return FillerRole(orders).run()
        case "probe": return Probe.run(orders, mode)
        case "migrator": return Migrator.run(orders)
        // Whether the program can be started at all.
        case "nothing": return 0
        default: complain("no role \(role)")
        }
    }
}
