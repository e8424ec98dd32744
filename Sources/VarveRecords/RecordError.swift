// What can go wrong in the records layer. Messages carry names and numbers, never stored values.

public import VarveBase
public import VarveEngine
public import VarveFormat

/// Objects that have the same values where a constraint forbids it.
public struct UniqueViolation: Hashable, Sendable {
    /// The entity.
    public let entity: EntityID
    /// Its name.
    public let entityName: String
    /// The constraint's properties.
    public let properties: [String]
    /// What the schema wants done with a new duplicate.
    public let policy: UniquenessPolicy
    /// The objects that share the values, lowest ID first.
    public let objects: [ObjectID]
}

extension UniqueViolation: CustomStringConvertible {
    /// One sentence, with the objects' IDs and without values.
    public var description: String {
        let names = objects.map { "\(entityName)/\($0.rawValue)" }.joined(separator: ", ")
        return "\(names) have the same \(properties.joined(separator: ", "))"
    }
}

/// An error of the records layer. Boxed, so that a throwing accessor returns its value in
/// registers.
public indirect enum RecordError: Error, Sendable {
    /// The engine failed.
    case engine(EngineError)
    /// Stored bytes could not be understood.
    case format(FormatError)
    /// The store's schema differs from the app's in ways that cannot be bridged automatically.
    case schemaMismatch(problems: [String])
    /// The store was written by an app with a later schema; what that has and this one lacks, line
    /// by line.
    case schemaTooNew(stored: UInt32, known: UInt32, differences: [String] = [])
    /// A stage of a migration failed, with what is in its way; the old schema stands.
    case stageFailed(version: UInt32, problems: [String])
    /// The declared schema contradicts itself.
    case invalidSchema(problems: [String])
    /// No entity has this name or number.
    case unknownEntity(String)
    /// The entity has no such property, or not one that can stand here.
    case unknownProperty(entity: String, property: String)
    /// The filter cannot be evaluated.
    case unsupportedPredicate(String)
    /// Limit, offset, order or identifiers make no sense.
    case invalidRequest(String)
    /// The position does not belong to the request's order.
    case invalidCursor(String)
    /// A constraint is violated; all violations of the write are listed.
    case notUnique([UniqueViolation])
    /// A value is missing that is not optional.
    case missingValue(entity: String, property: String, object: ObjectID)
    /// A value does not have the declared type.
    case wrongType(entity: String, property: String, expected: String)
    /// No row with this ID.
    case objectNotFound(entity: String, object: ObjectID)
    /// A row with this ID exists.
    case objectExists(entity: String, object: ObjectID)
    /// The value is too large for its row; read it through the snapshot.
    case valueOutside(entity: String, property: String)
}

extension RecordError {
    /// Runs what the engine does; its errors become this layer's.
    @inline(__always)
    static func ofEngine<R>(_ body: () throws(EngineError) -> R) throws(RecordError) -> R {
        do throws(EngineError) { return try body() } catch { throw .engine(error) }
    }

    /// The same for decoding.
    @inline(__always)
    static func ofFormat<R>(_ body: () throws(FormatError) -> R) throws(RecordError) -> R {
        do throws(FormatError) { return try body() } catch { throw .format(error) }
    }
}

extension RecordError: CustomStringConvertible {
    /// One or more sentences, without stored values.
    public var description: String {
        switch self {
        case .engine(let error): "\(error)"
        case .format(let error): "\(error)"
        case .schemaMismatch(let problems):
            "the store's schema cannot be changed automatically to the app's: "
                + problems.joined(separator: "; ")
        case .schemaTooNew(let stored, let known, let differences):
            "the store has schema version \(stored), this app knows \(known): update the app"
                + (differences.isEmpty
                    ? "" : "; from this app to the store: " + differences.joined(separator: "; "))
        case .stageFailed(let version, let problems):
            "the stage to schema version \(version) cannot be completed: "
                + problems.joined(separator: "; ")
        case .invalidSchema(let problems):
            "the declared schema is not valid: " + problems.joined(separator: "; ")
        case .unknownEntity(let name): "there is no entity \(name)"
        case .unknownProperty(let entity, let property):
            "\(entity) has no property \(property) that can be used here"
        case .unsupportedPredicate(let reason): "the filter cannot be used: \(reason)"
        case .invalidRequest(let reason): "the request is not valid: \(reason)"
        case .invalidCursor(let reason): "the cursor does not belong to the request: \(reason)"
        case .notUnique(let violations):
            violations.map(\.description).joined(separator: "; ")
        case .missingValue(let entity, let property, let object):
            "\(entity).\(property) of object \(object.rawValue) must have a value"
        case .wrongType(let entity, let property, let expected):
            "\(entity).\(property) takes \(expected)"
        case .objectNotFound(let entity, let object):
            "there is no \(entity) with ID \(object.rawValue)"
        case .objectExists(let entity, let object):
            "there is a \(entity) with ID \(object.rawValue) already"
        case .valueOutside(let entity, let property):
            "\(entity).\(property) lies outside its row"
        }
    }
}
