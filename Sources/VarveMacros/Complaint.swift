// What the macros complain about, each with the change that settles it.
#if Macros
package import SwiftDiagnostics
import SwiftSyntax

/// A diagnostic of a macro: stable ID and one sentence.
package struct Complaint: DiagnosticMessage {
    /// Part of the diagnostic's ID; tests compare it.
    let name: String
    package let message: String
    package let severity = DiagnosticSeverity.error
    package var diagnosticID: MessageID { MessageID(domain: "Varve", id: name) }
}

/// The sentence that stands on the button of a fix-it.
package struct Remedy: FixItMessage {
    package let message: String
    package var fixItID: MessageID { MessageID(domain: "Varve", id: message) }
}

/// Gathers complaints; the caller decides whether they are shown.
struct Complaints {
    private(set) var all: [Diagnostic] = []

    mutating func add(_ diagnostic: Diagnostic) { all.append(diagnostic) }

    /// Adds a complaint about `node`. Each fix replaces `old` by `new`.
    mutating func add(
        _ name: String,
        _ message: String,
        at node: some SyntaxProtocol,
        fixes: [(text: String, old: Syntax, new: Syntax)] = []
    ) {
        all.append(
            Diagnostic(
                node: node,
                message: Complaint(name: name, message: message),
                fixIts: fixes.map { fix in
                    FixIt(
                        message: Remedy(message: fix.text),
                        changes: [.replace(oldNode: fix.old, newNode: fix.new)]
                    )
                }
            )
        )
    }
}
#endif
