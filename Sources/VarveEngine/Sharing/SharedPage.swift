// The bytes of the lock file through which processes tell each other of commits.
//
// Invariants
// - Written by the holder of the writer's lock alone, after the sync of what it names.
// - Whatever is wrong with it, nothing but freshness is lost.

internal import Synchronization
internal import VarveBase
internal import VarveFormat
internal import VarveIO

final class SharedPage: Sendable {
    private let file: any StoreFile
    private let last = Mutex<SharedState?>(nil)
    /// Where this process begins to count, so that two writers in turn do not meet.
    private let start: UInt64

    /// The lock file's bytes, or nil where no other process can be.
    ///
    /// - Parameter isReader: a reader makes no file: without a writer there is nothing to read.
    static func open(
        _ directory: any StoreDirectory,
        _ name: String,
        isReader: Bool,
        start: UInt64
    ) -> SharedPage? {
        guard directory.isSharedBetweenProcesses else { return nil }
        do throws(IOError) {
            let file = try directory.openFile(name, mode: isReader ? .read : .readWrite)
            return SharedPage(file, start)
        } catch {
            // Read-only media, or no writer yet: what the store file says is enough.
            return nil
        }
    }

    private init(_ file: any StoreFile, _ start: UInt64) {
        self.file = file
        self.start = start
    }

    /// What is written there now; nil when it cannot be used.
    func read() -> SharedState? {
        do throws(IOError) {
            return SharedState(
                decoding: try file.read(at: FileOffset(0), count: SharedState.length)
            )
        } catch {
            return nil
        }
    }

    /// Tells of a state that is on disk; costs nothing when it was told before.
    func write(_ state: StoreState, durableEnd: FileOffset) {
        let header = state.generation.header
        let bytes = last.withLock { last -> [UInt8]? in
            if let last, last.frame == state.frame, last.fileID == header.fileID { return nil }
            let next = SharedState(
                fileID: header.fileID,
                generation: header.generation,
                number: state.number,
                frame: state.frame,
                durableEnd: durableEnd,
                sequence: (last?.sequence ?? start) &+ 1
            )
            last = next
            return next.encoded()
        }
        guard let bytes else { return }
        // A reader that does not hear of this commit hears of the next one.
        try? file.write(bytes, at: FileOffset(0))
    }

    func close() { file.close() }
}

extension Engine {
    static func lockName(of fileName: String) -> String {
        String(fileName.dropLast(fileSuffix.count)) + lockSuffix
    }
    var lockName: String { Self.lockName(of: fileName) }

    /// Tells other processes of the published state once it is on disk.
    func share(durableEnd: FileOffset) {
        guard let page else { return }
        let state = published.withLock { $0.state }
        if state.frame < durableEnd { page.write(state, durableEnd: durableEnd) }
    }
}
