// Stages that change the shape of a schema: an entity split in two, two merged into one, versions
// that no class describes, data that moves into a blob.

import Foundation
import Testing
import VarveObjects

private final class Pet: ManagedObject {
    static let entityName = "Pet"
    struct Columns: Sendable {
        let name = Column<Pet, String>("name", default: "")
        let kind = Column<Pet, String>("kind", default: "")
        let photo = Column<Pet, Blob?>("photo")
        let owner = ToOneColumn<Pet, Owner>("owner", inverse: "pets")
        let friends = ToManyColumn<Pet, Owner>("friends", inverse: "friends")
        let collar = ToOneColumn<Pet, Collar>("collar", inverse: "wearer")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var kind: String {
        get { storedValue(Self.columns.kind, \.kind) }
        set { setStoredValue(newValue, Self.columns.kind, \.kind) }
    }
    var photo: Blob? {
        get { storedValue(Self.columns.photo, \.photo) }
        set { setStoredValue(newValue, Self.columns.photo, \.photo) }
    }
    var owner: Owner? {
        get { storedValue(Self.columns.owner, \.owner) }
        set { setStoredValue(newValue, Self.columns.owner, \.owner) }
    }
    var friends: ToMany<Owner> { storedValue(Self.columns.friends, \.friends) }
    var collar: Collar? {
        get { storedValue(Self.columns.collar, \.collar) }
        set { setStoredValue(newValue, Self.columns.collar, \.collar) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot") extension Pet: Sendable {}

private final class Owner: ManagedObject {
    static let entityName = "Owner"
    struct Columns: Sendable {
        let name = Column<Owner, String>("name", default: "")
        let pets = ToManyColumn<Owner, Pet>("pets", ordered: true)
        let friends = ToManyColumn<Owner, Pet>("friends")
        let address = ToOneColumn<Owner, Address>("address", inverse: "owners")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var pets: ToMany<Pet> { storedValue(Self.columns.pets, \.pets) }
    var friends: ToMany<Pet> { storedValue(Self.columns.friends, \.friends) }
    var address: Address? {
        get { storedValue(Self.columns.address, \.address) }
        set { setStoredValue(newValue, Self.columns.address, \.address) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot") extension Owner: Sendable {}

private final class Address: ManagedObject {
    static let entityName = "Address"
    struct Columns: Sendable {
        let street = Column<Address, String>("street", default: "")
        let owners = ToManyColumn<Address, Owner>("owners")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var street: String {
        get { storedValue(Self.columns.street, \.street) }
        set { setStoredValue(newValue, Self.columns.street, \.street) }
    }
    var owners: ToMany<Owner> { storedValue(Self.columns.owners, \.owners) }
}
@available(*, unavailable, message: "pass the id or a snapshot") extension Address: Sendable {}

private final class Collar: ManagedObject {
    static let entityName = "Collar"
    struct Columns: Sendable {
        let color = Column<Collar, String>("color", default: "")
        let wearer = ToOneColumn<Collar, Pet>("wearer")
    }
    static let columns = Columns()
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }
    var wearer: Pet? {
        get { storedValue(Self.columns.wearer, \.wearer) }
        set { setStoredValue(newValue, Self.columns.wearer, \.wearer) }
    }
}
@available(*, unavailable, message: "pass the id or a snapshot") extension Collar: Sendable {}

private enum LastSchema: VersionedSchema {
    static let version = 3
    static var entities: [any ManagedObject.Type] {
        [Pet.self, Owner.self, Address.self, Collar.self]
    }
}

/// No class describes it: dogs and cats of owners, who have their street, and data in the row.
private let first = SchemaDescription(
    version: 1,
    entities: ["Dog", "Cat"].map { name in
        EntityDescription(
            name: name,
            attributes: [
                AttributeDescription(name: "name", type: .text, defaultValue: .text("")),
                AttributeDescription(name: "image", type: .data, isOptional: true),
            ],
            relationships: [
                RelationshipDescription(name: "owner", target: "Owner", inverse: "\(name)s"),
                RelationshipDescription(
                    name: "friends",
                    target: "Owner",
                    inverse: "\(name)Friends",
                    isToMany: true
                ),
            ]
        )
    } + [
        EntityDescription(
            name: "Owner",
            attributes: [
                AttributeDescription(name: "name", type: .text, defaultValue: .text("")),
                AttributeDescription(name: "street", type: .text, defaultValue: .text("")),
            ],
            relationships: ["Dog", "Cat"].flatMap { name in
                [
                    RelationshipDescription(
                        name: "\(name)s",
                        target: name,
                        inverse: "owner",
                        isToMany: true,
                        isOrdered: true
                    ),
                    RelationshipDescription(
                        name: "\(name)Friends",
                        target: name,
                        inverse: "friends",
                        isToMany: true
                    ),
                ]
            }
        ),
        EntityDescription(
            name: "Collar",
            attributes: [
                AttributeDescription(name: "color", type: .text, defaultValue: .text(""))
            ],
            relationships: [
                RelationshipDescription(name: "wearer", target: "Dog", inverse: "collar")
            ]
        ),
    ]
)

@Suite(.verified) struct StageShapeTests {
    /// The store of before is made by a migration, too: from an empty first schema, by names.
    private enum Empty: VersionedSchema {
        static let version = 0
        static var entities: [any ManagedObject.Type] { [] }
    }

    private enum Making: MigrationPlan {
        static var stages: [MigrationStage] {
            [
                .custom(to: withCollar) { migration in
                    var owners: [ManagedObjectID] = []
                    for number in 0..<7 {
                        owners.append(
                            try migration.insert("Owner") { new in
                                try new.set("name", to: "owner \(number)")
                                try new.set("street", to: "street \(number % 3)")
                            }
                        )
                    }
                    for number in 0..<60 {
                        let kind = number % 2 == 0 ? "Dog" : "Cat"
                        let pet = try migration.insert(kind) { new in
                            try new.set("name", to: "\(kind) \(number)")
                            if number % 3 == 0 {
                                try new.set("image", to: Data(repeating: UInt8(number), count: 50))
                            }
                            try new.set("owner", to: owners[number % 7])
                            try new.set("friends", to: [owners[0], owners[number % 5]])
                        }
                        if number % 4 == 0 {
                            try migration.insert("Collar") { new in
                                try new.set("color", to: "red \(number)")
                                try new.set("wearer", to: pet)
                            }
                        }
                    }
                }
            ]
        }
    }

    private static let withCollar: SchemaDescription = {
        var schema = first
        schema[entity: "Dog"]?.relationships.append(
            RelationshipDescription(name: "collar", target: "Collar", inverse: "wearer")
        )
        return schema
    }()

    /// Version 2 has no classes: it is told by what changes, and the street gets its own entity.
    private enum Plan: MigrationPlan {
        static var stages: [MigrationStage] {
            Making.stages + [
                .custom(
                    to: 2,
                    removing: ["Owner.street"],
                    changing: { schema in
                        schema[entity: "Owner"]?[attribute: "street"] = nil
                        schema[entity: "Owner"]?[relationship: "address"] =
                            RelationshipDescription(
                                name: "address",
                                target: "Address",
                                inverse: "owners"
                            )
                        schema[entity: "Address"] = EntityDescription(
                            name: "Address",
                            attributes: [
                                AttributeDescription(
                                    name: "street",
                                    type: .text,
                                    defaultValue: .text("")
                                )
                            ],
                            relationships: [
                                RelationshipDescription(
                                    name: "owners",
                                    target: "Owner",
                                    inverse: "address",
                                    isToMany: true
                                )
                            ]
                        )
                    }
                ) { migration in
                    var known: [String: ManagedObjectID] = [:]
                    try migration.update("Owner") { old, new in
                        let street: String = try old["street"]
                        let address =
                            try known[street]
                            ?? migration.insert("Address") {
                                try $0.set("street", to: street)
                            }
                        known[street] = address
                        try new.set("address", to: address)
                    }
                },
                .custom(to: LastSchema.self, removing: ["Dog", "Cat"]) { migration in
                    for kind in ["Dog", "Cat"] {
                        try migration.forEach(kind) { old in
                            try migration.insert(Pet.self, keeping: old.id) { new in
                                new.name = try old["name"]
                                new.kind = kind
                                if let image = try old["image"] as Data? {
                                    new.photo = try migration.makeBlob(image)
                                }
                                new.owner = try old.object("owner").map { id in
                                    try migration.id(id, of: Owner.self)
                                }
                                new.friends = try old.objects("friends").map { id in
                                    try migration.id(id, of: Owner.self)
                                }
                            }
                        }
                    }
                    try migration.update("Collar") { old, new in
                        try new.set("wearer", to: try old.object("wearer"))
                    }
                },
            ]
        }
    }

    @Test func `Two entities become one, one becomes two, and relationships are kept`() throws {
        let folder = try TemporaryFolder()
        try PersistentContainer.openNow(at: folder.store, schema: Empty.self).closeNow()
        let container = try PersistentContainer.openNow(
            at: folder.store,
            schema: LastSchema.self,
            migrations: Plan.self
        )
        let context = container.newContext()
        let pets = try context.fetch(Pet.all)
        #expect(pets.count == 60)
        for pet in pets {
            let number = try #require(Int(pet.name.split(separator: " ").last ?? ""))
            #expect(pet.kind == (number % 2 == 0 ? "Dog" : "Cat"))
            #expect(pet.owner?.name == "owner \(number % 7)")
            #expect(Set(pet.friends.map(\.name)) == ["owner 0", "owner \(number % 5)"])
            #expect((pet.collar != nil) == (number % 4 == 0))
            #expect(pet.collar?.wearer === pet || pet.collar == nil)
            let photo = number % 3 == 0 ? Data(repeating: UInt8(number), count: 50) : nil
            #expect(try pet.photo?.readAll() == photo)
            #expect(pet.owner?.pets.contains(pet) == true)
        }
        #expect(try context.count(Address.all) == 3)
        for owner in try context.fetch(Owner.all) {
            let number = try #require(Int(owner.name.split(separator: " ").last ?? ""))
            #expect(owner.address?.street == "street \(number % 3)")
            #expect(owner.address?.owners.contains(owner) == true)
        }
        // One commit for all of it.
        #expect(context.commit?.rawValue == 2)
        try container.closeNow()
    }
}
