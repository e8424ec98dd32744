// A to-many relationship is edited, not replaced.
import VarveObjects

private func body(_ item: Item, _ other: Item) {
    #if REFUSED
    item.tags = other.tags  // refused
    #else
    item.tags.replaceAll(with: Array(other.tags))
    #endif
}
