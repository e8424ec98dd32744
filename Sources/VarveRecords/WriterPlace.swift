// A task's place in the line for the writer, for the layers above.
//
// Invariants
// - Whoever has a place ends it; it ends by itself with its last reference.

import VarveEngine

/// One task's place in the line for the writer.
public struct WriterPlace: Sendable {
    private let engine: Engine
    private let reservation: WriterReservation

    init(_ engine: Engine) {
        self.engine = engine
        reservation = engine.reserveWriter()
    }

    /// Waits until nobody of this process writes, and the process may. No thread waits.
    ///
    /// - Throws: `CancellationError`; errors of the engine.
    public func wait() async throws { try await engine.granted(reservation) }

    /// Uses the place on the calling thread. False: this came too late, and somebody else went
    /// first; wait again.
    public func begin() -> Bool { reservation.begin() }

    /// Gives the place up, used or not.
    public func end() { reservation.end() }
}
