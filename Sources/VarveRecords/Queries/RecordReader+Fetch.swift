// The requests that snapshots and transactions answer alike.

import VarveBase
import VarveEngine
import VarveFormat

extension RecordReader {
    /// The object IDs of a request, in its order.
    func fetchIDs(_ query: RecordQuery) throws(RecordError) -> [ObjectID] {
        let (plan, window) = try plan(query)
        return try PlanExecutor(reader: self, plan: plan).ids(window)
    }

    /// How many objects a fetch of the request would return.
    func count(_ query: RecordQuery) throws(RecordError) -> Int {
        if query.after != nil || query.before != nil { return try fetchIDs(query).count }
        try check(query)
        let entity = try entity(query.entity)
        let root = try compiled(query.predicate, entity, turnsRound: true)
        let all: Int
        if query.sort.isEmpty, let entries = try matchingEntries(root, entity) {
            all = Int(clamping: entries)
        } else {
            let (planner, _) = try planner(query, entity, root, needsOrder: false)
            all = try PlanExecutor(reader: self, plan: planner.plan()).count()
        }
        return min(query.limit ?? Int.max, max(0, all - query.offset))
    }

    /// Lends the rows of a request to `body`, ascending by ID, where it has no order and no window
    /// and its plan goes through all rows and looks at nothing but the row itself. Else nothing is
    /// lent, and the result is what `fetchIDs` gives.
    ///
    /// - Parameters:
    ///   - columns: the rows may have no more than these; nil: nothing is to be lent.
    ///   - numbers: as of `eachPassing`.
    func scan(
        _ query: RecordQuery,
        _ columns: RowColumns?,
        numbers: (column: ColumnID, body: NumbersBody)? = nil,
        _ body: PassingBody
    ) throws(RecordError) -> [ObjectID]? {
        let (plan, window) = try plan(query)
        let executor = PlanExecutor(reader: self, plan: plan)
        guard let columns, query.isWhole, query.sort.isEmpty, case .rows = plan.access,
            let test = plan.inPlaceTest
        else { return try executor.ids(window) }
        try executor.eachPassing(
            test,
            [KeyRange(prefix: [])],
            goesBack: false,
            reading: columns,
            numbers: numbers,
            body
        )
        return nil
    }

    /// The value of a column of a row that is lent; one that is kept outside it is read.
    func value(
        _ column: ColumnID,
        _ entity: RecordEntity,
        _ id: ObjectID,
        _ layout: RowLayout,
        _ row: Span<UInt8>
    ) throws(RecordError) -> StoredValue {
        let slot = layout.slot(column, in: row)
        if slot.isOutside { return try source.outsideValue(entity, id, column, slot) }
        do throws(FormatError) {
            return try slot.value(in: row) ?? entity.defaultValue(column)
        } catch {
            throw .format(error)
        }
    }

    /// The plan of a request as text.
    func explain(_ query: RecordQuery) throws(RecordError) -> String {
        let (plan, window) = try plan(query)
        var text = plan.text(window)
        var inner: [InnerRequest] = []
        query.predicate.eachRequest { inner.append($0) }
        for request in inner {
            let lines = try explain(request.query(schema)).split(separator: "\n")
            text += "\nrequest inside the filter:" + lines.map { "\n  \($0)" }.joined()
        }
        return text
    }

    /// Whether an index gives the order of a request.
    func answersInOrder(_ query: RecordQuery) throws(RecordError) -> Bool {
        let (plan, _) = try plan(query)
        guard case .index = plan.access else { return false }
        return plan.isOrdered
    }

    private func plan(
        _ query: RecordQuery
    ) throws(RecordError) -> (FetchPlan, FetchWindow) {
        let (planner, window) = try planner(query, needsOrder: true)
        return (try planner.plan(), window)
    }

    /// What chooses the plan of a request, once the request is checked.
    /// - Parameter turnsRound: whether filters through relationships are answered first, from the
    ///   far side. Then the plan holds for this state of the far entities only.
    func planner(
        _ query: RecordQuery,
        needsOrder: Bool,
        turnsRound: Bool = true
    ) throws(RecordError) -> (FetchPlanner<Source>, FetchWindow) {
        try check(query)
        let entity = try entity(query.entity)
        let root = try compiled(query.predicate, entity, turnsRound: turnsRound)
        return try planner(query, entity, root, needsOrder: needsOrder)
    }

    private func check(_ query: RecordQuery) throws(RecordError) {
        if let limit = query.limit, limit < 0 { throw .invalidRequest("the limit is \(limit)") }
        if query.offset < 0 { throw .invalidRequest("the offset is \(query.offset)") }
    }

    /// A filter with its names resolved and the requests inside it answered.
    private func compiled(
        _ predicate: Predicate,
        _ entity: RecordEntity,
        turnsRound: Bool
    ) throws(RecordError) -> PredicateNode {
        let predicate = try answered(predicate)
        let filter = try CompiledPredicate(predicate, entity: entity, schema: schema)
        return turnsRound ? try turnedRound(filter.root, entity) : filter.root
    }

    private func planner(
        _ query: RecordQuery,
        _ entity: RecordEntity,
        _ root: PredicateNode,
        needsOrder: Bool
    ) throws(RecordError) -> (FetchPlanner<Source>, FetchWindow) {
        let sort = try CompiledSort(query.sort, entity: entity, schema: schema)
        var window = FetchWindow(limit: query.limit, offset: query.offset)
        window.after = try query.after.map { (place) throws(RecordError) in try sort.checked(place)
        }
        window.before = try query.before.map { (place) throws(RecordError) in
            try sort.checked(place)
        }
        let wanted = query.limit.map { $0.addingReportingOverflow(query.offset) }
        let planner = FetchPlanner(
            reader: self,
            entity: entity,
            root: root,
            sort: sort,
            wanted: wanted.map { $0.overflow ? Int.max : $0.partialValue },
            needsOrder: needsOrder
        )
        return (planner, window)
    }
}
