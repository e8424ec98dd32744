// Blob columns: digest and length filter and sort, content does not; dropping one lets its blobs
// go.

import Testing
import VarveBase
import VarveEngine

@testable import VarveRecords

@Suite(.verified) struct BlobColumnTests {
    private static func schema(_ version: UInt32, hasBlob: Bool = true) -> SchemaDescription {
        var picture = EntityDescription(
            name: "Picture",
            attributes: [AttributeDescription(name: "title", type: .text)]
        )
        if hasBlob {
            picture.attributes.append(
                AttributeDescription(
                    name: "data",
                    type: .blob,
                    isOptional: true,
                    externalLimit: 50
                )
            )
        }
        return SchemaDescription(version: version, entities: [picture])
    }

    private func insert(_ store: RecordStore, _ bytes: [UInt8]?) throws -> ObjectID {
        guard let bytes else { return try store.insert("Picture", [("title", .text("none"))]) }
        let writer = try store.engine.makeBlobWriter(externalLimit: 50)
        try writer.append(bytes)
        let pending = try writer.finish()
        return try withExtendedLifetime(pending) {
            try store.insert(
                "Picture",
                [("title", .text("\(bytes.count)")), ("data", .blob(pending.reference))]
            )
        }
    }

    @Test func `Length and digest filter and sort; content is refused`() throws {
        let store = try Cities.store(Self.schema(1))
        let small = try insert(store, [1, 2, 3])
        let large = try insert(store, [UInt8](repeating: 9, count: 500))
        let none = try insert(store, nil)
        let snapshot = try store.snapshot()
        var query = try store.query("Picture")
        func fetch(_ predicate: Predicate) throws -> [ObjectID] {
            query.predicate = predicate
            return try snapshot.fetchIDs(query)
        }
        let length = PropertyPath(["data"], part: .blobLength)
        #expect(try fetch(.compare(length, .greater, .int(3))) == [large])
        #expect(try fetch(.compare(length, .equal, .null)) == [none])
        #expect(try fetch(.compare(PropertyPath("data"), .notEqual, .null)) == [small, large])
        let entity = try store.schema.require("Picture")
        let reference = try #require(
            try snapshot.row(entity.id, small)?.blob(entity.column("data"))
        )
        let digest = PropertyPath(["data"], part: .blobDigest)
        #expect(try fetch(.compare(digest, .equal, .data(reference.digest.bytes))) == [small])
        #expect(try fetch(.compare(PropertyPath("data"), .equal, .blob(reference))) == [small])
        #expect(throws: RecordError.self) {
            try fetch(.compare(PropertyPath("data"), .less, .blob(reference)))
        }
        query.predicate = .always
        query.sort = [SortTerm(length, isDescending: true)]
        #expect(try snapshot.fetchIDs(query) == [large, small, none])
        query.sort = [SortTerm("data")]
        #expect(throws: RecordError.self) { try snapshot.fetchIDs(query) }
        #expect(store.rowCache.statistics.bytes < 200)
    }

    @Test func `Dropping the attribute or the entity lets the blobs go`() throws {
        for dropsEntity in [false, true] {
            let directory = TestDirectory()
            do {
                let store = try directory.open(Self.schema(1))
                _ = try insert(store, [1, 2, 3])
                _ = try insert(store, [UInt8](repeating: 9, count: 500))
                #expect(try store.snapshot().storage.count(.blobs) == 2)
                try store.close()
            }
            let after =
                dropsEntity
                ? SchemaDescription(version: 2, entities: []) : Self.schema(2, hasBlob: false)
            let store = try directory.open(after, removing: ["Picture", "Picture.data"])
            #expect(try store.snapshot().storage.count(.blobs) == 0)
            if !dropsEntity { #expect(try store.snapshot().count(store.query("Picture")) == 2) }
            try store.close()
        }
    }
}
