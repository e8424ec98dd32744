// Filled stores that workloads share, and copies of them for workloads that change rows.

extension Stock {
    /// The first rows of the seed, with both indexes, settled.
    ///
    /// - Parameter rows: how many; stores of one name have equally many.
    public static func items<Peer: ItemPeer>(
        _ type: Peer.Type,
        _ options: PeerOptions,
        name: String = "items",
        rows: @escaping @Sendable (Scale) -> Int = { $0.rows }
    ) -> Stock {
        Stock(name) { session in
            let peer = try Peer(directory: session.directory, options: options)
            try peer.insert(Item.rows(1...Int64(rows(session.scale)), seed: session.seed))
            try peer.settle()
            try peer.close()
        }
    }
}

extension Session {
    /// A copy of the stock that may be changed; it goes with the session's folder.
    public func copyOfStock() throws -> String {
        let folder = directory + "/copy"
        try copyFolder(stock, to: folder)
        return folder
    }

    /// Random choices of this round, the same for every contestant.
    public func random(_ purpose: UInt64) -> SeededRandom {
        SeededRandom(seed: seed &+ UInt64(round) &* 7919 &+ purpose &* 104_729)
    }

    /// IDs of rows of the stock, in random order, some more than once.
    public func randomIDs(count: Int, purpose: UInt64 = 0) -> [Int64] {
        var random = random(purpose)
        return (0..<count).map { _ in 1 + Int64(random.below(UInt64(scale.rows))) }
    }

    /// IDs of different rows of the stock, in random order; at most all.
    public func differentIDs(count: Int, purpose: UInt64) -> [Int64] {
        var random = random(purpose)
        var all = Array(1...Int64(scale.rows))
        let wanted = min(count, all.count)
        for index in 0..<wanted {
            all.swapAt(index, index + Int(random.below(UInt64(all.count - index))))
        }
        return Array(all.prefix(wanted))
    }
}
