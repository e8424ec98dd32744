// swift-tools-version: 6.3
// A package of its own: the gallery uses an argument parser, and no app that uses Varve should
// download it. Without the library's macros, so that swift-syntax is neither downloaded nor built:
// the first table of the demonstration would wait for it for minutes. But tools/test, which sets
// VARVE_OPTIMIZED, has the library optimised with macros. Its folder is not called gallery: SwiftPM
// would take a clone of the repository in a folder `gallery` for this package.

import PackageDescription

let isOptimized = Context.environment["VARVE_OPTIMIZED"] != nil

let package = Package(
    name: "gallery",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "varve", path: "../..", traits: isOptimized ? [.defaults] : []),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    ],
    targets: [
        .target(name: "CMalloc"),
        .target(name: "SVGDrawing"),
        .target(
            name: "GalleryKit",
            dependencies: [
                "CMalloc", "SVGDrawing",
                .product(name: "VarveObjects", package: "varve"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            resources: [
                .copy("Resources/cities.tsv"),
                .copy("Resources/countries.tsv"),
                .copy("Resources/ATTRIBUTION.md"),
            ]
        ),
        .executableTarget(
            name: "gallery",
            dependencies: [
                "GalleryKit", .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]
        ),
        .testTarget(name: "GalleryTests", dependencies: ["gallery", "GalleryKit"]),
    ],
    swiftLanguageModes: [.v6]
)

// Warnings are errors in .ci/run only: as a fixed setting they would disturb users' builds.
let warnings: [SwiftSetting] =
    Context.environment["VARVE_WARNINGS_AS_ERRORS"] == nil ? [] : [.treatAllWarnings(as: .error)]

// As in the library's Package.swift: optimised, though it is a debug build, for tools/test.
let optimized: [SwiftSetting] =
    isOptimized
    ? [.unsafeFlags(["-O", "-wmo", "-num-threads", "2"], .when(configuration: .debug))] : []

for target in package.targets where target.name != "CMalloc" {
    let settings: [SwiftSetting] = [
        .strictMemorySafety(),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        .enableUpcomingFeature("InferIsolatedConformances"),
        .enableUpcomingFeature("ImmutableWeakCaptures"),
    ]
    target.swiftSettings = settings + warnings + (target.type == .test ? [] : optimized)
}
