// Looking up a place by halving.

extension RandomAccessCollection where Index == Int {
    /// The first index from which on `isReached` holds; the end: it holds nowhere.
    /// - Complexity: O(log n).
    func firstPlace<Failure: Error>(
        _ isReached: (Element) throws(Failure) -> Bool
    ) throws(Failure) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = low + (high - low) / 2
            if try isReached(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
