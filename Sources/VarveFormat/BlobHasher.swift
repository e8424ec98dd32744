// FENCE: SHA-256 of blob contents, through CVarve.
//
// Invariants
// - A value: a copy goes on by itself.
// - The same digest on every CPU, with SHA instructions or without.

private import CVarve
public import VarveBase

/// Hashes a blob piece by piece.
public struct BlobHasher: Sendable {
    private var context = varve_sha256()

    /// Starts with no bytes.
    public init() { self.init(portable: false) }

    /// Starts with no bytes; `portable` keeps to plain code even where the CPU has instructions.
    public init(portable: Bool) {
        // The context lives for the length of the call.
        unsafe varve_sha256_begin(&context, portable ? 1 : 0)
    }

    /// Whether this CPU has SHA instructions that are used.
    public static var isAccelerated: Bool { varve_sha256_is_accelerated() != 0 }

    /// Adds bytes.
    /// - Complexity: O(n); about 1.5 GB/s with instructions, 0.3 without.
    public mutating func update(_ bytes: [UInt8]) { update(bytes[...]) }

    /// Adds bytes.
    public mutating func update(_ bytes: ArraySlice<UInt8>) {
        // The buffer and the context live for the length of the call.
        unsafe bytes.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress, !buffer.isEmpty else { return }
            unsafe varve_sha256_update(&context, base, buffer.count)
        }
    }

    /// The digest of all bytes added.
    public consuming func finalize() -> BlobDigest {
        var digest = [UInt8](repeating: 0, count: BlobDigest.byteCount)
        // The function writes the 32 bytes that the array has.
        unsafe digest.withUnsafeMutableBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return }
            unsafe varve_sha256_finish(&context, base)
        }
        return ByteReader.digest(digest, 0)
    }

    /// The digest of an array.
    public static func digest(of bytes: [UInt8]) -> BlobDigest {
        var hasher = BlobHasher()
        hasher.update(bytes)
        return hasher.finalize()
    }
}
