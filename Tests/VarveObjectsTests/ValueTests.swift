// Every attribute type: default, edit, save, reopen, filter.

import Foundation
import Testing
import VarveObjects

@Suite(.verified) struct ValueTests {
    @Test func everyTypeSurvivesSaveAndReopening() throws {
        let folder = try TemporaryFolder()
        let id: Everything.ID
        do {
            let container = try folder.open()
            let context = container.newContext()
            let object = Everything(in: context)
            check(object)
            object.required = "set"
            object.optionalInt = 3
            object.optionalBool = false
            object.optionalColor = .red
            try context.save()
            id = object.id
            check(object)
            try container.closeNow()
        }
        let container = try folder.open()
        let context = container.newContext()
        let object = try #require(try context.existingObject(with: id))
        check(object)
        #expect(object.required == "set" && object.optionalInt == 3 && object.optionalBool == false)
        #expect(object.optionalColor == .red && object.optionalDate == nil)
        object.optionalInt = nil
        object.optionalString = nil
        object.double = .nan
        object.decimal = Decimal(string: "99999999999999999999999999999999999999")!
        object.string = String(repeating: "ö", count: 5_000)
        object.data = Data(repeating: 9, count: 10_000)
        try context.save()
        try container.closeNow()
        let again = try folder.open()
        let lastContext = again.newContext()
        let last = try #require(try lastContext.existingObject(with: id))
        #expect(last.optionalInt == nil && last.optionalString == nil && last.double.isNaN)
        #expect(last.decimal == Decimal(string: "99999999999999999999999999999999999999")!)
        #expect(last.string == String(repeating: "ö", count: 5_000))
        #expect(last.data == Data(repeating: 9, count: 10_000))
        try again.closeNow()
    }

    private func check(_ object: Everything) {
        #expect(object.bool && object.int == -1 && object.int8 == .min && object.int16 == .max)
        #expect(object.int32 == -3 && object.int64 == .min && object.uint == .max)
        #expect(object.uint8 == .max && object.uint16 == 7 && object.uint32 == .max)
        #expect(object.uint64 == .max && object.double == 1.5 && object.float == -2.25)
        #expect(object.string == "ä\u{0}b")
        #expect(object.date == Date(timeIntervalSinceReferenceDate: 12.75))
        #expect(object.uuid.uuidString == "00010203-0405-0607-0809-0A0B0C0D0E0F")
        #expect(object.url.absoluteString == "https://example.org/a?b=c")
        #expect(object.data == Data([0, 1, 255]))
        #expect(object.decimal == Decimal(string: "-123.45")!)
        #expect(object.color == .green && object.priority == .high)
        #expect(object.optionalString == "given")
    }

    @Test func decimalsConvertExactly() {
        for text in [
            "0", "1", "-1", "10", "0.1", "-0.000000000000000000000000000001", "1e30",
            "12345678901234567890123456789012345678", "-99.99",
        ] {
            let decimal = Decimal(string: text)!
            #expect(Decimal(stored: decimal.stored) == decimal, "\(text)")
        }
        #expect(Decimal.nan.stored == .null)
    }

    @Test func everyTypeFilters() throws {
        let container = try memory()
        let context = container.newContext()
        for index in 0..<4 {
            let object = Everything(in: context)
            object.required = "r\(index)"
            object.int = index
            object.uint64 = .max - UInt64(index)
            object.double = Double(index) / 2
            object.date = Date(timeIntervalSinceReferenceDate: Double(index))
            object.decimal = Decimal(index) / 4
            object.optionalInt = index == 0 ? nil : index
            object.color = index % 2 == 0 ? .red : .green
            object.priority = index < 2 ? .low : .high
            object.url = URL(string: "https://example.org/\(index)")!
        }
        for isSaved in [false, true] {
            if isSaved { try context.save() }
            func count(
                _ filter: (Everything.Columns) -> TypedPredicate<Everything>
            ) throws -> Int {
                let ids = try context.fetchIDs(Everything.where(filter))
                #expect(try context.count(Everything.where(filter)) == ids.count)
                return ids.count
            }
            #expect(try count { $0.int == 2 } == 1)
            #expect(try count { $0.int > 0 && $0.int <= 2 } == 2)
            #expect(try count { $0.int.isIn([0, 3, 9]) } == 2)
            #expect(try count { $0.uint64 > UInt64.max - 2 } == 2)
            #expect(try count { $0.double >= 1 } == 2)
            #expect(try count { $0.date < Date(timeIntervalSinceReferenceDate: 1.5) } == 2)
            #expect(try count { $0.decimal == Decimal(string: "0.25")! } == 1)
            #expect(try count { $0.optionalInt == nil } == 1)
            #expect(try count { $0.optionalInt != nil } == 3)
            #expect(try count { $0.optionalInt == 2 } == 1)
            #expect(try count { $0.optionalInt < 3 } == 2)
            #expect(try count { !($0.optionalInt < 3) } == 2)
            #expect(try count { $0.color == .red || $0.priority == .high } == 3)
            #expect(try count { $0.url == URL(string: "https://example.org/3")! } == 1)
            #expect(try count { $0.required.hasPrefix("r") && $0.required.hasSuffix("1") } == 1)
            #expect(try count { $0.required.contains("R", ignoringCase: true) } == 4)
            #expect(try count { $0.string.contains("\u{0}") } == 4)
            #expect(try count { _ in .never } == 0)
            #expect(try count { $0.int < $0.optionalIntAsInt } == 0)
        }
    }

    @Test func anUnknownEnumCaseFailsThatPropertyOnly() throws {
        let folder = try TemporaryFolder()
        let id: ManagedObjectID
        do {
            let container = try PersistentContainer.openNow(at: folder.store, schema: NewBuild.self)
            let context = container.newContext()
            let light = NewLight(in: context)
            light.state = .violet
            light.name = "lamp"
            try context.save()
            id = light.objectID
            try container.closeNow()
        }
        let container = try PersistentContainer.openNow(at: folder.store, schema: OldBuild.self)
        let context = container.newContext()
        let light = try #require(try context.existingObject(with: id) as? OldLight)
        #expect(light.state == .red && light.name == "lamp")
        #expect(light.readFailure?.code == .unreadableValue)
        light.name = "renamed"
        try context.save()
        try container.closeNow()
        let again = try PersistentContainer.openNow(at: folder.store, schema: NewBuild.self)
        let lastContext = again.newContext()
        let kept = try #require(try lastContext.existingObject(with: id) as? NewLight)
        #expect(kept.state == .violet && kept.name == "renamed")
        try again.closeNow()
    }

    /// Code of an app could let the row go while it is read without a reference of its own.
    @Test("Only types of the library are read without a reference to the row")
    func whoIsReadByTheLibrary() {
        #expect(Int._isReadByLibrary && String._isReadByLibrary && Date?._isReadByLibrary)
        #expect(!Priority._isReadByLibrary && !Color?._isReadByLibrary)
        #expect(!URL._isReadByLibrary)
    }
}

extension Everything.Columns {
    /// A column against a column.
    var optionalIntAsInt: Column<Everything, Int> { int }
}

enum NewState: String, StoredEnum { case red, violet }
enum OldState: String, StoredEnum { case red }

final class NewLight: ManagedObject {
    static let entityName = "Light"
    struct Columns: Sendable {
        let state = Column<NewLight, NewState>("state", default: .red)
        let name = Column<NewLight, String>("name", default: "")
    }
    static let columns = Columns()
    var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var state: NewState {
        get { storedValue(Self.columns.state, \.state) }
        set { setStoredValue(newValue, Self.columns.state, \.state) }
    }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
}

final class OldLight: ManagedObject {
    static let entityName = "Light"
    struct Columns: Sendable {
        let state = Column<OldLight, OldState>("state", default: .red)
        let name = Column<OldLight, String>("name", default: "")
    }
    static let columns = Columns()
    var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var state: OldState {
        get { storedValue(Self.columns.state, \.state) }
        set { setStoredValue(newValue, Self.columns.state, \.state) }
    }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
}

enum NewBuild: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [NewLight.self] }
}
enum OldBuild: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [OldLight.self] }
}
