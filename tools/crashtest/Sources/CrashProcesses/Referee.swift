// What is known of a store from outside: what its writers acknowledged, and whether it is there.
//
// Invariants
// - Knows nothing from the store: accounts follow from the seed and from the lines heard.
// - A step counts as acknowledged when its line was heard, however its process ended.

import Foundation
import VarveInspection
import VarveTesting

/// What is known of one writer.
struct Record {
    /// Steps from here on are in question: this one is certain.
    var sure: UInt64 = 0
    /// The newest step that a save returned for, or that an opening has found.
    var newest: UInt64 = 0
    /// Whether the step behind it may be there: a process has begun it, or its outcome is unknown.
    var mayGoOn = false
    /// The accounts of all these.
    var accounts: [UInt64: Account] = [0: Account()]

    var last: UInt64 { newest + (mayGoOn ? 1 : 0) }
}

/// Judges one store.
final class Referee {
    let seed: UInt64
    let place: Place
    /// Whether a `.relaxed` save counts only with the next full one: when the machine dies.
    let losesRelaxed: Bool
    private(set) var records: [UInt64: Record] = [:]
    private(set) var acknowledged = 0
    /// What errors were met, by where and code.
    private(set) var errors: [String: Int] = [:]
    /// The newest lines heard, for who looks for the reason.
    private(set) var story: [String] = []
    /// Whether errors are injected: else every one is a violation.
    var allowsErrors = false

    init(_ seed: UInt64, _ place: Place, losesRelaxed: Bool = false) {
        self.seed = seed
        self.place = place
        self.losesRelaxed = losesRelaxed
    }

    /// What another one knows, for a copy of its store.
    init(copying other: Referee, _ place: Place) {
        seed = other.seed
        losesRelaxed = other.losesRelaxed
        records = other.records
        self.place = place
    }

    func note(_ text: String) {
        story.append(text)
        if story.count > 60 { story.removeFirst(20) }
    }

    private func account(_ writer: UInt64, _ step: UInt64) -> Account? {
        guard let record = records[writer] else { return step == 0 ? Account() : nil }
        if let known = record.accounts[step] { return known }
        guard step == record.newest + 1, let base = record.accounts[record.newest] else {
            return nil
        }
        return Plan(seed, writer, behind: base).account
    }

    // MARK: Hearing

    /// A line of a writer's process.
    func hear(_ line: String, from writer: UInt64) throws {
        note("writer \(writer): \(line)")
        let words = line.split(separator: " ", maxSplits: 2).map(String.init)
        let number = words.count > 1 ? UInt64(words[1]) : nil
        switch (words.first, number) {
        case ("o", let step?): try found(step, writer)
        case ("a", let step?): try saved(step, writer, isSure: true)
        case ("r", let step?): try saved(step, writer, isSure: !losesRelaxed)
        case ("b", let step?):
            if step == (records[writer]?.newest ?? 0) + 1 { records[writer]?.mayGoOn = true }
        case ("e", let step?):
            guard step == (records[writer]?.newest ?? 0) + 1 else {
                throw Violation("writer \(writer): \(line): another step was to come")
            }
            let code = words.count > 2 ? String(words[2].prefix { $0 != " " }) : ""
            records[writer]?.mayGoOn = code == "outcomeUnknown"
            try judge(code, "save", line)
        case ("f", _):
            let place = words.count > 2 ? String(words[2].prefix { $0 != ":" }) : ""
            try judge(words.count > 1 ? words[1] : "", place, line)
        case ("z", _):
            let newest = records[writer]?.newest ?? 0
            records[writer]?.sure = newest
            records[writer]?.mayGoOn = false
            forget(writer)
        case ("x", _): throw Violation("writer \(writer): \(line.dropFirst(2))")
        default: break
        }
    }

    /// Only errors that say what is the case.
    private func judge(_ code: String, _ place: String, _ line: String) throws {
        errors["\(place): \(code)", default: 0] += 1
        // Another process compacts, or has compacted meanwhile.
        if place == "compact", code == "busy" { return }
        let fits = [
            "noSpace", "ioFailed", "outcomeUnknown", "poisoned", "permission", "closed", "missing",
        ]
        if !allowsErrors { throw Violation("an error where nothing goes wrong: \(line)") }
        if !fits.contains(code) { throw Violation("an error that says something else: \(line)") }
    }

    /// An opening has shown a step: from now on it is the truth.
    private func found(_ step: UInt64, _ writer: UInt64) throws {
        let record = records[writer] ?? Record()
        if step < record.sure {
            throw Violation(
                "writer \(writer): step \(record.sure) was acknowledged, found is \(step)"
            )
        }
        if step > record.last {
            throw Violation(
                "writer \(writer): step \(record.last) was the last one that may be there, found "
                    + "is \(step)"
            )
        }
        guard let account = account(writer, step) else {
            throw Violation("writer \(writer): step \(step) was never made")
        }
        records[writer] = Record(
            sure: step,
            newest: step,
            mayGoOn: true,
            accounts: [step: account]
        )
    }

    private func saved(_ step: UInt64, _ writer: UInt64, isSure: Bool) throws {
        guard step == (records[writer]?.newest ?? 0) + 1, let account = account(writer, step) else {
            throw Violation("writer \(writer): saved step \(step), another was to come")
        }
        acknowledged += 1
        records[writer, default: Record()].newest = step
        records[writer]?.accounts[step] = account
        records[writer]?.mayGoOn = true
        if isSure {
            records[writer]?.sure = step
            forget(writer)
        }
    }

    private func forget(_ writer: UInt64) {
        guard var record = records[writer] else { return }
        record.accounts = record.accounts.filter { $0.key >= record.sure }
        records[writer] = record
    }

    // MARK: Looking

    /// Opens the store, as whoever comes next does, and compares.
    ///
    /// - Returns: the bytes of the store file behind the close.
    @discardableResult
    func look(verifies: Bool = true, opensTwice: Bool = false) throws -> Int {
        var shown: [UInt64: Account]?
        for _ in 0..<(opensTwice ? 2 : 1) {
            let store: RecordStore
            do { store = try Library.open(place, isInline: true) } catch {
                throw Violation("the store does not open: \(error)")
            }
            let contents: Contents
            do {
                contents = try Contents(try store.snapshot(), try Columns(store))
                try store.close()
            } catch {
                throw Violation("the store cannot be read: \(error)")
            }
            try compare(contents.accounts)
            if let shown, shown != contents.accounts {
                throw Violation("the next opening shows something else")
            }
            shown = contents.accounts
        }
        if verifies { try verify() }
        try checkNames()
        var status = stat()
        return stat(place.path, &status) == 0 ? Int(status.st_size) : 0
    }

    private func compare(_ shown: [UInt64: Account]) throws {
        for writer in Set(shown.keys).union(records.keys).sorted() {
            let account = shown[writer] ?? Account()
            try found(account.step, writer)
            records[writer]?.mayGoOn = false
            guard records[writer]?.accounts[account.step] == account else {
                throw Violation("writer \(writer): step \(account.step) is not as it was saved")
            }
        }
    }

    private func verify() throws {
        let report = try StoreObserver.open(place.location).verify(level: .full)
        if let problem = report.problems.first {
            throw Violation("verify says of it: \(problem.subject): \(problem.message)")
        }
    }

    /// A store that is closed has its file, its lock file and its blobs, and nothing else.
    private func checkNames() throws {
        let known: Set = [
            "\(place.name).varve", "\(place.name).varve-lock", "\(place.name).varve-blobs",
        ]
        for name in try FileManager.default.contentsOfDirectory(atPath: place.folder)
        where !known.contains(name) {
            throw Violation("\(name) was left in the folder")
        }
        let blobs = (try? FileManager.default.contentsOfDirectory(atPath: place.blobs)) ?? []
        for name in blobs where name.count != 64 {
            throw Violation("\(name) was left among the blobs")
        }
    }

    /// Behind a compaction nothing is left but what the accounts need.
    func clean() throws {
        do {
            let store = try Library.open(place, isInline: true)
            _ = try store.compact()
            try store.close()
            try Library.open(place, isInline: true).close()
        } catch {
            throw Violation("the store cannot be compacted: \(error)")
        }
        var files: Set<Picture> = []
        var items = 0
        for record in records.values {
            guard let account = record.accounts[record.newest] else { continue }
            items += account.items.count
            for item in account.items.values {
                if let picture = item.picture, picture.size > Picture.externalLimit {
                    files.insert(picture)
                }
            }
        }
        let left = (try? FileManager.default.contentsOfDirectory(atPath: place.blobs))?.count ?? 0
        if left != files.count {
            throw Violation("\(left) blob files are left, the store names \(files.count)")
        }
        let bytes = try look()
        if bytes > 64 << 10 + items * 2048 {
            throw Violation("\(bytes) bytes are left for \(items) items")
        }
    }
}
