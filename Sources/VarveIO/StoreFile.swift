// Seam: one open file. The engine sees files through these protocols only, so tests can put a
// simulated disk in their place.
//
// Invariants
// - A read is short only at the end of the file; a write is whole or throws.
// - Nothing is retried after a failed sync: what is durable then is not known.

public import VarveBase

/// The half of an open file that cannot change it.
public protocol ReadOnlyFile: AnyObject, Sendable {
    /// The name it was opened under.
    var name: String { get }
    /// Reads `count` bytes, fewer only where the file ends. The caller bounds `count`.
    func read(at offset: FileOffset, count: Int) throws(IOError) -> [UInt8]
    /// The same into the front of `buffer`, which has room for them: no allocation where the file
    /// can do without. Returns how many bytes were read.
    func read(
        at offset: FileOffset,
        count: Int,
        into buffer: inout [UInt8]
    ) throws(IOError) -> Int
    /// Bytes in the file now.
    func size() throws(IOError) -> UInt64
    /// Which file this is.
    func identity() throws(IOError) -> FileIdentity
    /// Whether it is the file that somebody found under a name. Each durable commit asks.
    func isSameFile(as found: FileIdentity) throws(IOError) -> Bool
    /// Asks the system to drop clean cached bytes, so that later reads come from the disk.
    /// A hint: it may do nothing.
    func adviseDontNeed()
    /// Asks the system to begin reading bytes that will be asked for soon, and does not wait.
    /// A hint: it may do nothing.
    func adviseWillNeed(at offset: FileOffset, count: Int)
    /// Ends the use of the file; later calls throw `closed`. Calls under way end first.
    func close()
}

extension ReadOnlyFile {
    /// Does nothing.
    public func adviseWillNeed(at offset: FileOffset, count: Int) {}

    /// Asks the system.
    public func isSameFile(as found: FileIdentity) throws(IOError) -> Bool {
        try identity().isSameFile(as: found)
    }

    /// Reads, and copies.
    public func read(
        at offset: FileOffset,
        count: Int,
        into buffer: inout [UInt8]
    ) throws(IOError) -> Int {
        let bytes = try read(at: offset, count: count)
        buffer.replaceSubrange(0..<bytes.count, with: bytes)
        return bytes.count
    }
}

/// One open file.
public protocol StoreFile: ReadOnlyFile {
    /// Writes all bytes. After an error the range holds old bytes, new bytes or a mix.
    func write(_ bytes: [UInt8], at offset: FileOffset) throws(IOError)
    /// Makes contents and length durable.
    func syncData() throws(IOError)
    /// Makes contents and all metadata durable.
    func syncAll() throws(IOError)
    /// Cuts the file, or extends it with zeros, to a length.
    func cut(to size: UInt64) throws(IOError)
    /// 8 bytes of the file as they are now, for whoever looks often; nil where the system has no
    /// such thing. The file must hold them and must never be cut below them.
    func word(at offset: FileOffset) -> MappedWord?
    /// Bytes that the file may still grow by, at most; nil where nobody knows. A quota, or another
    /// process, may leave less.
    func freeBytes() -> UInt64?
    /// Bytes when it was opened, a hint that costs nothing; nil where that is not known.
    var sizeWhenOpened: UInt64? { get }
}

extension StoreFile {
    /// Nobody knows.
    public func freeBytes() -> UInt64? { nil }
    /// Not known.
    public var sizeWhenOpened: UInt64? { nil }
    /// Refuses a file that has another name, too: what is written to it would be written there.
    public func checkOnlyName(_ name: String) throws(IOError) {
        let links = try identity().links
        guard links > 1 else { return }
        throw IOError(
            kind: .other,
            code: 0,
            operation: "open",
            name: name,
            reason:
                "the file has \(links) names (hard links), and what is written to it would change "
                + "the others, too; remove this name while no process has the store open, it is "
                + "made anew"
        )
    }
    /// None: whoever wants to know reads.
    public func word(at offset: FileOffset) -> MappedWord? { nil }
}

/// Which file an opening refers to, and what may be trusted of it.
public struct FileIdentity: Hashable, Sendable {
    /// The device it is on.
    public var device: UInt64
    /// Its number there.
    public var inode: UInt64
    /// Names that refer to it; a store must have one.
    public var links: UInt64
    /// Bytes.
    public var size: UInt64
    /// Whether the user of this process owns it.
    public var isOwn: Bool
    /// Whether its group or others may write it.
    public var isWritableByOthers: Bool

    /// Joins the parts.
    public init(
        device: UInt64,
        inode: UInt64,
        links: UInt64,
        size: UInt64,
        isOwn: Bool = true,
        isWritableByOthers: Bool = false
    ) {
        self.device = device
        self.inode = inode
        self.links = links
        self.size = size
        self.isOwn = isOwn
        self.isWritableByOthers = isWritableByOthers
    }

    /// Whether both are the same file, whatever its size is now.
    public func isSameFile(as other: FileIdentity) -> Bool {
        device == other.device && inode == other.inode
    }
}
