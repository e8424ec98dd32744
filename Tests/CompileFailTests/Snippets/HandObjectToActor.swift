// An object cannot be handed to another actor.
import VarveObjects

@MainActor private func body(_ worker: Worker, _ item: Item) async {
    #if REFUSED
    await worker.take(item)  // refused
    #else
    await worker.take(item.id)
    #endif
}
