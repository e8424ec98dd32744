// RocksDB, found when the program runs: who does not have the library skips the peer, and nobody
// needs its headers to build.
//
// The declarations follow rocksdb/c.h of 7.8; those for blob files are the youngest, since 6.22.

import BenchmarkHarness

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#endif

/// The functions of librocksdb that the benchmark calls.
struct RocksDBLibrary: Sendable {
    typealias Handle = OpaquePointer
    /// Where a function leaves a message that `free` gives back.
    typealias Failure = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
    /// May be nothing where there are no bytes.
    typealias Bytes = UnsafePointer<CChar>?

    typealias Make = @convention(c) () -> Handle?
    typealias MakeSized = @convention(c) (Int) -> Handle?
    typealias Destroy = @convention(c) (Handle) -> Void
    typealias SetFlag = @convention(c) (Handle, UInt8) -> Void
    typealias SetNumber = @convention(c) (Handle, Int32) -> Void
    typealias SetSize = @convention(c) (Handle, Int) -> Void
    typealias Join = @convention(c) (Handle, Handle) -> Void
    typealias Put = @convention(c) (Handle, Bytes, Int, Bytes, Int) -> Void
    typealias Remove = @convention(c) (Handle, Bytes, Int) -> Void
    typealias View = @convention(c) (Handle, UnsafeMutablePointer<Int>) -> Bytes
    typealias Work = @convention(c) (Handle, Failure) -> Void
    typealias Files =
        @convention(c) (Handle, UnsafePointer<Bytes>, Int, Handle, Failure) -> Void

    // The database.
    let open: @convention(c) (Handle, Bytes, Failure) -> Handle?
    let close: Destroy
    let write: @convention(c) (Handle, Handle, Handle, Failure) -> Void
    let flush: @convention(c) (Handle, Handle, Failure) -> Void
    let compactRange: @convention(c) (Handle, Bytes, Int, Bytes, Int) -> Void
    let getPinned: @convention(c) (Handle, Handle, Bytes, Int, Failure) -> Handle?
    let pinnedValue: View
    let pinnedDestroy: Destroy
    let createSnapshot: @convention(c) (Handle) -> Handle?
    let releaseSnapshot: Join
    let free: @convention(c) (UnsafeMutableRawPointer) -> Void

    // Its settings.
    let optionsCreate: Make
    let optionsDestroy: Destroy
    let setCreateIfMissing: SetFlag
    let setCompression: SetNumber
    let setWriteBufferSize: SetSize
    let setMaxBackgroundJobs: SetNumber
    let setDynamicLevelBytes: SetFlag
    let setRecycledLogs: SetSize
    let setBlobFiles: SetFlag
    let setBlobBytesMin: @convention(c) (Handle, UInt64) -> Void
    let setTableOptions: Join
    let tableOptionsCreate: Make
    let tableOptionsDestroy: Destroy
    let setBlockCache: Join
    let setFilterPolicy: Join
    let bloomFilterCreate: @convention(c) (Double) -> Handle?
    let cacheCreate: MakeSized
    let cacheDestroy: Destroy

    // Reads and writes.
    let readOptionsCreate: Make
    let readOptionsDestroy: Destroy
    let readOptionsSetSnapshot: @convention(c) (Handle, Handle?) -> Void
    let writeOptionsCreate: Make
    let writeOptionsDestroy: Destroy
    let setSync: SetFlag
    let flushOptionsCreate: Make
    let flushOptionsDestroy: Destroy
    let batchCreate: Make
    let batchDestroy: Destroy
    let batchClear: Destroy
    let batchPut: Put
    let batchDelete: Remove
    let iteratorCreate: @convention(c) (Handle, Handle) -> Handle?
    let iteratorDestroy: Destroy
    let iteratorSeek: Remove
    let iteratorSeekBack: Remove
    let iteratorValid: @convention(c) (Handle) -> UInt8
    let iteratorNext: Destroy
    let iteratorKey: View
    let iteratorValue: View
    let iteratorError: Work

    // Sorted files made beside the database and taken in whole.
    let environmentOptionsCreate: Make
    let environmentOptionsDestroy: Destroy
    let fileWriterCreate: @convention(c) (Handle, Handle) -> Handle?
    let fileWriterDestroy: Destroy
    let fileWriterOpen: @convention(c) (Handle, Bytes, Failure) -> Void
    let fileWriterPut: @convention(c) (Handle, Bytes, Int, Bytes, Int, Failure) -> Void
    let fileWriterFinish: Work
    let ingestOptionsCreate: Make
    let ingestOptionsDestroy: Destroy
    let setMoveFiles: SetFlag
    let ingest: Files

    /// The library, or why it is not there.
    static let found: Result<RocksDBLibrary, BenchmarkError> = {
        let names = [
            "librocksdb.so.7.8", "librocksdb.so.8.9", "librocksdb.so", "librocksdb.dylib",
        ]
        for name in names {
            guard let library = dlopen(name, RTLD_NOW) else { continue }
            do {
                return .success(try RocksDBLibrary(library))
            } catch {
                return .failure(BenchmarkError("\(name) lacks \(error)"))
            }
        }
        return .failure(BenchmarkError("librocksdb is not installed (Debian: librocksdb7.8)"))
    }()

    /// Why the peer cannot take part; nil when it can.
    static var missing: String? {
        switch found {
        case .success: nil
        case .failure(let error): error.description
        }
    }

    private init(_ library: UnsafeMutableRawPointer) throws {
        func symbol<F>(_ name: String) throws -> F {
            guard let address = dlsym(library, "rocksdb_" + name) else {
                throw BenchmarkError("rocksdb_" + name)
            }
            return unsafeBitCast(address, to: F.self)
        }
        open = try symbol("open")
        close = try symbol("close")
        write = try symbol("write")
        flush = try symbol("flush")
        compactRange = try symbol("compact_range")
        getPinned = try symbol("get_pinned")
        pinnedValue = try symbol("pinnableslice_value")
        pinnedDestroy = try symbol("pinnableslice_destroy")
        createSnapshot = try symbol("create_snapshot")
        releaseSnapshot = try symbol("release_snapshot")
        free = try symbol("free")
        optionsCreate = try symbol("options_create")
        optionsDestroy = try symbol("options_destroy")
        setCreateIfMissing = try symbol("options_set_create_if_missing")
        setCompression = try symbol("options_set_compression")
        setWriteBufferSize = try symbol("options_set_write_buffer_size")
        setMaxBackgroundJobs = try symbol("options_set_max_background_jobs")
        setDynamicLevelBytes = try symbol("options_set_level_compaction_dynamic_level_bytes")
        setRecycledLogs = try symbol("options_set_recycle_log_file_num")
        setBlobFiles = try symbol("options_set_enable_blob_files")
        setBlobBytesMin = try symbol("options_set_min_blob_size")
        setTableOptions = try symbol("options_set_block_based_table_factory")
        tableOptionsCreate = try symbol("block_based_options_create")
        tableOptionsDestroy = try symbol("block_based_options_destroy")
        setBlockCache = try symbol("block_based_options_set_block_cache")
        setFilterPolicy = try symbol("block_based_options_set_filter_policy")
        bloomFilterCreate = try symbol("filterpolicy_create_bloom_full")
        cacheCreate = try symbol("cache_create_lru")
        cacheDestroy = try symbol("cache_destroy")
        readOptionsCreate = try symbol("readoptions_create")
        readOptionsDestroy = try symbol("readoptions_destroy")
        readOptionsSetSnapshot = try symbol("readoptions_set_snapshot")
        writeOptionsCreate = try symbol("writeoptions_create")
        writeOptionsDestroy = try symbol("writeoptions_destroy")
        setSync = try symbol("writeoptions_set_sync")
        flushOptionsCreate = try symbol("flushoptions_create")
        flushOptionsDestroy = try symbol("flushoptions_destroy")
        batchCreate = try symbol("writebatch_create")
        batchDestroy = try symbol("writebatch_destroy")
        batchClear = try symbol("writebatch_clear")
        batchPut = try symbol("writebatch_put")
        batchDelete = try symbol("writebatch_delete")
        iteratorCreate = try symbol("create_iterator")
        iteratorDestroy = try symbol("iter_destroy")
        iteratorSeek = try symbol("iter_seek")
        iteratorSeekBack = try symbol("iter_seek_for_prev")
        iteratorValid = try symbol("iter_valid")
        iteratorNext = try symbol("iter_next")
        iteratorKey = try symbol("iter_key")
        iteratorValue = try symbol("iter_value")
        iteratorError = try symbol("iter_get_error")
        environmentOptionsCreate = try symbol("envoptions_create")
        environmentOptionsDestroy = try symbol("envoptions_destroy")
        fileWriterCreate = try symbol("sstfilewriter_create")
        fileWriterDestroy = try symbol("sstfilewriter_destroy")
        fileWriterOpen = try symbol("sstfilewriter_open")
        fileWriterPut = try symbol("sstfilewriter_put")
        fileWriterFinish = try symbol("sstfilewriter_finish")
        ingestOptionsCreate = try symbol("ingestexternalfileoptions_create")
        ingestOptionsDestroy = try symbol("ingestexternalfileoptions_destroy")
        setMoveFiles = try symbol("ingestexternalfileoptions_set_move_files")
        ingest = try symbol("ingest_external_file")
    }
}
