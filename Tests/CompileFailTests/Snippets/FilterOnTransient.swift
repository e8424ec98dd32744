// A transient property is not in the store and cannot filter.
import VarveObjects

private func body() {
    #if REFUSED
    let open = Item.where { $0.isExpanded == true }  // refused
    #else
    let open = Item.where { $0.count > 0 }
    #endif
    _ = open
}
