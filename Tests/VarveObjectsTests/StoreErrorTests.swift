// Each failure of the layers below becomes a code of its own, with its outcome and advice.

import Testing
import VarveBase
import VarveEngine
import VarveRecords

@testable import VarveObjects

@Suite(.verified) struct StoreErrorTests {
    @Test func engineErrors() {
        let table: [(EngineError.Code, StoreError.Code, String)] = [
            (.notAStore, .notAStore, "Check the path"),
            (.formatTooNew, .formatTooNew, "Update the app"),
            (.missingDirectory, .missingFolder, "Make the folder"),
            (.missing, .ioFailed, "createIfMissing"),
            (.busy, .busy, "save again when that is done"),
            (.damaged, .damaged, "varve verify"),
            (.newestCommitDamaged, .damaged, "varve verify"),
            (.ioFailed, .ioFailed, "Try again"),
            (.noSpace, .diskFull, "Make room"),
            (.permission, .permissionDenied, "isReadOnly"),
            (.readOnly, .readOnly, "isReadOnly"),
            (.outcomeUnknown, .outcomeUnknown, "Close the store, open it again"),
            (.poisoned, .outcomeUnknown, "Close the store and open it again"),
            (.blobMissing, .blobMissing, "varve verify"),
            (.blobDamaged, .blobDamaged, "varve verify"),
            (.suspended, .suspended, "resume()"),
            (.exists, .storeExists, "replacing: true"),
        ]
        for (code, expected, advice) in table {
            let below = EngineError(code, "message", place: FileOffset(0x1f40))
            let error = StoreError.translating(below, .init(store: "a.varve"))
            #expect(error.code == expected, "\(code)")
            #expect(error.suggestion?.contains(advice) == true, "\(code)")
            #expect(error.outcome == (code == .outcomeUnknown ? .unknown : .nothingSaved))
            #expect(error.place.store == "a.varve" && error.place.frame == "@1f40")
            #expect(error.cause is EngineError)
            #expect(error.description.contains("\(expected)"))
        }
        #expect(StoreError.translating(EngineError(.closed, ""), .init()).code == .closed)
        #expect(
            StoreError.translating(EngineError(.limitExceeded, ""), .init()).code == .valueTooLarge
        )
    }

    @Test func recordErrors() {
        let table: [(RecordError, StoreError.Code)] = [
            (.schemaMismatch(problems: ["a", "b"]), .schemaMismatch),
            (.schemaTooNew(stored: 2, known: 1), .schemaTooNew),
            (.invalidSchema(problems: ["a"]), .invalidSchema),
            (.unknownEntity("X"), .unknownEntity),
            (.unknownProperty(entity: "X", property: "y"), .unknownAttribute),
            (.unsupportedPredicate("why"), .unsupportedPredicate),
            (.invalidRequest("why"), .invalidRequest),
            (.invalidCursor("why"), .invalidCursor),
            (.missingValue(entity: "X", property: "y", object: ObjectID(1)), .missingValue),
            (.wrongType(entity: "X", property: "y", expected: "Int"), .invalid),
            (.objectNotFound(entity: "X", object: ObjectID(1)), .objectNotFound),
            (.engine(EngineError(.busy, "locked")), .busy),
        ]
        for (below, expected) in table {
            let error = StoreError.translating(below, store: "memory")
            #expect(error.code == expected, "\(below)")
        }
        #expect(
            StoreError.translating(.schemaMismatch(problems: ["a", "b"]), store: "").details.count
                == 2
        )
    }

    @Test func codesWorkAsPatterns() {
        do {
            throw StoreError(.busy, "locked")
        } catch StoreError.Code.busy {
            // As meant.
        } catch {
            Issue.record("\(error)")
        }
    }
}
