// Contexts that an app makes for itself.
//
// Invariants
// - A context that is made on the main actor tells observers: there are the views. Elsewhere one
//   does only if asked to, since each read of a property costs more then.

extension PersistentContainer {
    /// A new context for the caller to own: an actor, a task, an edit sheet. It reads the commit
    /// that is the newest when it reads for the first time.
    /// - Parameters:
    ///   - author: named in its commits.
    ///   - observes: whether its objects tell observers, as those of the view context do. Reading a
    ///     property costs more then. Nil: if it is made on the main actor, where views are.
    ///   - isolation: leave it out.
    public func newContext(
        author: String = "",
        observes: Bool? = nil,
        isolation: isolated (any Actor)? = #isolation
    ) -> sending ManagedObjectContext {
        ManagedObjectContext(
            container: self,
            author: author,
            label: author.isEmpty ? "context" : "context \(author)",
            observes: observes ?? (options.everyContextObserves || isolation === MainActor.shared)
        )
    }

    /// A new context with an actor of its own around it.
    public func newBackgroundContext(author: String = "") -> BackgroundContext {
        BackgroundContext(container: self, author: author)
    }
}
