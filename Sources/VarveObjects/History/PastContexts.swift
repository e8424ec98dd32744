// Contexts that show a commit of the past.
//
// Invariants
// - Such a context never moves: neither a commit of others, nor `advance()`, nor `reset()` takes it
//   to another commit.
// - It can be edited like any context, and nothing of it is ever saved.
// - It shows commits with the schema of the container alone: the classes of an app know no other.

public import Foundation
public import VarveBase
import VarveEngine
import VarveRecords

/// A moment in the history of a store.
public enum HistoryPoint: Hashable, Sendable {
    /// A commit.
    case commit(CommitNumber)
    /// The newest commit at that time, by the clocks of the writers.
    case time(Date)
    /// The commit of a token.
    case token(HistoryToken)
}

extension PersistentContainer {
    /// A context that shows the store as it was at an earlier commit. It is read-only: `save`
    /// throws `readOnly`, and so do batches; edits can be made, for a preview say, and go with it.
    /// It stays at that commit: it merges nothing, and `advance()` does nothing.
    ///
    /// While it lives, the commit stays readable, whatever a compaction takes from the store.
    /// - Parameters:
    ///   - point: which commit.
    ///   - observes: as with `newContext`.
    ///   - isolation: leave it out.
    /// - Throws: `commitExpired` when the store does not keep it any more, and names the oldest
    ///   commit left; `unknownCommit` when it never had it; `schemaMismatch` when it is from before
    ///   the newest change of the schema; `foreignID`, `damaged`, `ioFailed`, `closed`.
    /// - Complexity: O(checkpoints since + commits between two checkpoints). One near another that
    ///   was shown before costs what lies between the two.
    public func newContext(
        at point: HistoryPoint,
        observes: Bool? = nil,
        isolation: isolated (any Actor)? = #isolation
    ) throws -> sending ManagedObjectContext {
        let past = try pastSnapshot(
            at: point,
            for: PinOwner(.context, label: "context of the past")
        )
        let context = ManagedObjectContext(
            container: self,
            author: "",
            label: "context of commit \(past.number.rawValue)",
            observes: observes ?? (options.everyContextObserves || isolation === MainActor.shared)
        )
        context.stay(at: past)
        return context
    }

    /// The store at an earlier commit, of this schema.
    func pastSnapshot(
        at point: HistoryPoint,
        for owner: PinOwner
    ) throws(StoreError) -> RecordSnapshot {
        try checkOpen()
        let past: RecordSnapshot
        switch point {
        case .commit(let number): past = try pastSnapshot(at: number, for: owner)
        case .token(let token):
            try check(token)
            past = try pastSnapshot(at: token.commit, for: owner)
        case .time(let date):
            let seconds = date.timeIntervalSince1970 * 1_000_000
            let time = Int64(exactly: seconds.rounded(.down)) ?? (seconds < 0 ? .min : .max)
            past = try translating { () throws(RecordError) in
                try store.snapshot(atTime: time, for: owner)
            }
        }
        guard past.schema.fingerprint == schema.record.fingerprint else {
            throw StoreError(
                .schemaMismatch,
                "commit \(past.number.rawValue) is from before the newest change of the schema, "
                    + "and this app's classes do not fit its rows",
                place: .init(store: place, commit: past.number),
                suggestion: "Ask for a later commit. varve rows \(place) --at "
                    + "\(past.number.rawValue) shows this one with the schema of its time."
            )
        }
        return past
    }

    private func pastSnapshot(
        at number: CommitNumber,
        for owner: PinOwner
    ) throws(StoreError) -> RecordSnapshot {
        let newest = try translating { () throws(RecordError) in try store.snapshot().number }
        guard number <= newest else { throw StoreError.unknownCommit(number, newest, self) }
        return try translating { () throws(RecordError) in
            try store.snapshot(at: number, for: owner)
        }
    }
}

extension ManagedObjectContext {
    /// Whether the context shows a commit of the past and stays there: `newContext(at:)`.
    public var isOfThePast: Bool { fixed != nil }

    /// Throws when the context shows the past: nothing of it can be saved.
    func checkIsOfThePresent() throws(StoreError) {
        guard let fixed else { return }
        throw StoreError(
            .readOnly,
            "the context shows commit \(fixed.number.rawValue) and cannot be saved",
            place: .init(store: container.place, commit: fixed.number),
            suggestion: "Edit in a context of the present: revert(_:to:) takes an object's values "
                + "of an earlier commit over into it."
        )
    }
}
