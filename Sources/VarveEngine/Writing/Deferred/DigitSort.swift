// Sorting by numbers, digit by digit: what waits is much, and comes in any order.
//
// Invariants
// - Elements of one number keep their order.

/// Stable sorting by numbers without comparing.
enum DigitSort {
    /// Fewer elements are sorted faster by comparing.
    static let countMin = 512

    /// Sorts by a number of each element, from the lowest digit of 8 bits on; digits that are the
    /// same in all are left out.
    /// - Complexity: O(n) for each digit that differs; takes the memory of the elements once more.
    @inline(__always)
    static func sort<Element>(_ elements: inout [Element], by number: (Element) -> UInt64) {
        guard let first = elements.first.map(number) else { return }
        var differing: UInt64 = 0
        for element in elements { differing |= number(element) ^ first }
        if differing == 0 { return }
        var other = elements
        for shift in stride(from: UInt64(0), to: 64, by: 8) where differing >> shift & 0xFF != 0 {
            var places = [Int](repeating: 0, count: 256)
            for element in elements { places[Int(number(element) >> shift & 0xFF)] += 1 }
            var next = 0
            for digit in places.indices { (places[digit], next) = (next, next + places[digit]) }
            for element in elements {
                let digit = Int(number(element) >> shift & 0xFF)
                other[places[digit]] = element
                places[digit] += 1
            }
            swap(&elements, &other)
        }
    }
}
