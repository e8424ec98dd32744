// Names of a scope, few and many.

import Testing

@testable import VarveRecords

@Suite("Sets of names", .verified) struct NameSetTests {
    /// Beyond 24 they are hashed.
    @Test("Each name is there once, however many there are", arguments: [0, 1, 23, 24, 25, 26, 90])
    func once(_ count: Int) {
        var set = NameSet(expected: count / 2)
        for number in 0..<count {
            let isNew = set.insert("name \(number)")
            #expect(isNew)
        }
        for number in 0..<count {
            let isNew = set.insert("name \(number)")
            #expect(!isNew)
            #expect(set.contains("name \(number)"))
        }
        #expect(set.count == count && !set.contains("another"))
    }
}
