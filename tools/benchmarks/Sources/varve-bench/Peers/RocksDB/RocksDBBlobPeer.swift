// RocksDB with large values: in the log, and in blob files beside the sorted ones.

import BenchmarkHarness

final class RocksDBBlobPeer: BlobPeer {
    private let database: RocksDBDatabase

    init(blobDirectory: String, options: PeerOptions) throws {
        database = try RocksDBDatabase(
            path: blobDirectory + "/blobs.rocksdb",
            cacheBytes: options.cacheBytes,
            blobFiles: true
        )
    }

    func store(_ blobs: [(id: Int64, bytes: [UInt8])]) throws {
        try database.commit { batch in
            var key: [UInt8] = []
            for (id, bytes) in blobs { batch.put(RocksDBPeer.rowKey(id, &key), bytes) }
        }
    }

    func prepareToReadBlobs(count: Int) throws { try database.settle() }

    func readBlob(_ id: Int64, _ body: (UnsafeRawBufferPointer) -> Void) throws {
        var key: [UInt8] = []
        let found = try RocksDBPeer.rowKey(id, &key).withUnsafeBytes {
            try database.newest.value($0, body)
        }
        guard found else { throw BenchmarkError("RocksDB: no blob \(id)") }
    }

    func close() throws { database.close() }
}
