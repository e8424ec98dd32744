// A Sendable struct cannot hold an object.
import VarveObjects

private struct Row: Sendable {
    #if REFUSED
    let item: Item  // refused
    #else
    let item: Item.ID
    #endif
}
