// One frame decoded.

import VarveBase
import VarveEngine
import VarveFormat
import VarveRecords

/// One frame, as its own bytes tell it.
public struct FrameReport: Hashable, Sendable {
    /// A named fact.
    public struct Fact: Hashable, Sendable {
        /// What it is about.
        public var name: String
        /// What it says.
        public var value: JSON
    }

    /// Kind, class, tree, level, commit.
    public var entry: FrameEntry
    /// Whether the payload is the one that was written.
    public var isPayloadSound: Bool
    /// Whether the word after the payload is right.
    public var isTailSound: Bool
    /// Payload bytes in the file.
    public var storedLength: UInt64
    /// Payload bytes after decompression.
    public var rawLength: UInt64
    /// Whether the payload is compressed.
    public var isCompressed: Bool
    /// The newest commit frame before this one.
    public var previousCommit: UInt64
    /// Fields of the commit record, of the page's or the value's front.
    public var facts: [Fact]
    /// Operations of a DELTA, roots of a TREE or CKPT, entries of a page; one line each.
    public var lines: [String]
    /// How many lines there are in all.
    public var lineCount: Int
    /// Why the payload cannot be shown.
    public var problem: String?
    /// The frame as it is in the file.
    public var bytes: [UInt8]

    /// The answer as JSON, without the bytes.
    public var json: JSON {
        .members([
            ("format", .int(1)), ("place", .string(Spelling.place(entry.place))),
            ("bytes", .uint(entry.bytes)), ("kind", .string(entry.kind)),
            ("class", .string(entry.classification.rawValue)),
            ("tree", entry.tree.map { .string($0) }), ("level", entry.level.map { .count($0) }),
            ("entries", entry.entries.map { .count($0) }),
            ("commit", entry.commit.map { .uint($0) }),
            ("payloadSound", .bool(isPayloadSound)), ("tailSound", .bool(isTailSound)),
            ("storedLength", .uint(storedLength)), ("rawLength", .uint(rawLength)),
            ("compressed", .bool(isCompressed)),
            ("previousCommit", .string(Spelling.place(previousCommit))),
            ("facts", .members(facts.map { ($0.name, $0.value) })),
            ("lines", .array(lines.map { .string($0) })), ("lineCount", .count(lineCount)),
            ("problem", problem.map { .string($0) }),
        ])
    }
}

extension StoreObserver {
    /// One frame decoded.
    ///
    /// - Parameters:
    ///   - place: where it begins in the file.
    ///   - limit: at most so many lines of operations or entries.
    /// - Throws: `badRequest` when no frame begins there, with the frame that the place lies in.
    /// - Complexity: O(frames of the newest commit).
    public func frame(at place: UInt64, limit: Int = 20) throws(InspectionError) -> FrameReport {
        let found = try engine { () throws(EngineError) in
            try log.frame(at: FileOffset(place))
        }
        guard let frame = found else { throw try noFrame(at: place) }
        let isNeeded = try neededFrames().offsets.contains(place)
        let classification: FrameClass =
            frame.isPayloadSound ? (isNeeded ? .live : .dead) : .damaged
        var report = FrameReport(
            entry: entry(frame, classification),
            isPayloadSound: frame.isPayloadSound,
            isTailSound: frame.isTailSound,
            storedLength: UInt64(frame.header.storedLength),
            rawLength: UInt64(frame.header.rawLength),
            isCompressed: frame.header.flags.contains(.compressed),
            previousCommit: frame.header.previousCommit.rawValue,
            facts: facts(frame),
            lines: [],
            lineCount: 0,
            bytes: frame.bytes
        )
        var lines = Lines(limit: limit)
        do throws(FormatError) {
            try describe(frame, &lines)
        } catch {
            report.problem = "\(error)"
        }
        report.lines = lines.lines
        report.lineCount = lines.count
        return report
    }

    private func noFrame(at place: UInt64) throws(InspectionError) -> InspectionError {
        var hint: String?
        if place < FileHeader.logStart.rawValue {
            hint =
                "the file header lies there; the log begins at "
                + Spelling.place(FileHeader.logStart.rawValue)
        } else if place >= log.dataEnd {
            hint = "the data of this file ends at \(Spelling.place(log.dataEnd))"
        } else {
            try frames { entry in
                guard entry.place + entry.bytes > place else { return true }
                hint =
                    "it lies inside \(Spelling.place(entry.place)), \(entry.what), "
                    + "\(entry.bytes) bytes, \(entry.classification.rawValue)"
                return false
            }
        }
        return InspectionError(
            .badRequest,
            "no frame begins at \(Spelling.place(place))",
            hint: hint
        )
    }

    // MARK: Facts

    private func facts(_ frame: ObservedFrame) -> [FrameReport.Fact] {
        func place(_ offset: FileOffset) -> JSON { .string(Spelling.place(offset.rawValue)) }
        var facts: [FrameReport.Fact] = []
        if let record = frame.record {
            facts += [
                .init(name: "commit", value: .uint(record.number.rawValue)),
                .init(name: "time", value: .string(Spelling.time(record.clockMicroseconds))),
                .init(name: "author", value: .string(record.author)),
                .init(name: "body", value: place(record.bodyStart)),
                .init(name: "checkpoint", value: place(record.checkpoint)),
                .init(name: "durableEnd", value: place(record.durableEnd)),
                .init(name: "liveBytes", value: .uint(record.liveBytes)),
                .init(name: "objectIDs", value: .uint(record.objectIDHighWater)),
                .init(name: "schemaRevision", value: .uint(UInt64(record.schemaVersion))),
                .init(name: "operations", value: .uint(UInt64(record.operationCount))),
            ]
            let flags: [(FrameFlags, String)] = [(.carriesChanges, "changes"), (.settle, "settle")]
            let set = flags.filter { frame.header.flags.contains($0.0) }.map(\.1)
            if !set.isEmpty {
                facts.append(.init(name: "flags", value: .string(set.joined(separator: " "))))
            }
        }
        if let page = frame.page {
            facts += [
                .init(name: "tree", value: .string(names.name(page.tree))),
                .init(name: "level", value: .uint(UInt64(page.level))),
                .init(name: "entries", value: .uint(UInt64(page.count))),
                .init(name: "layout", value: .uint(UInt64(page.layout))),
                .init(name: "commit", value: .uint(page.commit.rawValue)),
            ]
        }
        if let value = frame.value {
            facts += [
                .init(name: "of", value: .string(owner(of: value))),
                .init(name: "commit", value: .uint(value.commit.rawValue)),
            ]
        }
        return facts
    }

    private func owner(of value: ValueHeader) -> String {
        if value.column == ValueHeader.symbolsColumn {
            return "symbol tables of \(names.name(value.symbolsTree))"
        }
        if value.entity == ValueHeader.blobEntity { return "a blob" }
        let column = state?.snapshot.schema.entity(value.entity)?.column(value.column)
        return names.object(value.entity, value.object) + "."
            + (column?.name ?? "column \(value.column.rawValue)")
    }

    // MARK: Lines

    private struct Lines {
        let limit: Int
        var lines: [String] = []
        var count = 0

        mutating func add(_ line: @autoclosure () -> String) {
            if count < limit { lines.append(line()) }
            count += 1
        }

        /// What would be beyond the limit is counted, and not looked at.
        mutating func add(_ objects: ObjectIDSet, _ line: (ObjectID) -> String) {
            for object in objects.prefix(max(0, limit - count)) { lines.append(line(object)) }
            count += objects.count
        }
    }

    private func describe(_ frame: ObservedFrame, _ lines: inout Lines) throws(FormatError) {
        switch frame.header.kind {
        case .delta: try describeDelta(frame, &lines)
        case .tree, .checkpoint:
            var reader = try frame.body()
            for root in try TreeRoots.decode(&reader, offset: frame.offset) {
                lines.add(
                    "root \(names.name(root.tree)): \(root.address.offset.frameName), "
                        + "\(root.rows) entries, level \(root.level)"
                )
            }
            guard frame.header.kind == .tree else { return }
            let limit = UInt64(frame.record?.operationCount ?? 0)
            for list in try ChangedObjects.decode(&reader, limit: limit) {
                lines.add(list.objects) { "\(list.kind) \(names.object(list.entity, $0))" }
            }
        case .close: _ = try frame.body()
        case .page: try describePage(frame, &lines)
        case .value: _ = try frame.body()
        }
    }

    private func describeDelta(
        _ frame: ObservedFrame,
        _ lines: inout Lines
    ) throws(FormatError) {
        var reader = try frame.body()
        for place in try DeltaOps.decodePlaces(&reader, below: frame.offset) {
            switch place {
            case .largeValue(let entity, let object, let column, let place):
                let name = property(entity, column)
                lines.add(
                    "value \(names.object(entity, object)).\(name) at "
                        + "\(place.address.offset.frameName), \(place.length) bytes"
                )
            case .blobFrame(let blob, let place):
                lines.add(
                    "blob \(Spelling.blob(blob.digest.hexText)) at "
                        + "\(place.address.offset.frameName), \(blob.length) bytes"
                )
            case .blobFile(let blob):
                lines.add(
                    "blob \(Spelling.blob(blob.digest.hexText)) in a file, \(blob.length) bytes"
                )
            }
        }
        let count = try reader.varint("operation count")
        for _ in 0..<count {
            switch try DeltaOps.decodeOperation(&reader) {
            case .insert(let entity, let object, let row):
                let view = try RowView(row)
                lines.add("inserted \(names.object(entity, object)) \(columns(entity, view))")
            case .update(let entity, let object, let patch):
                let changed = try RowPatch(patch).columns.map { property(entity, $0) }
                lines.add(
                    "updated \(names.object(entity, object)) \(changed.joined(separator: ", "))"
                )
            case .delete(let entity, let object):
                lines.add("deleted \(names.object(entity, object))")
            case .put(let tree, let key, let value):
                lines.add("put \(names.name(tree)), key of \(key.count), \(value.count) bytes")
            case .remove(let tree, let key):
                lines.add("remove \(names.name(tree)), key of \(key.count)")
            }
        }
    }

    private func describePage(
        _ frame: ObservedFrame,
        _ lines: inout Lines
    ) throws(FormatError) {
        guard let header = frame.page else { return }
        if header.layout != PageHeader.rowLayout {
            for (key, value) in try packedEntries(frame) {
                let line = try entry(key, value[...], of: header.tree)
                lines.add(line)
            }
            return
        }
        let reader = try frame.body()
        let range = reader.position..<reader.end
        let body = try PageBody(
            decoding: reader.bytes,
            range: range,
            header: header,
            offset: frame.offset
        )
        for index in body.suffixes.indices {
            let key = Array(reader.bytes[body.prefix] + reader.bytes[body.suffixes[index]])
            guard header.level == 0 else {
                let child = body.children[index]
                lines.add(
                    "\(child.address.offset.frameName), \(child.rows) entries, from "
                        + (key.isEmpty ? "the beginning" : self.key(key, of: header.tree))
                )
                continue
            }
            let line = try entry(key, reader.bytes[body.values[index]], of: header.tree)
            lines.add(line)
        }
    }

    private func packedEntries(
        _ frame: ObservedFrame
    ) throws(FormatError) -> [(key: [UInt8], value: [UInt8])] {
        do throws(EngineError) {
            return try log.entries(of: frame)
        } catch {
            throw FormatError(
                place: FormatPlace("page", frame.offset),
                field: "rows",
                found: error.message,
                expected: "a packed leaf"
            )
        }
    }

    /// An entry of a leaf, on one line.
    private func entry(
        _ key: [UInt8],
        _ value: ArraySlice<UInt8>,
        of tree: TreeID
    ) throws(FormatError) -> String {
        let line = self.key(key, of: tree)
        if let entity = names.entities[tree] {
            let bytes = Array(value)
            var reader = ByteReader(bytes, place: "row")
            let version = try reader.varint("version")
            let view = try RowView(bytes, range: reader.position..<reader.end)
            return line + " c\(version) \(columns(entity.id, view))"
        }
        return value.isEmpty ? line : line + ", \(value.count) bytes"
    }

    private func property(_ entity: EntityID, _ column: ColumnID) -> String {
        state?.snapshot.schema.entity(entity)?.column(column)?.name ?? "column \(column.rawValue)"
    }

    /// "title="The Sea" year=1978 …": what a row says, on one line.
    private func columns(_ entity: EntityID, _ view: RowView) -> String {
        let known = state?.snapshot.schema.entity(entity)
        var parts: [String] = []
        for index in 0..<view.columnCount {
            let id = ColumnID(UInt16(truncatingIfNeeded: index))
            let column = known?.column(id)
            let name = column?.name ?? "column\(index)"
            do throws(FormatError) {
                switch try view.content(id) {
                case .absent: continue
                case .value(let value):
                    if case .null = value { continue }
                    parts.append("\(name)=\(text(value, column))")
                case .outside(let value): parts.append("\(name)=text(\(value.length), outside)")
                }
            } catch {
                parts.append("\(name)=unreadable")
            }
        }
        return parts.joined(separator: " ")
    }

    private func text(_ value: StoredValue, _ column: RecordColumn?) -> String {
        var type: AttributeType?
        var target: EntityID?
        switch column {
        case .attribute(let attribute)?: type = attribute.type
        case .relationship(let relationship)?: target = relationship.target
        case nil: break
        }
        let shown = inspected(value, type, target: target).text(limit: 40)
        if case .text = value { return "\"\(shown)\"" }
        return shown
    }

    /// A key as the tree it stands in means it.
    func key(_ key: [UInt8], of tree: TreeID) -> String {
        var reader = ByteReader(key, place: "key")
        do throws(FormatError) {
            if let entity = names.entities[tree] {
                return names.object(entity.id, try KeyCoding.decodeObjectID(&reader))
            }
            if let entity = names.indexes[tree],
                let index = entity.indexes.first(where: { $0.tree == tree || $0.cutTree == tree })
            {
                var parts: [String] = []
                for term in index.terms {
                    switch try KeyCoding.decode(&reader, descending: term.isDescending) {
                    case .value(let value): parts.append(text(value, entity.column(term.column)))
                    case .cut(_, let prefix): parts.append("cut after \(prefix.count) bytes")
                    }
                }
                let object = try KeyCoding.decodeObjectID(&reader)
                return parts.joined(separator: ", ") + " -> " + names.object(entity.id, object)
            }
            if tree == .largeValues {
                let value = try KnownValue.key(key)
                return names.object(value.entity, value.object) + "."
                    + property(value.entity, value.column)
            }
            if tree == .blobs, key.count == 32 {
                return "b:"
                    + key.prefix(4).map { byte in
                        let digits = String(byte, radix: 16)
                        return digits.count == 1 ? "0" + digits : digits
                    }.joined()
            }
        } catch {
            // A separator of an inner page may end inside a value: its bytes are shown instead.
        }
        if let text = ByteReader.text(key, 0..<key.count), tree == .catalog {
            return Spelling.escaped(text)
        }
        return "key "
            + key.prefix(16).map { byte in
                let digits = String(byte, radix: 16)
                return digits.count == 1 ? "0" + digits : digits
            }.joined() + (key.count > 16 ? "…" : "")
    }
}
