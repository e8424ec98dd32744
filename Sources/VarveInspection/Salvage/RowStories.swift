// What the log says of single rows, gathered from the newest commit backwards.
//
// Invariants
// - For each row only what is newer than its last full version is kept: what an older commit says
//   of it counts for nothing.
// - A commit that says that a row changed and not what it became makes the row unknown. What is
//   known of it as of the commit before is kept apart and never takes the row's place by itself.

import VarveBase
import VarveEngine
import VarveFormat

/// One version of a row as the log tells it.
struct RowVersion {
    enum Beginning {
        /// Changes of a row that stands in an older tree.
        case older
        case row([UInt8])
        /// There was no row.
        case none
    }

    /// Changes after the beginning, newest first.
    var patches: [[UInt8]] = []
    var beginning = Beginning.older

    /// The row; nil when there was none.
    func row(on older: [UInt8]?) throws(FormatError) -> [UInt8]? {
        var row: [UInt8]
        switch beginning {
        case .none: return nil
        case .row(let bytes): row = bytes
        case .older:
            guard let older else { return nil }
            row = older
        }
        for patch in patches.reversed() { row = try RowPatch.apply(patch, to: row) }
        return row
    }
}

/// All that is known of a row.
struct RowStory {
    var now = RowVersion()
    /// The commit that changed it last.
    var version: CommitNumber
    /// The commit that made it unknown.
    var unknownSince: CommitNumber?
    /// The row before that commit.
    var before = RowVersion()
    /// The commit that `before` is about.
    var beforeCommit = CommitNumber(0)

    /// Whether older commits can say nothing more.
    var isTold: Bool {
        let version = unknownSince == nil ? now : before
        if case .older = version.beginning { return false }
        return true
    }
}

struct RowStories {
    struct ValueKey: Hashable {
        let entity: EntityID
        let object: ObjectID
        let column: ColumnID
    }

    private(set) var rows: [EntityID: [ObjectID: RowStory]] = [:]
    /// Where commits put large values, the newest of each.
    private(set) var values: [ValueKey: ValuePlace] = [:]
    /// Where commits put blobs; nil for a file.
    private(set) var blobs: [BlobReference: ValuePlace?] = [:]
    /// About the memory that all this takes.
    private(set) var bytes = 0

    private static let entryBytes = 250

    mutating func take(story object: ObjectID, of entity: EntityID) -> RowStory? {
        rows[entity]?.removeValue(forKey: object)
    }

    func objects(of entity: EntityID) -> [ObjectID] { rows[entity].map { $0.keys.sorted() } ?? [] }

    /// Adds what a commit says; it is older than all that were added before.
    ///
    /// - Parameter bytesMax: with more `bytes` it ends, wherever it is: a list of a few bytes can
    ///   name millions of objects.
    /// - Parameter concerns: which rows are asked for.
    mutating func add(
        _ content: CommitContent,
        of commit: CommitNumber,
        bytesMax: Int,
        concerns: (EntityID, ObjectID) -> Bool
    ) {
        switch content {
        case .nothing: return
        case .trees(_, let changes):
            for list in changes {
                for object in list.objects where concerns(list.entity, object) {
                    change(list.entity, object, commit) { $0.becomesUnknown(by: commit, list.kind) }
                    if bytes > bytesMax { return }
                }
            }
        case .changes(let places, let operations):
            for place in places {
                switch place {
                case .largeValue(let entity, let object, let column, let place):
                    let key = ValueKey(entity: entity, object: object, column: column)
                    if values[key] == nil { values[key] = place }
                case .blobFrame(let reference, let place):
                    if blobs[reference] == nil { blobs[reference] = .some(place) }
                case .blobFile(let reference):
                    if blobs[reference] == nil { blobs[reference] = .some(nil) }
                }
                bytes += Self.entryBytes
            }
            for operation in operations.reversed() {
                switch operation {
                case .insert(let entity, let object, let row) where concerns(entity, object):
                    bytes += row.count
                    change(entity, object, commit) { $0.begins(with: .row(row)) }
                case .update(let entity, let object, let patch) where concerns(entity, object):
                    bytes += patch.count
                    change(entity, object, commit) { $0.add(patch) }
                case .delete(let entity, let object) where concerns(entity, object):
                    change(entity, object, commit) { $0.begins(with: .none) }
                default: break
                }
            }
        }
    }

    private mutating func change(
        _ entity: EntityID,
        _ object: ObjectID,
        _ commit: CommitNumber,
        _ body: (inout RowStory) -> Void
    ) {
        var story = rows[entity]?[object] ?? RowStory(version: commit)
        bytes += Self.entryBytes
        if story.isTold { return }
        body(&story)
        rows[entity, default: [:]][object] = story
    }
}

extension RowStory {
    fileprivate mutating func add(_ patch: [UInt8]) {
        if unknownSince == nil { now.patches.append(patch) } else { before.patches.append(patch) }
    }

    fileprivate mutating func begins(with beginning: RowVersion.Beginning) {
        if unknownSince == nil {
            now.beginning = beginning
        } else {
            before.beginning = beginning
        }
    }

    fileprivate mutating func becomesUnknown(by commit: CommitNumber, _ kind: RowChangeKind) {
        if kind == .deleted {
            begins(with: .none)
            return
        }
        unknownSince = unknownSince ?? commit
        before = RowVersion()
        beforeCommit = CommitNumber(commit.rawValue - min(commit.rawValue, 1))
        if kind == .inserted { before.beginning = .none }
    }
}
