// What an error of a file that is newer, damaged or gone advises is done, and helps.

import Foundation
import Testing
import VarveEngine
import VarveFormat
import VarveIO
import VarveInspection
import VarveObjects

@testable import VarveObjects

/// A folder of another user: this process may read it and make nothing in it.
private final class ForeignFolder: StoreDirectory {
    private let base: PosixDirectory
    init(_ path: String) throws { base = try PosixDirectory.open(path: path) }

    private func refuse(_ name: String) -> IOError {
        IOError(kind: .permission, code: 13, operation: "open", name: name, reason: "foreign")
    }
    var name: String { base.name }
    var isSharedBetweenProcesses: Bool { true }
    func openFile(_ name: String, mode: OpenMode) throws(IOError) -> any StoreFile {
        if mode != .read { throw refuse(name) }
        return try base.openFile(name, mode: mode)
    }
    func exists(_ name: String) throws(IOError) -> Bool { try base.exists(name) }
    func rename(_ from: String, to: String, replacing: Bool) throws(IOError) { throw refuse(from) }
    func remove(_ name: String) throws(IOError) { throw refuse(name) }
    func removeDirectory(_ name: String) throws(IOError) { throw refuse(name) }
    func list() throws(IOError) -> [String] { try base.list() }
    func sync() throws(IOError) { try base.sync() }
    func directory(_ name: String, create: Bool) throws(IOError) -> any StoreDirectory {
        if create { throw refuse(name) }
        return try base.directory(name, create: false)
    }
    func openLocks(_ name: String, isReader: Bool) throws(IOError) -> (any LockBytes)? {
        try base.openLocks(name, isReader: true)
    }
    func lock(
        _ name: String,
        byte: UInt64,
        kind: LockKind,
        wait: Bool
    ) throws(IOError) -> any FileLock {
        throw refuse(name)
    }
}

@Suite(.verified) struct AdviceForFilesTests {
    private static let bytes = Data((0..<50_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    private static let readOnly = ContainerOptions(isReadOnly: true)

    /// A closed store of some items, and a picture with a blob file.
    private func filled() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        let container = try folder.open()
        try makeItems(500, in: container)
        do {
            let context = container.newContext()
            let picture = Picture(in: context)
            picture.data = try context.makeBlob(Self.bytes, for: Picture.columns.data)
            try context.save()
        }
        try container.closeNow()
        return folder
    }

    // MARK: Newer versions

    @Test(arguments: [false, true]) func aStoreOfANewerVersion(mayBeRead: Bool) throws {
        let folder = try filled()
        let old = try Data(contentsOf: folder.store)
        var header = try FileHeader(decoding: [UInt8](old.prefix(FileHeader.length)))
        header.writerNeeds = FileHeader.newestVersion + 1
        if !mayBeRead { header.readerNeeds = header.writerNeeds }
        let newer = Data(header.encoded() + header.encoded()) + old.dropFirst(2 * FileHeader.length)
        try newer.write(to: folder.store)
        let error = advised(.formatTooNew, "Update the app: a newer version wrote this store") {
            _ = try folder.open()
        }
        // "Where the message says so, isReadOnly reads it until then".
        #expect(error?.message.contains("it can be opened for reading") == mayBeRead)
        if mayBeRead {
            let reader = try folder.open(Self.readOnly)
            #expect(try reader.newContext().count(Item.all) == 500)
            try reader.closeNow()
        } else {
            advised(.formatTooNew, "Update the app") { _ = try folder.open(Self.readOnly) }
        }
        // "it is as it was": the updated app, to which that version is not too new, opens it.
        #expect(try Data(contentsOf: folder.store) == newer)
        try old.write(to: folder.store)
        let updated = try folder.open()
        try makeItems(1, in: updated)
        #expect(try updated.newContext().count(Item.all) == 501)
        try updated.closeNow()
    }

    // MARK: Readers that nobody knows of

    @Test func aBlobThatAWriterSweptUnderAReader() throws {
        let folder = try filled()
        let lock = folder.store.path + "-lock"
        try FileManager.default.removeItem(atPath: lock)
        func reader() throws -> PersistentContainer {
            try PersistentContainer.openNow(
                .directory(ForeignFolder(folder.url.path), name: "test"),
                place: folder.store.path,
                schema: TestSchema.self,
                options: Self.readOnly
            )
        }
        func change(_ body: (ManagedObjectContext, Picture) throws -> Void) throws {
            let writer = try folder.open()
            do {
                let context = writer.newContext()
                try body(context, try #require(try context.fetch(Picture.all).first))
                try context.save()
            }
            try writer.closeNow()
        }
        let first = try reader()
        #expect(first.readsOneMoment)
        func data(_ container: PersistentContainer) throws -> Blob? {
            let context = container.newContext()
            return try context.fetch(Picture.all).first?.data
        }
        let held = try #require(try data(first))
        #expect(try held.readAll() == Self.bytes)
        let other = Data(Self.bytes.reversed())
        try change { context, picture in
            picture.data = try context.makeBlob(other, for: Picture.columns.data)
        }
        advised(.blobSwept, "Open the store again: it then reads what is there now") {
            _ = try held.readAll()
        }
        // "and follows the process that writes if the file NAME-lock is there or can be made".
        #expect(FileManager.default.fileExists(atPath: lock))
        let second = try reader()
        #expect(!second.readsOneMoment)
        let now = try #require(try data(second))
        #expect(try now.readAll() == other)
        try change { _, picture in picture.caption = "followed" }
        let context = second.newContext()
        #expect(try context.fetch(Picture.all).map(\.caption) == ["followed"])
        context.reset()
        // Writers know of it: what it holds stays.
        try change { _, picture in picture.data = nil }
        #expect(try now.readAll() == other)
        try second.closeNow()
        try first.closeNow()
    }

    // MARK: Damage

    /// A byte of each frame that is needed changes in turn: of pages, and of what opening needs.
    @Test(.damagesStores("bytes of the file are changed")) func aDamagedFile() throws {
        let folder = try filled()
        let sound = try Data(contentsOf: folder.store)
        var places: [Int] = []
        try StoreObserver.open(folder.store.path).frames { entry in
            if entry.classification == .live { places.append(Int(entry.place)) }
            return true
        }
        var (refused, kept) = (0, 0)
        for place in places {
            var bytes = sound
            bytes[place + 45] ^= 4
            try bytes.write(to: folder.store)
            func read() -> StoreError? {
                do {
                    let container = try folder.open(Self.readOnly)
                    defer { try? container.closeNow() }
                    _ = try container.newContext().fetch(Item.all.returningFaults(false))
                    return nil
                } catch { return error as? StoreError }
            }
            guard let error = read() else { continue }
            refused += 1
            #expect(error.code == .damaged)
            let advice = error.suggestion ?? "none"
            #expect(advice.contains("Keep a copy of the store, its file and its folder of blobs"))
            let out = folder.url.appending(path: "out \(place).varve")
            #expect(advice.contains("varve verify \(folder.store.path) says what is damaged"))
            #expect(advice.contains("varve recover \(folder.store.path) OUT"))
            // What the two commands do.
            let location = StoreLocation.file(directory: folder.url.path, name: "test.varve")
            let observer = try StoreObserver.open(location)
            let report = try observer.verify(level: .normal)
            #expect(!report.problems.isEmpty, "place \(place)")
            let result = Result { try observer.salvage(toPath: out.path) }
            if case .failure(let error) = result {
                // Of the catalog there is one copy in so small a store.
                #expect("\(error)".contains("no copy of the stored schema"), "\(error)")
                continue
            }
            let salvaged = try result.get()
            #expect(salvaged.isWritten)
            let container = try PersistentContainer.openNow(at: out, schema: TestSchema.self)
            let rest = try container.newContext().count(Item.all)
            if rest > 0 { kept += 1 }
            let lost = salvaged.entities.first { $0.name == "Item" }?.lost ?? 0
            #expect(rest + Int(lost) == 500, "place \(place): \(rest) and \(lost)")
            try makeItems(1, in: container)
            try container.closeNow()
        }
        #expect(refused > 2 && kept > 2, "\(refused) refused, \(kept) recovered")
    }

    @Test(
        .damagesStores("the blob's file is removed or changed"),
        arguments: ["put back", "another", "the same"]
    )
    func aBlobThatIsGoneOrDamaged(way: String) throws {
        for isDamaged in [false, true] {
            let folder = try filled()
            let blobs = folder.url.appending(path: "test.varve-blobs")
            let name = try #require(
                try FileManager.default.contentsOfDirectory(atPath: blobs.path).first
            )
            let (file, copy) = (blobs.appending(path: name), folder.url.appending(path: "copy"))
            try FileManager.default.copyItem(at: file, to: copy)
            if isDamaged {
                var content = try Data(contentsOf: file)
                content[30_000] ^= 1
                try content.write(to: file)
            } else {
                try FileManager.default.removeItem(at: file)
            }
            let container = try folder.open()
            do {
                let context = container.newContext()
                let picture = try #require(try context.fetch(Picture.all).first)
                let error = advised(
                    isDamaged ? .blobDamaged : .blobMissing,
                    "Set the property anew, or put the blob's file back from a copy"
                ) { _ = try picture.data?.readAll() }
                #expect(error?.suggestion?.contains("varve verify \(folder.store.path)") == true)
                // It names the object and the blob.
                let observer = try StoreObserver.open(
                    .file(directory: folder.url.path, name: "test.varve")
                )
                let report = try observer.verify(level: .full)
                let problem = try #require(report.problems.first)
                #expect("\(problem)".contains(name.prefix(8)), "\(problem)")
                #expect("\(problem)".contains("Picture:"), "\(problem)")
                let other = Data(Self.bytes.reversed())
                switch way {
                case "put back":
                    try? FileManager.default.removeItem(at: file)
                    try FileManager.default.copyItem(at: copy, to: file)
                default:
                    let new = way == "another" ? other : Self.bytes
                    picture.data = try context.makeBlob(new, for: Picture.columns.data)
                    try context.save()
                }
                let expected = way == "another" ? other : Self.bytes
                let fresh = container.newContext()
                let stored = try #require(try fresh.fetch(Picture.all).first?.data)
                for blob in [picture.data, stored] {
                    var content: Data?
                    let failure = code { content = try blob?.readAll() }
                    #expect(failure == nil && content == expected, "damaged: \(isDamaged)")
                }
            }
            try container.closeNow()
        }
    }
}
