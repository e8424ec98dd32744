// swift-tools-version: 6.3
// The tests of VarveLogging and VarveMetrics: a package that uses the library as an app does that
// asks for both, with the traits `Logging` and `Metrics` and without the macros. The root package
// has no such tests, because its own builds download neither swift-log nor swift-metrics.

import PackageDescription

let package = Package(
    name: "varve-adapters",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "varve", path: "../..", traits: ["Logging", "Metrics"]),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.5.0"),
    ],
    targets: [
        .testTarget(
            name: "VarveAdapterTests",
            dependencies: [
                .product(name: "VarveLogging", package: "varve"),
                .product(name: "VarveMetrics", package: "varve"),
                .product(name: "VarveObjects", package: "varve"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
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
        [
            .strictMemorySafety(),
            .enableUpcomingFeature("ExistentialAny"),
            .enableUpcomingFeature("MemberImportVisibility"),
            .enableUpcomingFeature("InternalImportsByDefault"),
            .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        ] + warnings
}
