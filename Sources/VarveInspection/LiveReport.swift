// What a process that has the store open says of itself: its counter file.

import VarveBase
import VarveEngine
import VarveFormat
import VarveIO

/// The counters of a process that has a store open, or had.
public struct LiveReport: Hashable, Sendable {
    /// One counter.
    public struct Counter: Hashable, Sendable {
        /// Its name, as Format.md has it.
        public var name: String
        /// Its value.
        public var value: UInt64
    }

    /// Whether the process closed the store after it wrote this.
    public var isClosed: Bool
    /// The process.
    public var processID: UInt64
    /// When it opened the store, in microseconds since 1970.
    public var openedMicroseconds: Int64
    /// When it wrote this, in microseconds since 1970. A file that is not closed and old belongs
    /// to a process that is gone.
    public var writtenMicroseconds: Int64
    /// How often it has written.
    public var sequence: UInt64
    /// Names the file that the process has open; another one than the store's when a compaction
    /// came later.
    public var fileID: String
    /// The counters, in the order of the file.
    public var counters: [Counter]

    /// The answer as JSON.
    public var json: JSON {
        .members([
            ("format", .int(1)), ("closed", .bool(isClosed)), ("process", .uint(processID)),
            ("opened", .string(Spelling.time(openedMicroseconds))),
            ("written", .string(Spelling.time(writtenMicroseconds))),
            ("sequence", .uint(sequence)), ("fileID", .string(fileID)),
            ("counters", .members(counters.map { ($0.name, JSON.uint($0.value)) })),
        ])
    }

    /// Reads the counter file of the store at a path: "NAME.varve", or without the suffix. The
    /// store itself is not opened.
    ///
    /// - Throws: `missing` when there is none: the app has to ask for it with
    ///   `EngineOptions.writesLiveCounters`. `damaged`, `permission`, `ioFailed`.
    public static func read(_ path: String) throws(InspectionError) -> LiveReport {
        let slash = path.lastIndex(of: "/")
        let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        var name = slash.map { String(path[path.index(after: $0)...]) } ?? path
        if name.hasSuffix(".varve") { name.removeLast(".varve".count) }
        return try read(name + Engine.liveSuffix) { () throws(IOError) in
            try PosixDirectory.open(path: folder)
        }
    }

    /// A reader may meet a write half-way: it looks again.
    static func read(
        _ name: String,
        _ directory: () throws(IOError) -> any StoreDirectory
    ) throws(InspectionError) -> LiveReport {
        var failure: FormatError?
        for _ in 0..<3 {
            let bytes: [UInt8]
            do throws(IOError) {
                let file = try directory().openFile(name, mode: .read)
                defer { file.close() }
                bytes = try file.read(at: FileOffset(0), count: LiveCounters.lengthMax)
            } catch {
                if error.kind == .missing {
                    throw InspectionError(
                        .missing,
                        "there is no counter file \(name)",
                        hint: "an app writes one when it asks for it: writesLiveCounters"
                    )
                }
                throw InspectionError(
                    error.kind == .permission ? .permission : .ioFailed,
                    error.description
                )
            }
            do throws(FormatError) {
                return LiveReport(try LiveCounters(decoding: bytes))
            } catch {
                failure = error
            }
        }
        throw InspectionError(
            .damaged,
            "\(name) cannot be read: \(failure.map { "\($0)" } ?? "")"
        )
    }

    private init(_ counters: LiveCounters) {
        isClosed = counters.isClosed
        processID = counters.processID
        openedMicroseconds = counters.openedMicroseconds
        writtenMicroseconds = counters.writtenMicroseconds
        sequence = counters.sequence
        fileID = Spelling.uuid(counters.fileID)
        self.counters = counters.named.map { Counter(name: $0.name, value: $0.value) }
    }
}
