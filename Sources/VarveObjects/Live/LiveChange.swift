// What a live list tells of one step: IDs and positions, no objects.

public import VarveBase

/// What changed in a live list since it told last.
///
/// Positions of deleted objects and sections, and those that moves begin at, count in the list
/// before; all others count in the list now. To bring a copy up to date: take out `deleted` and the
/// beginnings of `moved`, from the back; then put in `inserted` and the ends of `moved`, from the
/// front. Sections that ended or began are among `deletedSections` and `insertedSections`, and
/// their objects also among the others.
public struct LiveChange<Entity: ManagedObject>: Sendable {
    /// A position: in the whole list, and by section. A list without sections has one.
    public struct Place: Hashable, Sendable {
        /// The position in the list.
        public let offset: Int
        /// The section.
        public let section: Int
        /// The position in the section.
        public let item: Int
    }

    /// An object and where it is, or was.
    public struct Item: Hashable, Sendable {
        /// The object.
        public let id: Entity.ID
        /// Its position.
        public let place: Place
    }

    /// An object that is in another place.
    public struct Move: Hashable, Sendable {
        /// The object.
        public let id: Entity.ID
        /// Its position in the list before.
        public let from: Place
        /// Its position now.
        public let to: Place
    }

    /// The commit that the list shows; nil if its context reads none.
    public let commit: CommitNumber?
    /// Whether the list is another one as a whole, and all else here is empty: it got another
    /// request, its context was reset, more than 10,000 objects changed, or nobody knows what did.
    public let isReplaced: Bool
    /// Sections that ended, by their positions before, ascending.
    public internal(set) var deletedSections: [Int] = []
    /// Sections that began, by their positions now, ascending.
    public internal(set) var insertedSections: [Int] = []
    /// Objects that left the list, ascending.
    public internal(set) var deleted: [Item] = []
    /// Objects that came into it, ascending.
    public internal(set) var inserted: [Item] = []
    /// Objects in another place among the others; their values may be others, too.
    public internal(set) var moved: [Move] = []
    /// Objects in the same place with other values, ascending.
    public internal(set) var updated: [Item] = []

    /// How many objects it tells of.
    public var count: Int { deleted.count + inserted.count + moved.count + updated.count }

    static func replaced(_ commit: CommitNumber?) -> LiveChange {
        LiveChange(commit: commit, isReplaced: true)
    }

    private init(commit: CommitNumber?, isReplaced: Bool) {
        (self.commit, self.isReplaced) = (commit, isReplaced)
    }

    init(
        _ outcome: LiveList.Outcome,
        before: SectionTable?,
        _ commit: CommitNumber,
        _ identity: (ObjectID) -> ManagedObjectID
    ) {
        self.init(commit: commit, isReplaced: outcome.diff == nil)
        guard let diff = outcome.diff else { return }
        func place(_ offset: Int, _ table: SectionTable?) -> Place {
            let (section, item) = table?.place(of: offset) ?? (0, offset)
            return Place(offset: offset, section: section, item: item)
        }
        func items(_ all: [(id: ObjectID, offset: Int)], _ table: SectionTable?) -> [Item] {
            all.map { Item(id: TypedObjectID(identity($0.id)), place: place($0.offset, table)) }
        }
        let after = outcome.sections
        deletedSections = outcome.endedSections
        insertedSections = outcome.begunSections
        deleted = items(diff.deleted, before)
        inserted = items(diff.inserted, after)
        updated = items(diff.updated, after)
        moved = diff.moved.map {
            Move(
                id: TypedObjectID(identity($0.id)),
                from: place($0.from, before),
                to: place($0.to, after)
            )
        }
    }
}
