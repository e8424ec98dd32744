// varve log: what happened, newest first.

import ArgumentParser
import VarveInspection

struct Log: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Commits, newest first: number, time, author, what changed, form, bytes.",
        discussion: """
            Commits before the newest one are in the file only until a compaction. Deleted rows \
            can be read in them until then.
            """
    )

    @OptionGroup var common: CommonOptions

    @Option(help: "At most so many commits.") var limit: Int?
    @Option(help: "Only commits that changed rows of this entity.") var entity: String?
    @Flag(help: "Also checkpoints, which repeat a state.") var checkpoints = false

    func validate() throws {
        if let limit, limit < 0 { throw ValidationError("--limit must not be negative") }
    }

    func run() throws {
        let observer = try StoreObserver.open(common.store)
        let list = try observer.commits(
            limit: limit ?? .max,
            entity: entity,
            includesCheckpoints: checkpoints
        )
        if common.json {
            for commit in list.commits { Output.line(commit.json.text) }
        } else {
            Output.table(
                ["commit", "time", "author", "changes", "form", "bytes", "place"],
                list.commits.map { commit in
                    [
                        Spelling.commit(commit.number), Spelling.time(commit.timeMicroseconds),
                        commit.author.isEmpty ? "-" : Spelling.escaped(commit.author),
                        Self.changes(commit),
                        commit.kind + (commit.isSettle ? " (settle)" : ""),
                        common.style.isTerminal
                            ? Spelling.size(commit.bytes) : "\(commit.bytes)",
                        Spelling.place(commit.place),
                    ]
                },
                right: [5],
                common.style
            )
        }
        if list.isCut { Output.error("older commits are left out (--limit)") }
        if let damage = observer.damage {
            Output.error("newer commits may be missing here: \(damage.message)")
            throw ExitStatus.incomplete.code
        }
        if let place = list.brokenAt {
            Output.error(
                "older commits cannot be reached: the frame at \(Spelling.place(place)) is damaged"
            )
            throw ExitStatus.incomplete.code
        }
    }

    /// "+61 Loan ~4 Book -1 Author"
    static func changes(_ commit: CommitReport) -> String {
        var parts: [String] = []
        for change in commit.changes {
            let counts = [("+", change.added), ("~", change.changed), ("-", change.deleted)]
            let text = counts.filter { $0.1 > 0 }.map { "\($0.0)\($0.1)" }.joined(separator: " ")
            parts.append("\(text) \(Spelling.escaped(change.entity))")
        }
        return parts.isEmpty ? "-" : parts.joined(separator: "  ")
    }
}
