// swift-tools-version: 6.3
// The benchmark is a package of its own, so that no app that uses Varve ever downloads GRDB, SQLite
// or an argument parser. LMDB is found at run time (dlopen): a missing library is a skipped peer.

import PackageDescription

let package = Package(
    name: "varve-benchmarks",
    platforms: [.macOS(.v15)],
    products: [.executable(name: "varve-bench", targets: ["varve-bench"])],
    dependencies: [
        // Without its macros, so that swift-syntax is not built for a benchmark.
        .package(name: "varve", path: "../..", traits: []),
        .package(url: "https://github.com/groue/GRDB.swift", exact: "7.10.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
    ],
    targets: [
        .systemLibrary(
            name: "CSQLite",
            pkgConfig: "sqlite3",
            providers: [.apt(["libsqlite3-dev"]), .yum(["sqlite-devel"]), .brew(["sqlite"])]
        ),
        .target(name: "CFlushCount"),
        .target(name: "SVGDrawing"),
        .target(name: "BenchmarkHarness", dependencies: ["CFlushCount", "SVGDrawing"]),
        .executableTarget(
            name: "varve-bench",
            dependencies: [
                "BenchmarkHarness", "CSQLite",
                .product(name: "VarveObjects", package: "varve"),
                .product(name: "VarveInspection", package: "varve"),
                .product(name: "VarveTesting", package: "varve"),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]
        ),
        .testTarget(name: "BenchmarkHarnessTests", dependencies: ["BenchmarkHarness"]),
    ],
    swiftLanguageModes: [.v6]
)

// Warnings are errors in .ci/run only: as a fixed setting they would disturb users' builds.
let warnings: [SwiftSetting] =
    Context.environment["VARVE_WARNINGS_AS_ERRORS"] == nil ? [] : [.treatAllWarnings(as: .error)]

for target in package.targets where target.type != .system {
    target.swiftSettings =
        (target.swiftSettings ?? []) + [
            .enableUpcomingFeature("ExistentialAny"),
            .enableUpcomingFeature("MemberImportVisibility"),
            .enableUpcomingFeature("InternalImportsByDefault"),
        ] + warnings
}
