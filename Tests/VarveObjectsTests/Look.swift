// An observer of one look, for tests of what observers read.

import Observation

/// Runs once, when what was looked at is about to change.
final class Look {
    private let body: () -> Void
    private(set) var hasRun = false
    init(_ body: @escaping () -> Void) { self.body = body }

    func watch(_ read: () -> Void) {
        withObservationTracking(read) { [self] in
            if hasRun { return }
            hasRun = true
            body()
        }
    }
}
// A test is of one thread, and so are its observers.
extension Look: @unchecked Sendable {}
