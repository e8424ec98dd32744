// The examples of the article Fetching and memory.
#if Macros
import Foundation
import Testing
import Varve

@Suite("Guide: fetching and memory") struct FetchingAndMemoryGuide {
    @Test("Requests filter, sort, follow relationships and count") func requests() throws {
        let container = try notes("Bread", "Buns", "Soup")
        let context = container.newContext()
        let kitchen = Notebook(in: context)
        kitchen.name = "Kitchen"
        let label = Label(in: context)
        label.name = "baking"
        for note in try context.fetch(Note.where { $0.title.hasPrefix("B") }) {
            note.isPinned = true
            note.notebook = kitchen
            note.labels.append(label)
        }
        try context.save()

        // Shown in FetchingAndMemory: request
        let request = Note.where { $0.isPinned && $0.title.hasPrefix("b", ignoringCase: true) }
            .sorted { [$0.changed.descending, $0.title.ascending] }
            .limit(50)
        let pinned = try context.fetch(request)
        // End.
        #expect(Set(pinned.map(\.title)) == ["Bread", "Buns"])

        // Shown in FetchingAndMemory: paths
        let baking = Note.where {
            $0.notebook.name == "Kitchen" && $0.labels.any { $0.name == "baking" }
        }
        let loose = Note.where { $0.notebook == nil && $0.labels.count == 0 }
        // End.
        #expect(try context.count(baking) == 2)
        #expect(try context.fetch(loose).map(\.title) == ["Soup"])

        // Shown in FetchingAndMemory: ranges
        let recent = Note.where {
            $0.changed.year(in: .gmt).isIn(2024...) && $0.labels.none { $0.name == "done" }
                && $0.title.contains("cafe", ignoringCase: true, ignoringDiacritics: true)
        }
        // End.
        #expect(try context.count(recent) == 0)
        let cafe = Note(in: context)
        cafe.title = "Caf\u{e9} noir"
        #expect(try context.count(recent) == 1)
        context.delete(cafe)

        // Shown in FetchingAndMemory: inner
        let busy = Notebook.where { $0.notes.count > 1 }
        let there = Note.where { $0.notebook.isIn(busy) }
        // End.
        #expect(try context.count(there) == 2)

        // Shown in FetchingAndMemory: text
        let filter = try container.filter(
            #"title.hasPrefix("B") && !labels.isEmpty"#,
            of: Note.self
        )
        print(try container.text(of: filter))
        // End.
        #expect(try context.count(FetchDescriptor(filter: filter)) == 2)

        // Shown in FetchingAndMemory: questions
        let count = try context.count(Note.where { $0.isPinned })
        let newest = try context.maximum(Note.all) { $0.changed }
        let titles = try context.selectDistinct(Note.all) { $0.title }
        // End.
        #expect(count == 2 && newest != nil && titles == ["Bread", "Buns", "Soup"])

        // Shown in FetchingAndMemory: tuples
        let rows = try context.select(request) { ($0.title, $0.notebook.name.optional) }
        let pairs = try context.select(distinct: Note.all) { ($0.isPinned, $0.title) }
        let isAnyPinned = try context.exists(Note.where { $0.isPinned })
        // End.
        #expect(Set(rows.map(\.0)) == ["Bread", "Buns"] && rows.allSatisfy { $0.1 == "Kitchen" })
        #expect(pairs.map(\.1) == ["Soup", "Bread", "Buns"] && isAnyPinned)

        // Shown in FetchingAndMemory: groups
        let groups = try context.select(
            Note.all,
            groupedBy: { $0.notebook.name.optional }
        ) { note, group in (group.count, note.changed.max) }
        for group in groups { print(group.key ?? "loose", group.values.0) }
        // End.
        #expect(groups.map(\.key) == [nil, "Kitchen"] && groups.map(\.values.0) == [1, 2])

        // Shown in FetchingAndMemory: explain
        print(try context.explain(request))
        print(try context.explain(request, isMeasured: true))  // and what it reads
        // End.
    }

    @Test("Streams and other threads give what a fetch gives") func streams() async throws {
        let container = try notes("Bread", "Buns", "Soup")
        let context = container.newContext()
        let request = Note.all.sorted { [$0.title.descending] }

        // Shown in FetchingAndMemory: enumerate
        for try await note in try context.enumerate(Note.all, batchSize: 200) {
            print(note.title)
        }
        // End.

        // Shown in FetchingAndMemory: concurrently
        let found = try await context.fetchConcurrently(request)
        let values = try await container.fetchSnapshots(request)
        // End.
        #expect(found.map(\.title) == ["Soup", "Buns", "Bread"])
        #expect(values.map(\.title) == found.map(\.title))
    }

    @Test("Faults, batches, prefetching and pages read what they say") func reading() throws {
        let container = try notes()
        let writer = container.newContext()
        try writer.batchInsert(Note.self, count: 500) { row, number in row.title = "\(number)" }
        let context = container.newContext()

        // Shown in FetchingAndMemory: fault
        let notes = try context.fetch(Note.all)  // 500 objects, no values yet
        print(notes[0].isFault)  // true
        print(notes[0].title)  // reads this row, and some behind it in the list
        print(notes[0].isFault)  // false
        // End.
        #expect(!notes[0].isFault && notes[499].isFault)

        // Shown in FetchingAndMemory: batched
        let list = try context.fetchBatched(
            Note.all.sorted { [$0.changed.descending] },
            size: 50
        )
        print(list.count)  // reads no row for it
        print(list[400].title)  // reads the rows 400 to 449
        // End.
        #expect(list.count == 500)

        // Shown in FetchingAndMemory: prefetch
        let withNames = Note.all.limit(100).prefetch { ($0.notebook, $0.labels) }
        for note in try context.fetch(withNames) {
            print(note.title, note.notebook?.name ?? "", note.labels.map(\.name))
        }
        // End.

        // Shown in FetchingAndMemory: pages
        let byDate = Note.all.sorted { [$0.changed.descending] }.limit(100)
        let first = try context.fetchPage(byDate)
        let second = try context.fetchPage(byDate.after(first.last))
        // End.
        #expect(Set(first.objects + second.objects).count == 200)

        // Shown in FetchingAndMemory: memory
        container.trimMemory()  // rows that no object holds
        context.reset()  // all objects of this context, and its unsaved edits
        print(container.statistics.rowCache.bytes)
        // End.
        #expect(container.statistics.realisedObjects == 0)
    }
}
#endif
