// A row as plain bytes: for peers that store bytes (LMDB), and for the limits of the machine.
//
// Layout, little-endian: timestamp 8, count 8, pictureID 8, flag 1, length of title 1,
// length of note 2, title, note. The ID is the key and not part of it.

/// Reads one packed row in place.
public struct PackedRow {
    private let bytes: UnsafeRawBufferPointer
    private static let headBytes = 28

    /// Looks at bytes that `append` made; the caller keeps them alive.
    public init(bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    /// Seconds.
    public var timestamp: Double {
        Double(bitPattern: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
    }
    /// The count.
    public var count: Int64 { bytes.loadUnaligned(fromByteOffset: 8, as: Int64.self) }
    /// The picture's ID.
    public var pictureID: Int64 { bytes.loadUnaligned(fromByteOffset: 16, as: Int64.self) }
    /// The flag.
    public var flag: Bool { bytes[24] == 1 }
    /// The title's UTF-8.
    public var title: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[Self.headBytes..<noteStart])
    }
    /// The note's UTF-8.
    public var note: UnsafeRawBufferPointer {
        let length = Int(bytes.loadUnaligned(fromByteOffset: 26, as: UInt16.self))
        return UnsafeRawBufferPointer(rebasing: bytes[noteStart..<noteStart + length])
    }
    private var noteStart: Int { Self.headBytes + Int(bytes[25]) }

    /// Adds the row of the given ID to a sum, all columns decoded.
    public func fold(id: Int64, into fold: inout RowFold) {
        fold.add(
            id: id,
            timestamp: timestamp,
            title: RowFold.digest(title),
            note: RowFold.digest(note),
            count: Int(count),
            flag: flag,
            pictureID: pictureID
        )
    }

    /// The row as an item.
    public func item(id: Int64) -> Item {
        Item(
            id: id,
            timestamp: timestamp,
            title: String(decoding: title, as: UTF8.self),
            note: String(decoding: note, as: UTF8.self),
            count: Int(count),
            flag: flag,
            pictureID: pictureID
        )
    }

    /// Appends an item's packed row. Titles have at most 255 bytes and notes at most 65,535.
    public static func append(_ item: Item, to bytes: inout [UInt8]) {
        append(item.timestamp.bitPattern, to: &bytes)
        append(UInt64(bitPattern: Int64(item.count)), to: &bytes)
        append(UInt64(bitPattern: item.pictureID), to: &bytes)
        bytes.append(item.flag ? 1 : 0)
        bytes.append(UInt8(item.title.utf8.count))
        let length = UInt16(item.note.utf8.count)
        bytes.append(UInt8(truncatingIfNeeded: length))
        bytes.append(UInt8(truncatingIfNeeded: length >> 8))
        bytes.append(contentsOf: item.title.utf8)
        bytes.append(contentsOf: item.note.utf8)
    }

    /// Changes the count of a packed row.
    public static func set(count: Int, in bytes: inout [UInt8]) {
        set(UInt64(bitPattern: Int64(count)), at: 8, in: &bytes)
    }

    /// Changes the timestamp of a packed row.
    public static func set(timestamp: Double, in bytes: inout [UInt8]) {
        set(timestamp.bitPattern, at: 0, in: &bytes)
    }

    private static func set(_ word: UInt64, at offset: Int, in bytes: inout [UInt8]) {
        bytes.withUnsafeMutableBytes {
            $0.storeBytes(of: word.littleEndian, toByteOffset: offset, as: UInt64.self)
        }
    }

    private static func append(_ word: UInt64, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: word.littleEndian) { bytes.append(contentsOf: $0) }
    }
}
