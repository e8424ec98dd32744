// What composites, codecs, rules and derived attributes become, and what is refused of them.
#if Macros
import SwiftSyntaxMacrosGenericTestSupport
import Testing

@Suite("Rich attributes") struct RichAttributeTests {
    @Test("A composite lists its fields") func composite() {
        expectExpansion(
            #"""
            @Composite(originalNames: ["x": "y"]) struct At {
                var x: Int = 0
                var since: Date?
                var mood: Mood = .calm
                var label: Int { x }
            }
            """#,
            becomes: #"""
                struct At {
                    var x: Int = 0
                    var since: Date?
                    var mood: Mood = .calm
                    var label: Int { x }

                    struct Fields: Sendable {
                        let x = CompositeField<At, Int>("x", default: 0, originalName: "y", get: {
                                $0.x
                            }, set: {
                                $0.x = $1
                            })
                        let since = CompositeField<At, Date?>("since", default: nil, get: {
                                $0.since
                            }, set: {
                                $0.since = $1
                            })
                        let mood = CompositeField<At, Mood>("mood", default: .calm, get: {
                                $0.mood
                            }, set: {
                                $0.mood = $1
                            })
                    }

                    static let fields = Fields()

                    private static func _checkTypes() {
                        _requireStorable(Mood.self)
                    }
                }

                extension At: StoredComposite {
                }
                """#
        )
    }

    /// What one property is refused for.
    struct Case: CustomTestStringConvertible, Sendable {
        let members: String
        let says: String
        var line = 2
        let column: Int
        var testDescription: String { members }
    }

    static let refused: [Case] = [
        Case(
            members: "@Derived var name: String = \"\"",
            says: "a derived attribute is a computed property with a getter only: "
                + "'@Derived var initial: String { String(name.prefix(1)) }'",
            column: 5
        ),
        Case(
            members: "@Derived var names: Int { tags.count }\n"
                + "    @Relationship var tags: ToMany<Tag>",
            says: "a derived attribute is made of the attributes of its own object; 'tags' leads "
                + "beyond them, and what changes there would leave the kept value stale",
            column: 31
        ),
        Case(
            members: "@Attribute(.composite, .range(1...2)) var a: Address = Address()",
            says: "a rule is about one value; check the fields of a composite in validate(_:)",
            column: 28
        ),
        Case(
            members: "@Attribute(.composite) var a: Address? = Address()",
            says: "an optional composite begins as nil: leave its default out, or make it not "
                + "optional",
            column: 44
        ),
        Case(
            members: "@Attribute(.composite) var address: Address = Address()\n"
                + "    #Index<Item>([\\.address])",
            says: "'address' is a composite: name one of its fields, '\\.address.city'",
            line: 3,
            column: 19
        ),
        Case(
            members: "var name: String = \"\"\n    #Index<Item>([\\.name.count])",
            says: "'name' is no composite; mark it with '@Attribute(.composite)' to name its "
                + "fields",
            line: 3,
            column: 19
        ),
        Case(
            members: "@Attribute(.externalStorage()) var name: String = \"\"",
            says: "only a property of type 'Blob?' can be kept outside the store",
            column: 16
        ),
    ]

    @Test("What cannot be is refused where it stands", arguments: refused)
    func refusals(_ wrong: Case) {
        let complaints = complaints(
            "@Entity final class Item: ManagedObject {\n    \(wrong.members)\n}"
        )
        #expect(complaints == ["\(wrong.line):\(wrong.column): \(wrong.says)"])
    }

    @Test("A composite is a struct of values")
    func refusedComposites() {
        #expect(
            complaints("@Composite final class Address {\n    var city: String = \"\"\n}") == [
                "1:18: a composite is a struct: it is a value, and its object has the identity"
            ]
        )
        #expect(
            complaints("@Composite struct Address {\n    var picture: Blob?\n}") == [
                "2:5: 'picture' is a Blob, which belongs to an object"
            ]
        )
    }
}
#endif
