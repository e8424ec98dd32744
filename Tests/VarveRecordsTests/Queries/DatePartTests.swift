// Parts of dates: against Foundation's calendar, at the ends of what numbers can hold, and by index.

import Foundation
import Testing
import VarveBase
import VarveTesting

@testable import VarveRecords

@Suite(.verified) struct DatePartTests {
    @Test func `Parts are those of Foundation's calendar`() {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("DatePartTests seed \(seed)")
        var random = SeededRandom(seed: seed)
        for _ in 0..<2_000 {
            // 1600 to 2400: before, Foundation's calendar is the Julian one.
            let seconds = Double.random(in: -12_600_000_000...12_600_000_000, using: &random)
            let zone = QueryClock.zones.randomElement(using: &random) ?? .utc
            var calendar = Calendar(identifier: .gregorian)
            calendar.timeZone = TimeZone(identifier: zone.name) ?? .gmt
            let parts = calendar.dateComponents(
                [.year, .month, .day, .weekday, .hour, .minute],
                from: Date(timeIntervalSinceReferenceDate: seconds)
            )
            let wanted = [
                parts.year, parts.month, parts.day, parts.weekday, parts.hour, parts.minute,
            ]
            let found = DatePart.allCases.map { $0.value(of: seconds, in: zone).map { Int($0) } }
            #expect(found == wanted, "seed \(seed) \(seconds) \(zone.name)")
        }
    }

    @Test(arguments: [
        Double.nan, .infinity, -.infinity, 1e300, -1e300, 1.1e13, -1.1e13, .greatestFiniteMagnitude,
    ])
    func `A date that no calendar has, has no parts`(seconds: Double) {
        let wild = DateZone("wild") { _ in .max }
        for part in DatePart.allCases {
            #expect(part.value(of: seconds, in: .utc) == nil)
            #expect(part.value(of: seconds, in: wild) == nil)
        }
    }

    @Test func `The furthest dates have parts`() {
        let wild = DateZone("wild") { _ in .min }
        #expect(DatePart.year.value(of: 1e13, in: .utc) == 318_888)
        #expect(DatePart.year.value(of: -1e13, in: wild) == -314_887)
        #expect(DatePart.weekday.value(of: 0, in: .utc) == 2)
        #expect(DatePart.hour.value(of: -0.25, in: .utc) == 23)
    }

    @Test func `A day and its number are each other's`() {
        for day in stride(from: Int64(-800_000), through: 800_000, by: 97) {
            #expect(CivilDate(daysSince1970: day).daysSince1970 == day)
        }
        #expect(CivilDate(year: 2001, month: 1, day: 1).seconds == 0)
    }

    @Test func `A year is a range of its index`() throws {
        var city = Cities.city
        city.indexes += [IndexDescription("founded")]
        let schema = SchemaDescription(version: 1, entities: [Cities.country, city, Cities.tag])
        let store = try Cities.store(schema)
        for year in 0..<200 {
            let moment = CivilDate(year: 1900 + Int64(year), month: 7, day: 1).seconds
            try store.insert("City", [("founded", .date(moment))])
        }
        let snapshot = try store.snapshot()
        let entity = try store.schema.require("City")
        let year = PropertyPath(["founded"], part: .date(.year, QueryClock.zones[0]))
        func check(_ predicate: VarveRecords.Predicate, _ count: Int, _ plan: String) throws {
            let query = RecordQuery(entity: entity.id, predicate: predicate)
            #expect(try snapshot.count(query) == count)
            let found = try snapshot.explain(query)
            #expect(found.hasPrefix(plan), "\(found)")
        }
        let index = "index: City(founded), 1 range, "
        try check(.compare(year, .equal, .int(1950)), 1, index + "1 entries")
        try check(.compare(year, .less, .int(1910)), 10, index + "10 entries")
        try check(.compare(year, .greaterOrEqual, .int(2090)), 10, index + "10 entries")
        try check(.isIn(year, [.int(1950), .int(1953)]), 2, index + "4 entries")
        try check(
            .isWithin(year, ValueRange(from: .int(1950), through: .int(1959))),
            10,
            index + "10 entries"
        )
        try check(
            .isWithin(
                PropertyPath("founded"),
                ValueRange(from: .date(0), upTo: .date(63_072_000))
            ),
            2,
            index + "2 entries"
        )
        let month = PropertyPath(["founded"], part: .date(.month, .utc))
        try check(
            .and([.compare(year, .equal, .int(1950)), .compare(month, .equal, .int(7))]),
            1,
            index + "1 entries"
        )
        #expect(throws: RecordError.self) {
            try snapshot.count(
                RecordQuery(
                    entity: entity.id,
                    predicate: .compare(
                        PropertyPath(["name"], part: .date(.year, .utc)),
                        .equal,
                        .int(1)
                    )
                )
            )
        }
    }
}
