// An object is not Sendable; its ID and its snapshot are.
import VarveObjects

private func body(_ item: Item) {
    #if REFUSED
    wantsSendable(item)  // refused
    #else
    wantsSendable(item.id)
    wantsSendable(item.snapshot())
    #endif
}
