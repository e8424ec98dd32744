// Blobs of one store: those that a commit names, and those that are written and not named yet.
//
// Invariants
// - A blob's file is durable under its final name before a commit names it.
// - The bytes of a blob that no commit names are kept as long as somebody holds its `PendingBlob`.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

final class BlobStore: Sendable {
    enum Content {
        case bytes([UInt8])
        case file
    }
    private struct Pending {
        var holders: Int
        var content: Content
    }
    private let pending = Mutex<[BlobReference: Pending]>([:])

    init(
        directory: any StoreDirectory,
        name: String,
        isReadOnly: Bool,
        environment: any Environment
    ) throws(EngineError) {
    }

    func content(of reference: BlobReference) throws(EngineError) -> Content {
        throw EngineError(.blobMissing, "not written")
    }

    func wereCommitted(_ references: [BlobReference]) {}
}
extension StoreState {
    func sweepingDropped(by engine: Engine, _ writer: inout Engine.WriterState) throws(EngineError)
        -> StoreState
    { self }
}
extension Engine {
    func sweepOrphans(_ writer: inout WriterState) throws(EngineError) {}
}
