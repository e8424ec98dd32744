// An edit sheet: a branch of the view context, merged by Done and dropped by Cancel, with an undo
// of its own and one step of undo for the whole sheet.

import Check
import Foundation
import Varve

@Entity final class Recipe: ManagedObject {
    var title: String = ""
    var servings: Int = 4
    @Relationship(inverse: \Ingredient.recipe, deleteRule: .cascade, ordered: true)
    var ingredients: ToMany<Ingredient>

    func validate(_ report: inout ValidationReport) {
        if title.isEmpty { report.fail("title", "must not be empty") }
    }
}

@Entity final class Ingredient: ManagedObject {
    var name: String = ""
    @Relationship var recipe: Recipe?
}

enum RecipesSchema: VersionedSchema {
    static let version = 1
    static var entities: [any ManagedObject.Type] { [Recipe.self, Ingredient.self] }
}

extension Recipe {
    var line: String {
        "\(title) for \(servings): \(ingredients.map(\.name).joined(separator: ", "))"
    }
}

/// The sheet over the list. It edits a draft: the object with the same ID, in a branch.
@MainActor final class Sheet {
    let branch: ManagedObjectContext
    let draft: Recipe
    private let list: ManagedObjectContext

    init(editing recipe: Recipe, over list: ManagedObjectContext) throws {
        self.list = list
        branch = try list.branch()
        branch.undoLimit = 20
        draft = try branch.object(with: recipe.id)
    }

    /// The edits become one step of the list, and are saved. If that throws, the sheet stays open.
    /// Cancel needs no code: the branch is let go.
    func done(_ policy: BranchMergePolicy = .error) throws {
        try branch.mergeIntoParent(policy, undoActionName: "Edit Recipe")
        try list.save()
    }

    func add(_ name: String, at position: Int) {
        branch.withUndoGroup("Add Ingredient") {
            let ingredient = Ingredient(in: branch)
            ingredient.name = name
            draft.ingredients.insert(ingredient, at: position)
        }
    }
}

@main struct EditSheet {
    @MainActor static func main() async throws {
        try await withFolder { folder in
            let url = folder.appending(path: "recipes.varve")
            var container = try await PersistentContainer.open(at: url, schema: RecipesSchema.self)
            try show(container, makeBread(container.viewContext))
            try await container.close()

            container = try await PersistentContainer.open(at: url, schema: RecipesSchema.self)
            let lines = try container.viewContext.fetch(Recipe.all).map(\.line)
            check("what was undone and saved is on disk", lines == ["Bread for 6: flour, water"])
            try await container.close()
        }
    }

    @MainActor static func makeBread(_ view: ManagedObjectContext) throws -> Recipe {
        let bread = Recipe(in: view)
        bread.title = "Bread"
        for name in ["flour", "water"] {
            let ingredient = Ingredient(in: view)
            ingredient.name = name
            bread.ingredients.append(ingredient)
        }
        try view.save()
        return bread
    }

    @MainActor static func show(_ container: PersistentContainer, _ bread: Recipe) throws {
        let view = container.viewContext
        view.undoLimit = 20
        // 1. Cancel: nothing was ever in the list.
        var sheet: Sheet? = try Sheet(editing: bread, over: view)
        sheet?.draft.title = "Cake"
        sheet?.add("sugar", at: 0)
        check("the sheet shows its edits", sheet?.draft.line == "Cake for 4: sugar, flour, water")
        check("the list does not", bread.line == "Bread for 4: flour, water" && !view.hasChanges)
        sheet = nil
        check("cancelled: no edit, no step", !view.hasChanges && !view.canUndo)

        // 2. Undo in the sheet, and a check that keeps it open.
        let edit = try Sheet(editing: bread, over: view)
        edit.add("salt", at: 1)
        edit.add("chalk", at: 0)
        edit.branch.withUndoGroup("Type") { edit.draft.title = "" }
        do {
            try edit.done()
            check("a recipe without a title is refused", false)
        } catch let error as StoreError where error.code == .invalid {
            check("a recipe without a title is refused", edit.draft.line.hasPrefix(" for 4: chalk"))
        }
        try edit.branch.undo()
        try edit.branch.undo()
        check("two steps", edit.draft.line == "Bread for 4: flour, salt, water")

        // 3. Meanwhile others save. Done merges what does not meet.
        let other = container.newContext()
        try other.object(with: bread.id).servings = 6
        try other.save()
        view.advance()
        check("the list follows", bread.servings == 6 && edit.draft.servings == 4)
        try edit.done()
        check("both edits", bread.line == "Bread for 6: flour, salt, water" && !view.hasChanges)

        // 4. Both change the same: the sheet asks, and its user decides.
        let second = try Sheet(editing: bread, over: view)
        second.draft.title = "Rye bread"
        bread.title = "White bread"
        do {
            try second.done()
            check("both changed the title", false)
        } catch let error as StoreError where error.code == .conflict {
            check("both changed the title", bread.title == "White bread")
        }
        try second.done(.branchWins)
        check("the sheet wins", bread.title == "Rye bread")

        // 5. Undo of whole sheets, after they were saved. Others' edits stay.
        check("the menu says Undo Edit Recipe", view.undoActionName == "Edit Recipe")
        while view.canUndo { try view.undo() }
        check("all undone, but what others did", bread.line == "Bread for 6: flour, water")
        while view.canRedo { try view.redo() }
        check("redone", bread.line == "Rye bread for 6: flour, salt, water")
        while view.canUndo { try view.undo() }
        try view.save()
    }
}
