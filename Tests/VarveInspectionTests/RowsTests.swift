// Rows, filters and objects as the tool asks for them.

import Foundation
import Testing

@testable import VarveInspection

@Suite struct RowsTests {
    @Test func `Rows come with their columns, filtered, sorted and counted`() throws {
        let observer = try Sample().observer()
        var request = RowsRequest(entity: "Book")
        request.filter = "year >= 1980 && title.hasPrefix(\"Volume 3\")"
        request.sort = ["-year"]
        request.columns = ["title", "year", "author"]
        request.limit = 2
        let report = try observer.rows(request)
        #expect(report.columns == ["title", "year", "author"])
        #expect(report.matching == 8)
        #expect(
            report.rows.map(\.values) == [
                [.text("Volume 39"), .int(1989), .reference("Author:5")],
                [.text("Volume 37"), .int(1987), .reference("Author:3")],
            ],
            "\(report)"
        )
    }

    @Test(arguments: [
        ("title == 'Solaris'", 1), ("title = \"Solaris\"", 1), ("year == null", 6),
        ("year != nil && year < 1953", 2), ("title.contains(\"SEA\", ignoringCase: true)", 1),
        ("author.name == \"Lem\"", 8), ("author == Author:2", 8), ("author == 2", 8),
        ("loans.count > 2", 1), ("similar.count == 3", 1), ("cover.length > 4000", 1),
        ("cover != null", 2), ("price >= 40.95", 9), ("id == Book:7", 1),
        ("title.hasSuffix('9')", 4), ("$0.author.name == \"Lem\" || year in ...1952", 10),
        ("!(loans.none { due > 2026-05-01 && !isBack })", 1), ("loans.count { true } > 2", 1),
    ])
    func `A filter finds`(filter: String, count: UInt64) throws {
        var request = RowsRequest(entity: "Book")
        request.filter = filter
        #expect(try Sample().observer().count(request) == count)
    }

    @Test func `Dates need no quotes`() throws {
        var request = RowsRequest(entity: "Loan")
        request.filter = "due > 2026-05-01 && isBack == false"
        #expect(try Sample().observer().count(request) == 1)
    }

    @Test(arguments: [
        ("titel == 'x'", "did you mean title?"), ("author.nam == 'x'", "did you mean name?"),
        ("year == x", "expected a whole number"), ("due", "has no due"),
        ("title.contain('x')", "did you mean contains?"), ("title == 'x", "is missing"),
        ("title == 'x' | year == 1", "expected &&, || or the end"), ("", "expected the name"),
        ("title ==", "expected a text"), ("loans == 1", "loans.any { } or .count"),
        ("title.length == 1", "title has no length"), ("year.contains('1')", "is no text"),
        ("price == 1.2.3", "or the end"), ("author == Book:3", "Author:number"),
        ("title CONTAINS 'x'", "title CONTAINS 'x'\n      ^\npossible: =="),
    ])
    func `A filter that cannot be read says why`(filter: String, expected: String) throws {
        var request = RowsRequest(entity: "Book")
        request.filter = filter
        do {
            _ = try Sample().observer().count(request)
            Issue.record("\(filter) was read")
        } catch let error as InspectionError {
            #expect(error.kind == .badRequest)
            #expect("\(error)".contains(expected), "\(error)")
        }
    }

    @Test func `Unknown names are answered with the nearest one`() throws {
        let observer = try Sample().observer()
        do {
            _ = try observer.rows(RowsRequest(entity: "Bok"))
            Issue.record("found")
        } catch {
            #expect(error.hint == "did you mean Book?")
        }
        do {
            _ = try observer.object("Book:999")
            Issue.record("found")
        } catch {
            #expect(error.kind == .notFound)
        }
    }

    @Test func `An object comes with what it is related to`() throws {
        let observer = try Sample().observer()
        let report = try observer.object("Book:6")
        #expect(report.values.map(\.name) == ["title", "year", "price", "notes", "cover"])
        #expect(report.values[0].value == .text("The Sea, The Sea"))
        #expect(report.values[2].value == .decimal("9.95"))
        let similar = try #require(report.relationships.first { $0.name == "similar" })
        #expect(similar.objects == ["Book:9", "Book:7", "Book:8"])
        let author = try #require(report.relationships.first { $0.name == "author" })
        #expect(author.objects == ["Author:1"])
        let long = try observer.object("Book:9").values[3].value
        #expect(long == .text(String(repeating: "A long story. ", count: 300)))
        #expect(try observer.object("Book:10").values[3].value.text().contains("\\u{1B}[31m"))
    }

    @Test func `A blob's bytes can be taken out`() throws {
        let sample = try Sample()
        let observer = try sample.observer()
        var count = 0
        try observer.blob(of: "Book:8", "cover") { count += $0.count }
        #expect(count == 20_000)
        #expect(throws: InspectionError.self) { try observer.blob(of: "Book:6", "cover") { _ in } }
        #expect(throws: InspectionError.self) { try observer.blob(of: "Book:6", "title") { _ in } }
    }
}
