// A public entity: what the macros write for it is public too.
#if Macros
public import Varve

/// A note that other modules see.
@Entity(originalName: "Label") public final class PublicNote: ManagedObject {
    #Index<PublicNote>([\.text])
    /// What it says.
    public var text: String = ""
    /// Counts the changes.
    public private(set) var revision: Int = 1
    var isHidden: Bool = false
    private var secret: String? = "x"
    /// What it answers.
    @Relationship(inverse: \PublicNote.replies) public var parent: PublicNote?
    /// Its answers.
    @Relationship public var replies: ToMany<PublicNote>

    func revise() {
        revision += 1
        secret = nil
    }
}
#endif
