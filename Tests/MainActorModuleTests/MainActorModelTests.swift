// Entities in a module that is main-actor by default, as app targets are: they stay free of it.
#if Macros
import Foundation
import Testing
import Varve

@Entity final class Errand: ManagedObject {
    #Index<Errand>([\.due])
    var title: String = ""
    var due: Date?
    @Relationship(inverse: \Project.errands) var project: Project?
    @Transient var isExpanded = false
}

@Entity final class Project: ManagedObject {
    #Unique<Project>([\.name])
    var name: String = ""
    @Relationship var errands: ToMany<Errand>
}

enum Plans: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Errand.self, Project.self] }
}

@Suite("A module that is main-actor by default") struct MainActorModelTests {
    @Test("Its entities work in the background and on the main actor") func background()
        async throws
    {
        let container = try PersistentContainer.inMemory(schema: Plans.self)
        let id = try await container.performBackgroundTask { context in
            let project = Project(in: context)
            project.name = "Move"
            let errand = Errand(in: context)
            errand.title = "boxes"
            errand.project = project
            try context.save()
            return errand.id
        }
        let view = container.viewContext
        view.advance()
        let errand = try #require(try view.existingObject(with: id))
        #expect(errand.project?.name == "Move")
        #expect(try view.count(Errand.where { $0.title.hasPrefix("b") }) == 1)
    }
}
#endif
