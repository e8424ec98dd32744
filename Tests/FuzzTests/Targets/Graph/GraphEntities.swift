// The entities of the object layer's fuzzer: one relationship of every kind, every delete rule.
//
// A run uses a random part of them, so that each run has a model of its own.

public import VarveObjects

final class Alpha: ManagedObject {
    static let entityName = "Alpha"
    struct Columns: Sendable {
        let name = Column<Alpha, String>("name", default: "")
        let number = Column<Alpha, Int>("number", default: 0)
        let code = Column<Alpha, String?>("code")
        let label = Column<Alpha, String>("label", derived: Alpha.label)
        let parent = ToOneColumn<Alpha, Alpha>("parent", inverse: "children")
        let children = ToManyColumn<Alpha, Alpha>("children", deleteRule: .cascade)
        let book = ToOneColumn<Alpha, Beta>("book", inverse: "chapters")
        let guardian = ToOneColumn<Alpha, Beta>("guardian", inverse: "guarded")
        let keeper = ToOneColumn<Alpha, Beta>("keeper", inverse: "kept")
        let next = ToOneColumn<Alpha, Alpha>("next", inverse: "previous")
        let previous = ToOneColumn<Alpha, Alpha>("previous")
        let part = ToOneColumn<Alpha, Beta>("part", inverse: "whole", deleteRule: .cascade)
        let loose = ToOneColumn<Alpha, Alpha>("loose")
        let stale = ToOneColumn<Alpha, Beta>("stale", deleteRule: .noAction)
        let picks = ToManyColumn<Alpha, Beta>("picks")
        let playlist = ToManyColumn<Alpha, Alpha>("playlist", ordered: true)
        let left = ToManyColumn<Alpha, Alpha>("left", inverse: "right", ordered: true)
        let right = ToManyColumn<Alpha, Alpha>("right", ordered: true)
        let tags = ToManyColumn<Alpha, Beta>("tags", inverse: "tagged")
        let steps = ToManyColumn<Alpha, Beta>("steps", inverse: "stepOf", ordered: true)
        let host = ToOneColumn<Alpha, Beta>("host", inverse: "guests")
        let leader = ToOneColumn<Alpha, Beta>("leader", inverse: "squad")
        let pairs = ToManyColumn<Alpha, Alpha>("pairs", inverse: "pairedBy", count: ...2)
        let pairedBy = ToManyColumn<Alpha, Alpha>("pairedBy", count: NotOne())
        let trio = ToManyColumn<Alpha, Beta>("trio", count: NotOne())
        let home = CompositeColumn<Alpha, Spot>("home", default: Spot())
        let trip = OptionalCompositeColumn<Alpha, Spot>("trip")
        let words = Column<Alpha, [String]>("words", default: [])
        let scores = Column<Alpha, [String: Double]?>("scores")
        let look = Column<Alpha, Look>("look", default: Look())
        let price = Column<Alpha, Price>("price", default: .zeroValue)
        let stay = Column<Alpha, Coded<StayCodec>>("stay", default: Coded(.zero))
        let pause = Column<Alpha, Coded<StayCodec>?>("pause")
        let placeLabel = Column<Alpha, String>("placeLabel", derived: Alpha.placeLabel)
    }
    static let columns = Columns()
    static var indexes: [EntityIndex] {
        [
            EntityIndex(columns.number), EntityIndex(columns.label),
            EntityIndex(columns.home.city), EntityIndex(columns.trip.zip),
            EntityIndex(columns.placeLabel),
        ]
    }
    @Sendable private static func label(_ row: DerivedSource<Alpha>) -> String {
        "\(row[columns.number]) \(row[columns.name])"
    }
    var label: String { "\(number) \(name)" }
    static var uniqueConstraints: [EntityConstraint] {
        [EntityConstraint(columns.code, onConflict: .upsert)]
    }
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }

    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var number: Int {
        get { storedValue(Self.columns.number, \.number) }
        set { setStoredValue(newValue, Self.columns.number, \.number) }
    }
    var code: String? {
        get { storedValue(Self.columns.code, \.code) }
        set { setStoredValue(newValue, Self.columns.code, \.code) }
    }
    var parent: Alpha? {
        get { storedValue(Self.columns.parent, \.parent) }
        set { setStoredValue(newValue, Self.columns.parent, \.parent) }
    }
    var children: ToMany<Alpha> { storedValue(Self.columns.children, \.children) }
    var book: Beta? {
        get { storedValue(Self.columns.book, \.book) }
        set { setStoredValue(newValue, Self.columns.book, \.book) }
    }
    var guardian: Beta? {
        get { storedValue(Self.columns.guardian, \.guardian) }
        set { setStoredValue(newValue, Self.columns.guardian, \.guardian) }
    }
    var keeper: Beta? {
        get { storedValue(Self.columns.keeper, \.keeper) }
        set { setStoredValue(newValue, Self.columns.keeper, \.keeper) }
    }
    var next: Alpha? {
        get { storedValue(Self.columns.next, \.next) }
        set { setStoredValue(newValue, Self.columns.next, \.next) }
    }
    var previous: Alpha? {
        get { storedValue(Self.columns.previous, \.previous) }
        set { setStoredValue(newValue, Self.columns.previous, \.previous) }
    }
    var part: Beta? {
        get { storedValue(Self.columns.part, \.part) }
        set { setStoredValue(newValue, Self.columns.part, \.part) }
    }
    var loose: Alpha? {
        get { storedValue(Self.columns.loose, \.loose) }
        set { setStoredValue(newValue, Self.columns.loose, \.loose) }
    }
    var stale: Beta? {
        get { storedValue(Self.columns.stale, \.stale) }
        set { setStoredValue(newValue, Self.columns.stale, \.stale) }
    }
    var picks: ToMany<Beta> { storedValue(Self.columns.picks, \.picks) }
    var playlist: ToMany<Alpha> { storedValue(Self.columns.playlist, \.playlist) }
    var left: ToMany<Alpha> { storedValue(Self.columns.left, \.left) }
    var right: ToMany<Alpha> { storedValue(Self.columns.right, \.right) }
    var tags: ToMany<Beta> { storedValue(Self.columns.tags, \.tags) }
    var steps: ToMany<Beta> { storedValue(Self.columns.steps, \.steps) }
    var host: Beta? {
        get { storedValue(Self.columns.host, \.host) }
        set { setStoredValue(newValue, Self.columns.host, \.host) }
    }
    var leader: Beta? {
        get { storedValue(Self.columns.leader, \.leader) }
        set { setStoredValue(newValue, Self.columns.leader, \.leader) }
    }
    var pairs: ToMany<Alpha> { storedValue(Self.columns.pairs, \.pairs) }
    var pairedBy: ToMany<Alpha> { storedValue(Self.columns.pairedBy, \.pairedBy) }
    var trio: ToMany<Beta> { storedValue(Self.columns.trio, \.trio) }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Alpha: Sendable {}

final class Beta: ManagedObject {
    static let entityName = "Beta"
    struct Columns: Sendable {
        let name = Column<Beta, String>("name", default: "")
        let number = Column<Beta, Int>("number", default: 0)
        let code = Column<Beta, String?>("code")
        let chapters = ToManyColumn<Beta, Alpha>("chapters", ordered: true)
        let guarded = ToManyColumn<Beta, Alpha>("guarded", deleteRule: .deny)
        let kept = ToManyColumn<Beta, Alpha>("kept", deleteRule: .noAction)
        let whole = ToOneColumn<Beta, Alpha>("whole")
        let owned = ToManyColumn<Beta, Alpha>("owned", deleteRule: .cascade)
        let patron = ToOneColumn<Beta, Beta>("patron", deleteRule: .deny)
        let tagged = ToManyColumn<Beta, Alpha>("tagged")
        let stepOf = ToManyColumn<Beta, Alpha>("stepOf")
        let guests = ToManyColumn<Beta, Alpha>("guests", count: NotOne())
        let squad = ToManyColumn<Beta, Alpha>(
            "squad",
            ordered: true,
            deleteRule: .cascade,
            count: NotOne()
        )
    }
    static let columns = Columns()
    static var uniqueConstraints: [EntityConstraint] { [EntityConstraint(columns.code)] }
    @safe @exclusivity(unchecked) var storage: ObjectStorage
    init(storage: consuming ObjectStorage) { self.storage = storage }

    var name: String {
        get { storedValue(Self.columns.name, \.name) }
        set { setStoredValue(newValue, Self.columns.name, \.name) }
    }
    var number: Int {
        get { storedValue(Self.columns.number, \.number) }
        set { setStoredValue(newValue, Self.columns.number, \.number) }
    }
    var code: String? {
        get { storedValue(Self.columns.code, \.code) }
        set { setStoredValue(newValue, Self.columns.code, \.code) }
    }
    var chapters: ToMany<Alpha> { storedValue(Self.columns.chapters, \.chapters) }
    var guarded: ToMany<Alpha> { storedValue(Self.columns.guarded, \.guarded) }
    var kept: ToMany<Alpha> { storedValue(Self.columns.kept, \.kept) }
    var whole: Alpha? {
        get { storedValue(Self.columns.whole, \.whole) }
        set { setStoredValue(newValue, Self.columns.whole, \.whole) }
    }
    var owned: ToMany<Alpha> { storedValue(Self.columns.owned, \.owned) }
    var patron: Beta? {
        get { storedValue(Self.columns.patron, \.patron) }
        set { setStoredValue(newValue, Self.columns.patron, \.patron) }
    }
    var tagged: ToMany<Alpha> { storedValue(Self.columns.tagged, \.tagged) }
    var stepOf: ToMany<Alpha> { storedValue(Self.columns.stepOf, \.stepOf) }
    var guests: ToMany<Alpha> { storedValue(Self.columns.guests, \.guests) }
    var squad: ToMany<Alpha> { storedValue(Self.columns.squad, \.squad) }
}
@available(*, unavailable, message: "pass the id or a snapshot")
extension Beta: Sendable {}

/// None, or more than one: what edits of either side, and deletions, easily miss, and what a new
/// object begins with.
struct NotOne: RangeExpression, Sendable {
    func contains(_ count: Int) -> Bool { count != 1 }

    func relative<Elements: Collection>(to elements: Elements) -> Range<Int>
    where Elements.Index == Int { elements.startIndex..<elements.endIndex }
}

/// Both entities.
public enum FuzzedSchema: VersionedSchema {
    /// The only one.
    public static let version = 1
    /// Alpha and Beta.
    public static var entities: [any ManagedObject.Type] { [Alpha.self, Beta.self] }
}

/// The relationships by name, whatever their types.
struct GraphAccess {
    /// A to-one relationship.
    struct One {
        let get: (any ManagedObject) -> (any ManagedObject)?
        let set: (any ManagedObject, (any ManagedObject)?) -> Void
    }

    /// A to-many relationship of one object.
    struct Many {
        let ids: () -> [ManagedObjectID]
        let page: (Range<Int>) throws -> [any ManagedObject]
        let objects: () -> [any ManagedObject]
        let count: () -> Int
        let contains: (any ManagedObject) -> Bool
        let append: (any ManagedObject) -> Void
        let insert: (any ManagedObject, Int) -> Void
        let remove: (any ManagedObject) -> Void
        let removeAll: () -> Void
        let replaceAll: ([any ManagedObject]) -> Void
    }

    private(set) var ones: [String: One] = [:]
    private(set) var lists: [String: (any ManagedObject) -> Many] = [:]

    init() {
        one("parent", \Alpha.parent)
        one("book", \Alpha.book)
        one("guardian", \Alpha.guardian)
        one("keeper", \Alpha.keeper)
        one("next", \Alpha.next)
        one("previous", \Alpha.previous)
        one("part", \Alpha.part)
        one("loose", \Alpha.loose)
        one("stale", \Alpha.stale)
        one("host", \Alpha.host)
        one("leader", \Alpha.leader)
        one("whole", \Beta.whole)
        one("patron", \Beta.patron)
        many("children", \Alpha.children)
        many("picks", \Alpha.picks)
        many("playlist", \Alpha.playlist)
        many("left", \Alpha.left)
        many("right", \Alpha.right)
        many("tags", \Alpha.tags)
        many("steps", \Alpha.steps)
        many("pairs", \Alpha.pairs)
        many("pairedBy", \Alpha.pairedBy)
        many("trio", \Alpha.trio)
        many("guests", \Beta.guests)
        many("squad", \Beta.squad)
        many("chapters", \Beta.chapters)
        many("guarded", \Beta.guarded)
        many("kept", \Beta.kept)
        many("owned", \Beta.owned)
        many("tagged", \Beta.tagged)
        many("stepOf", \Beta.stepOf)
    }

    private mutating func one<Owner: ManagedObject, Target: ManagedObject>(
        _ name: String,
        _ path: ReferenceWritableKeyPath<Owner, Target?>
    ) {
        ones[name] = One(
            get: { ($0 as? Owner)?[keyPath: path] },
            set: { ($0 as? Owner)?[keyPath: path] = $1 as? Target }
        )
    }

    private mutating func many<Owner: ManagedObject, Target: ManagedObject>(
        _ name: String,
        _ path: KeyPath<Owner, ToMany<Target>>
    ) {
        lists[name] = { owner in
            func list() -> ToMany<Target> {
                guard let owner = owner as? Owner else { preconditionFailure("\(name): owner") }
                return owner[keyPath: path]
            }
            func target(_ object: any ManagedObject) -> Target {
                guard let target = object as? Target else { preconditionFailure("\(name)") }
                return target
            }
            return Many(
                ids: { list().ids.map(\.objectID) },
                page: { try list().page($0) },
                objects: { Array(list()) },
                count: { list().count },
                contains: { list().contains(target($0)) },
                append: { list().append(target($0)) },
                insert: { list().insert(target($0), at: $1) },
                remove: { list().remove(target($0)) },
                removeAll: { list().removeAll() },
                replaceAll: { list().replaceAll(with: $0.map(target)) }
            )
        }
    }
}
