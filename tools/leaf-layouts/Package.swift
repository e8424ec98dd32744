// swift-tools-version: 6.3
// The laboratory of leaf layouts: what a leaf would take and cost in other layouts, measured
// outside the engine. A package of its own, so that nobody who uses Varve builds it.

import PackageDescription

let package = Package(
    name: "varve-leaf-layouts",
    platforms: [.macOS(.v15)],
    targets: [
        .systemLibrary(
            name: "CLZ4Blocks",
            pkgConfig: "liblz4",
            providers: [.apt(["liblz4-dev"]), .brew(["lz4"]), .yum(["lz4-devel"])]
        ),
        .target(name: "SymbolTables"),
        .target(name: "LeafLayouts", dependencies: ["CLZ4Blocks", "SymbolTables"]),
        .executableTarget(name: "leaf-layouts", dependencies: ["LeafLayouts"]),
        .testTarget(name: "SymbolTablesTests", dependencies: ["SymbolTables"]),
        .testTarget(name: "LeafLayoutsTests", dependencies: ["LeafLayouts", "SymbolTables"]),
    ],
    swiftLanguageModes: [.v6]
)

for target in package.targets where target.type != .system {
    target.swiftSettings = [
        .strictMemorySafety(),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
    ]
}
