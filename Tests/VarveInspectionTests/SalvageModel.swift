// What a sample store holds, in texts that can be compared.

import Foundation
import Testing
import VarveTesting

@testable import VarveInspection

/// The objects of a store by name, each with its values and the objects that it leads to.
struct StoreModel: Equatable {
    var objects: [String: [String]] = [:]
    /// Where to-one references lead, by object and name.
    var references: [String: String] = [:]

    init(_ observer: StoreObserver) throws {
        for entity in ["Author", "Book", "Loan"] {
            let report = try observer.rows(RowsRequest(entity: entity))
            #expect(report.unreadable == 0)
            for row in report.rows {
                var values: [String] = []
                for (column, value) in zip(report.columns, row.values) {
                    if case .reference(let target) = value {
                        references["\(row.object).\(column)"] = target
                    } else if value != .null {
                        values.append("\(column)=\(value.text())")
                    }
                }
                objects[row.object] = values
            }
        }
        let similar = try? observer.object("Book:6").relationships.first { $0.name == "similar" }
        objects["similar"] = similar?.objects ?? []
    }

    /// Rows that are in `self` and not in `other`.
    func missing(in other: StoreModel) -> Set<String> {
        Set(objects.keys).subtracting(other.objects.keys)
    }

    /// Rows of `other` that are not as they are here, or not here at all.
    func wrong(in other: StoreModel) -> Set<String> {
        Set(other.objects.filter { objects[$0.key] != $0.value }.keys)
    }
}

extension Sample {
    /// Recovers the store as it is now into a new one beside it.
    func recovered(
        _ options: SalvageOptions = SalvageOptions(),
        as name: String = "Fixed"
    ) throws -> (report: SalvageReport, store: StoreObserver) {
        let folder = place.folder.path
        for suffix in [".varve", ".varve-blobs", ".varve-lock"] {
            try? FileManager.default.removeItem(atPath: "\(folder)/\(name)\(suffix)")
        }
        let report = try observer().salvage(to: .file(directory: folder, name: name), options)
        return (report, try StoreObserver.open("\(folder)/\(name).varve"))
    }

    /// Flips a bit for the time of `body`.
    func flipped<R>(at offset: UInt64, _ body: () throws -> R) throws -> R {
        try damaged(at: offset) { _ in try body() }
    }
}
