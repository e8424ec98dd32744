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
        let place = Place(store: store)
        func make(
            _ code: Code,
            _ place: Place = place,
            details: [Detail] = [],
            suggestion: String? = nil
        ) -> StoreError {
            StoreError(
                code,
                "\(error)",
                place: place,
                details: details,
                cause: error,
                suggestion: suggestion
            )
        }
        func object(_ name: String, _ object: ObjectID) -> ManagedObjectID? {
            guard let identity, let model = schema?.entities.first(where: { $0.name == name })
            else {
                return nil
            }
            return ManagedObjectID(store: identity, entity: model.record.id, object: object)
        }
        switch error {
        case .engine(let engine):
            return translating(engine, place, isOpening: isOpening)
        case .format:
            return make(.damaged, suggestion: verify(store))
        case .schemaMismatch(let problems):
            return make(
                .schemaMismatch,
                details: problems.map { Detail(code: .schemaMismatch, message: $0) },
                suggestion:
                    "Give what was renamed an originalName and new properties a default, and "
                    + "name what is to go with its data in ContainerOptions.removing; the store "
                    + "is as it was."
            )
        case .schemaTooNew:
            return make(.schemaTooNew, suggestion: "Update the app; the store is as it was.")
        case .invalidSchema(let problems):
            return make(
                .invalidSchema,
                details: problems.map { Detail(code: .invalidSchema, message: $0) },
                suggestion: "Correct the entities' declarations."
            )
        case .unknownEntity(let name):
            return make(.unknownEntity, Place(store: store, entity: name))
        case .unknownProperty(let entity, let property):
            return make(.unknownAttribute, Place(store: store, entity: entity, attribute: property))
        case .unsupportedPredicate: return make(.unsupportedPredicate)
        case .invalidRequest: return make(.invalidRequest)
        case .invalidCursor: return make(.invalidCursor)
        case .notUnique(let violations):
            let details = violations.map { violation in
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
            return notUnique(details, store, cause: error)
        case .missingValue(let entity, let property, let id):
            return make(
                .missingValue,
                Place(
                    store: store,
                    entity: entity,
                    attribute: property,
                    object: object(entity, id)
                )
            )
        case .wrongType(let entity, let property, _):
            return make(.invalid, Place(store: store, entity: entity, attribute: property))
        case .objectNotFound(let entity, let id), .objectExists(let entity, let id):
            return make(
                .objectNotFound,
                Place(store: store, entity: entity, object: object(entity, id))
            )
        case .valueOutside(let entity, let property):
            return make(.ioFailed, Place(store: store, entity: entity, attribute: property))
        }
    }

    /// An error of the engine.
    static func translating(
        _ error: EngineError,
        _ place: Place,
        isOpening: Bool = false
    ) -> StoreError {
        var place = place
        place.frame = error.place.map { "@\(String($0.rawValue, radix: 16))" }
        let store = place.store ?? ""
        func make(_ code: Code, _ suggestion: String?, outcome: Outcome = .nothingSaved)
            -> StoreError
        {
            StoreError(
                code,
                error.message,
                place: place,
                outcome: outcome,
                commit: error.commit,
                cause: error,
                suggestion: suggestion
            )
        }
        switch error.code {
        case .notAStore:
            return make(.notAStore, "Check the path: the file there is left as it is.")
        case .formatTooNew:
            return make(
                .formatTooNew,
                "Update the app: a newer version wrote this store, and it is as it was. Where the "
                    + "message says so, isReadOnly reads it until then."
            )
        case .missing:
            return make(
                .ioFailed,
                "Check the path, or open with createIfMissing to make a new store."
            )
        case .missingDirectory:
            return make(.missingFolder, "Make the folder first, or choose one that exists.")
        case .busy: return make(.busy, whenItFails(error.code, isOpening))
        case .damaged, .newestCommitDamaged:
            return make(.damaged, verify(store))
        case .ioFailed: return make(.ioFailed, whenItFails(error.code, isOpening))
        case .noSpace: return make(.diskFull, whenItFails(error.code, isOpening))
        case .permission:
            return make(
                .permissionDenied,
                "The store's folder and file must be readable and writable; open with isReadOnly "
                    + "to read only."
            )
        case .readOnly:
            return make(.readOnly, "Open the store without isReadOnly to write.")
        case .outcomeUnknown:
            return make(
                .outcomeUnknown,
                "Close the store, open it again, and call outcome(of:) with this error's commit: "
                    + "it tells whether the save is there. Until then the store can be read.",
                outcome: .unknown
            )
        case .poisoned:
            return make(
                .outcomeUnknown,
                "Close the store and open it again to write, and to learn what became of the "
                    + "save that failed first. Until then the store can be read."
            )
        case .closed: return make(.closed, nil)
        case .reentrant:
            return make(.reentrantSave, "Save when the closure or merge policy has returned.")
        case .limitExceeded: return make(.valueTooLarge, nil)
        case .invalid: return make(.invalidRequest, nil)
        case .objectMissing: return make(.objectNotFound, nil)
        case .cancelled: return make(.invalidRequest, nil)
        case .notRetained: return make(.invalidRequest, nil)
        case .blobMissing:
            return make(.blobMissing, setAnew(store))
        case .blobSwept:
            return make(
                .blobSwept,
                "Open the store again: it then reads what is there now, and follows the process "
                    + "that writes if the file \(store)-lock is there or can be made."
            )
        case .storeGone:
            return make(
                .storeGone,
                "Edits stand, and reads go on: copy the objects that are wanted to a container of "
                    + "another store. Then close this one, and open the store that is wanted."
            )
        case .blobDamaged:
            return make(.blobDamaged, setAnew(store))
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
