// What happened on a simulated disk, call by call.

/// A call that changed a simulated disk.
public enum DiskOperation: Sendable {
    /// Bytes written to a file at an offset.
    case write(file: Int, at: Int, [UInt8])
    /// A file's new length in bytes.
    case cut(file: Int, to: Int)
    /// A file's pending changes became durable.
    case sync(file: Int)
    /// A sync failed: pending changes stay in the cache and never become durable.
    case loseSync(file: Int)
    /// The system was asked to forget what it need not write.
    case dropClean(file: Int, seed: UInt64)
    /// A new, empty file.
    case create(folder: String, name: String, file: Int)
    /// A new folder in the root.
    case createFolder(String)
    /// Names set and removed at once: a rename, a removal.
    case name(folder: String, [SimulatedDisk.NameChange])
    /// A folder's pending names became durable.
    case syncFolder(String)
    /// A folder's sync failed: pending names stay for as long as the system runs.
    case loseFolderSync(String)

    /// Bytes that are written.
    public var bytes: Int { if case .write(_, _, let bytes) = self { bytes.count } else { 0 } }
    var kind: SimulatedDisk.Fault.CallKind {
        switch self {
        case .write: .write
        case .sync, .loseSync, .syncFolder, .loseFolderSync: .sync
        case .cut, .dropClean, .create, .createFolder, .name: .other
        }
    }
    /// The byte after the last one that is written.
    var end: Int { if case .write(_, let at, let bytes) = self { at + bytes.count } else { 0 } }
}

extension DiskOperation: CustomStringConvertible {
    /// One line: "write file 2 at 8192, 512 bytes".
    public var description: String {
        switch self {
        case .write(let file, let at, let bytes):
            "write file \(file) at \(at), \(bytes.count) bytes"
                + (bytes.allSatisfy { $0 == 0 } ? " of zeros" : "")
        case .cut(let file, let size): "cut file \(file) to \(size)"
        case .sync(let file): "sync file \(file)"
        case .loseSync(let file): "failed sync of file \(file)"
        case .dropClean(let file, _): "drop clean pages of file \(file)"
        case .create(let folder, let name, let file): "create \(folder)/\(name) as file \(file)"
        case .createFolder(let name): "create folder \(name)"
        case .name(let folder, let changes):
            "names in \(folder)/: "
                + changes.map { "\($0.name) \($0.entry == nil ? "removed" : "set")" }
                .joined(separator: ", ")
        case .syncFolder(let folder): "sync folder \(folder)/"
        case .loseFolderSync(let folder): "failed sync of folder \(folder)/"
        }
    }
}

/// The calls that changed a disk, with the disk as it was before the first.
///
/// As a sequence: the disk before each call, and after the last one, with the note of that time
/// (see `SimulatedDisk.note`). Each step costs what the call cost.
public struct DiskRecording: Sendable, Sequence {
    /// One call.
    public struct Step: Sendable {
        /// What it did.
        public let operation: DiskOperation
        /// The note when it was made.
        public let note: Int
    }
    /// The disk before the first call.
    public let start: SimulatedDisk.State
    /// The calls.
    public private(set) var steps: [Step] = []
    /// The note when the recording ended.
    public internal(set) var lastNote = 0

    init(start: SimulatedDisk.State) { self.start = start }

    mutating func add(_ operation: DiskOperation, _ note: Int) {
        steps.append(Step(operation: operation, note: note))
    }

    /// The disk before the call of a number, counted from 0.
    /// - Complexity: O(calls before it).
    public func state(before call: Int) -> SimulatedDisk.State {
        var state = start
        for step in steps[..<call] { state.apply(step.operation) }
        return state
    }

    /// A number that follows from every call and every byte: the same seed gives the same one.
    /// - Complexity: O(bytes written).
    public var digest: UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        func add(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        for step in steps {
            for byte in "\(step.operation) \(step.note)\n".utf8 { add(byte) }
            if case .write(_, _, let bytes) = step.operation { for byte in bytes { add(byte) } }
        }
        return hash
    }

    /// The disk before each call and after the last one.
    public func makeIterator() -> AnyIterator<(state: SimulatedDisk.State, note: Int)> {
        var state = start
        var index = 0
        return AnyIterator {
            defer { index += 1 }
            if index > steps.count { return nil }
            if index > 0 { state.apply(steps[index - 1].operation) }
            return (state, index < steps.count ? steps[index].note : lastNote)
        }
    }
}
