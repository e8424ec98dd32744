// Blocks of bytes against what they mean element by element.

import Testing
import VarveBase
import VarveTesting

@Suite("Blocks of bytes") struct ByteBlocksTests {
    @Test("A write that changes zeros only is told from one that does not")
    func changingZeros() {
        var random = SeededRandom(seed: 7)
        var outcomes: Set<Bool> = []
        for _ in 0..<20_000 {
            let old = random.bytes(Int(random.next() % 40)).map { $0 % 4 == 0 ? $0 : 0 }
            let start = Int(random.next() % 44)
            var new = random.bytes(Int(random.next() % 40))
            // Mostly what is there already, else one byte in 64 decides.
            for place in new.indices where start + place < old.count {
                let isOther = random.next() % 64 == 0
                if old[start + place] != 0, !isOther { new[place] = old[start + place] }
            }
            let expected = new.indices.allSatisfy { place in
                start + place >= old.count || old[start + place] == 0
                    || old[start + place] == new[place]
            }
            #expect(old.changesZerosOnly(by: new, at: start) == expected)
            outcomes.insert(expected)
        }
        #expect(outcomes.count == 2)
    }
}
