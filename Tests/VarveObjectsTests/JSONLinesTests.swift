// Batches from JSON Lines and async sequences: what arrives, and what is said of lines that cannot.

import Foundation
import Testing
import VarveObjects
import VarveTesting

private struct TownLine: Codable, Sendable {
    var name: String
    var people: Int32?
    var land: String?
}

/// The pieces of an array, one after the other.
private struct Pieces<Element: Sendable>: AsyncSequence, Sendable {
    let all: [Element]
    struct Iterator: AsyncIteratorProtocol {
        var rest: ArraySlice<Element>
        mutating func next() async -> Element? {
            await Task.yield()
            return rest.popFirst()
        }
    }
    func makeAsyncIterator() -> Iterator { Iterator(rest: all[...]) }
}

@Suite(.verified) struct JSONLinesTests {
    private func lands(_ codes: String...) throws -> (PersistentContainer, ManagedObjectContext) {
        let container = try PersistentContainer.inMemory(schema: LandSchema.self)
        let context = container.newContext()
        try context.batchInsert(Land.self, codes) { row, code in row.code = code }
        return (container, context)
    }

    private func failure(_ body: () async throws -> Void) async -> StoreError? {
        do {
            try await body()
            Issue.record("nothing was thrown")
            return nil
        } catch let error as StoreError {
            return error
        } catch {
            Issue.record("not a StoreError: \(error)")
            return nil
        }
    }

    /// A number that no case of an enum has was stored, and nobody could read it.
    @Test func whatIsNoValueOfAPropertyIsRefused() async throws {
        let context = try memory().newContext()
        for (line, isValue) in [
            (#"{"title": "a", "priority": 99}"#, false), (#"{"title": "b", "priority": 2}"#, true),
        ] {
            func insert() async throws {
                let bytes = [Data(line.utf8)]
                try await context.batchInsert(Item.self, jsonLines: Pieces(all: bytes))
            }
            if isValue {
                try await insert()
            } else {
                let error = await failure { try await insert() }
                #expect(error?.code == .invalid && error?.place.attribute == "priority")
                #expect(error?.message.contains("is no value of the property") == true)
            }
        }
        #expect(try context.fetch(Item.all).map(\.priority) == [.high])
    }

    @Test func fieldsBecomePropertiesByName() async throws {
        let (_, context) = try lands("IS", "NO")
        let mark = UUID()
        let text = """
            {"name": "Vík", "people": 318, "land": "IS", "founded": "2020-02-29T12:00:00Z"}
            {"name": "Oslo", "land": {"code": "NO"}, "flag": "AAEC", "price": 0.10, \
            "mark": "\(mark)", "isOld": true, "twins": [{"land": "IS", "name": "Vík"}]}

            {"name": "Nowhere", "land": null, "twins": ["\(mark)"]}
            """
        let result = try await context.batchInsert(
            Town.self,
            jsonLines: Pieces(all: [Data(text.utf8)])
        )
        #expect(result.inserted == 3)
        let all = try context.fetch(Town.all.sorted { [$0.people.descending, $0.name.ascending] })
        #expect(all.map(\.name) == ["Vík", "Nowhere", "Oslo"])
        #expect(all[0].land?.code == "IS" && all[0].founded?.timeIntervalSince1970 == 1_582_977_600)
        #expect(all[2].land?.code == "NO" && all[2].flag == Data([0, 1, 2]))
        #expect(all[2].price == Decimal(string: "0.1") && all[2].mark == mark)
        #expect(Array(all[2].twins) == [all[0]])
        #expect(all[1].land == nil && Array(all[1].twins) == [all[2]])
        // Once more with IDs, which lead to the same.
        let line = """
            {"name": "Bergen", "land": "\(try #require(all[2].land).id.objectID.uri)"}
            """
        try await context.batchInsert(Town.self, jsonLines: Pieces(all: [line]))
        #expect(try context.fetch(Town.where { $0.name == "Bergen" }).first?.land?.code == "NO")
    }

    /// However the input is cut, with a byte order mark and any line ends.
    @Test func anyCutGivesTheSameLines() async throws {
        let lines = [
            "{\"name\":\"é\u{1F1EE}\u{1F1F8}\"}", "", "  ", "{\"name\":\"\\u0000\\n\"}",
            "{\"name\":\"z\"}",
        ]
        for end in ["\n", "\r\n"] {
            for closes in [false, true] {
                let text = "\u{FEFF}" + lines.joined(separator: end) + (closes ? end : "")
                let bytes = Array(text.utf8)
                var random = SeededRandom(seed: 11)
                for cut in [1, 2, 3, 7, 100] {
                    let (_, context) = try lands()
                    var pieces: [[UInt8]] = []
                    var rest = bytes[...]
                    while !rest.isEmpty {
                        let piece = rest.prefix(1 + Int(random.next() % UInt64(cut)))
                        pieces.append(Array(piece))
                        rest = rest.dropFirst(piece.count)
                    }
                    try await context.batchInsert(Town.self, jsonLines: Pieces(all: pieces))
                    let names = try context.fetch(Town.all).map(\.name)
                    #expect(names == ["é\u{1F1EE}\u{1F1F8}", "\u{0}\n", "z"])
                }
                let (_, context) = try lands()
                try await context.batchInsert(Town.self, jsonLines: Pieces(all: bytes))
                #expect(try context.count(Town.all) == 3)
            }
        }
        let (container, context) = try lands()
        let commits = container.statistics.commits
        let none = try await context.batchInsert(Town.self, jsonLines: Pieces(all: [Data]()))
        #expect(none.inserted == 0 && none.commit == nil && container.statistics.commits == commits)
        try await context.batchInsert(Town.self, jsonLines: Pieces(all: ["\u{FEFF}", "\r\n"]))
        #expect(try context.count(Town.all) == 0)
    }

    /// Pieces of 256 KiB ended a commit each, and the lines behind a full one were a short commit.
    @Test(arguments: [0, 1, 7, 1_000, 4_000, 100_000]) func anyCutGivesTheSameCommits(
        cut: Int
    ) async throws {
        let bytes = Array(
            (0..<255).map { "{\"name\":\"town \($0)\"}" }.joined(separator: "\n").utf8
        )
        let pieces =
            cut == 0
            ? [bytes]
            : stride(from: 0, to: bytes.count, by: cut).map { Array(bytes[$0...].prefix(cut)) }
        for (rows, expected) in [(100, [100, 200, 255]), (255, [255]), (1, Array(1...255))] {
            let (_, context) = try lands()
            var options = JSONLinesOptions()
            options.rowsPerCommit = rows
            var told: [Int] = []
            try await context.batchInsert(
                Town.self,
                jsonLines: Pieces(all: pieces),
                options: options,
                progress: { told.append($0.completedRows) }
            )
            #expect(told == expected)
            #expect(try context.count(Town.all) == 255)
        }
    }

    struct Bad: Sendable, CustomStringConvertible {
        let line: String
        let code: StoreError.Code
        let field: String?
        var description: String { line }
    }

    @Test(arguments: [
        Bad(line: "{\"name\":", code: .invalid, field: nil),
        Bad(line: "[1]", code: .invalid, field: nil),
        Bad(line: "{} {}", code: .invalid, field: nil),
        Bad(line: "{\"name\": 1}", code: .invalid, field: "name"),
        Bad(line: "{\"name\": \"a\", \"people\": 2147483648}", code: .invalid, field: "people"),
        Bad(line: "{\"name\": \"a\", \"people\": 1.5}", code: .invalid, field: "people"),
        Bad(line: "{\"name\": \"a\", \"people\": \"1\"}", code: .invalid, field: "people"),
        Bad(line: "{\"name\": \"a\", \"people\": null}", code: .missingValue, field: "people"),
        Bad(line: "{\"people\": 3}", code: .missingValue, field: "name"),
        Bad(line: "{\"name\": \"a\", \"nam\": \"a\"}", code: .invalid, field: "nam"),
        Bad(line: "{\"name\": \"a\", \"founded\": \"soon\"}", code: .invalid, field: "founded"),
        Bad(line: "{\"name\": \"a\", \"flag\": \"%\"}", code: .invalid, field: "flag"),
        Bad(line: "{\"name\": \"a\", \"land\": \"XX\"}", code: .objectNotFound, field: "land"),
        Bad(line: "{\"name\": \"a\", \"land\": {\"area\": 1}}", code: .invalid, field: "land"),
        Bad(line: "{\"name\": \"a\", \"land\": [1]}", code: .invalid, field: "land"),
        Bad(line: "{\"name\": \"a\", \"land\": 7}", code: .invalid, field: "land"),
        Bad(line: "{\"name\": \"a\", \"twins\": 7}", code: .invalid, field: "twins"),
        Bad(line: "{\"name\": \"secret\", \"land\": \"IS\"}", code: .notUnique, field: nil),
    ])
    func aBadLineIsNamed(_ bad: Bad) async throws {
        let (container, context) = try lands("IS")
        let text = "{\"name\": \"secret\", \"land\": \"IS\"}\n\n\(bad.line)\n{\"name\": \"z\"}\n"
        let error = await failure {
            try await context.batchInsert(Town.self, jsonLines: Pieces(all: [Data(text.utf8)]))
        }
        let found = try #require(error)
        #expect(found.code == bad.code)
        #expect(found.message.hasPrefix("line 3: "), "\(found.message)")
        #expect(!"\(found)".contains("secret"))
        if let field = bad.field { #expect(found.place.attribute == field, "\(found)") }
        #expect(found.outcome == .nothingSaved)
        #expect(try container.newContext().count(Town.all) == 0)
        // In commits of one row the first one stands.
        var options = JSONLinesOptions()
        options.rowsPerCommit = 1
        let second = await failure {
            try await context.batchInsert(
                Town.self,
                jsonLines: Pieces(all: [Data(text.utf8)]),
                options: options
            )
        }
        #expect(second?.outcome == .saved && second?.code == bad.code)
        #expect(second?.message.hasPrefix("line 3: ") == true)
        #expect(try container.newContext().count(Town.all) == 1)
    }

    @Test func aLongLineIsRefusedBeforeItIsKept() async throws {
        let (_, context) = try lands()
        var options = JSONLinesOptions()
        options.lineBytesMax = 1_000
        let fits = "{\"name\": \"\(String(repeating: "x", count: 985))\"}"
        #expect(fits.utf8.count <= 1_000)
        try await context.batchInsert(Town.self, jsonLines: Pieces(all: [fits]), options: options)
        let taken = Shared(0)
        let endless = AsyncStream<[UInt8]> {
            taken.withLock { $0 += 1 }
            return [UInt8](repeating: 32, count: 100)
        }
        let error = await failure {
            try await context.batchInsert(Town.self, jsonLines: endless, options: options)
        }
        #expect(error?.code == .invalid && error?.message.hasPrefix("line 1: ") == true)
        #expect(taken.withLock { $0 } == 11)
    }

    @Test func theNamedConstraintDecides() async throws {
        let (container, context) = try lands("IS", "NO")
        let mark = UUID()
        let first = [
            "{\"name\": \"Vík\", \"people\": 318, \"land\": \"IS\", \"mark\": \"\(mark)\"}",
            "{\"name\": \"Oslo\", \"people\": 1, \"land\": \"NO\"}",
        ]
        try await context.batchInsert(Town.self, jsonLines: Pieces(all: first))
        let vik = try #require(try context.fetch(Town.where { $0.name == "Vík" }).first)
        let again = [
            "{\"name\": \"Vík\", \"people\": 400, \"land\": \"IS\"}",
            "{\"name\": \"Oslo\", \"people\": 1, \"land\": \"NO\"}",
            "{\"name\": \"Bergen\", \"people\": 2, \"land\": \"NO\"}",
            "{\"name\": \"Bergen\", \"people\": 3, \"land\": \"NO\"}",
        ]
        let result = try await context.batchInsert(
            Town.self,
            jsonLines: Pieces(all: again),
            onConflict: .upsert(by: \.name, \.land)
        )
        #expect(result.inserted == 1 && result.updated == 2 && result.skipped == 1)
        #expect(vik.people == 400 && vik.mark == mark)
        #expect(try context.count(Town.all) == 3)
        // By the other constraint the object moves to another land, and its inverse follows.
        let moved = "{\"name\": \"Vik\", \"land\": \"NO\", \"mark\": \"\(mark)\"}"
        try await context.batchInsert(
            Town.self,
            jsonLines: Pieces(all: [moved]),
            onConflict: .upsert(by: \.mark)
        )
        #expect(vik.name == "Vik" && vik.land?.code == "NO" && vik.people == 400)
        #expect(vik.land?.towns.count == 3)
        // Whatever the named one does not decide fails.
        let taken = "{\"name\": \"Oslo\", \"land\": \"NO\", \"mark\": \"\(UUID())\"}"
        let error = await failure {
            try await context.batchInsert(
                Town.self,
                jsonLines: Pieces(all: [taken]),
                onConflict: .upsert(by: \.mark)
            )
        }
        #expect(error?.code == .notUnique && error?.message.hasPrefix("line 1: ") == true)
        let ignored = try await context.batchInsert(
            Town.self,
            jsonLines: Pieces(all: [taken, "{\"name\": \"New\"}"]),
            onConflict: .ignore
        )
        #expect(ignored.inserted == 1 && ignored.skipped == 1)
        let none = await failure {
            try await context.batchInsert(
                Town.self,
                jsonLines: Pieces(all: again),
                onConflict: .upsert(by: \.name)
            )
        }
        #expect(none?.code == .invalidRequest)
        #expect(none?.suggestion?.contains("(land, name), (mark)") == true)
        // The same where rows come from a closure.
        let rows = try context.batchInsert(
            Town.self,
            ["Oslo", "Oslo"],
            onConflict: .upsert(by: \.land, \.name)
        ) { row, name in
            row.name = name
            row.land = try row.id(of: Land.self, where: \.code, is: "NO")
            row.people += 5
        }
        #expect(rows.updated == 1 && rows.skipped == 1)
        #expect(try container.newContext().count(Town.all) == 4)
    }

    @Test func linesOfATypeOfTheCallers() async throws {
        let (_, context) = try lands("IS")
        let folder = try TemporaryFolder()
        let file = folder.url.appending(path: "towns.jsonl")
        let encoder = JSONEncoder()
        var bytes = Data()
        for number in 0..<12_000 {
            bytes += try encoder.encode(
                TownLine(name: "town \(number)", people: Int32(number), land: "IS")
            )
            bytes += Data("\n".utf8)
        }
        try bytes.write(to: file)
        var told: [BatchProgress] = []
        let result = try await context.batchInsert(
            Town.self,
            jsonLines: file,
            as: TownLine.self,
            progress: { told.append($0) }
        ) { row, line in
            row.name = line.name
            row.people = line.people ?? 0
            row.land = try line.land.flatMap { try row.id(of: Land.self, where: \.code, is: $0) }
        }
        #expect(result.inserted == 12_000)
        #expect(told.map(\.completedRows).last == 12_000 && told.count >= 3)
        #expect(told.last?.completedBytes == bytes.count && told.last?.totalBytes == bytes.count)
        #expect(try context.fetch(Land.all).first?.towns.count == 12_000)
        let large = await failure {
            try await context.batchInsert(
                Town.self,
                jsonLines: Pieces(all: ["{\"name\": \"a\", \"people\": 3000000000}"]),
                as: TownLine.self
            ) { _, _ in }
        }
        #expect(large?.code == .invalid && large?.message.contains("out of range") == true)
        let none = await failure {
            try await context.batchInsert(
                Town.self,
                jsonLines: Pieces(all: ["{\"people\": 3}"]),
                as: TownLine.self
            ) { _, _ in }
        }
        #expect(none?.message == "line 1: name is missing" && none?.place.attribute == "name")
        let missing = folder.url.appending(path: "none.jsonl")
        await #expect(throws: (any Error).self) {
            try await context.batchInsert(Town.self, jsonLines: missing)
        }
        struct Stop: Error {}
        await #expect(throws: Stop.self) {
            try await context.batchInsert(Town.self, jsonLines: file, as: TownLine.self) { _, _ in
                throw Stop()
            }
        }
    }

    @Test func aCancelledImportKeepsWhatItWrote() async throws {
        let (container, _) = try lands()
        let pieces = Pieces(all: (0..<1_000).map { "{\"name\": \"town \($0)\"}" })
        let task = Task.detached {
            let context = container.newContext()
            var options = JSONLinesOptions()
            options.rowsPerCommit = 10
            try await context.batchInsert(
                Town.self,
                jsonLines: pieces,
                options: options,
                progress: { told in
                    if told.completedRows == 50 {
                        unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                    }
                }
            )
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try container.newContext().count(Town.all) == 50)
    }

    /// As streams do: cancelled, it ends without an error.
    private struct EndsWhenCancelled<Element: Sendable>: AsyncSequence, Sendable {
        let element: Element
        let count: Int
        struct Iterator: AsyncIteratorProtocol {
            let element: Element
            var left: Int
            mutating func next() async -> Element? {
                left -= 1
                if left >= 0 { return element }
                unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                return nil
            }
        }
        func makeAsyncIterator() -> Iterator { Iterator(element: element, left: count) }
    }

    @Test func anInputThatACancellationEndedIsNotComplete() async throws {
        let (container, _) = try lands()
        let values = Task.detached {
            let towns = EndsWhenCancelled(element: "town", count: 10)
            try await container.newContext()
                .batchInsert(Town.self, towns, rowsPerCommit: 10) { $0.name = $1 }
        }
        await #expect(throws: CancellationError.self) { try await values.value }
        #expect(try container.newContext().count(Town.all) == 10)
        let lines = Task.detached {
            // Cut off in the middle of what looks like a whole line.
            let pieces = EndsWhenCancelled(element: "{\"name\": \"village\"}", count: 1)
            try await container.newContext().batchInsert(Town.self, jsonLines: pieces)
        }
        await #expect(throws: CancellationError.self) { try await lines.value }
        #expect(try container.newContext().count(Town.all) == 10)
    }

    @Test func anAsyncSequenceOfValues() async throws {
        let (container, context) = try lands("IS")
        let values = Pieces(
            all: (0..<25).map { TownLine(name: "town \($0)", people: 1, land: nil) }
        )
        var told: [Int] = []
        let result = try await context.batchInsert(
            Town.self,
            values,
            rowsPerCommit: 10,
            progress: { told.append($0.completedRows) }
        ) { row, town in
            row.name = town.name
            row.people = town.people ?? 0
        }
        #expect(result.inserted == 25 && told == [10, 20, 25])
        let error = await failure {
            try await context.batchInsert(Town.self, values, rowsPerCommit: 10) { row, town in
                if town.name != "town 17" { row.name = town.name + "!" }
            }
        }
        #expect(error?.code == .missingValue && error?.outcome == .saved)
        #expect(error?.message.hasPrefix("element 18: ") == true)
        #expect(try container.newContext().count(Town.all) == 35)
    }
}
