// From the schema that a store has to the one that an app declares, stage by stage.
//
// Invariants
// - The whole chain is one transaction: nobody sees a schema between the first and the last.
// - Stages that the store has behind it are not looked at; a new store goes straight to the last
//   schema.
// - One migration raises the revision of the schema once.

import VarveBase
import VarveEngine
import VarveFormat

/// A declared schema and the stages that lead to it.
struct MigrationChain {
    let declared: SchemaDescription
    private let stages: [RecordStage]
    private let options: RecordOptions

    init(_ declared: SchemaDescription, _ stages: [RecordStage], _ options: RecordOptions) {
        self.declared = declared
        self.stages = stages
        self.options = options
    }

    /// Throws `invalidSchema` unless the stages ascend to the declared schema at most.
    func checkOrder() throws(RecordError) {
        var problems: [String] = []
        for (before, after) in zip(stages, stages.dropFirst()) where before.version >= after.version
        {
            problems.append(
                "the stage to version \(after.version) follows that to version \(before.version):"
                    + " stages stand in the order of their versions"
            )
        }
        if let last = stages.last, last.version > declared.version {
            problems.append(
                "the last stage leads to version \(last.version), and the app's schema has version"
                    + " \(declared.version)"
            )
        }
        for stage in stages where stage.version == declared.version {
            // Not `==`: a default may be another one each time that it is asked for.
            if case .described(let description) = stage.target,
                try !SchemaDifference(from: declared, to: description.checked()).isEmpty
            {
                problems.append(
                    "the stage to version \(stage.version) leads to another schema than the app's,"
                        + " which has the same version"
                )
            }
        }
        if !problems.isEmpty { throw .invalidSchema(problems: problems) }
    }

    /// The stages before a store of this version.
    func ahead(of version: UInt32) -> [RecordStage] { stages.filter { $0.version > version } }

    /// One stage of a store: what it leads to and what has to be done.
    struct Planned {
        let stage: RecordStage?
        let description: SchemaDescription
        let stored: SchemaRecord
        let resolution: SchemaResolution
    }

    /// The first stage after `stored`, or the automatic steps behind the last; nil: nothing is
    /// left.
    func next(after stored: SchemaRecord) throws -> Planned? {
        let stage = ahead(of: stored.version).first
        let description: SchemaDescription
        if let stage {
            description = try stage.description(from: SchemaDescription(stored))
        } else {
            description = declared
        }
        let resolution = try SchemaCatalog.resolve(
            description,
            stored: stored,
            isStaged: stage?.body != nil
        )
        if stage == nil, resolution.record == stored { return nil }
        return Planned(
            stage: stage,
            description: description,
            stored: stored,
            resolution: resolution
        )
    }

    /// Takes every stage that is left.
    func run(_ transaction: WriteTransaction, _ store: RecordStore, _ control: MigrationControl)
        throws
    {
        guard let first = try store.record(transaction.schema) else {
            let resolution = try SchemaCatalog.resolve(declared, stored: nil)
            try SchemaChange(resolution, nil, declared, options)
                .apply(to: transaction, store.counters)
            return
        }
        var stored = first
        var number = 0
        // Whether automatic steps follow the last stage is known when it is done.
        let count = max(ahead(of: first.version).count, 1)
        while var planned = try next(after: stored) {
            var record = planned.resolution.record
            record.revision = first.revision + 1
            planned = planned.with(record)
            try control.begin(
                stage: min(number, count - 1),
                of: count,
                from: first.version,
                version: planned.description.version
            )
            try apply(planned, transaction, store, control)
            stored = record
            number += 1
        }
    }

    private func apply(
        _ planned: Planned,
        _ transaction: WriteTransaction,
        _ store: RecordStore,
        _ control: MigrationControl
    ) throws {
        let change = SchemaChange(
            planned.resolution,
            planned.stored,
            planned.description,
            options,
            removing: planned.stage?.removing ?? [],
            varyingDefault: planned.stage?.varyingDefault,
            derived: planned.stage?.derived,
            control: control
        )
        if let body = planned.stage?.body {
            try change.apply(to: transaction, store, body)
        } else {
            try change.apply(to: transaction, store.counters)
        }
    }
}

extension MigrationChain.Planned {
    fileprivate func with(_ record: SchemaRecord) -> Self {
        var resolution = resolution
        resolution.record = record
        return Self(
            stage: stage,
            description: description,
            stored: stored,
            resolution: resolution
        )
    }
}

extension RecordStore {
    /// Makes the store's schema that of a chain.
    func fit(_ chain: MigrationChain, _ control: MigrationControl) throws {
        try chain.checkOrder()
        // What another process makes of it meanwhile is seen by the transaction.
        let stored = try record(engine.knownSnapshot().schema)
        if let stored {
            if try readsNewer(stored, chain.declared) { return }
            guard let planned = try chain.next(after: stored) else { return }
            let steps = planned.resolution.steps.map(\.description)
            if case .readOnly = options.mode {
                throw RecordError.schemaMismatch(
                    problems: ["the store is opened for reading only"] + steps
                )
            }
            if !options.allowsMigration { throw RecordError.schemaMismatch(problems: steps) }
        } else if case .readOnly = options.mode {
            let steps = try SchemaCatalog.resolve(chain.declared, stored: nil).steps
            throw RecordError.schemaMismatch(
                problems: ["the store is opened for reading only"] + steps.map(\.description)
            )
        }
        try writeAny(author: "schema") { transaction in
            // Another process may have been faster.
            let now = try record(transaction.schema)
            if let now, try chain.next(after: now) == nil { return }
            try chain.run(transaction, self, control)
        }
    }

    /// Whether a store of a later schema shows all that the declared one knows, and only reading is
    /// wanted.
    private func readsNewer(
        _ stored: SchemaRecord,
        _ declared: SchemaDescription
    ) throws(RecordError) -> Bool {
        guard stored.version > declared.version, options.readsNewerSchemas,
            case .readOnly = options.mode
        else { return false }
        let difference = SchemaDifference(from: declared, to: SchemaDescription(stored))
        if difference.lost.isEmpty { return true }
        throw .schemaTooNew(
            stored: stored.version,
            known: declared.version,
            differences: [
                "it cannot be read either, for lack of "
                    + difference.lost.prefix(20).joined(separator: ", ")
            ] + difference.boundedLines
        )
    }
}
