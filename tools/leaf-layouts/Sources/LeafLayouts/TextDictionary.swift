// The different texts of one column of a leaf, where there are few.
//
//   u16 table, then for each text where it ends (u16), then the texts

/// The different texts of a column, with the number of each row's.
struct TextDictionary {
    /// The most texts of a dictionary.
    static let countMax = 255

    /// The number of the text at each place; of those without a text it has no meaning.
    private(set) var numbers: [UInt8] = []
    /// Where each text lies.
    private(set) var places: [Int] = []
    /// Bytes of the texts.
    private(set) var textBytes = 0

    /// Bytes in the leaf.
    var byteCount: Int { 2 + 2 * places.count + textBytes }

    /// Gathers the texts of a column; nil when more than half of them are different.
    init?(_ columns: LeafColumns, _ column: Int) {
        let most = min(Self.countMax, columns.rows / 2)
        // Open addressing: at most half of the slots are taken.
        var slots = [UInt16](repeating: 0, count: 512)
        numbers.reserveCapacity(columns.rows)
        for place in columns.places(column) {
            guard columns.states[place] == .value else {
                numbers.append(0)
                continue
            }
            let text = columns.text(place)
            var hash = UInt64(text.count)
            for byte in text { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
            var slot = Int(truncatingIfNeeded: (hash ^ hash >> 32) & 511)
            while slots[slot] != 0 {
                let number = Int(slots[slot]) - 1
                if columns.text(places[number]) == text { break }
                slot = (slot + 1) & 511
            }
            if slots[slot] == 0 {
                if places.count == most { return nil }
                // Given up early where the first rows are all different.
                if numbers.count == 32 && places.count > 24 { return nil }
                places.append(place)
                textBytes += text.count
                slots[slot] = UInt16(places.count)
            }
            numbers.append(UInt8(slots[slot] - 1))
        }
        if places.isEmpty || textBytes > 65535 { return nil }
    }

    /// The bytes in the leaf.
    func encoded(_ columns: LeafColumns, table: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        TupleLeaves.append(UInt64(table), 2, &bytes)
        var end = 0
        for place in places {
            end += columns.text(place).count
            TupleLeaves.append(UInt64(end), 2, &bytes)
        }
        for place in places { bytes += columns.text(place) }
        return bytes
    }
}
