// The filter of a query, as a value.
//
// Semantics (two-valued, as Swift's optionals compare)
// - `==` and `!=` treat null as a value: null == null is true, null == 1 is false, null != 1 is
//   true.
// - `<`, `<=`, `>`, `>=` with null on either side are false. Negation is plain: not (null < 1) is
//   true.
// - Floating point follows the sort order: -0 equals +0, NaN equals itself and is above all else.
// - Text compares by the bytes of its UTF-8 form, without normalization. What `TextFolding` ignores
//   is taken from both texts first: case by the Unicode lowercase mapping of each scalar, without
//   locale; diacritics by canonical decomposition (Unicode 14), from which the scalars of canonical
//   combining class 10 to 36 and of 202 and more are left out, the rest in canonical order. With
//   both, case comes first. So "é", "e" and "E" are the same with both; "ß" and "ss", "ł" and "l",
//   kana with and without voicing are never.
// - A range takes what an index puts between its bounds; null is in none. NaN is in those without
//   an upper bound.
// - Parts of dates follow the Gregorian calendar for all times, by the clock of the zone given;
//   dates that are not finite, or some 317,000 years away, have none: their parts are null.
// - A path through a to-one that is null, or whose object is gone, has the value null.

public import VarveBase

/// A property, seen from the entity that a query is about: `["name"]`, or `["city", "country",
/// "name"]` where all but the last are to-one relationships.
public struct PropertyPath: Hashable, Sendable {
    /// Which part of the value is meant.
    public enum Part: Hashable, Sendable {
        case value
        /// Length of a blob in bytes, as an integer; null where there is no blob.
        case blobLength
        /// Digest of a blob, as `data` of 32 bytes; null where there is no blob.
        case blobDigest
        /// A part of a date by the clock of a zone, as an integer; null where there is no date.
        case date(DatePart, DateZone)
    }

    /// Names from the query's entity on. Empty: the object itself, whose value is its own
    /// reference.
    public var names: [String]
    /// Which part of the last property's value.
    public var part: Part

    /// A path over `names`.
    public init(_ names: [String], part: Part = .value) {
        self.names = names
        self.part = part
    }

    /// A path of one property.
    public init(_ name: String) {
        self.init([name])
    }

    /// The object itself: its ID, as a `reference`.
    public static let object = PropertyPath([])
}

/// How two values are compared.
public enum Comparison: Hashable, Sendable {
    case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual
}

/// How a text is matched.
public enum TextMatch: Hashable, Sendable {
    case hasPrefix, hasSuffix, contains, equal
}

/// Values between two bounds, as an index orders them. Null is never among them.
public struct ValueRange: Hashable, Sendable {
    /// The lowest value; nil: there is no bound.
    public var lower: StoredValue?
    /// The highest value, or the one below which they all are; nil: there is no bound.
    public var upper: StoredValue?
    /// Whether `upper` itself is in it.
    public var includesUpper: Bool

    /// From `lower` on, up to and with `upper`.
    public init(from lower: StoredValue?, through upper: StoredValue?) {
        (self.lower, self.upper, includesUpper) = (lower, upper, true)
    }

    /// From `lower` on, below `upper`.
    public init(from lower: StoredValue?, upTo upper: StoredValue?) {
        (self.lower, self.upper, includesUpper) = (lower, upper, false)
    }
}

/// A filter over the objects of one entity.
public indirect enum Predicate: Hashable, Sendable {
    /// True for every object.
    case always
    /// True for none.
    case never
    /// A property against a constant. A to-one relationship compares as `reference`.
    case compare(PropertyPath, Comparison, StoredValue)
    /// Two properties of the same object.
    case compareProperties(PropertyPath, Comparison, PropertyPath)
    /// The property has one of these values.
    case isIn(PropertyPath, [StoredValue])
    /// The property leads to one of the objects that another request gives; null leads to none. The
    /// request is answered first, once for each fetch.
    case isInRequest(PropertyPath, InnerRequest)
    /// The property lies between two values.
    case isWithin(PropertyPath, ValueRange)
    /// A text property against a text, without what is ignored; null never matches.
    case text(PropertyPath, TextMatch, String, ignoring: TextFolding)
    case not(Predicate)
    /// All of them; true when empty.
    case and([Predicate])
    /// One of them at least; false when empty.
    case or([Predicate])
    /// At least one object of a to-many relationship (the path's last name) matches.
    case any(PropertyPath, Predicate)
    /// Every object of a to-many relationship matches; true when it has none.
    case all(PropertyPath, Predicate)
    /// How many objects of a to-many relationship match, against a number.
    case count(PropertyPath, Predicate, Comparison, Int)
}
