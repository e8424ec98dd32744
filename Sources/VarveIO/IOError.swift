// What the operating system refused: which call, on which name, where, and why.
//
// Invariants
// - One word in size, so that a throwing call returns its value in registers.
// - Carries names and offsets, never file contents.

/// A failed call to the operating system.
public struct IOError: Error, Sendable {
    /// What callers decide by.
    public enum Kind: Sendable, Hashable {
        /// The disk, or the user's share of it, is full.
        case noSpace
        /// The user may not do this here, or the file system is read-only.
        case permission
        /// No file or directory of that name.
        case missing
        /// The name is taken.
        case exists
        /// Another process, or another opening in this one, holds the lock.
        case held
        /// A link, pipe, socket, device or directory where a regular file must be.
        case notRegular
        /// Not one plain name component.
        case badName
        /// The file was closed before the call.
        case closed
        /// Anything else, as a disk that fails.
        case other
    }

    private final class Content: Sendable {
        let kind: Kind
        let code: Int32
        let operation, name, reason: String
        let offset: UInt64?
        init(
            _ kind: Kind,
            _ code: Int32,
            _ operation: String,
            _ name: String,
            _ offset: UInt64?,
            _ reason: String
        ) {
            self.kind = kind
            self.code = code
            self.operation = operation
            self.name = name
            self.offset = offset
            self.reason = reason
        }
    }
    private let content: Content

    /// Joins the parts. `code` is the errno, 0 when no system call was made.
    public init(
        kind: Kind,
        code: Int32,
        operation: String,
        name: String,
        offset: UInt64? = nil,
        reason: String
    ) {
        content = Content(kind, code, operation, name, offset, reason)
    }

    /// What callers decide by.
    public var kind: Kind { content.kind }
    /// The errno; 0 when no system call was made.
    public var code: Int32 { content.code }
    /// The call, as "write" or "rename".
    public var operation: String { content.operation }
    /// The file or directory.
    public var name: String { content.name }
    /// Where in the file, in bytes.
    public var offset: UInt64? { content.offset }
    /// The system's words for the errno.
    public var reason: String { content.reason }

    /// Whether the disk, or the user's share of it, is full.
    public var isNoSpace: Bool { kind == .noSpace }
    /// Whether the user may not do this here.
    public var isPermission: Bool { kind == .permission }
    /// Whether there is no such name.
    public var isMissing: Bool { kind == .missing }
    /// Whether the name is taken.
    public var isExisting: Bool { kind == .exists }
    /// Whether someone else holds the lock.
    public var isHeld: Bool { kind == .held }
}

extension IOError: CustomStringConvertible {
    /// One line: "write of Store.varve at 8192: No space left on device (28)".
    public var description: String {
        let place = offset.map { " at \($0)" } ?? ""
        let number = code == 0 ? "" : " (\(code))"
        return "\(operation) of \(name)\(place): \(reason)\(number)"
    }
}
