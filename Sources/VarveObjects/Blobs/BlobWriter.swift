// Writing a blob in pieces, before anything names it.
//
// Invariants
// - Noncopyable, and `finish` consumes it: finishing twice does not compile.
// - A writer that is dropped leaves nothing behind.

public import Foundation
import VarveBase
import VarveEngine
import VarveRecords

/// Writes one blob in pieces. Memory stays at the attribute's external limit, however long it gets.
public struct BlobWriter: ~Copyable {
    private let writer: PendingBlobWriter
    private let container: PersistentContainer

    init(_ writer: PendingBlobWriter, _ container: PersistentContainer) {
        self.writer = writer
        self.container = container
    }

    /// Bytes appended so far.
    public var length: Int { Int(clamping: writer.length) }

    /// Adds bytes at the end.
    /// - Throws: `closed`, `diskFull`, `ioFailed`.
    public mutating func append(_ data: Data) throws { try append(contentsOf: [UInt8](data)) }

    /// Adds bytes at the end.
    /// - Throws: `closed`, `diskFull`, `ioFailed`.
    public mutating func append(contentsOf bytes: [UInt8]) throws {
        try translating { () throws(EngineError) in try writer.append(bytes) }
    }

    /// Ends the blob: its bytes are written and synced. Assign it to a property and save; otherwise
    /// it is removed when the last handle goes.
    /// - Throws: `closed`, `diskFull`, `ioFailed`.
    public consuming func finish() throws -> Blob {
        let pending = try translating { () throws(EngineError) in try writer.finish() }
        return Blob(
            reference: pending.reference,
            source: BlobSource(keeper: .pending(pending), container: container)
        )
    }

    private func translating<Value>(
        _ body: () throws(EngineError) -> Value
    ) throws(StoreError) -> Value {
        // Others may have the store by now.
        try container.checkOpen()
        do throws(EngineError) {
            return try body()
        } catch {
            throw StoreError.translating(error, .init(store: container.place))
        }
    }
}

extension ManagedObjectContext {
    /// Begins a blob that becomes a file of its own above `externalLimit` bytes. For an attribute
    /// with another limit than the default use `makeBlob(for:)`.
    /// - Throws: `readOnly`, `closed`.
    public func makeBlob(externalLimit: Int = 102_400) throws -> BlobWriter {
        try container.checkOpen()
        do throws(EngineError) {
            return BlobWriter(
                try container.store.engine.makeBlobWriter(externalLimit: externalLimit),
                container
            )
        } catch {
            throw StoreError.translating(error, .init(store: container.place))
        }
    }

    /// Begins a blob for an attribute, with its external limit.
    public func makeBlob<Entity>(for column: Column<Entity, Blob?>) throws -> BlobWriter {
        try makeBlob(externalLimit: column.externalLimit)
    }

    /// Writes a blob for an attribute in one go.
    public func makeBlob<Entity>(
        _ data: Data,
        for column: Column<Entity, Blob?>
    ) throws -> Blob {
        var writer = try makeBlob(for: column)
        try writer.append(data)
        return try writer.finish()
    }
}

extension Column where Value == Blob? {
    var externalLimit: Int {
        guard case .attribute(let attribute) = definition.kind,
            let limit = attribute.externalLimit
        else { return 102_400 }
        return Int(clamping: limit)
    }
}
