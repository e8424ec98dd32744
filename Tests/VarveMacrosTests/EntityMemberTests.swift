// What @Entity writes beside accessors: access levels, checks of the app's own types.
#if Macros
import Testing

@Suite("Entity members") struct EntityMemberTests {
    @Test("A public entity gets public members") func publicEntity() {
        expectExpansion(
            #"""
            @Entity(originalName: "Thing", "Object") public final class Item: ManagedObject {
                public var title: String = ""
                public private(set) var length: Int = 0
                var hidden: Bool = false
            }
            """#,
            becomes: #"""
                public final class Item: ManagedObject {
                    public var title: String {
                        get {
                            storedValue(Self.columns.title, \.title)
                        }
                        set {
                            setStoredValue(newValue, Self.columns.title, \.title)
                        }
                    }
                    public private(set) var length: Int {
                        get {
                            storedValue(Self.columns.length, \.length)
                        }
                        set {
                            setStoredValue(newValue, Self.columns.length, \.length)
                        }
                    }
                    var hidden: Bool {
                        get {
                            storedValue(Self.columns.hidden, \.hidden)
                        }
                        set {
                            setStoredValue(newValue, Self.columns.hidden, \.hidden)
                        }
                    }

                    public static let entityName = "Item"

                    public static let originalEntityNames: [String] = ["Thing", "Object"]

                    public struct Columns: Sendable {
                        public let title = Column<Item, String>("title", default: "")
                        public let length = Column<Item, Int>("length", default: 0)
                        let hidden = Column<Item, Bool>("hidden", default: false)
                        public init() {
                        }
                    }

                    public static let columns = Columns()

                    @safe @exclusivity(unchecked) public var storage: ObjectStorage

                    public init(storage: consuming ObjectStorage) {
                        self.storage = storage
                    }

                    public static var keyPaths: [PartialKeyPath<Item>: String] {
                        [
                            \Item.id: "id",
                            \Item.objectID: "objectID",
                            \Item.title: "title",
                            \Item.length: "length",
                            \Item.hidden: "hidden",
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

    @Test("Types of the app's own are checked in words that name the way out") func ownTypes() {
        expectExpansion(
            #"""
            @Entity final class Item: ManagedObject {
                var shade: Shade = .light
                var other: Shade?
            }
            """#,
            becomes: #"""
                final class Item: ManagedObject {
                    var shade: Shade {
                        get {
                            storedValue(Self.columns.shade, \.shade)
                        }
                        set {
                            setStoredValue(newValue, Self.columns.shade, \.shade)
                        }
                    }
                    var other: Shade? {
                        get {
                            storedValue(Self.columns.other, \.other)
                        }
                        set {
                            setStoredValue(newValue, Self.columns.other, \.other)
                        }
                    }

                    static let entityName = "Item"

                    struct Columns: Sendable {
                        let shade = Column<Item, Shade>("shade", default: .light)
                        let other = Column<Item, Shade?>("other")
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
                            \Item.shade: "shade",
                            \Item.other: "other",
                        ]
                    }

                    private static func _checkTypes() {
                        _requireStorable(Shade.self)
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
