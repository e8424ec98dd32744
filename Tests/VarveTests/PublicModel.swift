// A public entity: what the macros write for it is public too.
#if Macros
public import Varve

@Entity(originalName: "Label") public final class PublicNote: ManagedObject {
    #Index<PublicNote>([\.text])
    public var text: String = ""
    public private(set) var revision: Int = 1
    var isHidden: Bool = false
    private var secret: String? = "x"
    @Relationship(inverse: \PublicNote.replies) public var parent: PublicNote?
    @Relationship public var replies: ToMany<PublicNote>

    func revise() {
        revision += 1
        secret = nil
    }
}
#endif
