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
    static func sort<Element>(
        _ elements: inout [Element],
        by number: (Element) -> UInt64
    ) {
        guard let first = elements.first.map(number) else { return }
        var differing: UInt64 = 0
        for element in elements { differing |= number(element) ^ first }
        if differing == 0 { return }
        var other = elements
        for shift in stride(from: UInt64(0), to: 64, by: 8) where differing &>> shift & 0xFF != 0 {
            sort(elements.span, into: &other) { Int(number($0) &>> shift & 0xFF) }
            swap(&elements, &other)
        }
    }

    /// Sorts by one digit.
    @inline(__always)
    private static func sort<Element>(
        _ elements: Span<Element>,
        into other: inout [Element],
        by digit: (Element) -> Int
    ) {
        var places = [Int](repeating: 0, count: 256)
        // Who owns an array is asked once, and not with every element.
        var target = other.mutableSpan
        var place = places.mutableSpan
        for index in elements.indices { place[digit(elements[index])] &+= 1 }
        var next = 0
        for digit in place.indices { (place[digit], next) = (next, next + place[digit]) }
        for index in elements.indices {
            let element = elements[index]
            let digit = digit(element)
            let free = place[digit]
            target[free] = element
            place[digit] = free &+ 1
        }
    }
}
