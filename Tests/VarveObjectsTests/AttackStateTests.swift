// What observers hear while contexts are edited, saved, emptied and moved in any order: whoever was
// told nothing sees what it saw before.

import Foundation
import Observation
import Testing

@testable import VarveObjects

@Suite(.verified) struct AttackStateTests {
    /// Runs `body`, once, just before what `read` reads changes.
    @MainActor private func before(_ read: () -> Void, _ body: @escaping @MainActor () -> Void) {
        let isDone = Shared(false)
        withObservationTracking(read) {
            let isSecond = isDone.withLock { value in
                defer { value = true }
                return value
            }
            if !isSecond { MainActor.assumeIsolated { body() } }
        }
    }

    /// Whether a change of what `read` reads was told during `body`.
    private func isTold(_ read: () -> Void, during body: () throws -> Void) rethrows -> Bool {
        let told = Shared(false)
        withObservationTracking(read) { told.withLock { $0 = true } }
        try body()
        return told.withLock { $0 }
    }

    @MainActor @Test func anEditInsideAnObserverChangesAStateThatIsToldOf() throws {
        let container = try memory()
        let view = container.viewContext
        let (first, second) = (Item(in: view), Item(in: view))
        try view.save()
        before({ _ = first.title }) { second.title = "by the observer" }
        #expect(isTold({ _ = second.hasChanges }) { first.title = "new" })
        try view.save()
        // Where a row leaves memory, too.
        before({ _ = first.title }) { second.title = "again" }
        #expect(isTold({ _ = second.hasChanges }) { view.refreshAllObjects() })
        try view.save()
        before({ _ = first.title }) { second.title = "and again" }
        #expect(
            isTold({ _ = second.hasChanges }) { view.refresh(first, mergeChanges: true) }
        )
    }

    @Test func anObjectAfterAResetTellsOfItsState() throws {
        let container = try memory()
        let context = container.newContext(observes: true)
        let old = Item(in: context)
        try context.save()
        _ = isTold({ _ = (old.hasChanges, old.isDeleted) }) {}
        context.reset()
        let new = try context.object(with: old.id)
        #expect(old !== new)
        #expect(isTold({ _ = new.hasChanges }) { new.title = "new" })
        #expect(isTold({ _ = new.isDeleted }) { context.delete(new) })
        withExtendedLifetime(old) {}
    }

    @Test func aFetchThatEndsANewObjectIsToldOf() throws {
        let container = try memory()
        let context = container.newContext(observes: true)
        let item = Item(in: context)
        context.delete(item)
        #expect(
            try isTold({ _ = context.hasChanges }) { _ = try context.count(Item.all) }
        )
        #expect(!context.hasChanges)
    }

    @MainActor @Test func anEditInTheMiddleOfARollbackIsToldWhenItGoes() throws {
        let container = try memory()
        let view = container.viewContext
        let (first, second) = (Item(in: view), Item(in: view))
        let folder = Folder(in: view)
        try view.save()
        let told = Shared<[String]>([])
        first.title = "edited"
        before({ _ = first.title }) {
            second.title = "in the middle"
            folder.items.append(second)
            withObservationTracking {
                _ = second.title
            } onChange: {
                told.withLock { $0.append("title") }
            }
            withObservationTracking {
                _ = folder.items.count
            } onChange: {
                told.withLock { $0.append("list") }
            }
        }
        view.rollback()
        #expect(second.title == "" && folder.items.isEmpty && !view.hasChanges)
        #expect(Set(told.withLock { $0 }) == ["title", "list"])
    }

    @Test func aSaveTellsWhatOthersSaved() throws {
        let container = try memory()
        let context = container.newContext(observes: true)
        let item = Item(in: context)
        let tag = Tag(in: context)
        try context.save()
        let other = container.newContext(observes: false)
        let theirs = try other.object(with: item.id)
        theirs.title = "theirs"
        theirs.folder = Folder(in: other)
        try other.save()
        item.number = 3
        let titles = { _ = item.title }
        let folders = { _ = item.folder }
        var isFolderTold = false
        let isTitleTold = try isTold(titles) {
            isFolderTold = try isTold(folders) {
                try context.save(mergePolicy: .objectWinsByProperty)
            }
        }
        #expect(isTitleTold && isFolderTold)
        #expect(item.title == "theirs" && item.number == 3 && item.folder != nil)
        // What nobody else saved is as it was.
        item.number = 4
        #expect(try !isTold(titles) { try context.save() })
        // A member that others deleted leaves the list to which it was added.
        other.delete(try other.object(with: tag.id))
        try other.save()
        item.tags.append(tag)
        #expect(
            try isTold({ _ = item.tags.count }) {
                try context.save(mergePolicy: .storeWinsByProperty)
            }
        )
        #expect(item.tags.isEmpty)
    }

    @MainActor @Test(arguments: [false, true])
    func aSaveInsideADeletionLosesNothing(fetches: Bool) throws {
        let container = try memory()
        let view = container.viewContext
        let folder = Folder(in: view)
        let item = Item(in: view)
        item.folder = folder
        let picture = Picture(in: view)
        item.picture = picture
        try view.save()
        before({ _ = item.folder }) { _ = try? view.save() }
        view.delete(folder)
        if fetches {
            #expect(try view.fetch(Folder.all).isEmpty)
            #expect(try view.count(Folder.all) == 0)
        } else {
            view.processPendingChanges()
        }
        #expect(folder.isDeleted && item.folder == nil)
        try view.save()
        #expect(try container.newContext().count(Folder.all) == 0)

        // Two at once: the second is not forgotten while the rules of the first run.
        let others = [Folder(in: view), Folder(in: view)]
        for other in others { Item(in: view).folder = other }
        try view.save()
        for other in others {
            let member = try #require(other.items.first)
            before({ _ = member.folder }) { _ = try? view.save() }
            view.delete(other)
        }
        view.processPendingChanges()
        try view.save()
        #expect(others.allSatisfy { $0.isDeleted })
        #expect(try container.newContext().count(Folder.all) == 0)
        for other in try view.fetch(Item.all) where other !== item { view.delete(other) }
        try view.save()

        before({ _ = picture.caption }) { _ = try? view.save() }
        view.delete(item)
        if fetches {
            #expect(try view.fetch(Item.all).isEmpty)
            #expect(try view.fetch(Picture.all).isEmpty)
        } else {
            view.processPendingChanges()
        }
        #expect(item.isDeleted && picture.isDeleted)
        try view.save()
        #expect(try container.newContext().count(Item.all) == 0)
        #expect(try container.newContext().count(Picture.all) == 0)
    }

    // MARK: Whoever was told nothing sees what it saw before

    /// A view: what it shows, and whether it was told to draw itself anew.
    @MainActor private final class Probe {
        let name: String
        let read: () -> String
        private(set) var shown = ""
        /// Whose values nobody shows any more.
        private let isOver: () -> Bool
        private var wasOver = false
        private let isStale = Shared(false)

        init(
            _ name: String,
            isOver: @escaping () -> Bool = { false },
            _ read: @escaping () -> String
        ) {
            (self.name, self.read, self.isOver) = (name, read, isOver)
            draw()
        }

        func draw() {
            isStale.withLock { $0 = false }
            let flag = isStale
            wasOver = isOver()
            withObservationTracking {
                shown = read()
            } onChange: {
                flag.withLock { $0 = true }
            }
        }

        /// Draws if it was told to; else what it shows must be so still.
        func check(_ note: String) {
            let now = read()
            if wasOver || isOver() { return draw() }
            #expect(
                isStale.withLock { $0 } || now == shown,
                "\(name), \(shown) -> \(now): \(note)"
            )
            if isStale.withLock({ $0 }) || now != shown { draw() }
        }
    }

    @MainActor private struct World {
        let container: PersistentContainer
        let view: ManagedObjectContext
        var numbers: SeededNumbers
        var items: [Item] = []
        var folders: [Folder] = []
        var tags: [Tag] = []
        var probes: [Probe] = []
        /// Held by the app, though its context knows them no more.
        var old: [Any] = []

        mutating func probeAll() {
            let view = view
            probes = [Probe("context.hasChanges") { "\(view.hasChanges)" }]
            for (place, item) in items.enumerated() {
                let isOver = { item.isDeleted }
                probes += [
                    Probe("\(place).hasChanges") { "\(item.hasChanges)" },
                    Probe("\(place).isDeleted") { "\(item.isDeleted)" },
                    Probe("\(place).title", isOver: isOver) { item.title },
                    Probe("\(place).folder", isOver: isOver) { "\(item.folder?.id as Any)" },
                    Probe("\(place).tags", isOver: isOver) { "\(item.tags.ids)" },
                    Probe("\(place).tags.count", isOver: isOver) { "\(item.tags.count)" },
                ]
            }
            for (place, folder) in folders.enumerated() {
                let first = items[0]
                let isOver = { folder.isDeleted }
                probes += [
                    Probe("folder \(place).items.count", isOver: isOver) {
                        "\(folder.items.count)"
                    },
                    Probe("folder \(place).items.first", isOver: isOver) {
                        "\(folder.items.first?.id as Any)"
                    },
                    Probe("folder \(place).items.contains", isOver: isOver) {
                        "\(folder.items.contains(first))"
                    },
                    Probe("folder \(place).isEmpty", isOver: isOver) { "\(folder.items.isEmpty)" },
                    Probe("folder \(place).state") { "\(folder.hasChanges) \(folder.isDeleted)" },
                ]
            }
        }

        mutating func fetchAll() throws {
            items = try view.fetch(Item.all)
            folders = try view.fetch(Folder.all)
            tags = try view.fetch(Tag.all)
            while items.count < 3 { items.append(Item(in: view)) }
            while folders.count < 2 { folders.append(Folder(in: view)) }
            while tags.count < 2 { tags.append(Tag(in: view)) }
            probeAll()
        }

        /// Without edits the view shows what its commit has.
        func expectStored(_ note: String) throws {
            let fresh = container.newContext(observes: false)
            let stored = try fresh.fetch(Item.all)
            guard !view.hasChanges, view.commit == fresh.commit else { return }
            #expect(try view.fetchIDs(Item.all) == stored.map(\.id), "\(note)")
            for theirs in stored {
                let mine = try view.object(with: theirs.id)
                #expect(
                    mine.title == theirs.title && mine.folder?.id == theirs.folder?.id
                        && mine.tags.ids == theirs.tags.ids && !mine.isDeleted,
                    "\(mine.id): \(note)"
                )
            }
            for theirs in try fresh.fetch(Folder.all) {
                let mine = try view.object(with: theirs.id)
                #expect(mine.items.ids == theirs.items.ids, "\(mine.id): \(note)")
            }
        }

        /// Another context's edit.
        mutating func editElsewhere() {
            let other = container.newContext(observes: false)
            guard let items = try? other.fetch(Item.all), !items.isEmpty,
                let folders = try? other.fetch(Folder.all), !folders.isEmpty,
                let tags = try? other.fetch(Tag.all), !tags.isEmpty
            else { return }
            let item = items[numbers.below(items.count)]
            switch numbers.below(7) {
            case 0: item.title = "theirs \(numbers.below(9))"
            case 1: item.folder = folders[numbers.below(folders.count)]
            case 2: item.folder = nil
            case 3: item.tags.append(tags[numbers.below(tags.count)])
            case 4: item.tags.removeAll()
            case 5: other.delete(item)
            default: other.delete(folders[0])
            }
            _ = try? other.save()
        }

        /// One step of the app; what it is called.
        mutating func step(_ kind: Int) -> String {
            let item = items[numbers.below(items.count)]
            let folder = folders[numbers.below(folders.count)]
            let tag = tags[numbers.below(tags.count)]
            switch kind {
            case 0, 1:
                item.title = "title \(numbers.below(3))"
                return "title"
            case 2:
                item.folder = numbers.below(3) == 0 ? nil : folder
                return "folder"
            case 3:
                item.tags.append(tag)
                return "append"
            case 4:
                item.tags.remove(tag)
                return "remove"
            case 5:
                Item(in: view).folder = folder
                return "insert"
            case 6:
                view.delete(item)
                return "delete"
            case 7:
                view.delete(folder)
                return "delete folder"
            case 8:
                view.processPendingChanges()
                return "process"
            case 9, 10:
                do { try view.save(mergePolicy: .objectWinsByProperty) } catch {
                    view.rollback()
                }
                return "save"
            case 11:
                view.rollback()
                return "rollback"
            case 12:
                view.refresh(item, mergeChanges: numbers.below(2) == 0)
                return "refresh"
            case 13:
                view.refreshAllObjects()
                return "refresh all"
            case 14:
                _ = try? view.count(Item.all)
                return "count"
            case 15:
                folder.items.replaceAll(with: [item])
                return "replace all"
            case 17:
                editElsewhere()
                return "edit elsewhere"
            case 16:
                let new = Item(in: view)
                new.folder = folder
                view.delete(new)
                return "new and deleted"
            default:
                editElsewhere()
                view.advance()
                return "merge"
            }
        }
    }

    private struct SeededNumbers {
        var state: UInt64
        mutating func below(_ count: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int((state >> 33) % UInt64(count))
        }
    }

    @MainActor @Test(arguments: [false, true])
    func whoeverIsToldNothingSeesTheSame(hasOtherObservers: Bool) throws {
        for seed in 0..<(hasOtherObservers ? 60 : 15) as Range<UInt64> {
            let container = try memory(ContainerOptions(viewContextMergesAutomatically: false))
            var world = World(
                container: container,
                view: container.viewContext,
                numbers: SeededNumbers(state: seed)
            )
            try world.fetchAll()
            try world.view.save()
            world.probes.forEach { $0.draw() }
            var steps: [String] = []
            for _ in 0..<60 {
                if world.numbers.below(20) == 0 {
                    world.old.append((world.items, world.folders, world.tags))
                    world.view.reset()
                    try world.fetchAll()
                    try world.view.save()
                    steps.append("reset")
                }
                let kind = world.numbers.below(21)
                if hasOtherObservers {
                    let inner = [0, 0, 2, 3, 6, 8, 9, 11, 14][world.numbers.below(9)]
                    let probe = world.probes[world.numbers.below(world.probes.count)]
                    var copy = world
                    before({ _ = probe.read() }) {
                        steps.append("inside: " + copy.step(inner))
                    }
                }
                steps.append(world.step(kind))
                let note = "seed \(seed): \(steps.suffix(6).joined(separator: ", "))"
                for probe in world.probes { probe.check(note) }
                try world.expectStored(note)
            }
            withExtendedLifetime(world.old) {}
        }
    }
}
