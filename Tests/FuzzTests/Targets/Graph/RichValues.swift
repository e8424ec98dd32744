// Values of attributes that are more than plain ones: composites, codecs, Codable values, lists.

import Foundation
import VarveObjects
import VarveTesting

enum Season: String, StoredEnum, Codable { case spring, autumn }

/// A composite with a field of every kind.
struct Spot: Equatable, StoredComposite {
    var city = ""
    var zip = 0
    var since: Double?
    var season = Season.spring
    var words: [String] = []

    struct Fields: Sendable {
        let city = CompositeField<Spot, String>(
            "city",
            default: "",
            get: { $0.city },
            set: { $0.city = $1 }
        )
        let zip = CompositeField<Spot, Int>(
            "zip",
            default: 0,
            get: { $0.zip },
            set: { $0.zip = $1 }
        )
        let since = CompositeField<Spot, Double?>(
            "since",
            default: nil,
            get: { $0.since },
            set: { $0.since = $1 }
        )
        let season = CompositeField<Spot, Season>(
            "season",
            default: .spring,
            get: { $0.season },
            set: { $0.season = $1 }
        )
        let words = CompositeField<Spot, [String]>(
            "words",
            default: [],
            get: { $0.words },
            set: { $0.words = $1 }
        )
    }
    static let fields = Fields()

    /// Each field as a text, by its name: what is kept, byte for byte.
    var parts: [String: String] {
        [
            "city": "\(Array(city.utf8))", "zip": "\(zip)",
            "since": since.map { "\($0.bitPattern)" } ?? "nil", "season": season.rawValue,
            "words": "\(words.map { Array($0.utf8) })",
        ]
    }

    static func random(_ random: inout SeededRandom) -> Spot {
        var spot = Spot()
        for _ in 0..<(random.next() % 4) { spot.change(&random) }
        return spot
    }

    /// Changes one field.
    mutating func change(_ random: inout SeededRandom) {
        switch random.next() % 5 {
        case 0: city = ["", "Oslo", "e\u{301}", "\u{e9}"][Int(random.next() % 4)]
        case 1: zip = [0, 1, 2, .min, .max][Int(random.next() % 5)]
        case 2:
            since =
                [nil, 0, -0.0, .nan, .infinity, .leastNonzeroMagnitude, 0.1][Int(random.next() % 7)]
        case 3: season = random.next() % 2 == 0 ? .spring : .autumn
        default: words = RichValues.words(&random)
        }
    }
}

/// A type that is one number inside.
struct Price: StoredConvertible, OrderedValue {
    var cents: Int
    static let zeroValue = Price(cents: 0)
    var storedForm: Int { cents }
    init(cents: Int) { self.cents = cents }
    init?(storedForm: Int) { cents = storedForm }
}

/// A Codable type with what has no order of its own.
struct Look: StoredCodable {
    var name = "light"
    var sizes: [String: Double] = [:]
    static let zeroValue = Look()
}

enum StayCodec: ValueCodec {
    static let zeroValue = Duration.zero
    static func encode(_ value: Duration) -> Int64 { value.components.seconds }
    static func decode(_ stored: Int64) -> Duration? { .seconds(stored) }
}

/// The rich attributes of one object, as an app sees them.
struct RichValues: Equatable {
    var home = Spot()
    var trip: Spot?
    var words: [String] = []
    var scores: [String: Double]?
    var look = Look()
    var price = Price.zeroValue
    var stay = Duration.zero
    var pause: Duration?

    init() {}

    init(_ alpha: Alpha) {
        (home, trip, words, scores) = (alpha.home, alpha.trip, alpha.words, alpha.scores)
        (look, price, stay, pause) = (alpha.look, alpha.price, alpha.stay, alpha.pause)
    }

    /// Every value as a text, by the name of its column. Keys of dictionaries are sorted: they have
    /// no order.
    var parts: [String: String] {
        func text(_ values: [String: Double]) -> String {
            "\(values.sorted { $0.key < $1.key }.map { "\($0.key):\($0.value.bitPattern)" })"
        }
        var parts = [
            "words": "\(words.map { Array($0.utf8) })", "scores": scores.map(text) ?? "nil",
            "look": look.name + text(look.sizes), "price": "\(price.cents)", "stay": "\(stay)",
            "pause": pause.map { "\($0)" } ?? "nil", "trip": trip == nil ? "nil" : "there",
        ]
        for (name, part) in home.parts { parts["home.\(name)"] = part }
        if let trip { for (name, part) in trip.parts { parts["trip.\(name)"] = part } }
        return parts
    }

    // MARK: Chance

    static func words(_ random: inout SeededRandom) -> [String] {
        let words = ["", "a", "\"", "\u{e9}", "e\u{301}", "\u{0}", "/", "\u{1F600}", "\\u0041"]
        return (0..<(random.next() % 3)).map { _ in words[Int(random.next() % 9)] }
    }

    static func numbers(_ random: inout SeededRandom) -> [String: Double] {
        var values: [String: Double] = [:]
        for key in ["a", "A", "01", "1", "\u{e9}", "", "aa"] where random.next() % 2 == 0 {
            values[key] =
                [0, -0.0, 0.1, 1e300, -.greatestFiniteMagnitude, .leastNonzeroMagnitude][
                    Int(random.next() % 6)
                ]
        }
        return values
    }
}

extension Alpha {
    var home: Spot {
        get { storedValue(Self.columns.home, \.home) }
        set { setStoredValue(newValue, Self.columns.home, \.home) }
    }
    var trip: Spot? {
        get { storedValue(Self.columns.trip, \.trip) }
        set { setStoredValue(newValue, Self.columns.trip, \.trip) }
    }
    var words: [String] {
        get { storedValue(Self.columns.words, \.words) }
        set { setStoredValue(newValue, Self.columns.words, \.words) }
    }
    var scores: [String: Double]? {
        get { storedValue(Self.columns.scores, \.scores) }
        set { setStoredValue(newValue, Self.columns.scores, \.scores) }
    }
    var look: Look {
        get { storedValue(Self.columns.look, \.look) }
        set { setStoredValue(newValue, Self.columns.look, \.look) }
    }
    var price: Price {
        get { storedValue(Self.columns.price, \.price) }
        set { setStoredValue(newValue, Self.columns.price, \.price) }
    }
    var stay: Duration {
        get { storedValue(Self.columns.stay, \.stay) }
        set { setStoredValue(newValue, Self.columns.stay, \.stay) }
    }
    var pause: Duration? {
        get { storedValue(Self.columns.pause, \.pause) }
        set { setStoredValue(newValue, Self.columns.pause, \.pause) }
    }
    var placeLabel: String { "\(home.city) \(trip?.zip ?? -1)" }

    @Sendable static func placeLabel(_ row: DerivedSource<Alpha>) -> String {
        "\(row[columns.home].city) \(row[columns.trip]?.zip ?? -1)"
    }

    /// Another value for one attribute, or one field of one; what it was, to be read, and which
    /// columns were set as a whole.
    func changeRich(_ random: inout SeededRandom) -> (text: String, columns: Set<String>) {
        switch random.next() % 12 {
        case 0...1:
            home.change(&random)
            return ("home = \(home)", [])
        case 2:
            home = .random(&random)
            return ("home = \(home)", [])
        case 3:
            trip = nil
            return ("trip = nil", [])
        case 4:
            trip = .random(&random)
            return ("trip = \(String(describing: trip))", [])
        case 5...6:
            trip?.change(&random)
            return ("a field of trip = \(String(describing: trip))", [])
        case 7:
            words = RichValues.words(&random)
            return ("words = \(words)", ["words"])
        case 8:
            scores = random.next() % 3 == 0 ? nil : RichValues.numbers(&random)
            return ("scores = \(String(describing: scores))", ["scores"])
        case 9:
            look = Look(name: ["light", "dark"][Int(random.next() % 2)])
            look.sizes = RichValues.numbers(&random)
            return ("look = \(look)", ["look"])
        case 10:
            price.cents = [0, 7, .min, .max][Int(random.next() % 4)]
            return ("price = \(price)", ["price"])
        default:
            stay = .seconds(Int64(random.next() % 3))
            pause = random.next() % 3 == 0 ? nil : .seconds(Int64(random.next() % 3))
            return ("stay = \(stay), pause = \(String(describing: pause))", ["stay", "pause"])
        }
    }

    /// Every value once more, as it is: no edit.
    func setRichAgain() {
        let values = RichValues(self)
        (home, trip, words, scores) = (values.home, values.trip, values.words, values.scores)
        (look, price, stay, pause) = (values.look, values.price, values.stay, values.pause)
    }
}
