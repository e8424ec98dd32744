// The content of a blob cannot filter; its length can.
import VarveObjects

private func body(_ blob: Blob) {
    #if REFUSED
    let large = Picture.where { $0.data == blob }  // refused
    #else
    let large = Picture.where { $0.data.length > 100 }
    #endif
    _ = large
}
