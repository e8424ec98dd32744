// swift-tools-version: 6.3
// The fuzzers are a package of their own: unsafe flags make a package unusable as a dependency.
// Built by tools/fuzz/run with `-sanitize=fuzzer,address`; the library is instrumented as well,
// since it is built here from its sources. The targets are those of Tests/FuzzTests.

import PackageDescription

let package = Package(
    name: "varve-fuzz",
    platforms: [.macOS(.v15)],
    products: [.executable(name: "fuzz", targets: ["Fuzz"])],
    dependencies: [
        .package(name: "varve", path: "../..", traits: [])
    ],
    targets: [
        .target(
            name: "FuzzTargets",
            dependencies: [
                .product(name: "VarveInspection", package: "varve"),
                .product(name: "VarveTesting", package: "varve"),
            ]
        ),
        .executableTarget(
            name: "Fuzz",
            dependencies: ["FuzzTargets"],
            swiftSettings: [.unsafeFlags(["-parse-as-library"])],
            linkerSettings: [.unsafeFlags(["-sanitize=fuzzer"])]
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
