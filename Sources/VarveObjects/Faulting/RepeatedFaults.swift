// Notices relationships that are followed from one object after another with a read for each.
//
// Invariants
// - Without `ContainerOptions.trace` there is no watch, and a fault pays for a nil at most.
// - A fault pays only when its row has to be read from the store: then for a look into a table of
//   fixed size. Nothing is allocated but for the first of each relationship.
// - Each relationship is told of once in a context.

import VarveBase
import VarveRecords

/// A relationship that was followed from one object after another, each time with a read of its
/// own.
public struct RepeatedFaultsTrace: Sendable {
    /// The context's author.
    public var author: String
    /// The entity that the relationship belongs to.
    public var entity: String
    /// The relationship's name.
    public var relationship: String
    /// The entity that it leads to.
    public var target: String
    /// How many reads there were.
    public var reads: Int
    /// The newest request of the context that gave such objects, as text with the values that it
    /// compares; nil if none is known.
    public var request: String?
    /// What reads all of them together: `Item.where { true }.prefetch { $0.folder }`.
    public var suggestion: String
}

/// Counts single reads behind relationships, for one context.
final class FaultWatch {
    /// A relationship.
    private struct Hop: Hashable {
        /// The entity's number.
        let owner: Int
        let slot: Int
    }
    private struct Run {
        var reads = 0
        var began = ContinuousClock.now
        var isTold = false
    }
    /// Where objects of an entity came from last.
    private enum Origin {
        case request(text: () -> String, prefetched: [[String]])
        case relationship(Hop)
    }

    /// Objects whose way is remembered: those that relationships led to last.
    private static let waysMax = 1_024
    private static let window = Duration.seconds(10)
    /// Relationships from a request to the one that is told of, at most.
    private static let depthMax = 4

    private let readsMax: Int
    private let schema: SchemaModel
    private let tell: TraceHandler
    private var ways: [(object: ObjectID, hop: Hop)]
    private var runs: [Hop: Run] = [:]
    private var origins: [Origin?]

    init?(_ container: PersistentContainer) {
        let options = container.options
        guard let trace = options.trace, options.repeatedFaultsMax > 0 else { return nil }
        tell = trace
        readsMax = options.repeatedFaultsMax
        schema = container.schema
        ways = Array(repeating: (ObjectID(0), Hop(owner: 0, slot: 0)), count: Self.waysMax)
        origins = Array(repeating: nil, count: container.schema.entities.count)
    }

    // MARK: Where objects come from

    /// A request is about to give objects.
    func requested(_ plan: RequestPlan, in container: PersistentContainer) {
        // The schema is the container's, and the watch its context's: no cycle.
        origins[plan.model.number] = .request(
            text: { [unowned container] in container.text(of: plan) },
            prefetched: plan.prefetchPaths.map(\.names)
        )
    }

    /// A relationship leads to an object that is made as a fault.
    func led(to object: ObjectID, _ owner: EntityModel, _ slot: Int) {
        let hop = Hop(owner: owner.number, slot: slot)
        ways[Int(object.rawValue % UInt64(Self.waysMax))] = (object, hop)
        guard let target = target(of: hop) else { return }
        if case .relationship(hop)? = origins[target.number] { return }
        origins[target.number] = .relationship(hop)
    }

    // MARK: Reads

    /// The row of an object is read alone.
    func isRead(_ object: ObjectID, _ context: ManagedObjectContext) {
        let way = ways[Int(object.rawValue % UInt64(Self.waysMax))]
        if way.object == object { count(way.hop, context) }
    }

    /// The members of one object's relationship are read.
    func isRead(_ owner: EntityModel, _ slot: Int, _ context: ManagedObjectContext) {
        count(Hop(owner: owner.number, slot: slot), context)
    }

    private func count(_ hop: Hop, _ context: ManagedObjectContext) {
        runs[hop, default: Run()].reads += 1
        guard let run = runs[hop], run.reads > readsMax, !run.isTold else { return }
        if ContinuousClock.now - run.began > Self.window {
            runs[hop] = Run()
            return
        }
        runs[hop]?.isTold = true
        if let trace = trace(hop, run.reads, context) { tell(.repeatedFaults(trace)) }
    }

    // MARK: Telling

    private func target(of hop: Hop) -> EntityModel? {
        schema.entities[hop.owner].properties[hop.slot].relationship
            .flatMap { schema.entity($0.target) }
    }

    private func trace(
        _ hop: Hop,
        _ reads: Int,
        _ context: ManagedObjectContext
    ) -> RepeatedFaultsTrace? {
        guard let target = target(of: hop) else { return nil }
        let owner = schema.entities[hop.owner]
        let (root, path) = way(to: hop)
        var request: String?
        var suggestion = "\(root.name).all.prefetch { $0.\(path.joined(separator: ".")) }"
        if case .request(let text, let prefetched)? = origins[root.number] {
            let known = text()
            request = known
            suggestion = "\(known).prefetch { $0.\(path.joined(separator: ".")) }"
            if prefetched.contains(where: { $0.starts(with: path) }) {
                suggestion =
                    "The request prefetches it, but the rows did not stay in memory: give it a "
                    + "limit, or raise ContainerOptions.unreferencedRowBytes"
            }
        }
        return RepeatedFaultsTrace(
            author: context.author,
            entity: owner.name,
            relationship: owner.properties[hop.slot].name,
            target: target.name,
            reads: reads,
            request: request,
            suggestion: suggestion
        )
    }

    /// The entity whose request could prefetch a relationship, and the path from there. A path goes
    /// through relationships to one object; behind one to many, a request of its own has to begin.
    private func way(to hop: Hop) -> (root: EntityModel, path: [String]) {
        var root = schema.entities[hop.owner]
        var path = [root.properties[hop.slot].name]
        var seen: Set<Int> = [root.number]
        while path.count < Self.depthMax, case .relationship(let before)? = origins[root.number] {
            let owner = schema.entities[before.owner]
            let property = owner.properties[before.slot]
            if property.relationship?.isToMany != false { break }
            if !seen.insert(owner.number).inserted { break }
            path.insert(property.name, at: 0)
            root = owner
        }
        return (root, path)
    }
}
