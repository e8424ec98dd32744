// What one writer keeps in a store: items, and a ledger that says how many and which step it is.
//
// Invariants
// - Each step follows from the seed, the writer's number and the account before it: whoever knows
//   those knows the account behind it. The referee never asks the store for that.
// - A step changes items and the ledger in one commit: in every snapshot they fit each other.

import VarveTesting

/// A promise that was broken.
struct Violation: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// A blob: made from a size and a letter, so that the same ones meet again.
struct Picture: Hashable {
    static let externalLimit = 500
    static let sizes = [60, 420, 700, 1400]
    var size: Int
    var letter: UInt8

    init(size: Int, letter: UInt8) {
        self.size = size
        self.letter = letter
    }

    /// Nil for bytes that no picture has.
    init?(_ bytes: [UInt8]) {
        self.init(size: bytes.count, letter: bytes.first ?? 0)
        if self.bytes != bytes { return nil }
    }

    var bytes: [UInt8] {
        (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 / 251) &+ letter }
    }
}

/// One item of a writer.
struct Item: Equatable {
    var rank: Int64
    var title: String
    var body: String?
    var picture: Picture?
}

/// What a step does to one item.
enum Edit {
    case insert(UInt64, Item)
    case update(UInt64, Item)
    case delete(UInt64)

    /// What the item becomes.
    var item: Item? {
        switch self {
        case .insert(_, let item), .update(_, let item): item
        case .delete: nil
        }
    }
}

/// All that a writer has in a store, by the items' keys.
struct Account: Equatable {
    /// The step of the newest commit of this writer; 0 before the first.
    var step: UInt64 = 0
    var items: [UInt64: Item] = [:]

    var sum: Int64 { items.values.reduce(0) { $0 &+ $1.rank } }

    /// Keys of a writer begin with its number: those of different writers never meet.
    static func writer(of key: UInt64) -> UInt64 { key >> 40 }
}

/// What else a writer does behind a save.
enum Act {
    case nothing, checkpoint, compact, reopen
}

/// A step to be.
struct Plan {
    var edits: [Edit] = []
    var durability = Durability.full
    /// The account behind it.
    var account: Account
    var act = Act.nothing

    /// Items from which a step takes half away.
    private static let itemsMax = 140

    /// The step behind an account.
    init(_ seed: UInt64, _ writer: UInt64, behind account: Account) {
        self.account = account
        self.account.step += 1
        let step = self.account.step
        var random = SeededRandom(seed: seed).branch(writer << 40 | step)
        func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
        var keys = account.items.keys.sorted()
        var next = writer << 40 | step << 8
        func item(isPlain: Bool) -> Item {
            let letters = Array("abcdefgh")
            func text(_ length: Int) -> String {
                String((0..<length).map { _ in letters[pick(letters.count)] })
            }
            var item = Item(rank: Int64(pick(1000)) - 300, title: text(4 + pick(10)))
            if isPlain { return item }
            if pick(8) == 0 { item.body = text(300 + pick(600)) }
            if pick(8) == 0 {
                item.picture = Picture(
                    size: Picture.sizes[pick(Picture.sizes.count)],
                    letter: UInt8(1 + pick(200))
                )
            }
            return item
        }
        func insert(isPlain: Bool) {
            let item = item(isPlain: isPlain)
            edits.append(.insert(next, item))
            self.account.items[next] = item
            next += 1
        }
        func delete(_ key: UInt64) {
            edits.append(.delete(key))
            self.account.items[key] = nil
        }
        if keys.count > Self.itemsMax {
            for key in keys.prefix(keys.count / 2) { delete(key) }
        } else if pick(24) == 0 {
            for _ in 0..<60 { insert(isPlain: true) }
        } else {
            for _ in 0..<(1 + pick(6)) {
                let choice = pick(10)
                if choice < 4 || keys.isEmpty {
                    insert(isPlain: false)
                } else if choice < 8 {
                    let key = keys[pick(keys.count)]
                    guard self.account.items[key] != nil else { continue }
                    let item = item(isPlain: false)
                    edits.append(.update(key, item))
                    self.account.items[key] = item
                } else {
                    delete(keys.remove(at: pick(keys.count)))
                }
            }
        }
        if pick(8) == 0 { durability = .relaxed }
        switch pick(60) {
        case 0, 1: act = .checkpoint
        case 2: act = .compact
        case 3, 4: act = .reopen
        default: break
        }
    }
}
