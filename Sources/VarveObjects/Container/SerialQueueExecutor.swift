// FENCE: the executor of a background context: one job at a time, on a queue of its own.
//
// Invariants
// - Swift hands executors around as unowned references; the actor holds this object, so it lives as
//   long as any job of that actor.

import Dispatch

final class SerialQueueExecutor: SerialExecutor {
    private let queue: DispatchQueue

    init(label: String) { queue = DispatchQueue(label: label) }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // The closure keeps the executor alive until the job has run.
        queue.async { [self] in
            unsafe job.runSynchronously(on: asUnownedSerialExecutor())
        }
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        unsafe UnownedSerialExecutor(ordinary: self)
    }
}
