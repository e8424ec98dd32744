// A row as trees hold it.

public import VarveBase

/// One row as a commit holds it.
public struct StoredRow: Sendable {
    /// The commit that last changed the row.
    public let version: CommitNumber
    /// The row in the encoding of `RowCoding`.
    public let bytes: [UInt8]

    /// Joins a version and a row.
    public init(version: CommitNumber, bytes: [UInt8]) {
        self.version = version
        self.bytes = bytes
    }
}
