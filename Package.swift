// swift-tools-version: 6.3
// Targets stand in layer order: a target imports only targets above it (docs/Architecture.md).

import PackageDescription

let package = Package(
    name: "varve",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "VarveObjects", targets: ["VarveObjects"])
    ],
    targets: [
        .systemLibrary(
            name: "CLZ4", pkgConfig: "liblz4",
            providers: [.apt(["liblz4-dev"]), .brew(["lz4"]), .yum(["lz4-devel"])]),
        .target(name: "CVarve"),
        .target(name: "VarveBase"),
        .target(name: "VarveFormat", dependencies: ["CLZ4", "CVarve", "VarveBase"]),
        .target(name: "VarveIO", dependencies: ["CVarve", "VarveBase"]),
        .target(name: "VarveEngine", dependencies: ["VarveFormat", "VarveIO", "VarveBase"]),
        .target(name: "VarveRecords", dependencies: ["VarveEngine", "VarveFormat", "VarveBase"]),
        .target(name: "VarveObjects", dependencies: ["VarveRecords", "VarveEngine", "VarveBase"]),

        .testTarget(name: "VarveFormatTests", dependencies: ["VarveFormat", "VarveBase"]),
        .testTarget(name: "VarveIOTests", dependencies: ["VarveIO", "VarveBase"]),
        .testTarget(
            name: "VarveEngineTests",
            dependencies: ["VarveEngine", "VarveFormat", "VarveIO", "VarveBase"]),
        .testTarget(
            name: "VarveRecordsTests",
            dependencies: ["VarveRecords", "VarveEngine", "VarveFormat", "VarveIO", "VarveBase"]),
        .testTarget(
            name: "VarveObjectsTests",
            dependencies: ["VarveObjects", "VarveRecords", "VarveEngine", "VarveBase"]),
    ],
    swiftLanguageModes: [.v6]
)

// One loop for the settings, so that no target can be laxer than another.
for target in package.targets where target.type != .system {
    if target.name == "CVarve" { continue }
    target.swiftSettings = (target.swiftSettings ?? []) + [
        .strictMemorySafety(),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        .enableUpcomingFeature("InferIsolatedConformances"),
        .enableUpcomingFeature("ImmutableWeakCaptures"),
    ]
}
