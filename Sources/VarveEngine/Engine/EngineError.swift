// What the engine throws: one type, with the layer below as cause.

public import VarveBase
internal import VarveFormat
internal import VarveIO

/// An engine operation that could not be done.
///
/// One word in size, so that a throwing lookup returns its value in registers.
public struct EngineError: Error, Sendable {
    /// What kind of failure it is.
    public enum Code: String, Sendable {
        /// The file exists and is no store.
        case notAStore
        /// The store needs a newer version of this library.
        case formatTooNew
        /// There is no store of that name.
        case missing
        /// The folder of the store is missing.
        case missingDirectory
        /// Another process did not end its turn to write in time, or has the store for itself.
        case busy
        /// Bytes that a commit vouches for are not what they should be.
        case damaged
        /// The newest commit is there but wrong; opening for writing refuses to pass over it.
        case newestCommitDamaged
        /// The system refused to read or write.
        case ioFailed
        /// No space is left; nothing was written.
        case noSpace
        /// The system does not allow it.
        case permission
        /// Writing to a store that was opened for reading.
        case readOnly
        /// The write or sync of a commit failed: whether it is on disk is known only after
        /// reopening.
        case outcomeUnknown
        /// An earlier failure of that kind: no more writes through this handle.
        case poisoned
        /// The engine is closed.
        case closed
        /// The thread that changes rows in a write asked for another write, which would wait for
        /// the first.
        case reentrant
        /// A size is over a published limit.
        case limitExceeded
        /// The caller's arguments do not fit the store.
        case invalid
        /// There is no row with this object ID.
        case objectMissing
        /// The caller wanted an operation to end early.
        case cancelled
        /// The commit is not, or no longer, in the store.
        case notRetained
        /// The file of a blob is missing.
        case blobMissing
        /// The file of a blob is gone, and a process that did not know of this reader may have
        /// removed it.
        case blobSwept
        /// The store's file was removed or replaced while it was open.
        case storeGone
        /// The content of a blob is not what its digest says.
        case blobDamaged
        /// The engine has given up its locks until `resume`.
        case suspended
        /// A store is there already, and nobody said that it may be replaced.
        case exists
    }

    private final class Content: Sendable {
        let code: Code
        let message: String
        let place: FileOffset?
        let cause: (any Error & Sendable)?
        let subject: (entity: EntityID, object: ObjectID)?
        let commit: CommitIdentity?
        init(
            _ code: Code,
            _ message: String,
            _ place: FileOffset?,
            _ cause: (any Error & Sendable)?,
            _ subject: (entity: EntityID, object: ObjectID)?,
            _ commit: CommitIdentity?
        ) {
            self.code = code
            self.message = message
            self.place = place
            self.cause = cause
            self.subject = subject
            self.commit = commit
        }
    }
    private let content: Content

    /// Joins the parts.
    public init(
        _ code: Code,
        _ message: String,
        place: FileOffset? = nil,
        cause: (any Error & Sendable)? = nil
    ) {
        content = Content(code, message, place, cause, nil, nil)
    }

    init(
        _ code: Code,
        _ message: String,
        cause: (any Error & Sendable)?,
        commit: CommitIdentity
    ) {
        content = Content(code, message, nil, cause, nil, commit)
    }

    init(_ code: Code, _ message: String, subject: (entity: EntityID, object: ObjectID)) {
        content = Content(code, message, nil, nil, subject, nil)
    }

    /// What kind of failure it is.
    public var code: Code { content.code }
    /// One sentence; frames, kinds and names, never stored values.
    public var message: String { content.message }
    /// The frame at fault, as far as known.
    public var place: FileOffset? { content.place }
    /// The row that `objectMissing` is about.
    public var subject: (entity: EntityID, object: ObjectID)? { content.subject }
    /// The commit that `outcomeUnknown` is about, for `Engine.outcome(of:)`.
    public var commit: CommitIdentity? { content.commit }
    /// The error of the layer below.
    public var cause: (any Error & Sendable)? { content.cause }

    static func damaged(_ message: String, place: FileOffset? = nil) -> EngineError {
        EngineError(.damaged, message, place: place)
    }

    /// Bytes that do not fit the format, at a place that a commit vouches for.
    static func damaged(_ error: FormatError, place: FileOffset? = nil) -> EngineError {
        EngineError(.damaged, error.description, place: place, cause: error)
    }

    /// A refusal of the system while reading, opening or making room.
    static func io(_ error: IOError) -> EngineError {
        let code: Code =
            if error.isNoSpace { .noSpace } else if error.isPermission { .permission } else {
                .ioFailed
            }
        return EngineError(code, error.description, cause: error)
    }
}

/// Reads bytes that a commit vouches for: what does not fit the format is damage.
func decoded<R>(_ body: () throws(FormatError) -> R) throws(EngineError) -> R {
    do throws(FormatError) { return try body() } catch { throw .damaged(error) }
}

extension EngineError: CustomStringConvertible {
    /// "code: message".
    public var description: String { "\(code.rawValue): \(message)" }
}
