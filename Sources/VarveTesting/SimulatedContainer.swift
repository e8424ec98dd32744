// An app's container on a simulated disk.

public import VarveObjects

extension PersistentContainer {
    /// Opens the store of a name on a simulated disk, or makes it there: to see what an app does
    /// when calls fail, and what it finds after a power cut.
    ///
    /// ```swift
    /// let disk = SimulatedDisk()
    /// let container = try PersistentContainer.openNow(on: disk, schema: AppSchema.self)
    /// disk.setFault(SimulatedDisk.Fault(first: disk.calls + 1))
    /// // context.save() now throws `outcomeUnknown`
    /// ```
    ///
    /// - Throws: as `PersistentContainer.open`.
    public static func openNow(
        on disk: SimulatedDisk,
        name: String = "test",
        schema: any VersionedSchema.Type,
        migrations: (any MigrationPlan.Type)? = nil,
        options: ContainerOptions = ContainerOptions()
    ) throws -> PersistentContainer {
        try openNow(
            disk.location(name),
            place: name,
            schema: schema,
            migrations: migrations,
            options: options
        )
    }

    /// Compacts the store on the caller's thread: a test on a simulated disk has each call of the
    /// system in its order. Apps use `compact()`.
    ///
    /// - Throws: as `compact`.
    /// - Complexity: as `compact`.
    public func compactOnThisThread() throws { try compactNow() }
}
