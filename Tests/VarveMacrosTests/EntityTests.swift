// What @Entity and its companions become.
#if Macros
import Testing

@Suite("Entity expansion") struct EntityTests {
    @Test("Attributes become columns and accessors") func attributes() {
        expectExpansion(
            #"""
            @Entity final class Item: ManagedObject {
                var timestamp: Date = .now
                @Attribute(originalName: "name") var title: String = ""
                var serial: UUID?
                var note: String? = "x"
                @Attribute(.required) var code: Int32
                @Attribute(.externalStorage(above: 4096)) var data: Blob?
                private var `default`: Bool = false
            }
            """#,
            becomes: #"""
                final class Item: ManagedObject {
                    var timestamp: Date {
                        get {
                            storedValue(Self.columns.timestamp, \.timestamp)
                        }
                        set {
                            setStoredValue(newValue, Self.columns.timestamp, \.timestamp)
                        }
                    }
                    var title: String {
                        get {
                            storedValue(Self.columns.title, \.title)
                        }
                        set {
                            setStoredValue(newValue, Self.columns.title, \.title)
                        }
                    }
                    var serial: UUID? {
                        get {
                            storedValue(Self.columns.serial, \.serial)
                        }
                        set {
                            setStoredValue(newValue, Self.columns.serial, \.serial)
                        }
                    }
                    var note: String? {
                        get {
                            storedValue(Self.columns.note, \.note)
                        }
                        set {
                            setStoredValue(newValue, Self.columns.note, \.note)
                        }
                    }
                    var code: Int32 {
                        get {
                            storedValue(Self.columns.code, \.code)
                        }
                        set {
                            setStoredValue(newValue, Self.columns.code, \.code)
                        }
                    }
                    var data: Blob? {
                        get {
                            storedValue(Self.columns.data, \.data)
                        }
                        set {
                            setStoredValue(newValue, Self.columns.data, \.data)
                        }
                    }
                    private var `default`: Bool {
                        get {
                            storedValue(Self.columns.`default`, \.`default`)
                        }
                        set {
                            setStoredValue(newValue, Self.columns.`default`, \.`default`)
                        }
                    }

                    static let entityName = "Item"

                    struct Columns: Sendable {
                        let timestamp = Column<Item, Date>("timestamp", default: .now)
                        let title = Column<Item, String>("title", default: "", originalName: "name")
                        let serial = Column<Item, UUID?>("serial")
                        let note = Column<Item, String?>("note", default: "x")
                        let code = Column<Item, Int32>("code")
                        let data = Column<Item, Blob?>("data", externalStorageAbove: 4096)
                        fileprivate let `default` = Column<Item, Bool>("default", default: false)
                    }

                    static let columns = Columns()

                    @safe @exclusivity(unchecked) var storage: ObjectStorage

                    init(storage: consuming ObjectStorage) {
                        self.storage = storage
                    }

                    static var keyPaths: [PartialKeyPath<Item>: String] {
                        [
                            \Item.id: "id",
                            \Item.objectID: "objectID",
                            \Item.timestamp: "timestamp",
                            \Item.title: "title",
                            \Item.serial: "serial",
                            \Item.note: "note",
                            \Item.code: "code",
                            \Item.data: "data",
                            \Item.`default`: "default",
                        ]
                    }
                }

                @available(
                    *, unavailable,
                    message: "managed objects stay in their context; pass the id or a snapshot"
                )
                extension Item: Sendable {
                }
                """#
        )
    }

    @Test("Relationships carry their inverse, rule and order") func relationships() {
        expectExpansion(
            #"""
            @Entity final class Item: ManagedObject {
                @Relationship(inverse: \Tag.item, deleteRule: .deny) var tag: Tag?
                @Relationship(inverse: \Tag.items, ordered: true) var tags: ToMany<Tag>
                @Relationship(count: 1...5) var rest: ToMany<Tag>
                @Relationship var parent: Item?
            }
            """#,
            becomes: #"""
                final class Item: ManagedObject {
                    var tag: Tag? {
                        get {
                            storedValue(Self.columns.tag, \.tag)
                        }
                        set {
                            setStoredValue(newValue, Self.columns.tag, \.tag)
                        }
                    }
                    var tags: ToMany<Tag> {
                        get {
                            storedValue(Self.columns.tags, \.tags)
                        }
                    }
                    var rest: ToMany<Tag> {
                        get {
                            storedValue(Self.columns.rest, \.rest)
                        }
                    }
                    var parent: Item? {
                        get {
                            storedValue(Self.columns.parent, \.parent)
                        }
                        set {
                            setStoredValue(newValue, Self.columns.parent, \.parent)
                        }
                    }

                    static let entityName = "Item"

                    struct Columns: Sendable {
                        let tag = ToOneColumn<Item, Tag>("tag", inverse: "item", deleteRule: .deny)
                        let tags = ToManyColumn<Item, Tag>("tags", inverse: "items", ordered: true)
                        let rest = ToManyColumn<Item, Tag>("rest", count: 1 ... 5)
                        let parent = ToOneColumn<Item, Item>("parent")
                    }

                    static let columns = Columns()

                    @safe @exclusivity(unchecked) var storage: ObjectStorage

                    init(storage: consuming ObjectStorage) {
                        self.storage = storage
                    }

                    static var keyPaths: [PartialKeyPath<Item>: String] {
                        [
                            \Item.id: "id",
                            \Item.objectID: "objectID",
                            \Item.tag: "tag",
                            \Item.tags: "tags",
                            \Item.rest: "rest",
                            \Item.parent: "parent",
                        ]
                    }
                }

                @available(
                    *, unavailable,
                    message: "managed objects stay in their context; pass the id or a snapshot"
                )
                extension Item: Sendable {
                }
                """#
        )
    }

    @Test("Indexes and constraints become lists") func indexes() {
        expectExpansion(
            #"""
            @Entity final class Item: ManagedObject {
                #Index<Item>([\.first, \.second], [\Item.second], descending: [\.second])
                #Unique<Item>([\.first], [\.first, \.second], onConflict: .upsert)
                #Unique<Item>([\.second])
                var first: Int = 0
                var second: Int = 0
            }
            """#,
            becomes: #"""
                final class Item: ManagedObject {
                    var first: Int {
                        get {
                            storedValue(Self.columns.first, \.first)
                        }
                        set {
                            setStoredValue(newValue, Self.columns.first, \.first)
                        }
                    }
                    var second: Int {
                        get {
                            storedValue(Self.columns.second, \.second)
                        }
                        set {
                            setStoredValue(newValue, Self.columns.second, \.second)
                        }
                    }

                    static let entityName = "Item"

                    struct Columns: Sendable {
                        let first = Column<Item, Int>("first", default: 0)
                        let second = Column<Item, Int>("second", default: 0)
                    }

                    static let columns = Columns()

                    static var indexes: [EntityIndex] {
                        [
                            EntityIndex(columns.first, columns.second.descending),
                            EntityIndex(columns.second.descending),
                        ]
                    }

                    static var uniqueConstraints: [EntityConstraint] {
                        [
                            EntityConstraint(columns.first, onConflict: .upsert),
                            EntityConstraint(columns.first, columns.second, onConflict: .upsert),
                            EntityConstraint(columns.second, onConflict: .error),
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
                            \Item.first: "first",
                            \Item.second: "second",
                        ]
                    }
                }

                @available(
                    *, unavailable,
                    message: "managed objects stay in their context; pass the id or a snapshot"
                )
                extension Item: Sendable {
                }
                """#
        )
    }

    @Test("Static and computed properties are left alone, and transient ones without room")
    func leftAlone() {
        expectExpansion(
            #"""
            @Entity final class Item: ManagedObject {
                static let shared = 1
                static var cached = [String]()
                var words: [Int] { [] }
                var both: [Int] {
                    get { [] }
                    set {}
                }
                @Transient lazy var cache = 3
                @Transient var counted = 0 { didSet {} }
                func validate(_ report: inout ValidationReport) {}
            }
            """#,
            becomes: #"""
                final class Item: ManagedObject {
                    static let shared = 1
                    static var cached = [String]()
                    var words: [Int] { [] }
                    var both: [Int] {
                        get { [] }
                        set {}
                    }
                    lazy var cache = 3
                    var counted = 0 { didSet {} }
                    func validate(_ report: inout ValidationReport) {}

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
                """#
        )
    }
}
#endif
