// Who may read and write the files that a store makes.

/// The rights of new files and folders.
public struct FileRights: Sendable, Hashable {
    /// Of files: the bits of `chmod`. Folders let those look into them who may read.
    public var mode: UInt16
    /// The class by which Apple's systems protect new files while the device is locked: 1 to 4 are
    /// A to D; nil is the folder's. Has no meaning elsewhere.
    public var protectionClass: Int32?

    /// For the user of this process alone, if not said otherwise.
    public init(mode: UInt16 = 0o600, protectionClass: Int32? = nil) {
        self.mode = mode
        self.protectionClass = protectionClass
    }

    /// The mode of folders.
    public var folderMode: UInt16 { mode | (mode & 0o444) >> 2 }

    /// Whether the system gives these to what it makes, or less.
    public var isDefault: Bool { self == FileRights() }
}
