// The target of the text behind `varve rows --where` and `--sort`.
//
// - Any text is a filter that runs, or an error that says where it stopped.
// - A filter finds the same number of rows, counted or listed.

import VarveInspection
import VarveTesting

enum PredicateTarget {
    private static let observer: StoreObserver? = {
        guard let seed = SeedStore.all.first(where: { $0.name == "filtered" }) else { return nil }
        return try? StoreObserver.open(StoreChecks.disk(seed.bytes).location())
    }()

    static func prepare() { precondition(observer != nil, "the store to be asked opens") }

    /// The first line is a filter, the second an order; both are over the entity Item.
    static func run(_ input: [UInt8]) throws {
        guard let observer, input.count <= 4096 else { return }
        let lines = String(decoding: input, as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        var request = RowsRequest(entity: "Item")
        request.filter = lines[0]
        if lines.count > 1 { request.sort = lines[1].split(separator: " ").map(String.init) }
        do throws(InspectionError) {
            let rows = try observer.rows(request)
            let count = try observer.count(request)
            if UInt64(rows.rows.count) != count || rows.matching != count {
                throw InspectionError(.damaged, "\(rows.rows.count) rows, counted \(count)")
            }
        } catch {
            guard error.kind == .badRequest else { throw Violation("\(lines): \(error)") }
        }
    }
}
