// Tells of each store that is opened: the referee of tests verifies them at the end.
//
// Invariants
// - Nothing of an engine depends on a witness. Without one an opening costs one look.

/// Told of stores while it is the task's witness.
package protocol OpeningWitness: Sendable {
    /// A store was opened or made.
    func opened(_ location: StoreLocation)
    /// A folder, and every store in it, is about to be removed.
    func folderGoes(_ path: String)
}

/// The witness of a task, if it has one.
package enum OpeningWitnesses {
    /// Set for the time of a test; nil in an app.
    @TaskLocal package static var current: (any OpeningWitness)?
}
