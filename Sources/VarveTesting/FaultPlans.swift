// Faults of a simulated disk as an app's test wants them: the next write, the third sync, no room.

extension SimulatedDisk {
    /// Makes one call of a kind fail: `disk.fail(.sync)` the next sync,
    /// `disk.fail(.write, after: 2)` the third write from here.
    ///
    /// A save whose write or sync fails throws `outcomeUnknown`, and the container writes no more
    /// until the store is opened again; with `noSpace` it throws `diskFull` where the room ran out
    /// before anything was written.
    ///
    /// - Parameters:
    ///   - kind: which calls.
    ///   - passing: so many of them succeed first.
    ///   - count: so many fail then.
    ///   - code: the errno.
    public func fail(
        _ kind: Fault.CallKind,
        after passing: Int = 0,
        count: Int = 1,
        with code: Int32 = SimulatedDisk.inputOutput
    ) {
        var fault = Fault(first: 0, count: plannedCount(count), code: code)
        fault.kind = kind
        fault.skipping = max(0, passing)
        setFault(fault)
    }

    /// Fills the disk: no write that makes the store's file longer finds room.
    /// - Parameters:
    ///   - room: bytes that are left.
    ///   - name: the name of the store.
    public func fillUp(leaving room: Int = 0, name: String = "test") {
        let state = state
        let length = state.file("\(name).varve").flatMap { state.files[$0]?.cache.count } ?? 0
        setFault(
            Fault(
                first: 0,
                count: .max,
                code: SimulatedDisk.noSpace,
                writesPast: length + max(0, room)
            )
        )
    }

    /// Calls succeed from here on.
    public func heal() {
        setFault(nil)
        setReadFault(nil)
    }

    /// Failures from before do not count.
    private func plannedCount(_ count: Int) -> Int {
        failures.addingReportingOverflow(max(0, count)).overflow ? .max : failures + max(0, count)
    }
}
