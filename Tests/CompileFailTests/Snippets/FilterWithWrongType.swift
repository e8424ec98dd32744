// A filter compares a column with a value of its type.
import VarveObjects

private func body() {
    #if REFUSED
    let found = Item.where { $0.title == 3 }  // refused
    #else
    let found = Item.where { $0.title == "3" }
    #endif
    _ = found
}
