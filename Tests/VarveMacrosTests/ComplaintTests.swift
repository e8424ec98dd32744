// What the macros refuse, and the change each complaint offers.
#if Macros
import SwiftSyntaxMacrosGenericTestSupport
import Testing

@Suite("Macro complaints") struct ComplaintTests {
    /// One wrong property and what is said about it.
    struct Case: CustomTestStringConvertible, Sendable {
        let property: String
        /// The property after expansion: without the attributes that are macros.
        var left: String?
        let says: String
        var column = 5
        /// Title of the fix-it and the property after it.
        var fix: (title: String, result: String)?
        /// Titles of further fix-its that are offered.
        var alsoOffers: [String] = []

        var testDescription: String { property }
    }

    static let properties: [Case] = [
        Case(
            property: #"let title: String = """#,
            says: "a stored property of an entity is a 'var': its row can change",
            fix: ("use 'var'", #"var title: String = """#)
        ),
        Case(
            property: "var count = 0",
            says: "a stored property of an entity says its type",
            column: 9,
            fix: ("add ': Int'", "var count: Int = 0")
        ),
        Case(
            property: "var kind = Kind.large",
            says: "a stored property of an entity says its type",
            column: 9,
            fix: ("add ': Type'", "var kind: <#Type#> = Kind.large")
        ),
        Case(
            property: "var name: String",
            says: "'name' is not optional, so a new object needs a value for it; write a default, "
                + "make it optional, or mark it with '@Attribute(.required)' and set it before "
                + "every first save",
            column: 9,
            fix: ("add the default '\"\"'", #"var name: String = """#),
            alsoOffers: ["make it optional"]
        ),
        Case(
            property: "var words: Set<String> = []",
            says: "'Set<String>' cannot be stored: an attribute is a Bool, an integer, "
                + "a Double or Float, a String, Date, UUID, URL, Data, Decimal, Blob?, an enum "
                + "that is a StoredEnum, a struct that is StoredCodable, an array or a dictionary "
                + "with String keys of these, or an optional of these; a type of others is kept "
                + "with @Attribute(.coded(by:)); mark a property that is not stored with "
                + "@Transient",
            column: 16
        ),
        Case(
            property: "var title: String! = nil",
            says: "an attribute is optional or it is not; '!' is neither",
            column: 16,
            fix: ("use 'String?'", "var title: String? = nil")
        ),
        Case(
            property: "var id: UUID = UUID()",
            says: "every managed object has 'id' already; give this property another name",
            column: 9
        ),
        Case(
            property: "var a: Int = 0, b: Int = 0",
            says: "write one property of an entity per 'var'",
            column: 9
        ),
        Case(
            property: "lazy var a: Int = 0",
            says: "a stored property cannot be 'lazy'; mark it with @Transient"
        ),
        Case(
            property: "var a: Int = 0 { didSet {} }",
            says: "a stored property of an entity has no willSet or didSet",
            column: 20
        ),
        Case(
            property: "@Transient var cache: Int",
            left: "var cache: Int",
            says: "a transient property needs an initial value: the store makes its object",
            column: 20
        ),
        Case(
            property: "@Attribute static let version = 1",
            left: "static let version = 1",
            says: "'@Attribute' has nothing to keep here: this property belongs to the type"
        ),
        Case(
            property: "@Attribute var double: Int { 2 }",
            left: "var double: Int { 2 }",
            says: "'@Attribute' has nothing to keep here: this property is computed"
        ),
        Case(
            property: "var data: Blob",
            says: "a Blob is always optional: a new object has none yet",
            column: 15,
            fix: ("use 'Blob?'", "var data: Blob?")
        ),
        Case(
            property: "@Attribute(.externalStorage(above: 9)) var data: Data = Data()",
            left: "var data: Data = Data()",
            says: "only a property of type 'Blob?' can be kept outside the store",
            column: 16,
            fix: (
                "use 'Blob?'",
                "@Attribute(.externalStorage(above: 9)) var data: Blob? = Data()"
            )
        ),
        Case(
            property: "@Relationship var tag: Tag",
            left: "var tag: Tag",
            says: "a relationship to one object is always optional",
            column: 28,
            fix: ("use 'Tag?'", "@Relationship var tag: Tag?")
        ),
        Case(
            property: "@Relationship var tags: [Tag]",
            left: "var tags: [Tag]",
            says: "a relationship to many objects has the type 'ToMany<Tag>'",
            column: 29,
            fix: ("use 'ToMany<Tag>'", "@Relationship var tags: ToMany<Tag>")
        ),
        Case(
            property: "var tags: ToMany<Tag>",
            says: "'ToMany' is the type of a relationship",
            column: 15,
            fix: ("add '@Relationship'", "@Relationship var tags: ToMany<Tag>")
        ),
        Case(
            property: "@Relationship(ordered: true) var tag: Tag?",
            left: "var tag: Tag?",
            says: "only a to-many relationship can be ordered",
            column: 28
        ),
        Case(
            property: #"@Relationship(inverse: "items") var tag: Tag?"#,
            left: "var tag: Tag?",
            says: "the inverse is a key path to one property of the other entity: '\\Tag.items'",
            column: 28
        ),
        Case(
            property: #"#Index<Item>([\.missing])"#,
            left: "",
            says: "'missing' is not a stored property of 'Item'",
            column: 19
        ),
        Case(
            property: #"#Unique<Other>([\.missing])"#,
            left: "",
            says: "#Unique stands in 'Item' and so is about 'Item'"
        ),
    ]

    @Test("A property that cannot be stored is refused", arguments: properties)
    func property(_ wrong: Case) {
        let left = wrong.left ?? wrong.property
        let offers = (wrong.fix.map { [$0.title] } ?? []) + wrong.alsoOffers
        expectExpansion(
            Self.entity(wrong.property),
            becomes: Self.expanded(left),
            complaints: [
                DiagnosticSpec(
                    message: wrong.says,
                    line: 2,
                    column: wrong.column,
                    fixIts: offers.map { FixItSpec(message: $0) }
                )
            ],
            applying: wrong.fix.map { [$0.title] },
            gives: wrong.fix.map { Self.entity($0.result) }
        )
    }

    @Test("A missing conformance is offered") func missingConformance() {
        expectExpansion(
            "@Entity final class Item {\n}",
            becomes: Self.expanded("").replacing(": ManagedObject", with: ""),
            complaints: [
                DiagnosticSpec(
                    message: "write ': ManagedObject': a conformance that a macro adds would "
                        + "bind the class to the main actor in modules that are isolated to it",
                    line: 1,
                    column: 21,
                    fixIts: [FixItSpec(message: "add ': ManagedObject'")]
                )
            ],
            applying: ["add ': ManagedObject'"],
            gives: "@Entity final class Item: ManagedObject {\n}"
        )
    }

    @Test("The conformance comes after others") func furtherConformance() {
        expectExpansion(
            "@Entity final class Item: Named {\n}",
            becomes: Self.expanded("").replacing(": ManagedObject", with: ": Named"),
            complaints: [
                DiagnosticSpec(
                    message: "write ': ManagedObject': a conformance that a macro adds would "
                        + "bind the class to the main actor in modules that are isolated to it",
                    line: 1,
                    column: 21,
                    fixIts: [FixItSpec(message: "add ': ManagedObject'")]
                )
            ],
            applying: ["add ': ManagedObject'"],
            gives: "@Entity final class Item: Named, ManagedObject {\n}"
        )
    }

    @Test("A class that is not final is refused") func notFinal() {
        expectExpansion(
            "@Entity class Item: ManagedObject {\n}",
            becomes: Self.expanded("").replacing("final class", with: "class"),
            complaints: [
                DiagnosticSpec(
                    message:
                        "an entity is a 'final class': entities do not inherit from each other; "
                        + "what several share is a '@Composite' struct or an entity that they lead "
                        + "to, and a protocol gives them one interface",
                    line: 1,
                    column: 9,
                    fixIts: [FixItSpec(message: "add 'final'")]
                )
            ],
            applying: ["add 'final'"],
            gives: "@Entity final class Item: ManagedObject {\n}"
        )
    }

    @Test("A struct is no entity") func structure() {
        expectExpansion(
            "@Entity struct Item: ManagedObject {\n    var title: String = \"\"\n}",
            becomes: "struct Item: ManagedObject {\n    var title: String = \"\"\n}",
            complaints: [
                DiagnosticSpec(
                    message:
                        "an entity is a 'final class': an object has one identity in its context",
                    line: 1,
                    column: 9,
                    fixIts: [FixItSpec(message: "use 'final class'")]
                )
            ],
            applying: ["use 'final class'"],
            gives: "@Entity final class Item: ManagedObject {\n    var title: String = \"\"\n}"
        )
    }

    @Test("The companions want an entity around them") func outsideEntity() {
        expectExpansion(
            "final class Plain {\n    @Attribute var title: String = \"\"\n}",
            becomes: "final class Plain {\n    var title: String = \"\"\n}",
            complaints: [
                DiagnosticSpec(
                    message: "'@Attribute' has a meaning inside an @Entity class only",
                    line: 2,
                    column: 5
                )
            ]
        )
    }

    private static func entity(_ property: String) -> String {
        "@Entity final class Item: ManagedObject {\n    \(property)\n}"
    }

    /// An entity whose only property was refused.
    private static func expanded(_ property: String) -> String {
        """
        final class Item: ManagedObject {
        \(property.isEmpty ? "" : "    \(property)\n")
            static let entityName = "Item"

            struct Columns: Sendable {
                init() {
                }
            }

            static let columns = Columns()

            @safe @exclusivity(unchecked) var storage: ObjectStorage

            init(storage: consuming ObjectStorage) {
                self.storage = storage
            }
        }

        @available(
            *, unavailable,
            message: "managed objects stay in their context; pass the id or a snapshot"
        )
        extension Item: Sendable {
        }
        """
    }
}
#endif
