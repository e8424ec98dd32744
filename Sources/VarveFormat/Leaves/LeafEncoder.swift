// FENCE: leaves of layout 1, made from packed rows. Read in PackedLeaf.swift.
//
// Invariants
// - A leaf is made only where every row comes back byte for byte.

/// Makes the bodies of leaves of layout 1.
public enum LeafEncoder {
    /// The body, or nil where layout 0 is the better one or the only one possible.
    /// - Complexity: O(bytes of the rows).
    public static func body(
        of rows: LeafRows,
        symbols: (set: SymbolSet, address: SymbolSetAddress)?
    ) -> [UInt8]? {
        body(of: rows, symbols: symbols, frontShare: 8)
    }

    /// The body, also where layout 0 would be shorter.
    package static func anyBody(
        of rows: LeafRows,
        symbols: (set: SymbolSet, address: SymbolSetAddress)?
    ) -> [UInt8]? {
        body(of: rows, symbols: symbols, frontShare: 0)
    }

    /// The body, unless `frontShare` times the front is more than the rows.
    private static func body(
        of rows: LeafRows,
        symbols: (set: SymbolSet, address: SymbolSetAddress)?,
        frontShare: Int
    ) -> [UInt8]? {
        precondition(rows.objects.count == rows.count && rows.versions.count == rows.count)
        // The buffer lives during the closure, and nothing of it is kept.
        return unsafe rows.bytes.withUnsafeBytes { bytes in
            guard let cells = unsafe LeafCells(rows, bytes) else { return nil }
            let front =
                unsafe PackedLeaf.frontLength + LeafPlan.length
                * (cells.columns + PackedLeaf.frontPlans - 1)
            if front * frontShare > cells.rawBytes { return nil }
            let texts = LeafTexts(symbols?.set, of: cells)
            cells.plan(texts)
            return LeafBody(cells, texts, objects: rows.objects)?.bytes(symbols?.address)
        }
    }
}
