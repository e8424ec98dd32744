// What a context shows, read out whole, to be held against what it showed before.

import VarveObjects

/// All that a context shows.
struct ShownGraph: Equatable {
    struct Object: Equatable {
        var kind: Character
        var values: [String] = []
        var ones: [String: ManagedObjectID] = [:]
        var lists: [String: [ManagedObjectID]] = [:]
    }

    var objects: [ManagedObjectID: Object] = [:]

    init(_ context: ManagedObjectContext, _ access: GraphAccess) throws {
        let all: [any ManagedObject] =
            try context.fetch(Alpha.all) as [any ManagedObject] + context.fetch(Beta.all)
        for object in all {
            var shown = Object(kind: object is Alpha ? "A" : "B")
            if let alpha = object as? Alpha {
                shown.values = [alpha.name, "\(alpha.number)", alpha.code ?? "nil"]
                let kept = alpha.snapshot().label
                if !kept.utf8.elementsEqual(alpha.label.utf8) {
                    throw Violation("\(object.objectID): the label \(kept) is kept")
                }
            } else if let beta = object as? Beta {
                shown.values = [beta.name, "\(beta.number)", beta.code ?? "nil"]
            }
            for relation in ModelRelation.all where relation.owner == shown.kind {
                if relation.isMany {
                    let members = access.lists[relation.name]?(object).ids() ?? []
                    if members.isEmpty { continue }
                    shown.lists[relation.name] = members
                } else if let target = access.ones[relation.name]?.get(object) {
                    shown.ones[relation.name] = target.objectID
                }
            }
            objects[object.objectID] = shown
        }
    }

    /// What is different in `other`, to be read.
    func difference(_ other: ShownGraph) -> String {
        for (id, object) in objects.sorted(by: { $0.key.uri < $1.key.uri }) {
            guard let now = other.objects[id] else { return "\(id) is gone" }
            if now.values != object.values { return "\(id): \(object.values), now \(now.values)" }
            for name in Set(object.ones.keys).union(now.ones.keys).sorted()
            where object.ones[name] != now.ones[name] {
                return "\(id).\(name): \(String(describing: object.ones[name])), now "
                    + String(describing: now.ones[name])
            }
            for name in Set(object.lists.keys).union(now.lists.keys).sorted()
            where object.lists[name] != now.lists[name] {
                return "\(id).\(name): \(object.lists[name] ?? []), now \(now.lists[name] ?? [])"
            }
        }
        let new = other.objects.keys.filter { objects[$0] == nil }
        return "new: \(new)"
    }
}
