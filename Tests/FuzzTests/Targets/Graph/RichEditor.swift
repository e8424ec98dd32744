// What one context of a run of rich values shows, by a plain model.
//
// Every column is a value of its own: what a context shows is, column by column, what it set
// itself, else what the newest commit that it has seen has.

import VarveObjects

/// One context of a run of rich values: what it stands on, and what it set itself.
final class RichEditor {
    let context: ManagedObjectContext
    var base: [RichColumns]
    var commit: CommitNumber
    /// By object: which columns it set, and what it shows.
    var edits: [Int: (names: Set<String>, values: RichColumns)] = [:]

    init(_ context: ManagedObjectContext, _ base: [RichColumns], _ commit: CommitNumber) {
        (self.context, self.base, self.commit) = (context, base, commit)
    }

    /// Whether it moved on under edits of an optional composite: until they are saved, requests
    /// find fields that nobody set as they are kept, and not at their defaults.
    var hasFragments: Bool { edits.values.contains { !$0.values.bare.isEmpty } }

    var shown: [RichColumns] { base.indices.map(shown) }

    func shown(_ number: Int) -> RichColumns { edits[number]?.values ?? base[number] }

    /// An object was set to these.
    /// - Parameter columns: those that were set, maybe to what they had. What the commit has is no
    ///   edit then.
    func set(_ number: Int, to values: RichValues, _ columns: Set<String>) {
        lay(number, shown(number).edited(to: values))
        setAgain(number, columns)
    }

    /// An object has these columns now. What is set to what the commit has is no edit.
    func lay(_ number: Int, _ values: RichColumns) {
        let changed = shown(number).changes(to: values)
        let other = base[number].changes(to: values)
        let names = (edits[number]?.names ?? []).subtracting(changed)
            .union(changed.intersection(other))
        edits[number] = names.isEmpty ? nil : (names, values)
    }

    /// Columns were set to what they had, which is no edit where the commit has it, too.
    func setAgain(_ number: Int, _ columns: Set<String> = RichColumns.single) {
        guard let known = edits[number] else { return }
        uncover(number, columns.subtracting(base[number].changes(to: known.values)))
    }

    /// Columns have no edit any more, and show what the commit has.
    func uncover(_ number: Int, _ names: Set<String>) {
        guard let edit = edits[number] else { return }
        let left = edit.names.subtracting(names)
        let values = edit.values.with(names, of: base[number])
        edits[number] = left.isEmpty ? nil : (left, values)
    }

    /// What a branch has like its parent is no edit of it.
    func forgetEqual() {
        for (number, edit) in edits {
            let names = edit.names.intersection(base[number].changes(to: edit.values))
            edits[number] = names.isEmpty ? nil : (names, edit.values)
        }
    }

    /// It stands on these now, with its own edits over them.
    func move(to newest: [RichColumns], _ commit: CommitNumber) {
        (base, self.commit) = (newest, commit)
        for (number, edit) in edits {
            edits[number] = (edit.names, newest[number].with(edit.names, of: edit.values))
        }
    }
}
