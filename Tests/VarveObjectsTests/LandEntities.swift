// Lands and their towns: entities with constraints over one property and over two, by hand.

import Foundation
import VarveObjects

final class Land: ManagedObject {
    static let entityName = "Land"
    struct Columns: Sendable {
        let code = Column<Land, String>("code")
        let area = Column<Land, Double?>("area")
        let towns = ToManyColumn<Land, Town>("towns")
    }
    static let columns = Columns()
    static var uniqueConstraints: [EntityConstraint] { [EntityConstraint(columns.code)] }
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var code: String {
        get { storedValue(Self.columns.code, \.code) }
        set { setStoredValue(newValue, Self.columns.code, \.code) }
    }
    var area: Double? {
        get { storedValue(Self.columns.area, \.area) }
        set { setStoredValue(newValue, Self.columns.area, \.area) }
    }
    var towns: ToMany<Town> { storedValue(Self.columns.towns, \.towns) }
}
@available(*, unavailable, message: "pass the id or a snapshot") extension Land: Sendable {}

final class Town: ManagedObject {
    static let entityName = "Town"
    struct Columns: Sendable {
        let name = Column<Town, String>("name")
        let people = Column<Town, Int32>("people", default: 0)
        let founded = Column<Town, Date?>("founded")
        let flag = Column<Town, Data?>("flag")
        let price = Column<Town, Decimal?>("price")
        let mark = Column<Town, UUID?>("mark")
        let isOld = Column<Town, Bool>("isOld", default: false)
        let land = ToOneColumn<Town, Land>("land", inverse: "towns")
        let twins = ToManyColumn<Town, Town>("twins", ordered: true)
    }
    static let columns = Columns()
    static var uniqueConstraints: [EntityConstraint] {
        [EntityConstraint(columns.land, columns.name), EntityConstraint(columns.mark)]
    }
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var people: Int32 {
        get { storedValue(Self.columns.people, \.people) }
        set { setStoredValue(newValue, Self.columns.people, \.people) }
    }
    var founded: Date? {
        get { storedValue(Self.columns.founded, \.founded) }
        set { setStoredValue(newValue, Self.columns.founded, \.founded) }
    }
    var flag: Data? {
        get { storedValue(Self.columns.flag, \.flag) }
        set { setStoredValue(newValue, Self.columns.flag, \.flag) }
    }
    var price: Decimal? {
        get { storedValue(Self.columns.price, \.price) }
        set { setStoredValue(newValue, Self.columns.price, \.price) }
    }
    var mark: UUID? {
        get { storedValue(Self.columns.mark, \.mark) }
        set { setStoredValue(newValue, Self.columns.mark, \.mark) }
    }
    var land: Land? {
        get { storedValue(Self.columns.land, \.land) }
        set { setStoredValue(newValue, Self.columns.land, \.land) }
    }
    var twins: ToMany<Town> { storedValue(Self.columns.twins, \.twins) }
}
@available(*, unavailable, message: "pass the id or a snapshot") extension Town: Sendable {}

enum LandSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Land.self, Town.self] }
}
