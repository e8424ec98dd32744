// Filters over texts: beginnings, ends, parts, with or without regard to case and diacritics.

import VarveRecords

/// A text or an optional one: what text filters take.
public protocol TextualValue: StorableValue {}
extension String: TextualValue {}
extension String?: TextualValue {}

extension Column where Value: TextualValue {
    /// The text begins with `text`. Compared by the UTF-8 bytes, but for what is ignored; nil
    /// begins with nothing.
    /// - Parameters:
    ///   - text: the beginning.
    ///   - ignoringCase: upper and lower case are the same, without locale.
    ///   - ignoringDiacritics: letters are the same with and without marks: see `TextFolding`.
    public func hasPrefix(
        _ text: String,
        ignoringCase: Bool = false,
        ignoringDiacritics: Bool = false
    ) -> TypedPredicate<Root> {
        match(.hasPrefix, text, ignoringCase, ignoringDiacritics)
    }

    /// The text ends with `text`. Compared by the UTF-8 bytes, but for what is ignored; nil ends
    /// with nothing.
    /// - Parameters:
    ///   - text: the end.
    ///   - ignoringCase: upper and lower case are the same, without locale.
    ///   - ignoringDiacritics: letters are the same with and without marks: see `TextFolding`.
    public func hasSuffix(
        _ text: String,
        ignoringCase: Bool = false,
        ignoringDiacritics: Bool = false
    ) -> TypedPredicate<Root> {
        match(.hasSuffix, text, ignoringCase, ignoringDiacritics)
    }

    /// The text has `text` somewhere in it. Compared by the UTF-8 bytes, but for what is ignored;
    /// nil contains nothing.
    /// - Parameters:
    ///   - text: the part.
    ///   - ignoringCase: upper and lower case are the same, without locale.
    ///   - ignoringDiacritics: letters are the same with and without marks: see `TextFolding`.
    public func contains(
        _ text: String,
        ignoringCase: Bool = false,
        ignoringDiacritics: Bool = false
    ) -> TypedPredicate<Root> {
        match(.contains, text, ignoringCase, ignoringDiacritics)
    }

    /// The text is `text`, but for what is ignored.
    /// - Parameters:
    ///   - text: the whole text.
    ///   - ignoringCase: upper and lower case are the same, without locale.
    ///   - ignoringDiacritics: letters are the same with and without marks: see `TextFolding`.
    public func equals(
        _ text: String,
        ignoringCase: Bool = false,
        ignoringDiacritics: Bool = false
    ) -> TypedPredicate<Root> {
        match(.equal, text, ignoringCase, ignoringDiacritics)
    }

    /// The text is `text`, upper and lower case being the same, without locale.
    public func equalsIgnoringCase(_ text: String) -> TypedPredicate<Root> {
        match(.equal, text, true, false)
    }

    private func match(
        _ kind: TextMatch,
        _ text: String,
        _ ignoringCase: Bool,
        _ ignoringDiacritics: Bool
    ) -> TypedPredicate<Root> {
        var folding: TextFolding = ignoringCase ? .caseDifferences : []
        if ignoringDiacritics { folding.insert(.diacritics) }
        return TypedPredicate(.text(path, kind, text, ignoring: folding))
    }
}
