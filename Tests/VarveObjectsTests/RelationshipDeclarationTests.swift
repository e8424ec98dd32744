// What the schema says of counts that never hold and of inverses that contradict each other.

import Testing

@testable import VarveObjects

@Suite(.verified) struct RelationshipDeclarationTests {
    @Test func countsThatNeverHoldAreRefusedWithWhatToWrite() throws {
        func problem(
            _ range: any RangeExpression<Int> & Sendable,
            isToMany: Bool = true
        ) -> String? {
            CountRule(range).problem(isToMany: isToMany)
        }
        for range in [1...5, 0...1] { #expect(problem(range) == nil) }
        for range in [1..., 0...] { #expect(problem(range) == nil) }
        #expect(problem(...1) == nil && problem(..<2) == nil && problem(1..<2) == nil)
        #expect(problem(-1...5)?.contains("begins at 0") == true)
        #expect(problem((-1)...)?.contains("begins at 0") == true)
        for empty in [3..<3, 0..<1] {
            #expect(problem(empty)?.contains("no object could ever be in it") == true)
        }
        #expect(problem(0...0) != nil && problem(...0) != nil && problem(..<1) != nil)
        #expect(problem(...(-1)) != nil && problem(..<(-1)) != nil)
        #expect(problem(1...1, isToMany: false) == nil)
        #expect(problem(1..<2, isToMany: false) == nil)
        for range in [0...1, 1...2, 0...0] {
            #expect(problem(range, isToMany: false)?.contains("write count: 1...1") == true)
        }
    }

    @Test func theSchemaNamesBothSidesOfAnInverse() throws {
        let message = try #require(
            throws: StoreError.self,
            performing: { _ = try PersistentContainer.inMemory(schema: Crossed.self) }
        )
        let reasons = message.details.map(\.message)
        #expect(
            reasons.contains { reason in
                reason.contains("Near.far has two inverses, Far.near and Far.other")
                    && reason.contains("Far.other says")
            },
            "\(reasons)"
        )
        #expect(reasons.contains { $0.contains("Far.many has a count of -1 to 5 objects") })
        #expect(reasons.contains { $0.contains("Far.one has a count of 0 to 1 object,") })
    }
}

private final class Near: ManagedObject {
    static let entityName = "Near"
    struct Columns: Sendable { let far = ToOneColumn<Near, Far>("far", inverse: "near") }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Near: Sendable {}

private final class Far: ManagedObject {
    static let entityName = "Far"
    struct Columns: Sendable {
        let near = ToOneColumn<Far, Near>("near")
        let other = ToOneColumn<Far, Near>("other", inverse: "far")
        let many = ToManyColumn<Far, Near>("many", count: -1...5)
        let one = ToOneColumn<Far, Near>("one", count: 0...1)
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Far: Sendable {}

private enum Crossed: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Near.self, Far.self] }
}
