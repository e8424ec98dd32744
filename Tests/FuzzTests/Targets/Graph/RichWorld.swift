// Runs of objects with composites, codecs and lists in several contexts.
//
// The model keeps what the store held after each commit. A save keeps the columns that a context
// set itself and, of the others, what the newest commit has.

import VarveInspection
import VarveObjects
import VarveTesting

/// One run of several contexts, each with edits of rich attributes only.
final class RichWorld: FuzzedWorld {
    private let disk = SimulatedDisk()
    static let looksBack = true
    private let options: ContainerOptions
    private(set) var container: PersistentContainer
    private(set) var editors: [RichEditor] = []
    private(set) var ids: [Alpha.ID] = []
    private var newest: [RichColumns] = []
    /// What the store held after each commit.
    private(set) var copies: [CommitNumber: [RichColumns]] = [:]
    /// The objects that a commit may have written as they were.
    private(set) var touched: [CommitNumber: Set<Int>] = [:]
    /// The commits that last changed an object, and that last wrote it, maybe as it was.
    private var versions: [Int: CommitNumber] = [:]
    private var written: [Int: CommitNumber] = [:]
    private var commit = CommitNumber(0)
    var script: [String] = []

    required init(_ setup: UInt64, _ options: ContainerOptions, observes: Bool) throws {
        self.options = options
        container = try PersistentContainer.openNow(
            on: disk,
            schema: FuzzedSchema.self,
            options: options
        )
        let context = container.newContext()
        for _ in 0..<(1 + setup % 4) { ids.append(Alpha(in: context).id) }
        commit = try context.save().commit ?? commit
        newest = ids.map { _ in RichColumns(RichValues()) }
        copies[commit] = newest
        try addEditors(2)
    }

    private func addEditors(_ count: Int) throws {
        for _ in 0..<count {
            let context = container.newContext()
            _ = try context.count(Alpha.all)
            context.undoLimit = 20
            editors.append(RichEditor(context, newest, commit))
        }
    }

    func end() {
        editors = []
        try? container.closeNow(discardingEdits: true)
    }

    func fail(_ what: String) -> Violation { Violation(what) }

    func object(_ number: Int, _ editor: RichEditor) throws -> Alpha {
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
        switch random.next() % 24 {
        case 0...7: try edit(editor, number, place, &random)
        case 8: try setAgain(editor, number, place, &random)
        case 9...10: try save(editor, place, &random)
        case 11:
            script.append("\(place): advance")
            editor.context.advance()
            moved(editor)
        case 12:
            script.append("\(place): rollback")
            editor.context.rollback()
            editor.edits = [:]
        case 13...14: try undo(editor, number, place, &random)
        case 15: try branch(editor, "\(place)", &random)
        case 16: try batch(editor, place, &random)
        case 17...18: try ask(editor, "\(place)", &random)
        case 19: try reopen(&random)
        case 20: try lookBack(&random)
        case 21: try tellHistory(number, &random)
        case 22: try revertObject(editor, number, place, &random)
        default: try revertCommit(editor, place, &random)
        }
        // What is derived is dear to look at.
        for editor in editors { try compare(editor, looksAtDerived: step % 2 == 0) }
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
        _ editor: RichEditor,
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
            editor.setAgain(number, ["scores"])
            script.append("\(place): #\(number).scores = NaN is refused")
            return
        }
        let (text, columns) = object.changeRich(&random)
        script.append("\(place): #\(number).\(text)")
        editor.set(number, to: RichValues(object), columns)
    }

    /// Edits that are none: each value once more, or a transaction that throws.
    private func setAgain(
        _ editor: RichEditor,
        _ number: Int,
        _ place: Int,
        _ random: inout SeededRandom
    ) throws {
        let object = try object(number, editor)
        if random.next() % 2 == 0 {
            script.append("\(place): all of #\(number) once more")
            object.setRichAgain()
            return editor.setAgain(number)
        }
        let before = editor.shown(number)
        let violation = fail("thrown")
        do {
            try editor.context.transaction {
                for _ in 0..<(1 + random.next() % 3) { change(object, editor, number, &random) }
                throw violation
            }
        } catch { script.append("\(place): a transaction throws") }
        editor.lay(number, before)
    }

    /// Another value for one attribute.
    func change(
        _ object: Alpha,
        _ editor: RichEditor,
        _ number: Int,
        _ random: inout SeededRandom
    ) {
        let (text, columns) = object.changeRich(&random)
        script.append("   #\(number).\(text)")
        editor.set(number, to: RichValues(object), columns)
    }

    private func batch(_ editor: RichEditor, _ place: Int, _ random: inout SeededRandom) throws {
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
        if let commit = result.commit {
            try committed(after, Set(ids.indices), commit)
        } else {
            try expect(after, newest, "a batch without a commit")
        }
        moved(editor)
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

    func save(_ editor: RichEditor, _ place: Int, _ random: inout SeededRandom) throws {
        let wins = random.next() % 2 == 0
        script.append("\(place): save\(wins ? ", the object wins" : "")")
        func since(_ commits: [Int: CommitNumber]) -> Bool {
            editor.edits.keys.contains { number in
                commits[number].map { $0 > editor.commit } ?? false
            }
        }
        let meets = since(versions)
        let result: SaveResult
        do {
            result = try editor.context.save(mergePolicy: wins ? .objectWinsByProperty : .error)
        } catch let error as StoreError where error.code == .conflict {
            if wins || !since(written) { throw fail("a conflict without a cause: \(error)") }
            return
        }
        if !wins, meets { throw fail("a save passed over a conflict") }
        try settled(editor, result)
    }

    func settled(_ editor: RichEditor, _ result: SaveResult) throws {
        let touched = Set(editor.edits.keys)
        var after = newest
        for (number, edits) in editor.edits {
            after[number] = newest[number].with(edits.names, of: edits.values).whole
        }
        editor.edits = [:]
        if editor.context.hasChanges { throw fail("edits are left behind a save") }
        if let commit = result.commit {
            try committed(after, touched, commit)
        } else {
            try expect(after, newest, "a save without a commit")
        }
        moved(editor)
    }

    private func committed(
        _ after: [RichColumns],
        _ touched: Set<Int>,
        _ number: CommitNumber
    ) throws {
        try expect(number, commit.next, "the next commit")
        commit = number
        for object in touched { written[object] = commit }
        for object in ids.indices where after[object] != newest[object] {
            versions[object] = commit
            written[object] = commit
        }
        newest = after
        copies[commit] = after
        self.touched[commit] = touched
        try compare(RichEditor(container.newContext(), newest, commit))
    }

    func moved(_ editor: RichEditor) { editor.move(to: newest, commit) }

    // MARK: Checks

    func compare(_ editor: RichEditor, looksAtDerived: Bool = true) throws {
        for number in ids.indices {
            let object = try object(number, editor)
            let expected = editor.shown(number).parts
            try expect(RichValues(object).parts, expected, "#\(number)")
            guard looksAtDerived else { continue }
            try expect(object.snapshot().placeLabel, object.placeLabel, "#\(number).placeLabel")
        }
        let has = editor.context.hasChanges
        if has != !editor.edits.isEmpty { throw fail("hasChanges is \(has)") }
        if !editor.context.readFailures.isEmpty {
            throw fail("a read failed: \(editor.context.readFailures)")
        }
    }

    func expect<Value: Equatable>(_ value: Value, _ wanted: Value, _ what: String) throws {
        if value != wanted { throw fail("\(what) is \(value), the model says \(wanted)") }
    }

    /// Requests about fields, with the editor's unsaved edits.
    func ask(_ editor: RichEditor, _ place: String, _ random: inout SeededRandom) throws {
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
