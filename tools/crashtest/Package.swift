// swift-tools-version: 6.3
// The crash campaigns are a package of their own: built optimised, whatever the tests are built
// like, without macros, so that swift-syntax is not built, and they need nothing but the library.

import PackageDescription

let package = Package(
    name: "varve-crashtest",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "crash-test", targets: ["CrashTest"]),
        .executable(name: "crash-processes", targets: ["CrashProcesses"]),
    ],
    dependencies: [
        .package(name: "varve", path: "../..", traits: [])
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
                .product(name: "VarveTesting", package: "varve"),
            ]
        ),
    ],
    swiftLanguageModes: [.v6]
)

// Warnings are errors in .ci/run only: as a fixed setting they would disturb users' builds.
let warnings: [SwiftSetting] =
    Context.environment["VARVE_WARNINGS_AS_ERRORS"] == nil ? [] : [.treatAllWarnings(as: .error)]

for target in package.targets {
    target.swiftSettings =
        (target.swiftSettings ?? []) + [
            .enableUpcomingFeature("ExistentialAny"),
            .enableUpcomingFeature("MemberImportVisibility"),
            .enableUpcomingFeature("InternalImportsByDefault"),
        ] + warnings
}
