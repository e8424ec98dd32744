// That every way in which the two sides of a relationship can disagree is told, and that sound ones
// of every kind are not.

import Testing
import VarveTesting

@testable import VarveInspection

/// A store of nodes with every kind of relationship, that a test may write to below all rules.
final class Web {
    let directory = MemoryDirectory()
    let store: RecordStore
    let node: RecordEntity

    static func toOne(
        _ name: String,
        _ inverse: String? = nil,
        _ rule: DeleteRule = .nullify
    ) -> RelationshipDescription {
        RelationshipDescription(name: name, target: "Node", inverse: inverse, deleteRule: rule)
    }

    static func toMany(
        _ name: String,
        _ inverse: String? = nil,
        isOrdered: Bool = false,
        _ rule: DeleteRule = .nullify
    ) -> RelationshipDescription {
        RelationshipDescription(
            name: name,
            target: "Node",
            inverse: inverse,
            isToMany: true,
            isOrdered: isOrdered,
            deleteRule: rule
        )
    }

    static let schema = SchemaDescription(
        version: 1,
        entities: [
            EntityDescription(
                name: "Node",
                attributes: [AttributeDescription(name: "name", type: .text)],
                relationships: [
                    toOne("parent", "children"), toMany("children", "parent"),
                    toOne("next", "previous"), toOne("previous", "next"),
                    toOne("husband", "wife"), toOne("wife", "husband", .noAction),
                    toOne("loose"), toOne("stale", nil, .noAction), toOne("kept", nil, .cascade),
                    toOne("book", "chapters"), toMany("chapters", "book", isOrdered: true),
                    toOne("shelf", "volumes"),
                    toMany("volumes", "shelf", isOrdered: true, .noAction),
                    toMany("picks"), toMany("playlist", isOrdered: true),
                    toMany("left", "right", isOrdered: true),
                    toMany("right", "left", isOrdered: true),
                    toMany("tags", "tagged"), toMany("tagged", "tags"),
                    toMany("steps", "stepOf", isOrdered: true), toMany("stepOf", "steps"),
                ]
            )
        ]
    )

    var location: StoreLocation { .directory(directory, name: "web") }

    /// Nodes 1 to `count`, and one link of each kind between them.
    init(_ count: UInt64 = 9) throws {
        store = try RecordStore.open(
            .directory(directory, name: "web"),
            schema: Self.schema
        )
        node = try #require(try store.schema.entity(named: "Node"))
        _ = store.allocateObjectIDs(Int(count) + 1)
        let node = node
        _ = try store.write { transaction in
            for id in 1...count {
                try transaction.insert(
                    node.id,
                    ObjectID(id),
                    [ColumnValue(node.attributes[0].column, .text("node \(id)"))]
                )
            }
        }
        let pairs: [(String, UInt64, UInt64)] = [
            ("parent", 2, 1), ("parent", 3, 1), ("next", 1, 2), ("previous", 2, 1),
            ("husband", 3, 4), ("wife", 4, 3), ("next", 5, 5), ("previous", 5, 5),
            ("loose", 1, 2), ("loose", 3, 2), ("stale", 1, 2), ("kept", 1, 2),
            ("book", 2, 1), ("book", 3, 1), ("shelf", 2, 1),
        ]
        for (name, from, to) in pairs { try set(from, name, to) }
        let lists: [(String, UInt64, [UInt64])] = [
            ("chapters", 1, [3, 2]), ("volumes", 1, [2]), ("playlist", 1, [5, 2, 6, 1]),
            ("playlist", 2, [1, 5]), ("left", 1, [4, 3]), ("left", 2, [3, 4]),
            ("steps", 1, [2, 1]), ("steps", 2, [1]),
        ]
        _ = try store.write { transaction in
            for (name, owner, members) in lists {
                try transaction.setOrder(
                    node,
                    try #require(node.relationship(named: name)),
                    of: ObjectID(owner),
                    members.map { ObjectID($0) }
                )
            }
            for (name, from, to) in [("picks", 1, 1), ("picks", 1, 3), ("tags", 2, 1)] {
                try transaction.addLink(
                    node,
                    try #require(node.relationship(named: name)),
                    from: ObjectID(UInt64(from)),
                    to: ObjectID(UInt64(to))
                )
            }
        }
    }

    func relationship(_ name: String) throws -> RecordRelationship {
        try #require(node.relationship(named: name))
    }

    func column(_ name: String) throws -> (column: ColumnID, index: TreeID) {
        guard case .column(let column, let index) = try relationship(name).storage else {
            throw RecordError.unknownProperty(entity: "Node", property: name)
        }
        return (column, index)
    }

    func link(_ name: String) throws -> RecordLink {
        guard case .link(let link) = try relationship(name).storage else {
            throw RecordError.unknownProperty(entity: "Node", property: name)
        }
        return link
    }

    /// Writes one side of a to-one, whatever the other says.
    func set(_ object: UInt64, _ name: String, _ target: UInt64?) throws {
        try set(object, name, target.map { .reference(ObjectID($0)) } ?? .null)
    }

    func set(_ object: UInt64, _ name: String, _ value: StoredValue) throws {
        let patch = RowPatch.encode([(try column(name).column, value)])
        let node = node
        _ = try store.engine.write { try $0.update(node.id, ObjectID(object), patch: patch) }
    }

    /// Takes a row out, and nothing else.
    func drop(_ object: UInt64) throws {
        let node = node
        _ = try store.engine.write { try $0.delete(node.id, ObjectID(object)) }
    }

    /// Adds a link row, whatever is there. Returns its ID.
    @discardableResult
    func addLink(
        _ name: String,
        _ owner: StoredValue,
        _ member: StoredValue,
        _ position: StoredValue = .null,
        far: StoredValue = .null
    ) throws -> ObjectID {
        let link = try link(name)
        var row = [StoredValue?](repeating: .null, count: 4)
        row[Int(link.ownColumn.rawValue)] = owner
        row[Int(link.otherColumn.rawValue)] = member
        row[Int(link.positionColumn.rawValue)] = position
        row[link.positionColumn.rawValue == 2 ? 3 : 2] = far
        let id = store.allocateObjectIDs(1)
        _ = try store.engine.write {
            try $0.insert(link.entity, id, row: RowCoding.encode(row))
        }
        return id
    }

    func addLink(
        _ name: String,
        _ owner: UInt64,
        _ member: UInt64,
        _ position: Int64? = nil,
        far: Int64? = nil
    ) throws {
        try addLink(
            name,
            .reference(ObjectID(owner)),
            .reference(ObjectID(member)),
            position.map { .int($0) } ?? .null,
            far: far.map { .int($0) } ?? .null
        )
    }

    /// Takes the link rows of an object out of one list.
    func dropLinks(_ name: String, _ owner: UInt64) throws {
        let link = try link(name)
        var rows: [ObjectID] = []
        var key: [UInt8] = []
        KeyCoding.append(.reference(ObjectID(owner)), to: &key)
        var cursor = store.engine.snapshot().cursor(link.index)
        var more = try cursor.seek(atOrAfter: key)
        while more, cursor.keyHasPrefix(key) {
            rows.append(try cursor.trailingObjectID())
            more = try cursor.next()
        }
        let found = rows
        _ = try store.engine.write { transaction in
            for row in found { try transaction.delete(link.entity, row) }
        }
    }

    func verify() throws -> VerifyReport { try StoreObserver.open(location).verify(level: .full) }
}

/// One thing that no call of the store does.
struct Break: Sendable, CustomTestStringConvertible {
    let name: String
    let make: @Sendable (Web) throws -> Void
    /// The complaints: relationship, part of the message, the object, part of a detail.
    let told: [[String]]
    var testDescription: String { name }

    init(
        _ name: String,
        _ told: [[String]],
        _ make: @escaping @Sendable (Web) throws -> Void
    ) {
        self.name = name
        self.told = told
        self.make = make
    }

    static let all: [Break] = [
        Break(
            "a to-one leads to a row that is not there",
            [["Node.parent", "once it leads to an object", "Node:4", "Node:77, which is not"]]
        ) { try $0.set(4, "parent", 77) },
        Break(
            "a to-one without inverse leads to a row that is not there",
            [["Node.loose", "once it leads to an object", "Node:4", "Node:77, which is not"]]
        ) { try $0.set(4, "loose", 77) },
        Break(
            "a cascade does not clear what leads to its owner",
            [["Node.kept", "once it leads to an object", "Node:4", "Node:77"]]
        ) { try $0.set(4, "kept", 77) },
        Break(
            "a to-one holds a text",
            [["Node.loose", "no reference", "Node:4", "Node:4.loose holds"]]
        ) { try $0.set(4, "loose", .text("four")) },
        Break(
            "one side of a one-to-one is missing",
            [["Node.next", "the two sides disagree", "Node:3", "whose previous leads to nothing"]]
        ) { try $0.set(3, "next", 4) },
        Break(
            "the other side of a one-to-one is missing",
            [["Node.previous", "the two sides disagree", "Node:2", "whose next leads to nothing"]]
        ) { try $0.set(1, "next", nil) },
        Break(
            "one object is led to by two",
            [
                [
                    "Node.next", "the two sides disagree", "Node:3",
                    "Node:3.next leads to Node:2, whose previous leads to Node:1",
                ],
                ["Node.next", "led to by two", "Node:2", "Node:1 and Node:3 both lead to Node:2"],
            ]
        ) { try $0.set(3, "next", 2) },
        Break(
            "two pairs of a one-to-one are crossed",
            [
                ["Node.next", "2 times the two sides disagree", "Node:1", "leads to Node:5"],
                ["Node.previous", "2 times the two sides", "Node:5", "leads to Node:1"],
            ]
        ) {
            try $0.set(2, "previous", 5)
            try $0.set(5, "previous", 1)
        },
        Break(
            "a link row names an owner that is not there",
            [["Node.picks", "names an object that is not there", "link row", "names Node:77"]]
        ) { try $0.addLink("picks", 77, 1) },
        Break(
            "a link row names a member that is not there",
            [["Node.picks", "names an object that is not there", "link row", "names Node:77"]]
        ) { try $0.addLink("picks", 1, 77) },
        Break(
            "a row goes and its links stay",
            [
                ["Node.left", "once a link row names", "link row", "names Node:4"],
                ["Node.right", "not there", "link row", "names Node:4"],
            ]
        ) {
            try $0.addLink("left", 4, 5, 1, far: 1)
            try $0.set(3, "husband", nil)
            try $0.drop(4)
        },
        Break(
            "a link row names nothing",
            [["Node.tags", "does not name its two objects", "link row", "does not name two"]]
        ) { try $0.addLink("tags", .reference(ObjectID(3)), .null) },
        Break(
            "a position is no number",
            [["Node.playlist", "does not name its two objects", "link row", "a number"]]
        ) {
            try $0.addLink("playlist", .reference(ObjectID(3)), .reference(ObjectID(4)), .text("x"))
        },
        Break(
            "a member stands in an unordered list twice",
            [["Node.picks", "in the same list twice", "Node:1", "Node:1.picks lists Node:3 again"]]
        ) { try $0.addLink("picks", 1, 3) },
        Break(
            "a member stands in a list with an order twice",
            [["Node.playlist", "same list twice", "Node:1", "Node:1.playlist lists Node:6 again"]]
        ) { try $0.addLink("playlist", 1, 6, 1 << 40) },
        Break(
            "a member stands twice in a list with an order on both sides",
            [["Node.left", "in the same list twice", "Node:1", "Node:1.left lists Node:4 again"]]
        ) { try $0.addLink("left", 1, 4, 1 << 40, far: 1 << 40) },
        Break(
            "a member stands twice in a list whose other side has the order",
            [["Node.stepOf", "same list twice", "Node:2", "Node:2.stepOf lists Node:1 again"]]
        ) { try $0.addLink("steps", 1, 2, 1 << 40) },
        Break(
            "two members have one position",
            [["Node.playlist", "the same position", "Node:1", "two members at position 1048576"]]
        ) { try $0.addLink("playlist", 1, 7, 1 << 20) },
        Break(
            "two members have one position on the far side",
            [["Node.right", "the same position", "Node:4", "two members at position 1048576"]]
        ) { try $0.addLink("left", 6, 4, 1, far: 1 << 20) },
        Break(
            "a list names a member whose column names nothing",
            [
                [
                    "Node.chapters", "own side leads elsewhere", "Node:5",
                    "whose book leads to nothing",
                ]
            ]
        ) { try $0.addLink("chapters", 1, 5, 1 << 40) },
        Break(
            "a list names a member whose column names another list",
            [["Node.chapters", "own side leads elsewhere", "Node:2", "whose book leads to Node:1"]]
        ) { try $0.addLink("chapters", 6, 2, 1) },
        Break(
            "a column names an owner whose list does not name it back",
            [["Node.chapters", "does not name it", "Node:6", "Node:1, whose chapters does not"]]
        ) { try $0.set(6, "book", 1) },
        Break(
            "a list is gone and the columns stay",
            [["Node.chapters", "2 times an object leads to one", "Node:2", "does not list it"]]
        ) { try $0.dropLinks("chapters", 1) },
        Break(
            "an entry of a reverse index is missing",
            [["index Node.parent", "1 rows are missing", "Node:2", ""]]
        ) { web in
            let index = try web.column("parent").index
            var key: [UInt8] = []
            KeyCoding.append(.reference(ObjectID(1)), to: &key)
            KeyCoding.appendObjectID(ObjectID(2), to: &key)
            let entry = key
            _ = try web.store.engine.write { try $0.remove(index, entry) }
        },
        Break(
            "an entry of a reverse index fits no row",
            [["index Node.loose", "1 entries fit no row", "Node:8", ""]]
        ) { web in
            let index = try web.column("loose").index
            var key: [UInt8] = []
            KeyCoding.append(.reference(ObjectID(1)), to: &key)
            KeyCoding.appendObjectID(ObjectID(8), to: &key)
            let entry = key
            _ = try web.store.engine.write { try $0.put(index, entry, []) }
        },
    ]
}

@Suite struct RelationshipTests {
    @Test func `Sound relationships of every kind are sound`() throws {
        let web = try Web()
        let report = try web.verify()
        #expect(report.problems == [])
        #expect(report.notChecked == [])
        #expect(report.notes.filter { $0.contains("leads") } == [])
    }

    @Test(arguments: Break.all) func `What no call of the store does is told`(
        broken: Break
    ) throws {
        let web = try Web()
        try broken.make(web)
        let report = try web.verify()
        let problems = report.problems
        #expect(problems.count == broken.told.count, "\(problems)")
        for (problem, told) in zip(problems, broken.told) {
            #expect(problem.kind == .inconsistent && problem.isNeeded)
            #expect(problem.subject == told[0])
            #expect(problem.message.contains(told[1]), "\(problem)")
            #expect(problem.objects.first?.hasPrefix(told[2]) == true, "\(problem)")
            if !told[3].isEmpty {
                #expect(problem.details.contains { $0.contains(told[3]) }, "\(problem)")
            }
        }
    }

    /// The rule says that the reference stays; with an inverse it is the inverse's rule.
    @Test func `References that noAction leaves behind are a note`() throws {
        let web = try Web()
        try web.set(4, "stale", 77)
        try web.set(5, "husband", 78)
        try web.set(6, "shelf", 79)
        let report = try web.verify()
        #expect(report.problems == [])
        for (name, object, target) in [("stale", 4, 77), ("husband", 5, 78), ("shelf", 6, 79)] {
            let found = "Node:\(object).\(name) leads to Node:\(target), which is not there"
            #expect(
                report.notes.contains {
                    $0.hasPrefix("Node.\(name) leads once") && $0.hasSuffix(found)
                },
                "\(report.notes)"
            )
        }
    }

    /// Links from a time when the list had no order have no position, and stand in front.
    @Test func `Members without a position are no contradiction`() throws {
        let web = try Web()
        try web.addLink("playlist", 7, 1)
        try web.addLink("playlist", 7, 2)
        try web.addLink("playlist", 7, 3, 5)
        #expect(try web.verify().problems == [])
    }

    @Test func `Many breaks of one kind are one complaint with a count`() throws {
        let web = try Web(3000)
        for id: UInt64 in 10...1500 { try web.set(id, "loose", 5000 + id) }
        let report = try web.verify()
        let problem = try #require(report.problems.first)
        #expect(report.problems.count == 1)
        #expect(problem.message.hasPrefix("1491 times"))
        #expect(problem.objects.count == 1000)
        #expect(problem.details.count == 21 && problem.details.last == "and 1471 more")
    }

    /// Members of one list are held in parts.
    @Test(arguments: [2, 3, 7, 64, 5000]) func `A repeated member is found in lists of any length`(
        max: Int
    ) {
        var random = SeededRandom(seed: UInt64(max))
        for length in [0, 1, 2, 3, 10, 100, 1000] {
            let all = (0..<length).map { number in
                (
                    id: ObjectID(UInt64(random.next() % UInt64(1 + length * 4))),
                    link: ObjectID(UInt64(number))
                )
            }
            let repeated = Dictionary(grouping: all, by: \.id).filter { $0.value.count > 1 }
            var members = ListMembers(max: max)
            var found: [ObjectID] = []
            var passes = 0
            repeat {
                passes += 1
                for member in all { members.add(member.id, member.link) }
                found += members.takeRepeated().map(\.member)
            } while members.beginsNextPass()
            #expect(Set(found) == Set(repeated.keys), "\(length) members, \(max) at a time")
            #expect(passes <= 1 + 2 * length / Swift.max(2, max))
        }
    }
}
