// The referee of tests: every store that a test opens is verified in full when the test ends.
//
// Invariants
// - A store in memory, or on a simulated disk, is kept until the test ends; one in a temporary
//   folder is verified when the folder goes, or at the end.
// - Of a test that opens very many stores the first and the last are looked at, so that memory and
//   time stay bounded.
// - A store that is not there any more, or that the test made unreadable, is passed over: whether
//   it may be is the test's own matter. Stores that are damaged on purpose say so: `DamagesStores`.

import Foundation
import Synchronization
package import Testing
import VarveBase
package import VarveEngine
import VarveIO
import VarveInspection

#if VARVE_THREAD_SANITIZER
/// In the whole module: the thread sanitizer sees nothing of the other one.
typealias Mutex = TracedMutex
#endif

/// What the stores of a target hold.
package enum RefereeRules: Sendable {
    /// Rows of a schema: everything is checked.
    case rows
    /// Rows of a schema that only the tests know: the log, the pages and every frame are checked.
    case log
}

/// Gathers the stores of one test.
package final class StoreReferee: OpeningWitness {
    private struct Store {
        let directory: any StoreDirectory
        let name: String
        /// Nil for folders that are not of the system.
        let path: String?
    }

    private struct State {
        var first: [Store] = []
        var last: [Store] = []
        var faults: [String] = []
    }

    private static let firstMax = 4
    private static let lastMax = 8
    private static let faultsMax = 20

    private let rules: RefereeRules
    private let state = Mutex(State())

    package init(_ rules: RefereeRules) {
        self.rules = rules
        Invariants.checkFromNowOn()
    }

    package func opened(_ location: StoreLocation) {
        guard case .directory(let directory, let name) = location else { return }
        let path = (directory as? PosixDirectory).map { Self.plain($0.name) }
        let store = Store(directory: directory, name: name, path: path)
        state.withLock { state in
            let isKnown = (state.first + state.last).contains {
                $0.name == name && ($0.directory === directory || path != nil && $0.path == path)
            }
            if isKnown { return }
            if state.first.count < Self.firstMax {
                state.first.append(store)
            } else {
                state.last.append(store)
                if state.last.count > Self.lastMax { state.last.removeFirst() }
            }
        }
    }

    package func folderGoes(_ path: String) {
        let path = Self.plain(path)
        let stores = state.withLock { state in
            let stores = (state.first + state.last).filter { $0.path == path }
            state.first.removeAll { $0.path == path }
            state.last.removeAll { $0.path == path }
            return stores
        }
        for store in stores { verify(store) }
    }

    /// What is wrong with the stores of the test.
    package func end() -> [String] {
        let stores = state.withLock { state in
            let stores = state.first + state.last
            state.first = []
            state.last = []
            return stores
        }
        for store in stores { verify(store) }
        return state.withLock { $0.faults }
    }

    private static func plain(_ path: String) -> String {
        path.hasSuffix("/") && path != "/" ? String(path.dropLast()) : path
    }

    private func verify(_ store: Store) {
        do {
            let location = StoreLocation.directory(store.directory, name: store.name)
            let observer = try StoreObserver.open(location)
            let report = try observer.verify(level: .full)
            let problems = report.problems.filter { !isExpected($0, observer) }
            if !problems.isEmpty { keep(store) }
            for problem in problems {
                add(
                    "\(store.name): \(problem.subject): \(problem.message) \(problem.objects) "
                        + "\(problem.details)"
                )
            }
        } catch {
            switch error.kind {
            case .missing, .permission, .ioFailed: break
            default: add("\(store.name): \(error)")
            }
        }
    }

    /// Copies an unsound store to the folder that `VARVE_KEEP_UNSOUND` names, to look at it: what
    /// chance made is gone with the test otherwise.
    private func keep(_ store: Store) {
        guard let folder = ProcessInfo.processInfo.environment["VARVE_KEEP_UNSOUND"] else { return }
        do {
            let name = try store.directory.list().first { $0.hasSuffix(".varve") } ?? store.name
            let file = try store.directory.openFile(name, mode: .read)
            defer { file.close() }
            let bytes = try file.read(at: FileOffset(0), count: Int(file.size()))
            let place = URL(fileURLWithPath: folder).appendingPathComponent("\(UUID()).varve")
            try Data(bytes).write(to: place)
        } catch {
            add("\(store.name) could not be kept: \(error)")
        }
    }

    /// A schema that only the tests know cannot be read: that alone is no fault.
    private func isExpected(_ problem: VerifyProblem, _ observer: StoreObserver) -> Bool {
        rules == .log && problem.subject == "newest commit" && observer.shownCommit == nil
    }

    private func add(_ fault: String) {
        state.withLock { state in
            if state.faults.count < Self.faultsMax { state.faults.append(fault) }
        }
    }
}

/// Verifies every store that a test opened, when it ends.
package struct VerifiesStores: SuiteTrait, TestTrait, TestScoping {
    private let rules: RefereeRules
    package var isRecursive: Bool { true }

    package init(_ rules: RefereeRules) { self.rules = rules }

    @concurrent package func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable @concurrent () async throws -> Void
    ) async throws {
        if test.traits.contains(where: { $0 is DamagesStores }) { return try await function() }
        let referee = StoreReferee(rules)
        defer {
            for fault in referee.end() {
                Issue.record(
                    "a store is not sound at the end: \(fault)",
                    sourceLocation: test.sourceLocation
                )
            }
        }
        try await OpeningWitnesses.$current.withValue(referee) { try await function() }
    }
}

/// Says that the stores of a test, or of all tests of a suite, are not sound at the end, and why.
package struct DamagesStores: SuiteTrait, TestTrait {
    /// What the test does to them.
    package let comments: [Comment]
    package var isRecursive: Bool { true }

    package init(_ why: Comment) { comments = [why] }
}
