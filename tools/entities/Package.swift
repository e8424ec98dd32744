// swift-tools-version: 6.3
// The command that writes entities without macros (`tools/entities/run`), and the tests of the
// macros' plugin. Both are the plugin's own sources (Sources/VarveMacros): a file is expanded by
// what the compiler calls.
//
// The command is a macro target, which is an ordinary program that SwiftPM builds for the machine
// that compiles. So swift-syntax is built once for it, for its tests and for the plugin of the
// library, which share a folder of builds in tools/test.

import CompilerPluginSupport
import PackageDescription

let package = Package(
    name: "varve-entities",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(url: "https://github.com/swiftlang/swift-syntax", from: "603.0.1"),
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
    ],
    targets: [
        .macro(
            name: "EntityWriter",
            dependencies: [
                .product(name: "SwiftSyntax", package: "swift-syntax"),
                .product(name: "SwiftSyntaxMacros", package: "swift-syntax"),
                .product(name: "SwiftSyntaxMacroExpansion", package: "swift-syntax"),
                .product(name: "SwiftSyntaxBuilder", package: "swift-syntax"),
                .product(name: "SwiftDiagnostics", package: "swift-syntax"),
                .product(name: "SwiftParser", package: "swift-syntax"),
                .product(name: "SwiftParserDiagnostics", package: "swift-syntax"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            // A program has one beginning, and that of the plugin is another.
            exclude: ["Macros/Plugin.swift"]
        ),
        .testTarget(
            name: "VarveMacrosTests",
            dependencies: [
                "EntityWriter",
                .product(name: "SwiftSyntax", package: "swift-syntax"),
                .product(name: "SwiftSyntaxBuilder", package: "swift-syntax"),
                .product(name: "SwiftSyntaxMacroExpansion", package: "swift-syntax"),
                .product(name: "SwiftSyntaxMacrosGenericTestSupport", package: "swift-syntax"),
            ]
        ),
        .testTarget(
            name: "EntityWriterTests",
            dependencies: [
                "EntityWriter",
                .product(name: "SwiftSyntax", package: "swift-syntax"),
                .product(name: "SwiftParser", package: "swift-syntax"),
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
        [
            // The trait of the library's package that the sources ask for.
            .define("Macros"),
            .strictMemorySafety(),
            .enableUpcomingFeature("ExistentialAny"),
            .enableUpcomingFeature("MemberImportVisibility"),
            .enableUpcomingFeature("InternalImportsByDefault"),
        ] + warnings
}
