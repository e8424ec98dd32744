// What can be wrong between the two sides of a relationship, and what each of it means.

import VarveBase
import VarveRecords

/// A relationship of an entity: one direction.
struct RelationshipEnd {
    let entity: RecordEntity
    let relationship: RecordRelationship
    /// "Node.parent".
    var name: String { "\(entity.name).\(relationship.name)" }
}

/// One thing that is wrong with a relationship.
enum RelationshipFault {
    /// The column of `owner` names an object that is not there. `isAllowed` where the rule of
    /// deleting leaves such references on purpose.
    case dangling(owner: ObjectID, target: ObjectID, isAllowed: Bool)
    /// The column of `owner` holds something that is no reference.
    case noReference(owner: ObjectID)
    /// One-to-one: `owner` leads to `target`, which leads to another object, or to none.
    case unanswered(owner: ObjectID, target: ObjectID, answer: ObjectID?)
    /// One-to-one: two objects lead to the one `target`.
    case shared(owner: ObjectID, other: ObjectID, target: ObjectID)
    /// An object that a link row names is not there.
    case lostEnd(link: ObjectID, end: RecordEntity, object: ObjectID)
    /// A link row that does not name two objects.
    case brokenLink(link: ObjectID)
    /// An object stands in one list twice.
    case twice(link: ObjectID, owner: ObjectID, member: ObjectID)
    /// Two link rows of one list have the same position.
    case position(link: ObjectID, other: ObjectID, owner: ObjectID, position: Int64)
    /// A list names a member whose own column names another object, or none.
    case listed(link: ObjectID, owner: ObjectID, member: ObjectID, column: ObjectID?)
    /// The column of `member` names an object whose list does not name `member`.
    case unlisted(owner: ObjectID, member: ObjectID)

    /// Number of its kind: faults of one kind are one complaint.
    var kind: Int {
        switch self {
        case .dangling(_, _, let isAllowed): isAllowed ? 0 : 1
        case .noReference: 2
        case .unanswered: 3
        case .shared: 4
        case .lostEnd: 5
        case .brokenLink: 6
        case .twice: 7
        case .position: 8
        case .listed: 9
        case .unlisted: 10
        }
    }
}

/// The words for faults of one relationship.
struct RelationshipWords {
    /// The relationship at fault. For link rows the one whose objects they call the owners.
    let end: RelationshipEnd
    let target: RecordEntity?
    let names: TreeNames

    private var inverse: String {
        guard let target else { return "its inverse" }
        return end.relationship.inverse.map { "\(target.name).\($0)" } ?? target.name
    }

    private func owner(_ object: ObjectID) -> String { names.object(end.entity.id, object) }

    private func member(_ object: ObjectID) -> String {
        target.map { names.object($0.id, object) } ?? "\(object.rawValue)"
    }

    private func row(_ link: ObjectID) -> String { "link row \(link.rawValue) of \(end.name)" }

    /// The object to look at.
    func object(_ fault: RelationshipFault) -> String {
        switch fault {
        case .dangling(let owner, _, _), .noReference(let owner), .unanswered(let owner, _, _):
            self.owner(owner)
        case .shared(_, _, let target): member(target)
        case .lostEnd(let link, _, _), .brokenLink(let link): row(link)
        case .twice(_, let owner, _), .position(_, _, let owner, _): self.owner(owner)
        case .listed(_, _, let member, _), .unlisted(_, let member): self.member(member)
        }
    }

    /// What was found, in one line.
    func finding(_ fault: RelationshipFault) -> String {
        let name = end.relationship.name
        switch fault {
        case .dangling(let owner, let target, _):
            return "\(self.owner(owner)).\(name) leads to \(member(target)), which is not there"
        case .noReference(let owner):
            return "\(self.owner(owner)).\(name) holds a value that is no reference"
        case .unanswered(let owner, let target, let answer):
            let back = answer.map { "leads to \(self.owner($0))" } ?? "leads to nothing"
            let inverse = end.relationship.inverse ?? "inverse"
            return "\(self.owner(owner)).\(name) leads to \(member(target)), whose \(inverse) "
                + back
        case .shared(let owner, let other, let target):
            return "\(self.owner(other)) and \(self.owner(owner)) both lead to \(member(target))"
        case .lostEnd(let link, let end, let object):
            return "\(row(link)) names \(names.object(end.id, object)), which is not there"
        case .brokenLink(let link):
            return "\(row(link)) does not name two objects and, in an ordered list, a number"
        case .twice(let link, let owner, let member):
            return "\(self.owner(owner)).\(name) lists \(self.member(member)) again with "
                + row(link)
        case .position(let link, let other, let owner, let position):
            return "\(self.owner(owner)).\(name) has two members at position \(position): "
                + "link rows \(other.rawValue) and \(link.rawValue)"
        case .listed(_, let owner, let member, let column):
            let back = column.map { "leads to \(self.owner($0))" } ?? "leads to nothing"
            let inverse = end.relationship.inverse ?? "inverse"
            return "\(self.owner(owner)).\(name) lists \(self.member(member)), whose \(inverse) "
                + back
        case .unlisted(let owner, let member):
            let inverse = end.relationship.inverse ?? "inverse"
            return "\(self.member(member)).\(inverse) leads to \(self.owner(owner)), whose "
                + "\(name) does not list it"
        }
    }

    /// How often, and what that means.
    func message(_ kind: RelationshipFault, _ count: Int) -> String {
        let times = count == 1 ? "once" : "\(count) times"
        switch kind {
        case .dangling(_, _, let isAllowed):
            if isAllowed {
                return "\(end.name) leads \(times) to an object that is not there; its rule of "
                    + "deleting is noAction, so nothing clears it when that object is deleted"
            }
            return "\(times) it leads to an object that is not there: that object was deleted, or "
                + "never saved, and this reference should have been cleared"
        case .noReference:
            return "\(times) its column holds a value that is no reference: it cannot be read"
        case .unanswered:
            return "\(times) the two sides disagree: what one side leads to leads back to "
                + "another object or to none, so the answer depends on who is asked (\(inverse))"
        case .shared:
            return "\(times) one object is led to by two, where at most one may: one of them has "
                + "lost it"
        case .lostEnd:
            return "\(times) a link row names an object that is not there: rows that link an "
                + "object go with it, so a list leads to nothing"
        case .brokenLink:
            return "\(times) a link row does not name its two objects: it belongs to no list"
        case .twice:
            return "\(times) one object stands in the same list twice: it can be there once"
        case .position:
            return "\(times) two members of one list have the same position: their order is not "
                + "known"
        case .listed:
            return "\(times) a list names an object whose own side leads elsewhere: the two sides "
                + "disagree (\(inverse))"
        case .unlisted:
            return "\(times) an object leads to one whose list does not name it: the two sides "
                + "disagree (\(inverse))"
        }
    }
}
