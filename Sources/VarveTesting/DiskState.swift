// What a simulated disk holds: cache, durable bytes, pending changes, names.
//
// Invariants
// - `cache` is `durable` with every pending change, and with what failed syncs lost: bytes that are
//   neither durable nor pending.
// - Names are pending in groups that arrive whole: a rename is one.

internal import VarveBase

extension SimulatedDisk {
    /// A change of a file that is not durable yet.
    public enum Change: Sendable {
        /// Bytes at an offset; the file grows to hold them.
        case write(Int, [UInt8])
        /// A new length in bytes.
        case cut(Int)
    }

    /// One file.
    public struct File: Sendable {
        /// What reads return.
        public var cache: [UInt8] = []
        /// What a power cut leaves.
        public var durable: [UInt8] = []
        /// Changes that the next sync makes durable, in order.
        public var pending: [Change] = []
        /// Syncs that failed: each descriptor is told once.
        var failedSyncs = 0
        /// Whether `cache` holds bytes that are neither durable nor pending.
        public internal(set) var hasLostBytes = false

        /// An empty file.
        public init() {}
    }

    /// What a name stands for.
    public enum Entry: Hashable, Sendable {
        /// A file, by its number in `State.files`.
        case file(Int)
        /// A folder, by its key in `State.folders`.
        case folder(String)
    }

    /// A name and what it stands for from now on; nil removes it.
    public struct NameChange: Hashable, Sendable {
        /// The name.
        public var name: String
        /// What it stands for.
        public var entry: Entry?

        /// Joins the parts.
        public init(_ name: String, _ entry: Entry?) {
            self.name = name
            self.entry = entry
        }
    }

    /// One folder.
    public struct Folder: Sendable {
        /// Names as the running system sees them.
        public var cache: [String: Entry] = [:]
        /// Names that a power cut leaves.
        public var durable: [String: Entry] = [:]
        /// Names set or removed since the last sync; each group arrives whole.
        public var pending: [[NameChange]] = []

        /// An empty folder.
        public init() {}
    }

    /// All files and folders. A value: a copy costs nothing until it is changed.
    public struct State: Sendable {
        /// Files by number.
        public var files: [Int: File] = [:]
        /// Folders by name; the root has none.
        public var folders: [String: Folder] = ["": Folder()]
        var lastFile = 0

        /// An empty disk.
        public init() {}

        /// The number of a file in a folder, as the running system sees it.
        public func file(_ name: String, in folder: String = "") -> Int? {
            guard case .file(let number)? = folders[folder]?.cache[name] else { return nil }
            return number
        }

        /// Bytes of a file as the running system sees them, fewer where it ends.
        public func read(_ file: Int, at start: UInt64, count: Int) -> [UInt8] {
            guard let bytes = files[file]?.cache, let start = Int(exactly: start),
                start < bytes.count
            else { return [] }
            return Array(bytes[start..<min(bytes.count, start + count)])
        }

        /// Puts bytes into a file, in the cache and on the disk: damage.
        public mutating func overwrite(_ file: Int, at start: Int, _ bytes: [UInt8]) {
            SimulatedDisk.put(bytes, at: start, &files[file, default: File()].cache)
            SimulatedDisk.put(bytes, at: start, &files[file, default: File()].durable)
        }

        /// Whether nothing waits for a sync.
        public var isSynced: Bool {
            files.values.allSatisfy { $0.pending.isEmpty }
                && folders.values.allSatisfy { $0.pending.isEmpty }
        }

        // MARK: Changing

        /// Does what a call does.
        public mutating func apply(_ operation: DiskOperation) {
            switch operation {
            case .write(let file, let start, let bytes):
                SimulatedDisk.put(bytes, at: start, &files[file, default: File()].cache)
                files[file, default: File()].pending.append(.write(start, bytes))
            case .cut(let file, let size):
                SimulatedDisk.resize(&files[file, default: File()].cache, size)
                files[file, default: File()].pending.append(.cut(size))
            case .sync(let file):
                // Taken out, so that its arrays are changed in place.
                guard var synced = files.removeValue(forKey: file) else { return }
                for change in synced.pending { SimulatedDisk.arrive(change, &synced.durable) }
                synced.pending = []
                files[file] = synced
            case .loseSync(let file):
                files[file]?.failedSyncs += 1
                if files[file]?.pending.isEmpty == false { files[file]?.hasLostBytes = true }
                files[file]?.pending = []
            case .dropClean(let file, let seed): dropClean(file, seed)
            case .create(let folder, let name, let file):
                files[file] = File()
                lastFile = max(lastFile, file)
                set(folder, [NameChange(name, .file(file))])
            case .createFolder(let name):
                folders[name] = Folder()
                set("", [NameChange(name, .folder(name))])
            case .name(let folder, let changes): set(folder, changes)
            case .syncFolder(let folder):
                guard var synced = folders.removeValue(forKey: folder) else { return }
                for change in synced.pending.joined() { synced.durable[change.name] = change.entry }
                synced.pending = []
                folders[folder] = synced
            case .loseFolderSync(let folder): folders[folder]?.pending = []
            }
        }

        private mutating func set(_ folder: String, _ changes: [NameChange]) {
            for change in changes { folders[folder]?.cache[change.name] = change.entry }
            folders[folder]?.pending.append(changes)
        }

        /// Clean pages of 4 KiB leave the cache, all, some or none of them: the next read comes
        /// from the disk. Pages with pending changes are not clean.
        private mutating func dropClean(_ number: Int, _ seed: UInt64) {
            guard var file = files.removeValue(forKey: number) else { return }
            defer { files[number] = file }
            guard file.hasLostBytes else { return }
            var random = SeededRandom(seed: seed)
            let chance = [0, 5, 10][Int(random.next() % 3)]
            let page = 4096
            for start in stride(from: 0, to: file.cache.count, by: page) {
                let end = min(start + page, file.cache.count)
                let isDirty = file.pending.contains { change in
                    switch change {
                    case .cut: true
                    case .write(let at, let bytes): at < end && at + bytes.count > start
                    }
                }
                if isDirty || Int(random.next() % 10) >= chance { continue }
                var bytes = [UInt8](repeating: 0, count: end - start)
                if start < file.durable.count {
                    let known = min(end, file.durable.count)
                    bytes.overwrite(at: 0, with: file.durable, start..<known)
                }
                SimulatedDisk.put(bytes, at: start, &file.cache)
            }
        }

        /// Why no store may make this call; nil when it may.
        func violation(_ operation: DiskOperation, _ name: String) -> String? {
            switch operation {
            case .write(let file, let start, let bytes):
                guard let old = files[file]?.cache else { return nil }
                return old.changesZerosOnly(by: bytes, at: start)
                    ? nil : "bytes of \(name) from \(start) on are written over"
            case .cut(let file, let size):
                guard let old = files[file]?.cache, old.count > size,
                    old.countWithoutTrailingZeros > size
                else { return nil }
                return "bytes of \(name) behind \(size) are cut off"
            default: return nil
            }
        }
    }

    static func arrive(_ change: Change, _ bytes: inout [UInt8]) {
        switch change {
        case .write(let start, let new): put(new, at: start, &bytes)
        case .cut(let size): resize(&bytes, size)
        }
    }

    // Block copies: element by element, unoptimised tests would spend most of their time here.
    static func put(_ bytes: [UInt8], at start: Int, _ target: inout [UInt8]) {
        if target.count < start + bytes.count { resize(&target, start + bytes.count) }
        target.overwrite(at: start, with: bytes, 0..<bytes.count)
    }

    static func resize(_ bytes: inout [UInt8], _ size: Int) {
        if size < bytes.count {
            bytes.removeLast(bytes.count - size)
        } else {
            bytes += [UInt8](repeating: 0, count: size - bytes.count)
        }
    }
}
