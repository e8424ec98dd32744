// The compiler plugin: the list of its macros. Empty when the trait `Macros` is off.
#if Macros
import SwiftCompilerPlugin
import SwiftSyntaxMacros

@main struct VarvePlugin: CompilerPlugin {
    let providingMacros: [any Macro.Type] = [
        EntityMacro.self, AttributeMacro.self, RelationshipMacro.self, TransientMacro.self,
        ObservedTransientMacro.self,
        DerivedMacro.self, CompositeMacro.self, IndexMacro.self, UniqueMacro.self,
    ]
}
#else
@main enum NoPlugin {
    static func main() {}
}
#endif
