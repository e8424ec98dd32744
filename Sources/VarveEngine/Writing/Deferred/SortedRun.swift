// Index entries of a large transaction on their way through a file without a name.
//
// Invariants
// - A run holds entries in the order of their keys, equal keys by age; runs are older the earlier
//   they were written.
// - The file has no name from before its first byte on, so nothing is left of it whatever happens;
//   a name that a power cut caught in between is taken for a leftover by the next opening.
// - Nothing here is synced or part of the store: bytes that come back wrong fail the transaction.
//
// Entry: varint length shared with the key before, varint (rest's length * 2 + removes), the rest.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

struct SortedRun {
    private static let chunkBytes = 64 << 10

    /// What was written at once: whole entries, and the hash that they must have when they come
    /// back.
    struct Chunk {
        var bytes: Int
        var hash: UInt64
    }

    let file: any StoreFile
    let start: UInt64
    private(set) var chunks: [Chunk] = []
    private(set) var end: UInt64

    /// A file that vanishes with its last use.
    static func makeFile(
        _ directory: any StoreDirectory,
        _ fileName: String,
        _ environment: any Environment
    ) throws(IOError) -> any StoreFile {
        let name = Engine.temporaryName(fileName, environment)
        let file = try directory.openFile(name, mode: .createExclusive)
        do throws(IOError) { try directory.remove(name) } catch {
            // Another process that opens the store may have found it first.
            if !error.isMissing { throw error }
        }
        return file
    }

    /// Writes entries that are sorted, from `start` on.
    static func write(
        _ sorted: PendingEntries,
        to file: any StoreFile,
        from start: UInt64
    ) throws(IOError) -> SortedRun {
        var run = SortedRun(file: file, start: start, end: start)
        var writer = ByteWriter(capacity: chunkBytes + 2048)
        let keys = sorted.keyBytes
        var last = 0..<0
        for index in 0..<sorted.count where !sorted.isSuperseded(index) {
            let key = sorted.keyRange(index)
            let shared = commonPrefixCount(keys, last, key)
            writer.count(shared)
            writer.count((key.count - shared) << 1 | (sorted.removes(index) ? 1 : 0))
            writer.raw(keys, key.lowerBound + shared..<key.upperBound)
            last = key
            if writer.count >= chunkBytes { try run.write(&writer) }
        }
        try run.write(&writer)
        return run
    }

    private mutating func write(_ writer: inout ByteWriter) throws(IOError) {
        guard writer.count > 0 else { return }
        try file.write(writer.bytes, at: FileOffset(end))
        chunks.append(Chunk(bytes: writer.count, hash: Self.hash(writer.bytes)))
        end += UInt64(writer.count)
        writer.bytes.removeAll(keepingCapacity: true)
    }

    static func hash(_ bytes: [UInt8]) -> UInt64 { FrameHash.xxh64(bytes) }

    private static func commonPrefixCount(
        _ keys: [UInt8],
        _ left: Range<Int>,
        _ right: Range<Int>
    ) -> Int {
        let common = min(left.count, right.count)
        var count = 0
        while count + 8 <= common {
            let one = ByteReader.loadBigEndian64(keys, left.lowerBound + count)
            let two = ByteReader.loadBigEndian64(keys, right.lowerBound + count)
            if one != two { return count + (one ^ two).leadingZeroBitCount / 8 }
            count += 8
        }
        while count < common, keys[left.lowerBound + count] == keys[right.lowerBound + count] {
            count += 1
        }
        return count
    }
}

/// Reads one run from front to end.
struct SortedRunReader {
    private let run: SortedRun
    private var position: UInt64
    private var chunk = 0
    private var buffer: [UInt8] = []
    private var next = 0
    private(set) var key: [UInt8] = []
    private(set) var head: UInt64 = 0
    /// The 8 bytes after the head, where the key has as many; else 0.
    private(set) var wholeHeadBehind: UInt64 = 0
    private(set) var removes = false

    init(_ run: SortedRun) {
        self.run = run
        position = run.start
    }

    /// Goes to the next entry; false at the end.
    ///
    /// - Throws: `ioFailed`, also when the file does not hold what was written.
    mutating func advance() throws(EngineError) -> Bool {
        if next == buffer.count, try !fill() { return false }
        let shared = try varint()
        let rest = try varint()
        let length = rest >> 1
        guard shared <= key.count, length <= buffer.count - next,
            shared + length <= DeltaOps.keyBytesMax
        else { throw Self.wrong() }
        key.removeLast(key.count - shared)
        ByteWriter.append(buffer, next..<next + length, to: &key)
        next += length
        removes = rest & 1 == 1
        head = ByteReader.keyHead(key)
        wholeHeadBehind = key.count >= 16 ? ByteReader.loadBigEndian64(key, 8) : 0
        return true
    }

    /// Adds the entry to others and goes to the next; false at the end. In one call, as a reader
    /// that lies in an array would be copied for one that changes nothing.
    mutating func move(to entries: inout PendingEntries) throws(EngineError) -> Bool {
        entries.add(key, removes: removes)
        return try advance()
    }

    private mutating func varint() throws(EngineError) -> Int {
        var value = 0
        for shift in [0, 7, 14] {
            guard next < buffer.count else { throw Self.wrong() }
            let byte = buffer[next]
            next += 1
            value |= Int(byte & 0x7f) << shift
            if byte < 0x80 { return value }
        }
        throw Self.wrong()
    }

    /// Reads the next chunk; false after the last one.
    private mutating func fill() throws(EngineError) -> Bool {
        guard chunk < run.chunks.count else { return false }
        let expected = run.chunks[chunk]
        buffer = try Engine.io { () throws(IOError) in
            try run.file.read(at: FileOffset(position), count: expected.bytes)
        }
        guard buffer.count == expected.bytes, SortedRun.hash(buffer) == expected.hash else {
            throw Self.wrong()
        }
        chunk += 1
        next = 0
        position += UInt64(expected.bytes)
        return true
    }

    private static func wrong() -> EngineError {
        EngineError(
            .ioFailed,
            "a temporary file gave back other bytes than were written; nothing was saved"
        )
    }
}

/// The entries of several runs in the order of their keys, equal keys by age.
struct RunMerge {
    private var readers: [SortedRunReader] = []
    /// Indexes of readers, a binary heap.
    private var heap: [Int] = []

    init(_ runs: [SortedRun]) throws(EngineError) {
        for run in runs {
            var reader = SortedRunReader(run)
            let hasEntry = try reader.advance()
            readers.append(reader)
            if hasEntry { heap.append(readers.count - 1) }
        }
        for index in heap.indices.reversed() { sink(index) }
    }

    /// The next entries, about `bytes` of them; empty at the end.
    mutating func nextChunk(_ bytes: Int) throws(EngineError) -> PendingEntries {
        var chunk = PendingEntries()
        while let top = heap.first, chunk.bytes < bytes {
            if try !readers[top].move(to: &chunk) {
                let last = heap.removeLast()
                if heap.isEmpty { break }
                heap[0] = last
            }
            sink(0)
        }
        return chunk
    }

    private func isBefore(_ left: Int, _ right: Int) -> Bool {
        if readers[left].head != readers[right].head {
            return readers[left].head < readers[right].head
        }
        // 0: too short, or zeros; then the keys say it.
        let (one, other) = (readers[left].wholeHeadBehind, readers[right].wholeHeadBehind)
        if one != other, one != 0, other != 0 { return one < other }
        let order = ByteReader.compare(readers[left].key, readers[right].key)
        return order == 0 ? left < right : order < 0
    }

    private mutating func sink(_ start: Int) {
        var parent = start
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && isBefore(heap[child], heap[least]) {
                least = child
            }
            if least == parent { return }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}
