// What the engine calls back: the deriver for a schema, and news of commits.

import Synchronization
import VarveBase
import VarveEngine
import VarveFormat

/// Ends an observation of commits when cancelled or dropped.
public final class CommitObservation: Sendable {
    private let end: @Sendable () -> Void

    init(_ end: @escaping @Sendable () -> Void) {
        self.end = end
    }

    deinit { end() }

    /// No call begins after this returns, except one that is under way.
    public func cancel() { end() }
}

/// Tells the row cache and the observers of each commit before it can be seen.
final class StoreDelegate: EngineDelegate {
    private struct Observers {
        var next = 0
        var handlers:
            [(
                id: Int, before: @Sendable (CommitChanges) -> Void,
                after: @Sendable (CommitChanges) -> Void
            )] = []
    }

    private let rowCache: RowCache
    private let observers = Mutex(Observers())
    private let declared: SchemaDescription?
    private let lastRecord = Mutex<(bytes: [UInt8], record: SchemaRecord)?>(nil)
    private let lastSchema = Mutex<(bytes: [UInt8], schema: RecordSchema)?>(nil)

    /// - Parameter declared: what an app says of constraints.
    init(_ rowCache: RowCache, _ declared: SchemaDescription?) {
        self.rowCache = rowCache
        self.declared = declared
    }

    func makeDeriver(schema: [UInt8]) throws(FormatError) -> any IndexDeriver {
        StoredDeriver(schema: try self.schema(schema))
    }

    /// A stored schema, joined with what the app declares; the last one is kept: an opening asks
    /// for its own twice.
    func schema(_ bytes: [UInt8]) throws(FormatError) -> RecordSchema {
        if let known = lastSchema.withLock({ $0?.bytes == bytes ? $0?.schema : nil }) {
            return known
        }
        let schema = try RecordSchema(record: try record(bytes), description: declared)
        lastSchema.withLock { $0 = (bytes, schema) }
        return schema
    }

    /// A stored schema; the one asked for last is kept: an opening asks several times.
    func record(_ bytes: [UInt8]) throws(FormatError) -> SchemaRecord {
        if let known = lastRecord.withLock({ $0?.bytes == bytes ? $0?.record : nil }) {
            return known
        }
        let record = try SchemaRecord(decoding: bytes)
        lastRecord.withLock { $0 = (bytes, record) }
        return record
    }

    func willPublish(_ changes: CommitChanges) {
        // An inserted row cannot be in the cache, and no older commit has it.
        let changed = changes.objects.filter { $0.kind != .inserted }
        rowCache.publish(
            changes.number,
            changed: changed.map(\.objects),
            schemaChanged: changes.schemaChanged || changes.isUnknown
        )
        for handler in observers.withLock({ $0.handlers }) { handler.before(changes) }
    }

    func didPublish(_ changes: CommitChanges) {
        for handler in observers.withLock({ $0.handlers }) { handler.after(changes) }
    }

    func observe(
        _ before: @escaping @Sendable (CommitChanges) -> Void,
        _ after: @escaping @Sendable (CommitChanges) -> Void
    ) -> CommitObservation {
        let id = observers.withLock { observers in
            observers.next += 1
            observers.handlers.append((observers.next, before, after))
            return observers.next
        }
        return CommitObservation { [weak self] in
            self?.observers.withLock { observers in observers.handlers.removeAll { $0.id == id } }
        }
    }
}
