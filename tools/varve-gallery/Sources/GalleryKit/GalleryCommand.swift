// The command line: all commands of the gallery.

package import ArgumentParser

/// The command line.
package struct GalleryCommand: AsyncParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "gallery",
        abstract: "Shows 40,000 rows and hundreds of pictures going by in flat memory.",
        subcommands: [
            ImportCommand.self, ListCommand.self, LiveCommand.self, LiveWriterCommand.self,
            ScrollCommand.self, ScrollRoundCommand.self, RunCommand.self,
        ]
    )

    package init() {}
}
