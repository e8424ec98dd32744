// A commit that brings back what an earlier one held: roots of the past, named once more.
//
// Invariants
// - Rows, index entries and large values are those of the past, page by page; nothing of them is
//   written again.
// - The catalog is not of the past: it knows openings that came since.
// - Files of blobs that nothing names any more are on the list of what a sweep may take; those that
//   are named again are there, or nothing is changed.

import VarveBase
internal import VarveFormat

extension StateEditor {
    /// Makes every tree but the catalog what it was. To be called before anything else is changed.
    ///
    /// - Throws: `notRetained` when the file of a blob is gone; `damaged`, `ioFailed`.
    func restore(from past: StoreState, _ blobStore: BlobStore) throws(EngineError) {
        precondition(pendingValues.isEmpty && blobChanges.isEmpty, "nothing was changed yet")
        try restoreBlobs(past, blobStore)
        let own: Set<TreeID> = [.catalog, .blobs, .droppedBlobs]
        for id in Set(base.trees.keys).union(past.trees.keys).subtracting(own).sorted() {
            try restore(id, to: past.trees[id] ?? .empty)
        }
    }

    /// Makes a tree what it is in another state of the same file.
    private func restore(_ id: TreeID, to root: TreeRoot) throws(EngineError) {
        lastRows = nil
        try editor(id).replace(root)
    }

    private func restoreBlobs(
        _ past: StoreState,
        _ blobStore: BlobStore
    ) throws(EngineError) {
        var difference = TreeDifference(from: baseTree(.blobs), to: past.tree(.blobs))
        while let change = try difference.next() {
            let digest = try decoded { () throws(FormatError) in
                try EngineKeys.digest(decoding: change.key)
            }
            guard let after = change.after else {
                try editor(.blobs).remove(change.key)
                let gone = try entry(change.before ?? [])
                if gone.place == .file {
                    try editor(.droppedBlobs).put(EngineKeys.dropped(digest, by: number), [])
                }
                continue
            }
            let back = try entry(after)
            let reference = BlobReference(digest: digest, length: back.length)
            if change.before == nil, back.place == .file,
                try !blobStore.engineError({ () throws(BlobError) in
                    try blobStore.files.exists(reference)
                })
            {
                throw EngineError(
                    .notRetained,
                    "the file of blob \(digest.shortName), which that commit names, is gone"
                )
            }
            try editor(.blobs).put(change.key, after)
        }
    }

    private func entry(_ bytes: [UInt8]) throws(EngineError) -> BlobEntry {
        try decoded { () throws(FormatError) in try BlobEntry(decoding: bytes) }
    }

    /// The object of a row's key.
    static func object(_ key: [UInt8]) throws(EngineError) -> ObjectID {
        try decoded { () throws(FormatError) in
            var reader = ByteReader(key, place: "row key")
            let object = ObjectID(try reader.u64("object").byteSwapped)
            try reader.finish("row key")
            return object
        }
    }
}
