// A property path with its names resolved to columns.
//
// Invariants
// - Every hop is a to-one relationship kept in a column; a hop over null, or to an object that is
//   gone, makes the value null.

import VarveBase

/// A resolved path from an entity to one of its values, over any number of to-one relationships.
///
/// A class, so that taking it out of a filter's node costs one reference count.
final class CompiledPath: Sendable {
    struct Hop: Hashable, Sendable {
        let column: ColumnID
        let target: EntityID
    }

    enum Terminal: Hashable, Sendable {
        /// The object itself, as a reference.
        case object
        case column(ColumnID)
        case blobLength(ColumnID)
        case blobDigest(ColumnID)
        case datePart(ColumnID, DatePart, DateZone)
    }

    /// What a constant compared with the path must be.
    enum Kind: Hashable, Sendable {
        case attribute(AttributeType)
        case reference
        case blobLength
        case blobDigest
        case datePart
    }

    let hops: [Hop]
    let terminal: Terminal
    let kind: Kind
    /// The path as text, for errors and plans.
    let text: String

    /// The column, when the path is a whole value of the query's own entity.
    var ownColumn: ColumnID? {
        if hops.isEmpty, case .column(let column) = terminal { return column }
        return nil
    }

    /// Column and part, when the path is a part of a date of the query's own entity.
    var ownDatePart: (column: ColumnID, part: DatePart, zone: DateZone)? {
        guard hops.isEmpty, case .datePart(let column, let part, let zone) = terminal else {
            return nil
        }
        return (column, part, zone)
    }

    private init(hops: [Hop], terminal: Terminal, kind: Kind, text: String) {
        self.hops = hops
        self.terminal = terminal
        self.kind = kind
        self.text = text
    }

    /// The path to the value of which this one takes a part.
    var wholeValue: CompiledPath {
        guard case .datePart(let column, _, _) = terminal else { return self }
        return CompiledPath(
            hops: hops,
            terminal: .column(column),
            kind: .attribute(.date),
            text: text.split(separator: ".").prefix(hops.count + 1).joined(separator: ".")
        )
    }

    /// The path as the object after the first hop sees it.
    var behindFirstHop: CompiledPath {
        CompiledPath(hops: Array(hops.dropFirst()), terminal: terminal, kind: kind, text: text)
    }

    /// The to-one relationship that the path begins with, as a path of its own.
    var firstHop: CompiledPath? {
        guard let first = hops.first else { return nil }
        let name = text.prefix { $0 != "." }
        return CompiledPath(
            hops: [],
            terminal: .column(first.column),
            kind: .reference,
            text: String(name)
        )
    }

    /// The path of a whole value of its own entity: the names are resolved once for all requests.
    init(own column: ColumnID, _ kind: Kind, name: String) {
        hops = []
        terminal = .column(column)
        self.kind = kind
        text = name
    }

    /// Resolves the names of a path.
    /// - Throws: `unknownProperty`, `unsupportedPredicate` for a part that the value has not.
    static func of(
        _ path: PropertyPath,
        _ entity: RecordEntity,
        _ schema: RecordSchema
    ) throws(RecordError) -> CompiledPath {
        if path.names.count == 1, case .value = path.part, let own = entity.path(path.names[0]) {
            return own
        }
        return try CompiledPath(path, entity: entity, schema: schema)
    }

    private init(
        _ path: PropertyPath,
        entity: RecordEntity,
        schema: RecordSchema
    ) throws(RecordError) {
        var hops: [Hop] = []
        var current = entity
        for name in path.names.dropLast() {
            guard let relationship = current.relationship(named: name),
                case .column(let column, _) = relationship.storage,
                let target = schema.entity(relationship.target)
            else { throw .unknownProperty(entity: current.name, property: name) }
            hops.append(Hop(column: column, target: target.id))
            current = target
        }
        self.hops = hops
        var text = path.names.joined(separator: ".")
        guard let name = path.names.last else {
            guard path.part == .value else {
                throw .unsupportedPredicate("an object has no blob length, digest or date")
            }
            terminal = .object
            kind = .reference
            self.text = "self"
            return
        }
        if let attribute = current.attribute(named: name) {
            switch path.part {
            case .value:
                terminal = .column(attribute.column)
                kind = .attribute(attribute.type)
            case .blobLength, .blobDigest:
                guard attribute.type == .blob else {
                    throw .unsupportedPredicate("\(text) is not a blob")
                }
                let isLength = path.part == .blobLength
                terminal =
                    isLength ? .blobLength(attribute.column) : .blobDigest(attribute.column)
                kind = isLength ? .blobLength : .blobDigest
                text += isLength ? ".length" : ".digest"
            case .date(let part, let zone):
                guard attribute.type == .date else {
                    throw .unsupportedPredicate("\(text) is not a date")
                }
                terminal = .datePart(attribute.column, part, zone)
                kind = .datePart
                text += ".\(part.rawValue)(in: \(zone.name))"
            }
        } else if let relationship = current.relationship(named: name),
            case .column(let column, _) = relationship.storage, path.part == .value
        {
            terminal = .column(column)
            kind = .reference
        } else {
            throw .unknownProperty(entity: current.name, property: name)
        }
        self.text = text
    }

    /// The value that the path leads to.
    func value(
        _ object: some RecordValues,
        _ resolver: some RecordResolver
    ) throws(RecordError) -> StoredValue {
        guard let first = hops.first else { return try terminalValue(object) }
        guard var id = try object.reference(first.column) else { return .null }
        for index in hops.indices {
            guard let next = try resolver.values(hops[index].target, id) else { return .null }
            guard index + 1 < hops.count else { return try terminalValue(next) }
            guard let further = try next.reference(hops[index + 1].column) else { return .null }
            id = further
        }
        return .null
    }

    private func terminalValue(_ object: some RecordValues) throws(RecordError) -> StoredValue {
        switch terminal {
        case .object: return .reference(object.objectID)
        case .column(let column): return try object.value(column)
        case .blobLength(let column):
            guard case .blob(let blob) = try object.value(column) else { return .null }
            return .int(Int64(clamping: blob.length))
        case .blobDigest(let column):
            guard case .blob(let blob) = try object.value(column) else { return .null }
            return .data(blob.digest.bytes)
        case .datePart(let column, let part, let zone):
            return Self.datePart(part, zone, try object.value(column))
        }
    }

    /// A part of a stored date.
    static func datePart(_ part: DatePart, _ zone: DateZone, _ date: StoredValue) -> StoredValue {
        guard case .date(let seconds) = date else { return .null }
        return part.value(of: seconds, in: zone).map { .int($0) } ?? .null
    }

    /// The constant in the form in which the path's values are stored.
    func coerce(_ value: StoredValue) throws(RecordError) -> StoredValue {
        switch (kind, value) {
        case (_, .null): return value
        case (.attribute(let type), _) where type.accepts(value): return value
        case (.attribute(.double), .int(let number)):
            if let exact = Double(exactly: number) { return .double(exact) }
        case (.attribute(.double), .float(let number)): return .double(Double(number))
        case (.attribute(.float), .int(let number)):
            if let exact = Float(exactly: number) { return .float(exact) }
        case (.attribute(.float), .double(let number)):
            if let exact = Float(exactly: number) { return .float(exact) }
        case (.reference, .reference), (.blobLength, .int), (.datePart, .int): return value
        case (.blobDigest, .data(let bytes)) where bytes.count == 32: return value
        default: break
        }
        throw .unsupportedPredicate("\(text) is compared with a value of another type")
    }
}

extension CompiledPath: Hashable {
    static func == (left: CompiledPath, right: CompiledPath) -> Bool {
        left === right
            || (left.hops == right.hops && left.terminal == right.terminal
                && left.kind == right.kind)
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(hops)
        hasher.combine(terminal)
        hasher.combine(kind)
    }
}
