// Batches from JSON Lines: a JSON object on each line becomes a row.
//
// Invariants
// - Lines are decoded on the container's pool, by Foundation's JSONDecoder; the context's actor
//   only writes the rows.
// - Memory: the lines of one commit, 8 MiB of them at most and one piece of the input.
// - An error names the line and the field, and quotes no value.

public import Foundation
import VarveBase
import VarveRecords

/// How JSON Lines are read.
public struct JSONLinesOptions: Sendable {
    /// Rows of each commit.
    public var rowsPerCommit = 5_000
    /// A line with more bytes is refused.
    public var lineBytesMax = 1 << 20
    /// How values are decoded. Without one: dates as ISO 8601, data as Base64.
    public var decoder: JSONDecoder?
    /// Whether fields that are no property of the entity are passed over; else they are an error.
    /// Only where rows are made of lines by the names of their fields.
    public var ignoresUnknownFields = false

    /// The usual ones.
    public init() {}

    func makeDecoder() -> JSONDecoder {
        let made = JSONDecoder()
        made.dateDecodingStrategy = decoder?.dateDecodingStrategy ?? .iso8601
        made.dataDecodingStrategy = decoder?.dataDecodingStrategy ?? .base64
        made.keyDecodingStrategy = decoder?.keyDecodingStrategy ?? .useDefaultKeys
        if let decoder {
            made.nonConformingFloatDecodingStrategy = decoder.nonConformingFloatDecodingStrategy
            made.allowsJSON5 = decoder.allowsJSON5
            made.userInfo = decoder.userInfo
        }
        return made
    }
}

extension ManagedObjectContext {
    /// Adds a row for each line of JSON Lines, decoded as a type of the caller's.
    ///
    /// Line ends are LF or CRLF; blank lines are passed over, and so is a byte order mark. Lines
    /// are decoded on another thread while this context's actor is free, and written in commits of
    /// `rowsPerCommit` rows; memory is bounded.
    ///
    /// - Parameters:
    ///   - type: the entity.
    ///   - pieces: bytes, pieces of bytes, or lines.
    ///   - line: what a line is decoded as.
    ///   - conflicts: what becomes of a row whose unique values exist already.
    ///   - options: how lines are read.
    ///   - progress: told after each commit.
    ///   - fill: sets the properties of one row; it must not write to the store.
    /// - Throws: what the input and `fill` throw; `CancellationError` when the task was cancelled;
    ///   `StoreError`: `invalid` of a line that is no JSON, does not fit its type or is too long,
    ///   `missingValue`, `notUnique` and whatever else `batchInsert` throws, with the line's number
    ///   in the message and the field in `place.attribute`. Commits before it stand: then the
    ///   error's `outcome` is `saved`.
    /// - Complexity: O(bytes), and O(log n) per row and index.
    @discardableResult
    nonisolated(nonsending) public func batchInsert<
        Entity: ManagedObject,
        Line: Decodable & Sendable,
        Pieces: AsyncSequence
    >(
        _ type: Entity.Type,
        jsonLines pieces: Pieces,
        as line: Line.Type,
        onConflict conflicts: BatchConflictPolicy<Entity> = .asDeclared,
        options: JSONLinesOptions = JSONLinesOptions(),
        progress: ((BatchProgress) -> Void)? = nil,
        _ fill: (inout BatchRow<Entity>, Line) throws -> Void
    ) async throws -> BatchResult where Pieces.Element: TextPiece {
        let batch = try BatchWriter<Entity>(self, options.rowsPerCommit, conflicts)
        let work = JSONLinesImport(batch: batch, options: options, progress: progress)
        return try await work.run(pieces, options.makeDecoder(), nil, fill)
    }

    /// The same for a file.
    /// - Throws: as the other one, and what opening the file throws.
    @discardableResult
    nonisolated(nonsending) public func batchInsert<
        Entity: ManagedObject,
        Line: Decodable & Sendable
    >(
        _ type: Entity.Type,
        jsonLines file: URL,
        as line: Line.Type,
        onConflict conflicts: BatchConflictPolicy<Entity> = .asDeclared,
        options: JSONLinesOptions = JSONLinesOptions(),
        progress: ((BatchProgress) -> Void)? = nil,
        _ fill: (inout BatchRow<Entity>, Line) throws -> Void
    ) async throws -> BatchResult {
        let batch = try BatchWriter<Entity>(self, options.rowsPerCommit, conflicts)
        let work = JSONLinesImport(batch: batch, options: options, progress: progress)
        let (pieces, bytes) = try container.pieces(of: file)
        defer { try? pieces.handle.close() }
        return try await work.run(pieces, options.makeDecoder(), bytes, fill)
    }

    /// Adds a row for each line of JSON Lines by the names of its fields: each field is a property
    /// of the entity, in the form that its type has in JSON. What a line does not name gets its
    /// default.
    ///
    /// A to-one relationship is null; the object's ID as `ManagedObjectID.uri`; the value of the
    /// target's `#Unique`, if it has one of one property (`"country": "IS"`); or an object with the
    /// values of any of its `#Unique` (`"city": {"name": "Vík", "country": ...}`). A to-many
    /// relationship is an array of these. Rows of this batch are found, too, if they came before.
    ///
    /// - Parameters:
    ///   - type: the entity.
    ///   - pieces: bytes, pieces of bytes, or lines.
    ///   - conflicts: what becomes of a row whose unique values exist already.
    ///   - options: how lines are read.
    ///   - progress: told after each commit.
    /// - Throws: as the other one; `invalid` also of a field that is no property;
    ///   `objectNotFound` where a relationship leads nowhere.
    /// - Complexity: as the other one, and O(log n) for each relationship.
    @discardableResult
    nonisolated(nonsending) public func batchInsert<Entity: ManagedObject, Pieces: AsyncSequence>(
        _ type: Entity.Type,
        jsonLines pieces: Pieces,
        onConflict conflicts: BatchConflictPolicy<Entity> = .asDeclared,
        options: JSONLinesOptions = JSONLinesOptions(),
        progress: ((BatchProgress) -> Void)? = nil
    ) async throws -> BatchResult where Pieces.Element: TextPiece {
        let batch = try BatchWriter<Entity>(self, options.rowsPerCommit, conflicts)
        let work = JSONLinesImport(batch: batch, options: options, progress: progress)
        let decoder = FieldReader.decoder(options, container.schema, batch.model)
        return try await work.run(pieces, decoder, nil) { (row, line: NamedFields) in
            try row.take(line)
        }
    }

    /// The same for a file.
    /// - Throws: as the other one, and what opening the file throws.
    @discardableResult
    nonisolated(nonsending) public func batchInsert<Entity: ManagedObject>(
        _ type: Entity.Type,
        jsonLines file: URL,
        onConflict conflicts: BatchConflictPolicy<Entity> = .asDeclared,
        options: JSONLinesOptions = JSONLinesOptions(),
        progress: ((BatchProgress) -> Void)? = nil
    ) async throws -> BatchResult {
        let batch = try BatchWriter<Entity>(self, options.rowsPerCommit, conflicts)
        let work = JSONLinesImport(batch: batch, options: options, progress: progress)
        let decoder = FieldReader.decoder(options, container.schema, batch.model)
        let (pieces, bytes) = try container.pieces(of: file)
        defer { try? pieces.handle.close() }
        return try await work.run(pieces, decoder, bytes) { (row, line: NamedFields) in
            try row.take(line)
        }
    }
}

extension PersistentContainer {
    fileprivate func pieces(of file: URL) throws -> (FilePieces, Int?) {
        let handle = try FileHandle(forReadingFrom: file)
        let bytes = try? file.resourceValues(forKeys: [.fileSizeKey]).fileSize
        return (FilePieces(handle: handle, workers: workers), bytes ?? nil)
    }
}

/// One import.
private struct JSONLinesImport<Entity: ManagedObject> {
    let batch: BatchWriter<Entity>
    let options: JSONLinesOptions
    let progress: ((BatchProgress) -> Void)?
    private static var bytesPerCommit: Int { 8 << 20 }

    nonisolated(nonsending) func run<Line: Decodable & Sendable, Pieces: AsyncSequence>(
        _ pieces: Pieces,
        _ decoder: JSONDecoder,
        _ totalBytes: Int?,
        _ fill: (inout BatchRow<Entity>, Line) throws -> Void
    ) async throws -> BatchResult where Pieces.Element: TextPiece {
        try await batch.tracedAsync(.jsonLines) {
            try await write(pieces, decoder, totalBytes, fill)
        }
    }

    nonisolated(nonsending) private func write<Line: Decodable & Sendable, Pieces: AsyncSequence>(
        _ pieces: Pieces,
        _ decoder: JSONDecoder,
        _ totalBytes: Int?,
        _ fill: (inout BatchRow<Entity>, Line) throws -> Void
    ) async throws where Pieces.Element: TextPiece {
        let context = batch.context
        var splitter = _LineSplitter(
            lineBytesMax: max(1, options.lineBytesMax),
            place: batch.container.place
        )
        var told = BatchProgress(totalBytes: totalBytes)
        var iterator = pieces.makeAsyncIterator()
        var isAtEnd = false
        while !isAtEnd {
            let piece: Pieces.Element?
            do { piece = try await iterator.next(isolation: #isolation) } catch {
                throw afterCommits(error)
            }
            if let piece {
                try naming { () throws in try piece._add(to: &splitter) }
            } else {
                // Some inputs end when the task is cancelled: the last line may be cut off then.
                try context.checkCancellation()
                isAtEnd = true
                splitter.finish()
            }
            // Few lines wait for more, so that commits are alike however the input is cut.
            let takesAll = isAtEnd || splitter.lineBytes >= Self.bytesPerCommit
            guard takesAll || splitter.lines.count >= options.rowsPerCommit else { continue }
            var lines = splitter.takeLines()[...]
            while lines.count >= options.rowsPerCommit || takesAll && !lines.isEmpty {
                let some = Array(lines.prefix(options.rowsPerCommit))
                lines = lines.dropFirst(some.count)
                try context.checkCancellation()
                let rows = try await decode(some, decoder, Line.self)
                try context.checkCancellation()
                try batch.commit("line", rows, fill)
                told.completedRows += rows.count
                told.completedBytes = splitter.bytes
                progress?(told)
            }
            splitter.putBack(lines)
        }
    }

    private func naming(_ body: () throws -> Void) throws {
        do { try body() } catch { throw afterCommits(error) }
    }

    /// Commits before an error stand, and it says so.
    private func afterCommits(_ error: any Error) -> any Error {
        guard var failure = error as? StoreError, batch.result.commit != nil else { return error }
        failure.outcome = .saved
        return failure
    }

    /// Decodes lines on the pool.
    nonisolated(nonsending) private func decode<Line: Decodable & Sendable>(
        _ lines: [(number: Int, bytes: Data)],
        _ decoder: JSONDecoder,
        _ type: Line.Type
    ) async throws -> [(number: Int, element: Line)] {
        let entity = Entity.entityName
        let decoded = try await batch.container.workers.run {
            () -> Result<[(number: Int, element: Line)], StoreError> in
            var rows: [(number: Int, element: Line)] = []
            rows.reserveCapacity(lines.count)
            for line in lines {
                do {
                    rows.append((line.number, try decoder.decode(Line.self, from: line.bytes)))
                } catch {
                    return .failure(StoreError.reading(error, "line \(line.number)", entity))
                }
            }
            return .success(rows)
        }
        do { return try decoded.get() } catch { throw afterCommits(error) }
    }
}

extension StoreError {
    /// What a decoder said of a line, without its values.
    static func reading(_ error: any Error, _ line: String, _ entity: String) -> StoreError {
        if let known = error as? StoreError { return known.about(line) }
        var path: [any CodingKey] = []
        var whole = "is no JSON object"
        let reason: String
        switch error as? DecodingError {
        case .typeMismatch(let type, let context):
            path = context.codingPath
            reason = "is no \(type)"
        case .valueNotFound(let type, let context):
            path = context.codingPath
            reason = "is null, and must be of type \(type)"
        case .keyNotFound(let key, let context):
            path = context.codingPath + [key]
            reason = "is missing"
        case .dataCorrupted(let context):
            path = context.codingPath
            reason = "is out of range, or not in the form of its type"
            // Foundation does not always say where.
            if context.underlyingError == nil { whole = "has a value that \(reason)" }
        default: reason = "cannot be read"
        }
        let name = path.map { $0.intValue.map { "[\($0)]" } ?? $0.stringValue }
            .joined(separator: ".").replacing(".[", with: "[")
        return StoreError(
            .invalid,
            name.isEmpty ? "\(line): it \(whole)" : "\(line): \(name) \(reason)",
            place: .init(entity: entity, attribute: path.first?.stringValue),
            suggestion: "Mend the line and read the input again; lines before it may be written "
                + "already, which the error's outcome tells."
        )
    }
}
