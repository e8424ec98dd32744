// Expands source text and compares, for Swift Testing.
#if Macros
import EntityWriter
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacroExpansion
import SwiftSyntaxMacrosGenericTestSupport
import Testing

/// The macros by the names they have in source, with what the compiler knows of them.
private let macros: [String: MacroSpec] = [
    "Entity": MacroSpec(type: EntityMacro.self, conformances: ["Sendable"]),
    "Attribute": MacroSpec(type: AttributeMacro.self),
    "Relationship": MacroSpec(type: RelationshipMacro.self),
    "Composite": MacroSpec(type: CompositeMacro.self, conformances: ["StoredComposite"]),
    "Derived": MacroSpec(type: DerivedMacro.self),
    "Transient": MacroSpec(type: TransientMacro.self),
    "_ObservedTransient": MacroSpec(type: ObservedTransientMacro.self),
    "Index": MacroSpec(type: IndexMacro.self),
    "Unique": MacroSpec(type: UniqueMacro.self),
]

/// Expects that `source` becomes `expanded`, and `fixed` once all fix-its are taken.
func expectExpansion(
    _ source: String,
    becomes expanded: String,
    complaints: [DiagnosticSpec] = [],
    applying fixIts: [String]? = nil,
    gives fixed: String? = nil,
    at location: Testing.SourceLocation = #_sourceLocation
) {
    assertMacroExpansion(
        source,
        expandedSource: expanded,
        diagnostics: complaints,
        macroSpecs: macros,
        applyFixIts: fixIts,
        fixedSource: fixed,
        failureHandler: { Issue.record("\($0.message)", sourceLocation: location) }
    )
}

/// What is said about `source`: "line:column: message", in the order of the places.
func complaints(_ source: String) -> [String] {
    ModelFile(path: "M.swift", text: source).expanded().complaints
        .filter { $0.contains(": error: ") }
        .map { $0.replacing("M.swift:", with: "").replacing(" error:", with: "") }
}
#endif
