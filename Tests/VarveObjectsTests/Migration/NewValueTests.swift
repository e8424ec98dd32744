// Values that a new version gives to old rows and new ones: defaults, nil, what must be unique, and
// what is derived from them.

import Foundation
import Testing
import VarveObjects

/// Version 1.
private enum Old {
    final class Visit: ManagedObject {
        static let entityName = "Visit"
        struct Columns: Sendable {
            let name = Column<Visit, String>("name", default: "")
            let code = Column<Visit, String?>("code")
            let size = Column<Visit, Int?>("size", default: 7)
            let label = Column<Visit, String>("label", derived: Visit.label)
            let next = ToOneColumn<Visit, Visit>("next", inverse: "before")
            let before = ToOneColumn<Visit, Visit>("before", inverse: "next")
        }
        static let columns = Columns()
        @Sendable private static func label(_ row: DerivedSource<Visit>) -> String {
            row[columns.code] ?? "-"
        }
        @safe @exclusivity(unchecked) var storage: ObjectStorage
        init(storage: consuming ObjectStorage) { self.storage = storage }
        static var uniqueConstraints: [EntityConstraint] { [EntityConstraint(columns.code)] }
        var name: String {
            get { storedValue(Self.columns.name, \.name) }
            set { setStoredValue(newValue, Self.columns.name, \.name) }
        }
        var code: String? {
            get { storedValue(Self.columns.code, \.code) }
            set { setStoredValue(newValue, Self.columns.code, \.code) }
        }
    }

    enum Schema: VersionedSchema {
        static let version = 1
        static var entities: [any ManagedObject.Type] { [Visit.self] }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Old.Visit: Sendable {}

/// Version 2: a code is required, a kind is new, the default of the size is another one.
private enum New {
    final class Visit: ManagedObject {
        static let entityName = "Visit"
        struct Columns: Sendable {
            let name = Column<Visit, String>("name", default: "")
            let code = Column<Visit, String>("code", default: "none")
            let size = Column<Visit, Int?>("size", default: 9)
            let label = Column<Visit, String>("label", derived: Visit.label)
            let kind = Column<Visit, Int?>("kind", default: 7)
            let next = ToOneColumn<Visit, Visit>("next", inverse: "before")
            let before = ToOneColumn<Visit, Visit>("before", inverse: "next")
        }
        static let columns = Columns()
        @Sendable private static func label(_ row: DerivedSource<Visit>) -> String {
            row[columns.code]
        }
        @safe @exclusivity(unchecked) var storage: ObjectStorage
        init(storage: consuming ObjectStorage) { self.storage = storage }
        static var uniqueConstraints: [EntityConstraint] { [EntityConstraint(columns.code)] }
        var name: String {
            get { storedValue(Self.columns.name, \.name) }
            set { setStoredValue(newValue, Self.columns.name, \.name) }
        }
        var code: String {
            get { storedValue(Self.columns.code, \.code) }
            set { setStoredValue(newValue, Self.columns.code, \.code) }
        }
        var size: Int? {
            get { storedValue(Self.columns.size, \.size) }
            set { setStoredValue(newValue, Self.columns.size, \.size) }
        }
        var label: String { storedValue(Self.columns.label, \.label) }
        var kind: Int? {
            get { storedValue(Self.columns.kind, \.kind) }
            set { setStoredValue(newValue, Self.columns.kind, \.kind) }
        }
        var next: Visit? {
            get { storedValue(Self.columns.next, \.next) }
            set { setStoredValue(newValue, Self.columns.next, \.next) }
        }
        var before: Visit? {
            get { storedValue(Self.columns.before, \.before) }
            set { setStoredValue(newValue, Self.columns.before, \.before) }
        }
    }

    enum Schema: VersionedSchema {
        static let version = 2
        static var entities: [any ManagedObject.Type] { [Visit.self] }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension New.Visit: Sendable {}

@Suite(.verified) struct NewValueTests {
    /// A store of version 1 with a visit for each code.
    private func filled(_ codes: [String?]) throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        let container = try PersistentContainer.openNow(at: folder.store, schema: Old.Schema.self)
        let context = container.newContext()
        for (number, code) in codes.enumerated() {
            let visit = Old.Visit(in: context)
            visit.name = "\(number)"
            visit.code = code
        }
        try context.save()
        try container.closeNow()
        return folder
    }

    private func open(
        _ folder: TemporaryFolder,
        _ plan: (any MigrationPlan.Type)? = nil
    ) throws -> PersistentContainer {
        try PersistentContainer.openNow(
            at: folder.store,
            schema: New.Schema.self,
            migrations: plan
        )
    }

    private func visits(_ container: PersistentContainer) throws -> [New.Visit] {
        try container.newContext().fetch(New.Visit.all.sorted { [$0.name.ascending] })
    }

    /// A column that rows leave out reads as its default, not as nil: nil is another value.
    @Test func `A batch sets nil in rows that are older than the default`() throws {
        let folder = try filled(["a", "b", "c"])
        let container = try open(folder)
        let context = container.newContext()
        #expect(try context.count(New.Visit.where { $0.kind == 7 }) == 3)
        let result = try context.batchUpdate(New.Visit.all) { row in row.kind = nil }
        #expect(result.updated == 3 && result.skipped == 0)
        #expect(try context.count(New.Visit.where { $0.kind == nil }) == 3)
        let again = try context.batchUpdate(New.Visit.all) { row in row.kind = nil }
        #expect(again.updated == 0 && again.skipped == 3)
        #expect(try visits(container).allSatisfy { $0.kind == nil })
        try container.closeNow()
    }

    private enum SetsNil: MigrationPlan {
        static var stages: [MigrationStage] {
            [
                .custom(to: New.Schema.self) { migration in
                    try migration.update(New.Visit.self) { _, new in new.kind = nil }
                }
            ]
        }
    }

    @Test func `A stage sets nil where the schema that it adds has a default`() throws {
        let folder = try filled(["a", "b"])
        defer { withExtendedLifetime(folder) {} }
        let container = try open(folder, SetsNil.self)
        #expect(try visits(container).map(\.kind) == [nil, nil])
        try container.closeNow()
    }

    private enum Plain: MigrationPlan {
        static var stages: [MigrationStage] { [.custom(to: New.Schema.self) { _ in }] }
    }

    @Test(arguments: [false, true])
    func `Rows that get one default where they must be unique are refused`(
        isStaged: Bool
    ) throws {
        let folder = try filled([nil, "a", nil])
        let plan: (any MigrationPlan.Type)? = isStaged ? Plain.self : nil
        #expect(code { try open(folder, plan).closeNow() } == .notUnique)
        // The store is as it was.
        let old = try PersistentContainer.openNow(at: folder.store, schema: Old.Schema.self)
        let context = old.newContext()
        #expect(try context.count(Old.Visit.where { $0.code == nil }) == 2)
        try old.closeNow()
        // One may have it.
        let other = try filled([nil, "a"])
        defer { withExtendedLifetime(other) {} }
        let container = try open(other, plan)
        #expect(try visits(container).map(\.code) == ["none", "a"])
        try container.closeNow()
    }

    @Test(arguments: [false, true])
    func `What is derived of a default that rows get is made`(isStaged: Bool) throws {
        let folder = try filled([nil, "a"])
        defer { withExtendedLifetime(folder) {} }
        let container = try open(folder, isStaged ? Plain.self : nil)
        let context = container.newContext()
        #expect(try context.count(New.Visit.where { $0.label == "none" }) == 1)
        #expect(try visits(container).map(\.label) == ["none", "a"])
        try container.closeNow()
    }

    private enum Adds: MigrationPlan {
        static var stages: [MigrationStage] {
            [
                .custom(to: New.Schema.self) { migration in
                    try migration.insert("Visit") { new in try new.set("name", to: "1") }
                    try migration.insert(New.Visit.self) { new in
                        new.name = "2"
                        new.code = "typed"
                    }
                }
            ]
        }
    }

    /// Old rows read what they leave out as the default of before.
    @Test func `A stage adds objects with the defaults of the new schema`() throws {
        let folder = try filled(["a"])
        defer { withExtendedLifetime(folder) {} }
        let container = try open(folder, Adds.self)
        let found = try visits(container)
        #expect(found.map(\.code) == ["a", "none", "typed"])
        #expect(found.map(\.size) == [7, 9, 9] && found.map(\.kind) == [7, 7, 7])
        try container.closeNow()
    }

    private enum Pairs: MigrationPlan {
        static var stages: [MigrationStage] {
            [
                .custom(to: New.Schema.self) { migration in
                    var ids: [ManagedObjectID] = []
                    try migration.forEach("Visit") { ids.append($0.id) }
                    var number = 0
                    try migration.update(New.Visit.self) { _, new in
                        number += 1
                        if new.before == nil, number < ids.count {
                            new.next = try migration.id(ids[number], of: New.Visit.self)
                        }
                    }
                }
            ]
        }
    }

    @Test func `A sweep sees what it did to rows through a relationship`() throws {
        let folder = try filled(["a", "b", "c", "d", "e"])
        defer { withExtendedLifetime(folder) {} }
        let container = try open(folder, Pairs.self)
        let found = try visits(container)
        #expect(found.map { $0.next?.name } == ["1", nil, "3", nil, nil])
        #expect(found.map { $0.before?.name } == [nil, "0", nil, "2", nil])
        try container.closeNow()
    }
}
