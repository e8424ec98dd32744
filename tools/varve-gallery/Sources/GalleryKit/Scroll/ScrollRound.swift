// One round of `gallery scroll`: what is read, what is held, what is measured.

import Foundation
import VarveObjects

/// One of the four ways to scroll through the pictures of the memory article, in this process.
@MainActor
package struct ScrollRound {
    /// What the round measured; the fields are those of `gallery scroll --json`.
    package struct Result: Sendable, Equatable, Codable {
        package var round: Int
        package var pictures: Int
        package var windowBytesMax = 0
        package var residentBytesAtStart = 0
        package var residentBytesPeak = 0
        package var residentBytesEnd = 0
        package var blobBytesRead = 0
        package var rowCacheBytes = 0

        package init(round: Int, pictures: Int) {
            self.round = round
            self.pictures = pictures
        }

        package var json: JSONLine {
            JSONLine(fields: [
                ("round", .integer(round)), ("pictures", .integer(pictures)),
                ("windowBytesMax", .integer(windowBytesMax)),
                ("residentBytesAtStart", .integer(residentBytesAtStart)),
                ("residentBytesPeak", .integer(residentBytesPeak)),
                ("residentBytesEnd", .integer(residentBytesEnd)),
                ("blobBytesRead", .integer(blobBytesRead)),
                ("rowCacheBytes", .integer(rowCacheBytes)),
            ])
        }
    }

    package nonisolated static let rounds = 1...4
    /// Rounds that hold more than the window run at no more pictures than this: they would need
    /// gigabytes.
    package nonisolated static let mostPicturesHeld = 400

    let round: Int
    let pictures: Int
    let window: Int

    package init(round: Int, pictures: Int, window: Int) throws {
        guard Self.rounds.contains(round) else {
            throw GalleryError("there are rounds 1 to 4")
        }
        guard pictures > 0, window > 0 else {
            throw GalleryError("the numbers of pictures and of rows in the window must be above 0")
        }
        self.round = round
        self.pictures = pictures
        self.window = window
    }

    /// Scrolls through the store at `path`.
    /// - Returns: the result, and the resident bytes after each row.
    package func run(on path: String) async throws -> (result: Result, samples: [Int]) {
        // Reserved and written to before the start, so that the samples themselves do not count.
        var samples = [Int](repeating: 1, count: pictures)
        let memory = try ResidentMemory()
        var result = Result(round: round, pictures: pictures)
        result.residentBytesAtStart = try memory.sample()

        let container = try await GalleryStore.open(path)
        let stored = try container.viewContext.count(Picture.all)
        guard stored >= pictures else {
            throw GalleryError(
                "the store holds \(stored.grouped) pictures, not \(pictures.grouped); "
                    + "add more with: gallery import --into \(path) --pictures \(pictures)"
            )
        }
        let bar = ProgressBar("round \(round)", total: pictures)
        var lengths = WindowSum(rows: window)
        let afterRow = { (row: Int, length: Int) in
            lengths.add(length)
            samples[row] = try memory.sample()
            bar.update(row + 1)
        }
        if round == 4 {
            try await scrollInBackground(container, afterRow)
        } else {
            try scrollHoldingObjects(container, afterRow)
        }
        bar.finish()

        result.windowBytesMax = lengths.highest
        result.residentBytesPeak = try memory.peak()
        // Now the screen is gone; the end is the last row, with its window still there.
        result.residentBytesEnd = samples.last ?? result.residentBytesPeak
        result.blobBytesRead = container.statistics.blobBytesRead
        result.rowCacheBytes = container.statistics.rowCache.bytes
        try await container.close()
        return (result, samples)
    }

    /// Rounds 1 to 3: a view that holds the objects of all rows it has shown, as lists do.
    private func scrollHoldingObjects(
        _ container: PersistentContainer,
        _ afterRow: (Int, Int) throws -> Void
    ) throws {
        let view = container.viewContext
        let list = try view.fetchBatched(
            Picture.all.sorted { [$0.serial.ascending] }.limit(pictures),
            size: 50
        )
        var rows: [(picture: Picture, bytes: Data?)] = []
        for row in list.indices {
            if round >= 2, row >= window {
                rows[row - window].bytes = nil
                if round >= 3 { view.refresh(rows[row - window].picture, mergeChanges: false) }
            }
            let picture = list[row]
            try view.load(picture)
            let bytes = try Self.checked(picture.data?.readAll(), row: row)
            rows.append((picture, bytes))
            try afterRow(row, bytes.count)
        }
    }

    /// Round 4: each picture is read in a background task, which hands over its bytes; no object is
    /// held anywhere, and the view keeps the bytes of its window.
    private func scrollInBackground(
        _ container: PersistentContainer,
        _ afterRow: (Int, Int) throws -> Void
    ) async throws {
        let ids = try container.viewContext.fetchIDs(
            Picture.all.sorted { [$0.serial.ascending] }.limit(pictures)
        )
        var visible: [Data] = []
        for (row, id) in ids.enumerated() {
            if visible.count == window { visible.removeFirst() }
            let bytes = try await container.performBackgroundTask { context in
                try context.existingObject(with: id)?.data?.readAll()
            }
            visible.append(try Self.checked(bytes, row: row))
            try afterRow(row, visible.last?.count ?? 0)
        }
    }

    /// A picture that is not there would make the figures look better than they are.
    private static func checked(_ bytes: Data?, row: Int) throws -> Data {
        guard let bytes, !bytes.isEmpty else {
            throw GalleryError("picture \(row + 1) has no bytes")
        }
        return bytes
    }
}

/// The sum of the last values added, and the highest that it has been.
private struct WindowSum {
    let rows: Int
    private(set) var highest = 0
    private var values: [Int] = []
    private var sum = 0

    init(rows: Int) { self.rows = rows }

    mutating func add(_ value: Int) {
        if values.count == rows { sum -= values.removeFirst() }
        values.append(value)
        sum += value
        highest = max(highest, sum)
    }
}
