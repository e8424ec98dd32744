// The fuzzer of the object layer in CI; the long run is asked for by VARVE_GRAPH_SEEDS.

import Foundation
import Testing
import VarveObjects
import VarveTesting

/// An environment in which the engine leaves a step out.
private struct Forgetful: Environment {
    let step: OmittableStep?
    private let base = FixedEnvironment(seed: 1)

    init(_ step: OmittableStep?) { self.step = step }

    func randomBytes(_ count: Int) -> [UInt8] { base.randomBytes(count) }
    func monotonicNanoseconds() -> UInt64 { base.monotonicNanoseconds() }
    func wallClockMicroseconds() -> Int64 { base.wallClockMicroseconds() }
    func processID() -> Int32 { base.processID() }
    func yield(_ point: YieldPoint) {}
    func leavesOut(_ step: OmittableStep) -> Bool { step == self.step }
}

@Suite("Fuzzing the object layer") struct GraphFuzzTests {
    /// Every fourth run has observers.
    private func settings(
        _ seed: UInt64,
        _ bugs: Set<PlantedObjectBug> = []
    ) -> (options: ContainerOptions, observes: Bool) {
        var options = ContainerOptions()
        options.plantedBugs = bugs
        options.everyContextObserves = seed % 4 == 0
        options.adjustingEngine = { $0.packsAnyLeaf = true }
        return (options, options.everyContextObserves)
    }

    /// In every third run the store is compacted, and packs every leaf that can be.
    private func between(_ seed: UInt64) -> GraphFuzz.Between? {
        seed % 3 == 1 ? { try $0.compactNow() } : nil
    }

    /// Runs of one world, as many as a variable says, from VARVE_GRAPH_FIRST on.
    private func run(
        _ world: any FuzzedWorld.Type,
        _ variable: String,
        usually runs: UInt64,
        observes isWatched: Bool = false
    ) {
        let variables = ProcessInfo.processInfo.environment
        let count = variables[variable].flatMap(UInt64.init) ?? runs
        let first = variables["VARVE_GRAPH_FIRST"].flatMap(UInt64.init) ?? 1
        var findings = 0
        for seed in first..<(first + count) {
            var (options, observes) = settings(seed)
            if isWatched { (options.everyContextObserves, observes) = (true, true) }
            do {
                try GraphFuzz.run(
                    world,
                    seed: seed,
                    options: options,
                    observes: observes,
                    between: between(seed)
                )
            } catch {
                Issue.record("\(error)")
                findings += 1
                if findings >= 3 { break }
            }
        }
    }

    @Test("What a context shows is what it saves") func whatAContextShowsIsWhatItSaves() {
        run(GraphWorld.self, "VARVE_GRAPH_SEEDS", usually: 500)
    }

    /// As many runs of undo, redo and transactions.
    @Test("An undo gives what was before") func anUndoGivesWhatWasBefore() {
        run(UndoWorld.self, "VARVE_UNDO_SEEDS", usually: 500)
    }

    /// Half as many runs of two contexts and branches in wrong orders.
    @Test("Any order leaves a sound graph") func anyOrderLeavesASoundGraph() {
        run(TangleWorld.self, "VARVE_TANGLE_SEEDS", usually: 250)
    }

    /// Observers act in the middle of it.
    @Test("Observers that act leave a sound graph") func observersThatActLeaveASoundGraph() {
        run(MeddlingWorld.self, "VARVE_MEDDLING_SEEDS", usually: 150, observes: true)
    }

    /// Others change what unsaved deletions reach.
    @Test("What others put in the reach of a deletion") func whatOthersPutInReach() {
        run(ReachWorld.self, "VARVE_REACH_SEEDS", usually: 200)
    }

    /// Others link things to what can be undone.
    @Test("An undo leaves what others linked") func anUndoLeavesWhatOthersLinked() {
        run(SharingWorld.self, "VARVE_SHARING_SEEDS", usually: 150)
    }

    /// Relationships with counts.
    @Test("What a model says holds in every commit") func whatAModelSaysHolds() {
        run(ModellingWorld.self, "VARVE_MODELLING_SEEDS", usually: 500)
    }

    /// Composites, codecs and lists.
    @Test("Every column of a rich value is a value of its own") func richValues() {
        run(RichWorld.self, "VARVE_RICH_SEEDS", usually: 500)
    }

    /// Blobs and large texts.
    @Test("Whoever may show bytes shows them") func pictures() {
        run(PictureWorld.self, "VARVE_PICTURE_SEEDS", usually: 40)
    }

    /// Observers that go through lists, or read what nobody had read, in the middle of an edit.
    @Test("Seeds that ended the program once", arguments: [500_420, 503_772, 514_496] as [UInt64])
    func seedsThatEndedTheProgram(seed: UInt64) throws {
        let (options, observes) = settings(seed)
        try GraphFuzz.run(seed: seed, options: options, observes: observes)
    }

    /// A reference of an old row to what was gone, read by an observer of another object (two); an
    /// edit that a policy had given up, read the same way.
    @Test(
        "Seeds of observers that read in a merge",
        arguments: [700_196, 701_184, 707_524] as [UInt64]
    )
    func seedsOfObserversInMerges(seed: UInt64) throws {
        let (options, observes) = settings(seed)
        try GraphFuzz.run(seed: seed, options: options, observes: observes)
    }

    /// A list of an object whose end was deleted with it; an edit that named an object which had
    /// been away; a reference that `deny` left to an object that came back and went again; what is
    /// deleted again took its last partner from another one (three).
    @Test(
        "Seeds of undo that showed mistakes",
        arguments: [12_875, 13_052, 13_264, 24_487, 27_001, 28_870] as [UInt64]
    )
    func seedsOfUndo(seed: UInt64) throws {
        let (options, observes) = settings(seed)
        try GraphFuzz.run(UndoWorld.self, seed: seed, options: options, observes: observes)
    }

    /// A new object of a transaction that threw behind a merge (two); an object that both deleted,
    /// brought back and deleted again; an undone insertion whose cascade took what others had
    /// linked to it.
    @Test(
        "Seeds of wrong orders that showed mistakes",
        arguments: [1_491, 1_707, 2_167, 301_301] as [UInt64]
    )
    func seedsOfWrongOrders(seed: UInt64) throws {
        let (options, observes) = settings(seed)
        try GraphFuzz.run(TangleWorld.self, seed: seed, options: options, observes: observes)
    }

    /// An upsert that gave nothing new and was told as a change; a member that left an order and
    /// came back, which the model put at its old place; a to-one that was set to what it showed and
    /// took no other's value any more.
    @Test(
        "Seeds of models that showed mistakes",
        arguments: [610_598, 611_595, 614_563] as [UInt64]
    )
    func seedsOfModels(seed: UInt64) throws {
        let (options, observes) = settings(seed)
        try GraphFuzz.run(ModellingWorld.self, seed: seed, options: options, observes: observes)
    }

    /// What runs in wrong orders are good for: they know no model, and find what leaves a graph
    /// unsound.
    @Test(
        "Planted bugs are found in wrong orders",
        arguments: [
            .oneSideOfAnInverse, .editsOutliveTheirDelete, .rulesOnTheSnapshot,
            .partnersAreNotDisplaced, .lostTargetsAreWritten,
        ] as [PlantedObjectBug]
    )
    func plantedBugsAreFoundInWrongOrders(_ bug: PlantedObjectBug) throws {
        for seed in UInt64(1)...250 {
            let (options, observes) = settings(seed, [bug])
            let found = GraphFuzz.finding(
                TangleWorld.self,
                seed: seed,
                options: options,
                observes: observes
            )
            if found != nil { return }
        }
        Issue.record("\(bug) passes 250 runs")
    }

    /// A new object takes another's place, and a partner from a third that others just gave it one:
    /// a conflict, which the model once did not expect.
    @Test("A seed of a conflict by way of a constraint") func aConflictByWayOfAConstraint() throws {
        try GraphFuzz.run(seed: 600_818)
    }

    /// Composites have bugs of their own; these are found by their runs, too.
    @Test(
        "Planted bugs of the past and of branches are found among rich values",
        arguments: [.pastMovesOn, .branchForgetsValues] as [PlantedObjectBug]
    )
    func plantedBugsAreFoundAmongRichValues(_ bug: PlantedObjectBug) {
        find(bug, in: RichWorld.self)
    }

    /// Looks for a bug, and for nothing where it is not planted: what the same run finds without it
    /// would be another one, or a false alarm.
    private func find(_ bug: PlantedObjectBug, in world: any FuzzedWorld.Type) {
        for seed in UInt64(1)...500 {
            var (options, observes) = settings(seed, [bug])
            if world is MeddlingWorld.Type || bug == .movesForgetLargeValues {
                (options.everyContextObserves, observes) = (true, true)
            }
            func finding() -> GraphFuzz.Finding? {
                GraphFuzz.finding(world, seed: seed, options: options, observes: observes)
            }
            if finding() == nil { continue }
            options.plantedBugs = []
            #expect(finding() == nil, "seed \(seed) finds something without \(bug)")
            return
        }
        Issue.record("\(bug) passes 500 runs")
    }

    /// The sweeps of blob files are the engine's; what shows their mistakes is here.
    @Test(
        "Sweeps that take too much or too little are found among pictures",
        arguments: [
            .keepNamedBlobs, .keepPinnedBlobs, .sweepDropped, .sweepOrphans,
        ] as [OmittableStep]
    )
    func sweepsThatTakeTooMuchOrTooLittle(_ step: OmittableStep) {
        for seed in UInt64(1)...500 {
            var (options, observes) = settings(seed)
            func finding(_ step: OmittableStep?) -> GraphFuzz.Finding? {
                options.adjustingEngine = {
                    $0.packsAnyLeaf = true
                    $0.environment = Forgetful(step)
                }
                return GraphFuzz.finding(
                    PictureWorld.self,
                    seed: seed,
                    options: options,
                    observes: observes
                )
            }
            if finding(step) == nil { continue }
            #expect(finding(nil) == nil, "seed \(seed) finds something without \(step)")
            return
        }
        Issue.record("\(step) passes 500 runs")
    }

    /// What this fuzzer is good for.
    @Test(
        "Planted bugs are found",
        arguments: PlantedObjectBug.allCases.filter {
            !PlantedObjectBug.ofHistory.contains($0) && !PlantedObjectBug.ofMigration.contains($0)
                && !PlantedObjectBug.ofThrown.contains($0)
                && !PlantedObjectBug.ofGoneLinks.contains($0)
        }
    )
    func plantedBugsAreFound(_ bug: PlantedObjectBug) throws {
        let world: any FuzzedWorld.Type =
            if PlantedObjectBug.ofUndo.contains(bug) {
                UndoWorld.self
            } else if PlantedObjectBug.ofReach.contains(bug) {
                ReachWorld.self
            } else if PlantedObjectBug.ofSharing.contains(bug) {
                SharingWorld.self
            } else if PlantedObjectBug.ofMeddling.contains(bug) {
                MeddlingWorld.self
            } else if PlantedObjectBug.ofModelling.contains(bug) {
                ModellingWorld.self
            } else if PlantedObjectBug.ofValues.contains(bug) {
                RichWorld.self
            } else if PlantedObjectBug.ofPictures.contains(bug) {
                PictureWorld.self
            } else {
                GraphWorld.self
            }
        find(bug, in: world)
    }
}
