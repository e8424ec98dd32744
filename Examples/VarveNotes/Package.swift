// swift-tools-version: 6.3
// An app in small: `notes`, a command line that keeps notes and photos in a store.

import PackageDescription

let package = Package(
    name: "notes",
    platforms: [.macOS(.v26)],  // For `Observations`; Varve itself needs macOS 15.
    dependencies: [
        // In a package of your own: .package(url: "…/varve", branch: "main")
        .package(name: "varve", path: "../.."),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    ],
    targets: [
        .executableTarget(
            name: "notes",
            dependencies: [
                .product(name: "Varve", package: "varve"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            // Warnings are errors in this repository's CI only.
            swiftSettings: Context.environment["VARVE_WARNINGS_AS_ERRORS"] == nil
                ? [] : [.treatAllWarnings(as: .error)]
        )
    ],
    swiftLanguageModes: [.v6]
)
