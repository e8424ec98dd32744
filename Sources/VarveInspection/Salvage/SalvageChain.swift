// The commits of a damaged log as far as they hang together.
//
// Invariants
// - A step back is believed when the commit names the one before by its place and its hash. Where
//   that frame is damaged, and only there, the newest sound commit below it is taken if no number
//   is missing between the two: what was damaged is then a CKPT, which changed nothing.
// - Every step goes down the file, so a walk ends. One frame is in memory at a time.

import VarveBase
import VarveEngine
import VarveFormat

struct SalvageChain {
    let log: LogObserver

    enum Step {
        case commit(CommitFrame)
        /// The frame at `over` is damaged and was no commit of its own.
        case bridged(CommitFrame, over: FileOffset)
        case beginning
        /// The commit that should be at this place is damaged.
        case broken(FileOffset)
    }

    /// The commit frame before.
    func step(from commit: CommitFrame) throws(InspectionError) -> Step {
        let gap = commit.header.previousCommit
        if gap.rawValue == 0 { return .beginning }
        let log = log
        let before = try engine { () throws(EngineError) in try log.commit(before: commit) }
        if let before { return .commit(before) }
        let isThere = try engine { () throws(EngineError) in try log.commit(at: gap) != nil }
        if isThere { return .broken(gap) }
        var older = try engine { () throws(EngineError) in try log.newestCommit(below: gap) }
        while let close = older, close.header.kind == .close {
            older = try engine { () throws(EngineError) in
                try log.newestCommit(below: close.offset)
            }
        }
        let steps: UInt64 = commit.header.flags.contains(.carriesChanges) ? 1 : 0
        guard let found = older, found.end <= gap,
            found.record.number.rawValue + steps == commit.record.number.rawValue,
            try engine({ () throws(EngineError) in try log.hasSoundBody(found) })
        else { return .broken(gap) }
        return .bridged(found, over: gap)
    }

    /// What a state stands on.
    struct Ground {
        /// The TREE or CKPT whose roots it starts from.
        var base: CommitFrame
        /// Commits with row changes since.
        var deltas = 0
        /// Damaged checkpoints that were passed over.
        var bridges: [FileOffset] = []
    }

    enum Footing {
        case ground(Ground)
        /// What is damaged; everything after it stands on it.
        case broken(FileOffset)
    }

    /// What the state of a commit stands on.
    ///
    /// - Parameter checksBodies: whether commits that no sync proves must have a sound body.
    func footing(
        of target: CommitFrame,
        checksBodies: Bool
    ) throws(InspectionError) -> Footing {
        let log = log
        var ground = Ground(base: target)
        var commit = target
        while true {
            if checksBodies, commit.end > target.record.durableEnd,
                commit.header.previousCommit.rawValue != 0
            {
                let frame = commit
                let isSound = try engine { () throws(EngineError) in try log.hasSoundBody(frame) }
                if !isSound { return .broken(commit.offset) }
            }
            switch commit.header.kind {
            case .tree, .checkpoint:
                ground.base = commit
                return .ground(ground)
            case .delta: ground.deltas += 1
            default: break
            }
            switch try step(from: commit) {
            case .commit(let before): commit = before
            case .bridged(let before, let place):
                if ground.bridges.count < 100 { ground.bridges.append(place) }
                commit = before
            case .beginning: return .broken(commit.offset)
            case .broken(let place): return .broken(place)
            }
        }
    }

    // MARK: Which state

    /// The newest commit whose state can be built, from sound frames alone.
    func newest() throws(InspectionError) -> (target: CommitFrame, ground: Ground)? {
        let log = log
        if log.failure == nil, let tail = log.tail {
            if case .ground(let ground) = try footing(of: tail.newest, checksBodies: false) {
                return (tail.newest, ground)
            }
        }
        var end = FileOffset(log.dataEnd)
        while true {
            let below = end
            let found = try engine { () throws(EngineError) in
                try log.newestCommit(below: below)
            }
            guard let found else { return nil }
            switch try footing(of: found, checksBodies: true) {
            case .ground(let ground): return (found, ground)
            case .broken(let place): end = min(found.offset, place)
            }
        }
    }

    /// The commit of a number, and what its state stands on; nil when it is not in the file.
    func commit(_ number: UInt64) throws(InspectionError) -> (target: CommitFrame, ground: Ground)?
    {
        let log = log
        // As the chain has it, which passes torn writes over.
        var next = try newest()?.target
        while let frame = next, frame.record.number.rawValue >= number {
            if isState(frame, number) {
                guard case .ground(let ground) = try footing(of: frame, checksBodies: false)
                else { break }
                return (frame, ground)
            }
            switch try step(from: frame) {
            case .commit(let before), .bridged(let before, _): next = before
            case .beginning, .broken: next = nil
            }
        }
        // After or before damage.
        var end = FileOffset(log.dataEnd)
        while true {
            let below = end
            let found = try engine { () throws(EngineError) in
                try log.newestCommit(below: below)
            }
            guard let found else { return nil }
            end = found.offset
            if isState(found, number),
                case .ground(let ground) = try footing(of: found, checksBodies: true)
            {
                return (found, ground)
            }
        }
    }

    /// Whether a frame has the state of exactly this commit.
    private func isState(_ frame: CommitFrame, _ number: UInt64) -> Bool {
        frame.record.number.rawValue == number && frame.header.kind != .close
    }
}
