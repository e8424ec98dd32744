// varve schema: entities, attributes, relationships, indexes as stored.

import ArgumentParser
import VarveInspection

struct Schema: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Entities, attributes, relationships and indexes, as the store has them."
    )

    @OptionGroup var common: CommonOptions

    func run() throws {
        let schema = try StoreObserver.open(common.store).schema()
        if common.json {
            Output.line(schema.json.text)
            return
        }
        let style = common.style
        Output.line("version \(schema.version)")
        for entity in schema.entities {
            Output.line("")
            Output.line(
                style.bold(Spelling.escaped(entity.name)) + "  \(Spelling.number(entity.rows)) rows"
            )
            for line in Self.lines(entity) { Output.line("  " + line) }
        }
    }

    static func lines(_ entity: SchemaReport.Entity) -> [String] {
        var lines: [String] = []
        let names = entity.attributes.map(\.name) + entity.relationships.map(\.name)
        let width = names.map(\.count).max() ?? 0
        for attribute in entity.attributes {
            var line = Spelling.escaped(attribute.name).padding(toWidth: width) + "  "
            line += attribute.type + (attribute.isOptional ? "?" : "")
            if let value = attribute.defaultValue {
                if case .text(let text) = value {
                    line += " = \"\(Spelling.escaped(text))\""
                } else {
                    line += " = \(value.text())"
                }
            }
            if let limit = attribute.externalLimit { line += "  a file above \(limit) bytes" }
            lines.append(line)
        }
        for relationship in entity.relationships {
            var line = Spelling.escaped(relationship.name).padding(toWidth: width) + "  -> "
            if relationship.isOrdered { line += "ordered " }
            line += relationship.isToMany ? "[\(relationship.target)]" : "\(relationship.target)?"
            if let inverse = relationship.inverse { line += "  inverse \(inverse)" }
            lines.append(line + "  on delete \(relationship.deleteRule)")
        }
        for index in entity.indexes {
            lines.append(
                (index.isUnique ? "unique " : "index ") + index.properties.joined(separator: ", ")
            )
        }
        return lines
    }
}
