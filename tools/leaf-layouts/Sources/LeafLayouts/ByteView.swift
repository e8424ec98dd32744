// FENCE: loads from the bytes of leaves, each compared with their end.
//
// Invariants
// - Behind the bytes of a view there are 8 more that may be read: a word can begin at the last one.

/// A leaf's bytes are not what its layout says.
public enum LeafError: Error {
    /// A place behind the end, or an impossible field.
    case damage
    /// No row has the key.
    case missingKey
}

/// Bytes that somebody lends for the time of a call.
@safe public struct ByteView {
    private let base: UnsafePointer<UInt8>
    let count: Int

    /// Lends the bytes of an array, of which the last 8 are the slack.
    static func lend<R, Failure: Error>(
        _ bytes: [UInt8],
        _ body: (ByteView) throws(Failure) -> R
    ) throws(Failure) -> R {
        precondition(bytes.count > 8)
        let result: Result<R, Failure> = unsafe bytes.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { preconditionFailure("no bytes") }
            do throws(Failure) {
                // The array is there during the call.
                return .success(try unsafe body(ByteView(base, count: bytes.count - 8)))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Bytes with 8 more behind them.
    init(_ base: UnsafePointer<UInt8>, count: Int) {
        unsafe self.base = base
        self.count = count
    }

    /// A part.
    func part(_ range: Range<Int>) -> ByteView {
        precondition(range.lowerBound >= 0 && range.upperBound <= count)
        // Inside this view, so there are 8 bytes behind it as well.
        return unsafe ByteView(base + range.lowerBound, count: range.count)
    }

    /// Eight bytes as a number, of which those behind the end are of no meaning.
    @inline(__always)
    func word(_ at: Int) throws(LeafError) -> UInt64 {
        if UInt(bitPattern: at) > UInt(bitPattern: count) { throw .damage }
        // At most 8 bytes behind the end.
        return unsafe UnsafeRawPointer(base).loadUnaligned(fromByteOffset: at, as: UInt64.self)
            .littleEndian
    }

    /// One byte.
    @inline(__always)
    func byte(_ at: Int) throws(LeafError) -> UInt8 {
        if UInt(bitPattern: at) > UInt(bitPattern: count) { throw .damage }
        // At most at the end.
        return unsafe base[at]
    }

    /// At most 56 bits at a bit position.
    @inline(__always)
    func bits(_ position: Int, _ width: Int) throws(LeafError) -> UInt64 {
        let word = try word(position &>> 3) &>> UInt64(truncatingIfNeeded: position & 7)
        return word & ~(UInt64.max &<< UInt64(truncatingIfNeeded: width))
    }

    /// A part as a buffer.
    @inline(__always)
    func buffer(_ at: Int, _ length: Int) throws(LeafError) -> UnsafeBufferPointer<UInt8> {
        guard at >= 0, length >= 0, at <= count &- length else { throw .damage }
        // Inside the view.
        return unsafe UnsafeBufferPointer(start: base + at, count: length)
    }

    /// How many of `rows` fields of one width, `stride` bits apart, are a code or above.
    @inline(__always)
    func count(
        atLeast least: UInt64,
        position: Int,
        stride: Int,
        width: Int,
        rows: Int
    ) throws(LeafError) -> Int {
        guard position >= 0, stride >= 0, rows > 0, stride < 1 << 20, rows < 1 << 20,
            (position + stride * (rows - 1)) >> 3 <= count
        else { throw .damage }
        let mask = ~(UInt64.max &<< UInt64(truncatingIfNeeded: width))
        let raw = unsafe UnsafeRawPointer(base)
        var sum = 0
        var at = position
        for _ in 0..<rows {
            // The last field begins at most at the end.
            let word = unsafe raw.loadUnaligned(fromByteOffset: at &>> 3, as: UInt64.self)
                .littleEndian
            let code = (word &>> UInt64(truncatingIfNeeded: at & 7)) & mask
            sum &+= code >= least ? 1 : 0
            at &+= stride
        }
        return sum
    }
}
