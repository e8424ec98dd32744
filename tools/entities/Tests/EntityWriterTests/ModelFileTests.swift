// What one file of a model becomes, and what is said about it.
import EntityWriter
import Foundation
import Testing

@Suite("Model files") struct ModelFileTests {
    @Test("Macros are expanded, and all else stays as it was") func expansion() {
        let result = ModelFile(
            path: "Item.swift",
            text: #"""
                // About items.
                public import Varve
                import struct Foundation.Date

                /// An item.
                @Entity final class Item: ManagedObject {
                    #Unique<Item>([\.title])
                    /// What it says.
                    var title: String = ""
                    var length: Int { title.count }
                    @Transient var isShown = false
                }

                enum Shade: Int, StoredEnum { case light, dark }
                """#
        ).expanded()
        #expect(result.complaints == [])
        #expect(
            result.text == #"""
                // About items.
                public import VarveObjects
                import struct Foundation.Date

                /// An item.
                final class Item: ManagedObject {
                    /// What it says.
                    var title: String {
                        get {
                            storedValue(Self.columns.title, \.title)
                        }
                        set {
                            setStoredValue(newValue, Self.columns.title, \.title)
                        }
                    }
                    var length: Int { title.count }
                    var isShown = false

                    static let entityName = "Item"

                    struct Columns: Sendable {
                        let title = Column<Item, String>("title", default: "")
                    }

                    static let columns = Columns()

                    static var uniqueConstraints: [EntityConstraint] {
                        [
                            EntityConstraint(columns.title, onConflict: .error),
                        ]
                    }

                    @safe @exclusivity(unchecked) var storage: ObjectStorage

                    init(storage: consuming ObjectStorage) {
                        self.storage = storage
                    }

                    static var keyPaths: [PartialKeyPath<Item>: String] {
                        [
                            \Item.id: "id",
                            \Item.objectID: "objectID",
                            \Item.title: "title",
                        ]
                    }
                }

                enum Shade: Int, StoredEnum { case light, dark }

                @available(
                    *, unavailable,
                    message: "managed objects stay in their context; pass the id or a snapshot"
                )
                extension Item: Sendable {
                }
                """#
        )
    }

    @Test("The module without macros takes the place of the other, wherever it is named")
    func moduleNames() {
        let result = ModelFile(
            path: "Space.swift",
            text: """
                import struct Varve.Blob
                import Varves
                let limit = Varve.AttributeLimit.small
                func size(of blob: Varve.Blob?) -> [Varve.Blob] { [] }
                let other = my.Varve
                """
        ).expanded()
        #expect(result.complaints == [])
        #expect(
            result.text == """
                import struct VarveObjects.Blob
                import Varves
                let limit = VarveObjects.AttributeLimit.small
                func size(of blob: VarveObjects.Blob?) -> [VarveObjects.Blob] { [] }
                let other = my.Varve
                """
        )
    }

    @Test("An entity inside types has its whole name in the extension") func insideTypes() {
        let text = ModelFile(
            path: "Space.swift",
            text: """
                extension Outer.Middle {
                    enum Space {
                        @Entity final class Inner: ManagedObject {}
                    }
                }
                """
        ).expanded().text
        #expect(text.contains("\nextension Outer.Middle.Space.Inner: Sendable {"))
    }

    @Test("The key path of an inverse is left for the compiler to check") func inverses() {
        let text = ModelFile(
            path: "Item.swift",
            text: #"""
                @Entity final class Item: ManagedObject {
                    @Relationship(inverse: \Tag.items) var tags: ToMany<Tag>
                    @Relationship(inverse: nil) var other: Tag?
                }
                """#
        ).expanded().text
        #expect(text.contains(#"ToManyColumn<Item, Tag>("tags", inverse: "items")"#))
        #expect(
            text.contains(
                """
                    private static func _checkKeyPaths() {
                        _ = \\Tag.items as AnyKeyPath
                    }
                """
            )
        )
    }

    /// What is wrong, and the line and column where it begins.
    static let mistakes: [(model: String, complaint: String)] = [
        (
            "@Entity final class Item: ManagedObject {\n    var a: Int = 0\n    let b: Int = 0\n}",
            "3:5: error: a stored property of an entity is a 'var': its row can change"
        ),
        (
            "@Entity class Item: ManagedObject {}",
            "1:9: error: an entity is a 'final class': entities do not inherit from each other; "
                + "what several share is a '@Composite' struct or an entity that they lead to, and "
                + "a protocol gives them one interface"
        ),
        (
            "@Attribute var alone: Int = 0",
            "1:1: error: '@Attribute' has a meaning inside an @Entity class only"
        ),
        ("import Varve\nlet a = (", "2:10: error: expected value and ')' to end tuple"),
        (
            "@Varve.Entity final class Item: ManagedObject {}",
            "1:1: error: write '@Entity', without the module"
        ),
        (
            "#if os(Linux)\n@Entity final class Item: ManagedObject {}\n#endif",
            "2:1: error: '@Entity' cannot be expanded inside '#if': one file is written for all "
                + "builds"
        ),
        (
            property("@Relationship(inverze: \\Tag.item) var tag: Tag?"),
            "2:19: error: '@Relationship' has no argument 'inverze'"
        ),
        (
            property("@Relationship(ordered: true, ordered: true) var tags: ToMany<Tag>"),
            "2:34: error: '@Relationship' has 'ordered' twice"
        ),
        (
            property("@Relationship(\\Tag.item) var tag: Tag?"),
            "2:19: error: '@Relationship' has no argument without a name"
        ),
        (
            property("#Index<Item>([\\.a], ascending: [\\.a])\n    var a: Int = 0"),
            "2:25: error: '#Index' has no argument 'ascending'"
        ),
        (property("@Attribute(.requird) var a: Int = 0"), "2:16: " + options),
        (property("@Attribute(.required()) var a: Int = 0"), "2:16: " + options),
        (property("@Attribute(.externalStorage) var a: Blob?"), "2:16: " + options),
        (property("@Attribute(.externalStorage(over: 1)) var a: Blob?"), "2:16: " + options),
        (
            property("#if DEBUG\n    @Attribute\n    #endif\n    var a: Int = 0"),
            "3:5: error: '@Attribute' cannot be expanded inside '#if': one file is written for "
                + "all builds"
        ),
    ]

    private static let options =
        "error: an option of '@Attribute' is '.required', '.externalStorage()', "
        + "'.externalStorage(above: 100_000)', '.composite', '.coded(by:)', or a rule: "
        + "'.range', '.length', '.pattern', '.check'"

    private static func property(_ text: String) -> String {
        "@Entity final class Item: ManagedObject {\n    \(text)\n}"
    }

    @Test("What the compiler or the macros refuse is refused, with its place", arguments: mistakes)
    func complaints(_ model: String, _ complaint: String) {
        let found = ModelFile(path: "Model/Item.swift", text: model).expanded().complaints
        #expect(found.first == "Model/Item.swift:\(complaint)")
        #expect(found.dropFirst().allSatisfy { $0.contains(": note: ") })
    }

    @Test("Complaints come in the order of their places, and each fix as a note") func order() {
        let found = ModelFile(
            path: "Item.swift",
            text: """
                @Entity class Item: ManagedObject {
                    @Attribute(.wrong) var b: Int = 0
                    var a = 0
                }
                """
        ).expanded().complaints
        let starts = found.map { $0.split(separator: ": ", maxSplits: 2)[..<2] }
        #expect(
            starts.map { $0.joined(separator: " ") } == [
                "Item.swift:1:9 error", "Item.swift:1:9 note", "Item.swift:2:16 error",
                "Item.swift:3:9 error", "Item.swift:3:9 note",
            ]
        )
        #expect(found.last == "Item.swift:3:9: note: add ': Int'")
    }
}
