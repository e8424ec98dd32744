// Tests of medians, percentiles and ratios.

import BenchmarkHarness
import Testing

@Suite struct StatisticsTests {
    @Test func `median of an odd number of values is the middle one`() throws {
        let summary = try #require(Summary([5, 1, 9]))
        #expect(summary == Summary([9, 5, 1]))
        #expect((summary.median, summary.min, summary.max) == (5, 1, 9))
    }

    @Test func `median of an even number of values is the mean of the middle two`() throws {
        let summary = try #require(Summary([4, 1, 2, 100]))
        #expect((summary.median, summary.min, summary.max) == (3, 1, 100))
    }

    @Test func `a single value is its own median`() throws {
        let summary = try #require(Summary([7]))
        #expect((summary.median, summary.min, summary.max) == (7, 7, 7))
    }

    @Test func `nothing and not-a-number have no summary`() {
        #expect(Summary([]) == nil)
        #expect(Summary([1, .nan]) == nil)
        #expect(Summary([1, .infinity]) == nil)
    }

    @Test func `a ratio over 1 means that Varve is better`() {
        #expect(ratio(varve: 2, peer: 6, better: .less) == 3)
        #expect(ratio(varve: 6, peer: 2, better: .more) == 3)
        #expect(ratio(varve: 6, peer: 2, better: .less) == 2.0 / 6.0)
        #expect(ratio(varve: 0, peer: 2, better: .less) == nil)
        #expect(ratio(varve: 1, peer: .nan, better: .less) == nil)
    }

    @Test func `percentiles are values that were measured`() {
        let values = (1...100).map(Double.init)
        #expect(percentile(0, ofSorted: values) == 1)
        #expect(percentile(1, ofSorted: values) == 100)
        #expect(percentile(0.99, ofSorted: values) == 99)
        #expect(percentile(0.5, ofSorted: []) == nil)
        #expect(percentile(1.5, ofSorted: values) == nil)
    }
}
