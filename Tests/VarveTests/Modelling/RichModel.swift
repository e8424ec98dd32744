// A model with everything that an attribute can be besides a plain value.
#if Macros
import Foundation
import Varve

struct Cents: StoredConvertible, OrderedValue, Hashable {
    var amount: Int
    static let zeroValue = Cents(amount: 0)
    var storedForm: Int { amount }
    init(amount: Int) { self.amount = amount }
    init?(storedForm: Int) {
        if storedForm < 0 { return nil }
        amount = storedForm
    }
}

enum DurationCodec: ValueCodec {
    static let zeroValue = Duration.zero
    static func encode(_ value: Duration) -> Double { value / .seconds(1) }
    static func decode(_ stored: Double) -> Duration? { stored < 0 ? nil : .seconds(stored) }
}

struct Theme: StoredCodable, Hashable {
    var name = "light"
    var sizes: [String: Double] = [:]
    static let zeroValue = Theme()
}

enum Mood: String, StoredEnum, Codable { case calm, wild }

@Composite(originalNames: ["city": "town"]) struct Address: Hashable {
    var street: String = ""
    var city: String = ""
    var zip: Int = 0
    var since: Date?
    var mood: Mood = .calm

    var label: String { "\(street), \(city)" }
}

@Entity final class Guest: ManagedObject {
    #Index<Guest>([\.address.city, \.name], [\.sortName])
    #Unique<Guest>([\.handle])
    @Attribute(.length(1...20)) var name: String = "new"
    @Attribute(.pattern(/[a-z0-9]+/)) var handle: String?
    @Attribute(.range(0...120)) var age: Int = 0
    @Attribute(.check("even") { (value: Int) in value.isMultiple(of: 2) }, .range(..<100))
    var shoes: Int = 2
    @Attribute(.length(...10)) var picture: Blob?
    /// A name that generated code had for itself.
    var source: String = ""
    var credit: Cents = Cents(amount: 0)
    @Attribute(.coded(by: DurationCodec.self)) var stay: Duration = .seconds(60)
    @Attribute(.coded(by: DurationCodec.self)) var wait: Duration?
    var theme: Theme = Theme()
    var nicknames: [String] = []
    var scores: [String: Int]?
    var moods: [Mood] = []
    @Attribute(.composite) var address: Address = Address()
    @Attribute(.composite) var holiday: Address?
    @Derived var sortName: String { name.lowercased() }
    @Derived var initials: String {
        let first = sortName.prefix(1)
        return String(first + address.city.prefix(1))
    }
    @Derived var longStay: Bool { stay > .seconds(3600) }
    @Relationship var host: Guest?
    @Relationship(inverse: \Guest.host) var guests: ToMany<Guest>

    func validateForDeletion(_ report: inout ValidationReport) {
        if name == "owner" { report.fail("name", "names the owner, who stays") }
    }
}

enum RichSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Guest.self] }
}
#endif
