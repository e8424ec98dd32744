// A world of transactions that throw: objects at places, steps that edit them, and what is shown.

import Foundation
import Testing

@testable import VarveObjects

/// The objects of one context, by their places.
private final class Desk {
    let context: ManagedObjectContext
    var items: [Item?]
    var pictures: [Picture?]
    var folders: [Folder?]
    var tags: [Tag?]

    init(_ context: ManagedObjectContext) {
        self.context = context
        items = Array(repeating: nil, count: ThrownWorld.places)
        pictures = Array(repeating: nil, count: ThrownWorld.places)
        folders = Array(repeating: nil, count: ThrownWorld.places)
        tags = Array(repeating: nil, count: ThrownWorld.places)
    }

    /// The objects of another desk as this context sees them.
    convenience init(_ context: ManagedObjectContext, of other: Desk) throws {
        self.init(context)
        try take(from: other)
    }

    /// Fills empty places.
    func take(from other: Desk) throws {
        func found<Object: ManagedObject>(
            _ mine: [Object?],
            _ theirs: [Object?]
        ) throws -> [Object?] {
            try zip(mine, theirs).map { mine, theirs in
                try mine ?? theirs.flatMap { try context.existingObject(with: $0.id) }
            }
        }
        items = try found(items, other.items)
        pictures = try found(pictures, other.pictures)
        folders = try found(folders, other.folders)
        tags = try found(tags, other.tags)
    }
}

/// A container and a context of which a transaction that throws is run, or, in the twin, left out.
final class ThrownWorld {
    /// The places of each kind that begin with an object.
    static let full = 3
    static let places = 5
    private struct Stop: Error {}

    let container: PersistentContainer
    private let main: Desk
    private let isTwin: Bool
    /// What steps gave.
    private(set) var log: [String] = []

    init(isTwin: Bool, undoLimit: Int, _ bugs: Set<PlantedObjectBug>) throws {
        self.isTwin = isTwin
        var options = ContainerOptions()
        options.plantedBugs = bugs
        container = try memory(options)
        let context = container.newContext()
        main = Desk(context)
        for at in 0..<Self.full {
            let (item, picture) = (Item(in: context), Picture(in: context))
            let (folder, tag) = (Folder(in: context), Tag(in: context))
            item.timestamp = Date(timeIntervalSinceReferenceDate: 0)
            item.title = "item \(at)"
            picture.data = try Self.blob(at, in: context)
            if at > 0 { (item.picture, item.folder) = (picture, folder) }
            item.tags.append(tag)
            (main.items[at], main.pictures[at]) = (item, picture)
            (main.folders[at], main.tags[at]) = (folder, tag)
        }
        try context.save()
        context.undoLimit = undoLimit
    }

    /// Contexts that end with edits say so.
    func end() {
        main.context.rollback()
        main.context.acknowledgeReadFailures()
    }

    /// Every other one is in a file of its own.
    private static func blob(_ number: Int, in context: ManagedObjectContext) throws -> Blob {
        let bytes = Data(repeating: UInt8(number), count: number % 2 == 0 ? 40 : 2_000)
        return try context.makeBlob(bytes, for: Picture.columns.data)
    }

    // MARK: Steps

    /// Does a step, and gives what it gave and what both contexts show behind it.
    func run(_ step: ThrownStep) throws -> [String] {
        log = []
        try run(step, main, isThrown: false)
        return try log + shown(main) + stored()
    }

    /// - Parameter isThrown: inside a transaction that throws: the twin only does what is not taken
    ///   back.
    private func run(_ step: ThrownStep, _ desk: Desk, isThrown: Bool) throws {
        let isLeftOut = isThrown && isTwin
        let context = desk.context
        switch step {
        case .edit(let edits): if !isLeftOut { try edit(edits, desk) }
        case .above(let edits): if !isLeftOut { try edit(edits, main) }
        case .group(let edits):
            if !isLeftOut { try context.withUndoGroup { try edit(edits, desk) } }
        case .others(let edits):
            let other = try Desk(container.newContext(), of: main)
            try edit(edits, other)
            let found = code { try other.context.save(mergePolicy: .overwrite) }
            if let found { log.append("others: \(found)") }
            other.context.rollback()
        // A branch stays where it is while a transaction runs.
        case .advance: if !isLeftOut || desk === main { context.advance() }
        case .refresh: if !isLeftOut || desk === main { context.refreshAllObjects() }
        case .compact: try container.compactNow()
        case .rollback: context.rollback()
        case .undo: if let left = skipped({ try context.undo() }) { log.append("undo \(left)") }
        case .redo: if let left = skipped({ try context.redo() }) { log.append("redo \(left)") }
        case .thrown(let steps): try thrown(steps, desk, isThrown)
        case .kept(let steps):
            try context.transaction { try run(steps, desk, isThrown) }
        case .branch(let steps, let policy): try branch(steps, desk, policy, isThrown)
        case .save(let policy): save(policy)
        }
    }

    private func run(_ steps: [ThrownStep], _ desk: Desk, _ isThrown: Bool) throws {
        for step in steps {
            try run(step, desk, isThrown: isThrown)
            if !isThrown { log += try shown(desk) }
        }
    }

    private func thrown(_ steps: [ThrownStep], _ desk: Desk, _ isThrown: Bool) throws {
        if isTwin {
            // Of the transaction itself the twin has all but the edits.
            if !isThrown { desk.context.transaction {} }
            return try run(steps, desk, true)
        }
        let known = (desk.items, desk.pictures, desk.folders, desk.tags)
        do {
            try desk.context.transaction {
                try run(steps, desk, true)
                throw Stop()
            }
        } catch is Stop {
            (desk.items, desk.pictures, desk.folders, desk.tags) = known
        }
    }

    private func branch(
        _ steps: [ThrownStep],
        _ desk: Desk,
        _ policy: Int?,
        _ isThrown: Bool
    ) throws {
        if isThrown, isTwin {
            return try others(in: steps, desk)
        }
        let branch = try Desk(desk.context.branch(), of: desk)
        try run(steps, branch, isThrown)
        guard let policy else { return }
        let policies: [BranchMergePolicy] = [.error, .branchWins, .parentWins]
        let left = skipped { try branch.context.mergeIntoParent(policies[policy]) }
        if !isThrown { log.append("merge \(left ?? "")") }
        try desk.take(from: branch)
    }

    /// Of a branch that is left out: what others do meanwhile.
    private func others(in steps: [ThrownStep], _ desk: Desk) throws {
        for step in steps {
            switch step {
            case .others: try run(step, desk, isThrown: true)
            case .thrown(let parts), .kept(let parts), .branch(let parts, _):
                try others(in: parts, desk)
            default: break
            }
        }
    }

    private func save(_ number: Int) {
        let policies: [MergePolicy] = [
            .overwrite, .storeWinsByProperty, .objectWinsByProperty, .rollback,
        ]
        guard let found = code({ try main.context.save(mergePolicy: policies[number]) }) else {
            return
        }
        log.append("save: \(found)")
        end()
    }

    /// What was left as it was, or why nothing was done.
    private func skipped(_ body: () throws -> [SkippedEdit]) -> String? {
        var left: [SkippedEdit] = []
        let found = code { left = try body() }
        if let found { return "\(found)" }
        let texts = left.map { "\($0.property ?? "all") \($0.reason)" }.sorted()
        return texts.isEmpty ? nil : "\(texts)"
    }

    // MARK: Edits

    private func edit(_ edits: [ThrownEdit], _ desk: Desk) throws {
        for edit in edits { try self.edit(edit, desk) }
    }

    private func edit(_ edit: ThrownEdit, _ desk: Desk) throws {
        let (items, pictures) = (desk.items, desk.pictures)
        switch edit {
        case .title(let at, let value): items[at]?.title = "title \(value)"
        case .number(let at, let value): items[at]?.number = value
        case .serial(let at, let value): items[at]?.serial = value.map(Self.serial)
        case .caption(let at, let value): pictures[at]?.caption = "caption \(value)"
        case .name(let at, let value): desk.folders[at]?.name = "name \(value)"
        case .folder(let at, let to):
            let target = to.flatMap { desk.folders[$0] }
            if target?.isDeleted != true { items[at]?.folder = target }
        case .picture(let at, let to):
            let target = to.flatMap { pictures[$0] }
            if target?.isDeleted != true { items[at]?.picture = target }
        case .tag(let at, let to):
            if let tag = desk.tags[to], !tag.isDeleted { items[at]?.tags.append(tag) }
        case .untag(let at, let to):
            if let tag = desk.tags[to], !tag.isDeleted { items[at]?.tags.remove(tag) }
        case .data(let at, let value):
            pictures[at]?.data = try Self.blob(value, in: desk.context)
        case .sameData(let at, let from):
            if let from = pictures[from] { pictures[at]?.data = from.data }
        case .insert(let kind, let at): insert(kind, at, desk)
        case .delete(let kind, let at):
            let object: (any ManagedObject)? =
                switch kind {
                case 0: items[at]
                case 1: pictures[at]
                case 2: desk.folders[at]
                default: desk.tags[at]
                }
            if let object, !object.isDeleted { desk.context.delete(object) }
        }
    }

    private static func serial(_ number: Int) -> UUID {
        UUID(uuid: (UInt8(number), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
    }

    /// Into an empty place, or none.
    private func insert(_ kind: Int, _ at: Int, _ desk: Desk) {
        switch kind {
        case 0 where desk.items[at] == nil:
            let item = Item(in: desk.context)
            item.timestamp = Date(timeIntervalSinceReferenceDate: 1)
            item.serial = Self.serial(at)
            desk.items[at] = item
        case 1 where desk.pictures[at] == nil: desk.pictures[at] = Picture(in: desk.context)
        case 2 where desk.folders[at] == nil: desk.folders[at] = Folder(in: desk.context)
        case 3 where desk.tags[at] == nil: desk.tags[at] = Tag(in: desk.context)
        default: break
        }
    }

    // MARK: What is shown

    /// What a context that was made now reads.
    private func stored() throws -> [String] {
        let desk = try Desk(container.newContext(), of: main)
        let all = try desk.context.fetch(Item.all)
            .map { "\($0.title) \($0.number) \($0.serial?.uuidString ?? "-")" }.sorted()
        return try shown(desk).map { "stored \($0)" } + ["stored \(all)"]
    }

    private func shown(_ desk: Desk) throws -> [String] {
        var lines: [String] = []
        for at in 0..<Self.places {
            if let item = desk.items[at] { lines.append("item\(at)\(shown(item, desk))") }
            if let picture = desk.pictures[at] { lines.append("picture\(at)\(shown(picture))") }
            if let folder = desk.folders[at] {
                let members = folder.isDeleted ? [] : places(folder.items, desk.items).sorted()
                lines.append("folder\(at)\(flags(folder)) \(folder.name) \(members)")
            }
            if let tag = desk.tags[at] {
                let members = tag.isDeleted ? [] : places(tag.items, desk.items).sorted()
                lines.append("tag\(at)\(flags(tag)) \(members)")
            }
        }
        let context = desk.context
        lines.append("hasChanges \(context.hasChanges), failures \(context.readFailures.count)")
        lines.append("undo \(context.canUndo), redo \(context.canRedo)")
        return lines
    }

    private func shown(_ item: Item, _ desk: Desk) -> String {
        let serial = item.serial.map { "\($0.uuid.0)" } ?? "-"
        let values = "\(flags(item)) \(item.title) \(item.number) \(serial)"
        if item.isDeleted { return values }
        let folder = item.folder.map { places([$0], desk.folders) }
        let picture = item.picture.map { places([$0], desk.pictures) }
        let tags = places(item.tags, desk.tags)
        return values + " f\(folder ?? []) p\(picture ?? []) t\(tags)"
    }

    private func shown(_ picture: Picture) -> String {
        var data = "nil"
        if let blob = picture.data {
            let found = code {
                let bytes = try blob.readAll()
                data = "\(bytes.count) of \(bytes.first ?? 0)"
            }
            if let found { data = "\(found)" }
        }
        return "\(flags(picture)) \(picture.caption) \(data)"
    }

    private func flags(_ object: some ManagedObject) -> String {
        (object.isDeleted ? " deleted" : "") + (object.isInserted ? " inserted" : "")
            + (object.hasChanges ? " changed" : "")
    }

    /// -1: at no place.
    private func places<Object: ManagedObject>(
        _ objects: some Sequence<Object>,
        _ all: [Object?]
    ) -> [Int] {
        objects.map { object in all.firstIndex { $0?.id == object.id } ?? -1 }
    }
}
