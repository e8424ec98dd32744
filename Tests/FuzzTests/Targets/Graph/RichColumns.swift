// The columns of an object with rich values, as a row keeps them, and what is laid over them.

/// The columns of an object: an optional composite has one for each field, and one more.
struct RichColumns: Equatable {
    let values: RichValues
    /// The values as texts, as an object shows them.
    let parts: [String: String]
    /// Columns of `trip` that hold null though it has a value: a getter shows their defaults. No
    /// row has such columns, edits over what others saved do.
    let bare: Set<String>

    init(_ values: RichValues, bare: Set<String> = []) {
        (self.values, self.bare, parts) = (values, bare, values.parts)
    }

    /// The attributes that have one column. Setters of composites leave fields that are the same.
    static let single: Set<String> = ["words", "scores", "look", "price", "stay", "pause"]
    private static let fieldNames = Set(Spot().parts.keys)

    /// Each column as a text, by its name.
    var texts: [String: String] {
        var texts = parts
        for name in Self.fieldNames where values.trip == nil { texts["trip.\(name)"] = "nil" }
        for name in bare { texts[name] = "nil" }
        return texts
    }

    /// Columns that are other ones in `other`.
    func changes(to other: RichColumns) -> Set<String> {
        let (now, wanted) = (texts, other.texts)
        return Set(wanted.keys.filter { now[$0] != wanted[$0] })
    }

    static func == (left: RichColumns, right: RichColumns) -> Bool { left.texts == right.texts }

    /// As a save writes them: a composite that has a field has all.
    var whole: RichColumns { bare.isEmpty ? self : RichColumns(values) }

    /// After an object that shows these was set to `now`. A setter leaves fields that show it.
    func edited(to now: RichValues) -> RichColumns {
        guard let old = values.trip?.parts, let new = now.trip?.parts else {
            return RichColumns(now)
        }
        let left = bare.filter { column in
            let name = String(column.dropFirst("trip.".count))
            return old[name] == new[name]
        }
        return RichColumns(now, bare: left)
    }

    /// These columns, with some of another object's.
    func with(_ names: Set<String>, of other: RichColumns) -> RichColumns {
        if names.isEmpty { return self }
        var result = values
        for name in names where !name.hasPrefix("trip") { result.take(name, of: other.values) }
        func source(_ column: String) -> RichColumns { names.contains(column) ? other : self }
        var spot = Spot()
        var nulls: Set<String> = []
        for name in Self.fieldNames {
            let source = source("trip.\(name)")
            guard source.holds("trip.\(name)"), let trip = source.values.trip else {
                nulls.insert("trip.\(name)")
                continue
            }
            spot.take(name, of: trip)
        }
        if !source("trip").holds("trip") { nulls.insert("trip") }
        let isThere = nulls.count <= Self.fieldNames.count
        result.trip = isThere ? spot : nil
        return RichColumns(result, bare: isThere ? nulls.subtracting(["trip.since"]) : [])
    }

    /// Whether a column of `trip` has a value.
    private func holds(_ column: String) -> Bool {
        guard let trip = values.trip, !bare.contains(column) else { return false }
        return column != "trip.since" || trip.since != nil
    }
}

extension Spot {
    /// As requests compare: they take -0.0 for 0.0.
    func isFound(by other: Spot) -> Bool {
        func folded(_ spot: Spot) -> [String: String] {
            var spot = spot
            if spot.since == 0 { spot.since = 0 }
            return spot.parts
        }
        return folded(self) == folded(other)
    }

    mutating func take(_ name: String, of other: Spot) {
        switch name {
        case "city": city = other.city
        case "zip": zip = other.zip
        case "since": since = other.since
        case "season": season = other.season
        default: words = other.words
        }
    }
}

extension RichValues {
    mutating func take(_ name: String, of other: RichValues) {
        switch name {
        case "words": words = other.words
        case "scores": scores = other.scores
        case "look": look = other.look
        case "price": price = other.price
        case "stay": stay = other.stay
        case "pause": pause = other.pause
        default: home.take(String(name.dropFirst("home.".count)), of: other.home)
        }
    }
}
