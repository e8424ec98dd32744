// swift-tools-version: 6.3
// The tool `varve`, in a package of its own, so that no app that uses the library downloads an
// argument parser. `name:` keeps the dependency's name whatever the folder of the clone is called;
// no traits: the tool needs no macros, so swift-syntax is not built.

import PackageDescription

let package = Package(
    name: "varve-tools",
    platforms: [.macOS(.v15)],
    products: [.executable(name: "varve", targets: ["VarveCommand"])],
    dependencies: [
        .package(name: "varve", path: "..", traits: []),
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
    ],
    targets: [
        // Not called like its product: where file names ignore case, "varve" is "Varve".
        .executableTarget(
            name: "VarveCommand",
            dependencies: [
                .product(name: "VarveInspection", package: "varve"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Sources/varve"
        ),
        .testTarget(
            name: "VarveToolTests",
            dependencies: [
                "VarveCommand",
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
