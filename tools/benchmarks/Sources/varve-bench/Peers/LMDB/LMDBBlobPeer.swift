// LMDB with large values: pages of their own, read in place.

import BenchmarkHarness

final class LMDBBlobPeer: BlobPeer {
    private let environment: LMDBStore
    private var blobs: UInt32 = 0

    init(blobDirectory: String, options: PeerOptions) throws {
        environment = try LMDBStore(path: blobDirectory + "/blobs.lmdb")
        try environment.write { blobs = try $0.database("blobs", LMDBLibrary.integerKey) }
    }

    func store(_ blobs: [(id: Int64, bytes: [UInt8])]) throws {
        try environment.write { transaction in
            for (id, bytes) in blobs {
                var number = UInt64(bitPattern: id)
                try withUnsafeBytes(of: &number) { key in
                    try bytes.withUnsafeBytes {
                        try transaction.put(self.blobs, key, $0, LMDBLibrary.append)
                    }
                }
            }
        }
    }

    func prepareToReadBlobs(count: Int) throws {}

    func readBlob(_ id: Int64, _ body: (UnsafeRawBufferPointer) -> Void) throws {
        try environment.read { transaction in
            var number = UInt64(bitPattern: id)
            let bytes = try withUnsafeBytes(of: &number) { try transaction.get(blobs, $0) }
            guard let bytes else { throw BenchmarkError("LMDB: no blob \(id)") }
            body(bytes)
        }
    }

    func close() throws { environment.close() }
}
