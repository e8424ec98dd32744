// Why a question about a store could not be answered.

import VarveBase
import VarveEngine
import VarveRecords

/// An inspection that could not be done, or not on all of the store.
public struct InspectionError: Error, Hashable, Sendable {
    /// What kind of failure it is.
    public enum Kind: String, Hashable, Sendable {
        /// The file is no store, or needs a newer tool.
        case notAStore
        /// Nothing is there.
        case missing
        /// The system does not allow it.
        case permission
        /// The system refused to read.
        case ioFailed
        /// Bytes that the answer needs are damaged.
        case damaged
        /// The question does not fit the store: an unknown name, a filter that cannot be read.
        case badRequest
        /// The object asked for is not in the store.
        case notFound
        /// Something has the name that was to be written.
        case exists
        /// A limit of memory was reached.
        case limit
        /// The caller wanted it to end early.
        case cancelled
    }

    /// What kind of failure it is.
    public let kind: Kind
    /// One sentence.
    public let message: String
    /// What to do, or what was probably meant.
    public let hint: String?
    /// The frame at fault.
    public let place: UInt64?

    /// Joins the parts.
    public init(_ kind: Kind, _ message: String, hint: String? = nil, place: UInt64? = nil) {
        self.kind = kind
        self.message = message
        self.hint = hint
        self.place = place
    }

    init(_ error: EngineError) {
        let kind: Kind =
            switch error.code {
            case .notAStore, .formatTooNew: .notAStore
            case .missing, .missingDirectory: .missing
            case .permission: .permission
            case .damaged, .newestCommitDamaged, .blobMissing, .blobDamaged: .damaged
            case .limitExceeded: .limit
            default: .ioFailed
            }
        self.init(kind, error.message, place: error.place?.rawValue)
    }

    init(_ error: RecordError) {
        switch error {
        case .engine(let error): self.init(error)
        case .format(let error): self.init(.damaged, "\(error)")
        default: self.init(.badRequest, "\(error)")
        }
    }
}

extension InspectionError: CustomStringConvertible {
    /// The sentence, and the hint after it.
    public var description: String { hint.map { "\(message)\n\($0)" } ?? message }
}

/// Runs calls of the engine; their errors become this layer's.
func engine<R>(_ body: () throws(EngineError) -> R) throws(InspectionError) -> R {
    do throws(EngineError) { return try body() } catch { throw InspectionError(error) }
}

/// Runs calls of the records layer; their errors become this layer's.
func records<R>(_ body: () throws(RecordError) -> R) throws(InspectionError) -> R {
    do throws(RecordError) { return try body() } catch { throw InspectionError(error) }
}
