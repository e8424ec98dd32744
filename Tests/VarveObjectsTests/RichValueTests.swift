// Composites, codecs, Codable values and lists used in the wrong order, at their limits, and by two
// contexts at once.

import Foundation
import Testing
import VarveBase
import VarveTesting

@testable import VarveObjects

/// Negative ones cannot be read: as a case that a newer build has.
private struct Fee: StoredConvertible, OrderedValue {
    var cents: Int
    static let zeroValue = Fee(cents: 0)
    var storedForm: Int { cents }
    init(cents: Int) { self.cents = cents }
    init?(storedForm: Int) {
        if storedForm < 0 { return nil }
        cents = storedForm
    }
}

private struct Place: StoredComposite, Equatable {
    var city = ""
    var fee = Fee(cents: 5)
    var rate: Decimal = 1
    var note: String?

    struct Fields: Sendable {
        let city = CompositeField<Place, String>(
            "city",
            default: "",
            get: { $0.city },
            set: { $0.city = $1 }
        )
        let fee = CompositeField<Place, Fee>(
            "fee",
            default: Fee(cents: 5),
            get: { $0.fee },
            set: { $0.fee = $1 }
        )
        let rate = CompositeField<Place, Decimal>(
            "rate",
            default: 1,
            get: { $0.rate },
            set: { $0.rate = $1 }
        )
        let note = CompositeField<Place, String?>(
            "note",
            default: nil,
            get: { $0.note },
            set: { $0.note = $1 }
        )
    }
    static let fields = Fields()
}

private struct Shape: StoredCodable {
    var name = ""
    var breaks = false
    static let zeroValue = Shape()
    struct Broken: Error {}

    init(name: String = "", breaks: Bool = false) { (self.name, self.breaks) = (name, breaks) }
    init(from decoder: any Decoder) throws {
        name = try decoder.singleValueContainer().decode(String.self)
        if name == "unreadable" { throw Broken() }
    }
    func encode(to encoder: any Encoder) throws {
        if breaks { throw Broken() }
        var container = encoder.singleValueContainer()
        try container.encode(name)
    }
}

/// Gives another form each time.
private enum RandomCodec: ValueCodec {
    static let zeroValue = ""
    static func encode(_ value: String) -> String { "\(UInt64.random(in: 0...9_999_999)):\(value)" }
    static func decode(_ stored: String) -> String? {
        stored.firstIndex(of: ":").map { String(stored[stored.index(after: $0)...]) }
    }
}

private final class Stop: ManagedObject {
    static let entityName = "Stop"
    struct Columns: Sendable {
        let name = Column<Stop, String>("name", default: "")
        let here = CompositeColumn<Stop, Place>("here", default: Place())
        let next = OptionalCompositeColumn<Stop, Place>("next")
        let shape = Column<Stop, Shape>("shape", default: Shape())
        let scores = Column<Stop, [String: Double]?>("scores")
        let price = Column<Stop, Decimal?>("price")
        let secret = Column<Stop, Coded<RandomCodec>>("secret", default: Coded("none"))
        let label = Column<Stop, String>("label", derived: Stop.label)
    }
    static let columns = Columns()
    @Sendable private static func label(_ row: DerivedSource<Stop>) -> String {
        "\(row[columns.here].city)/\(row[columns.next]?.city ?? "-")"
    }
    static var indexes: [EntityIndex] { [EntityIndex(columns.next.fee, columns.here.city)] }
    static var uniqueConstraints: [EntityConstraint] {
        [EntityConstraint(columns.next.note, onConflict: .upsert)]
    }
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var here: Place {
        get { storedValue(Self.columns.here, \.here) }
        set { setStoredValue(newValue, Self.columns.here, \.here) }
    }
    var next: Place? {
        get { storedValue(Self.columns.next, \.next) }
        set { setStoredValue(newValue, Self.columns.next, \.next) }
    }
    var shape: Shape {
        get { storedValue(Self.columns.shape, \.shape) }
        set { setStoredValue(newValue, Self.columns.shape, \.shape) }
    }
    var scores: [String: Double]? {
        get { storedValue(Self.columns.scores, \.scores) }
        set { setStoredValue(newValue, Self.columns.scores, \.scores) }
    }
    var price: Decimal? {
        get { storedValue(Self.columns.price, \.price) }
        set { setStoredValue(newValue, Self.columns.price, \.price) }
    }
    var secret: String {
        get { storedValue(Self.columns.secret, \.secret) }
        set { setStoredValue(newValue, Self.columns.secret, \.secret) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Stop: Sendable {}

private enum Route: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Stop.self] }
}

@Suite(.verified) struct RichValueTests {
    private let container: PersistentContainer
    private let context: ManagedObjectContext

    init() throws {
        container = try PersistentContainer.inMemory(
            schema: Route.self,
            options: ContainerOptions()
        )
        context = container.newContext()
    }

    private func count(_ filter: TypedPredicate<Stop>) throws -> Int {
        try container.newContext().count(Stop.where { _ in filter })
    }

    // MARK: Composites

    @Test func aFieldThatCannotBeReadKeepsItsValue() throws {
        let stop = Stop(in: context)
        stop.here = Place(city: "A", fee: Fee(cents: -7))
        stop.next = Place(city: "B", fee: Fee(cents: -8))
        try context.save()
        let other = container.newContext()
        let same = try #require(try other.existingObject(with: stop.id))
        #expect(same.here.fee.cents == 5 && same.readFailure?.code == .unreadableValue)
        // The app edits other fields, one by one and all of them.
        same.here.city = "C"
        same.next?.note = "n"
        same.here = same.here
        try other.save()
        let columns = Stop.columns
        #expect(try count(columns.here.fee == Fee(cents: -7) && columns.here.city == "C") == 1)
        #expect(try count(columns.next.fee == Fee(cents: -8) && columns.next.note == "n") == 1)
        try other.batchUpdate(Stop.all) { $0.here.city = "D" }
        #expect(try count(columns.here.fee == Fee(cents: -7) && columns.here.city == "D") == 1)
        // A value of its own takes the place of the unreadable one.
        same.here.fee = Fee(cents: 3)
        try other.save()
        #expect(try count(columns.here.fee == Fee(cents: 3)) == 1)
    }

    @Test func whatOneSetToNilAndAnotherEditedHasAllItsFields() throws {
        let stop = Stop(in: context)
        stop.next = Place(city: "A", fee: Fee(cents: 9), rate: 2)
        try context.save()
        let other = container.newContext()
        let same = try #require(try other.existingObject(with: stop.id))
        same.next?.city = "B"
        stop.next = nil
        try context.save()
        try other.save(mergePolicy: .objectWinsByProperty)
        // What a getter shows, a request finds: the fields that nobody kept are at their defaults.
        #expect(same.next == Place(city: "B"))
        let columns = Stop.columns
        #expect(try count(columns.next == Place(city: "B")) == 1)
        #expect(try count(columns.next.fee == Fee(cents: 5)) == 1)
        #expect(try count(columns.next == nil) == 0)
        #expect(try count(columns.label == "/B") == 1)
        same.next = same.next
        #expect(!other.hasChanges)
    }

    /// Its label stayed an edit: the context had changes, and met what others changed next.
    @Test func whatOthersSavedAsWellLeavesNoDerivedEdit() throws {
        let stop = Stop(in: context)
        try context.save()
        context.undoLimit = 3
        stop.here.city = "A"
        let other = container.newContext()
        let same = try #require(try other.existingObject(with: stop.id))
        same.here.city = "A"
        try other.save()
        context.advance()
        #expect(try context.undo().map(\.property) == ["here.city"])
        #expect(stop.here.city == "A" && !context.hasChanges && !stop.isUpdated)
        same.name = "later"
        try other.save()
        try context.save()
        #expect(stop.name == "later")
    }

    @Test func aProperValueForgetsTheRefusedOne() throws {
        let stop = Stop(in: context)
        try context.save()
        stop.here.rate = .nan
        #expect(context.refusedEdits.map(\.property) == ["here.rate"])
        #expect(stop.here == Place())
        // The value that it has already is a proper one.
        stop.here = Place()
        #expect(context.refusedEdits.isEmpty)
        try context.save()
        stop.here.rate = .nan
        stop.here.rate = 3
        try context.save()
        #expect(throws: StoreError.self) {
            try context.batchUpdate(Stop.all) { $0.next = Place(rate: .nan) }
        }
        #expect(try count(Stop.columns.next == nil) == 1)
    }

    @Test func aCompositeIsOneStepOfUndo() throws {
        context.undoLimit = 10
        let stop = Stop(in: context)
        try context.save()
        context.withUndoGroup("first") {
            stop.next = Place(city: "A", fee: Fee(cents: 1), note: "x")
        }
        context.withUndoGroup("second") { stop.next = nil }
        try context.undo()
        #expect(stop.next == Place(city: "A", fee: Fee(cents: 1), note: "x"))
        try context.undo()
        #expect(stop.next == nil)
        try context.save()
        #expect(try count(Stop.columns.next == nil) == 1)
        try context.redo()
        #expect(stop.next?.note == "x")
        stop.next = nil
        stop.next?.city = "lost"
        #expect(stop.next == nil)
    }

    @Test func aConstraintHoldsForAFieldOfAComposite() throws {
        for city in ["A", "B"] { Stop(in: context).here.city = city }
        let first = Stop(in: context)
        first.next = Place(city: "old", note: "key")
        let empty = Stop(in: context)
        empty.next = Place()
        try context.save()
        #expect(try context.count(Stop.all) == 4, "nil equals nothing")
        // A new object with the value gives the other one its fields.
        let second = Stop(in: context)
        second.next = Place(city: "new", note: "key")
        let result = try context.save()
        #expect(result.replaced == [second.objectID: first.objectID])
        #expect(first.next?.city == "new")
        #expect(try count(Stop.columns.next.city == "new") == 1)
        #expect(try count(Stop.columns.label == "/new") == 1)
        empty.next?.note = "key"
        #expect(throws: StoreError.self) { try context.save() }
        context.rollback()
        try context.batchInsert(
            Stop.self,
            ["key", "other"],
            onConflict: .upsert(by: \.next.note)
        ) { row, key in
            row.next = Place(city: "batch", note: key)
        }
        #expect(try count(Stop.columns.next.city == "batch") == 2)
        #expect(try context.count(Stop.all) == 5)
    }

    // MARK: Filters

    @Test func noRowHasAValueThatCannotBeKept() throws {
        let stop = Stop(in: context)
        stop.name = "one"
        for saves in [false, true] {
            if saves { try context.save() }
            func count(_ filter: TypedPredicate<Stop>) throws -> Int {
                try context.count(Stop.where { _ in filter })
            }
            let columns = Stop.columns
            // Its price, scores and next place are nil.
            #expect(try count(columns.price == .nan) == 0)
            #expect(try count(columns.price != .nan) == 1)
            #expect(try count(columns.price.isIn([.nan])) == 0)
            #expect(try count(columns.price.isIn([.nan, nil])) == 1)
            #expect(try count(columns.price < .nan) == 0)
            #expect(try count(columns.scores == ["a": .nan]) == 0)
            #expect(try count(columns.scores != ["a": .nan]) == 1)
            #expect(try count(columns.scores == nil) == 1)
            #expect(try count(columns.shape == Shape(breaks: true)) == 0)
            #expect(try count(columns.next == Place(rate: .nan)) == 0)
            #expect(try count(columns.here == Place(rate: .nan)) == 0)
            #expect(try count(columns.here != Place(rate: .nan)) == 1)
            #expect(try count(columns.next.rate == .nan) == 0)
        }
    }

    // MARK: Codable values and codecs

    @Test func anEncoderThatThrowsIsARefusedEdit() throws {
        let stop = Stop(in: context)
        stop.shape = Shape(name: "round")
        stop.shape = Shape(name: "x", breaks: true)
        #expect(stop.shape.name == "round")
        #expect(throws: StoreError.self) { try context.save() }
        context.acknowledgeRefusedEdits()
        try context.save()
        #expect(throws: StoreError.self) {
            try context.batchUpdate(Stop.all) { $0.shape = Shape(breaks: true) }
        }
        #expect(throws: StoreError.self) {
            try context.batchInsert(Stop.self, 0..<1) { row, _ in row.shape = Shape(breaks: true) }
        }
        #expect(try count(Stop.columns.shape == Shape(name: "round")) == 1)
    }

    @Test func aDecoderThatThrowsCostsItsPropertyOnly() throws {
        let stop = Stop(in: context)
        stop.shape = Shape(name: "unreadable")
        stop.name = "kept"
        try context.save()
        let other = container.newContext()
        let same = try #require(try other.existingObject(with: stop.id))
        #expect(same.shape == .zeroValue && same.readFailure?.code == .unreadableValue)
        #expect(same.name == "kept" && same.snapshot().shape == .zeroValue)
        // A value that cannot be read stops nothing else, and is left as it is.
        same.name = "changed"
        try other.save()
        #expect(try count(Stop.columns.shape == Shape(name: "unreadable")) == 1)
        same.shape = Shape(name: "better")
        try other.save()
        #expect(same.shape.name == "better")
        #expect(try count(Stop.columns.shape == Shape(name: "better")) == 1)
    }

    @Test func aCodecThatGivesAnotherFormEachTimeLosesNothing() throws {
        context.undoLimit = 4
        let stop = Stop(in: context)
        stop.secret = "one"
        try context.save()
        // By its stored form that is another value; the app sees the same one.
        stop.secret = stop.secret
        try context.save()
        #expect(stop.secret == "one")
        stop.secret = "two"
        context.processPendingChanges()
        try context.undo()
        #expect(stop.secret == "one")
        let other = container.newContext()
        let same = try #require(try other.existingObject(with: stop.id))
        same.secret = "three"
        stop.name = "mine"
        try context.save()
        try other.save(mergePolicy: .objectWinsByProperty)
        context.advance()
        #expect(stop.secret == "three" && stop.name == "mine")
    }

    @Test func dictionariesHaveNoOrder() throws {
        let stop = Stop(in: context)
        var random = SeededRandom(seed: 7)
        let keys = (0..<300).map { number in
            String(repeating: ["a", "A", "1", "01", "é"][number % 5], count: 1 + number / 5)
        }
        stop.scores = Dictionary(uniqueKeysWithValues: keys.map { ($0, 1.5) })
        try context.save()
        for _ in 0..<20 {
            // The same ones, put in in another order and with other room.
            var scores = [String: Double](minimumCapacity: Int(random.next() % 4_000))
            for key in keys.shuffled(using: &random) { scores[key] = 1.5 }
            stop.scores = scores
            #expect(!context.hasChanges)
            #expect(try context.count(Stop.where { $0.scores == scores }) == 1)
        }
    }

    @Test func listsKeepExtremes() throws {
        func same<Value: StorableValue & Equatable>(
            _ value: Value,
            at location: Testing.SourceLocation = #_sourceLocation
        ) {
            #expect(value._refusal == nil, sourceLocation: location)
            let read = Value(stored: value.stored)
            #expect(read == value, sourceLocation: location)
            #expect(read?.stored.isSame(as: value.stored) == true, sourceLocation: location)
        }
        same([Int64.min, -1, 0, .max])
        same([UInt64.min, .max])
        same([Int8.min, .max])
        same([0, -0.0, .greatestFiniteMagnitude, .leastNonzeroMagnitude, 0.1, 1e22] as [Double])
        same([Float.greatestFiniteMagnitude, .leastNonzeroMagnitude, 0.1])
        same(["", "\u{0}", "\"\\/", "\u{1F600}", "e\u{301}", "\u{2028}"])
        same([true, false])
        same([Date(timeIntervalSinceReferenceDate: 0.1), .distantPast, .distantFuture])
        same([UUID()])
        same([Data(), Data([0, 255])])
        same([URL(string: "https://example.org/a%20b?c=d#e")].compactMap(\.self))
        same(
            [Decimal(string: "0.1"), Decimal(string: "-123456789012345678901234567890.12345678")]
                .compactMap(\.self)
        )
        same([Decimal.greatestFiniteMagnitude, .leastNonzeroMagnitude])
        same([["a"], [], ["b", "c"]])
        same([String?.none, "a"])
        same(["k": [1, 2], "": []])
        same([[String: Int?]]())
        let zero: [Double] = [-0.0]
        #expect([Double](stored: zero.stored)?.first?.sign == .minus)
        for number in [Double.nan, .infinity, -.infinity] {
            #expect([number]._refusal != nil && ["a": number]._refusal != nil)
        }
    }
}
