// The rows of damaged pages: from older pages of the same keys, with every change since.
//
// Invariants
// - The log is walked backwards once for all pages. A page of an older tree is used for what it
//   covers of a hole, after every newer commit has been heard; then the hole is smaller.
// - Where the chain of commits ends or breaks, what is left of the holes is lost. Rows that later
//   commits wrote in full are kept even then.

import VarveBase
import VarveEngine
import VarveFormat
import VarveRecords

extension Salvage {
    func rebuild() throws {
        guard damage.hasHoles else { return }
        let chain = SalvageChain(log: log)
        var commit = finder.base
        var isFirst = true
        walk: while damage.hasHoles {
            let content: CommitContent
            do throws(EngineError) {
                content = try log.content(of: commit)
            } catch {
                guard error.code == .damaged || error.code == .limitExceeded else { throw error }
                report.notes.append("older states cannot be read: \(error.message)")
                break
            }
            if case .trees(let roots, _) = content, !isFirst {
                for entity in schema.all where !(damage.holes[entity.id]?.isEmpty ?? true) {
                    try cover(entity, roots.first { $0.tree == entity.tree }, commit)
                }
            }
            isFirst = false
            let damage = damage
            stories.add(
                content,
                of: commit.record.number,
                bytesMax: options.memoryBytesMax
            ) { entity, object in
                damage.isOpen(entity, object)
            }
            guard stories.bytes <= options.memoryBytesMax else {
                report.isComplete = false
                report.notes.append(
                    "row changes older than \(Spelling.commit(commit.record.number.rawValue)) take "
                        + "more memory than allowed: what only they tell counts as lost"
                )
                break
            }
            try goOn(commit.header.frameLength)
            switch try chain.step(from: commit) {
            case .commit(let before), .bridged(let before, _): commit = before
            case .beginning, .broken: break walk
            }
        }
        for entity in schema.all {
            for hole in damage.holes[entity.id] ?? [] { damage.pages[hole.page].isCovered = false }
            for object in stories.objects(of: entity.id) {
                guard let story = stories.take(story: object, of: entity.id) else { continue }
                damage.told[entity.id, default: []].insert(object)
                try tell(entity, object, story, on: nil, isRebuilt: true)
            }
        }
    }

    /// Uses an older tree for what it has of an entity's holes.
    private func cover(
        _ entity: RecordEntity,
        _ root: StoredRoot?,
        _ commit: CommitFrame
    ) throws {
        let holes = damage.holes[entity.id] ?? []
        var left: [SalvageHole] = []
        for hole in holes {
            var isSame = false
            if let root {
                var open: [SalvageHole] = []
                // First whether anything is sound there: the page may be the damaged one.
                try log.forEachEntry(
                    of: root,
                    from: hole.low,
                    to: hole.high,
                    entry: { key, value in
                        try keep(entity, key, value, at: commit.record.number, isRebuilt: true)
                    },
                    damaged: { page, _ in open.append(hole.part(page)) }
                )
                isSame =
                    open.count == 1
                    && ByteReader.compare(open[0].low, hole.low) == 0
                    && open[0].high == hole.high
                left += open
            }
            if !isSame { damage.pages[hole.page].source = commit.record.number }
            // What commits made since and an older tree does not have.
            for object in stories.objects(of: entity.id)
            where hole.contains(object) && !left.contains(where: { $0.contains(object) }) {
                guard let story = stories.take(story: object, of: entity.id) else { continue }
                try tell(entity, object, story, on: nil, isRebuilt: true)
            }
        }
        damage.holes[entity.id] = left
    }
}
