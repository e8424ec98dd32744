// The rows of several entities from one JSON text: what tests begin with.

package import Foundation
import VarveBase
package import VarveEngine
import VarveRecords

extension PersistentContainer {
    /// Where the store is.
    package var storeLocation: StoreLocation { store.engine.location }

    /// Adds rows by the names of entities and fields: `{"Country": [{"code": "IS"}], ...}`.
    ///
    /// Each entity is one commit. Which comes first does not matter: one whose relationships lead
    /// to rows that are not there yet waits for the others.
    /// - Throws: `StoreError` with `invalid`, `missingValue`, `notUnique`, `objectNotFound` and
    ///   whatever else a batch throws, with entity and number of the row in its message.
    package func loadFixtures(_ json: Data, by author: String) throws -> [String: Int] {
        let context = newContext(author: author)
        let decoder = JSONLinesOptions().makeDecoder()
        decoder.userInfo[FixtureRows.key] = schema
        let read: FixtureRows
        do { read = try decoder.decode(FixtureRows.self, from: json) } catch {
            throw StoreError.reading(error, "fixtures", "")
        }
        var counts: [String: Int] = [:]
        var waiting = read.entities
        while !waiting.isEmpty {
            var left: [FixtureRows.Rows] = []
            var failure: StoreError?
            for rows in waiting {
                do {
                    counts[rows.model.name] = try context.load(rows, rows.model.type)
                } catch let error as StoreError where error.code == .objectNotFound {
                    left.append(rows)
                    failure = failure ?? error
                }
            }
            if let failure, left.count == waiting.count { throw failure }
            waiting = left
        }
        return counts
    }
}

extension ManagedObjectContext {
    fileprivate func load<Entity: ManagedObject>(
        _ rows: FixtureRows.Rows,
        _ type: Entity.Type
    ) throws -> Int {
        let batch = try BatchWriter<Entity>(self, nil)
        let numbered = rows.rows.enumerated().map { (number: $0 + 1, element: $1) }
        let result = try batch.traced(.fixtures) {
            try batch.commit("row", numbered) { row, fields in
                do { try row.take(fields) } catch let error as StoreError {
                    throw error.about(Entity.entityName)
                }
            }
        }
        return result.inserted + result.updated
    }
}

/// Rows by the name of their entity.
private struct FixtureRows: Decodable {
    struct Rows {
        let model: EntityModel
        let rows: [NamedFields]
    }
    static let key: CodingUserInfoKey = {
        guard let key = CodingUserInfoKey(rawValue: "varve.fixtures") else {
            preconditionFailure("a key has a name")
        }
        return key
    }()
    let entities: [Rows]

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { return nil }
    }

    init(from decoder: any Decoder) throws {
        guard let schema = decoder.userInfo[Self.key] as? SchemaModel else {
            preconditionFailure("fixtures are read with a schema in the decoder's userInfo")
        }
        let container = try decoder.container(keyedBy: Name.self)
        var entities: [Rows] = []
        for key in container.allKeys.sorted(by: { $0.stringValue < $1.stringValue }) {
            guard let model = schema.entities.first(where: { $0.name == key.stringValue }) else {
                throw StoreError(
                    .unknownEntity,
                    "\(key.stringValue) is no entity of the schema",
                    place: .init(entity: key.stringValue)
                )
            }
            let reader = FieldReader(schema, model, ignoresUnknown: false)
            var members = try container.nestedUnkeyedContainer(forKey: key)
            var rows: [NamedFields] = []
            while !members.isAtEnd {
                do {
                    let fields = try reader.fields(members.superDecoder(), model)
                    rows.append(NamedFields(fields: fields))
                } catch {
                    let place = "\(model.name), row \(rows.count + 1)"
                    throw StoreError.reading(error, place, model.name)
                }
            }
            entities.append(Rows(model: model, rows: rows))
        }
        self.entities = entities
    }
}
