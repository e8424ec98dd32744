// The target of the blob directory: entries with any names, of any kind, in a real folder.
//
// - Nothing outside of the store's own names is changed, removed or followed.
// - A blob's bytes are those of its digest, or an error says why not.

import Foundation
import VarveTesting

enum NamesTarget {
    /// A closed store with a blob of 1,500 bytes in a file, and the blob's name.
    private static let store: (bytes: [UInt8], blob: [UInt8], name: String)? = {
        guard let maker = try? SeedMaker(), case .blob(let blob)? = try? maker.blob(1500),
            (try? maker.put("Item", [(1, [("blob", .blob(blob))])])) != nil,
            (try? maker.store.close()) != nil
        else { return nil }
        let state = maker.disk.state
        let name = blob.digest.hexText
        guard let file = state.file(name, in: "test.varve-blobs"),
            let bytes = state.files[file]?.cache
        else { return nil }
        return (maker.bytes, bytes, name)
    }()

    static func run(_ input: [UInt8]) throws {
        guard let store else { throw Violation("the store of this target cannot be made") }
        var reader = InputReader(input)
        let files = FileManager.default
        let base = files.temporaryDirectory.appending(
            path: "varve-names-\(ProcessInfo.processInfo.processIdentifier)-\(UUID().uuidString)"
        )
        defer { try? files.removeItem(at: base) }
        let folder = base.appending(path: "test.varve-blobs")
        try files.createDirectory(at: folder, withIntermediateDirectories: true)
        let outside = base.appending(path: "outside")
        try Data(store.blob).write(to: outside)
        try Data(store.bytes).write(to: base.appending(path: "test.varve"))
        let holdsBlob = reader.byte() & 1 == 0
        if holdsBlob { try Data(store.blob).write(to: folder.appending(path: store.name)) }
        var planted: [String] = []
        for _ in 0..<6 where !reader.isAtEnd {
            let kind = reader.byte()
            // Its own name, or one from the input.
            let text = reader.take(Int(reader.byte()))
            let name = kind >= 6 ? store.name : String(decoding: text, as: UTF8.self)
            guard !name.isEmpty, name != ".", name != "..", name.utf8.count <= 200,
                !name.utf8.contains(0), !name.utf8.contains(0x2F),
                !files.fileExists(atPath: folder.path + "/" + name)
            else { continue }
            guard plant(kind % 6, folder.path + "/" + name, outside.path, &reader) else { continue }
            planted.append(name)
        }
        try work(base, store.blob)
        guard try Data(contentsOf: outside) == Data(store.blob) else {
            throw Violation("a file outside of the blob directory was changed")
        }
        let left = Set(try files.contentsOfDirectory(atPath: folder.path))
        for name in planted where !isOwn(name) && !left.contains(name) {
            throw Violation("the foreign entry \(name.debugDescription) was removed")
        }
    }

    private static func plant(
        _ kind: UInt8,
        _ path: String,
        _ outside: String,
        _ reader: inout InputReader
    ) -> Bool {
        let files = FileManager.default
        switch kind {
        case 0: return files.createFile(atPath: path, contents: Data(reader.take(20)))
        case 1:
            return (try? files.createSymbolicLink(atPath: path, withDestinationPath: outside))
                != nil
        case 2:
            let nowhere = outside + "-nothing"
            return (try? files.createSymbolicLink(atPath: path, withDestinationPath: nowhere))
                != nil
        case 3:
            return (try? files.createDirectory(atPath: path, withIntermediateDirectories: false))
                != nil
        case 4: return (try? files.linkItem(atPath: outside, toPath: path)) != nil
        default: return files.createFile(atPath: path, contents: nil)
        }
    }

    /// Names that the store gives: blobs, and files of writers.
    private static func isOwn(_ name: String) -> Bool {
        if BlobDigest(hexText: name) != nil { return true }
        let digits = name.dropFirst(4)
        return name.hasPrefix("new-") && digits.utf8.count == 16
            && digits.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    private static func work(_ base: URL, _ content: [UInt8]) throws {
        var options = StoreChecks.options()
        options.engine.turnMilliseconds = 0
        let location = StoreLocation.file(directory: base.path, name: "test")
        guard let store = try? RecordStore.openAsStored(location, options: options) else { return }
        defer { try? store.close() }
        let snapshot = try store.snapshot()
        for entity in snapshot.schema.entities {
            for id in (try? snapshot.fetchIDs(RecordQuery(entity: entity.id))) ?? [] {
                guard let row = try? snapshot.row(entity.id, id) else { continue }
                for attribute in entity.attributes where attribute.type == .blob {
                    guard case .blob(let blob)? = try? snapshot.value(of: row, attribute.column),
                        let bytes = try? snapshot.storage.blob(blob)?.readAll()
                    else { continue }
                    if bytes != content { throw Violation("a blob's bytes are other ones") }
                }
            }
        }
        do { try StoreChecks.commit(store) } catch let error where !(error is Violation) {}
        do { try store.engine.makeBlobWriter(externalLimit: 10).append([1, 2, 3]) } catch {}
    }
}
