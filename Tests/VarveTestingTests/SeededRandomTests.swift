// That a seed determines every number.
import Testing
import VarveTesting

@Suite("Seeded random") struct SeededRandomTests {
    @Test("The numbers are those of SplitMix64") func knownNumbers() {
        var random = SeededRandom(seed: 1_234_567)
        #expect(random.next() == 6_457_827_717_110_365_317)
        #expect(random.next() == 3_203_168_211_198_807_973)
        #expect(random.next() == 9_817_491_932_198_370_423)
    }

    @Test("Bytes and branches repeat with the seed") func repeats() {
        var first = SeededRandom()
        var second = SeededRandom(seed: first.seed)
        #expect(first.bytes(1_001) == second.bytes(1_001), "\(first)")
        _ = first.next()
        var left = first.branch(7)
        var right = second.branch(7)
        #expect(left.next() == right.next(), "\(first)")
        var other = second.branch(8)
        #expect(other.next() != SeededRandom(seed: first.branch(7).seed).seed)
        #expect(first.bytes(0).isEmpty)
    }
}
