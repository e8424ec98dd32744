// docs/Features.md: every feature of the design has its row, and every row the tests that show it.

import Testing

@Suite("The table of features") struct FeatureTableTests {
    /// Features of the design's table.
    private static let features = 1...90

    /// What is wrong with the table, over the files of tests.
    private static func problems(_ text: String, _ tests: [String]) -> [String] {
        var problems: [String] = []
        var seen: [Int] = []
        for line in text.split(separator: "\n") where line.hasPrefix("| ") {
            let cells = line.split(separator: "|", omittingEmptySubsequences: false).dropFirst()
            guard cells.count == 5, let first = cells.first else { continue }
            let numbers = first.split(separator: ",").compactMap { cell in
                Int(cell.filter { !$0.isWhitespace })
            }
            if numbers.isEmpty { continue }
            seen += numbers
            let parts = cells[cells.startIndex + 3].split(
                separator: "`",
                omittingEmptySubsequences: false
            )
            let names = parts.indices.filter { $0 % 2 == 1 }.map { String(parts[$0]) }
            for name in names {
                let count = tests.count { $0.hasSuffix("/\(name).swift") || isIn($0, name) }
                if count != 1 { problems.append("\(numbers): \(count) files are \(name)") }
            }
            let isThere = !cells[cells.startIndex + 2].contains("not there")
            if isThere, names.isEmpty, !numbers.contains(89) {
                problems.append("\(numbers) has no test")
            }
        }
        for number in features where seen.count(where: { $0 == number }) != 1 {
            problems.append("\(number) has not one row")
        }
        return problems
    }

    /// Whether a name with its target in front of it means a file: `VarveObjectsTests/FaultTests`.
    private static func isIn(_ path: String, _ name: String) -> Bool {
        let parts = name.split(separator: "/")
        guard parts.count == 2 else { return false }
        return path.hasPrefix("Tests/\(parts[0])/") && path.hasSuffix("/\(parts[1]).swift")
            && !path.hasSuffix("/\(name).swift")
    }

    private static var tests: [String] {
        Repository.files.map(\.path).filter { $0.hasPrefix("Tests/") && $0.hasSuffix(".swift") }
    }

    @Test("Every feature has its row, and its tests are there") func rowsHaveTests() throws {
        let text = try Repository.text("docs/Features.md")
        #expect(Self.problems(text, Self.tests) == [])
    }

    @Test("A test that is renamed and a row that goes are found") func mistakesAreFound() throws {
        let text = try Repository.text("docs/Features.md")
        let renamed = Self.tests.filter { !$0.hasSuffix("/BranchTests.swift") }
        #expect(Self.problems(text, renamed) == ["[22]: 0 files are BranchTests"])
        let lines = text.split(separator: "\n").filter { !$0.hasPrefix("| 71 |") }
        #expect(Self.problems(lines.joined(separator: "\n"), Self.tests) == ["71 has not one row"])
        let bare = text.replacing("| `BranchTests`, `AttackBranchTests` |", with: "| |")
        #expect(Self.problems(bare, Self.tests) == ["[22] has no test"])
    }
}
