// Foundation's predicates about values that a store has no form of, and orders that are not its
// own.

import Foundation
import Testing
import VarveObjects

private enum Urgency: String, StoredEnum, Codable, Comparable {
    case low, normal, high
    private var place: Int { Self.allCases.firstIndex(of: self) ?? 0 }
    static func < (left: Self, right: Self) -> Bool { left.place < right.place }
}

private enum Grade: Int, StoredEnum, Codable, Comparable {
    case three = 3, one = 1, two = 2
    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

private final class Price: ManagedObject {
    static let entityName = "Price"
    struct Columns: Sendable {
        let amount = Column<Price, Decimal?>("amount")
        let urgency = Column<Price, Urgency>("urgency", default: .low)
        let grade = Column<Price, Grade>("grade", default: .one)
        let shares = Column<Price, [Decimal]>("shares", default: [])
    }
    static let columns = Columns()
    static var keyPaths: [PartialKeyPath<Price>: String] {
        [\Price.amount: "amount", \Price.urgency: "urgency", \Price.grade: "grade"]
    }
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var amount: Decimal? {
        get { storedValue(Self.columns.amount, \.amount) }
        set { setStoredValue(newValue, Self.columns.amount, \.amount) }
    }
    var urgency: Urgency {
        get { storedValue(Self.columns.urgency, \.urgency) }
        set { setStoredValue(newValue, Self.columns.urgency, \.urgency) }
    }
    var shares: [Decimal] {
        get { storedValue(Self.columns.shares, \.shares) }
        set { setStoredValue(newValue, Self.columns.shares, \.shares) }
    }
    var grade: Grade {
        get { storedValue(Self.columns.grade, \.grade) }
        set { setStoredValue(newValue, Self.columns.grade, \.grade) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Price: Sendable {}

private enum PriceSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Price.self] }
}

@Suite(.verified) struct FoundationOrderTests {
    private let container: PersistentContainer
    private let context: ManagedObjectContext

    init() throws {
        container = try PersistentContainer.inMemory(schema: PriceSchema.self)
        context = container.newContext()
        for (number, urgency) in Urgency.allCases.enumerated() {
            let price = Price(in: context)
            price.amount = number == 0 ? nil : Decimal(number)
            (price.urgency, price.grade) = (urgency, Grade.allCases[number])
        }
        try context.save()
    }

    /// It has no stored form, and is not nil: rows with nil matched.
    @Test func aValueThatAStoreCannotKeepIsRefused() throws {
        let limit: Decimal? = Decimal.nan
        let list: [Decimal?] = [.nan, 1]
        let predicates = [
            #Predicate<Price> { $0.amount == limit }, #Predicate<Price> { $0.amount != limit },
            #Predicate<Price> { list.contains($0.amount) },
        ]
        for predicate in predicates {
            #expect(
                code { _ = try context.count(FetchDescriptor(predicate: predicate)) }
                    == .unsupportedPredicate
            )
        }
        let none: Decimal? = nil
        #expect(
            try context.count(FetchDescriptor(predicate: #Predicate<Price> { $0.amount == none }))
                == 1
        )
        #expect(try context.count(Price.where { $0.amount == limit }) == 0)
    }

    /// Foundation writes it as a text that is no JSON, and all elements were lost.
    @Test func aDecimalThatIsNoNumberIsRefusedInsideAList() throws {
        let price = try #require(try context.fetch(Price.all).first)
        price.shares = [1, 2]
        price.shares = [1, .nan]
        #expect(context.refusedEdits.map(\.error.code) == [.invalid])
        #expect(price.shares == [1, 2])
        context.acknowledgeRefusedEdits()
        try context.save()
        let stored = try container.newContext().existingObject(with: price.id)
        #expect(stored?.shares == [1, 2])
    }

    /// A store orders by raw values, Foundation by the enum's `<`.
    @Test func anEnumWithAnOrderOfItsOwnIsRefused() throws {
        let (limit, range) = (Urgency.normal, Urgency.normal...Urgency.high)
        let predicates = [
            #Predicate<Price> { $0.urgency > limit }, #Predicate<Price> { $0.urgency <= limit },
            #Predicate<Price> { range.contains($0.urgency) },
        ]
        for predicate in predicates {
            #expect(
                code { _ = try context.count(FetchDescriptor(predicate: predicate)) }
                    == .unsupportedPredicate
            )
        }
        #expect(code { _ = try SortTerm(SortDescriptor(\Price.urgency)) } == .unsupportedPredicate)
        #expect(
            try context.count(FetchDescriptor(predicate: #Predicate<Price> { $0.urgency == limit }))
                == 1
        )
    }

    @Test func anEnumThatIsOrderedByItsRawValuesIsAnswered() throws {
        let (limit, range) = (Grade.two, Grade.one...Grade.two)
        for predicate in [
            #Predicate<Price> { $0.grade > limit }, #Predicate<Price> { $0.grade <= limit },
            #Predicate<Price> { range.contains($0.grade) },
        ] {
            let found = try context.fetch(FetchDescriptor(predicate: predicate)).map(\.grade)
            let wanted = try context.fetch(Price.all).filter { try predicate.evaluate($0) }
            #expect(found == wanted.map(\.grade) && !found.isEmpty)
        }
        let term = try SortTerm(SortDescriptor(\Price.grade))
        let sorted = Price.all.sorted { _ in [term] }
        #expect(try context.fetch(sorted).map(\.grade) == [.one, .two, .three])
    }
}
