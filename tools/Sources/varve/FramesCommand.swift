// varve frames: where the bytes of the file go.

import ArgumentParser
import VarveInspection

struct Frames: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "The map of the file: what is live, dead, void, zeros or damaged.",
        discussion: """
            On a terminal a map and a table by kind; piped or with --list one line per frame. \
            L is needed by the newest commit, x is superseded, v a torn write that counts for \
            nothing, . room behind the log, ! damaged.
            """
    )

    @OptionGroup var common: CommonOptions

    @Flag(help: "One line per frame.") var list = false
    @Flag(help: "Bytes by kind and class.") var table = false
    @Option(
        name: .customLong("class"),
        help: "Only frames of this class: live, dead, void, zeros or damaged.",
        transform: { text in
            guard let value = FrameClass(rawValue: text) else {
                throw ValidationError("\(text) is no class of frames")
            }
            return value
        }
    )
    var wantedClass: FrameClass?

    func run() throws {
        let observer = try StoreObserver.open(common.store)
        let style = common.style
        let isList = common.json || list || (!style.isTerminal && !table)
        var map = FrameMap(
            fileBytes: try observer.info().fileBytes,
            cells: max(20, min(style.width - 1, 200))
        )
        var totals = Totals()
        var rows: [[String]] = []
        try observer.frames { entry in
            map.add(entry)
            totals.add(entry)
            if let wanted = wantedClass, wanted != entry.classification { return true }
            if common.json {
                Output.line(entry.json.text)
            } else if isList {
                rows.append(Self.row(entry))
            }
            return true
        }
        if !common.json {
            if isList {
                Output.table(
                    ["place", "bytes", "class", "what", "entries", "commit"],
                    rows,
                    right: [1, 4],
                    style
                )
            }
            if !isList { printMap(map, totals, style) }
            if table || !isList { printTable(totals, style) }
        }
        if totals.frames[.damaged] != nil { throw ExitStatus.found.code }
    }

    private static func row(_ entry: FrameEntry) -> [String] {
        [
            Spelling.place(entry.place), "\(entry.bytes)", entry.classification.rawValue,
            Spelling.escaped(entry.what), entry.entries.map { "\($0)" } ?? "-",
            entry.commit.map { Spelling.commit($0) } ?? "-",
        ]
    }

    private func printMap(_ map: FrameMap, _ totals: Totals, _ style: Style) {
        if style.isTerminal { Output.error("one letter is \(Spelling.size(map.cellBytes))") }
        Output.line(map.letters)
        let parts = FrameClass.allCases.compactMap { kind -> String? in
            guard let bytes = totals.bytes[kind], bytes > 0 else { return nil }
            let percent = Double(bytes) * 100 / Double(max(totals.all, 1))
            let rounded = Int(percent.rounded())
            let share = rounded == 0 ? "<1 %" : "\(rounded) %"
            return "\(kind.letter) \(kind.rawValue) \(Spelling.size(bytes)) (\(share))"
        }
        Output.line(parts.joined(separator: "   "))
    }

    private func printTable(_ totals: Totals, _ style: Style) {
        let classes: [FrameClass] = [.live, .dead, .void, .zeros, .damaged]
        func size(_ bytes: UInt64) -> String {
            style.isTerminal ? (bytes == 0 ? "-" : Spelling.size(bytes)) : "\(bytes)"
        }
        Output.table(
            ["kind", "frames", "all"] + classes.map(\.rawValue),
            totals.kinds.map { kind in
                let sums = totals.byKind[kind] ?? [:]
                let all = sums.values.reduce(0, +)
                return [kind, "\(totals.framesByKind[kind] ?? 0)", size(all)]
                    + classes.map { size(sums[$0] ?? 0) }
            },
            right: [1, 2, 3, 4, 5, 6, 7],
            style
        )
    }

    /// Sums by class and kind.
    private struct Totals {
        var all: UInt64 = 0
        var bytes: [FrameClass: UInt64] = [:]
        var frames: [FrameClass: Int] = [:]
        var byKind: [String: [FrameClass: UInt64]] = [:]
        var framesByKind: [String: Int] = [:]
        var kinds: [String] = []

        mutating func add(_ entry: FrameEntry) {
            let kind =
                switch entry.kind {
                case "PAGE": entry.level == 0 ? "leaves" : "inner pages"
                case "VALUE": "values"
                case "HEADER": "file header"
                case "ZEROS": "zeros"
                case "GAP": "no frame"
                default: entry.kind
                }
            if byKind[kind] == nil { kinds.append(kind) }
            all += entry.bytes
            bytes[entry.classification, default: 0] += entry.bytes
            frames[entry.classification, default: 0] += 1
            byKind[kind, default: [:]][entry.classification, default: 0] += entry.bytes
            framesByKind[kind, default: 0] += 1
        }
    }
}
