// What an object tells of itself to a log, a debugger or a failed test.
//
// Invariants
// - Nothing is read from the store, registered or observed: a fault stays a fault, whoever looks.
// - It works for every object: new, deleted, without a context, of an entity that no schema lists.

import Foundation
import VarveBase
import VarveRecords

extension ManagedObject {
    /// Entity, number, state and the values that are in memory, in one line: `print(item)` shows
    /// it. Loads nothing: a fault shows its unsaved edits only.
    ///
    /// `Item/3 (changed): title: "Milk", folder: Folder/7`. Long texts are cut. With
    /// `ContainerOptions.redactsDescriptions` the values are left out.
    public var description: String { ObjectDescription(self).line }

    /// The same as `description`, also for an entity that has an attribute of that name.
    public var debugDescription: String { ObjectDescription(self).line }

    /// The same in lines, one for each property, with what is not loaded and, of unsaved edits, the
    /// saved value. Loads nothing.
    public var detailedDescription: String { ObjectDescription(self).lines }

    /// Entity, number, state and the names of the properties that are in memory, without values:
    /// for logs that others read. Loads nothing.
    public var redactedDescription: String { ObjectDescription(self, isRedacted: true).line }

    /// The same for `dump` and for tests that compare objects: what is in memory, relationships as
    /// IDs. Loads nothing and leads to no other object.
    public var customMirror: Mirror {
        let description = ObjectDescription(self)
        let children: [Mirror.Child] =
            [("objectID", objectID), ("state", description.state)]
            + description.properties.compactMap { property in
                property.content.map { (property.name, $0.value) }
            }
        return Mirror(
            self,
            children: children,
            displayStyle: .class,
            ancestorRepresentation: .suppressed
        )
    }
}

/// An object as text.
struct ObjectDescription {
    struct Content {
        /// For people.
        var text: String
        /// For a mirror.
        var value: Any
    }

    struct Property {
        var name: String
        /// Nil: it is not in memory.
        var content: Content?
        /// What an unsaved edit changed, if that is in memory.
        var saved: Content?
        /// Whether there is an unsaved edit.
        var isEdited = false
    }

    private static let lineLength = 80
    private static let valueLength = 1_000
    private static let membersMax = 8

    let name: String
    /// "changed, fault".
    let state: String
    private(set) var properties: [Property] = []
    private let isRedacted: Bool

    init(_ object: some ManagedObject, isRedacted: Bool = false) {
        let model = object.storage.model
        name = "\(model.name)/\(ObjectNumber.text(object.storage.object))"
        state = Self.state(of: object)
        self.isRedacted = isRedacted || object.storage.core.container.options.redactsDescriptions
        for slot in model.properties.indices { properties.append(property(object, slot)) }
    }

    /// `Item/3 (changed): title: "Milk"`.
    var line: String {
        let known = properties.compactMap { property in
            property.content.map { "\(property.name): \(cut($0.text, Self.lineLength))" }
        }
        return "\(name) (\(state))"
            + (known.isEmpty ? "" : ": " + known.joined(separator: ", "))
    }

    var lines: String {
        let rows = properties.map { property in
            guard let content = property.content else { return "  \(property.name): not loaded" }
            var row = "  \(property.name): \(cut(content.text, Self.valueLength))"
            if let saved = property.saved {
                row += " (saved: \(cut(saved.text, Self.lineLength)))"
            } else if property.isEdited {
                row += " (edited)"
            }
            return row
        }
        return (["\(name) (\(state))"] + rows).joined(separator: "\n")
    }

    private func cut(_ text: String, _ length: Int) -> String {
        // Counting characters of a long text takes its time.
        if text.utf8.count <= length { return text }
        return "\(text.prefix(length))… (\(text.utf8.count) bytes)"
    }

    private static func state(of object: some ManagedObject) -> String {
        let state = object.storage.state
        var words: [String] = []
        if state.contains(.inserted) { words.append("inserted") }
        if state.contains(.gone) {
            words.append("gone")
        } else if state.contains(.deleted) {
            words.append("deleted")
        }
        if words.isEmpty, object.isUpdated { words.append("changed") }
        if state.contains(.invalid) {
            words.append("in no context")
        } else if object.storage.core.context == nil {
            words.append("its context is gone")
        } else if object.isFault, !state.contains(.gone) {
            words.append("fault")
        }
        return words.isEmpty ? "unchanged" : words.joined(separator: ", ")
    }

    // MARK: Properties

    private func property(_ object: some ManagedObject, _ slot: Int) -> Property {
        let model = object.storage.model
        let property = model.properties[slot]
        var result = Property(name: property.name)
        if property.relationship?.isToMany == true {
            result.isEdited = edit(of: object, slot) != nil
            result.content = members(of: object, slot).map(content)
            return result
        }
        let edited = object.storage.edits?.values[slot]
        let saved = Self.saved(object, slot)
        guard let shown = edited ?? saved else { return result }
        result.content = content(shown, of: object, property)
        result.isEdited = edited != nil && !object.storage.state.contains(.inserted)
        if result.isEdited, !isRedacted {
            result.saved = saved.map { content($0, of: object, property) }
        }
        return result
    }

    /// The value as the row in memory has it.
    private static func saved(_ object: some ManagedObject, _ slot: Int) -> StoredValue? {
        let model = object.storage.model
        guard let row = object.storage.row, let column = model.properties[slot].column else {
            return nil
        }
        if !row.isOutside(column) { return try? row.value(column) }
        guard let kept = object.storage.core.context?.keptValues[row.id] else { return nil }
        return kept.version == row.version ? kept.values[column] : nil
    }

    private func content(
        _ value: StoredValue,
        of object: some ManagedObject,
        _ property: PropertyModel
    ) -> Content {
        if case .reference(let id) = value {
            let target = Self.id(id, property, object)
            return Content(text: target, value: target)
        }
        if isRedacted { return Content(text: "<redacted>", value: "<redacted>") }
        let type = property.attribute?.type
        return Content(text: Self.text(of: value, type), value: Self.shown(value, type))
    }

    private static func id(
        _ id: ObjectID,
        _ property: PropertyModel,
        _ object: some ManagedObject
    ) -> String {
        let schema = object.storage.core.container.schema
        let target = property.relationship.flatMap { schema.entity($0.target) }
        return "\(target?.name ?? "?")/\(ObjectNumber.text(id))"
    }

    private static func text(of value: StoredValue, _ type: AttributeType?) -> String {
        switch value {
        case .data(let bytes): "\(bytes.count) bytes"
        case .blob(let blob): "blob of \(blob.length) bytes"
        default: QueryText.text(of: value, type)
        }
    }

    /// The value as Swift has it; a blob as its text.
    private static func shown(_ value: StoredValue, _ type: AttributeType?) -> Any {
        switch value {
        case .null: Any?.none as Any
        case .bool(let value): value
        case .int where type == .uint64: UInt64(stored: value) ?? 0
        case .int(let number): Int(number)
        case .float(let value): value
        case .double(let value): value
        case .date(let seconds): Date(timeIntervalSinceReferenceDate: seconds)
        case .text(let value): value
        case .data(let bytes): Data(bytes)
        case .uuid: UUID(stored: value) as Any
        case .decimal: Decimal(stored: value) as Any
        case .reference, .blob: text(of: value, type)
        }
    }

    // MARK: To-many relationships

    private func content(_ members: [String]) -> Content {
        var shown = members.prefix(Self.membersMax).joined(separator: ", ")
        if members.count > Self.membersMax { shown += ", … (\(members.count))" }
        return Content(text: "[\(shown)]", value: members)
    }

    private func edit(of object: some ManagedObject, _ slot: Int) -> ToManyEdit? {
        object.storage.core.context?
            .toManyEdits[ToManyKey(owner: object.storage.object, slot: slot)]
    }

    /// The members' IDs, if the relationship was read; nil also of a deleted object, where others
    /// would have to be asked.
    private func members(of object: some ManagedObject, _ slot: Int) -> [String]? {
        let property = object.storage.model.properties[slot]
        guard let context = object.storage.core.context,
            object.storage.state.isDisjoint(with: [.deleted, .gone, .invalid]),
            let base = context.knownMembers(of: object, slot: slot)
        else { return nil }
        let ids = edit(of: object, slot)?.members(over: base, commit: context.commit) ?? base
        return ids.filter { context.doomed[$0] == nil }.map { Self.id($0, property, object) }
    }
}

extension ToMany: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The members' IDs if they were read; loads nothing.
    public var description: String {
        "\(owner.storage.model.properties[slot].name) of \(owner.storage.model.name)/"
            + "\(ObjectNumber.text(owner.storage.object)): \(shown)"
    }

    /// The same as `description`.
    public var debugDescription: String { description }

    /// The same for `dump` and for tests that compare lists.
    public var customMirror: Mirror {
        Mirror(self, children: ["members": shown], displayStyle: .struct)
    }

    private var shown: String {
        guard let property = ObjectDescription.property(of: owner, slot) else {
            return "not loaded"
        }
        return property.content?.text ?? "not loaded"
    }
}

extension ObjectDescription {
    /// One property of an object.
    static func property(of object: any ManagedObject, _ slot: Int) -> Property? {
        let all = ObjectDescription(object).properties
        return all.indices.contains(slot) ? all[slot] : nil
    }
}
