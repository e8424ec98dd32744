// Whether types check the invariants that they say: in tests, never in an app.
//
// Invariants
// - Off until a simulated disk or a referee of tests turns it on; then on until the process ends.

internal import Synchronization

/// The switch for the `check` functions of nodes, caches and the log writer (docs/Testing.md).
package enum Invariants {
    private static let isOn = Atomic<Bool>(false)

    /// Asked at pages, commits and evictions, never for a row.
    package static var areChecked: Bool { isOn.load(ordering: .relaxed) }

    /// To be called before the first store is opened.
    package static func checkFromNowOn() { isOn.store(true, ordering: .relaxed) }
}
