// That the simulated disk forgets, tears and fails as it says.
import Testing
import VarveTesting

@Suite("Simulated disk") struct SimulatedDiskTests {
    private func makeFile(_ disk: SimulatedDisk, _ name: String = "a") throws -> any StoreFile {
        try disk.root.openFile(name, mode: .createExclusive)
    }

    private func bytes(_ disk: SimulatedDisk, _ name: String = "a") throws -> [UInt8]? {
        guard try disk.root.exists(name) else { return nil }
        return try disk.root.openFile(name, mode: .read).read(at: FileOffset(0), count: 10_000)
    }

    private func cut(_ disk: SimulatedDisk, _ image: CrashImage = CrashImage()) -> SimulatedDisk {
        SimulatedDisk(disk.state.after(image))
    }

    @Test("Bytes and names last from their syncs on, and a kill costs nothing")
    func forgetsWhatWasNotSynced() throws {
        let disk = SimulatedDisk()
        let file = try makeFile(disk)
        try file.write([1, 2, 3], at: FileOffset(0))
        try file.syncData()
        #expect(try bytes(disk.killed()) == [1, 2, 3])
        #expect(try bytes(cut(disk)) == nil)
        try disk.root.sync()
        try file.write([4], at: FileOffset(5))
        #expect(try bytes(disk) == [1, 2, 3, 0, 0, 4])
        #expect(try bytes(cut(disk)) == [1, 2, 3])
        #expect(try bytes(cut(disk, .everything(of: disk.state))) == [1, 2, 3, 0, 0, 4])
        try disk.root.rename("a", to: "b", replacing: false)
        #expect(try bytes(cut(disk)) == [1, 2, 3])
        #expect(try bytes(cut(disk), "b") == nil)
    }

    @Test("What a failed sync lost stays lost, and each descriptor is told once")
    func failedSyncs() throws {
        let disk = SimulatedDisk()
        let file = try makeFile(disk)
        let other = try disk.root.openFile("a", mode: .readWrite)
        try disk.root.sync()
        try file.write([1, 2, 3], at: FileOffset(0))
        disk.setFault(SimulatedDisk.Fault(first: disk.calls + 1))
        #expect(throws: IOError.self) { try file.syncData() }
        try file.syncData()
        #expect(throws: IOError.self) { try other.syncData() }
        try other.syncData()
        #expect(try bytes(disk) == [1, 2, 3])
        #expect(try bytes(cut(disk)) == [])
    }

    @Test("A name that a failed sync lost stays lost, in the root and in folders")
    func failedDirectorySyncs() throws {
        for folder in ["", "f"] {
            let disk = SimulatedDisk()
            if !folder.isEmpty { _ = try disk.root.directory(folder, create: true) }
            try disk.root.sync()
            func names(_ disk: SimulatedDisk) throws -> [String] {
                let root = disk.root
                return try folder.isEmpty
                    ? root.list() : root.directory(folder, create: false).list()
            }
            let directory =
                try folder.isEmpty ? disk.root : disk.root.directory(folder, create: false)
            _ = try directory.openFile("a", mode: .createExclusive)
            disk.setFault(SimulatedDisk.Fault(first: disk.calls + 1))
            #expect(throws: IOError.self) { try directory.sync() }
            try directory.sync()
            disk.kill()
            let next = try folder.isEmpty ? disk.root : disk.root.directory(folder, create: false)
            try next.sync()
            #expect(try names(disk) == ["a"])
            #expect(try names(cut(disk)) == [])
            // A name that is given anew is durable.
            try next.rename("a", to: "b", replacing: false)
            try next.sync()
            #expect(try names(cut(disk)) == ["b"])
        }
    }

    @Test("A killed process writes no more and holds no lock")
    func kills() throws {
        let disk = SimulatedDisk()
        let file = try makeFile(disk)
        let root = disk.root
        let lock = try root.lock("l", byte: 0, kind: .exclusive, wait: false)
        #expect(throws: IOError.self) {
            try root.lock("l", byte: 0, kind: .shared, wait: false)
        }
        disk.kill()
        #expect(throws: IOError.self) { try file.write([1], at: FileOffset(0)) }
        let next = try disk.root.lock("l", byte: 0, kind: .exclusive, wait: false)
        lock.release()
        #expect(throws: IOError.self) {
            try disk.root.lock("l", byte: 0, kind: .exclusive, wait: false)
        }
        next.release()
    }

    @Test("A recording shows the disk before each call, and its digest follows from the calls")
    func recordings() throws {
        func run() throws -> (DiskRecording, SimulatedDisk) {
            let disk = SimulatedDisk()
            disk.record()
            let file = try makeFile(disk)
            for step in 0..<6 {
                try file.write([UInt8(step + 1)], at: FileOffset(UInt64(step * 700)))
                if step % 3 == 2 { try file.syncData() }
                disk.note(step)
            }
            return (disk.takeRecording(), disk)
        }
        let (recording, disk) = try run()
        #expect(recording.steps.count == 9)
        #expect(Array(recording).map(\.note) == [0, 0, 0, 1, 1, 2, 3, 4, 4, 5])
        #expect(try run().0.digest == recording.digest)
        let last = recording.state(before: recording.steps.count)
        #expect(last.files[1]?.cache == disk.state.files[1]?.cache)
        // Every image holds what was synced and nothing that was never written.
        var random = SeededRandom(seed: 3)
        for call in recording.steps.indices {
            let state = recording.state(before: call + 1)
            for image in state.crashImages(after: recording.steps[call].operation, &random) {
                let left = state.after(image).files[1]?.durable ?? []
                let synced = state.files[1]?.durable ?? []
                #expect(left.count >= synced.count && left[..<synced.count] == synced[...])
                if image.mayLookRotten { continue }
                #expect(left.enumerated().allSatisfy { $1 == 0 || Int($1) == $0 / 700 + 1 })
            }
        }
    }

    @Test("Reads can be refused, flipped and shortened") func misreads() throws {
        let disk = SimulatedDisk()
        let file = try makeFile(disk)
        try file.write([8, 8, 8, 8], at: FileOffset(0))
        func read(_ kind: SimulatedDisk.ReadFault.Kind) throws -> [UInt8] {
            disk.setReadFault(SimulatedDisk.ReadFault(first: 1, count: .max, kind: kind))
            defer { disk.setReadFault(nil) }
            return try file.read(at: FileOffset(0), count: 4)
        }
        #expect(try read(.flippedBit(8)) == [8, 9, 8, 8])
        #expect(try read(.zeros) == [0, 0, 0, 0])
        #expect(try read(.short) == [8, 8])
        #expect(try read(.elsewhere(2)) == [8, 8, 0, 0])
        #expect(throws: IOError.self) { try read(.fails(SimulatedDisk.inputOutput)) }
        #expect(try file.read(at: FileOffset(0), count: 4) == [8, 8, 8, 8])
    }
}
