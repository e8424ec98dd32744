// What a settle copies of large values and small blobs.
//
// Invariants
// - Copied is what entries of changed or unproven leaves name of the VALUE frames that the settled
//   commits wrote.
// - An entry that names no such frame, or cannot be read, stays as it is: nothing that these
//   commits wrote is lost with it, and its value stays as damaged as it was. Only a forged file
//   has one above the proven end. To refuse it here would close a store to which a commit was
//   added.
// - A frame that these commits wrote and that cannot be read now is an error: the next opening may
//   read it.

internal import VarveBase
internal import VarveFormat
internal import VarveIO

extension Settle {
    /// The VALUE frames that commits wrote above the proven end.
    ///
    /// - Complexity: one read of a header for each frame of their bodies.
    private func values(of commits: [ScannedCommit]) throws(EngineError) -> Set<PageAddress> {
        let scan = LogScan(log: generation.log, size: try generation.log.size())
        var found: Set<PageAddress> = []
        for commit in commits {
            var place = commit.record.bodyStart.rawValue
            while place < commit.offset.rawValue {
                guard let header = try scan.header(at: place) else { throw Self.changed }
                if header.kind == .value, place >= provenEnd.rawValue {
                    found.insert(
                        PageAddress(
                            offset: FileOffset(place),
                            storedLength: header.storedLength,
                            payloadHash: header.payloadHash
                        )
                    )
                }
                place += header.frameLength
            }
        }
        return found
    }

    /// Copies the VALUE frames of commits whose bytes are not proven.
    func copyValues(
        of commits: [ScannedCommit],
        _ editor: StateEditor,
        _ log: inout LogWriter
    ) throws(EngineError) {
        let unproven = try values(of: commits)
        if unproven.isEmpty { return }
        for id in [TreeID.largeValues, .blobs] {
            var entries: [(key: [UInt8], value: [UInt8])] = []
            let tree = try editor.tree(id)
            if let root = try changedRoot(tree) { try collect(root, tree, &entries) }
            for (key, value) in entries {
                guard var entry = ValueEntry(value, of: id), unproven.contains(entry.place.address)
                else { continue }
                entry.place = try copy(entry.place, &log)
                try editor.editor(id).put(key, entry.encoded())
            }
        }
    }

    private func changedRoot(_ tree: Tree) throws(EngineError) -> TreeNode? {
        if let node = tree.root.node { return node }
        guard let address = tree.root.address, address.offset >= provenEnd else { return nil }
        return try tree.rootNode()
    }

    /// Entries of leaves that are in memory only or not proven: all that can name a new frame.
    private func collect(
        _ node: TreeNode,
        _ tree: Tree,
        _ entries: inout [(key: [UInt8], value: [UInt8])]
    ) throws(EngineError) {
        if node.isLeaf {
            for index in 0..<node.count { entries.append((node.key(index), node.value(index))) }
            return
        }
        for index in node.children.indices {
            let child = node.children[index]
            if child.node == nil, let address = child.address, address.offset < provenEnd {
                continue
            }
            try collect(try tree.child(of: node, at: index), tree, &entries)
        }
    }

    /// Copies one VALUE frame; its bytes are checked on the way.
    func copy(
        _ place: ValuePlace,
        _ log: inout LogWriter
    ) throws(EngineError) -> ValuePlace {
        let frame = try generation.log.frame(place.address, kind: .value)
        let front = Array(
            frame.bytes[frame.payload.prefix(min(ValueHeader.length, frame.payload.count))]
        )
        let (bytes, range) = try decoded { () throws(FormatError) in
            try Frame.body(
                of: frame.bytes,
                payload: frame.payload,
                header: frame.header,
                frontLength: ValueHeader.length,
                place: FormatPlace("value", frame.offset)
            )
        }
        let address = log.appendBody(
            .value,
            front: front,
            body: Array(bytes[range]),
            compresses: frame.header.flags.contains(.compressed)
        )
        return ValuePlace(address: address, length: place.length)
    }
}

/// An entry of one of the two trees that name VALUE frames.
private struct ValueEntry {
    var place: ValuePlace
    private let blob: BlobEntry?

    /// Nil when it names none, or cannot be read.
    init?(_ bytes: [UInt8], of tree: TreeID) {
        if tree == .blobs {
            guard let entry = try? BlobEntry(decoding: bytes), case .frame(let place) = entry.place
            else { return nil }
            (self.place, blob) = (place, entry)
        } else {
            guard let place = try? ValuePlace(decoding: bytes) else { return nil }
            (self.place, blob) = (place, nil)
        }
    }

    func encoded() -> [UInt8] {
        if var blob {
            blob.place = .frame(place)
            return blob.encoded()
        }
        var writer = ByteWriter(capacity: 20)
        place.append(to: &writer)
        return writer.bytes
    }
}
