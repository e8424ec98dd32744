// varve info: what is this file, and does it open.

import ArgumentParser
import VarveInspection

struct Info: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "One screen: format, newest commit, sizes, entities, damage met while opening."
    )

    @OptionGroup var common: CommonOptions

    @Flag(help: "Instead: the counters of the process that has the store open, if it keeps any.")
    var live = false

    func run() throws {
        if live { return try printLive() }
        let info = try StoreObserver.open(common.store).info()
        if common.json {
            Output.line(info.json.text)
        } else {
            for (name, text) in Self.lines(info) {
                let label = name.padding(toWidth: 14)
                let isDamage = name == "damage" && !info.damage.isEmpty
                let style = common.style
                Output.line(style.bold(label) + "  " + (isDamage ? style.red(text) : text))
            }
        }
        if !info.damage.isEmpty { throw ExitStatus.found.code }
    }

    private func printLive() throws {
        let report = try LiveReport.read(common.store)
        if common.json {
            Output.line(report.json.text)
            return
        }
        for (name, text) in Self.lines(report) {
            Output.line(common.style.bold(name.padding(toWidth: 24)) + "  " + text)
        }
    }

    static func lines(_ report: LiveReport) -> [(String, String)] {
        [
            ("process", "\(report.processID)\(report.isClosed ? ", which closed the store" : "")"),
            ("file ID", report.fileID),
            ("opened", Spelling.time(report.openedMicroseconds)),
            ("written", Spelling.time(report.writtenMicroseconds)),
        ] + report.counters.map { ($0.name, Spelling.number($0.value)) }
    }

    static func lines(_ info: StoreInfo) -> [(String, String)] {
        var lines: [(String, String)] = [
            ("store", Spelling.escaped(info.path)),
            (
                "format",
                "\(info.formatVersion) (reader needs \(info.readerNeeds), writer needs "
                    + "\(info.writerNeeds))"
            ), ("store ID", info.storeID),
            ("file ID", "\(info.fileID), generation \(info.generation)"),
            (
                "created",
                Spelling.time(info.createdMicroseconds)
                    + " by \"\(Spelling.escaped(info.creator))\""
            ),
            ("schema", info.schemaVersion.map { "version \($0)" } ?? "none yet"),
        ]
        if let newest = info.newest {
            lines.append(("newest commit", commit(newest)))
            if !info.isNewestProven {
                lines.append(("", "unproven: nothing behind it says that it was synced"))
            }
        } else {
            lines.append(("newest commit", "none"))
        }
        if let checkpoint = info.checkpoint {
            lines.append(
                (
                    "checkpoint",
                    "\(Spelling.commit(checkpoint.number)) at \(Spelling.place(checkpoint.place)); "
                        + "\(info.replayedCommits) commits after it "
                        + "(\(Spelling.size(info.replayedBytes)))"
                )
            )
        }
        let used = info.fileBytes - min(info.fileBytes, info.tailZeros)
        lines += [
            ("closed", info.isClosed ? "yes" : "no: a writer has it open, or did not close it"),
            (
                "file",
                "\(Spelling.size(info.fileBytes)) = \(Spelling.size(used)) log + "
                    + "\(Spelling.size(info.tailZeros)) zeros; the newest commit needs about "
                    + Spelling.size(min(info.liveBytes, used))
            ),
            ("blobs", "\(Spelling.number(info.blobs)), \(Spelling.size(info.blobBytes))"),
        ]
        for (index, entity) in info.entities.enumerated() {
            lines.append(
                (
                    index == 0 ? "entities" : "",
                    "\(Spelling.escaped(entity.name))  \(Spelling.number(entity.rows))"
                )
            )
        }
        for (index, text) in info.damage.enumerated() {
            lines.append((index == 0 ? "damage" : "", text))
        }
        if info.damage.isEmpty {
            lines.append(("damage", "none met while opening. A full check: varve verify"))
        }
        return lines
    }

    private static func commit(_ commit: StoreInfo.Commit) -> String {
        let author = commit.author.isEmpty ? "" : " \"\(Spelling.escaped(commit.author))\""
        return
            "\(Spelling.commit(commit.number))  "
            + "\(Spelling.time(commit.timeMicroseconds))\(author)  "
            + "\(commit.kind), \(Spelling.size(commit.bytes)) at \(Spelling.place(commit.place))"
    }
}

extension String {
    /// The text with spaces behind it.
    func padding(toWidth width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}
