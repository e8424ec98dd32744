// swift-tools-version: 6.3
// The crash campaigns are a package of their own: built optimised, whatever the tests are built
// like, and they need nothing but the library. Without its macros, so that swift-syntax is not
// built; but tools/test, which sets VARVE_OPTIMIZED, has the library optimised with macros.

import PackageDescription

let isOptimized = Context.environment["VARVE_OPTIMIZED"] != nil

let package = Package(
    name: "varve-crashtest",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "crash-test", targets: ["CrashTest"]),
        .executable(name: "crash-processes", targets: ["CrashProcesses"]),
    ],
    dependencies: [
        .package(name: "varve", path: "../..", traits: isOptimized ? [.defaults] : [])
    ],
    targets: [
        .executableTarget(
            name: "CrashTest",
            dependencies: [
                .product(name: "VarveInspection", package: "varve"),
                .product(name: "VarveTesting", package: "varve"),
            ]
        ),
        .executableTarget(
            name: "CrashProcesses",
            dependencies: [
                .product(name: "VarveInspection", package: "varve"),
                .product(name: "VarveObjects", package: "varve"),
                .product(name: "VarveTesting", package: "varve"),
            ]
        ),
    ],
    swiftLanguageModes: [.v6]
)

// Warnings are errors in .ci/run only: as a fixed setting they would disturb users' builds.
let warnings: [SwiftSetting] =
    Context.environment["VARVE_WARNINGS_AS_ERRORS"] == nil ? [] : [.treatAllWarnings(as: .error)]

// As in the library's Package.swift: optimised, though it is a debug build, for tools/test.
let optimized: [SwiftSetting] =
    !isOptimized
    ? [] : [.unsafeFlags(["-O", "-wmo", "-num-threads", "2"], .when(configuration: .debug))]

for target in package.targets {
    target.swiftSettings =
        (target.swiftSettings ?? []) + [
            .enableUpcomingFeature("ExistentialAny"),
            .enableUpcomingFeature("MemberImportVisibility"),
            .enableUpcomingFeature("InternalImportsByDefault"),
        ] + warnings + optimized
}
