// Every combination of every macro's arguments, as an app writes it. That this file compiles is the
// test; MacroCombinationTests.swift looks at what some of it became.
#if Macros
import Foundation
public import Varve

enum Shade: Int, StoredEnum { case light, dark }

@Entity final class PlainEntity: ManagedObject { var a: Int = 0 }
@Entity() final class CalledEntity: ManagedObject { var a: Int = 0 }
@Entity(originalName: "Older") final class RenamedEntity: ManagedObject { var a: Int = 0 }
@Entity(originalName: "Old", "Oldest") final class TwiceRenamedEntity: ManagedObject {
    var a: Int = 0
}
@Entity final class EmptyEntity: ManagedObject {}

@Entity final class AttributeCombinations: ManagedObject {
    @Attribute var a1: String = ""
    @Attribute(originalName: "x2") var a2: String = ""
    @Attribute(originalName: "x3", "y3") var a3: String = ""
    @Attribute(.required) var a4: Int
    @Attribute(.required, originalName: "x5") var a5: Int
    @Attribute(.required, originalName: "x6", "y6") var a6: Int
    @Attribute(.externalStorage()) var a7: Blob?
    @Attribute(.externalStorage(), originalName: "x8") var a8: Blob?
    @Attribute(.externalStorage(), originalName: "x9", "y9") var a9: Blob?
    @Attribute(.externalStorage(above: 0)) var a10: Blob?
    @Attribute(.externalStorage(above: 0), originalName: "x11") var a11: Blob?
    @Attribute(.externalStorage(above: 0), originalName: "x12", "y12") var a12: Blob?
    @Attribute(.externalStorage(above: 4_096)) var a13: Blob?
    @Attribute(.externalStorage(above: 4_096), originalName: "x14") var a14: Blob?
    @Attribute(.externalStorage(above: 4_096), originalName: "x15", "y15") var a15: Blob?
    @Attribute(.required, .externalStorage()) var a16: Blob?
    @Attribute(.required, .externalStorage(), originalName: "x17") var a17: Blob?
    @Attribute(.required, .externalStorage(), originalName: "x18", "y18") var a18: Blob?
    @Attribute(.externalStorage(), .required) var a19: Blob?
    @Attribute(.externalStorage(), .required, originalName: "x20") var a20: Blob?
    @Attribute(.externalStorage(), .required, originalName: "x21", "y21") var a21: Blob?
    @Attribute() var called: Int? = 3
    @Attribute var shade: Shade = .dark
    @Attribute(.required) var required: Shade
    @Attribute(originalName: "hue") var optionalShade: Shade?
    @Transient var transient = 1
    @Transient() var transientCalled: [String] = []
    @Transient var transientOptional: Data?
}

@Entity final class KeyCombinations: ManagedObject {
    #Index<KeyCombinations>([\.a])
    #Index([\KeyCombinations.b])
    #Index<KeyCombinations>([\.a, \.b], [\.c], [\.link, \.a])
    #Index<KeyCombinations>([\.c, \.b], descending: [\.c])
    #Index<KeyCombinations>([\.c, \.a], [\.b, \.c], descending: [\.c, \.a])
    #Index<KeyCombinations>([\.shade], descending: [])
    #Unique<KeyCombinations>([\.a])
    #Unique<KeyCombinations>([\.b], onConflict: .error)
    #Unique<KeyCombinations>([\.c, \.a], onConflict: .upsert)
    #Unique<KeyCombinations>([\.c, \.b], [\.shade, \.link], onConflict: .ignore)
    var a: Int = 0
    var b: String?
    var c: Date = .now
    var shade: Shade = .light
    @Relationship var link: PlainEntity?
}

/// What other modules see of an entity.
@Entity public final class PublicCombination: ManagedObject {
    #Index<PublicCombination>([\.a])
    /// A number.
    public var a: Int = 0
    @Attribute(.required, originalName: "shadow") var kept: Int
    /// The parts, in their order; they go with the whole.
    @Relationship(ordered: true, deleteRule: .cascade) public var parts: ToMany<PublicCombination>
    private var hidden: Bool = true
}

@Entity package final class PackageCombination: ManagedObject {
    package var a: Int = 0
    fileprivate var b: Int?
}

/// Entities inside a type.
enum Space {
    enum Tint: String, StoredEnum { case red, blue }
    @Entity final class Inner: ManagedObject {
        var tint: Space.Tint = .red
        var other: Tint?
        @Relationship(inverse: \Space.Inner.children) var parent: Space.Inner?
        @Relationship(ordered: true, deleteRule: .cascade) var children: ToMany<Space.Inner>
    }
}

enum CombinationSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] {
        [
            PlainEntity.self, CalledEntity.self, RenamedEntity.self, TwiceRenamedEntity.self,
            EmptyEntity.self, AttributeCombinations.self, Near.self, Far.self,
            KeyCombinations.self, PublicCombination.self, PackageCombination.self,
            Space.Inner.self,
        ]
    }
}
#endif
