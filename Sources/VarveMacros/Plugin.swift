#if Macros
import SwiftCompilerPlugin
import SwiftSyntax
import SwiftSyntaxMacros

@main struct VarvePlugin: CompilerPlugin {
    let providingMacros: [any Macro.Type] = []
}
#else
@main enum NoPlugin {
    static func main() {}
}
#endif
