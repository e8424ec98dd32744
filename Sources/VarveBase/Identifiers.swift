// Plain identifiers and quantities that every layer names.
//
// Invariants
// - Offsets, counts and numbers are different types: mixing two of them does not compile.
// - None of them is trusted because of its type: a value read from disk is checked where it is
//   read.

/// A position in the store file, in bytes from its start.
public struct FileOffset: Hashable, Comparable, Sendable {
    /// Bytes from the start of the file.
    public var rawValue: UInt64

    /// Wraps a number of bytes from the start of the file.
    @inlinable public init(_ rawValue: UInt64) { self.rawValue = rawValue }

    /// See `NumberHash`.
    @inlinable public func _rawHashValue(seed: Int) -> Int {
        NumberHash.mix(rawValue, seed)
    }

    /// Orders by position.
    @inlinable public static func < (left: FileOffset, right: FileOffset) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// The number of a commit. The empty store is commit 0; each commit that carries changes adds 1.
public struct CommitNumber: Hashable, Comparable, Sendable {
    /// The number itself.
    public var rawValue: UInt64

    /// Wraps a commit number.
    @inlinable public init(_ rawValue: UInt64) { self.rawValue = rawValue }

    /// Orders older before newer.
    @inlinable public static func < (left: CommitNumber, right: CommitNumber) -> Bool {
        left.rawValue < right.rawValue
    }

    /// The commit after this one.
    @inlinable public var next: CommitNumber { CommitNumber(rawValue + 1) }
}

/// Permanent number of an object: unique in the store, handed out at insert, never reused.
public struct ObjectID: Hashable, Comparable, Sendable {
    /// The number itself; 0 is never handed out.
    public var rawValue: UInt64

    /// Wraps an object number.
    @inlinable public init(_ rawValue: UInt64) { self.rawValue = rawValue }

    /// See `NumberHash`.
    @inlinable public func _rawHashValue(seed: Int) -> Int {
        NumberHash.mix(rawValue, seed)
    }

    /// Orders by time of insertion.
    @inlinable public static func < (left: ObjectID, right: ObjectID) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// Number of a tree in the store. The engine's own trees are below `firstFree`.
public struct TreeID: Hashable, Comparable, Sendable {
    /// The number itself.
    public var rawValue: UInt32

    /// Wraps a tree number.
    @inlinable public init(_ rawValue: UInt32) { self.rawValue = rawValue }

    /// See `NumberHash`.
    @inlinable public func _rawHashValue(seed: Int) -> Int {
        NumberHash.mix(UInt64(rawValue), seed)
    }

    /// Orders by number.
    @inlinable public static func < (left: TreeID, right: TreeID) -> Bool {
        left.rawValue < right.rawValue
    }

    /// Stored schema versions and other named facts about the store.
    public static let catalog = TreeID(0)
    /// Blob digest to reference count and place.
    public static let blobs = TreeID(1)
    /// Commit that dropped a blob's last reference, and its digest.
    public static let droppedBlobs = TreeID(2)
    /// Object and column to the place of a value too large for its leaf.
    public static let largeValues = TreeID(3)
    /// First number that the records layer may give to an entity or an index.
    public static let firstFree = TreeID(16)
}

/// Number of an entity inside the store; it stays when the entity is renamed.
/// An entity's rows are the entries of the tree that its schema record names.
public struct EntityID: Hashable, Comparable, Sendable {
    /// The number itself.
    public var rawValue: UInt16

    /// Wraps an entity number.
    @inlinable public init(_ rawValue: UInt16) { self.rawValue = rawValue }

    /// See `NumberHash`.
    @inlinable public func _rawHashValue(seed: Int) -> Int {
        NumberHash.mix(UInt64(rawValue), seed)
    }

    /// Orders by number.
    @inlinable public static func < (left: EntityID, right: EntityID) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// Number of a column inside its entity; it stays when the attribute is renamed, and a dropped
/// attribute's number is not given to another one.
public struct ColumnID: Hashable, Comparable, Sendable {
    /// The number itself, from 0.
    public var rawValue: UInt16

    /// Wraps a column number.
    @inlinable public init(_ rawValue: UInt16) { self.rawValue = rawValue }

    /// Orders by number.
    @inlinable public static func < (left: ColumnID, right: ColumnID) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// The hash of identifiers in dictionaries and sets.
///
/// Tables keyed by object, tree or place are looked up for every row that is read or shown. The
/// standard hash takes about 20 ns for one number, this one 2. Each table mixes in its own seed; a
/// hostile file that chose its numbers to collide would be slow to read, not wrong.
public enum NumberHash {
    /// Spreads a number over all bits (the finalizer of MurmurHash3).
    @inlinable @inline(__always)
    public static func mix(_ number: UInt64, _ seed: Int) -> Int {
        var bits = number ^ UInt64(bitPattern: Int64(seed))
        bits = (bits ^ (bits &>> 33)) &* 0xFF51_AFD7_ED55_8CCD
        bits = (bits ^ (bits &>> 33)) &* 0xC4CE_B9FE_1A85_EC53
        return Int(truncatingIfNeeded: bits ^ (bits &>> 33))
    }
}
