// Runs of objects with composites, codecs and lists in several contexts.
//
// Every column is a value of its own: what a context shows is, column by column, what it set
// itself, else what the newest commit that it has seen has. A save keeps both.

import VarveInspection
import VarveObjects
import VarveTesting

/// One run of several contexts, each with edits of rich attributes only.
final class RichWorld: FuzzedWorld {
    private final class Editor {
        let context: ManagedObjectContext
        var base: [RichColumns]
        var commit: Int
        /// By object: which columns it set, and what it shows.
        var edits: [Int: (names: Set<String>, values: RichColumns)] = [:]
        init(_ context: ManagedObjectContext, _ base: [RichColumns], _ commit: Int) {
            (self.context, self.base, self.commit) = (context, base, commit)
        }
        /// Whether it moved on under edits of an optional composite: until they are saved, requests
        /// find fields that nobody set as they are kept, and not at their defaults.
        var hasFragments = false
        func shown(_ number: Int) -> RichColumns { edits[number]?.values ?? base[number] }
        /// An object shows these now. What is set to what the commit has is no edit.
        func set(_ number: Int, _ values: RichColumns) {
            let changed = shown(number).changes(to: values)
            let other = base[number].changes(to: values)
            let names = (edits[number]?.names ?? []).subtracting(changed)
                .union(changed.intersection(other))
            edits[number] = names.isEmpty ? nil : (names, values)
        }
    }

    private let disk = SimulatedDisk()
    private let options: ContainerOptions
    private(set) var container: PersistentContainer
    private var editors: [Editor] = []
    private var ids: [Alpha.ID] = []
    private var newest: [RichColumns] = []
    /// The commits that last changed an object, and that last wrote it, maybe as it was.
    private var versions: [Int: Int] = [:]
    private var written: [Int: Int] = [:]
    private var commit = 0
    private(set) var script: [String] = []

    required init(_ setup: UInt64, _ options: ContainerOptions, observes: Bool) throws {
        self.options = options
        container = try PersistentContainer.openNow(
            on: disk,
            schema: FuzzedSchema.self,
            options: options
        )
        let context = container.newContext()
        for _ in 0..<(1 + setup % 4) { ids.append(Alpha(in: context).id) }
        try context.save()
        newest = ids.map { _ in RichColumns(RichValues()) }
        try addEditors(2)
    }

    private func addEditors(_ count: Int) throws {
        for _ in 0..<count {
            let context = container.newContext()
            _ = try context.count(Alpha.all)
            context.undoLimit = 20
            editors.append(Editor(context, newest, commit))
        }
    }

    func end() {
        editors = []
        try? container.closeNow(discardingEdits: true)
    }

    private func fail(_ what: String) -> Violation { Violation(what) }

    private func object(_ number: Int, _ editor: Editor) throws -> Alpha {
        guard let object = try editor.context.existingObject(with: ids[number]) else {
            throw fail("#\(number) is not there")
        }
        return object
    }

    // MARK: Steps

    func step(_ step: UInt64) throws {
        var random = SeededRandom(seed: step)
        let place = Int(random.next() % UInt64(editors.count))
        let editor = editors[place]
        let number = Int(random.next() % UInt64(ids.count))
        switch random.next() % 20 {
        case 0...7: try edit(editor, number, place, &random)
        case 8: try setAgain(editor, number, place)
        case 9...10: try save(editor, place, &random)
        case 11:
            script.append("\(place): advance")
            editor.context.advance()
            try moved(editor)
        case 12:
            script.append("\(place): rollback")
            editor.context.rollback()
            editor.edits = [:]
        case 13...14: try undo(editor, number, place, &random)
        case 15: try branch(editor, number, place, &random)
        case 16: try batch(editor, place, &random)
        case 17...18: try ask(editor, place, &random)
        default: try reopen(&random)
        }
        for editor in editors { try compare(editor) }
    }

    func finish() throws {
        for editor in editors {
            let result = try editor.context.save(mergePolicy: .objectWinsByProperty)
            try settled(editor, result)
        }
        guard try StoreObserver.open(disk.location()).verify(level: .normal).isSound else {
            throw fail("verify: not sound")
        }
    }

    private func edit(
        _ editor: Editor,
        _ number: Int,
        _ place: Int,
        _ random: inout SeededRandom
    ) throws {
        let object = try object(number, editor)
        let before = RichValues(object)
        if random.next() % 16 == 0 {
            // What no JSON has is kept out, and a proper value forgets it.
            object.scores = ["a": .nan]
            guard editor.context.refusedEdits.map(\.property) == ["scores"] else {
                throw fail("a NaN in a dictionary was taken")
            }
            object.scores = before.scores
            guard editor.context.refusedEdits.isEmpty else { throw fail("a refusal stayed") }
            script.append("\(place): #\(number).scores = NaN is refused")
            return
        }
        script.append("\(place): #\(number).\(object.changeRich(&random))")
        editor.set(number, RichColumns(RichValues(object)))
    }

    private func setAgain(_ editor: Editor, _ number: Int, _ place: Int) throws {
        script.append("\(place): all of #\(number) once more")
        try object(number, editor).setRichAgain()
    }

    private func undo(
        _ editor: Editor,
        _ number: Int,
        _ place: Int,
        _ random: inout SeededRandom
    ) throws {
        let object = try object(number, editor)
        editor.context.processPendingChanges()
        let before = RichValues(object)
        let steps = 1 + Int(random.next() % 3)
        editor.context.withUndoGroup("edits") {
            for _ in 0..<steps { _ = object.changeRich(&random) }
        }
        let after = RichValues(object)
        script.append("\(place): \(steps) edits of #\(number), undone, redone")
        if RichColumns(before) == RichColumns(after) { return }
        guard try editor.context.undo().isEmpty else { throw fail("an undo met others") }
        try expect(RichValues(object).parts, before.parts, "#\(number) undone")
        if random.next() % 2 == 0 { return }
        guard try editor.context.redo().isEmpty else { throw fail("a redo met others") }
        try expect(RichValues(object).parts, after.parts, "#\(number) redone")
        editor.set(number, RichColumns(after))
    }

    private func branch(
        _ editor: Editor,
        _ number: Int,
        _ place: Int,
        _ random: inout SeededRandom
    ) throws {
        let object = try object(number, editor)
        let branch = try editor.context.branch()
        guard let same = try branch.existingObject(with: ids[number]) else {
            throw fail("#\(number) is not in a branch")
        }
        let before = RichValues(object)
        try expect(RichValues(same).parts, before.parts, "#\(number) in a branch")
        script.append("\(place): branch: #\(number).\(same.changeRich(&random))")
        let after = RichValues(same)
        if random.next() % 3 == 0 { return }
        try branch.mergeIntoParent()
        try expect(RichValues(object).parts, after.parts, "#\(number) merged from a branch")
        editor.set(number, RichColumns(after))
    }

    private func batch(_ editor: Editor, _ place: Int, _ random: inout SeededRandom) throws {
        let choice = random.next() % 4
        let spot = Spot.random(&random)
        script.append("\(place): batch \(choice): \(spot)")
        let result = try editor.context.batchUpdate(Alpha.all) { row in
            switch choice {
            case 0: row.home.city = spot.city
            case 1: row.trip = nil
            case 2: row.trip = spot
            default: row.trip?.zip = spot.zip
            }
        }
        let after = newest.map { columns in
            var now = columns.values
            switch choice {
            case 0: now.home.city = spot.city
            case 1: now.trip = nil
            case 2: now.trip = spot
            default: now.trip?.zip = spot.zip
            }
            return RichColumns(now)
        }
        if result.commit == nil { return try expect(after, newest, "a batch without a commit") }
        try committed(after)
        try moved(editor)
    }

    private func reopen(_ random: inout SeededRandom) throws {
        guard random.next() % 4 == 0 else { return }
        script.append("reopen")
        editors = []
        try container.closeNow(discardingEdits: true)
        container = try PersistentContainer.openNow(
            on: disk,
            schema: FuzzedSchema.self,
            options: options
        )
        try addEditors(2)
    }

    // MARK: Saving

    private func save(_ editor: Editor, _ place: Int, _ random: inout SeededRandom) throws {
        let wins = random.next() % 2 == 0
        script.append("\(place): save\(wins ? ", the object wins" : "")")
        let meets = editor.edits.keys.contains { versions[$0, default: 0] > editor.commit }
        let result: SaveResult
        do {
            result = try editor.context.save(mergePolicy: wins ? .objectWinsByProperty : .error)
        } catch let error as StoreError where error.code == .conflict {
            let mayMeet = editor.edits.keys.contains { written[$0, default: 0] > editor.commit }
            if wins || !mayMeet { throw fail("a conflict without a cause: \(error)") }
            return
        }
        if !wins, meets { throw fail("a save passed over a conflict") }
        try settled(editor, result)
    }

    private func settled(_ editor: Editor, _ result: SaveResult) throws {
        let touched = Set(editor.edits.keys)
        var after = newest
        for (number, edits) in editor.edits {
            after[number] = newest[number].with(edits.names, of: edits.values)
        }
        editor.edits = [:]
        if editor.context.hasChanges { throw fail("edits are left behind a save") }
        if result.commit == nil {
            try expect(after, newest, "a save without a commit")
        } else {
            try committed(after, touched)
        }
        try moved(editor)
    }

    private func committed(_ after: [RichColumns], _ touched: Set<Int> = []) throws {
        commit += 1
        for number in touched { written[number] = commit }
        for number in ids.indices where after[number] != newest[number] {
            versions[number] = commit
            written[number] = commit
        }
        newest = after
        let context = container.newContext()
        try compare(Editor(context, newest, commit))
    }

    private func moved(_ editor: Editor) throws {
        let edits = editor.edits
        editor.base = newest
        editor.commit = commit
        if edits.isEmpty { editor.hasFragments = false }
        for (number, edit) in edits {
            if edit.names.contains(where: { $0.hasPrefix("trip") }) { editor.hasFragments = true }
            editor.edits[number] = (
                edit.names, newest[number].with(edit.names, of: edit.values)
            )
        }
    }

    // MARK: Checks

    private func compare(_ editor: Editor) throws {
        for number in ids.indices {
            let object = try object(number, editor)
            let expected = editor.shown(number).values.parts
            try expect(RichValues(object).parts, expected, "#\(number)")
            try expect(object.snapshot().placeLabel, object.placeLabel, "#\(number).placeLabel")
        }
        let has = editor.context.hasChanges
        if has != !editor.edits.isEmpty { throw fail("hasChanges is \(has)") }
        if !editor.context.readFailures.isEmpty {
            throw fail("a read failed: \(editor.context.readFailures)")
        }
    }

    private func expect<Value: Equatable>(_ value: Value, _ wanted: Value, _ what: String) throws {
        if value != wanted { throw fail("\(what) is \(value), the model says \(wanted)") }
    }

    /// Requests about fields, with the editor's unsaved edits.
    private func ask(_ editor: Editor, _ place: Int, _ random: inout SeededRandom) throws {
        let spot = Spot.random(&random)
        let other = RichValues.numbers(&random)
        func expect(
            _ filter: TypedPredicate<Alpha>,
            _ what: String,
            _ holds: (RichValues) -> Bool
        ) throws {
            let found = try editor.context.fetchIDs(Alpha.where { _ in filter })
            let wanted = ids.indices.filter { holds(editor.shown($0).values) }
            try self.expect(found, wanted.map { ids[$0] }, "\(place): \(what)")
        }
        let columns = Alpha.columns
        try expect(columns.home.city == spot.city, "home.city == \(spot.city)") {
            $0.home.city.utf8.elementsEqual(spot.city.utf8)
        }
        try expect(columns.home == spot, "home == \(spot)") { $0.home.isFound(by: spot) }
        try expect(columns.home != spot, "home != \(spot)") { !$0.home.isFound(by: spot) }
        try askPlain(spot, other, columns, expect)
        if editor.hasFragments { return }
        try expect(columns.trip == nil, "trip == nil") { $0.trip == nil }
        try expect(columns.trip == spot, "trip == \(spot)") {
            $0.trip?.isFound(by: spot) == true
        }
        try expect(columns.trip.zip == spot.zip, "trip.zip == \(spot.zip)") {
            $0.trip?.zip == spot.zip
        }
        try expect(columns.trip.zip >= 1, "trip.zip >= 1") { ($0.trip?.zip ?? 0) >= 1 }
        try expect(columns.trip.season == spot.season, "trip.season == \(spot.season)") {
            $0.trip?.season == spot.season
        }
        let label = spot.city + " 1"
        try expect(columns.placeLabel == label, "placeLabel == \(label)") {
            "\($0.home.city) \($0.trip?.zip ?? -1)".utf8.elementsEqual(label.utf8)
        }
    }
}

extension RichWorld {
    private typealias Expecting =
        (TypedPredicate<Alpha>, String, (RichValues) -> Bool) throws -> Void

    /// Requests about values that have one column.
    private func askPlain(
        _ spot: Spot,
        _ other: [String: Double],
        _ columns: Alpha.Columns,
        _ expect: Expecting
    ) throws {
        try expect(columns.words == spot.words, "words == \(spot.words)") {
            "\($0.words.map { Array($0.utf8) })" == "\(spot.words.map { Array($0.utf8) })"
        }
        try expect(columns.scores == other, "scores == \(other)") {
            var values = RichValues()
            values.scores = other
            return $0.parts["scores"] == values.parts["scores"]
        }
        try expect(columns.scores == ["a": .nan], "scores == NaN") { _ in false }
        try expect(columns.stay == Coded(.seconds(1)), "stay == 1") { $0.stay == .seconds(1) }
        try expect(columns.pause == nil, "pause == nil") { $0.pause == nil }
        try expect(columns.price < Price(cents: 7), "price < 7") { $0.price.cents < 7 }
    }
}

// MARK: Columns

/// The columns of an object: an optional composite has one for each field, and one more.
struct RichColumns: Equatable {
    var values: RichValues

    init(_ values: RichValues) { self.values = values }

    private static let fieldNames = Set(Spot().parts.keys)

    /// Each column as a text, by its name.
    var texts: [String: String] {
        var texts = values.parts
        for name in Self.fieldNames where values.trip == nil { texts["trip.\(name)"] = "nil" }
        return texts
    }

    /// Columns that are other ones in `other`.
    func changes(to other: RichColumns) -> Set<String> {
        let (now, wanted) = (texts, other.texts)
        return Set(wanted.keys.filter { now[$0] != wanted[$0] })
    }

    static func == (left: RichColumns, right: RichColumns) -> Bool { left.texts == right.texts }

    /// These columns, with some of another object's. A composite that has a field then has all.
    func with(_ names: Set<String>, of other: RichColumns) -> RichColumns {
        var result = values
        let given = other.values
        for name in names where !name.hasPrefix("trip") { result.take(name, of: given) }
        let trip = names.filter { $0.hasPrefix("trip") }
        if trip.isEmpty { return RichColumns(result) }
        // Which columns have a value, and which.
        var spot = Spot()
        var isThere = false
        for name in Self.fieldNames {
            let source = trip.contains("trip.\(name)") ? given.trip : values.trip
            guard let source, name != "since" || source.since != nil else { continue }
            spot.take(name, of: source)
            isThere = true
        }
        let flag = trip.contains("trip") ? given.trip : values.trip
        result.trip = isThere || flag != nil ? spot : nil
        return RichColumns(result)
    }
}

extension Spot {
    /// As requests compare: they take -0.0 for 0.0.
    fileprivate func isFound(by other: Spot) -> Bool {
        func folded(_ spot: Spot) -> [String: String] {
            var spot = spot
            if spot.since == 0 { spot.since = 0 }
            return spot.parts
        }
        return folded(self) == folded(other)
    }

    mutating func take(_ name: String, of other: Spot) {
        switch name {
        case "city": city = other.city
        case "zip": zip = other.zip
        case "since": since = other.since
        case "season": season = other.season
        default: words = other.words
        }
    }
}

extension RichValues {
    mutating func take(_ name: String, of other: RichValues) {
        switch name {
        case "words": words = other.words
        case "scores": scores = other.scores
        case "look": look = other.look
        case "price": price = other.price
        case "stay": stay = other.stay
        case "pause": pause = other.pause
        default: home.take(String(name.dropFirst("home.".count)), of: other.home)
        }
    }
}
