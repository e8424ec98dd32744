// Entities that the tests of this module share, written by hand: no macros here.

import Foundation
import VarveObjects

enum Priority: Int, StoredEnum { case low, normal, high }
enum Color: String, StoredEnum { case red, green }

final class Item: ManagedObject {
    static let entityName = "Item"
    struct Columns: Sendable {
        let timestamp = Column<Item, Date>("timestamp", default: .now)
        let title = Column<Item, String>("title", default: "")
        let priority = Column<Item, Priority>("priority", default: .normal)
        let serial = Column<Item, UUID?>("serial")
        let number = Column<Item, Int>("number", default: 0)
        let picture = ToOneColumn<Item, Picture>("picture", inverse: "item", deleteRule: .cascade)
        let tags = ToManyColumn<Item, Tag>("tags", inverse: "items", ordered: true)
        let folder = ToOneColumn<Item, Folder>("folder", inverse: "items")
    }
    static let columns = Columns()
    static var indexes: [EntityIndex] {
        [EntityIndex(columns.priority, columns.timestamp), EntityIndex(columns.number)]
    }
    static var uniqueConstraints: [EntityConstraint] { [EntityConstraint(columns.serial)] }
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var timestamp: Date {
        get { storedValue(Self.columns.timestamp, \.timestamp) }
        set { setStoredValue(newValue, Self.columns.timestamp, \.timestamp) }
    }
    var title: String {
        get { storedValue(Self.columns.title, \.title) }
        set { setStoredValue(newValue, Self.columns.title, \.title) }
    }
    var priority: Priority {
        get { storedValue(Self.columns.priority, \.priority) }
        set { setStoredValue(newValue, Self.columns.priority, \.priority) }
    }
    var serial: UUID? {
        get { storedValue(Self.columns.serial, \.serial) }
        set { setStoredValue(newValue, Self.columns.serial, \.serial) }
    }
    var number: Int {
        get { storedValue(Self.columns.number, \.number) }
        set { setStoredValue(newValue, Self.columns.number, \.number) }
    }
    var picture: Picture? {
        get { storedValue(Self.columns.picture, \.picture) }
        set { setStoredValue(newValue, Self.columns.picture, \.picture) }
    }
    var tags: ToMany<Tag> { storedValue(Self.columns.tags, \.tags) }
    var folder: Folder? {
        get { storedValue(Self.columns.folder, \.folder) }
        set { setStoredValue(newValue, Self.columns.folder, \.folder) }
    }
    var isExpanded = false
    var calls: [String] = []
    func validate(_ report: inout ValidationReport) {
        if title == "bad" { report.fail("title", "must not be bad") }
        if number < 0 { report.fail("number", "must not be negative") }
    }
    func awakeFromInsert() { calls.append("insert") }
    func awakeFromFetch() {
        calls.append("fetch")
        AwakeHook.current?.run?()
    }
    func willSave() { calls.append("willSave") }
    func didSave() { calls.append("didSave") }
    func prepareForDeletion() { calls.append("delete") }
    func didTurnIntoFault() { calls.append("fault") }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Item: Sendable {}

final class Picture: ManagedObject {
    static let entityName = "Picture"
    struct Columns: Sendable {
        let data = Column<Picture, Blob?>("data", externalStorageAbove: 1_000)
        let caption = Column<Picture, String>("caption", default: "")
        let item = ToOneColumn<Picture, Item>("item")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var data: Blob? {
        get { storedValue(Self.columns.data, \.data) }
        set { setStoredValue(newValue, Self.columns.data, \.data) }
    }
    var caption: String {
        get { storedValue(Self.columns.caption, \.caption) }
        set { setStoredValue(newValue, Self.columns.caption, \.caption) }
    }
    var item: Item? {
        get { storedValue(Self.columns.item, \.item) }
        set { setStoredValue(newValue, Self.columns.item, \.item) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Picture: Sendable {}

final class Tag: ManagedObject {
    static let entityName = "Tag"
    struct Columns: Sendable {
        let name = Column<Tag, String>("name", default: "")
        let items = ToManyColumn<Tag, Item>("items")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var items: ToMany<Item> { storedValue(Self.columns.items, \.items) }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Tag: Sendable {}

final class Folder: ManagedObject {
    static let entityName = "Folder"
    struct Columns: Sendable {
        let name = Column<Folder, String>("name", default: "")
        let items = ToManyColumn<Folder, Item>("items")
        let owner = ToOneColumn<Folder, Person>("owner", inverse: "folders", deleteRule: .nullify)
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var items: ToMany<Item> { storedValue(Self.columns.items, \.items) }
    var owner: Person? {
        get { storedValue(Self.columns.owner, \.owner) }
        set { setStoredValue(newValue, Self.columns.owner, \.owner) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Folder: Sendable {}

final class Person: ManagedObject {
    static let entityName = "Person"
    struct Columns: Sendable {
        let name = Column<Person, String>("name", default: "")
        let folders = ToManyColumn<Person, Folder>("folders", deleteRule: .deny)
        let friend = ToOneColumn<Person, Person>("friend")
        let likes = ToManyColumn<Person, Tag>("likes")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var folders: ToMany<Folder> { storedValue(Self.columns.folders, \.folders) }
    var friend: Person? {
        get { storedValue(Self.columns.friend, \.friend) }
        set { setStoredValue(newValue, Self.columns.friend, \.friend) }
    }
    var likes: ToMany<Tag> { storedValue(Self.columns.likes, \.likes) }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Person: Sendable {}

final class Account: ManagedObject {
    static let entityName = "Account"
    struct Columns: Sendable {
        let email = Column<Account, String>("email", default: "")
        let name = Column<Account, String>("name", default: "new")
        let visits = Column<Account, Int>("visits", default: 0)
        let code = Column<Account, Int?>("code")
    }
    static let columns = Columns()
    static var uniqueConstraints: [EntityConstraint] {
        [
            EntityConstraint(columns.email, onConflict: .upsert),
            EntityConstraint(columns.code, columns.visits, onConflict: .ignore),
        ]
    }
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var email: String {
        get { storedValue(Self.columns.email, \.email) }
        set { setStoredValue(newValue, Self.columns.email, \.email) }
    }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var visits: Int {
        get { storedValue(Self.columns.visits, \.visits) }
        set { setStoredValue(newValue, Self.columns.visits, \.visits) }
    }
    var code: Int? {
        get { storedValue(Self.columns.code, \.code) }
        set { setStoredValue(newValue, Self.columns.code, \.code) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Account: Sendable {}

final class Everything: ManagedObject {
    static let entityName = "Everything"
    struct Columns: Sendable {
        let bool = Column<Everything, Bool>("bool", default: true)
        let int = Column<Everything, Int>("int", default: -1)
        let int8 = Column<Everything, Int8>("int8", default: .min)
        let int16 = Column<Everything, Int16>("int16", default: .max)
        let int32 = Column<Everything, Int32>("int32", default: -3)
        let int64 = Column<Everything, Int64>("int64", default: .min)
        let uint = Column<Everything, UInt>("uint", default: .max)
        let uint8 = Column<Everything, UInt8>("uint8", default: .max)
        let uint16 = Column<Everything, UInt16>("uint16", default: 7)
        let uint32 = Column<Everything, UInt32>("uint32", default: .max)
        let uint64 = Column<Everything, UInt64>("uint64", default: .max)
        let double = Column<Everything, Double>("double", default: 1.5)
        let float = Column<Everything, Float>("float", default: -2.25)
        let string = Column<Everything, String>("string", default: "ä\u{0}b")
        let date = Column<Everything, Date>(
            "date",
            default: Date(timeIntervalSinceReferenceDate: 12.75)
        )
        let uuid = Column<Everything, UUID>(
            "uuid",
            default: UUID(uuidString: "00010203-0405-0607-0809-0a0b0c0d0e0f")!
        )
        let url = Column<Everything, URL>("url", default: URL(string: "https://example.org/a?b=c")!)
        let data = Column<Everything, Data>("data", default: Data([0, 1, 255]))
        let decimal = Column<Everything, Decimal>("decimal", default: Decimal(string: "-123.4500")!)
        let color = Column<Everything, Color>("color", default: .green)
        let priority = Column<Everything, Priority>("priority", default: .high)
        let optionalInt = Column<Everything, Int?>("optionalInt")
        let optionalString = Column<Everything, String?>("optionalString", default: "given")
        let optionalBool = Column<Everything, Bool?>("optionalBool")
        let optionalDate = Column<Everything, Date?>("optionalDate")
        let optionalColor = Column<Everything, Color?>("optionalColor")
        let required = Column<Everything, String>("required")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var bool: Bool {
        get { storedValue(Self.columns.bool, \.bool) }
        set { setStoredValue(newValue, Self.columns.bool, \.bool) }
    }
    var int: Int {
        get { storedValue(Self.columns.int, \.int) }
        set { setStoredValue(newValue, Self.columns.int, \.int) }
    }
    var int8: Int8 {
        get { storedValue(Self.columns.int8, \.int8) }
        set { setStoredValue(newValue, Self.columns.int8, \.int8) }
    }
    var int16: Int16 {
        get { storedValue(Self.columns.int16, \.int16) }
        set { setStoredValue(newValue, Self.columns.int16, \.int16) }
    }
    var int32: Int32 {
        get { storedValue(Self.columns.int32, \.int32) }
        set { setStoredValue(newValue, Self.columns.int32, \.int32) }
    }
    var int64: Int64 {
        get { storedValue(Self.columns.int64, \.int64) }
        set { setStoredValue(newValue, Self.columns.int64, \.int64) }
    }
    var uint: UInt {
        get { storedValue(Self.columns.uint, \.uint) }
        set { setStoredValue(newValue, Self.columns.uint, \.uint) }
    }
    var uint8: UInt8 {
        get { storedValue(Self.columns.uint8, \.uint8) }
        set { setStoredValue(newValue, Self.columns.uint8, \.uint8) }
    }
    var uint16: UInt16 {
        get { storedValue(Self.columns.uint16, \.uint16) }
        set { setStoredValue(newValue, Self.columns.uint16, \.uint16) }
    }
    var uint32: UInt32 {
        get { storedValue(Self.columns.uint32, \.uint32) }
        set { setStoredValue(newValue, Self.columns.uint32, \.uint32) }
    }
    var uint64: UInt64 {
        get { storedValue(Self.columns.uint64, \.uint64) }
        set { setStoredValue(newValue, Self.columns.uint64, \.uint64) }
    }
    var double: Double {
        get { storedValue(Self.columns.double, \.double) }
        set { setStoredValue(newValue, Self.columns.double, \.double) }
    }
    var float: Float {
        get { storedValue(Self.columns.float, \.float) }
        set { setStoredValue(newValue, Self.columns.float, \.float) }
    }
    var string: String {
        get { storedValue(Self.columns.string, \.string) }
        set { setStoredValue(newValue, Self.columns.string, \.string) }
    }
    var date: Date {
        get { storedValue(Self.columns.date, \.date) }
        set { setStoredValue(newValue, Self.columns.date, \.date) }
    }
    var uuid: UUID {
        get { storedValue(Self.columns.uuid, \.uuid) }
        set { setStoredValue(newValue, Self.columns.uuid, \.uuid) }
    }
    var url: URL {
        get { storedValue(Self.columns.url, \.url) }
        set { setStoredValue(newValue, Self.columns.url, \.url) }
    }
    var data: Data {
        get { storedValue(Self.columns.data, \.data) }
        set { setStoredValue(newValue, Self.columns.data, \.data) }
    }
    var decimal: Decimal {
        get { storedValue(Self.columns.decimal, \.decimal) }
        set { setStoredValue(newValue, Self.columns.decimal, \.decimal) }
    }
    var color: Color {
        get { storedValue(Self.columns.color, \.color) }
        set { setStoredValue(newValue, Self.columns.color, \.color) }
    }
    var priority: Priority {
        get { storedValue(Self.columns.priority, \.priority) }
        set { setStoredValue(newValue, Self.columns.priority, \.priority) }
    }
    var optionalInt: Int? {
        get { storedValue(Self.columns.optionalInt, \.optionalInt) }
        set { setStoredValue(newValue, Self.columns.optionalInt, \.optionalInt) }
    }
    var optionalString: String? {
        get { storedValue(Self.columns.optionalString, \.optionalString) }
        set { setStoredValue(newValue, Self.columns.optionalString, \.optionalString) }
    }
    var optionalBool: Bool? {
        get { storedValue(Self.columns.optionalBool, \.optionalBool) }
        set { setStoredValue(newValue, Self.columns.optionalBool, \.optionalBool) }
    }
    var optionalDate: Date? {
        get { storedValue(Self.columns.optionalDate, \.optionalDate) }
        set { setStoredValue(newValue, Self.columns.optionalDate, \.optionalDate) }
    }
    var optionalColor: Color? {
        get { storedValue(Self.columns.optionalColor, \.optionalColor) }
        set { setStoredValue(newValue, Self.columns.optionalColor, \.optionalColor) }
    }
    var required: String {
        get { storedValue(Self.columns.required, \.required) }
        set { setStoredValue(newValue, Self.columns.required, \.required) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Everything: Sendable {}

/// With a property that is not stored, as the macro writes it.
final class ExpandableNote: ManagedObject {
    static let entityName = "ExpandableNote"
    struct Columns: Sendable { let title = Column<ExpandableNote, String>("title", default: "") }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var title: String {
        get { storedValue(Self.columns.title, \.title) }
        set { setStoredValue(newValue, Self.columns.title, \.title) }
    }
    var isExpanded: Bool {
        get {
            accessTransient(\.isExpanded)
            return _isExpanded
        }
        set {
            willChangeTransient(\.isExpanded)
            _isExpanded = newValue
            didChangeTransient(\.isExpanded)
        }
    }
    private var _isExpanded = false
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension ExpandableNote: Sendable {}

enum TestSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] {
        [
            Item.self, Picture.self, Tag.self, Folder.self, Person.self, Account.self,
            Everything.self, ExpandableNote.self,
        ]
    }
}

/// What a test wants to happen while its thread fills objects.
final class AwakeHook {
    var run: (() -> Void)?

    static var current: AwakeHook? {
        get { Thread.current.threadDictionary["AwakeHook"] as? AwakeHook }
        set { Thread.current.threadDictionary["AwakeHook"] = newValue }
    }
}
