// LMDB, found when the program runs: who does not have the library skips the peer, and nobody
// needs its headers to build.
//
// The declarations follow lmdb.h of 0.9, whose binary interface has been the same since 2015.

import BenchmarkHarness

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#endif

/// `MDB_val`: bytes lent by either side.
struct LMDBValue {
    var size = 0
    var data: UnsafeMutableRawPointer?

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: data, count: size) }
}

/// The functions of liblmdb that the benchmark calls.
struct LMDBLibrary: Sendable {
    typealias Handle = UnsafeMutableRawPointer
    /// Points at an `LMDBValue`; a C function type cannot name a Swift struct.
    typealias Value = UnsafeMutableRawPointer

    static let noSubdirectory: UInt32 = 0x4000
    static let readOnly: UInt32 = 0x20000
    static let noReadAhead: UInt32 = 0x80_0000
    static let create: UInt32 = 0x40000
    static let integerKey: UInt32 = 0x08
    static let append: UInt32 = 0x20000
    static let cursorFirst: UInt32 = 0
    static let cursorLast: UInt32 = 6
    static let cursorNext: UInt32 = 8
    static let cursorSetRange: UInt32 = 17
    static let copyCompact: UInt32 = 1
    static let notFound: Int32 = -30798

    enum Functions {
        typealias EnvironmentCreate = @convention(c) (UnsafeMutablePointer<Handle?>) -> Int32
        typealias SetMapSize = @convention(c) (Handle, Int) -> Int32
        typealias SetMaxDatabases = @convention(c) (Handle, UInt32) -> Int32
        typealias EnvironmentOpen =
            @convention(c) (Handle, UnsafePointer<CChar>, UInt32, UInt32) -> Int32
        typealias EnvironmentClose = @convention(c) (Handle) -> Void
        typealias Begin =
            @convention(c) (Handle, Handle?, UInt32, UnsafeMutablePointer<Handle?>) -> Int32
        typealias Commit = @convention(c) (Handle) -> Int32
        typealias Abort = @convention(c) (Handle) -> Void
        typealias Reset = @convention(c) (Handle) -> Void
        typealias Renew = @convention(c) (Handle) -> Int32
        typealias OpenDatabase =
            @convention(c) (Handle, UnsafePointer<CChar>, UInt32, UnsafeMutablePointer<UInt32>) ->
            Int32
        typealias Get = @convention(c) (Handle, UInt32, Value, Value) -> Int32
        typealias Put = @convention(c) (Handle, UInt32, Value, Value, UInt32) -> Int32
        typealias Delete = @convention(c) (Handle, UInt32, Value, Value?) -> Int32
        typealias Copy = @convention(c) (Handle, UnsafePointer<CChar>, UInt32) -> Int32
        typealias CursorOpen =
            @convention(c) (Handle, UInt32, UnsafeMutablePointer<Handle?>) -> Int32
        typealias CursorClose = @convention(c) (Handle) -> Void
        typealias CursorGet = @convention(c) (Handle, Value, Value, UInt32) -> Int32
    }

    let environmentCreate: Functions.EnvironmentCreate
    let setMapSize: Functions.SetMapSize
    let setMaxDatabases: Functions.SetMaxDatabases
    let environmentOpen: Functions.EnvironmentOpen
    let environmentClose: Functions.EnvironmentClose
    let begin: Functions.Begin
    let commit: Functions.Commit
    let abort: Functions.Abort
    let reset: Functions.Reset
    let renew: Functions.Renew
    let openDatabase: Functions.OpenDatabase
    let get: Functions.Get
    let put: Functions.Put
    let delete: Functions.Delete
    let copy: Functions.Copy
    let cursorOpen: Functions.CursorOpen
    let cursorClose: Functions.CursorClose
    let cursorGet: Functions.CursorGet

    /// The library, or why it is not there.
    static let found: Result<LMDBLibrary, BenchmarkError> = {
        let names = ["liblmdb.so.0", "liblmdb.so", "liblmdb.dylib"]
        for name in names {
            guard let library = dlopen(name, RTLD_NOW) else { continue }
            guard let functions = LMDBLibrary(library) else {
                return .failure(BenchmarkError("\(name) lacks functions"))
            }
            return .success(functions)
        }
        return .failure(BenchmarkError("\(names[0]) is not installed (Debian: liblmdb0)"))
    }()

    private init?(_ library: UnsafeMutableRawPointer) {
        func symbol<F>(_ name: String, as type: F.Type) -> F? {
            dlsym(library, name).map { unsafeBitCast($0, to: type) }
        }
        guard
            let create = symbol("mdb_env_create", as: Functions.EnvironmentCreate.self),
            let mapSize = symbol("mdb_env_set_mapsize", as: Functions.SetMapSize.self),
            let databases = symbol("mdb_env_set_maxdbs", as: Functions.SetMaxDatabases.self),
            let open = symbol("mdb_env_open", as: Functions.EnvironmentOpen.self),
            let close = symbol("mdb_env_close", as: Functions.EnvironmentClose.self),
            let begin = symbol("mdb_txn_begin", as: Functions.Begin.self),
            let commit = symbol("mdb_txn_commit", as: Functions.Commit.self),
            let abort = symbol("mdb_txn_abort", as: Functions.Abort.self),
            let reset = symbol("mdb_txn_reset", as: Functions.Reset.self),
            let renew = symbol("mdb_txn_renew", as: Functions.Renew.self),
            let database = symbol("mdb_dbi_open", as: Functions.OpenDatabase.self),
            let get = symbol("mdb_get", as: Functions.Get.self),
            let put = symbol("mdb_put", as: Functions.Put.self),
            let delete = symbol("mdb_del", as: Functions.Delete.self),
            let copy = symbol("mdb_env_copy2", as: Functions.Copy.self),
            let cursorOpen = symbol("mdb_cursor_open", as: Functions.CursorOpen.self),
            let cursorClose = symbol("mdb_cursor_close", as: Functions.CursorClose.self),
            let cursorGet = symbol("mdb_cursor_get", as: Functions.CursorGet.self)
        else { return nil }
        environmentCreate = create
        setMapSize = mapSize
        setMaxDatabases = databases
        environmentOpen = open
        environmentClose = close
        self.begin = begin
        self.commit = commit
        self.abort = abort
        self.reset = reset
        self.renew = renew
        openDatabase = database
        self.get = get
        self.put = put
        self.delete = delete
        self.copy = copy
        self.cursorOpen = cursorOpen
        self.cursorClose = cursorClose
        self.cursorGet = cursorGet
    }

    /// Why the peer cannot take part; nil when it can.
    static var missing: String? {
        switch found {
        case .success: nil
        case .failure(let error): error.description
        }
    }
}
