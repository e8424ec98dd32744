// One state of the store: what a commit looks like to its readers.
//
// Invariants
// - A published state never changes. It owns the nodes that exist in memory only, and keeps the
//   file open that its other nodes are in.
// - `deriver` belongs to `schema`.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

struct StoreState: Sendable {
    /// The file that the addresses in `trees` belong to.
    var generation: Generation
    /// The commit frame that the state stands on: the newest DELTA, TREE or CKPT in it.
    var frame = FileOffset(0)
    var number = CommitNumber(0)
    var trees = TreeTable()
    var schema: [UInt8] = []
    var schemaVersion: UInt32 = 0
    var deriver: (any IndexDeriver)?
    /// The newest TREE or CKPT that the state stands on, and its roots.
    var baseFrame = FileOffset(0)
    var baseTrees = TreeTable()
    /// Stored bytes of the pages, large values and small blobs that those roots need.
    var liveBytes: UInt64 = 0
    /// How many states this opening published before; 0 for one that is not published.
    var publication: UInt64 = 0

    /// Whether some of it exists in memory and in row changes only.
    var isDirty: Bool { trees.values.contains { $0.node != nil } }

    init(generation: Generation) { self.generation = generation }

    /// A tree of this state. `isPublished`: the state can never change any more.
    func tree(_ id: TreeID, isPublished: Bool = false) -> Tree {
        Tree(
            id: id,
            root: trees[id] ?? .empty,
            loader: generation.nodes,
            isPublished: isPublished
        )
    }

    func tree(_ id: TreeID, _ loader: NodeCache) -> Tree {
        Tree(id: id, root: trees[id] ?? .empty, loader: loader)
    }
}

/// A state that readers share, counted as one thing and not by its parts.
final class PublishedState: Sendable {
    let state: StoreState

    init(_ state: StoreState) { self.state = state }
}

extension StoreState {
    /// Roots that a hint is given for: each is a system call.
    private static let hintedRootsMax = 8
    /// A root and the inner nodes that were written just before it.
    private static let hintedBytes = 16 << 10

    /// Asks the system to begin reading the tops of the trees: in a store that is not in memory
    /// the first fetch waits for one node after the other.
    func adviseWillNeedRoots() {
        let addresses = trees.values.filter { $0.node == nil }.compactMap(\.address)
        for address in addresses.sorted(by: { $0.offset < $1.offset }).suffix(Self.hintedRootsMax) {
            let end =
                address.offset.rawValue + UInt64(FrameHeader.length) + UInt64(address.storedLength)
            let start = end - min(end, UInt64(Self.hintedBytes))
            generation.file.adviseWillNeed(at: FileOffset(start), count: Self.hintedBytes)
        }
    }
}

/// Keys of the engine's own trees.
enum EngineKeys {
    static let schema = [UInt8]("schema".utf8)

    /// "schema/" and the version, big-endian: ascending by version.
    static func schema(version: UInt32) -> [UInt8] {
        var writer = ByteWriter(appendingTo: [UInt8]("schema/".utf8))
        for shift in [24, 16, 8, 0] {
            writer.u8(UInt8(truncatingIfNeeded: version >> UInt32(shift)))
        }
        return writer.bytes
    }

    /// Entity, object, column, all big-endian: the values of one row stand together.
    static func largeValue(_ entity: EntityID, _ object: ObjectID, _ column: ColumnID) -> [UInt8] {
        var writer = ByteWriter(capacity: 12)
        writer.u16(entity.rawValue.byteSwapped)
        writer.bigEndian64(object.rawValue)
        writer.u16(column.rawValue.byteSwapped)
        return writer.bytes
    }

    static func object(_ object: ObjectID) -> [UInt8] {
        var writer = ByteWriter(capacity: 8)
        writer.bigEndian64(object.rawValue)
        return writer.bytes
    }

    /// Appends the version that stands in front of a row.
    static func append(_ version: CommitNumber, to value: inout [UInt8]) {
        var writer = ByteWriter(appendingTo: value)
        value = []
        writer.varint(version.rawValue)
        value = writer.bytes
    }

    /// What stands after a row's key: the commit that changed it last, then the row.
    static func rowValue(_ version: CommitNumber, _ row: [UInt8]) -> [UInt8] {
        var writer = ByteWriter(capacity: row.count + 4)
        writer.varint(version.rawValue)
        writer.raw(row)
        return writer.bytes
    }

    static func digest(_ digest: BlobDigest) -> [UInt8] {
        var writer = ByteWriter(capacity: 32)
        let (first, second, third, fourth) = digest.words
        for word in [first, second, third, fourth] { writer.bigEndian64(word) }
        return writer.bytes
    }

    /// The commit that dropped the blob, then its digest: ascending by commit.
    static func dropped(_ digest: BlobDigest, by commit: CommitNumber) -> [UInt8] {
        var writer = ByteWriter(capacity: 40)
        writer.bigEndian64(commit.rawValue)
        writer.raw(Self.digest(digest))
        return writer.bytes
    }

    static func dropped(
        decoding key: [UInt8]
    ) throws(FormatError) -> (commit: CommitNumber, digest: BlobDigest) {
        var reader = ByteReader(key, place: "dropped blob")
        let commit = CommitNumber(try reader.u64("commit").byteSwapped)
        return (commit, try digest(&reader))
    }

    private static func digest(_ reader: inout ByteReader) throws(FormatError) -> BlobDigest {
        let first = try reader.u64("digest").byteSwapped
        let second = try reader.u64("digest").byteSwapped
        let third = try reader.u64("digest").byteSwapped
        let fourth = try reader.u64("digest").byteSwapped
        try reader.finish("digest")
        return BlobDigest(first, second, third, fourth)
    }

    static func digest(decoding key: [UInt8]) throws(FormatError) -> BlobDigest {
        var reader = ByteReader(key, place: "blob key")
        return try digest(&reader)
    }
}

/// An entry of the tree `blobs`: how many rows name a blob and where its bytes are.
struct BlobEntry: Hashable {
    enum Place: Hashable {
        case frame(ValuePlace)
        case file
    }
    static let frameTag: UInt8 = 1
    static let fileTag: UInt8 = 2

    var references: UInt64
    var length: UInt64
    var place: Place

    func encoded() -> [UInt8] {
        var writer = ByteWriter(capacity: 32)
        writer.varint(references)
        writer.varint(length)
        switch place {
        case .frame(let place):
            writer.u8(Self.frameTag)
            place.append(to: &writer)
        case .file:
            writer.u8(Self.fileTag)
        }
        return writer.bytes
    }

    init(references: UInt64, length: UInt64, place: Place) {
        self.references = references
        self.length = length
        self.place = place
    }

    init(decoding bytes: [UInt8]) throws(FormatError) {
        var reader = ByteReader(bytes, place: "blob entry")
        references = try reader.varint("references")
        length = try reader.varint("length")
        switch try reader.u8("place") {
        case Self.frameTag:
            let value = try ValuePlace(from: &reader, below: FileOffset(.max))
            // Whoever asks for a blob's bytes asks for memory of its length first.
            guard value.length == length else {
                throw reader.error("value length", "\(value.length)", "\(length), as the blob's")
            }
            place = .frame(value)
        case Self.fileTag:
            place = .file
        case let other:
            throw reader.error("place", "\(other)", "1 or 2")
        }
        try reader.finish("blob entry")
    }
}

extension BlobDigest {
    /// The spelling of a blob in messages: "b:" and the first 16 hex digits.
    var shortName: String {
        let digits = String(words.0, radix: 16)
        return "b:" + String(repeating: "0", count: 16 - digits.count) + digits
    }
}
