// Work that several threads share.

import Synchronization
import Testing
import VarveIO

@testable import VarveEngine

@Suite("Shared work", .verified) struct SharedWorkTests {
    private final class Count: Sendable {
        let value = Atomic<Int>(0)
        func add() { value.add(1, ordering: .sequentiallyConsistent) }
        var now: Int { value.load(ordering: .sequentiallyConsistent) }
    }

    @Test("Outputs come in the order of their inputs", arguments: [1, 2, 5], [1, 3, 64])
    func outputsComeInOrder(threads: Int, together: Int) {
        for count in [0, 1, 2, 7, 200] {
            let inputs = Array(0..<count)
            let outputs = BackgroundThread.map(inputs, threads: threads, together: together) {
                $0 * $0
            }
            #expect(outputs == inputs.map { $0 * $0 })
        }
    }

    @Test("Work that was begun is done once and taken once", arguments: [0, 1, 3])
    func workIsTakenOnce(threads: Int) {
        for round in 0..<50 {
            let (done, ended) = (Count(), Count())
            let inputs = Array(0...round)
            let work = BackgroundThread.begin(
                inputs,
                threads: threads,
                together: 2,
                atEnd: { ended.add() }
            ) { input in
                done.add()
                return input + 1
            }
            #expect(work.take() == inputs.map { $0 + 1 })
            #expect(work.take() == nil)
            #expect(done.now == inputs.count)
            // Without threads nobody else could call it.
            if threads == 0 { #expect(ended.now == 1) }
            #expect(ended.now <= 1)
        }
    }

    /// The threads hold nothing of whoever gave their work up once they have ended.
    @Test("Work that is given up ends", arguments: [0, 2])
    func workIsGivenUp(threads: Int) {
        let (done, ended) = (Count(), Parker())
        let begun = Parker()
        do {
            let inputs = Array(0..<100_000)
            let work = BackgroundThread.begin(
                inputs,
                threads: threads,
                together: 1,
                // Beside other tests there may be no thread to begin.
                atEnd: {
                    begun.unpark()
                    ended.unpark()
                }
            ) { _ in
                done.add()
                begun.unpark()
            }
            if threads > 0 { begun.park() }
            withExtendedLifetime(work) {}
        }
        ended.park()
        #expect(done.now < 100_000)
    }
}
