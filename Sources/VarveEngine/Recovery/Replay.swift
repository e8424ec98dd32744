// From commit frames to a state: roots, then row changes.
//
// Invariants
// - The same frames give the same state in every process: nothing but their bytes and the stored
//   schema goes in.
// - Nobody reads the state before the replay is done, so one stamp serves it all; what a commit
//   that cannot be applied leaves behind is thrown away whole.

internal import Synchronization
internal import VarveBase
internal import VarveFormat

struct Replay {
    var generation: Generation
    let delegate: any EngineDelegate
    let options: EngineOptions
    let counters: EngineCounters
    let stamp: UInt64

    /// The state of the newest accepted commit.
    func state(of recovered: RecoveredLog) throws(EngineError) -> StoreState {
        // As an observer reads it: an unproven TREE brings roots of its own, and what lies before
        // it is not looked at.
        var state = try state(of: recovered.effectiveBase)
        for commit in recovered.effectiveReplay { state = try apply(commit, to: state) }
        return state
    }

    /// The state of the newest commit that can be applied, and why a later one cannot.
    ///
    /// A commit that fails half way has changed nodes of the state before it, which carry the same
    /// stamp: that state is made again, from the start.
    func state(
        upToDamageIn recovered: RecoveredLog
    ) throws(EngineError) -> (state: StoreState, failure: EngineError?) {
        var commits = recovered.effectiveReplay[...]
        var failure: EngineError?
        while true {
            var state = try state(of: recovered.effectiveBase)
            var applied = commits.startIndex
            do throws(EngineError) {
                for commit in commits {
                    state = try apply(commit, to: state)
                    applied += 1
                }
                return (state, failure)
            } catch {
                guard error.code == .damaged else { throw error }
                failure = failure ?? error
                commits = commits[..<applied]
            }
        }
    }

    /// The state of the newest commit of a chain, and its frame.
    func state(
        of chain: CommitChain
    ) throws(EngineError) -> (state: StoreState, newest: ScannedCommit) {
        guard let (base, later) = try chain.stretch({ _ in true }) else {
            throw .damaged("the log has no checkpoint", place: chain.newest)
        }
        var state = try state(of: base)
        for place in try chain.places(from: base, to: later, { _ in true })
        where place > base.offset {
            state = try apply(chain.commit(at: place), to: state)
        }
        let newest = try chain.commit(at: chain.newest)
        state.liveBytes = newest.record.liveBytes
        return (state, newest)
    }

    /// The state that a TREE or CKPT frame describes.
    func state(of commit: ScannedCommit) throws(EngineError) -> StoreState {
        let roots = try Self.roots(of: commit)
        var state = StoreState(generation: generation)
        state.number = commit.record.number
        state.schemaVersion = commit.record.schemaVersion
        for root in roots {
            state.trees[root.tree] = TreeRoot(
                node: nil,
                address: root.address,
                level: Int(root.level),
                rows: root.rows
            )
        }
        state.becomeBase(at: commit.offset, liveBytes: commit.record.liveBytes)
        state.schema = try state.tree(.catalog).value(EngineKeys.schema) ?? []
        if !state.schema.isEmpty {
            do throws(FormatError) {
                state.deriver = try delegate.makeDeriver(schema: state.schema)
            } catch {
                throw .damaged(error, place: commit.offset)
            }
        }
        return state
    }

    /// The roots of a TREE or CKPT. What a TREE says of its objects after them may be as long as a
    /// load of millions, and no state needs it.
    static func roots(of commit: ScannedCommit) throws(EngineError) -> [StoredRoot] {
        try rootsAndRest(of: commit).roots
    }

    private static func rootsAndRest(
        of commit: ScannedCommit
    ) throws(EngineError) -> (roots: [StoredRoot], rest: ByteReader) {
        do throws(FormatError) {
            var reader = try bodyReader(commit)
            return (try TreeRoots.decode(&reader, offset: commit.offset), reader)
        } catch {
            throw .damaged(error, place: commit.offset)
        }
    }

    /// Throws `damaged` when a TREE's list of changed objects cannot be read.
    static func checkChanges(of commit: ScannedCommit) throws(EngineError) {
        _ = try treeChanges(of: commit)
    }

    /// The changed objects of a TREE.
    private static func treeChanges(
        of commit: ScannedCommit
    ) throws(EngineError) -> [ChangedObjects] {
        var (_, reader) = try rootsAndRest(of: commit)
        do throws(FormatError) {
            return try ChangedObjects.decode(
                &reader,
                limit: UInt64(commit.record.operationCount)
            )
        } catch {
            throw .damaged(error, place: commit.offset)
        }
    }

    /// The state after a DELTA commit.
    ///
    /// - Parameter moved: where its values lie now, when that is not where it says.
    func apply(
        _ commit: ScannedCommit,
        to state: StoreState,
        placesMovedTo moved: [NewPlace]? = nil
    ) throws(EngineError) -> StoreState {
        let editor = StateEditor(
            base: state,
            number: commit.record.number,
            stamp: stamp,
            generation,
            options
        )
        do throws(EngineError) {
            try apply(commit, editor, moved)
        } catch {
            // A commit that was sound when it was written applies; anything else is damage.
            throw error.code == .invalid || error.code == .objectMissing
                ? .damaged(error.message, place: commit.offset) : error
        }
        var applied = try editor.finished()
        applied.frame = commit.offset
        return applied
    }

    /// The state after several DELTA commits, one after the other. Index entries go into their
    /// leaves once for all of them.
    func apply(
        _ commits: ArraySlice<ScannedCommit>,
        to state: StoreState
    ) throws(EngineError) -> StoreState {
        guard let last = commits.last else { return state }
        let editor = StateEditor(
            base: state,
            number: last.record.number,
            stamp: stamp,
            generation,
            options
        )
        for commit in commits {
            editor.begin(commit.record.number)
            do throws(EngineError) {
                try apply(commit, editor, nil)
            } catch {
                throw error.code == .invalid || error.code == .objectMissing
                    ? .damaged(error.message, place: commit.offset) : error
            }
        }
        var applied = try editor.finished()
        applied.frame = last.offset
        return applied
    }

    private func apply(
        _ commit: ScannedCommit,
        _ editor: StateEditor,
        _ moved: [NewPlace]?
    ) throws(EngineError) {
        var blobPlaces: [BlobReference: BlobEntry.Place] = [:]
        var reader: ByteReader
        let places: [NewPlace]
        do throws(FormatError) {
            reader = try Self.bodyReader(commit)
            places = try DeltaOps.decodePlaces(&reader, below: commit.offset)
        } catch {
            throw .damaged(error, place: commit.offset)
        }
        for place in moved ?? places {
            switch place {
            case .largeValue(let entity, let object, let column, let place):
                editor.incomingPlaces[EngineKeys.largeValue(entity, object, column)] = place
            case .blobFrame(let reference, let place): blobPlaces[reference] = .frame(place)
            case .blobFile(let reference): blobPlaces[reference] = .file
            }
        }
        let count: UInt64
        do throws(FormatError) {
            count = try reader.varint("operation count")
        } catch {
            throw .damaged(error, place: commit.offset)
        }
        for _ in 0..<count {
            let operation: DeltaOperation
            do throws(FormatError) {
                operation = try DeltaOps.decodeOperation(&reader)
            } catch {
                throw .damaged(error, place: commit.offset)
            }
            switch operation {
            case .insert(let entity, let object, let row):
                try editor.insert(entity, object, stored: row, moved: [])
            case .update(let entity, let object, let patch):
                let parsed: RowPatch
                do throws(FormatError) {
                    parsed = try RowPatch(patch)
                } catch {
                    throw .damaged(error, place: commit.offset)
                }
                try editor.update(entity, object, patch: parsed, moved: [])
            case .delete(let entity, let object):
                guard try editor.deleteIfPresent(entity, object) else {
                    throw StateEditor.isMissing(entity, object)
                }
            case .put(let tree, let key, let value): try editor.editor(tree).put(key, value)
            case .remove(let tree, let key): try editor.editor(tree).remove(key)
            }
        }
        try editor.applyDeferredBlobs(places: blobPlaces)
        counters.replayedOperations.add(count, ordering: .relaxed)
    }

    /// What one commit changed, from its own bytes.
    static func changes(of commit: ScannedCommit) throws(EngineError) -> [ChangedObjects] {
        switch commit.header.kind {
        case .tree: return try treeChanges(of: commit)
        case .delta: break
        default: return []
        }
        var merge = ChangeMerge()
        do throws(FormatError) {
            var reader = try bodyReader(commit)
            _ = try DeltaOps.decodePlaces(&reader, below: commit.offset)
            for _ in 0..<(try reader.varint("operation count")) {
                switch try DeltaOps.decodeOperation(&reader) {
                case .insert(let entity, let object, _): merge.add(entity, object, .inserted)
                case .update(let entity, let object, _): merge.add(entity, object, .updated)
                case .delete(let entity, let object): merge.add(entity, object, .deleted)
                case .put, .remove: break
                }
            }
        } catch {
            throw .damaged(error, place: commit.offset)
        }
        return merge.lists
    }

    static func bodyReader(_ commit: ScannedCommit) throws(FormatError) -> ByteReader {
        let place = FormatPlace("commit", commit.offset)
        let (bytes, range) = try Frame.body(
            of: commit.frame.bytes,
            payload: commit.frame.payload,
            header: commit.header,
            frontLength: commit.recordLength,
            place: place
        )
        return ByteReader(bytes, range: range, place: place)
    }
}
