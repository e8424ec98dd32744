// swift-tools-version: 6.3
// Targets stand in layer order: a target imports only targets above it (docs/Architecture.md).

import CompilerPluginSupport
import PackageDescription

// The macros, and with them swift-syntax, stand behind the trait `Macros`. Whoever writes his
// entities by hand says `traits: []` (or `swift build --disable-default-traits`) and neither
// downloads nor compiles swift-syntax.
let whenMacros = TargetDependencyCondition.when(traits: ["Macros"])
// The same for swift-log and swift-metrics, which only apps that ask for them download.
let whenLogging = TargetDependencyCondition.when(traits: ["Logging"])
let whenMetrics = TargetDependencyCondition.when(traits: ["Metrics"])

let package = Package(
    name: "varve",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "Varve", targets: ["Varve"]),
        .library(name: "VarveObjects", targets: ["VarveObjects"]),
        .library(name: "VarveInspection", targets: ["VarveInspection"]),
        .library(name: "VarveTesting", targets: ["VarveTesting"]),
        // Empty without their traits.
        .library(name: "VarveLogging", targets: ["VarveLogging"]),
        .library(name: "VarveMetrics", targets: ["VarveMetrics"]),
    ],
    traits: [
        .trait(name: "Macros", description: "@Entity and its companions; needs swift-syntax."),
        .trait(name: "Logging", description: "VarveLogging: log lines; needs swift-log."),
        .trait(name: "Metrics", description: "VarveMetrics: counters; needs swift-metrics."),
        .default(enabledTraits: ["Macros"]),
    ],
    dependencies: [
        .package(url: "https://github.com/swiftlang/swift-syntax", from: "603.0.1"),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.5.0"),
    ],
    targets: [
        .systemLibrary(
            name: "CLZ4",
            pkgConfig: "liblz4",
            providers: [.apt(["liblz4-dev"]), .brew(["lz4"]), .yum(["lz4-devel"])]
        ),
        .target(name: "CVarve"),
        .target(name: "VarveBase"),
        .target(name: "VarveFormat", dependencies: ["CLZ4", "CVarve", "VarveBase"]),
        .target(name: "VarveIO", dependencies: ["CVarve", "VarveBase"]),
        .target(
            name: "VarveEngine",
            dependencies: ["CVarve", "VarveFormat", "VarveIO", "VarveBase"]
        ),
        .target(name: "VarveRecords", dependencies: ["VarveEngine", "VarveFormat", "VarveBase"]),
        .target(
            name: "VarveObjects",
            dependencies: ["CVarve", "VarveRecords", "VarveEngine", "VarveBase"]
        ),
        .target(
            name: "VarveInspection",
            dependencies: ["VarveRecords", "VarveEngine", "VarveFormat", "VarveIO", "VarveBase"]
        ),
        .macro(
            name: "VarveMacros",
            dependencies: [
                .product(name: "SwiftSyntax", package: "swift-syntax", condition: whenMacros),
                .product(name: "SwiftSyntaxMacros", package: "swift-syntax", condition: whenMacros),
                .product(
                    name: "SwiftSyntaxBuilder",
                    package: "swift-syntax",
                    condition: whenMacros
                ),
                .product(name: "SwiftDiagnostics", package: "swift-syntax", condition: whenMacros),
                .product(
                    name: "SwiftCompilerPlugin",
                    package: "swift-syntax",
                    condition: whenMacros
                ),
            ]
        ),
        .target(
            name: "Varve",
            dependencies: [
                "VarveObjects", .target(name: "VarveMacros", condition: whenMacros),
            ]
        ),
        .target(
            name: "VarveTesting",
            dependencies: [
                "VarveObjects", "VarveInspection", "VarveRecords", "VarveEngine", "VarveFormat",
                "VarveIO", "VarveBase",
            ]
        ),
        .target(
            name: "VarveLogging",
            dependencies: [
                "VarveObjects",
                .product(name: "Logging", package: "swift-log", condition: whenLogging),
            ]
        ),
        .target(
            name: "VarveMetrics",
            dependencies: [
                "VarveObjects",
                .product(name: "Metrics", package: "swift-metrics", condition: whenMetrics),
            ]
        ),

        // Verifies the stores of tests; no product.
        .target(
            name: "StoreReferee",
            dependencies: ["VarveInspection", "VarveEngine", "VarveIO", "VarveBase"],
            path: "Tests/StoreReferee"
        ),
        .testTarget(
            name: "VarveFormatTests",
            dependencies: [
                "VarveTesting", "VarveFormat", "VarveEngine", "VarveRecords", "VarveIO",
                "VarveBase",
            ]
        ),
        .testTarget(name: "VarveIOTests", dependencies: ["VarveTesting", "VarveIO", "VarveBase"]),
        .testTarget(
            name: "VarveEngineTests",
            dependencies: [
                "StoreReferee", "VarveTesting", "VarveEngine", "VarveFormat", "VarveIO",
                "VarveBase",
            ]
        ),
        .testTarget(
            name: "VarveRecordsTests",
            dependencies: [
                "StoreReferee", "VarveTesting", "VarveRecords", "VarveEngine", "VarveFormat",
                "VarveIO", "VarveBase",
            ]
        ),
        .testTarget(
            name: "VarveInspectionTests",
            dependencies: ["VarveInspection", "VarveTesting"]
        ),
        .testTarget(
            name: "VarveObjectsTests",
            dependencies: [
                "StoreReferee", "VarveTesting", "VarveInspection", "VarveObjects", "VarveRecords",
                "VarveEngine", "VarveFormat", "VarveIO", "VarveBase",
            ]
        ),
        // Those of the macros' plugin: tools/entities.
        .testTarget(name: "VarveTests", dependencies: ["Varve", "VarveTesting"]),
        .testTarget(
            name: "MainActorModuleTests",
            dependencies: ["Varve", "VarveTesting"],
            swiftSettings: [.defaultIsolation(MainActor.self)]
        ),
        // Entities that tools/entities wrote from the models of VarveTests, and tests of both.
        .testTarget(
            name: "GeneratedEntityTests",
            dependencies: ["Varve", "VarveObjects", "VarveTesting"],
            swiftSettings: [.define("GeneratedEntities")]
        ),
        .testTarget(
            name: "CompileFailTests",
            dependencies: ["VarveObjects"],
            exclude: ["Snippets"]
        ),
        .testTarget(name: "VarveTestingTests", dependencies: ["VarveTesting"]),
        .testTarget(
            name: "CompatibilityTests",
            dependencies: [
                "VarveInspection", "VarveTesting", "VarveRecords", "VarveEngine", "VarveFormat",
                "VarveIO", "VarveBase",
            ],
            exclude: ["Stores"]
        ),
        // The fuzz targets themselves (tools/fuzz), built with the tests that replay their inputs.
        .testTarget(
            name: "FuzzTests",
            dependencies: ["VarveInspection", "VarveTesting"]
        ),
        .testTarget(name: "TidyTests"),
    ],
    swiftLanguageModes: [.v6]
)

// Warnings are errors in .ci/run only: as a fixed setting they would disturb users' builds.
let warnings: [SwiftSetting] =
    Context.environment["VARVE_WARNINGS_AS_ERRORS"] == nil ? [] : [.treatAllWarnings(as: .error)]

// The library optimised in debug builds, for tools/test: tests take a third of the time and measure
// what users get; asserts stay. Asked for by a variable, because a package with unsafe flags can be
// nobody's dependency. Without -num-threads the object files would come one per module.
let optimized: [SwiftSetting] =
    Context.environment["VARVE_OPTIMIZED"] == nil
    ? []
    : [
        .unsafeFlags(
            ["-O", "-wmo", "-num-threads", "2", "-assert-config", "Debug"],
            .when(configuration: .debug)
        )
    ]

// For runs with the thread sanitizer (docs/Testing.md): locks that it can see. They come from another
// module than those that files import.
let traced: [SwiftSetting] =
    Context.environment["VARVE_THREAD_SANITIZER"] == nil
    ? [.enableUpcomingFeature("MemberImportVisibility")] : [.define("VARVE_THREAD_SANITIZER")]

// One loop for the settings, so that no target can be laxer than another.
for target in package.targets where target.type != .system {
    if target.name == "CVarve" { continue }
    target.swiftSettings =
        (target.swiftSettings ?? []) + [
            .strictMemorySafety(),
            .enableUpcomingFeature("ExistentialAny"),
            .enableUpcomingFeature("InternalImportsByDefault"),
            .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
            .enableUpcomingFeature("InferIsolatedConformances"),
            .enableUpcomingFeature("ImmutableWeakCaptures"),
        ] + warnings + traced
    if target.type == .regular { target.swiftSettings! += optimized }
}
