// A small store with something of everything, the same bytes in every run: for tests of tools.
internal import VarveBase
public import VarveEngine
public import VarveRecords

/// A library of books, authors and loans.
public enum SampleStore {
    /// The schema: to-one, to-many, many-to-many and ordered relationships, indexes, large values,
    /// blobs in the log and in files.
    public static let schema = SchemaDescription(
        version: 7,
        entities: [
            EntityDescription(
                name: "Author",
                attributes: [AttributeDescription(name: "name", type: .text)],
                relationships: [
                    RelationshipDescription(
                        name: "books",
                        target: "Book",
                        inverse: "author",
                        isToMany: true
                    )
                ],
                uniqueConstraints: [UniqueConstraintDescription(["name"])]
            ),
            EntityDescription(
                name: "Book",
                attributes: [
                    AttributeDescription(name: "title", type: .text, defaultValue: .text("")),
                    AttributeDescription(name: "year", type: .int32, isOptional: true),
                    AttributeDescription(name: "price", type: .decimal, isOptional: true),
                    AttributeDescription(name: "notes", type: .text, isOptional: true),
                    AttributeDescription(
                        name: "cover",
                        type: .blob,
                        isOptional: true,
                        externalLimit: 4096
                    ),
                ],
                relationships: [
                    RelationshipDescription(name: "author", target: "Author", inverse: "books"),
                    RelationshipDescription(
                        name: "loans",
                        target: "Loan",
                        inverse: "book",
                        isToMany: true
                    ),
                    RelationshipDescription(
                        name: "similar",
                        target: "Book",
                        isToMany: true,
                        isOrdered: true
                    ),
                ],
                indexes: [IndexDescription("title"), IndexDescription("author", "year")]
            ),
            EntityDescription(
                name: "Loan",
                attributes: [
                    AttributeDescription(name: "due", type: .date),
                    AttributeDescription(name: "isBack", type: .bool, defaultValue: .bool(false)),
                ],
                relationships: [
                    RelationshipDescription(name: "book", target: "Book", inverse: "loans")
                ],
                indexes: [IndexDescription("due")]
            ),
        ]
    )

    /// Makes the store and leaves it open.
    ///
    /// Three commits: "import" with all rows (large enough to be a TREE), then "edit" and "lend" as
    /// DELTAs.
    ///
    /// - Parameters:
    ///   - location: where it goes.
    ///   - books: how many, at least 4; with 300 or more the trees have inner pages.
    /// - Throws: what the store throws.
    public static func make(
        _ location: StoreLocation,
        books: Int = 40
    ) throws -> RecordStore {
        var options = RecordOptions()
        options.engine.environment = FixedEnvironment()
        options.engine.creator = "SampleStore 1"
        // A store that is copied before it is closed has no CLOSE, however slow the machine is.
        options.engine.maintenance = .inline
        let store = try RecordStore.open(location, schema: schema, options: options)
        // Taken from the store, so that nothing else gets them; numbered from 1 to read well.
        precondition(books >= 4, "the first four books are special")
        _ = store.allocateObjectIDs(6 + books + books * 2)
        try insertAll(store, books)
        try store.engine.checkpoint()
        let book = try entity("Book", store)
        let loan = try entity("Loan", store)
        _ = try store.write(author: "edit") { transaction in
            let edit: [(String, StoredValue)] = [("title", .text("Solaris")), ("year", .int(1961))]
            try transaction.update(book.id, id(6), try values(book, edit))
        }
        _ = try store.write(author: "lend") { transaction in
            let lent: [(String, StoredValue)] = [
                ("due", .date(800_000_000)), ("book", .reference(id(6))),
            ]
            try transaction.insert(loan.id, id(5 + books * 3), try values(loan, lent))
            try transaction.delete(loan.id, id(5 + books))
        }
        return store
    }

    private static func id(_ number: Int) -> ObjectID { ObjectID(UInt64(number) + 1) }

    /// The commit "import".
    private static func insertAll(_ store: RecordStore, _ books: Int) throws {
        let author = try entity("Author", store)
        let book = try entity("Book", store)
        let loan = try entity("Loan", store)
        var random = SeededRandom(seed: 7)
        let covers = try [1000, 20_000].map { count in
            let writer = try store.engine.makeBlobWriter(externalLimit: 4096)
            try writer.append(random.bytes(count))
            return try writer.finish()
        }
        let names = [
            "Iris Murdoch", "Lem", "Ursula K. Le Guin", "Wisława Szymborska", "Tove Jansson",
        ]
        _ = try store.write(author: "import") { transaction in
            for (number, name) in names.enumerated() {
                let fields = try values(author, [("name", .text(name))])
                try transaction.insert(author.id, id(number), fields)
            }
            for number in 0..<books {
                var fields = special(number, covers)
                fields.append(("author", .reference(id(number % names.count))))
                try transaction.insert(book.id, id(5 + number), try values(book, fields))
                for copy in 0..<2 {
                    let fields: [(String, StoredValue)] = [
                        ("due", .date(Double(790_000_000 + number * 86_400 + copy))),
                        ("book", .reference(id(5 + number))),
                    ]
                    let place = id(5 + books + number * 2 + copy)
                    try transaction.insert(loan.id, place, try values(loan, fields))
                }
            }
            if let similar = book.relationship(named: "similar") {
                try transaction.setOrder(book, similar, of: id(5), [id(8), id(6), id(7)])
            }
        }
    }

    /// What a book has of its own; the first five are the special ones.
    private static func special(
        _ number: Int,
        _ covers: [PendingBlob]
    ) -> [(String, StoredValue)] {
        var fields: [(String, StoredValue)] = [
            ("title", .text(number == 0 ? "The Sea, The Sea" : "Volume \(number)")),
            ("year", number % 7 == 3 ? .null : .int(Int64(1950 + number % 70))),
            ("price", decimal(number)),
        ]
        switch number {
        case 1, 2: fields.append(("cover", .blob(covers[number - 1].reference)))
        case 3:
            let text = String(repeating: "A long story. ", count: 300)
            fields.append(("notes", .text(text)))
        case 4: fields.append(("notes", .text("bell \u{7}, escape \u{1B}[31m")))
        default: break
        }
        return fields
    }

    private static func decimal(_ number: Int) -> StoredValue {
        let value = DecimalValue(
            normalizing: false,
            digits: "\(995 + number * 100)".utf8.map { $0 - 0x30 },
            exponent: -2
        )
        return value.map { .decimal($0) } ?? .null
    }

    private static func entity(_ name: String, _ store: RecordStore) throws -> RecordEntity {
        guard let entity = try store.schema.entity(named: name) else {
            throw RecordError.unknownEntity(name)
        }
        return entity
    }

    private static func values(
        _ entity: RecordEntity,
        _ fields: [(String, StoredValue)]
    ) throws -> [ColumnValue] {
        try fields.map { name, value in
            if let attribute = entity.attribute(named: name) {
                return ColumnValue(attribute.column, value)
            }
            guard case .column(let column, _)? = entity.relationship(named: name)?.storage else {
                throw RecordError.unknownProperty(entity: entity.name, property: name)
            }
            return ColumnValue(column, value)
        }
    }
}
