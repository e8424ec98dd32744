// Relationships are prefetched, attributes are not.
import VarveObjects

private func body() {
    #if REFUSED
    let request = Item.all.prefetch { $0.title }  // refused
    #else
    let request = Item.all.prefetch { $0.picture }
    #endif
    _ = request
}
