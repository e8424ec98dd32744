// varve page: one frame decoded.

import ArgumentParser
import VarveInspection

struct Page: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "One frame decoded: header, commit record, operations or entries."
    )

    @OptionGroup var common: CommonOptions

    @Argument(help: "Where it begins: p@1f40, as the other commands print it.")
    var place: String

    @Flag(help: "All operations or entries, not the first 20.") var all = false
    @Flag(help: "The frame's bytes in hex.") var hex = false

    func run() throws {
        guard let offset = Spelling.offset(place) else {
            throw ValidationError("\(place) is no place; one is written as p@1f40")
        }
        let observer = try StoreObserver.open(common.store)
        let report = try observer.frame(at: offset, limit: all ? .max : 20)
        if common.json {
            Output.line(report.json.text)
        } else {
            print(report)
        }
        if hex && !common.json { Self.printHex(report.bytes, at: offset) }
        if !report.isPayloadSound || report.problem != nil { throw ExitStatus.found.code }
    }

    private func print(_ report: FrameReport) {
        let style = common.style
        let entry = report.entry
        let compressed = report.isCompressed ? ", LZ4, \(report.rawLength) raw" : ""
        Output.line(
            style.bold(Spelling.place(entry.place))
                + "  \(Spelling.escaped(entry.what))  \(entry.bytes) bytes\(compressed)  "
                + entry.classification.rawValue
        )
        func word(_ isSound: Bool) -> String { isSound ? style.green("ok") : style.red("WRONG") }
        Output.line(
            "header hash \(word(true))   payload hash \(word(report.isPayloadSound))   tail word "
                + word(report.isTailSound)
        )
        Output.line("previous commit \(Spelling.place(report.previousCommit))")
        for fact in report.facts {
            let text: String =
                if case .string(let string) = fact.value { Spelling.escaped(string) } else {
                    fact.value.text
                }
            Output.line("\(fact.name.padding(toWidth: 15)) \(text)")
        }
        if !report.isPayloadSound {
            Output.line(style.red("what is said above of tree and commit is a hint only"))
        }
        for line in report.lines { Output.line("  " + line) }
        if report.lineCount > report.lines.count {
            Output.error("\(report.lineCount - report.lines.count) more; --all shows them")
        }
        if let problem = report.problem { Output.line(style.red("cannot be read: \(problem)")) }
    }

    private static func printHex(_ bytes: [UInt8], at offset: UInt64) {
        for start in stride(from: 0, to: bytes.count, by: 16) {
            let row = bytes[start..<min(start + 16, bytes.count)]
            let hex = row.map { byte in
                let digits = String(byte, radix: 16)
                return digits.count == 1 ? "0" + digits : digits
            }.joined(separator: " ")
            let text = row.map { (0x20..<0x7F).contains($0) ? Character(UnicodeScalar($0)) : "." }
            let place = String(offset + UInt64(start), radix: 16)
            let zeros = String(repeating: "0", count: max(0, 10 - place.count))
            Output.line("\(zeros)\(place)  \(hex.padding(toWidth: 47))  \(String(text))")
        }
    }
}
