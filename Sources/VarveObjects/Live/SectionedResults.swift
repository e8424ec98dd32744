// A live list in sections: runs of objects with the same value.
//
// Invariants
// - The value comes first in the order, so that each value has one section.
// - Sections cost memory, objects do not: a section is a value and a count.

public import Observation
import VarveBase
import VarveRecords

/// A live list whose objects are grouped by an attribute, its own or that of an object that a
/// to-one relationship leads to.
///
/// The attribute stands in front of the request's sort terms. A section is a run of equal values,
/// and none is empty. Everything else is as in `LiveResults`, which `list` is.
public final class SectionedResults<Entity: ManagedObject, Value: FilterableValue>: Observable {
    /// The list itself: changes, request, objects without regard to sections.
    public let list: LiveResults<Entity>

    init(_ list: LiveResults<Entity>) { self.list = list }

    /// One section: its value and its objects, as they are now.
    public struct Section: RandomAccessCollection, Identifiable {
        /// The value that its objects share. One that this build does not know (a case of a newer
        /// version) is nil.
        public let value: Value?
        /// The value as it is stored: no other section has it.
        public let id: SectionID
        /// The positions of its objects in the list.
        public let range: Range<Int>
        let results: BatchedResults<Entity>

        /// 0.
        public var startIndex: Int { 0 }
        /// The number of objects.
        public var endIndex: Int { range.count }
        /// The object at a position of the section.
        public subscript(index: Int) -> Entity {
            precondition(index >= 0 && index < range.count, "a position of the section")
            return results[range.lowerBound + index]
        }
    }

    /// The sections, in the list's order, as a collection that stays as it is. Observed.
    /// - Complexity: O(1); each section O(1).
    public var sections: Sections { Sections(table: list.sections, results: list.results) }

    /// The sections as they are now.
    public struct Sections: RandomAccessCollection {
        let table: SectionTable
        let results: BatchedResults<Entity>

        /// 0.
        public var startIndex: Int { 0 }
        /// The number of sections.
        public var endIndex: Int { table.sections.count }
        /// The section at a position.
        public subscript(index: Int) -> Section {
            let (section, start) = (table.sections[index], table.starts[index])
            return Section(
                value: Value(stored: section.value),
                id: SectionID(value: section.value),
                range: start..<start + section.count,
                results: results
            )
        }
    }
}

/// Tells the sections of a list apart.
public struct SectionID: Hashable, Sendable {
    let value: StoredValue

    /// Whether both are the same bytes, as the order of sections tells values apart.
    public static func == (left: SectionID, right: SectionID) -> Bool {
        left.value.isSame(as: right.value)
    }
}

extension ManagedObjectContext {
    /// A live list in sections; see `SectionedResults`.
    ///
    /// - Parameters:
    ///   - descriptor: which objects, and their order in a section.
    ///   - section: the attribute that objects of a section share. It stands in front of the
    ///     request's sort terms, low values first.
    ///   - isDescending: high values first.
    ///   - batchSize: rows that are read together when one of them is touched.
    /// - Complexity: that of `live`, and O(log n) for each section.
    /// - Throws: what `fetch` throws; `invalidRequest` for a request with a cursor, which does not
    ///   know of sections.
    public func live<Entity, Value>(
        _ descriptor: FetchDescriptor<Entity>,
        sectionedBy section: (Entity.Columns) -> Column<Entity, Value>,
        isDescending: Bool = false,
        batchSize: Int = 50
    ) throws -> SectionedResults<Entity, Value> {
        if descriptor.afterCursor != nil || descriptor.beforeCursor != nil {
            throw StoreError(
                .invalidRequest,
                "a list in sections begins at no cursor",
                place: .init(entity: Entity.entityName),
                suggestion: "Leave after(_:) and before(_:) out; a live list needs no pages."
            )
        }
        let term = VarveRecords.SortTerm(
            section(Entity.columns).definition.path,
            isDescending: isDescending
        )
        return SectionedResults(
            try LiveResults(descriptor, sectionTerm: term, batchSize: batchSize, in: self)
        )
    }
}
