// Stores that earlier versions wrote, and this one has to open, verify, read and write: for ever.
//
// Each lies in Stores/FORMAT VERSION/NAME: the store's files, and expected.txt, which says what is
// in it. Nothing here writes there but `writeTheStores`, which runs only when it is asked to; see
// CONTRIBUTING.md.

import Foundation
import Testing
import VarveBase
import VarveEngine
import VarveFormat
import VarveInspection
import VarveRecords
import VarveTesting

private let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appending(path: "Stores", directoryHint: .isDirectory)

/// A store that is kept.
struct KeptStore: Sendable, CustomStringConvertible {
    let url: URL
    var description: String { url.pathComponents.suffix(2).joined(separator: "/") }

    static func all() throws -> [KeptStore] {
        func folders(_ url: URL) throws -> [URL] {
            try FileManager.default.contentsOfDirectory(at: url, includingPropertiesForKeys: nil)
                .filter(\.hasDirectoryPath)
                .sorted { $0.lastPathComponent < $1.lastPathComponent }
        }
        return try folders(folder).flatMap(folders).map { KeptStore(url: $0) }
    }

    var expected: [String] {
        get throws {
            try String(contentsOf: url.appending(path: "expected.txt"), encoding: .utf8)
                .split(separator: "\n").map(String.init)
        }
    }

    /// A copy that may be changed.
    func copy() throws -> TemporaryStore {
        let place = try TemporaryStore("store")
        for name in try FileManager.default.contentsOfDirectory(atPath: url.path) {
            try FileManager.default.copyItem(
                at: url.appending(path: name),
                to: place.folder.appending(path: name)
            )
        }
        return place
    }
}

private func open(_ place: URL, _ mode: StoreOpenMode) throws -> RecordStore {
    var options = RecordOptions()
    options.mode = mode
    options.engine.retention = .all
    options.engine.compactsAutomatically = false
    return try RecordStore.openAsStored(
        .file(directory: place.deletingLastPathComponent().path, name: "store"),
        options: options
    )
}

private func text(_ store: RecordStore) throws -> [String] {
    let snapshot = try store.snapshot()
    return try StoreText.rows(store, snapshot) + StoreText.trees(snapshot)
        + StoreText.commits(store)
}

private func problems(_ place: URL) throws -> [String] {
    try StoreObserver.open(place.path).verify(level: .full).problems.map(\.message)
}

@Suite struct GoldenTests {
    @Test func thereAreStores() throws {
        #expect(try KeptStore.all().filter { "\($0)".hasPrefix("1/") }.count == 10)
        #expect(try KeptStore.all().filter { "\($0)".hasPrefix("2/") }.count == 1)
        #expect(try KeptStore.all().filter { "\($0)".hasPrefix("3/") }.count == 1)
        for (version, bytesMax) in [("1/", 300_000), ("2/", 150_000), ("3/", 150_000)] {
            var bytes = 0
            for store in try KeptStore.all() where "\(store)".hasPrefix(version) {
                for path in try FileManager.default.subpathsOfDirectory(atPath: store.url.path) {
                    bytes += (try? Data(contentsOf: store.url.appending(path: path)).count) ?? 0
                }
            }
            #expect(bytes < bytesMax, "stores of version \(version)")
        }
    }

    @Test(arguments: [2, 3]) func thePackedStoreIsPacked(version: Int) throws {
        let location = StoreLocation.file(
            directory: folder.appending(path: "\(version)/packed").path,
            name: "store"
        )
        var (layouts, symbols): ([UInt8: Int], Int) = ([:], 0)
        try LogObserver.open(location).forEachPiece { piece in
            guard case .frame(let frame) = piece else { return true }
            if let page = frame.page, page.level == 0 { layouts[page.layout, default: 0] += 1 }
            if frame.value?.column == ValueHeader.symbolsColumn { symbols += 1 }
            return true
        }
        #expect(layouts[0, default: 0] > 3 && layouts[1, default: 0] > 1, "\(layouts)")
        #expect((layouts[2, default: 0] > 1) == (version == 3), "\(layouts)")
        // Two copies, and what keeps them apart.
        #expect(symbols == 3)
    }

    @Test(arguments: try KeptStore.all())
    func aKeptStoreOpensVerifiesAndReads(kept: KeptStore) throws {
        let place = try kept.copy()
        #expect(try problems(place.url).isEmpty)
        let reading = try open(place.url, .readOnly)
        #expect(try text(reading) == kept.expected)
        try reading.close()
        // Opened for writing the log may be settled: no row, no index, no commit changes by that.
        let writing = try open(place.url, .existing)
        let rows = try StoreText.rows(writing, try writing.snapshot())
        #expect(try rows == Array(kept.expected.prefix { !$0.hasPrefix("-- ") }))
        try writing.close()
        #expect(try problems(place.url).isEmpty)
    }

    @Test(arguments: try KeptStore.all())
    func aKeptStoreIsWrittenOn(kept: KeptStore) throws {
        let place = try kept.copy()
        var store = try open(place.url, .existing)
        let item = try #require(try store.schema.entity(named: "Item"))
        let name = try #require(item.attribute(named: "text")).column
        let before = try StoreText.rows(store, try store.snapshot())
        let id = store.allocateObjectIDs(1)
        #expect(try store.snapshot().row(item.id, id) == nil)
        _ = try store.write { transaction in
            try transaction.insert(item.id, id, [ColumnValue(name, .text("new"))])
        }
        _ = try store.write { transaction in
            try transaction.update(item.id, id, [ColumnValue(name, .text("newer"))])
        }
        try store.engine.checkpoint()
        try store.close()
        #expect(try problems(place.url).isEmpty)
        store = try open(place.url, .existing)
        let row = try #require(try store.snapshot().row(item.id, id))
        #expect(try row.value(name) == .text("newer"))
        _ = try store.write { try $0.delete(item.id, id) }
        _ = try store.compact()
        let after = try StoreText.rows(store, try store.snapshot())
        // The first two lines name generation and commit.
        #expect(after.dropFirst(2) == before.dropFirst(2))
        try store.close()
        #expect(try problems(place.url).isEmpty)
    }

    @Test(arguments: GoldenStore.all)
    func theSameSeedGivesTheSameBytes(golden: GoldenStore) throws {
        var files: [[String: Data]] = []
        for _ in 0..<2 {
            let place = try TemporaryStore("store")
            try golden.make(place.folder)
            files.append(try Self.files(place.folder))
        }
        #expect(files[0].keys.sorted() == files[1].keys.sorted())
        #expect(files[0] == files[1])
    }

    /// A reader in another language, made from Format.md alone, says the same of the rows.
    @Test(
        .enabled("python3 is missing: the stranger's reader is not run") { python != nil },
        arguments: try KeptStore.all()
    )
    func aStrangersReaderSaysTheSame(kept: KeptStore) throws {
        let (lines, status) = try readStore([kept.url.appending(path: "store.varve").path])
        #expect(status == 0)
        #expect(try lines == Array(kept.expected.prefix { !$0.hasPrefix("-- ") }))
    }

    /// The tails that Format.md shows are those of kept stores.
    @Test(
        .enabled("python3 is missing: the listing is not compared") { python != nil },
        arguments: ["torn", "settled"]
    )
    func theTailsOfTheDocumentAreThoseOfKeptStores(name: String) throws {
        let store = folder.appending(path: "1/\(name)/store.varve")
        let (lines, status) = try readStore([store.path, "--log"])
        #expect(status == 0 && lines.count > 5)
        let root = folder.deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let text = try String(contentsOf: root.appending(path: "Format.md"), encoding: .utf8)
        #expect(text.contains(lines.map { "    \($0)\n" }.joined()))
    }

    /// Every byte of every kept store has a meaning for the stranger's reader.
    @Test(
        .enabled("python3 is missing: the stranger's reader is not run") { python != nil },
        arguments: try KeptStore.all()
    )
    func aStrangersReaderListsEveryByte(kept: KeptStore) throws {
        let path = kept.url.appending(path: "store.varve").path
        let (lines, status) = try readStore([path, "--dump"])
        #expect(status == 0 && lines.count > 100)
    }

    private static func files(_ folder: URL) throws -> [String: Data] {
        var files: [String: Data] = [:]
        for path in try FileManager.default.subpathsOfDirectory(atPath: folder.path) {
            let url = folder.appending(path: path)
            guard !path.hasSuffix("-lock"), !url.hasDirectoryPath,
                let data = try? Data(contentsOf: url)
            else { continue }
            files[path] = data
        }
        return files
    }

    /// Writes the stores that are not there yet. One that is kept is never written again.
    @Test(
        .enabled(if: writesStores, "only when VARVE_WRITE_GOLDEN_STORES=1"),
        arguments: GoldenStore.all
    )
    func writeTheStores(golden: GoldenStore) throws {
        let target = folder.appending(
            path: "\(golden.version)/\(golden.name)",
            directoryHint: .isDirectory
        )
        if FileManager.default.fileExists(atPath: target.path) { return }
        let place = try TemporaryStore("store")
        try golden.make(place.folder)
        for (path, data) in try Self.files(place.folder) {
            let url = target.appending(path: path)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try data.write(to: url)
        }
        let store = try open(place.url, .readOnly)
        let lines = try text(store).joined(separator: "\n") + "\n"
        try lines.write(
            to: target.appending(path: "expected.txt"),
            atomically: false,
            encoding: .utf8
        )
    }
}

/// Whether the stores and the worked example are to be written anew.
let writesStores = ProcessInfo.processInfo.environment["VARVE_WRITE_GOLDEN_STORES"] == "1"

/// Runs tools/read-store.py.
///
/// - Parameter mayComplain: whether it may write to standard error.
func readStore(
    _ arguments: [String],
    mayComplain: Bool = false
) throws -> (lines: [String], status: Int32) {
    let process = Process()
    let program: URL = try #require(python)
    process.executableURL = program
    let root = folder.deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    process.arguments = [root.appending(path: "tools/read-store.py").path] + arguments
    let (output, errors) = (Pipe(), Pipe())
    process.standardOutput = output
    process.standardError = errors
    try process.run()
    let text = output.fileHandleForReading.readDataToEndOfFile()
    let complaints = errors.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    #expect(mayComplain || complaints.isEmpty, "\(String(decoding: complaints, as: UTF8.self))")
    let lines = String(decoding: text, as: UTF8.self).components(separatedBy: "\n")
    return (lines.last == "" ? lines.dropLast() : lines, process.terminationStatus)
}

/// Where Python is, if it is.
let python: URL? = (ProcessInfo.processInfo.environment["PATH"] ?? "")
    .split(separator: ":").map { URL(fileURLWithPath: "\($0)/python3") }
    .first { FileManager.default.isExecutableFile(atPath: $0.path) }
