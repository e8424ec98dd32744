// An upsert of an entity with more than 64 properties: only what was given replaces what is stored.

import Testing
import VarveObjects

private final class Wide: ManagedObject {
    static let entityName = "Wide"
    struct Columns: Sendable {
        let key = Column<Wide, String?>("key")
        let p0 = Column<Wide, Int>("p0", default: 0)
        let p1 = Column<Wide, Int>("p1", default: 1)
        let p2 = Column<Wide, Int>("p2", default: 2)
        let p3 = Column<Wide, Int>("p3", default: 3)
        let p4 = Column<Wide, Int>("p4", default: 4)
        let p5 = Column<Wide, Int>("p5", default: 5)
        let p6 = Column<Wide, Int>("p6", default: 6)
        let p7 = Column<Wide, Int>("p7", default: 7)
        let p8 = Column<Wide, Int>("p8", default: 8)
        let p9 = Column<Wide, Int>("p9", default: 9)
        let p10 = Column<Wide, Int>("p10", default: 10)
        let p11 = Column<Wide, Int>("p11", default: 11)
        let p12 = Column<Wide, Int>("p12", default: 12)
        let p13 = Column<Wide, Int>("p13", default: 13)
        let p14 = Column<Wide, Int>("p14", default: 14)
        let p15 = Column<Wide, Int>("p15", default: 15)
        let p16 = Column<Wide, Int>("p16", default: 16)
        let p17 = Column<Wide, Int>("p17", default: 17)
        let p18 = Column<Wide, Int>("p18", default: 18)
        let p19 = Column<Wide, Int>("p19", default: 19)
        let p20 = Column<Wide, Int>("p20", default: 20)
        let p21 = Column<Wide, Int>("p21", default: 21)
        let p22 = Column<Wide, Int>("p22", default: 22)
        let p23 = Column<Wide, Int>("p23", default: 23)
        let p24 = Column<Wide, Int>("p24", default: 24)
        let p25 = Column<Wide, Int>("p25", default: 25)
        let p26 = Column<Wide, Int>("p26", default: 26)
        let p27 = Column<Wide, Int>("p27", default: 27)
        let p28 = Column<Wide, Int>("p28", default: 28)
        let p29 = Column<Wide, Int>("p29", default: 29)
        let p30 = Column<Wide, Int>("p30", default: 30)
        let p31 = Column<Wide, Int>("p31", default: 31)
        let p32 = Column<Wide, Int>("p32", default: 32)
        let p33 = Column<Wide, Int>("p33", default: 33)
        let p34 = Column<Wide, Int>("p34", default: 34)
        let p35 = Column<Wide, Int>("p35", default: 35)
        let p36 = Column<Wide, Int>("p36", default: 36)
        let p37 = Column<Wide, Int>("p37", default: 37)
        let p38 = Column<Wide, Int>("p38", default: 38)
        let p39 = Column<Wide, Int>("p39", default: 39)
        let p40 = Column<Wide, Int>("p40", default: 40)
        let p41 = Column<Wide, Int>("p41", default: 41)
        let p42 = Column<Wide, Int>("p42", default: 42)
        let p43 = Column<Wide, Int>("p43", default: 43)
        let p44 = Column<Wide, Int>("p44", default: 44)
        let p45 = Column<Wide, Int>("p45", default: 45)
        let p46 = Column<Wide, Int>("p46", default: 46)
        let p47 = Column<Wide, Int>("p47", default: 47)
        let p48 = Column<Wide, Int>("p48", default: 48)
        let p49 = Column<Wide, Int>("p49", default: 49)
        let p50 = Column<Wide, Int>("p50", default: 50)
        let p51 = Column<Wide, Int>("p51", default: 51)
        let p52 = Column<Wide, Int>("p52", default: 52)
        let p53 = Column<Wide, Int>("p53", default: 53)
        let p54 = Column<Wide, Int>("p54", default: 54)
        let p55 = Column<Wide, Int>("p55", default: 55)
        let p56 = Column<Wide, Int>("p56", default: 56)
        let p57 = Column<Wide, Int>("p57", default: 57)
        let p58 = Column<Wide, Int>("p58", default: 58)
        let p59 = Column<Wide, Int>("p59", default: 59)
        let p60 = Column<Wide, Int>("p60", default: 60)
        let p61 = Column<Wide, Int>("p61", default: 61)
        let p62 = Column<Wide, Int>("p62", default: 62)
        let p63 = Column<Wide, Int>("p63", default: 63)
        let p64 = Column<Wide, Int>("p64", default: 64)
        let p65 = Column<Wide, Int>("p65", default: 65)
        let p66 = Column<Wide, Int>("p66", default: 66)
        let p67 = Column<Wide, Int>("p67", default: 67)
        let p68 = Column<Wide, Int>("p68", default: 68)
        let p69 = Column<Wide, Int>("p69", default: 69)
    }
    static let columns = Columns()
    static var uniqueConstraints: [EntityConstraint] {
        [EntityConstraint(columns.key, onConflict: .upsert)]
    }
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var key: String? {
        get { storedValue(Self.columns.key, \.key) }
        set { setStoredValue(newValue, Self.columns.key, \.key) }
    }
    var p0: Int {
        get { storedValue(Self.columns.p0, \.p0) }
        set { setStoredValue(newValue, Self.columns.p0, \.p0) }
    }
    var p62: Int {
        get { storedValue(Self.columns.p62, \.p62) }
        set { setStoredValue(newValue, Self.columns.p62, \.p62) }
    }
    var p63: Int {
        get { storedValue(Self.columns.p63, \.p63) }
        set { setStoredValue(newValue, Self.columns.p63, \.p63) }
    }
    var p64: Int {
        get { storedValue(Self.columns.p64, \.p64) }
        set { setStoredValue(newValue, Self.columns.p64, \.p64) }
    }
    var p65: Int {
        get { storedValue(Self.columns.p65, \.p65) }
        set { setStoredValue(newValue, Self.columns.p65, \.p65) }
    }
    var p69: Int {
        get { storedValue(Self.columns.p69, \.p69) }
        set { setStoredValue(newValue, Self.columns.p69, \.p69) }
    }
    /// Those that the tests look at: on both sides of the sixty-fourth.
    static var watched: [ReferenceWritableKeyPath<Wide, Int>] {
        [\.p0, \.p62, \.p63, \.p64, \.p65, \.p69]
    }
    var watchedValues: [Int] { Wide.watched.map { self[keyPath: $0] } }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Wide: Sendable {}

private enum WideSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Wide.self] }
}

@Suite(.verified) struct WideUpsertTests {
    @Test func whatWasNotGivenStays() throws {
        let container = try PersistentContainer.inMemory(schema: WideSchema.self)
        let context = container.newContext()
        let old = Wide(in: context)
        old.key = "k"
        for path in Wide.watched { old[keyPath: path] = -1 }
        try context.save()
        for (given, path) in Wide.watched.enumerated() {
            let new = Wide(in: context)
            new.key = "k"
            new[keyPath: path] = 1_000 + given
            #expect(try context.save().replaced == [new.objectID: old.objectID])
            var expected = [-1, -1, -1, -1, -1, -1]
            for index in 0...given { expected[index] = 1_000 + index }
            #expect(old.watchedValues == expected)
            let fresh = container.newContext()
            #expect(try fresh.existingObject(with: old.id)?.watchedValues == expected)
        }
        #expect(try container.newContext().count(Wide.all) == 1)
        // A default that is given counts as given.
        let last = Wide(in: context)
        last.key = "k"
        last.p69 = 69
        try context.save()
        #expect(old.p69 == 69 && old.p65 == 1_004)
    }
}
