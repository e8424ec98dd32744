// A model as an app writes it, with every kind of property.
#if Macros
import Foundation
import Varve

enum Priority: Int, StoredEnum { case low, normal, high }

@Entity final class Item: ManagedObject {
    #Index<Item>([\.priority, \.timestamp], [\.picture])
    #Index<Item>([\.timestamp, \.title], descending: [\.timestamp])
    #Unique<Item>([\.serial], onConflict: .error)
    var timestamp: Date = .now
    var title: String = ""
    var priority: Priority = .normal
    var serial: UUID?
    var `default`: Bool = true
    private var secret: Int = 7
    @Attribute(.required) var code: Int32
    @Relationship(inverse: \Picture.item, deleteRule: .cascade) var picture: Picture?
    @Relationship(inverse: \Tag.items, ordered: true) var tags: ToMany<Tag>
    @Transient var isExpanded = false
    static let shared = 3
    var length: Int { title.count }

    var opened: Int {
        get { secret }
        set { secret = newValue }
    }
}

@Entity final class Picture: ManagedObject {
    @Attribute(.externalStorage(above: 4_096)) var data: Blob?
    @Relationship var item: Item?
}

@Entity final class Tag: ManagedObject {
    var name: String = ""
    @Relationship var items: ToMany<Item>
    @Relationship(inverse: \Tag.children) var parent: Tag?
    @Relationship var children: ToMany<Tag>
}
#endif
