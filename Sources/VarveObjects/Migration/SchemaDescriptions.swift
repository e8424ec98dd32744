// Schemas as values: for versions of a chain that no class of the app describes any more.

public import VarveRecords

@_exported public import enum VarveBase.StoredValue
@_exported public import struct VarveRecords.AttributeDescription
@_exported public import enum VarveRecords.AttributeType
@_exported public import struct VarveRecords.EntityDescription
@_exported public import struct VarveRecords.IndexDescription
@_exported public import struct VarveRecords.MigrationStep
@_exported public import struct VarveRecords.RelationshipDescription
@_exported public import struct VarveRecords.SchemaDescription
@_exported public import struct VarveRecords.SchemaDifference
@_exported public import struct VarveRecords.UniqueConstraintDescription

extension SchemaDescription {
    /// What an app's entities declare, as a value.
    ///
    /// - Throws: `StoreError` with `invalidSchema`.
    public init(_ schema: any VersionedSchema.Type) throws {
        self = try EntityDeclaration.describe(schema)
    }

    /// The place of an entity by its name, to change it: nil if there is none.
    public subscript(entity name: String) -> EntityDescription? {
        get { entities.first { $0.name == name } }
        set {
            let index = entities.firstIndex { $0.name == name }
            switch (index, newValue) {
            case (let index?, let entity?): entities[index] = entity
            case (let index?, nil): entities.remove(at: index)
            case (nil, let entity?): entities.append(entity)
            case (nil, nil): break
            }
        }
    }
}

extension EntityDescription {
    /// An attribute by its name, to change it: nil if there is none.
    public subscript(attribute name: String) -> AttributeDescription? {
        get { attributes.first { $0.name == name } }
        set {
            let index = attributes.firstIndex { $0.name == name }
            switch (index, newValue) {
            case (let index?, let attribute?): attributes[index] = attribute
            case (let index?, nil): attributes.remove(at: index)
            case (nil, let attribute?): attributes.append(attribute)
            case (nil, nil): break
            }
        }
    }

    /// A relationship by its name, to change it: nil if there is none.
    public subscript(relationship name: String) -> RelationshipDescription? {
        get { relationships.first { $0.name == name } }
        set {
            let index = relationships.firstIndex { $0.name == name }
            switch (index, newValue) {
            case (let index?, let relationship?): relationships[index] = relationship
            case (let index?, nil): relationships.remove(at: index)
            case (nil, let relationship?): relationships.append(relationship)
            case (nil, nil): break
            }
        }
    }
}

extension SchemaDifference {
    /// The difference of two versions of an app's schema.
    ///
    /// - Throws: `StoreError` with `invalidSchema`.
    public init(
        from old: any VersionedSchema.Type,
        to new: any VersionedSchema.Type
    ) throws {
        self.init(from: try SchemaDescription(old), to: try SchemaDescription(new))
    }
}
