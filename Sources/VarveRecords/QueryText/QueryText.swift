// Filters and orders as text: what is read, what is printed.
//
//   filter     = all { "||" all }                      "or", "and", "not" are words for them, too
//   all        = term { "&&" term }
//   term       = { "!" } ( "(" filter ")" | "true" | "false" | test )
//   test       = value ( comparison ( literal | value ) | "in" set | "" )
//              | value ".isIn(" set ")"
//              | value "." ( "hasPrefix" | "hasSuffix" | "contains" | "equals" )
//                "(" text { "," ( "ignoringCase" | "ignoringDiacritics" ) ":" bool } ")"
//              | many "." ( "any" | "all" | "none" ) "{" filter "}"
//              | many ".count" [ "{" filter "}" ] comparison number
//              | many ".contains(" object ")" | many ".isEmpty"
//   value      = [ "$0." ] ( "self" | "id" | name { "." name } [ "." part ] )
//   part       = "length" | "digest" | ( "year" | "month" | "day" | "weekday" | "hour" | "minute" )
//                "(in:" text ")"
//   comparison = "==" | "=" | "!=" | "<" | "<=" | ">" | ">="
//   set        = list | range | request
//   request    = Entity "." ( "where" "{" filter "}" | "all" )
//                { "." ( "sorted" "{" order "}" | ( "limit" | "offset" ) "(" number ")"
//                | "includingPendingChanges" "(" bool ")" ) }
//   list       = "[" [ literal { "," literal } ] "]"
//   range      = [ literal ] ( "..." | "..<" ) [ literal ]
//   order      = [ "[" ] [ step { "," step } ] [ "]" ]
//   step       = [ "-" ] value [ ".ascending" | ".descending" ]
//
// A name that is no plain word stands in backticks, in which two of them are one. Literals are read
// as the type of the property: numbers (with "_" between digits), true, false, nil, "text" or
// 'text' with Swift's escapes, 2026-11-20 or 2026-11-20T09:00:30Z or date(seconds since 2001),
// UUIDs with or without UUID("..."), Entity:number or Entity/number for an object, data("hex"),
// blob("digest", length). A value that is true or false needs no comparison.
//
// Invariants
// - What `text(of:)` prints is read as the same filter, but that joins of no and of one term become
//   what they mean, and that values have the property's type.
// - Texts come from anywhere: their length and depth are bounded, and nothing traps.

/// Reads and prints filters and orders of one schema.
public struct QueryText: Sendable {
    let schema: RecordSchema
    let zone: @Sendable (String) -> DateZone?

    /// The longest text that is read, in bytes of UTF-8.
    public static let lengthMax = 65_536
    /// How deep parentheses and braces may be nested.
    public static let depthMax = 64

    /// - Parameters:
    ///   - schema: whose names are meant.
    ///   - zone: the time zone of a name; nil: there is none.
    public init(schema: RecordSchema, zone: @escaping @Sendable (String) -> DateZone?) {
        (self.schema, self.zone) = (schema, zone)
    }

    /// Reads a filter.
    /// - Parameters:
    ///   - text: the filter.
    ///   - entity: whose objects it is about.
    /// - Complexity: O(n).
    /// - Throws: where the text is no filter, and what could stand there.
    public func filter(
        _ text: String,
        of entity: RecordEntity
    ) throws(QueryTextError) -> Predicate {
        var parser = try QueryParser(text, self)
        let filter = try parser.filter(entity)
        try parser.expectEnd(["&&", "||"])
        return filter
    }

    /// Reads an order. An empty text is the order by ID.
    /// - Parameters:
    ///   - text: the order.
    ///   - entity: whose objects it is about.
    /// - Complexity: O(n).
    /// - Throws: where the text is no order, and what could stand there.
    public func order(
        _ text: String,
        of entity: RecordEntity
    ) throws(QueryTextError) -> [SortTerm] {
        var parser = try QueryParser(text, self)
        return try parser.order(entity)
    }
}
