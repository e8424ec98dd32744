// Errors of the layers below as StoreErrors: code, place, outcome and advice for each.

import VarveBase
import VarveEngine
import VarveRecords

extension StoreError {
    /// An error of an open container.
    static func translating(_ error: RecordError, in container: PersistentContainer) -> StoreError {
        translating(error, store: container.place, identity: container.identity, container.schema)
    }

    /// Any error that a write threw: errors of the layers below are translated, others pass
    /// through.
    static func translatingAny(
        _ error: any Error,
        in container: PersistentContainer
    ) -> any Error {
        if let error = error as? RecordError { return translating(error, in: container) }
        if let error = error as? EngineError {
            return translating(.engine(error), in: container)
        }
        return error
    }

    /// Duplicates; one violation is said once.
    private static func notUnique(
        _ details: [Detail],
        _ store: String,
        cause: RecordError
    ) -> StoreError {
        var place = Place(store: store)
        var message = "\(details.count) constraints are violated"
        if details.count == 1 {
            message = details[0].message
            place.entity = details[0].place.entity
            place.attribute = details[0].place.attribute
        }
        return StoreError(
            .notUnique,
            message,
            place: place,
            details: details,
            cause: cause,
            suggestion: "Change or delete all but one of the objects that share the values; "
                + "PersistentContainer.objectID reads their IDs. Or declare the constraint with "
                + "onConflict: .upsert or .ignore."
        )
    }

    static func translating(
        _ error: RecordError,
        store: String,
        identity: UUIDValue? = nil,
        _ schema: SchemaModel? = nil,
        isOpening: Bool = false
    ) -> StoreError {
        func make(
            _ code: Code,
            _ place: Place = Place(store: store),
            _ details: [Detail] = [],
            _ advice: String? = nil
        ) -> StoreError {
            StoreError(
                code,
                "\(error)",
                place: place,
                details: details,
                cause: error,
                suggestion: advice
            )
        }
        func all(_ code: Code, _ texts: [String], _ advice: String) -> StoreError {
            make(code, Place(store: store), texts.map { Detail(code: code, message: $0) }, advice)
        }
        func object(_ name: String, _ id: ObjectID) -> ManagedObjectID? {
            schema?.objectID(name, id, identity)
        }
        switch error {
        case .engine(let engine):
            return translating(engine, Place(store: store), isOpening: isOpening)
        case .format: return all(.damaged, [], verify(store))
        case .schemaMismatch(let problems):
            return all(.schemaMismatch, problems, afterMismatch)
        case .schemaTooNew(_, _, let lines): return all(.schemaTooNew, lines, tooNew)
        case .stageFailed(_, let problems): return all(.migrationFailed, problems, afterStage)
        case .invalidSchema(let problems):
            return all(.invalidSchema, problems, "Correct the entities' declarations.")
        case .unknownEntity(let name):
            return make(.unknownEntity, Place(store: store, entity: name))
        case .unknownProperty(let entity, let property):
            return make(.unknownAttribute, Place(store: store, entity: entity, attribute: property))
        case .unsupportedPredicate: return make(.unsupportedPredicate)
        case .invalidRequest: return make(.invalidRequest)
        case .invalidCursor: return make(.invalidCursor)
        case .notUnique(let violations):
            return notUnique(violations.map { detail($0, object) }, store, cause: error)
        case .missingValue(let entity, let name, let id):
            var place = Place(store: store, entity: entity, attribute: name)
            place.object = object(entity, id)
            return make(.missingValue, place)
        case .wrongType(let entity, let name, _):
            return make(.invalid, Place(store: store, entity: entity, attribute: name))
        case .objectNotFound(let entity, let id), .objectExists(let entity, let id):
            let id = object(entity, id)
            return make(.objectNotFound, Place(store: store, entity: entity, object: id))
        case .valueOutside(let entity, let name):
            return make(.ioFailed, Place(store: store, entity: entity, attribute: name))
        }
    }

    private static let afterMismatch =
        "Give what was renamed an originalName and new properties a default, and name what is to "
        + "go with its data in ContainerOptions.removing; the store is as it was."

    private static let tooNew =
        "Update the app; the store is as it was. Where the newer schema has all that this app "
        + "knows, isReadOnly with readsNewerSchemas reads it until then."

    private static let afterStage =
        "Change the stage so that the details do not happen, and open again; the store is as it "
        + "was. PersistentContainer.planMigration says what the stages do."

    private static func detail(
        _ violation: UniqueViolation,
        _ object: (String, ObjectID) -> ManagedObjectID?
    ) -> Detail {
        Detail(
            code: .notUnique,
            message: violation.description,
            place: Place(
                entity: violation.entityName,
                attribute: violation.properties.joined(separator: ", ")
            ),
            objects: violation.objects.compactMap { object(violation.entityName, $0) }
        )
    }

    /// An error of the engine.
    static func translating(
        _ error: EngineError,
        _ place: Place,
        isOpening: Bool = false
    ) -> StoreError {
        var place = place
        place.frame = error.place.map { "@\(String($0.rawValue, radix: 16))" }
        return StoreError(
            code(for: error.code),
            error.message,
            place: place,
            outcome: error.code == .outcomeUnknown ? .unknown : .nothingSaved,
            commit: error.commit,
            cause: error,
            suggestion: suggestion(for: error.code, place.store ?? "", isOpening)
        )
    }

    private static func code(for code: EngineError.Code) -> Code {
        switch code {
        case .notAStore: .notAStore
        case .formatTooNew: .formatTooNew
        case .missing, .ioFailed: .ioFailed
        case .missingDirectory: .missingFolder
        case .busy: .busy
        case .damaged, .newestCommitDamaged: .damaged
        case .noSpace: .diskFull
        case .permission: .permissionDenied
        case .readOnly: .readOnly
        case .outcomeUnknown, .poisoned: .outcomeUnknown
        case .closed: .closed
        case .suspended: .suspended
        case .reentrant: .reentrantSave
        case .limitExceeded: .valueTooLarge
        case .invalid, .cancelled: .invalidRequest
        case .notRetained: .commitExpired
        case .objectMissing: .objectNotFound
        case .blobMissing: .blobMissing
        case .blobSwept: .blobSwept
        case .blobDamaged: .blobDamaged
        case .storeGone: .storeGone
        case .exists: .storeExists
        }
    }

    /// What helps; each is followed by a test (`AdviceFor...Tests`).
    private static func suggestion(
        for code: EngineError.Code,
        _ store: String,
        _ isOpening: Bool
    ) -> String? {
        switch code {
        case .notAStore: "Check the path: the file there is left as it is."
        case .formatTooNew:
            "Update the app: a newer version wrote this store, and it is as it was. Where the "
                + "message says so, isReadOnly reads it until then."
        case .missing: "Check the path, or open with createIfMissing to make a new store."
        case .missingDirectory: "Make the folder first, or choose one that exists."
        case .busy, .ioFailed, .noSpace: whenItFails(code, isOpening)
        case .damaged, .newestCommitDamaged: verify(store)
        case .permission:
            "The store's folder and file must be readable and writable; open with isReadOnly "
                + "to read only."
        case .readOnly: "Open the store without isReadOnly to write."
        case .outcomeUnknown:
            "Close the store, open it again, and call outcome(of:) with this error's commit: "
                + "it tells whether the save is there. Until then the store can be read."
        case .poisoned:
            "Close the store and open it again to write, and to learn what became of the "
                + "save that failed first. Until then the store can be read."
        case .reentrant: "Save when the closure or merge policy has returned."
        case .blobMissing, .blobDamaged: setAnew(store)
        case .blobSwept:
            "Open the store again: it then reads what is there now, and follows the process "
                + "that writes if the file \(store)-lock is there or can be made."
        case .storeGone:
            "Edits stand, and reads go on: copy the objects that are wanted to a container of "
                + "another store. Then close this one, and open the store that is wanted."
        case .notRetained: moreHistory
        case .suspended: "Call resume(), then do it again: edits stand, and reads go on meanwhile."
        case .exists:
            "Restore under another name, or with replacing: true, after which the store that is "
                + "there now is gone."
        case .closed, .limitExceeded, .invalid, .objectMissing, .cancelled: nil
        }
    }

    static func wrongEntity(_ id: ManagedObjectID, _ expected: String) -> StoreError {
        StoreError(
            .wrongEntity,
            "the ID does not belong to a \(expected)",
            place: Place(entity: expected, object: id)
        )
    }

    /// What is done again: opening, or what was wanted of an open store.
    private static func whenItFails(_ code: EngineError.Code, _ isOpening: Bool) -> String {
        switch (code, isOpening) {
        case (.busy, true):
            "Somebody else writes to the store: open the store again when that is done, or now "
                + "with isReadOnly to read."
        case (.busy, false):
            "Somebody else writes to the store. Edits stand: save again when that is done."
        case (.noSpace, true):
            "Make room on the disk, then open the store again, or with isReadOnly to read."
        case (.noSpace, false): "Make room on the disk, then do it again: edits stand."
        case (_, true): "Check the disk and the path, then open the store again."
        case (_, false): "Try again. Edits stand, and what could not be read is read anew."
        }
    }

    private static func verify(_ store: String) -> String {
        "Keep a copy of the store, its file and its folder of blobs. varve verify \(store) says "
            + "what is damaged, and varve recover \(store) OUT writes the rest into a new store."
    }

    /// For the bytes of a blob.
    static func setAnew(_ store: String) -> String {
        "Set the property anew, or put the blob's file back from a copy of the store. "
            + "varve verify \(store) --full names the blobs and their objects."
    }
}

extension SchemaModel {
    fileprivate func objectID(
        _ entity: String,
        _ id: ObjectID,
        _ store: UUIDValue?
    ) -> ManagedObjectID? {
        guard let store, let model = entities.first(where: { $0.name == entity }) else {
            return nil
        }
        return ManagedObjectID(store: store, entity: model.record.id, object: id)
    }
}
