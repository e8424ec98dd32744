// Rows of one entity, and one object with what it is related to.

import VarveBase
import VarveEngine
import VarveFormat
import VarveRecords

/// Rows of one entity.
public struct RowsReport: Hashable, Sendable {
    /// One row.
    public struct Row: Hashable, Sendable {
        /// "Book:1042".
        public var object: String
        /// The commit that last changed it.
        public var version: UInt64
        /// Values in the order of the columns.
        public var values: [InspectedValue]
    }

    /// The entity.
    public var entity: String
    /// Names of the columns.
    public var columns: [String]
    /// The rows.
    public var rows: [Row]
    /// How many rows fit the filter, whatever the limit was.
    public var matching: UInt64
    /// Rows that cannot be read because of damage.
    public var unreadable: UInt64 = 0
    /// The commit that is shown.
    public var commit: UInt64

    /// The object `index` as one line of JSON Lines.
    public func json(_ index: Int) -> JSON {
        let row = rows[index]
        return .members([
            ("format", .int(1)), ("object", .string(row.object)), ("version", .uint(row.version)),
            ("values", .members(zip(columns, row.values).map { ($0, $1.json) })),
        ])
    }
}

/// One object.
public struct ObjectReport: Hashable, Sendable {
    /// One relationship of it.
    public struct Relationship: Hashable, Sendable {
        /// Its name.
        public var name: String
        /// Whether it leads to many objects.
        public var isToMany: Bool
        /// How many objects it leads to.
        public var count: Int
        /// The first of them, in their order.
        public var objects: [String]
    }

    /// "Book:1042".
    public var object: String
    /// The commit that last changed it.
    public var version: UInt64
    /// Attributes and their values.
    public var values: [Value]
    /// Relationships and where they lead.
    public var relationships: [Relationship]

    /// An attribute and its value.
    public struct Value: Hashable, Sendable {
        /// The attribute.
        public var name: String
        /// Its value.
        public var value: InspectedValue
    }

    /// The answer as JSON.
    public var json: JSON {
        .members([
            ("format", .int(1)), ("object", .string(object)), ("version", .uint(version)),
            ("values", .members(values.map { ($0.name, $0.value.json) })),
            (
                "relationships",
                .members(
                    relationships.map { relationship in
                        (
                            relationship.name,
                            .members([
                                ("count", .count(relationship.count)),
                                (
                                    "objects",
                                    .array(relationship.objects.map { .string($0) })
                                ),
                            ])
                        )
                    }
                )
            ),
        ])
    }
}

/// Which rows are wanted.
public struct RowsRequest: Hashable, Sendable {
    /// The entity's name.
    public var entity: String
    /// A filter in the text form of the library: see docs/Inspection.md.
    public var filter: String?
    /// Properties in order, each with "-" in front for high to low.
    public var sort: [String] = []
    /// Only these columns, in this order; all when empty.
    public var columns: [String] = []
    /// At most so many rows.
    public var limit: Int?
    /// Leaves out so many at the beginning.
    public var offset = 0

    /// All rows of an entity.
    public init(entity: String) { self.entity = entity }
}

extension StoreObserver {
    /// How many rows fit a request, its limit and offset left aside.
    ///
    /// - Throws: `badRequest`, `damaged`, `ioFailed`.
    public func count(_ request: RowsRequest) throws(InspectionError) -> UInt64 {
        let snapshot = try shown().snapshot
        var query = try query(request)
        query.limit = nil
        query.offset = 0
        query.sort = []
        let all = query
        return UInt64(try records { () throws(RecordError) in try snapshot.count(all) })
    }

    /// Rows of one entity.
    ///
    /// - Throws: `badRequest` with a suggestion for unknown names and filters that cannot be read,
    ///   `damaged`, `ioFailed`.
    public func rows(_ request: RowsRequest) throws(InspectionError) -> RowsReport {
        let snapshot = try shown().snapshot
        let entity = try entity(request.entity)
        let query = try query(request)
        let columns = try self.columns(entity, request.columns)
        var unreadable: UInt64 = 0
        let ids: [ObjectID]
        do throws(RecordError) {
            ids = try snapshot.fetchIDs(query)
        } catch {
            let error = InspectionError(error)
            // Without a filter and an order the sound leaves can still be read one by one.
            guard error.kind == .damaged, query.predicate == .always, query.sort.isEmpty else {
                throw error
            }
            (ids, unreadable) = try soundIDs(entity, request)
        }
        let isWindow = request.limit != nil || request.offset != 0
        var report = RowsReport(
            entity: entity.name,
            columns: columns.map(\.name),
            rows: [],
            matching: isWindow && unreadable == 0 ? try count(request) : UInt64(ids.count),
            unreadable: unreadable,
            commit: snapshot.number.rawValue
        )
        for id in ids {
            let row: CachedRow?
            do throws(RecordError) {
                row = try snapshot.row(entity.id, id)
            } catch {
                let error = InspectionError(error)
                guard error.kind == .damaged else { throw error }
                report.unreadable += 1
                continue
            }
            guard let row else { continue }
            let values = try columns.map { column throws(InspectionError) in
                try value(row, column, snapshot)
            }
            report.rows.append(
                RowsReport.Row(
                    object: names.object(entity.id, id),
                    version: row.version.rawValue,
                    values: values
                )
            )
        }
        return report
    }

    /// One object: "Book:1042".
    ///
    /// - Parameters:
    ///   - name: entity and number.
    ///   - related: how many objects of each relationship are named.
    /// - Throws: `badRequest`, `notFound`, `damaged`, `ioFailed`.
    public func object(_ name: String, related: Int = 20) throws(InspectionError) -> ObjectReport {
        let snapshot = try shown().snapshot
        let (entity, row) = try row(name)
        var values: [ObjectReport.Value] = []
        for column in try columns(entity, []) {
            guard case .attribute = column.kind else { continue }
            values.append(.init(name: column.name, value: try value(row, column, snapshot)))
        }
        var relationships: [ObjectReport.Relationship] = []
        for relationship in entity.relationships {
            let ids = try records { () throws(RecordError) in
                try snapshot.relatedIDs(entity, relationship, of: row.id)
            }
            relationships.append(
                ObjectReport.Relationship(
                    name: relationship.name,
                    isToMany: relationship.isToMany,
                    count: ids.count,
                    objects: ids.prefix(related).map { names.object(relationship.target, $0) }
                )
            )
        }
        return ObjectReport(
            object: names.object(entity.id, row.id),
            version: row.version.rawValue,
            values: values,
            relationships: relationships
        )
    }

    /// The bytes of a blob, piece by piece.
    ///
    /// - Throws: `badRequest` when the attribute is no blob, `notFound` when there is none,
    ///   `damaged`, `ioFailed`; and what `body` throws.
    public func blob(
        of object: String,
        _ attribute: String,
        _ body: ([UInt8]) throws -> Void
    ) throws {
        let snapshot = try shown().snapshot
        let (entity, row) = try row(object)
        let column = try columns(entity, [attribute])[0]
        guard case .attribute(let described) = column.kind, described.type == .blob else {
            throw InspectionError(.badRequest, "\(entity.name).\(attribute) is not a blob")
        }
        let value = try records { () throws(RecordError) in try row.blob(described.column) }
        guard let reference = value else {
            throw InspectionError(.notFound, "\(object) has no \(attribute)")
        }
        let reader = try engine { () throws(EngineError) in
            try snapshot.storage.blob(reference)
        }
        guard let reader else {
            throw InspectionError(.damaged, "no blob of the store is the one that \(object) names")
        }
        var position: UInt64 = 0
        while position < reference.length {
            let range = position..<min(reference.length, position + 1 << 20)
            try body(try engine { () throws(EngineError) in try reader.read(range) })
            position = range.upperBound
        }
    }

    /// Objects of an entity in the leaves that are sound, and how many rows the others held.
    private func soundIDs(
        _ entity: RecordEntity,
        _ request: RowsRequest
    ) throws(InspectionError) -> ([ObjectID], UInt64) {
        let snapshot = try shown().snapshot.storage
        var holes: [AuditedPage] = []
        for root in log.tail?.roots ?? [] where root.tree == entity.tree {
            _ = try engine { () throws(EngineError) in
                try log.audit(root) { page, error in
                    if error != nil, !page.isSymbols, !page.isBasis { holes.append(page) }
                    return true
                }
            }
        }
        var ids: [ObjectID] = []
        var start: [UInt8] = []
        for hole in holes.map(Optional.some) + [nil] {
            do throws(EngineError) {
                var cursor = snapshot.cursor(entity.tree)
                var more = try cursor.seek(atOrAfter: start)
                while more, hole.map({ cursor.compareKey(with: $0.low) < 0 }) ?? true {
                    ids.append(try cursor.trailingObjectID())
                    more = try cursor.next()
                }
            } catch {
                // The step after the last sound leaf leads into the hole.
                guard error.code == .damaged else { throw InspectionError(error) }
            }
            guard let high = hole?.high else { break }
            start = high
        }
        let window = ids.dropFirst(request.offset).prefix(request.limit ?? .max)
        return (Array(window), holes.reduce(0) { $0 + $1.rows })
    }

    // MARK: Parts

    struct Column {
        var name: String
        var kind: RecordColumn
    }

    /// Named columns, or all: attributes first, then to-one relationships.
    func columns(_ entity: RecordEntity, _ wanted: [String]) throws(InspectionError) -> [Column] {
        let all =
            entity.attributes.map { Column(name: $0.name, kind: .attribute($0)) }
            + entity.relationships.compactMap { relationship in
                guard case .column = relationship.storage else { return nil }
                return Column(name: relationship.name, kind: .relationship(relationship))
            }
        if wanted.isEmpty { return all }
        return try wanted.map { name throws(InspectionError) in
            guard let column = all.first(where: { $0.name == name }) else {
                throw unknownProperty(name, entity, among: all.map(\.name))
            }
            return column
        }
    }

    func unknownProperty(
        _ name: String,
        _ entity: RecordEntity,
        among names: [String]
    ) -> InspectionError {
        let meant = Spelling.suggestion(for: name, among: names)
        return InspectionError(
            .badRequest,
            "\(entity.name) has no \(Spelling.escaped(name)) that can be used here",
            hint: meant.map { "did you mean \($0)?" }
                ?? "it has " + names.joined(separator: ", ")
        )
    }

    private func query(_ request: RowsRequest) throws(InspectionError) -> RecordQuery {
        let entity = try entity(request.entity)
        if let limit = request.limit, limit < 0 || request.offset < 0 {
            throw InspectionError(.badRequest, "limit and offset must not be negative")
        }
        var query = RecordQuery(
            entity: entity.id,
            limit: request.limit,
            offset: request.offset
        )
        let language = QueryText(schema: try shown().snapshot.schema, zone: DateZone.named)
        do throws(QueryTextError) {
            if let filter = request.filter {
                query.predicate = try language.filter(filter, of: entity)
            }
            query.sort = try language.order(request.sort.joined(separator: ", "), of: entity)
        } catch {
            throw InspectionError(
                .badRequest,
                "\(error.message)\n\(error.picture)",
                hint: error.possible.isEmpty
                    ? nil : "possible: " + error.possible.prefix(40).joined(separator: " ")
            )
        }
        return query
    }

    private func row(_ name: String) throws(InspectionError) -> (RecordEntity, CachedRow) {
        guard let colon = name.lastIndex(of: ":"),
            let number = UInt64(name[name.index(after: colon)...])
        else {
            throw InspectionError(
                .badRequest,
                "\(Spelling.escaped(name)) names no object",
                hint: "an object is written as Entity:number, as in Book:1042"
            )
        }
        let entity = try entity(String(name[..<colon]))
        let snapshot = try shown().snapshot
        let row = try records { () throws(RecordError) in
            try snapshot.row(entity.id, ObjectID(number))
        }
        guard let row else {
            throw InspectionError(.notFound, "there is no \(entity.name):\(number) in this commit")
        }
        return (entity, row)
    }

    /// A value; one that lies outside its row and is damaged does not hide the rest of the row.
    private func value(
        _ row: CachedRow,
        _ column: Column,
        _ snapshot: RecordSnapshot
    ) throws(InspectionError) -> InspectedValue {
        do throws(RecordError) {
            switch column.kind {
            case .attribute(let attribute):
                let stored = try snapshot.value(of: row, attribute.column)
                return inspected(stored, attribute.type, target: nil)
            case .relationship(let relationship):
                guard case .column(let column, _) = relationship.storage,
                    let object = try row.reference(column)
                else { return .null }
                return inspected(.reference(object), nil, target: relationship.target)
            }
        } catch {
            let error = InspectionError(error)
            guard error.kind == .damaged else { throw error }
            return .unreadable(error.message)
        }
    }
}
