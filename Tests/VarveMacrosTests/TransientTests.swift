// What @Entity makes of a transient property: one that tells observers.
#if Macros
import Testing

@Suite("Transient properties") struct TransientTests {
    @Test("A transient property tells observers") func transient() {
        expectExpansion(
            #"""
            @Entity final class Item: ManagedObject {
                @Transient var shown: [Int]?
            }
            """#,
            becomes: #"""
                final class Item: ManagedObject {
                    var shown: [Int]? {
                        get {
                            accessTransient(\.shown)
                            return _shown
                        }
                        set {
                            willChangeTransient(\.shown)
                            _shown = newValue
                            didChangeTransient(\.shown)
                        }
                        _modify {
                            willChangeTransient(\.shown)
                            defer {
                                didChangeTransient(\.shown)
                            }
                            yield &_shown
                        }
                    }

                    private var _shown: [Int]?

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
