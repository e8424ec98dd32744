// Counts and inverses of relationships: what one class shows, the macro says.
#if Macros
import Testing

@Suite("Relationships in macros") struct RelationshipTests {
    private func said(_ members: String...) -> [String] {
        complaints(
            """
            @Entity final class Item: ManagedObject {
                \(members.joined(separator: "\n    "))
            }
            """
        )
    }

    @Test(
        "Counts that hold for some number of objects",
        arguments: ["1...5", "1...", "...5", "0...5", "..<2", "2..<3", "1 ... 1", "limits", "nil"]
    )
    func goodCounts(count: String) {
        #expect(said("@Relationship(count: \(count)) var tags: ToMany<Tag>") == [])
    }

    @Test(
        "Counts that cannot be say what to write",
        arguments: [
            ("-1...5", "no relationship leads to fewer than 0 objects"),
            ("-1...", "no relationship leads to fewer than 0 objects"),
            ("5...1", "no number of objects is in '5...1'"),
            ("3..<3", "no number of objects is in '3..<3'"),
            ("0...0", "with the count '0...0' no object could ever be in the relationship"),
            ("..<1", "with the count '..<1' no object could ever be in the relationship"),
            ("...0", "with the count '...0' no object could ever be in the relationship"),
            ("5", "a count is a range of numbers of objects: '1...5', '1...' or '...5'"),
            ("...", "a count is a range of numbers of objects: '1...5', '1...' or '...5'"),
        ]
    )
    func badCounts(count: String, says: String) {
        #expect(said("@Relationship(count: \(count)) var tags: ToMany<Tag>") == ["2:26: \(says)"])
    }

    @Test("A relationship to one object has the count 1...1 or none", arguments: ["0...1", "1..."])
    func countOfOne(count: String) {
        #expect(said("@Relationship(count: 1...1) var tag: Tag?") == [])
        #expect(
            said("@Relationship(count: \(count)) var tag: Tag?") == [
                "2:26: a relationship to one object leads to one or to none: 'count: 1...1' says "
                    + "that it must lead to one; leave 'count' out where it need not"
            ]
        )
    }

    @Test("An inverse is a property of the class that the relationship leads to")
    func rootOfAnInverse() {
        #expect(said(#"@Relationship(inverse: \Tag.items) var tag: Tag?"#) == [])
        #expect(said(#"@Relationship(inverse: \Shop.Tag.items) var tag: Shop.Tag?"#) == [])
        #expect(
            said(#"@Relationship(inverse: \Item.tags) var tag: Tag?"#) == [
                #"2:28: 'tag' leads to 'Tag', so its inverse is a property of 'Tag', not of "#
                    + #"'Item': write '\Tag.tags'"#
            ]
        )
    }

    @Test("Within one class both sides of an inverse are compared")
    func inversesWithinAClass() {
        let children = "@Relationship var children: ToMany<Item>"
        #expect(said(#"@Relationship(inverse: \Item.children) var parent: Item?"#, children) == [])
        #expect(
            said(#"@Relationship(inverse: \Item.children) var parent: Item?"#) == [
                "2:28: 'parent' has the inverse 'children', but 'Item' has no relationship "
                    + "'children': write '@Relationship var children: ToMany<Item>' or "
                    + "'@Relationship var children: Item?'"
            ]
        )
        #expect(
            said(#"@Relationship(inverse: \Item.parent) var parent: Item?"#) == [
                "2:28: 'parent' cannot be its own inverse: name the relationship that leads back, "
                    + "or leave 'inverse' out"
            ]
        )
        #expect(
            said(
                #"@Relationship(inverse: \Item.children) var parent: Item?"#,
                "@Relationship var children: ToMany<Tag>"
            ) == [
                "2:28: 'parent' has the inverse 'children', which leads to 'Tag' and not back to "
                    + "'Item'"
            ]
        )
        #expect(
            said(
                #"@Relationship(inverse: \Item.children) var parent: Item?"#,
                #"@Relationship(inverse: \Item.other) var children: ToMany<Item>"#,
                "@Relationship var other: Item?"
            ) == [
                "2:28: 'parent' has the inverse 'children', whose own inverse is 'other': write "
                    + #"'inverse: \Item.parent' on 'children', or name another one here"#
            ]
        )
    }

    @Test("Two relationships cannot share an inverse") func sharedInverse() {
        #expect(
            said(
                #"@Relationship(inverse: \Tag.items) var tag: Tag?"#,
                #"@Relationship(inverse: \Tag.items) var second: Tag?"#
            ) == [
                #"3:28: 'tag' and 'second' both name '\Tag.items' as their inverse, and a "#
                    + "relationship has one: give one of them a property of its own in 'Tag', or "
                    + "leave its 'inverse' out"
            ]
        )
    }
}
#endif
