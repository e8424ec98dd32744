// The one error type that the object layer throws, with its codes, place, outcome and advice.

public import VarveBase

@_exported public import struct VarveBase.BlobDigest
@_exported public import struct VarveBase.CommitIdentity
@_exported public import struct VarveBase.CommitNumber
@_exported public import enum VarveBase.CommitOutcome

/// What went wrong, where, what is on disk because of it, and what to do next.
///
/// Cancellation is Swift's `CancellationError`; an error that a closure of the caller throws passes
/// through unchanged. Messages name frames, kinds, entities and attributes, never stored values.
public struct StoreError: Error, Sendable {
    /// The kind of error. The set is open: a new code is no breaking change, so a `switch` over
    /// codes needs a default.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code's name, stable.
        public let name: String
        /// Makes a code from its name.
        public init(_ name: String) { self.name = name }
        /// The code's name.
        public var description: String { name }
    }

    /// Where it happened, as far as known.
    public struct Place: Hashable, Sendable {
        /// Path of the store, or `memory`.
        public var store: String?
        /// Entity by name.
        public var entity: String?
        /// Attribute or relationship by name.
        public var attribute: String?
        /// The object.
        public var object: ManagedObjectID?
        /// The commit that was read or written.
        public var commit: CommitNumber?
        /// The frame, as the `varve` tool prints it.
        public var frame: String?

        /// Joins what is known of a place.
        public init(
            store: String? = nil,
            entity: String? = nil,
            attribute: String? = nil,
            object: ManagedObjectID? = nil,
            commit: CommitNumber? = nil,
            frame: String? = nil
        ) {
            self.store = store
            self.entity = entity
            self.attribute = attribute
            self.object = object
            self.commit = commit
            self.frame = frame
        }
    }

    /// What is on disk after the error.
    public enum Outcome: Hashable, Sendable {
        /// Nothing of the save is on disk; the edits stand in the context.
        case nothingSaved
        /// The system did not say whether the commit is on disk.
        case unknown
        /// The commit is on disk; something after it failed.
        case saved
    }

    /// One failure among several of the same save: a failed validation, a conflict, a duplicate.
    public struct Detail: Sendable {
        /// Its kind.
        public var code: Code
        /// One sentence.
        public var message: String
        /// Where.
        public var place: Place
        /// The objects involved; for a duplicate the existing ones first.
        public var objects: [ManagedObjectID]
        /// For a conflict: the values it is about.
        public var conflict: SaveConflict?

        /// Joins the parts.
        public init(
            code: Code,
            message: String,
            place: Place = Place(),
            objects: [ManagedObjectID] = [],
            conflict: SaveConflict? = nil
        ) {
            self.code = code
            self.message = message
            self.place = place
            self.objects = objects
            self.conflict = conflict
        }
    }

    /// The kind of error.
    public var code: Code
    /// One sentence.
    public var message: String
    /// Where.
    public var place: Place
    /// What is on disk.
    public var outcome: Outcome
    /// The commit whose outcome is unknown: keep it, open the store again, and ask
    /// `PersistentContainer.outcome(of:)`.
    public var commit: CommitIdentity?
    /// All failures of one save, or all conflicts.
    public var details: [Detail]
    /// The error of the layer below.
    public var cause: (any Error)?
    /// What to do next.
    public var suggestion: String?

    /// Joins the parts of an error.
    public init(
        _ code: Code,
        _ message: String,
        place: Place = Place(),
        outcome: Outcome = .nothingSaved,
        commit: CommitIdentity? = nil,
        details: [Detail] = [],
        cause: (any Error)? = nil,
        suggestion: String? = nil
    ) {
        self.code = code
        self.message = message
        self.place = place
        self.outcome = outcome
        self.commit = commit
        self.details = details
        self.cause = cause
        self.suggestion = suggestion
    }
}

extension StoreError.Code {
    /// The file exists and is no Varve store.
    public static let notAStore = Self("notAStore")
    /// The file has a newer format than this library knows.
    public static let formatTooNew = Self("formatTooNew")
    /// The stored schema and the app's do not fit, and no automatic step joins them.
    public static let schemaMismatch = Self("schemaMismatch")
    /// A newer app version has migrated the store.
    public static let schemaTooNew = Self("schemaTooNew")
    /// The app's schema contradicts itself.
    public static let invalidSchema = Self("invalidSchema")
    /// A migration stopped; the old commit stands.
    public static let migrationFailed = Self("migrationFailed")
    /// Another process holds the writer lock.
    public static let busy = Self("busy")
    /// The store or the context cannot be written.
    public static let readOnly = Self("readOnly")
    /// A frame fails its check.
    public static let damaged = Self("damaged")
    /// The system refused a read or a write.
    public static let ioFailed = Self("ioFailed")
    /// No room on the disk.
    public static let diskFull = Self("diskFull")
    /// The folder of the store, or the store itself, does not exist.
    public static let missingFolder = Self("missingFolder")
    /// A store is there already, and was not to be replaced.
    public static let storeExists = Self("storeExists")
    /// The system does not let this process open or write there.
    public static let permissionDenied = Self("permissionDenied")
    /// The sync of a commit failed: whether it is on disk is not known.
    public static let outcomeUnknown = Self("outcomeUnknown")
    /// The container is suspended: it has given up its locks until `resume()`.
    public static let suspended = Self("suspended")
    /// The container is closed.
    public static let closed = Self("closed")
    /// No object with that ID in this commit.
    public static let objectNotFound = Self("objectNotFound")
    /// An ID of another store.
    public static let foreignID = Self("foreignID")
    /// An ID of another entity.
    public static let wrongEntity = Self("wrongEntity")
    /// An object that this context deletes or deleted was edited, or a relationship was to lead to
    /// a deleted one.
    public static let objectDeleted = Self("objectDeleted")
    /// A save from inside a save or `prepareForDeletion` of the same context; an edit while a save
    /// of it checks and writes; a save, batch or close, of any context, from a closure that runs
    /// while the store is being written: of a batch, or a custom merge policy.
    public static let reentrantSave = Self("reentrantSave")
    /// Objects of two contexts were joined, or one was to be deleted in another context.
    public static let crossContext = Self("crossContext")
    /// An implicit read failed earlier in this context.
    public static let contextFailed = Self("contextFailed")
    /// A background body ended with edits that it did not save.
    public static let unsavedChanges = Self("unsavedChanges")
    /// Somebody else changed the same objects.
    public static let conflict = Self("conflict")
    /// A uniqueness constraint is violated.
    public static let notUnique = Self("notUnique")
    /// A required attribute was never set.
    public static let missingValue = Self("missingValue")
    /// An object's `validate(_:)` reported a failure, or a value that no store keeps was set.
    public static let invalid = Self("invalid")
    /// A value is larger than the store can hold.
    public static let valueTooLarge = Self("valueTooLarge")
    /// A delete rule forbids the deletion.
    public static let deleteDenied = Self("deleteDenied")
    /// A stored value that this build does not know, such as an enum case of a newer version.
    public static let unreadableValue = Self("unreadableValue")
    /// A filter that the store cannot evaluate.
    public static let unsupportedPredicate = Self("unsupportedPredicate")
    /// A request names a property that the entity does not have.
    public static let unknownAttribute = Self("unknownAttribute")
    /// An entity that the container's schema does not list.
    public static let unknownEntity = Self("unknownEntity")
    /// A request that makes no sense, such as a negative limit.
    public static let invalidRequest = Self("invalidRequest")
    /// A cursor of another request.
    public static let invalidCursor = Self("invalidCursor")
    /// The blob's bytes are not there.
    public static let blobMissing = Self("blobMissing")
    /// The blob's file is gone, and a process that did not know of this reader may have removed it.
    public static let blobSwept = Self("blobSwept")
    /// The store's file was removed or replaced while it was open.
    public static let storeGone = Self("storeGone")
    /// The blob's bytes are not those that were stored.
    public static let blobDamaged = Self("blobDamaged")
    /// A range outside the blob.
    public static let blobRange = Self("blobRange")
    /// The commit lies outside the retained span.
    public static let commitExpired = Self("commitExpired")
    /// No commit has that number in this store, or another one has it.
    public static let unknownCommit = Self("unknownCommit")
    /// What a commit changed was changed again by later ones, so that it cannot be undone.
    public static let revertConflict = Self("revertConflict")
}

extension StoreError: CustomStringConvertible {
    /// Code, message, place, outcome, details and advice, on as many lines as needed.
    public var description: String {
        var text = "\(code): \(message)"
        let where_ = place.description
        if !where_.isEmpty { text += " [\(where_)]" }
        if outcome == .unknown { text += " The outcome of the save is unknown." }
        // What the message says is not said again.
        for detail in details where detail.message != message {
            text += "\n  - \(detail.code): \(detail.message)"
            let place = detail.place.description
            if !place.isEmpty { text += " [\(place)]" }
        }
        if let suggestion { text += "\n  \(suggestion)" }
        let said = [message, details.map(\.message).joined(separator: "; ")]
        if let cause, !said.contains("\(cause)") { text += "\n  cause: \(cause)" }
        return text
    }
}

extension StoreError.Place: CustomStringConvertible {
    /// What is known, comma-separated.
    public var description: String {
        var parts: [String] = []
        if let store { parts.append("store \(store)") }
        if let entity { parts.append("entity \(entity)") }
        if let attribute { parts.append("attribute \(attribute)") }
        if let object { parts.append("object \(object)") }
        if let commit { parts.append("commit \(commit.rawValue)") }
        if let frame { parts.append("frame \(frame)") }
        return parts.joined(separator: ", ")
    }
}

extension StoreError {
    /// So that `catch StoreError.Code.notUnique` works as a pattern.
    public static func ~= (code: Code, error: StoreError) -> Bool { error.code == code }
}

extension StoreError.Code {
    /// So that `catch StoreError.Code.notUnique` works as a pattern.
    public static func ~= (code: StoreError.Code, error: any Error) -> Bool {
        (error as? StoreError)?.code == code
    }
}
