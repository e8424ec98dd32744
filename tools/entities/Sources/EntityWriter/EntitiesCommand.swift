// The command: `write` and `check`, their arguments, and what they print.
import ArgumentParser
import Foundation

@main struct Entities: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tools/entities/run",
        abstract: "Writes entities without macros, from a model that is written with them.",
        discussion: """
            The model is Swift as for the macros: @Entity, @Attribute, @Relationship, @Transient, \
            #Index, #Unique. The app does not compile it, but what is written from it, and so \
            needs neither the macros nor swift-syntax.
            """,
        subcommands: [Write.self, Check.self]
    )
}

/// The folders that both commands work on.
struct Folders: ParsableArguments {
    @Argument(help: "The folder of the model, or one file of it.")
    var model: String

    @Argument(help: "The folder of the entities, which the app compiles.")
    var output: String

    var entityFolder: EntityFolder { EntityFolder(model: model, output: output) }
}

struct Write: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes the entities of each file of the model.",
        discussion: """
            Model/Item.swift becomes Item.generated.swift. Files of models that are gone are \
            removed. Nothing is written when the model has an error (exit 1), or over a file \
            that this command did not write.
            """
    )

    @OptionGroup var folders: Folders

    func run() throws {
        try finish(folders.entityFolder.write())
    }
}

struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Says which files are not what the model becomes, and writes nothing.",
        discussion: "Exit 1 when there is one, or when the model has an error."
    )

    @OptionGroup var folders: Folders

    func run() throws {
        try finish(folders.entityFolder.check())
    }
}

/// Prints what a command found and ends with its status.
private func finish(_ outcome: Outcome) throws {
    for line in outcome.lines { print(line) }
    // A compiler's words go where a compiler's words go.
    let text = outcome.errors.map { $0 + "\n" }.joined()
    FileHandle.standardError.write(Data(text.utf8))
    if !outcome.errors.isEmpty { throw ExitCode.failure }
}
