// A leaf in memory of exactly the size that the reader asks for, and its rows again.

import Testing
import VarveTesting

@testable import VarveFormat

/// Memory that begins and ends where it must, so that a checker of memory sees every step outside.
@safe final class ExactMemory {
    let start: UnsafeMutableRawPointer
    let count: Int

    init(_ bytes: [UInt8], padding: Int) {
        count = bytes.count + padding
        unsafe start = .allocate(byteCount: max(1, count), alignment: 1)
        for (index, byte) in bytes.enumerated() {
            unsafe start.storeBytes(of: byte, toByteOffset: index, as: UInt8.self)
        }
        // Any bytes: nobody may depend on them.
        for index in bytes.count..<count {
            unsafe start.storeBytes(of: 0xA5, toByteOffset: index, as: UInt8.self)
        }
    }

    deinit { unsafe start.deallocate() }
}

/// What a leaf says of one row.
struct ReadRow: Equatable {
    var object: UInt64
    var version: UInt64
    var bytes: [UInt8]?
}

enum LentLeaf {
    /// Loads a leaf and lends it.
    static func with<R>(
        _ body: [UInt8],
        count: Int,
        _ set: SymbolSet? = nil,
        _ use: (PackedLeaf) throws -> R
    ) throws -> R {
        let memory = unsafe ExactMemory(body, padding: PackedLeaf.padding)
        let leaf = unsafe try PackedLeaf(
            decoding: UnsafeRawBufferPointer(start: memory.start, count: body.count),
            count: count,
            symbols: set,
            place: "leaf"
        )
        return try withExtendedLifetime((memory, set)) { unsafe try use(leaf) }
    }

    /// Every row of a leaf.
    static func rows(_ leaf: PackedLeaf) -> [ReadRow] {
        let room = unsafe ExactMemory([], padding: leaf.rowBytesMax + 8)
        return unsafe (0..<leaf.count).map { index in
            let length = unsafe leaf.unpackRow(index, into: room.start)
            let bytes = length.map { length in
                unsafe Array(UnsafeRawBufferPointer(start: room.start, count: length))
            }
            return unsafe ReadRow(
                object: leaf.object(index),
                version: leaf.version(index),
                bytes: bytes
            )
        }
    }
}

extension LeafRows {
    /// What a reader must find.
    var expected: [ReadRow] {
        (0..<count).map {
            ReadRow(object: objects[$0], version: versions[$0], bytes: Array(bytes[range($0)]))
        }
    }

    mutating func append(_ object: UInt64, _ version: UInt64, _ row: [UInt8]) {
        append(object: object, version: version, row: row.span)
    }
}
