// Where the IDs of a list come from: places in a tree, or the IDs themselves.
//
// Invariants
// - A source that follows gives the IDs of the commit that its live list has reached. It reads no
//   other commit's tree, and holds no commit but while it is used.
// - A frozen source shows one commit for ever, and keeps it readable.

import VarveBase
import VarveRecords

/// The stored part of a list, without unsaved edits.
final class ListSource {
    private enum Content {
        case ids(IDChunks)
        /// A frozen list, or what a following one used last.
        case positions(PositionedList)
        /// A following list that nobody has read since its commit was reached.
        case unread
    }
    let count: Int
    private var content: Content
    private let query: RecordQuery
    /// Nil: frozen.
    private weak var feed: LiveFeed?

    init(_ ids: IDChunks, _ query: RecordQuery) {
        (content, count, self.query) = (.ids(ids), ids.count, query)
    }

    /// - Parameter feed: whose commit it follows; nil: it stays at the list's.
    init(_ list: PositionedList, _ query: RecordQuery, following feed: LiveFeed? = nil) {
        (content, count, self.query) = (.positions(list), list.count, query)
        self.feed = feed
        feed?.noteRead(self)
    }

    /// The list of a request, at a commit.
    static func find(
        _ query: RecordQuery,
        _ snapshot: RecordSnapshot,
        following feed: LiveFeed? = nil
    ) throws(RecordError) -> ListSource {
        if let list = try snapshot.positioned(query) {
            return ListSource(list, query, following: feed)
        }
        return ListSource(IDChunks(try snapshot.fetchIDs(query.withoutWindow)), query)
    }

    /// The IDs themselves, if they are in memory.
    var chunks: IDChunks? { if case .ids(let ids) = content { ids } else { nil } }

    /// Takes the feed's commit, if nobody has read the source there.
    private func resolve() throws(RecordError) {
        guard case .unread = content else { return }
        guard let feed, let snapshot = feed.snapshot else {
            throw .invalidRequest("a live list was read after its context was gone")
        }
        guard let found = try list(at: snapshot) else {
            throw .invalidRequest("a live list was read before it was brought up to date")
        }
        content = found
        feed.noteRead(self)
    }

    /// The list at another commit that shows the same. An index that has cut a text since, outside
    /// of the list, gives no positions any more: then it is the IDs.
    private func list(at snapshot: RecordSnapshot) throws(RecordError) -> Content? {
        if let list = try snapshot.positioned(query) {
            return list.count == count ? .positions(list) : nil
        }
        let ids = try snapshot.fetchIDs(query.withoutWindow)
        return ids.count == count ? .ids(IDChunks(ids)) : nil
    }

    private func positions() throws(RecordError) -> PositionedList? {
        try resolve()
        if case .positions(let list) = content { return list }
        return nil
    }

    func ids(_ range: Range<Int>) throws(RecordError) -> [ObjectID] {
        if let list = try positions() { return try list.ids(range) }
        return chunks?.ids(range) ?? []
    }

    /// How many of the list come before a place.
    /// - Parameter key: the place of an object of the list.
    func rank(
        of place: KeysetPosition,
        _ sort: CompiledSort,
        _ key: (ObjectID) throws(RecordError) -> KeysetPosition
    ) throws(RecordError) -> Int {
        if let list = try positions() { return try list.rank(of: place) }
        guard let ids = chunks else { return 0 }
        return try (0..<ids.count).firstPlace { index throws(RecordError) in
            try !sort.precedes(key(ids[index]), place)
        }
    }

    /// Where the run of objects with the same first sort value ends that begins at a position.
    func endOfRun(
        from start: Int,
        _ first: KeysetPosition,
        _ key: (ObjectID) throws(RecordError) -> KeysetPosition
    ) throws(RecordError) -> Int {
        if let list = try positions() { return try list.endOfRun(of: first) }
        guard let ids = chunks, let value = first.values.first else { return count }
        func isInside(_ index: Int) throws(RecordError) -> Bool {
            try key(ids[index]).values.first?.isSame(as: value) ?? false
        }
        // Short runs are met first: twice as far with each step, then by halves.
        var (low, step) = (start, 1)
        while low + step < ids.count, try isInside(low + step) {
            low += step
            step *= 2
        }
        return try (low + 1..<max(low + 1, min(ids.count, low + step))).firstPlace {
            index throws(RecordError) in try !isInside(index)
        }
    }

    /// Lets a commit go that is not this one; the next read takes the feed's. Returns whether it
    /// holds none any more that it would have to let go later.
    func forget(unlessAt commit: CommitNumber) -> Bool {
        guard feed != nil, case .positions(let list) = content else { return true }
        if list.snapshot.number == commit { return false }
        content = .unread
        return true
    }

    /// Stays at a commit, which shows the same list: the live list moves on without it.
    func freeze(at snapshot: RecordSnapshot?) {
        guard feed != nil else { return }
        if case .unread = content, let snapshot, let found = try? list(at: snapshot) {
            content = found
        }
        feed = nil
    }
}

extension RecordQuery {
    /// The same request without limit and offset.
    var withoutWindow: RecordQuery {
        var query = self
        (query.limit, query.offset) = (nil, 0)
        return query
    }
}
