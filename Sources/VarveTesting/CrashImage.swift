// What a power cut may leave of the changes that were pending.
//
// Invariants
// - A byte is old or new, or, inside an unsynced write that was torn, anything; bytes outside of
//   pending writes stay as they are.
// - A group of names arrives whole or not at all.

internal import VarveBase

/// Which pending changes of a disk arrive when the power goes, and how.
public struct CrashImage: Hashable, Sendable {
    /// What becomes of one pending change of a file.
    public enum Fate: Hashable, Sendable {
        /// Nothing of it arrives.
        case lost
        /// All of it arrives.
        case whole
        /// Of a write, its first bytes arrive.
        case prefix(Int)
        /// Of a write, some of its 512-byte sectors arrive; the seed says which.
        case sectors(UInt64)
        /// A write arrives with other bytes in a part of it; the seed says where and which.
        case garbage(UInt64)
        /// Of a write, the file's new length arrives, with zeros where nothing was.
        case length
    }

    /// By file, one for each pending change; a change that is not listed is lost.
    public var fates: [Int: [Fate]] = [:]
    /// By folder, whether each pending group of names arrives; what is not listed is lost.
    public var names: [String: [Bool]] = [:]

    /// Nothing arrives.
    public init() {}

    /// Whether bytes inside a sector may be wrong: then a sound log may look like one that has
    /// rotted, and opening it may be refused.
    public var mayLookRotten: Bool {
        fates.values.joined().contains { fate in
            switch fate {
            case .garbage: true
            case .prefix(let bytes): bytes % 512 != 0
            default: false
            }
        }
    }

    /// Every pending change arrives.
    public static func everything(of state: SimulatedDisk.State) -> CrashImage {
        var image = CrashImage()
        for (number, file) in state.files where !file.pending.isEmpty {
            image.fates[number] = [Fate](repeating: .whole, count: file.pending.count)
        }
        for (name, folder) in state.folders where !folder.pending.isEmpty {
            image.names[name] = [Bool](repeating: true, count: folder.pending.count)
        }
        return image
    }

    /// Changes arrive or not, whole or torn at sectors.
    public static func random(
        of state: SimulatedDisk.State,
        _ random: inout some RandomNumberGenerator
    ) -> CrashImage {
        let chance = [0, 2, 5, 8, 10][Int.random(in: 0..<5, using: &random)]
        var image = CrashImage()
        for number in state.files.keys.sorted() {
            guard let file = state.files[number], !file.pending.isEmpty else { continue }
            image.fates[number] = file.pending.map { change in
                let arrives = Int.random(in: 0..<10, using: &random) < chance
                guard case .write = change, Int.random(in: 0..<3, using: &random) == 0 else {
                    return arrives ? .whole : .lost
                }
                return .sectors(UInt64.random(in: 0 ... .max, using: &random))
            }
        }
        for name in state.folders.keys.sorted() {
            guard let folder = state.folders[name], !folder.pending.isEmpty else { continue }
            image.names[name] = folder.pending.map { _ in
                Int.random(in: 0..<10, using: &random) < chance
            }
        }
        return image
    }
}

extension CrashImage: CustomStringConvertible {
    /// One line: "file 2: whole lost; names of : yes no".
    public var description: String {
        let files = fates.keys.sorted().map { number in
            "file \(number): "
                + (fates[number] ?? []).map { "\($0)" }.joined(separator: " ")
        }
        let folders = names.keys.sorted().map { name in
            "names of \(name)/: "
                + (names[name] ?? []).map { $0 ? "arrive" : "lost" }.joined(separator: " ")
        }
        let text = (files + folders).joined(separator: "; ")
        return text.isEmpty ? "nothing pending arrives" : text
    }
}

extension SimulatedDisk.State {
    /// The disk after a power cut, with what arrived.
    /// - Complexity: O(bytes of files with pending changes).
    public func after(_ image: CrashImage) -> SimulatedDisk.State {
        var result = self
        for (number, file) in files {
            var left = SimulatedDisk.File()
            left.durable = file.durable
            for (change, fate) in zip(file.pending, image.fates[number] ?? []) {
                Self.arrive(change, fate, &left.durable)
            }
            left.cache = left.durable
            result.files[number] = left
        }
        for (name, folder) in folders {
            var left = SimulatedDisk.Folder()
            left.durable = folder.durable
            for (group, arrives) in zip(folder.pending, image.names[name] ?? []) where arrives {
                for change in group { left.durable[change.name] = change.entry }
            }
            left.cache = left.durable
            result.folders[name] = left
        }
        return result
    }

    private static func arrive(
        _ change: SimulatedDisk.Change,
        _ fate: CrashImage.Fate,
        _ bytes: inout [UInt8]
    ) {
        guard case .write(let start, let new) = change else {
            if fate != .lost { SimulatedDisk.arrive(change, &bytes) }
            return
        }
        switch fate {
        case .lost: return
        case .whole: SimulatedDisk.put(new, at: start, &bytes)
        case .prefix(let count): SimulatedDisk.put(Array(new.prefix(count)), at: start, &bytes)
        case .length:
            if bytes.count < start + new.count { SimulatedDisk.resize(&bytes, start + new.count) }
        case .sectors(let seed):
            var random = SeededRandom(seed: seed)
            var position = 0
            while position < new.count {
                let end = min(new.count, ((start + position) / 512 + 1) * 512 - start)
                if random.next() % 2 == 0 {
                    SimulatedDisk.put(Array(new[position..<end]), at: start + position, &bytes)
                }
                position = end
            }
        case .garbage(let seed):
            var random = SeededRandom(seed: seed)
            var torn = new
            guard !torn.isEmpty else { return }
            let from = Int(random.next() % UInt64(torn.count))
            let length = 1 + Int(random.next() % UInt64(min(600, torn.count - from)))
            for (index, byte) in random.bytes(length).enumerated() { torn[from + index] = byte }
            SimulatedDisk.put(torn, at: start, &bytes)
        }
    }

    // MARK: Enumerating

    /// The pending changes of files: file and position, files ascending.
    private var pendingChanges: [(file: Int, index: Int)] {
        files.keys.sorted().flatMap { number in
            (files[number]?.pending.indices ?? 0..<0).map { (number, $0) }
        }
    }

    /// Images worth a look at after a call: none and all of the pending changes, and, when the call
    /// left a change pending, that one with every subset of up to five others (else sixteen at
    /// random), torn at sectors and at a byte, with garbage, with its length alone; names as a
    /// prefix and as subsets. Images without the new change came after the calls before it.
    ///
    /// - Parameters:
    ///   - operation: the call; nil: none, the disk as it is.
    ///   - most: images at most; which ones are left out is by chance.
    ///   - random: what decides.
    public func crashImages(
        after operation: DiskOperation?,
        _ random: inout SeededRandom,
        most: Int = 48
    ) -> [CrashImage] {
        let all = CrashImage.everything(of: self)
        var images = [CrashImage()]
        if all != CrashImage() { images.append(all) }
        var others: [CrashImage] = []
        switch operation {
        case .write(let file, _, _), .cut(let file, _):
            let index = (files[file]?.pending.count ?? 0) - 1
            if index >= 0 {
                others = subsets(with: (file, index), &random)
                others += tears(of: (file, index), all, &random)
            }
        case .create, .createFolder, .name: others = nameSubsets(all, &random)
        default: break
        }
        while images.count + others.count > most {
            others.remove(at: Int(random.next() % UInt64(others.count)))
        }
        return images + others
    }

    private func image(
        _ changes: [(file: Int, index: Int)],
        _ random: inout SeededRandom,
        arrives: (Int) -> Bool
    ) -> CrashImage {
        var image = CrashImage()
        for (place, change) in changes.enumerated() {
            image.fates[change.file, default: []].append(arrives(place) ? .whole : .lost)
        }
        let kind = random.next() % 3
        for name in folders.keys.sorted() {
            guard let folder = folders[name], !folder.pending.isEmpty else { continue }
            image.names[name] = folder.pending.map { _ in
                kind == 0 ? true : kind == 1 ? false : random.next() % 2 == 0
            }
        }
        return image
    }

    private func subsets(
        with new: (file: Int, index: Int),
        _ random: inout SeededRandom
    ) -> [CrashImage] {
        let changes = pendingChanges
        guard let place = changes.firstIndex(where: { $0 == new }) else { return [] }
        if changes.count <= 6 {
            return (0..<(1 << changes.count)).filter { $0 & (1 << place) != 0 }.map { mask in
                image(changes, &random) { mask & (1 << $0) != 0 }
            }
        }
        var images = [image(changes, &random) { $0 == place }]
        for missing in changes.indices where missing != place {
            images.append(image(changes, &random) { $0 != missing })
        }
        for _ in 0..<16 {
            var bits = random
            images.append(image(changes, &random) { $0 == place || bits.next() % 2 == 0 })
        }
        return images
    }

    private func tears(
        of new: (file: Int, index: Int),
        _ all: CrashImage,
        _ random: inout SeededRandom
    ) -> [CrashImage] {
        guard case .write(let start, let bytes)? = files[new.file]?.pending[new.index] else {
            return []
        }
        let isZeros = bytes.allSatisfy { $0 == 0 }
        var fates: [CrashImage.Fate] = [.length]
        if !isZeros {
            // Where sectors end inside the write.
            let cuts = Array(stride(from: 512 - start % 512, to: bytes.count, by: 512))
            let step = max(1, cuts.count / 8)
            fates += stride(from: 0, to: cuts.count, by: step).map { .prefix(cuts[$0]) }
            fates += (0..<3).map { _ in .sectors(random.next()) }
            fates.append(.prefix(1 + Int(random.next() % UInt64(bytes.count))))
        }
        fates.append(.garbage(random.next()))
        return fates.map { fate in
            // After all the others, or beside some of them.
            let changes = pendingChanges
            var bits = random
            var torn =
                random.next() % 2 == 0
                ? all : image(changes, &random) { _ in bits.next() % 2 == 0 }
            torn.fates[new.file, default: []][new.index] = fate
            return torn
        }
    }

    private func nameSubsets(_ all: CrashImage, _ random: inout SeededRandom) -> [CrashImage] {
        var images: [CrashImage] = []
        for name in folders.keys.sorted() {
            let count = folders[name]?.pending.count ?? 0
            guard count > 0 else { continue }
            for prefix in 0...count {
                for whole in [true, false] {
                    var image = whole ? all : CrashImage()
                    image.names = all.names
                    image.names[name] = (0..<count).map { $0 < prefix }
                    images.append(image)
                }
            }
            for _ in 0..<4 {
                var image = all
                image.names[name] = (0..<count).map { _ in random.next() % 2 == 0 }
                images.append(image)
            }
        }
        return images
    }
}
