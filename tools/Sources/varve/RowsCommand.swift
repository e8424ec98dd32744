// varve rows and varve get: the data.

import ArgumentParser
import VarveInspection

struct Rows: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Rows of an entity, filtered and sorted.",
        discussion: """
            A filter is written as in Swift: year > 1990 && title.contains("sea"). \
            &&, || and ! join; == != < <= > >= compare; year in 1980..<1990, or in [1980, 1982]. \
            Texts: hasPrefix, hasSuffix, contains, equals, each with , ignoringCase: true. \
            Paths through to-one relationships: author.name == "Lem"; through to-many ones: \
            loans.any { isBack }, all, none, loans.count > 2. Also cover.length > 4096, \
            id == Book:7, author == Author:2, due > 2026-05-01, due.year(in: "UTC") == 2026.
            """
    )

    @OptionGroup var common: CommonOptions

    @Argument(help: "The entity.") var entity: String

    @Option(
        name: .customLong("where"),
        help: "Only rows that fit, as in 'year > 1990 && title.contains(\"sea\")'."
    )
    var filter: String?
    @Option(
        help:
            "Properties, separated by commas, '-' in front for high to low: --sort=-year,title."
    )
    var sort: String?
    @Option(help: "Only these columns, separated by commas.") var columns: String?
    @Option(help: "At most so many rows; 50 on a terminal, all when piped.") var limit: Int?
    @Option(help: "Leaves out so many at the beginning.") var offset = 0
    @Flag(help: "Only how many rows fit.") var count = false

    func run() throws {
        let observer = try StoreObserver.open(common.store)
        let style = common.style
        var request = RowsRequest(entity: entity)
        request.filter = filter
        request.sort = Self.list(sort)
        request.columns = Self.list(columns)
        request.limit = limit ?? (style.isTerminal && !common.json ? 50 : nil)
        request.offset = offset
        if count {
            let number = try observer.count(request)
            Output.line(
                common.json
                    ? JSON.members([("format", .int(1)), ("count", .uint(number))]).text
                    : "\(number)"
            )
        } else {
            let report = try observer.rows(request)
            if common.json {
                for index in report.rows.indices { Output.line(report.json(index).text) }
            } else {
                Output.table(
                    ["object"] + report.columns.map { Spelling.escaped($0) },
                    report.rows.map { row in
                        [row.object]
                            + row.values.map { $0.text(limit: style.isTerminal ? 40 : .max) }
                    },
                    style
                )
            }
            if UInt64(report.rows.count) + report.unreadable < report.matching {
                Output.error("\(report.rows.count) of \(report.matching) rows (--limit, --offset)")
            }
            if report.unreadable > 0 {
                Output.error("\(report.unreadable) rows cannot be read; varve verify says where")
                throw ExitStatus.incomplete.code
            }
            let isUnreadable = report.rows.contains { row in
                row.values.contains { if case .unreadable = $0 { true } else { false } }
            }
            if isUnreadable {
                Output.error("some values could not be read")
                throw ExitStatus.incomplete.code
            }
        }
        try warn(observer)
    }

    private static func list(_ text: String?) -> [String] {
        (text ?? "").split(separator: ",").map { word in
            String(word.drop { $0 == " " })
        }
    }
}

struct Get: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "One object, with what it is related to.",
        discussion:
            "With --blob the bytes of one blob go to stdout: varve get S Book:7 --blob cover > file"
    )

    @OptionGroup var common: CommonOptions

    @Argument(help: "The object: Book:1042.") var object: String

    @Option(help: "Write the bytes of this blob attribute to stdout.") var blob: String?

    func run() throws {
        let observer = try StoreObserver.open(common.store)
        if let blob {
            try observer.blob(of: object, blob) { Output.bytes($0) }
        } else {
            let report = try observer.object(object)
            if common.json { Output.line(report.json.text) } else { print(report) }
        }
        try warn(observer)
    }

    private func print(_ report: ObjectReport) {
        let names = report.values.map(\.name) + report.relationships.map(\.name)
        let width = names.map(\.count).max() ?? 0
        Output.line(
            common.style.bold(report.object)
                + "  last changed by \(Spelling.commit(report.version))"
        )
        let limit = common.style.isTerminal ? 400 : Int.max
        for field in report.values {
            let name = Spelling.escaped(field.name).padding(toWidth: width)
            Output.line("  \(name)  \(field.value.text(limit: limit))")
        }
        for relationship in report.relationships {
            let name = Spelling.escaped(relationship.name).padding(toWidth: width)
            var text = relationship.objects.joined(separator: ", ")
            if relationship.count > relationship.objects.count { text += ", …" }
            if relationship.isToMany { text = "\(relationship.count)  \(text)" }
            Output.line("  \(name)  -> \(text.isEmpty ? "-" : text)")
        }
    }
}

/// Says that the rows shown are not those of the newest commit, and ends with 2.
private func warn(_ observer: StoreObserver) throws {
    guard let damage = observer.damage else { return }
    let shown = observer.shownCommit.map { Spelling.commit($0) } ?? "none"
    Output.error("this is commit \(shown), not the newest one: \(damage.message)")
    throw ExitStatus.incomplete.code
}
