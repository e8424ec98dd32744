// Misuse that the compiler must refuse, and its twins that it must accept.
import Testing

@Suite("Misuse does not compile") struct MisuseTests {
    @Test("The compiler refuses it, where it is expected", arguments: Snippet.all)
    func isRefused(_ snippet: Snippet) throws {
        try #require(Verdicts.all.failure == nil)
        let errors = Verdicts.all.refusals[snippet.name] ?? []
        #expect(!errors.isEmpty, "\(snippet.name) compiles")
        for error in errors {
            #expect(
                snippet.refusedLines.contains(error.line),
                "refused for another reason: \(error)"
            )
        }
    }

    @Test("Its twin compiles", arguments: Snippet.all)
    func twinCompiles(_ snippet: Snippet) throws {
        try #require(Verdicts.all.failure == nil)
        let errors = Verdicts.all.twins.filter { $0.file == snippet.name }
        #expect(errors.isEmpty, "\(errors)")
    }

    @Test("What the snippets share compiles, and no error is without a snippet")
    func nothingElseFails() throws {
        try #require(Verdicts.all.failure == nil)
        #expect(Snippet.all.count > 10)
        let names = Set(Snippet.all.map(\.name))
        let strangers =
            Verdicts.all.twins.filter { !names.contains($0.file) }
            + Verdicts.all.refusals.filter { !names.contains($0.key) }.flatMap(\.value)
        #expect(strangers.isEmpty, "\(strangers)")
    }
}
