// swift-tools-version: 6.3
// Four short programs, each of which shows one thing that apps do, and checks that it did it.

import PackageDescription

let programs = ["ListWithSections", "EditSheet", "BackgroundImport", "PagingBothWays"]

let package = Package(
    name: "programs",
    platforms: [.macOS(.v15)],
    dependencies: [
        // In a package of your own: .package(url: "…/varve", branch: "main")
        .package(name: "varve", path: "../..")
    ],
    targets: [.target(name: "Check")]
        + programs.map {
            .executableTarget(
                name: $0,
                dependencies: ["Check", .product(name: "Varve", package: "varve")]
            )
        },
    swiftLanguageModes: [.v6]
)

// Warnings are errors in this repository's CI only.
if Context.environment["VARVE_WARNINGS_AS_ERRORS"] != nil {
    for target in package.targets { target.swiftSettings = [.treatAllWarnings(as: .error)] }
}
