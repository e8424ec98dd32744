// What an observer sees, and that it leaves no trace.

import Foundation
import Testing
import VarveTesting

@testable import VarveInspection

@Suite struct ObserverTests {
    @Test func `Looking writes nothing and leaves no file behind`() throws {
        let sample = try Sample(isClosed: false)
        let lock = sample.place.folder.appending(path: "Library.varve-lock")
        try FileManager.default.removeItem(at: lock)
        let before = try Self.contents(sample.place.folder)
        let observer = try sample.observer()
        _ = try observer.info()
        _ = try observer.commits()
        _ = try observer.schema()
        _ = try observer.rows(RowsRequest(entity: "Book"))
        _ = try observer.object("Book:6")
        _ = try observer.verify(level: .full)
        try observer.frames { _ in true }
        #expect(try Self.contents(sample.place.folder) == before)
        #expect(!FileManager.default.fileExists(atPath: lock.path))
    }

    @Test func `A store is seen while a writer has it open`() throws {
        let place = try TemporaryStore("Library")
        let location = StoreLocation.file(directory: place.folder.path, name: "Library")
        let store = try SampleStore.make(location)
        let observer = try StoreObserver.open(place.url.path)
        let shown = try observer.info().newest?.number
        #expect(shown == store.engine.snapshot().number.rawValue)
        #expect(try observer.verify().isSound)
        try store.close()
    }

    @Test func `What is not a store is said to be none`() throws {
        let place = try TemporaryStore("none")
        #expect(throws: InspectionError.self) { try StoreObserver.open(place.url.path) }
        try Data("hello".utf8).write(to: place.url)
        do {
            _ = try StoreObserver.open(place.url.path)
            Issue.record("opened")
        } catch {
            #expect(error.kind == .notAStore)
        }
        do {
            _ = try StoreObserver.open("/nowhere/at/all.varve")
            Issue.record("opened")
        } catch {
            #expect(error.kind == .missing)
        }
    }

    @Test func `Random bytes are an answer, not a crash`() throws {
        let sample = try Sample()
        let sound = try Data(contentsOf: sample.place.url)
        var random = SeededRandom(seed: 11)
        for _ in 0..<150 {
            var bytes = sound
            for _ in 0..<4 {
                let at = Int(random.next() % UInt64(bytes.count))
                bytes[at] = UInt8(truncatingIfNeeded: random.next())
            }
            if random.next() % 4 == 0 {
                bytes = bytes.prefix(Int(random.next() % UInt64(bytes.count)))
            }
            try bytes.write(to: sample.place.url)
            guard let observer = try? sample.observer() else { continue }
            _ = try observer.info()
            _ = try observer.commits()
            _ = try observer.verify(level: .full)
            try observer.frames { entry in
                _ = try? observer.frame(at: entry.place)
                return true
            }
        }
    }

    @Test func `Information and commits tell what was done`() throws {
        let sample = try Sample()
        let observer = try sample.observer()
        let info = try observer.info()
        #expect(info.creator == "SampleStore 1")
        #expect(info.schemaVersion == 7)
        #expect(info.isClosed)
        #expect(info.entities.map(\.name) == ["Author", "Book", "Loan"])
        #expect(info.entities.map(\.rows) == [5, 40, 80])
        #expect(info.damage == [])
        #expect(info.newest?.author == "lend")
        let commits = try observer.commits()
        #expect(commits.commits.map(\.author) == ["lend", "edit", "import", "schema"])
        #expect(commits.brokenAt == nil)
        #expect(
            commits.commits[0].changes == [
                CommitReport.Change(entity: "Loan", added: 1, changed: 0, deleted: 1)
            ]
        )
        #expect(try observer.commits(limit: 1).isCut)
        #expect(try observer.commits(entity: "Author").commits.map(\.author) == ["import"])
    }

    @Test func `Every byte of the file belongs to one piece`() throws {
        let sample = try Sample(books: 200, isClosed: false)
        var position: UInt64 = 0
        var map = FrameMap(fileBytes: try sample.observer().info().fileBytes, cells: 64)
        for entry in try sample.frames() {
            #expect(entry.place == position)
            position += entry.bytes
            map.add(entry)
        }
        #expect(position == (try sample.observer().info().fileBytes))
        #expect(map.letters.contains("L"))
        #expect(!map.letters.contains("!"))
    }

    @Test func `A frame is decoded; a place inside one names it`() throws {
        let sample = try Sample()
        let observer = try sample.observer()
        let edit = try #require(try observer.commits().commits.first { $0.author == "edit" })
        let delta = try #require(try sample.frames().first { $0.place == edit.place })
        let report = try observer.frame(at: delta.place)
        #expect(report.isPayloadSound && report.isTailSound && report.problem == nil)
        #expect(report.lines == ["updated Book:7 title, year"], "\(report.lines)")
        do {
            _ = try observer.frame(at: delta.place + 8)
            Issue.record("found a frame")
        } catch {
            #expect(error.hint?.contains(Spelling.place(delta.place)) == true)
        }
        for frame in try sample.frames()
        where !["HEADER", "ZEROS"].contains(frame.kind) {
            let report = try observer.frame(at: frame.place)
            #expect(report.problem == nil, "\(frame)")
            #expect(report.entry.classification == frame.classification)
        }
    }

    private static func contents(_ folder: URL) throws -> [String: Data] {
        var result: [String: Data] = [:]
        for path in try FileManager.default.subpathsOfDirectory(atPath: folder.path) {
            result[path] = (try? Data(contentsOf: folder.appending(path: path))) ?? Data()
        }
        return result
    }
}
