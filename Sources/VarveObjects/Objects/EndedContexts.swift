// What is said of an object that is used after its context ended.
//
// Invariants
// - Said once for each context, when a value cannot be had or an edit is lost: values that the
//   object has in memory are good.
// - An object that left its living context, by `reset` or a rollback of its insertion, is none of
//   these.

import Foundation

/// An object that was used after its context had ended: a value that it did not have in memory was
/// asked for, or it was edited. The app let go of a context with unsaved edits.
public struct EndedContextTrace: Sendable, Equatable {
    /// What the object was asked for.
    public enum Use: String, Sendable {
        /// A value that was not in memory: the property shows its zero value.
        case read
        /// A new value: it is lost.
        case edit
        /// The context itself, to save it perhaps.
        case context
    }
    /// The context's name: `context`, `view context`, `background task import`.
    public var context: String
    /// The object.
    public var object: ManagedObjectID
    /// The entity.
    public var entity: String
    /// What it was asked for.
    public var use: Use
}

extension ManagedObject {
    /// Says it, once for each context: to `ContainerOptions.trace`, else on standard error.
    func noteEndedContext(_ use: EndedContextTrace.Use) {
        let core = storage.core
        guard core.context == nil, !core.saidItEnded, !storage.state.contains(.invalid) else {
            return
        }
        core.saidItEnded = true
        let event = EndedContextTrace(
            context: core.registry.label,
            object: objectID,
            entity: storage.model.name,
            use: use
        )
        if let trace = core.container.options.trace { return trace(.endedContext(event)) }
        let what =
            switch use {
            case .read: "was read, and has no value in memory"
            case .edit: "was edited, and the edit is lost"
            case .context: "was asked for its context"
            }
        let text = """
            Varve: an object of \(event.entity), \(event.object), \(what). Its context \
            (\(event.context)) has ended with unsaved edits, for nobody held it. Keep the context \
            until it is saved, for example in a property beside the object.

            """
        FileHandle.standardError.write(Data(text.utf8))
    }
}
