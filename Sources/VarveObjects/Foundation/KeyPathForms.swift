// Key paths of a `#Predicate` and of sort descriptors: which property they mean.

import Foundation
import VarveBase
import VarveRecords

/// What a key path from an entity leads to.
enum EntityKeyPath {
    /// The object itself: `\.id` and `\.objectID`.
    case identity
    case property(PropertyDefinition)

    /// Nil: no stored property, or the entity does not tell its key paths.
    static func find(_ keyPath: AnyKeyPath, in type: any ManagedObject.Type) -> EntityKeyPath? {
        func find<Entity: ManagedObject>(_: Entity.Type) -> EntityKeyPath? {
            guard let own = keyPath as? PartialKeyPath<Entity>, let name = Entity.keyPaths[own]
            else { return nil }
            // No stored property can have these names.
            if name == "id" || name == "objectID" { return .identity }
            return EntityDeclaration.properties(of: type).first { $0.name == name }
                .map { .property($0) }
        }
        return find(type)
    }
}

extension PredicateTranslator {
    /// The property behind a form; nil: there is none that a filter can ask about.
    func property(
        _ keyPath: AnyKeyPath,
        of form: PredicateForm,
        _ output: Any.Type
    ) -> PredicateForm? {
        switch form {
        case .object(let names, let type):
            switch EntityKeyPath.find(keyPath, in: type) {
            case .identity?: return .object(names, type)
            case .property(let definition)?: return Self.form(definition, names, output)
            case nil: return nil
            }
        case .value(let value):
            if value.isString, keyPath == \String.isEmpty {
                return .filter(.compare(value.path, .equal, .text("")))
            }
            return nil
        case .many(let path, let filter, let type):
            switch Self.measure(keyPath, type) {
            case .count?: return .count(path, filter)
            case .isEmpty?: return .filter(.count(path, filter, .equal, 0))
            case nil: return nil
            }
        default: return nil
        }
    }

    private static func form(
        _ definition: PropertyDefinition,
        _ names: [String],
        _ output: Any.Type
    ) -> PredicateForm {
        let path = names + [definition.name]
        switch definition.kind {
        case .attribute(let attribute):
            return .value(
                PredicateValue(
                    path: PropertyPath(path),
                    type: attribute.type,
                    isString: output == String.self || output == String?.self
                )
            )
        case .toOne(let relationship): return .object(path, relationship.target)
        case .toMany(let relationship):
            return .many(PropertyPath(path), .always, relationship.target)
        }
    }

    private enum Measure { case count, isEmpty }

    private static func measure(
        _ keyPath: AnyKeyPath,
        _ type: any ManagedObject.Type
    ) -> Measure? {
        func measure<Target: ManagedObject>(_: Target.Type) -> Measure? {
            if keyPath == \ToMany<Target>.count || keyPath == \[Target].count { return .count }
            let isEmpty = keyPath == \ToMany<Target>.isEmpty || keyPath == \[Target].isEmpty
            return isEmpty ? .isEmpty : nil
        }
        return measure(type)
    }
}
