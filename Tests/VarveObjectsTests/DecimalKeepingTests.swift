// Decimals: all that `Decimal` can hold comes back with all its digits, through rows, indexes,
// aggregates and filters; what it cannot mean is refused by the setter.

import Foundation
import Testing
import VarveBase
import VarveObjects
import VarveTesting

final class Amount: ManagedObject {
    static let entityName = "Amount"
    struct Columns: Sendable {
        let indexed = Column<Amount, Decimal>("indexed", default: 0)
        let plain = Column<Amount, Decimal>("plain", default: 0)
        let optional = Column<Amount, Decimal?>("optional")
    }
    static let columns = Columns()
    static var indexes: [EntityIndex] { [EntityIndex(columns.indexed)] }
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var indexed: Decimal {
        get { storedValue(Self.columns.indexed, \.indexed) }
        set { setStoredValue(newValue, Self.columns.indexed, \.indexed) }
    }
    var plain: Decimal {
        get { storedValue(Self.columns.plain, \.plain) }
        set { setStoredValue(newValue, Self.columns.plain, \.plain) }
    }
    var optional: Decimal? {
        get { storedValue(Self.columns.optional, \.optional) }
        set { setStoredValue(newValue, Self.columns.optional, \.optional) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Amount: Sendable {}

enum AmountSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Amount.self] }
}

@Suite(.verified) struct DecimalKeepingTests {
    private static let special: [Decimal] = [
        .greatestFiniteMagnitude, -.greatestFiniteMagnitude, .leastFiniteMagnitude,
        .leastNonzeroMagnitude, -.leastNonzeroMagnitude, .pi, -.pi, 0, 1, -1, 10,
        Decimal(sign: .plus, exponent: -128, significand: 1),
        Decimal(sign: .plus, exponent: 127, significand: 1),
        Decimal(sign: .minus, exponent: 126, significand: 10),
        Decimal(UInt64.max), Decimal(UInt64.max) + 1,
    ]

    /// A number of `Decimal` with so many digits, or with all 128 bits of its significand.
    private func random(_ generator: inout SeededRandom) -> Decimal {
        let bits = UInt128(generator.next()) << 64 | UInt128(generator.next())
        let number = bits >> UInt128(Int.random(in: 0..<128, using: &generator))
        let word = Decimal(UInt64.max) + 1
        let significand =
            Decimal(UInt64(truncatingIfNeeded: number >> 64)) * word
            + Decimal(UInt64(truncatingIfNeeded: number))
        return Decimal(
            sign: Bool.random(using: &generator) ? .minus : .plus,
            exponent: Int.random(in: -128...127, using: &generator),
            significand: significand
        )
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func whatADecimalHoldsComesBackWithAllDigits(seed: UInt64) throws {
        var generator = SeededRandom(seed: seed)
        var values = Self.special
        while values.count < 3_000 {
            let value = random(&generator)
            if !value.isNaN { values.append(value) }
        }
        var wrong: [String] = []
        for value in values {
            let back = Decimal(stored: value.stored)
            if back != value || back?.description != value.description {
                wrong.append("\(value) read back as \(back.map { "\($0)" } ?? "nothing")")
            }
        }
        #expect(wrong.isEmpty, "seed \(seed)")
    }

    @Test func indexesAndAggregatesKeepAllDigits() throws {
        let folder = try TemporaryFolder()
        var generator = SeededRandom(seed: 9)
        let values = (Self.special + (0..<400).map { _ in random(&generator) }).filter { !$0.isNaN }
        do {
            let container = try PersistentContainer.openNow(
                at: folder.store,
                schema: AmountSchema.self
            )
            let context = container.newContext()
            for value in values {
                let amount = Amount(in: context)
                amount.indexed = value
                amount.plain = value
                amount.optional = value
                #expect(amount.plain == value)
            }
            try context.save()
            try container.closeNow()
        }
        let container = try PersistentContainer.openNow(at: folder.store, schema: AmountSchema.self)
        let context = container.newContext()
        let all = Amount.all
        for amount in try context.fetch(all) {
            #expect(amount.indexed == amount.plain && amount.optional == amount.plain)
        }
        let sorted = try context.fetch(all.sorted { [$0.indexed.ascending] }).map(\.indexed)
        #expect(sorted == values.sorted())
        #expect(
            try context.fetch(all.sorted { [$0.plain.ascending] }).map(\.plain) == values.sorted()
        )
        #expect(try context.maximum(all) { $0.indexed } == .greatestFiniteMagnitude)
        #expect(try context.minimum(all) { $0.indexed } == -.greatestFiniteMagnitude)
        #expect(try context.maximum(all) { $0.plain } == .greatestFiniteMagnitude)
        #expect(try context.minimum(all) { $0.optional } == -.greatestFiniteMagnitude)
        #expect(try context.selectDistinct(all) { $0.indexed } == Set(values).sorted())
        for value in values {
            let count = values.count { $0 == value }
            #expect(try context.count(Amount.where { $0.indexed == value }) == count, "\(value)")
            #expect(try context.count(Amount.where { $0.plain == value }) == count, "\(value)")
        }
        try container.closeNow()
    }

    @Test func notANumberIsRefusedByTheSetter() throws {
        let container = try PersistentContainer.inMemory(schema: AmountSchema.self)
        let context = container.newContext()
        let amount = Amount(in: context)
        amount.plain = 3
        amount.plain = .nan
        amount.optional = .nan
        #expect(amount.plain == 3 && amount.optional == nil)
        #expect(context.refusedEdits.map(\.property) == ["plain", "optional"])
        let error = #expect(throws: StoreError.self) { try context.save() }
        #expect(error?.code == .invalid && error?.place.attribute == "plain")
        // A proper value takes the refusal back; the other one is acknowledged.
        amount.plain = 4
        context.acknowledgeRefusedEdits()
        try context.save()
        #expect(try context.fetch(Amount.all).map(\.plain) == [4])
        let refused = #expect(throws: StoreError.self) {
            try context.batchInsert(Amount.self, count: 1) { row, _ in row.plain = .nan }
        }
        #expect(refused?.code == .invalid && refused?.place.attribute == "plain")
        let again = #expect(throws: StoreError.self) {
            try context.batchUpdate(Amount.all) { row in row.optional = .nan }
        }
        #expect(again?.code == .invalid)
        #expect(try context.count(Amount.all) == 1)
        try container.closeNow()
    }
}
