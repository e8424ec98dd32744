// That an intact store verifies clean, and that a damaged one is told by the frame at fault.

import Foundation
import Testing
import VarveTesting

@testable import VarveInspection

@Suite struct VerifyTests {
    @Test(arguments: VerifyLevel.allCases) func `An intact store verifies clean`(
        level: VerifyLevel
    ) throws {
        for books in [4, 200] {
            for isClosed in [true, false] {
                let sample = try Sample(books: books, isClosed: isClosed)
                let report = try sample.observer().verify(level: level)
                #expect(report.problems == [], "\(books) books, closed: \(isClosed)")
                #expect(report.notChecked == [])
                #expect(report.isComplete)
                // Authors, books, loans, and three links between books.
                if level != .quick {
                    #expect(report.rows == UInt64(5 + books + books * 2 + 3))
                    #expect(report.blobs == 2)
                    #expect(report.values == 1)
                }
            }
        }
    }

    @Test func `An empty store verifies clean`() throws {
        let place = try TemporaryStore("Library")
        let schema = SchemaDescription(version: 1, entities: [])
        let store = try RecordStore.open(
            .file(directory: place.folder.path, name: "Library"),
            schema: schema
        )
        #expect(try StoreObserver.open(place.url.path).verify(level: .full).isSound)
        try store.close()
        let observer = try StoreObserver.open(place.url.path)
        #expect(try observer.verify(level: .full).isSound)
        #expect(try observer.info().entities == [])
    }

    @Test func `A flipped bit in any frame is told by exactly that frame`() throws {
        let sample = try Sample(books: 200)
        let frames = try sample.frames()
        #expect(Set(frames.map(\.kind)).isSuperset(of: ["DELTA", "TREE", "CKPT", "PAGE", "VALUE"]))
        #expect(frames.filter { $0.classification == .live }.count > 20)
        for frame in frames where frame.kind != "ZEROS" {
            // In the header (a tail word is for finding frames only) and inside the payload.
            for offset in [frame.place + 5, frame.place + 33] {
                let report = try sample.damaged(at: offset) { try $0.verify(level: .full) }
                let comment =
                    "\(frame.kind) \(frame.what) p@\(String(frame.place, radix: 16)): \(report)"
                if frame.kind == "CLOSE", offset > frame.place + 31 {
                    // The last frame, without a witness: a torn write, as recovery takes it.
                    #expect(report.notes.contains { $0.contains(Spelling.place(frame.place)) })
                    #expect(report.problems.isEmpty, Comment(rawValue: comment))
                    continue
                }
                let places = Set(report.problems.compactMap(\.place))
                #expect(places == [frame.place], Comment(rawValue: comment))
            }
        }
    }

    @Test func `Frames that the newest commit needs are found without reading all`() throws {
        let sample = try Sample(books: 200)
        for frame in try sample.frames() where frame.classification == .live {
            guard frame.kind != "CLOSE" else { continue }
            let report = try sample.damaged(at: frame.place + 33) { try $0.verify() }
            #expect(report.problems.first?.place == frame.place, "\(frame)")
            #expect(report.problems.first?.isNeeded == true)
        }
    }

    @Test func `A damaged leaf tells which objects it held`() throws {
        let sample = try Sample(books: 200)
        let leaf = try #require(
            try sample.frames().last {
                $0.classification == .live && $0.tree == "Loan" && $0.level == 0
            }
        )
        let report = try sample.damaged(at: leaf.place + 40) { try $0.verify() }
        let problem = try #require(report.problems.first)
        #expect(report.problems.count == 1)
        #expect(problem.subject == "leaf of Loan")
        #expect(problem.rows == UInt64(try #require(leaf.entries)))
        #expect(problem.objects.count == leaf.entries)
        #expect(problem.objects.allSatisfy { $0.hasPrefix("Loan:") })
        #expect(!report.notChecked.isEmpty)
    }

    @Test func `Blobs that are missing, short or wrong are told with the rows that name them`()
        throws
    {
        let sample = try Sample()
        let folder = sample.place.folder.appending(path: "Library.varve-blobs")
        let name = try #require(
            try FileManager.default.contentsOfDirectory(atPath: folder.path).first
        )
        let file = folder.appending(path: name)
        let bytes = try Data(contentsOf: file)

        var wrong = bytes
        wrong[100] ^= 1
        try wrong.write(to: file)
        #expect(try sample.observer().verify().isSound)
        let full = try sample.observer().verify(level: .full)
        #expect(full.problems.map(\.kind) == [.damaged])
        #expect(full.problems[0].objects == ["Book:8"], "\(full)")

        try bytes.dropLast().write(to: file)
        #expect(try sample.observer().verify().problems.map(\.kind) == [.damaged])

        try FileManager.default.removeItem(at: file)
        let missing = try sample.observer().verify()
        #expect(missing.problems.map(\.kind) == [.missing])
        #expect(missing.problems[0].details.contains { $0.contains(name) })

        let other = String(repeating: "0", count: 64)
        try bytes.write(to: file)
        try bytes.write(to: folder.appending(path: other))
        let orphan = try sample.observer().verify(level: .full)
        #expect(orphan.isSound)
        #expect(orphan.notes.contains { $0.hasPrefix("1 of 2 blob files") })
    }

    @Test func `A damaged copy of the file header is told; the other one serves`() throws {
        let sample = try Sample()
        for copy: UInt64 in [0, 4096] {
            let report = try sample.damaged(at: copy + 20) { try $0.verify(level: .quick) }
            #expect(report.problems.map(\.place) == [copy])
        }
    }

    @Test func `A torn tail is no damage`() throws {
        let sample = try Sample(isClosed: false)
        let end = try #require(try sample.frames().last { $0.kind == "DELTA" })
        var bytes = try Data(contentsOf: sample.place.url)
        let start = Int(end.place + end.bytes)
        bytes.replaceSubrange(start..<(start + 100), with: Data(repeating: 0xA5, count: 100))
        try bytes.write(to: sample.place.url)
        let report = try sample.observer().verify(level: .full)
        #expect(report.isSound, "\(report)")
        #expect(report.notes.contains { $0.contains("torn write") })
    }

    @Test func `A torn page that reaches over the place where recovery goes on is no damage`()
        throws
    {
        let sample = try Sample(books: 200, isClosed: false)
        let location = StoreLocation.file(directory: sample.place.folder.path, name: "Library")
        let newest = try #require(try sample.frames().last { $0.kind == "DELTA" })
        // An opening writes the newest commit once more, page by page, and the power goes.
        let settled = try RecordStore.openAsStored(location)
        var bytes = try Data(contentsOf: sample.place.url)
        try settled.close()
        try bytes.write(to: sample.place.url)
        let torn = try #require(
            try sample.frames().first {
                let multiple = ($0.place | 4095) + 1
                return $0.kind == "PAGE" && $0.place > newest.place && $0.place + 64 <= multiple
                    && $0.place + $0.bytes > multiple
            }
        )
        let cut = Int((torn.place | 4095) + 1)
        bytes.replaceSubrange(cut..., with: Data(count: bytes.count - cut))
        try bytes.write(to: sample.place.url)
        try RecordStore.openAsStored(location).close()
        let report = try sample.observer().verify(level: .full)
        #expect(report.isSound, "\(report)")
    }

    /// Caches and contexts know objects by their ID alone. Found by the fuzzer.
    @Test func `An object ID that two entities have is told, and recovered once`() throws {
        let sample = try Sample(books: 200)
        let shared = try sample.shareObjectIDs(3)
        let report = try sample.observer().verify(level: .full)
        #expect(report.problems.count == 1)
        let problem = try #require(report.problems.first)
        #expect(problem.subject == "object IDs" && problem.message.hasPrefix("3 are of rows of"))
        #expect(problem.objects == shared.flatMap { ["Book:\($0)", "Loan:\($0)"] })
        let (salvage, fixed) = try sample.recovered()
        let after = try fixed.verify(level: .full)
        #expect(after.isSound && after.rows == report.rows - 3)
        #expect(salvage.lostRows.map(\.object) == shared.map { "Loan:\($0)" })
        let books = try StoreModel(fixed).objects.keys.filter { $0.hasPrefix("Book:") }
        #expect(books.count == 200)
    }

    @Test func `A check that is told to stop is not complete`() throws {
        let sample = try Sample(books: 200)
        for steps in [0, 3, 20, 60] {
            var calls = 0
            let report = try sample.observer().verify(level: .full) { _, _ in
                calls += 1
                return calls <= steps
            }
            #expect(!report.isComplete, "\(steps)")
        }
    }
}
