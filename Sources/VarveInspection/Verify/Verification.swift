// The check of a store: which steps, in which order.
//
// Invariants
// - Memory is bounded: sums instead of lists, one page a level, at most 1,000 problems. What grows
//   with the damage, and only with it, has a limit; reached, it ends the check, which is then not
//   complete.
// - No page is reached twice: it belongs to one tree and one level, and its keys lie between the
//   fences of one parent, which do not overlap its neighbours'. A value names its row. So a frame
//   that two parents name is damage, and no list of visited ones is needed to tell.
// - A problem names the frame at fault where there is one; what damage hides is said to be not
//   checked, never called sound.
// - "Sound" is said only when every step of the level ran to its end.

import VarveBase
import VarveEngine
import VarveFormat
import VarveRecords

extension StoreObserver {
    /// Checks the store.
    ///
    /// - Parameters:
    ///   - level: how much is checked.
    ///   - memoryBytesMax: bytes that the list of damaged pages may take. The places of all pages
    ///     of one tree, some 16 bytes each, come on top.
    ///   - progress: called now and then with the bytes checked and the problems found so far;
    ///     false ends the check, which is then not complete.
    /// - Throws: `ioFailed`. Damage is an answer, not an error.
    /// - Complexity: O(bytes of the newest commit); with `full` O(file and blobs).
    public func verify(
        level: VerifyLevel = .normal,
        memoryBytesMax: Int = VerifyReport.memoryBytesMax,
        progress: (UInt64, Int) -> Bool = { _, _ in true }
    ) throws(InspectionError) -> VerifyReport {
        var report = VerifyReport(level: level)
        report.commit = shownCommit
        // 1. Both copies of the file header.
        checkHeaders(&report)
        // 2. The end of the log, as recovery reads it.
        checkTail(&report)
        // 3. Every page of the newest commit, against its parent.
        let pages = try withoutActuallyEscaping(progress) { progress throws(InspectionError) in
            try checkPages(&report, memoryBytesMax, progress)
        }
        // 4. What the pages say, as far as they can be read.
        if level != .quick, report.isComplete, let snapshot = state?.snapshot {
            try withoutActuallyEscaping(progress) { progress throws(InspectionError) in
                var checks = ContentChecks(
                    observer: self,
                    snapshot: snapshot,
                    damagedTrees: pages,
                    level: level,
                    progress: progress,
                    report: report
                )
                do throws(InspectionError) {
                    try checks.run()
                } catch {
                    guard error.kind == .cancelled else { throw error }
                }
                report = checks.report
            }
        }
        // 5. Every frame of the file.
        if level == .full, report.isComplete {
            try withoutActuallyEscaping(progress) { progress throws(InspectionError) in
                try checkFrames(&report, progress)
            }
        }
        return report
    }

    private func checkHeaders(_ report: inout VerifyReport) {
        report.bytes += UInt64(2 * FileHeader.length)
        for copy in log.damagedHeaders {
            report.add(
                VerifyProblem(
                    kind: .damaged,
                    subject: "copy of the file header",
                    place: copy.rawValue,
                    bytes: UInt64(FileHeader.length),
                    isNeeded: true,
                    message: "its hash is wrong; the other copy is sound, so the store opens"
                )
            )
        }
    }

    // MARK: The tail

    private func checkTail(_ report: inout VerifyReport) {
        if let failure = log.failure {
            report.add(problem(failure, report.commit))
        }
        if log.failure == nil, state == nil, let stateFailure {
            // Sound frames whose contents cannot be read: a schema that is none, row changes that
            // do not apply.
            report.add(
                VerifyProblem(
                    kind: .damaged,
                    subject: "newest commit",
                    place: stateFailure.place ?? log.tail?.newest.offset.rawValue,
                    isNeeded: true,
                    message: stateFailure.message
                )
            )
        }
        guard let tail = log.tail else { return }
        report.bytes += tail.replayed.reduce(tail.base.header.frameLength) {
            $0 + $1.header.frameLength
        }
        if log.failure == nil {
            let behind = log.dataEnd - min(log.dataEnd, tail.newest.end.rawValue)
            if behind > 0 {
                report.notes.append(
                    "\(behind) bytes at \(Spelling.place(tail.newest.end.rawValue)) behind the "
                        + "newest commit are a torn write; they count for nothing"
                )
            }
            if !tail.isClosed && tail.newest.end > tail.durableEnd {
                report.notes.append(
                    "nothing behind the newest commit proves yet that it was synced: the store is "
                        + "open, or was not closed"
                )
            }
        }
        if log.failure == nil, let stateFailure, let shown = report.commit {
            report.notChecked.append(
                "commits behind \(Spelling.commit(shown)): their row changes need what is damaged "
                    + "(\(stateFailure.message))"
            )
        }
    }

    /// What keeps the newest commit from being read.
    private func problem(_ failure: EngineError, _ shown: UInt64?) -> VerifyProblem {
        var problem = VerifyProblem(
            kind: .damaged,
            subject: "commit frame",
            place: failure.place?.rawValue,
            isNeeded: true,
            message: failure.message
        )
        if let place = failure.place, let frame = try? log.frame(at: place) {
            problem.subject = frame.header.kind.label
            problem.bytes = frame.header.frameLength
            if !frame.isPayloadSound {
                problem.details.append("its header is sound, its payload's hash is wrong")
            }
        } else if failure.place != nil {
            problem.details.append("its header does not fit its place")
        }
        problem.details.append(
            shown.map {
                "the newest commit that stands on sound frames is \(Spelling.commit($0)); "
                    + "what follows is about that one"
            } ?? "no commit stands on sound frames"
        )
        return problem
    }

    // MARK: Pages

    private static let pageBytes = 200

    /// Walks every stored tree. Returns the trees with damage and the damaged pages.
    private func checkPages(
        _ report: inout VerifyReport,
        _ memoryBytesMax: Int,
        _ progress: (UInt64, Int) -> Bool
    ) throws(InspectionError) -> [TreeID: [AuditedPage]] {
        var damaged: [TreeID: [AuditedPage]] = [:]
        var damagedBytes = 0
        for root in log.tail?.roots ?? [] where report.isComplete {
            _ = try engine { () throws(EngineError) in
                try log.audit(root) { page, error in
                    report.bytes += page.address.frameLength
                    report.pages += 1
                    if let error {
                        if !page.isSymbols, !page.isBasis {
                            damaged[page.tree, default: []].append(page)
                        }
                        damagedBytes += Self.pageBytes + page.low.count + (page.high?.count ?? 0)
                        if damagedBytes > memoryBytesMax {
                            report.isComplete = false
                            report.notes.append(
                                "the list of damaged pages takes more memory than allowed"
                            )
                        }
                        report.add(problem(page, error))
                    }
                    if !progress(report.bytes, report.problems.count) { report.isComplete = false }
                    return report.isComplete
                }
            }
        }
        return damaged
    }

    private func problem(_ page: AuditedPage, _ error: EngineError) -> VerifyProblem {
        let place = page.address.offset
        var problem = VerifyProblem(
            kind: .damaged,
            subject: page.kindOfTree + names.name(page.tree),
            place: place.rawValue,
            bytes: page.address.frameLength,
            isNeeded: true,
            message: error.message,
            rows: page.rows
        )
        if let frame = try? log.frame(at: place), let front = frame.page {
            problem.details.append(
                "it says it was written by \(Spelling.commit(front.commit.rawValue))"
            )
        }
        let isWhole = page.low.isEmpty && page.high == nil
        if isWhole {
            problem.details.append("it is the root: nothing of the tree can be reached without it")
        } else {
            let low = page.low.isEmpty ? "the beginning" : key(page.low, of: page.tree)
            let high = page.high.map { key($0, of: page.tree) } ?? "the end"
            problem.details.append("its keys lie from \(low) up to, not including, \(high)")
        }
        if let entity = names.indexes[page.tree] {
            problem.details.append(
                "rows of \(entity.name) are not touched: an index follows from its rows"
            )
        }
        return problem
    }

    // MARK: Every frame

    private func checkFrames(
        _ report: inout VerifyReport,
        _ progress: (UInt64, Int) -> Bool
    ) throws(InspectionError) {
        var known = Set(report.problems.compactMap(\.place))
        var checked = report.bytes
        // What the newest commit needs was checked by the steps before.
        try frames(needed: NeededFrames()) { entry in
            report.frames += 1
            checked += entry.bytes
            switch entry.classification {
            case .damaged where known.insert(entry.place).inserted:
                report.add(
                    VerifyProblem(
                        kind: .damaged,
                        subject: entry.what,
                        place: entry.place,
                        bytes: entry.bytes,
                        isNeeded: false,
                        message: entry.kind == "GAP"
                            ? "no frame begins here" : "the payload's hash is wrong",
                        details: ["the newest commit does not need it"]
                    )
                )
            case .void where entry.kind != "ZEROS":
                report.notes.append(
                    "\(entry.bytes) bytes at \(Spelling.place(entry.place)) are a torn write that "
                        + "counts for nothing (\(entry.what))"
                )
            default: break
            }
            if !progress(checked, report.problems.count) { report.isComplete = false }
            return report.isComplete
        }
        report.bytes = log.fileSize
        try checkChain(&report)
    }

    /// From the newest commit to the oldest: numbers go up by one, `durableEnd` never goes back,
    /// and `checkpoint` names the TREE or CKPT that comes next.
    private func checkChain(_ report: inout VerifyReport) throws(InspectionError) {
        guard var frame = log.tail?.newest else { return }
        while true {
            let newer = frame
            let before = try engine { () throws(EngineError) in try log.commit(before: newer) }
            if let fault = Self.fault(of: newer, behind: before) {
                report.add(
                    VerifyProblem(
                        kind: .inconsistent,
                        subject: newer.header.kind.label,
                        place: newer.offset.rawValue,
                        bytes: newer.header.frameLength,
                        isNeeded: false,
                        message: fault
                    )
                )
            }
            guard let before else { return }
            frame = before
        }
    }

    /// What a commit says that the one before it contradicts.
    static func fault(of newer: CommitFrame, behind before: CommitFrame?) -> String? {
        let named = newer.record.checkpoint
        guard let before else {
            // A commit that cannot be read was told with the frames.
            return named.rawValue == 0 || newer.header.previousCommit.rawValue != 0
                ? nil : "it names a checkpoint at \(named.frameName), and nothing stands before it"
        }
        let (old, new) = (before.record.number.rawValue, newer.record.number.rawValue)
        // A DELTA that settles has no flag; what it wrote again lies in the void before it.
        let settles =
            newer.header.flags.contains(.settle)
            || newer.header.kind == .delta && newer.record.bodyStart > before.end
        let step = new - min(old, new)
        let follows =
            newer.header.flags.contains(.carriesChanges)
            ? step == 1 || settles && step > 1 : step == 0
        if !follows || new < old { return "commit \(new) follows \(old)" }
        if before.record.durableEnd > newer.record.durableEnd {
            return "it says that less was synced than the commit before it"
        }
        let isBase = before.header.kind == .tree || before.header.kind == .checkpoint
        let base = isBase ? before.offset : before.record.checkpoint
        if named != base {
            return "it names a checkpoint at \(named.frameName); the newest before it stands at "
                + base.frameName
        }
        return nil
    }
}
