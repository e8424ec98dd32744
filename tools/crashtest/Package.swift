// swift-tools-version: 6.3
// The crash campaign is a package of its own: it is built optimised, whatever the tests are built
// like, without macros, so that swift-syntax is not built, and needs nothing but the library.

import PackageDescription

let package = Package(
    name: "varve-crashtest",
    platforms: [.macOS(.v15)],
    products: [.executable(name: "crash-test", targets: ["CrashTest"])],
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
        )
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
