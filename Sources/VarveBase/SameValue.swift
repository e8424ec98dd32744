// The one notion of "the same value": the stored bytes.
//
// Invariants
// - Change detection, conflicts and merging ask here. Swift's `==` is not it: it takes two forms of
//   one text for equal (NFC and NFD) and -0.0 for 0.0, and NaN for unequal to itself.

extension StoredValue {
    /// Whether both are stored as the same bytes.
    public func isSame(as other: StoredValue) -> Bool {
        switch (self, other) {
        case (.float(let a), .float(let b)): a.bitPattern == b.bitPattern
        case (.double(let a), .double(let b)), (.date(let a), .date(let b)):
            a.bitPattern == b.bitPattern
        case (.text(let a), .text(let b)): a.utf8.elementsEqual(b.utf8)
        case (.float, _), (.double, _), (.date, _), (.text, _): false
        default: self == other
        }
    }
}
