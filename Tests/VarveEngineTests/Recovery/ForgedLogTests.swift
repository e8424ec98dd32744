// What it costs to read the end of a log that somebody forged, and of one that a crash left.

import Synchronization
import Testing
import VarveBase
import VarveFormat
import VarveIO

@testable import VarveEngine

/// A file of some bytes, zeros, and some bytes more, which counts what is read.
private final class CountingFile: ReadOnlyFile {
    let name = "counting"
    private let front: [UInt8]
    private let zeros: UInt64
    private let back: [UInt8]
    private let count = Atomic<UInt64>(0)

    init(_ front: [UInt8], zeros: UInt64 = 0, _ back: [UInt8] = []) {
        (self.front, self.zeros, self.back) = (front, zeros, back)
    }

    var readBytes: UInt64 { count.load(ordering: .relaxed) }

    func size() throws(IOError) -> UInt64 { UInt64(front.count) + zeros + UInt64(back.count) }

    func read(at offset: FileOffset, count: Int) throws(IOError) -> [UInt8] {
        let start = min(offset.rawValue, try size())
        let end = min(start + UInt64(count), try size())
        self.count.add(end - start, ordering: .relaxed)
        var bytes = [UInt8](repeating: 0, count: Int(end - start))
        func copy(_ part: [UInt8], at place: UInt64) {
            let from = max(start, place)
            let to = min(end, place + UInt64(part.count))
            guard from < to else { return }
            bytes.replaceSubrange(
                Int(from - start)..<Int(to - start),
                with: part[Int(from - place)..<Int(to - place)]
            )
        }
        copy(front, at: 0)
        copy(back, at: UInt64(front.count) + zeros)
        return bytes
    }

    func identity() throws(IOError) -> FileIdentity {
        FileIdentity(device: 0, inode: 1, links: 1, size: try size())
    }
    func adviseDontNeed() {}
    func close() {}
}

@Suite("Forged and torn ends of logs", .verified) struct ForgedLogTests {
    /// A store that was closed, with forged bytes behind it.
    private struct Forgery {
        var bytes: [UInt8]
        let seed: UInt64
        let start: UInt64

        init() throws {
            let directory = MemoryDirectory()
            let engine = try Engine.openTest(directory)
            _ = try engine.write {
                try $0.insert(TestDelegate.entity, ObjectID(1), row: row(1, "kept"))
            }
            try engine.close()
            let file = try directory.openFile("test.varve", mode: .read)
            bytes = try file.read(at: FileOffset(0), count: Int(file.size()))
            seed = try FileHeader(decoding: Array(bytes[..<4096])).fileSeed
            start = UInt64(bytes.count)
        }

        /// A header that fits its place, with the hash of other bytes than those behind it.
        func header(
            _ kind: FrameKind,
            at offset: UInt64,
            until end: UInt64,
            flags: FrameFlags = [],
            previous: UInt64 = 0,
            hash: UInt64 = 1
        ) -> [UInt8] {
            let length = UInt32(end - offset - UInt64(FrameHeader.length + FrameHeader.tailLength))
            var writer = ByteWriter()
            FrameHeader(
                kind: kind,
                flags: flags,
                storedLength: length,
                rawLength: length,
                previousCommit: FileOffset(previous),
                payloadHash: hash
            ).append(to: &writer, at: FileOffset(offset), seed: seed)
            return writer.bytes
        }

        /// A record of a commit without a body.
        func record(at offset: UInt64, after hash: UInt64 = 0) -> [UInt8] {
            var record = CommitRecord()
            record.number = CommitNumber(9)
            record.previousHash = hash
            record.bodyStart = FileOffset(offset)
            record.bodyHash = seed
            record.durableEnd = FileHeader.logStart
            return record.encoded()
        }

        mutating func append(_ bytes: [UInt8]) { self.bytes += bytes }
        var end: UInt64 { UInt64(bytes.count) }

        /// Reads the log's end, and says what that cost.
        func recover(
            zeros: UInt64 = 0,
            _ back: [UInt8] = []
        ) throws -> (log: Result<RecoveredLog, EngineError>, read: UInt64, hashed: UInt64) {
            let file = CountingFile(bytes, zeros: zeros, back)
            let scan = LogScan(log: LogReader(file: file, seed: seed), size: try file.size())
            let log: Result<RecoveredLog, EngineError>
            do throws(EngineError) {
                log = .success(try Recovery(scan: scan).run())
            } catch {
                log = .failure(error)
            }
            return (log, file.readBytes, scan.cost.hashedBytes)
        }
    }

    enum Kind: CaseIterable {
        /// Commit frames that all reach to the end, with a wrong hash.
        case commitsToTheEnd
        /// The same of pages: they are judged behind the newest commit.
        case pagesToTheEnd
        /// Commit frames with the right hash, each inside the one before.
        case nested
        /// Pages that name such commits.
        case pagesThatNameThem
        /// Many commits on top of one long chain that is broken at its bottom.
        case tipsOfABrokenChain
        /// Frames one after another, no word behind them.
        case noTailWords
    }

    private func forge(_ kind: Kind, _ count: Int) throws -> Forgery {
        var forgery = try Forgery()
        let end = forgery.start + UInt64(count)
        switch kind {
        case .commitsToTheEnd, .pagesToTheEnd:
            while forgery.end + 64 <= end {
                let frame: FrameKind = kind == .commitsToTheEnd ? .tree : .page
                forgery.append(forgery.header(frame, at: forgery.end, until: end))
            }
            forgery.append([UInt8](repeating: 7, count: Int(end - forgery.end)))
        case .nested, .pagesThatNameThem:
            var places: [UInt64] = []
            var tail = [UInt8](repeating: 7, count: 64)
            let pages = kind == .nested ? 0 : count / 4
            let top = end - UInt64(pages)
            while tail.count + 200 < count - pages {
                let length = FrameHeader.length + 104 + 8
                let offset = top - UInt64(tail.count + length)
                var payload = forgery.record(at: offset)
                payload += [UInt8](repeating: 7, count: length - 32 - payload.count)
                payload += tail
                let hash = FrameHash.xxh64(
                    payload,
                    range: 0..<(payload.count - 8),
                    seed: forgery.seed
                )
                let header = forgery.header(
                    .tree,
                    at: offset,
                    until: top,
                    flags: [.stacked],
                    previous: offset - 8,
                    hash: hash
                )
                tail = header + payload
                places.append(offset)
            }
            forgery.append([UInt8](repeating: 7, count: Int(top - forgery.end) - tail.count))
            forgery.append(tail)
            while forgery.end + 64 <= end, let place = places.popLast() {
                let (at, until) = (forgery.end, forgery.end + 40)
                let header = forgery.header(.page, at: at, until: until, previous: place)
                forgery.append(header + [UInt8](repeating: 7, count: 8))
            }
            forgery.append([UInt8](repeating: 7, count: Int(end - forgery.end)))
        case .tipsOfABrokenChain:
            var newest: (place: UInt64, hash: UInt64) = (forgery.start - 8, 1)
            while forgery.end + 200 <= end {
                let record = forgery.record(at: forgery.end, after: newest.hash)
                let place = forgery.end
                var writer = ByteWriter()
                let placed = Frame.append(
                    to: &writer,
                    kind: .tree,
                    flags: [.stacked],
                    front: record,
                    body: [],
                    compresses: false,
                    previousCommit: FileOffset(newest.place),
                    at: FileOffset(place),
                    seed: forgery.seed
                )
                forgery.append(writer.bytes)
                if place < forgery.start + UInt64(count / 2) {
                    newest = (place, placed.header.payloadHash)
                }
            }
        case .noTailWords:
            while forgery.end + 64 <= end {
                let (at, until) = (forgery.end, forgery.end + 64)
                let header = forgery.header(.page, at: at, until: until)
                forgery.append(header + [UInt8](repeating: 7, count: 32))
            }
        }
        return forgery
    }

    /// 1 MB took 17 seconds and 2 MB 75.
    @Test("Reading a forged end costs in proportion to its bytes", arguments: Kind.allCases)
    func costs(kind: Kind) throws {
        let counts = [32 << 10, 64 << 10]
        let costs = try counts.map { count in try forge(kind, count).recover() }
        for (count, cost) in zip(counts, costs) {
            #expect(cost.read <= 40 * UInt64(count + 8192) + 64 << 10, "\(count): \(cost.read)")
            #expect(cost.hashed <= 40 * UInt64(count + 8192) + 64 << 10, "\(cost.hashed)")
            switch kind {
            case .tipsOfABrokenChain, .noTailWords:
                // A crash may leave as much, or nearly.
                let log = try cost.log.get()
                #expect(log.newest.header.kind == .close)
                #expect(log.newest.record.number == CommitNumber(2))
                #expect(cost.read <= 12 * UInt64(count), "\(count): \(cost.read)")
            default:
                // No crash does: the error says so, and where the way out is.
                let error = #expect(throws: EngineError.self) { try cost.log.get() }
                #expect(error?.code == .damaged)
                #expect(error?.message.contains("varve recover") == true)
            }
        }
        #expect(costs[1].read * 10 <= costs[0].read * 22, "\(costs.map(\.read))")
        #expect(costs[1].hashed * 10 <= costs[0].hashed * 22, "\(costs.map(\.hashed))")
    }

    @Test("An opening refuses what no crash leaves, and nothing else", arguments: Kind.allCases)
    func opens(kind: Kind) throws {
        let directory = MemoryDirectory()
        let file = try directory.openFile("test.varve", mode: .createExclusive)
        try file.write(try forge(kind, 48 << 10).bytes, at: FileOffset(0))
        let mayBeTorn = kind == .tipsOfABrokenChain || kind == .noTailWords
        for mode in [StoreOpenMode.readOnly, .existing] {
            do {
                let engine = try Engine.openTest(directory, mode: mode)
                // A reader is shown what is sound, and told.
                #expect(mayBeTorn || engine.damage != nil)
                #expect(try engine.contents().count == 1)
            } catch let error as EngineError {
                #expect(!mayBeTorn && error.code == .damaged, "\(error)")
            }
        }
    }

    /// A large transaction hands its pages over before its commit; of those that were not synced
    /// any may be missing after a power cut. The distance says nothing.
    @Test("More than a gigabyte of lost tail behind a sound commit is a torn tail")
    func aLongTornTail() throws {
        let forgery = try forge(.noTailWords, 8 << 10)
        let garbage = [UInt8](repeating: 0xA5, count: 100)
        let zeros: UInt64 = 1 << 30 + 12_345 * 8
        let (log, read, hashed) = try forgery.recover(zeros: zeros, garbage)
        let found = try log.get()
        #expect(found.newest.header.kind == .close && !found.isClosed)
        #expect(found.newest.record.number == CommitNumber(2))
        #expect(found.dataEnd == forgery.end + zeros + UInt64(garbage.count))
        #expect(read <= 6 * (zeros + forgery.end) && hashed <= 1 << 20)
    }

    /// A torn frame may name more bytes than arrived; a crash for each, and still it is one log.
    @Test("Frames that were torn inside each other are torn tails", arguments: [1, 4, 12])
    func tornInsideEachOther(crashes: Int) throws {
        var forgery = try Forgery()
        let end = forgery.start + 64 << 10
        for _ in 0..<crashes {
            forgery.append(forgery.header(.tree, at: forgery.end, until: end, previous: 0))
            forgery.append([UInt8](repeating: 7, count: 4096 - 32))
        }
        forgery.append([UInt8](repeating: 7, count: Int(end - forgery.end)))
        let found = try forgery.recover().log.get()
        #expect(found.newest.record.number == CommitNumber(2))
    }

    /// Of a frame whose end was never written nothing is read but its header: its length may be
    /// anything.
    @Test("A torn frame over room that was never written is not read")
    func tornOverZeros() throws {
        var forgery = try Forgery()
        let end = forgery.start + 512 << 20
        forgery.append(forgery.header(.tree, at: forgery.end, until: end))
        forgery.append([UInt8](repeating: 7, count: 480))
        let zeros = end - forgery.end
        let (log, read, _) = try forgery.recover(zeros: zeros)
        #expect(try log.get().newest.record.number == CommitNumber(2))
        #expect(read <= 2 * zeros)
    }

    /// A settle copies what lies above the proven end. Pages of the first frame were read by one
    /// behind the second commit only: one that nobody could read let a commit in, and the store
    /// with it did not open again.
    @Test("What the first frame of a chain names is proven, whatever its durableEnd says")
    func theFirstFrameIsProven() throws {
        var forgery = try Forgery()
        let file = CountingFile(forgery.bytes)
        let scan = LogScan(
            log: LogReader(file: file, seed: forgery.seed),
            size: try file.size()
        )
        var first = try forgery.recover().log.get().newest
        while let before = try scan.previous(of: first) { first = before }
        #expect(first.isFirst && first.record.durableEnd < first.end)
        // What stands behind it was torn.
        forgery.bytes = Array(forgery.bytes[..<Int(first.end.rawValue)]) + [7, 7, 7]
        let found = try forgery.recover().log.get()
        #expect(found.newest.offset == first.offset && !found.isClosed)
        #expect(found.proven.offset == first.offset && found.provenEnd == first.end)
    }
}
