// Which module may import which, in the library and in the tools.
import Foundation
import Testing

@Suite("Layers") struct LayerTests {
    /// Files that talk to the system through its C library.
    private static let systemFiles = [
        "SystemCalls.swift", "Threads.swift", "FileWatch.swift", "MappedWord.swift",
    ]

    /// What each target may import of this package; the same table stands in docs/Architecture.md.
    private static let allowed: [String: Set<String>] = [
        "VarveBase": [],
        "VarveFormat": ["CLZ4", "CVarve", "VarveBase"],
        "VarveIO": ["CVarve", "VarveBase"],
        "VarveEngine": ["CVarve", "VarveFormat", "VarveIO", "VarveBase"],
        "VarveRecords": ["VarveEngine", "VarveFormat", "VarveBase"],
        "VarveObjects": ["CVarve", "VarveRecords", "VarveEngine", "VarveBase"],
        "VarveMacros": [],
        "Varve": ["VarveObjects"],
        "VarveInspection": ["VarveRecords", "VarveEngine", "VarveFormat", "VarveIO", "VarveBase"],
        "VarveTesting": [
            "VarveObjects", "VarveInspection", "VarveRecords", "VarveEngine", "VarveFormat",
            "VarveIO", "VarveBase",
        ],
        "VarveLogging": ["VarveObjects"],
        "VarveMetrics": ["VarveObjects"],
    ]

    /// Modules of others that a target may import besides those of the toolchain's core.
    private static let foreign: [String: Set<String>] = [
        "VarveObjects": ["Foundation", "Observation", "Dispatch"],
        "Varve": ["Foundation"],
        "VarveInspection": ["Foundation"],
        "VarveTesting": ["Foundation"],
        "VarveMacros": [
            "SwiftSyntax", "SwiftSyntaxMacros", "SwiftSyntaxBuilder", "SwiftCompilerPlugin",
            "SwiftDiagnostics",
        ],
        "VarveLogging": ["Logging"],
        "VarveMetrics": ["Metrics"],
    ]

    /// The products: all that a package in `tools/` or `Examples/` may import of the library.
    private static let products: Set<String> = [
        "Varve", "VarveObjects", "VarveInspection", "VarveTesting", "VarveLogging", "VarveMetrics",
    ]

    @Test("A target imports only the layers under it") func targetsImportOnlyTheLayersUnderThem() {
        for file in Repository.sources {
            let target = String(file.components[1])
            guard let allowed = Self.allowed[target] else {
                Issue.record("\(file.path): the target \(target) has no line in the layer table")
                continue
            }
            for (number, module) in file.imports {
                let isOurs = module.hasPrefix("Varve") || ["CLZ4", "CVarve"].contains(module)
                guard isOurs else { continue }
                #expect(
                    allowed.contains(module),
                    "\(file.path):\(number): \(target) must not import \(module)"
                )
            }
        }
    }

    @Test("Foundation stays above VarveRecords, the C library in four files")
    func foreignModulesStayWhereTheyBelong() {
        let core: Set<String> = ["Swift", "Synchronization", "_Concurrency", "Builtin"]
        let libraries: Set<String> = ["Glibc", "Musl", "Darwin", "Android", "WinSDK", "ucrt"]
        for file in Repository.sources {
            let target = String(file.components[1])
            for (number, module) in file.imports {
                if module.hasPrefix("Varve") || core.contains(module) { continue }
                if module == "CLZ4" {
                    #expect(
                        file.name == "BlockCompression.swift",
                        "\(file.path):\(number): only BlockCompression.swift imports CLZ4"
                    )
                } else if libraries.contains(module) {
                    #expect(
                        Self.systemFiles.contains(file.name),
                        "\(file.path):\(number): only \(Self.systemFiles) import \(module)"
                    )
                } else if module != "CVarve" {
                    #expect(
                        Self.foreign[target]?.contains(module) == true,
                        "\(file.path):\(number): \(target) must not import \(module)"
                    )
                }
            }
        }
    }

    @Test("docs/Architecture.md shows the same layers") func documentShowsTheLayers() throws {
        let document = try Repository.text("docs/Architecture.md")
        let section = try #require(document.components(separatedBy: "\n## The layers\n").last)
        var shown: Set<String> = []
        for line in section.components(separatedBy: "\n## ")[0].components(separatedBy: "\n") {
            let cells = line.components(separatedBy: "|")
                .map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count == 5, cells[1].hasPrefix("`") else { continue }
            for name in Self.names(cells[1]) where Self.allowed[name] != nil {
                shown.insert(name)
                if cells[3].contains("everything under it") { continue }
                let imports = Set(Self.names(cells[3])).intersection(
                    Set(Self.allowed.keys).union(["CLZ4", "CVarve"]).subtracting(["VarveMacros"])
                )
                #expect(imports == Self.allowed[name], "\(name) is shown with \(imports)")
            }
        }
        #expect(shown.union(["VarveMacros"]) == Set(Self.allowed.keys))
    }

    @Test("The tools and the example import products only") func toolsImportProductsOnly() {
        let outside: Set<Substring> = ["tools", "Examples"]
        for file in Repository.files where outside.contains(file.components[0]) {
            for (number, module) in file.imports where Self.isLibrary(module) {
                #expect(
                    Self.products.contains(module),
                    "\(file.path):\(number): \(module) is not a product"
                )
            }
        }
    }

    @Test("VarveObjects works without macros, and its tests show it")
    func objectTestsAreFreeOfMacros() {
        for file in Repository.files where file.path.hasPrefix("Tests/VarveObjectsTests/") {
            for (number, module) in file.imports {
                #expect(module != "Varve", "\(file.path):\(number): must not import Varve")
            }
            for (number, text) in file.codeLines {
                #expect(!text.contains("@Entity"), "\(file.path):\(number): must not use macros")
            }
        }
    }

    @Test("Only the plugin, its tests and tools/entities see swift-syntax, behind the trait")
    func swiftSyntaxStaysInThePlugin() {
        // A package of its own, which has no trait.
        for file in Repository.files where !file.path.hasPrefix("tools/entities/") {
            let isPlugin =
                file.path.hasPrefix("Sources/VarveMacros/")
                || file.path.hasPrefix("Tests/VarveMacrosTests/")
            guard file.imports.contains(where: { $0.module.hasPrefix("SwiftSyntax") }) else {
                continue
            }
            #expect(isPlugin, "\(file.path): imports swift-syntax")
            #expect(file.lines.contains("#if Macros"), "\(file.path): stands outside the trait")
        }
    }

    @Test(
        "swift-log and swift-metrics stay behind their traits",
        arguments: ["Logging", "Metrics"]
    )
    func adaptersStayBehindTheirTraits(_ module: String) throws {
        for file in Repository.files where !file.path.hasPrefix("tools/adapters/") {
            guard file.imports.contains(where: { $0.module == module }) else { continue }
            if file.path.hasPrefix("Tests/VarveAdapterTests/") { continue }
            #expect(file.path.hasPrefix("Sources/Varve\(module)/"), "\(file.path)")
            #expect(file.lines.contains("#if \(module)"), "\(file.path): outside the trait")
        }
        // Or every app would download it.
        let package = try Repository.text("Package.swift")
        let uses = package.components(separatedBy: ".product(name: \"\(module)\"").dropFirst()
        #expect(uses.count == 1)
        for use in uses { #expect(use.prefix(60).contains("condition: when\(module)")) }
        #expect(package.contains(".default(enabledTraits: [\"Macros\"])"))
    }

    private static func names(_ cell: String) -> [String] {
        cell.split { !$0.isLetter && !$0.isNumber }.map(String.init)
    }

    private static func isLibrary(_ module: String) -> Bool {
        allowed[module] != nil || module == "CLZ4" || module == "CVarve"
    }
}
