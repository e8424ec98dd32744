// Reading a page and making its node, apart: one thread reads in order, several decode.
//
// Invariants
// - What comes out is what `NodeCache` would have loaded, or the error that it would have thrown.

internal import VarveBase
internal import VarveFormat

/// A page as it was read, or the node that needs no reading.
enum UndecodedPage: Sendable {
    case node(TreeNode)
    case bytes([UInt8], PageAddress, rows: UInt64)
    case failure(EngineError)

    /// Reads the page of a child unless the child is in memory only.
    init(_ pointer: ChildPointer, _ log: LogReader) {
        if let node = pointer.node {
            self = .node(node)
            return
        }
        guard let address = pointer.address else {
            preconditionFailure("a child is in memory or in the file")
        }
        do throws(EngineError) {
            self = .bytes(try log.bytes(of: address, kind: .page), address, rows: pointer.rows)
        } catch {
            self = .failure(error)
        }
    }

    /// Checks the page and makes the node: the costly part, for any thread.
    func decoded(
        _ log: LogReader,
        _ tree: TreeID,
        _ level: Int
    ) -> Result<TreeNode, EngineError> {
        switch self {
        case .node(let node): return .success(node)
        case .failure(let error): return .failure(error)
        case .bytes(let bytes, let address, let rows):
            do throws(EngineError) {
                let frame = try log.frame(address, kind: .page, bytes: bytes)
                return .success(try Self.node(frame, log, tree, level, rows))
            } catch {
                return .failure(error)
            }
        }
    }

    private static func node(
        _ frame: FrameBytes,
        _ log: LogReader,
        _ tree: TreeID,
        _ level: Int,
        _ rows: UInt64
    ) throws(EngineError) -> TreeNode {
        let node = try log.node(frame, tree: tree, level: level)
        guard node.rows == rows, node.count > 0 else {
            throw .damaged(
                "page \(frame.offset.frameName) counts \(node.rows) entries, its parent \(rows)",
                place: frame.offset
            )
        }
        return node
    }
}
