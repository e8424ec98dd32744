// Asking for memory never reads, changes or fails.

import Testing
import VarveFormat

@Suite struct ComingMemoryTests {
    @Test(
        "Any row may be asked for, and stays as it is",
        arguments: [0, 1, 63, 64, 65, 300, 70_000]
    )
    func rows(count: Int) {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        ComingMemory.foresee(bytes.span)
        ComingMemory.foresee(bytes.span.extracting(count / 2..<count))
        for offset in [-1, 0, count - 1, count, count + 1, Int.max] {
            unsafe ComingMemory.foresee(bytes.span.bytes, at: offset)
        }
        #expect(bytes == (0..<count).map { UInt8(truncatingIfNeeded: $0) })
    }
}
