#!/usr/bin/env python3
"""Lists the rows of a Varve store. Written from Format.md alone, with nothing but Python: it shows
that a stranger can read the format, and a test holds it against the library.

    tools/read-store.py STORE.varve           the rows of the newest commit
    tools/read-store.py STORE.varve --dump    every byte of the file with its meaning

It opens the file for reading only. Damage ends it with a message and exit code 1. With --dump, an
address is a place in the file; one that begins with + is a place in a block after decompression.
"""
import os
import struct
import sys

MASK = (1 << 64) - 1
# Format.md, "XXH64 primes"
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


class Damaged(Exception):
    pass


def need(condition, message):
    if not condition:
        raise Damaged(message)


def rotate(x, bits):
    return ((x << bits) | (x >> (64 - bits))) & MASK


def xxh64(data, seed=0):
    """XXH64 as published by Yann Collet."""
    def step(lane, word):
        return rotate((lane + word * P2) & MASK, 31) * P1 & MASK

    position, size = 0, len(data)
    if size >= 32:
        lanes = [(seed + P1 + P2) & MASK, (seed + P2) & MASK, seed & MASK, (seed - P1) & MASK]
        while size - position >= 32:
            words = struct.unpack_from("<4Q", data, position)
            lanes = [step(lane, word) for lane, word in zip(lanes, words)]
            position += 32
        value = sum(rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            value = ((value ^ step(0, lane)) * P1 + P4) & MASK
    else:
        value = (seed + P5) & MASK
    value = (value + size) & MASK
    while size - position >= 8:
        value ^= step(0, struct.unpack_from("<Q", data, position)[0])
        value = (rotate(value, 27) * P1 + P4) & MASK
        position += 8
    if size - position >= 4:
        value ^= struct.unpack_from("<I", data, position)[0] * P1 & MASK
        value = (rotate(value, 23) * P2 + P3) & MASK
        position += 4
    while position < size:
        value ^= data[position] * P5 & MASK
        value = rotate(value, 11) * P1 & MASK
        position += 1
    value = (value ^ value >> 33) * P2 & MASK
    value = (value ^ value >> 29) * P3 & MASK
    return value ^ value >> 32


def lz4_block(data, raw_length):
    """An LZ4 block without a frame."""
    need(raw_length <= 255 * len(data) + 64, "a raw length that no block can have")
    out, position = bytearray(), 0

    def more(count):
        nonlocal position
        if count == 15:
            while True:
                byte = data[position]
                position += 1
                count += byte
                if byte != 255:
                    break
        return count

    while position < len(data):
        token = data[position]
        position += 1
        literals = more(token >> 4)
        need(position + literals <= len(data), "literals behind the block")
        out += data[position:position + literals]
        position += literals
        if position == len(data):
            break
        distance = data[position] | data[position + 1] << 8
        position += 2
        need(0 < distance <= len(out), "a match in front of the block")
        count = more(token & 15) + 4
        need(len(out) + count <= raw_length, "a block that is too long")
        for _ in range(count):
            out.append(out[-distance])
    need(len(out) == raw_length, "a block of another length")
    return bytes(out)


class Reader:
    """Reads the types of Format.md, "Conventions"."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        need(self.at + count <= len(self.data), "the end of the data")
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, size, signed=False):
        return int.from_bytes(self.take(size), "little", signed=signed)

    def varint(self):
        value, shift = 0, 0
        while True:
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                need(byte != 0 or shift == 7, "a varint that could be shorter")
                need(value <= MASK, "a varint above 2^64")
                return value
            need(shift < 70, "a varint that is too long")

    def sized(self):
        return self.take(self.varint())

    def text(self):
        return self.sized().decode("utf-8")

    def rest(self):
        return self.take(len(self.data) - self.at)

    def address(self):
        return self.varint() * 8, self.varint(), self.number(8)

    def place(self):
        return self.address(), self.varint()

    def end(self):
        need(self.at == len(self.data), "more bytes than there should be")


DELTA, TREE, CKPT, CLOSE, PAGE, VALUE = 1, 2, 3, 4, 5, 6
KINDS = {1: "DELTA", 2: "TREE", 3: "CKPT", 4: "CLOSE", 5: "PAGE", 6: "VALUE"}
COMPRESSED, CHANGES, SETTLE, STACKED = 1, 2, 4, 16


class Frame:
    def __init__(self, offset, kind, flags, stored, raw, previous, payload_hash):
        self.offset, self.kind, self.flags, self.stored = offset, kind, flags, stored
        self.raw, self.previous, self.hash = raw, previous, payload_hash
        self.length = 32 + (stored + 7) // 8 * 8 + 8
        self.end = offset + self.length


class Store:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.blobs = path[:-len(".varve")] + ".varve-blobs"
        self.read_header()

    # "File header"
    def read_header(self):
        for start in (0, 4096):
            copy = self.data[start:start + 4096]
            if copy[:8] != bytes.fromhex("56415256450D0A1A") or len(copy) < 4096:
                continue
            if xxh64(copy[:4088]) != int.from_bytes(copy[4088:], "little"):
                continue
            version, self.reader_needs, self.writer_needs = struct.unpack_from("<3I", copy, 8)
            need(self.reader_needs <= 1, "a format that is too new")
            self.store_id, self.file_id = copy[24:40].hex(), copy[40:56]
            self.generation = struct.unpack_from("<Q", copy, 56)[0]
            self.seed = xxh64(self.file_id)
            return
        raise Damaged("no sound file header")

    # "Frames"
    def frame(self, offset):
        if offset < 8192 or offset % 8 or offset + 32 > len(self.data):
            return None
        header = self.data[offset:offset + 32]
        magic, kind, flags, stored, raw, own, previous, payload = struct.unpack("<HBBIIIQQ", header)
        if magic != 0x5646:
            return None
        zeroed = header[:12] + bytes(4) + header[16:]
        if xxh64(zeroed, self.seed ^ offset) & 0xFFFFFFFF != own:
            return None
        if kind not in KINDS or flags & ~(1 | 2 | 4 | 16) or previous >= offset:
            return None
        found = Frame(offset, kind, flags, stored, raw, previous, payload)
        return found if found.end <= len(self.data) else None

    def payload(self, frame, front):
        """The payload of a frame, decompressed; nil when its hash is another."""
        stored = self.data[frame.offset + 32:frame.offset + 32 + frame.stored]
        if xxh64(stored, self.seed) != frame.hash:
            return None
        if frame.flags & COMPRESSED:
            return stored[:front] + lz4_block(stored[front:], frame.raw - front)
        need(frame.raw == frame.stored, "a length that does not fit")
        return stored

    # "Commit record"
    def commit(self, offset):
        frame = self.frame(offset)
        if frame is None or frame.kind > CLOSE:
            return None
        stored = self.data[frame.offset + 32:frame.offset + 32 + frame.stored]
        if frame.stored < 96 or xxh64(stored, self.seed) != frame.hash:
            return None
        names = ("number", "previous_hash", "body_start", "body_hash", "checkpoint", "durable_end",
                 "epoch", "clock", "live", "high_water")
        for name, value in zip(names, struct.unpack_from("<7Qq2Q", stored)):
            setattr(frame, name, value)
        frame.schema_version, flags, frame.operations, extra = struct.unpack_from("<4I", stored, 80)
        need(flags & 0xFFFF == 0, "a store that needs a newer reader")
        frame.front = 96 + extra
        reader = Reader(stored[96:96 + extra])
        frame.author = reader.take(reader.number(1)).decode("utf-8")
        return frame

    def body_is_sound(self, commit):
        position, value = commit.body_start, self.seed
        while position < commit.offset:
            frame = self.frame(position)
            if frame is None or frame.kind not in (PAGE, VALUE):
                return False
            stored = self.data[position + 32:position + 32 + frame.stored]
            if xxh64(stored, self.seed) != frame.hash:
                return False
            value = xxh64(frame.hash.to_bytes(8, "little"), value)
            position = frame.end
        return position == commit.offset and value == commit.body_hash

    def previous(self, commit):
        before = self.commit(commit.previous)
        if before is None or before.hash != commit.previous_hash or before.kind == CLOSE:
            return None
        return before

    # "Reading a log"
    def newest(self):
        end = len(self.data.rstrip(b"\0"))
        offset = end // 8 * 8
        while offset >= 8192:
            commit = self.commit(offset)
            if commit is not None:
                verdict = self.chain_is_sound(commit)
                if verdict:
                    return commit
            offset -= 8
        raise Damaged("the log holds no sound commit")

    def chain_is_sound(self, commit):
        durable_end, link = commit.durable_end, commit
        while link.end > durable_end and link.previous != 0:
            before = self.previous(link)
            if not self.body_is_sound(link) or before is None:
                need(link.previous >= durable_end, "the log is damaged")
                return False
            link = before
        return True

    # "Addresses", "Pages", "Values"
    def addressed(self, address, kind, below):
        offset, stored, payload_hash = address
        need(offset < below, "an address that leads forward")
        frame = self.frame(offset)
        need(frame is not None and frame.kind == kind and frame.stored == stored
             and frame.hash == payload_hash, "no such frame at %x" % offset)
        payload = self.payload(frame, 16 if kind == PAGE else 24)
        need(payload is not None, "a damaged frame at %x" % offset)
        return payload

    def walk(self, tree, level, address, rows, below, entries):
        payload = self.addressed(address, PAGE, below)
        own_tree, own_level, layout, count, _ = struct.unpack_from("<IBBHQ", payload)
        need((own_tree, own_level, layout) == (tree, level, 0), "a page of another tree")
        reader = Reader(payload[16:])
        prefix = reader.sized()
        if level == 0:
            key_lengths = [reader.varint() for _ in range(count)]
            value_lengths = [reader.varint() for _ in range(count)]
            keys = [prefix + reader.take(length) for length in key_lengths]
            for key, length in zip(keys, value_lengths):
                entries[key] = reader.take(length)
            need(rows == count, "a page with another count")
        else:
            for length in [reader.varint() for _ in range(count)]:
                reader.take(length)
            children = [(reader.address(), reader.varint()) for _ in range(count)]
            need(rows == sum(rows for _, rows in children), "a page with another count")
            for child, below_it in children:
                self.walk(tree, level - 1, child, below_it, address[0], entries)
        reader.end()

    def value(self, place):
        address, length = place
        bytes_ = self.addressed(address, VALUE, len(self.data))[24:]
        need(len(bytes_) == length, "a value of another length")
        return bytes_


# "Row tags": tag -> bytes of body
BODY = {0: 0, 1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 1, 7: 2, 8: 4, 9: 8, 10: 4, 11: 8, 12: 8, 13: 16,
        14: 11, 15: 19, 16: 4, 17: 8, 18: 40, 19: 264, 20: 264}
ABSENT, NULL, OUTSIDE_TEXT, OUTSIDE_DATA = 0, 1, 19, 20


def body_length(tag):
    need(tag in BODY or tag >= 32, "an unknown tag %d" % tag)
    return BODY[tag] if tag in BODY else (tag - 32) // 2


def decode_row(data):
    """"Rows": a list of (tag, body)."""
    reader = Reader(data)
    tags = [reader.varint() for _ in range(reader.varint())]
    row = [(tag, reader.take(body_length(tag))) for tag in tags]
    reader.end()
    return row


def apply_patch(row, data):
    """"Patches"."""
    reader = Reader(data)
    count = reader.varint()
    bitmap = reader.take((count + 7) // 8)
    columns = [c for c in range(count) if bitmap[c >> 3] >> (c & 7) & 1]
    tags = [reader.varint() for _ in columns]
    row = row + [(ABSENT, b"")] * (count - len(row))
    for column, tag in zip(columns, tags):
        row[column] = (tag, reader.take(body_length(tag)))
    reader.end()
    return row


class Schema:
    """"Schema"."""

    def __init__(self, data):
        reader = Reader(data)
        need(reader.number(1) == 1, "a schema of another layout")
        self.version, self.revision = reader.number(4), reader.number(4)
        need(reader.number(2) == 1, "another derivation")
        reader.number(2), reader.number(4)
        self.entities = [self.entity(reader) for _ in range(reader.varint())]
        reader.end()

    def entity(self, reader):
        entity = {"number": reader.number(2), "name": reader.text(), "tree": reader.number(4),
                  "hidden": reader.number(1)}
        reader.number(2)
        columns = {}
        for _ in range(reader.varint()):
            column, name, kind = reader.number(2), reader.text(), reader.number(1)
            flags = reader.number(1)
            if flags & 2:
                reader.varint()
            columns[column] = (name, kind, decode_row(reader.sized())[0])
        for _ in range(reader.varint()):
            name, _, flags = reader.text(), reader.number(2), reader.number(1)
            if flags & 4:
                reader.sized()
            reader.number(1)
            links = reader.number(1)
            if links == 1:
                columns[reader.number(2)] = (name, 0, (NULL, b""))
                reader.number(4)
            elif links == 3:
                reader.number(2), reader.number(1)
        for _ in range(reader.varint()):
            reader.number(4), reader.number(1)
            for _ in range(reader.varint()):
                reader.number(2), reader.number(1)
        if entity["hidden"]:
            for column in range(4):
                columns.setdefault(column, ("column %d" % column, 0, (NULL, b"")))
        entity["columns"] = columns
        return entity


class State:
    """The rows as of the newest commit."""

    def __init__(self, store):
        self.store = store
        newest = store.newest()
        # 4. of "Reading a log": the roots that the chain meets first, then the DELTA frames.
        deltas, commit = [], newest
        if commit.kind == CLOSE:
            commit = store.previous(commit)
            need(commit is not None, "a CLOSE without its commit")
        self.number = commit.number
        while commit.kind == DELTA:
            deltas.append(commit)
            commit = store.previous(commit)
            need(commit is not None, "a broken chain")
        self.trees, self.rows, self.blob_places = {}, {}, {}
        self.load(commit)
        for delta in reversed(deltas):
            self.apply(delta)

    def load(self, commit):
        store = self.store
        reader = Reader(store.payload(commit, commit.front)[commit.front:])
        for _ in range(reader.varint()):
            tree, level, address, rows = (reader.varint(), reader.number(1), reader.address(),
                                          reader.varint())
            entries = {}
            store.walk(tree, level, address, rows, commit.offset, entries)
            need(list(entries) == sorted(entries), "keys that do not ascend")
            self.trees[tree] = entries
        self.schema = self.newest_schema()
        for digest, entry in self.trees.get(1, {}).items():
            entry = Reader(entry)
            entry.varint(), entry.varint()
            if entry.number(1) == 1:
                self.blob_places[digest] = entry.place()
        self.large = {}
        for key, place in self.trees.get(3, {}).items():
            self.large[struct.unpack(">HQH", key)] = Reader(place).place()
        for entity in self.schema.entities:
            rows = self.rows.setdefault(entity["number"], {})
            for key, entry in self.trees.get(entity["tree"], {}).items():
                entry = Reader(entry)
                rows[int.from_bytes(key, "big")] = (entry.varint(), decode_row(entry.rest()))

    def newest_schema(self):
        return Schema(self.trees[0][b"schema"])

    def apply(self, delta):
        """"Row changes"."""
        reader = Reader(self.store.payload(delta, delta.front)[delta.front:])
        for _ in range(reader.varint()):
            kind = reader.number(1)
            if kind == 1:
                key = reader.varint(), reader.varint(), reader.varint()
                self.large[key] = reader.place()
            elif kind == 2:
                digest = reader.take(32)
                reader.varint()
                self.blob_places[digest] = reader.place()
            else:
                need(kind == 3, "an unknown place")
                reader.take(32), reader.varint()
        for _ in range(reader.varint()):
            operation = reader.number(1)
            need(1 <= operation <= 5, "an unknown operation")
            if operation >= 4:
                tree, key = reader.varint(), reader.sized()
                entries = self.trees.setdefault(tree, {})
                if operation == 4:
                    entries[key] = reader.sized()
                else:
                    del entries[key]
                if tree == 0:
                    self.schema = self.newest_schema()
                continue
            rows, row_id = self.rows.setdefault(reader.varint(), {}), reader.varint()
            if operation == 1:
                rows[row_id] = (delta.number, decode_row(reader.sized()))
            elif operation == 2:
                rows[row_id] = (delta.number, apply_patch(rows[row_id][1], reader.sized()))
            else:
                del rows[row_id]
        reader.end()

    # Spelling of values: the one of Tests/CompatibilityTests.

    def outside(self, entity, row_id, column):
        return self.store.value(self.large[entity, row_id, column])

    def blob(self, digest, length):
        if digest in self.blob_places:
            content = self.store.value(self.blob_places[digest])
        else:
            with open(os.path.join(self.store.blobs, digest.hex()), "rb") as file:
                content = file.read()
        need(len(content) == length, "a blob of another length")
        return "blob(%d, %016x)" % (length, xxh64(content))

    def spell(self, tag, body, kind, where):
        if tag == NULL:
            return "null"
        if tag in (2, 3):
            return "true" if tag == 3 else "false"
        if 4 <= tag <= 9:
            number = tag - 4 if tag < 6 else int.from_bytes(body, "little", signed=True)
            return str(number + (1 << 63) if kind == 9 else number)
        if tag == 10:
            return "float(%08x)" % struct.unpack("<I", body)
        if tag in (11, 12):
            return ("double(%016x)" if tag == 11 else "date(%016x)") % struct.unpack("<Q", body)
        if tag == 13:
            return "uuid(%s)" % body.hex()
        if tag in (14, 15):
            digits = int.from_bytes(body[3:], "little")
            exponent = struct.unpack_from("<h", body, 1)[0]
            return "%s%de%d" % ("-" if body[0] else "", digits, exponent)
        if tag in (16, 17):
            return "#%d" % int.from_bytes(body, "little")
        if tag == 18:
            return self.blob(body[:32], struct.unpack_from("<Q", body, 32)[0])
        if tag in (OUTSIDE_TEXT, OUTSIDE_DATA):
            length, inside = struct.unpack_from("<Q", body)[0], body[8:]
            body = self.outside(*where)
            need(len(body) == length and body[:256] == inside, "a value that its row does not know")
            tag = 32 if tag == OUTSIDE_TEXT else 33
        name = "data" if tag & 1 else "text"
        if len(body) > 40:
            return "%s(%d bytes, %016x)" % (name, len(body), xxh64(body))
        if name == "data":
            return "data(%s)" % body.hex()
        return '"%s"' % "".join(
            c if " " <= c <= "~" and c not in '"\\' else "\\u{%x}" % ord(c)
            for c in body.decode("utf-8"))

    def lines(self):
        for entity in sorted(self.schema.entities, key=lambda entity: entity["number"]):
            yield entity["name"] + (" (hidden)" if entity["hidden"] else "")
            for row_id, (commit, row) in sorted(self.rows.get(entity["number"], {}).items()):
                values = []
                for column, (name, kind, default) in sorted(entity["columns"].items()):
                    tag, body = row[column] if column < len(row) else (ABSENT, b"")
                    if tag == ABSENT:
                        tag, body = default
                    where = entity["number"], row_id, column
                    values.append("%s=%s" % (name, self.spell(tag, body, kind, where)))
                yield "  %d (c%d): %s" % (row_id, commit, " ".join(values))


class Dump:
    """Every byte with its meaning: the worked example of Format.md is made of it."""

    def __init__(self, store):
        self.store, self.lines = store, []
        self.prefix = ""

    def put(self, at, data, text):
        """A line per 8 bytes, the meaning beside the first."""
        for start in range(0, max(len(data), 1), 8):
            digits = " ".join("%02X" % byte for byte in data[start:start + 8])
            self.line(at + start, digits, "" if start else text)

    def line(self, at, digits, text):
        address = self.prefix + "%04X" % at
        self.lines.append(("%-6s %-23s  %s" % (address, digits, text)).rstrip())

    def zeros(self, at, count, text):
        self.line(at, "00 x %d" % count, text)

    def title(self, text):
        self.lines += ["", text]

    def fields(self, at, data, fields):
        """Fields of fixed size: (size, name, spelling of the number)."""
        for size, name, spell in fields:
            part, data = data[:size], data[size:]
            number = int.from_bytes(part, "little")
            self.put(at, part, name + (" " + spell(number) if spell else ""))
            at += size
        return at

    def all(self):
        self.headers()
        offset, end = 8192, len(self.store.data.rstrip(b"\0"))
        while offset < end:
            frame, start = self.store.frame(offset), offset
            while frame is None and offset < end:
                offset += 8
                frame = self.store.frame(offset)
            if offset > start:
                self.title("No frame: a void, or a write that was torn")
                self.put(start, self.store.data[start:offset], "")
            if frame is not None:
                self.frame(frame)
                offset = frame.end
        if offset < len(self.store.data):
            self.title("Room for the next frames")
            self.zeros(offset, len(self.store.data) - offset, "")
        return self.lines

    def headers(self):
        data = self.store.data
        self.title("File header, first copy")
        self.fields(0, data[:72], [
            (8, "magic", None), (4, "formatVersion", str), (4, "readerNeeds", str),
            (4, "writerNeeds", str), (4, "zero", None), (16, "storeID", None),
            (16, "fileID", None), (8, "generation", str), (8, "createdMicroseconds", str)])
        length = data[72]
        self.put(72, data[72:73], "creatorLength %d" % length)
        self.put(73, data[73:73 + length], "creator \"%s\"" % data[73:73 + length].decode())
        self.zeros(73 + length, 4088 - 73 - length, "the rest of creator, zeros")
        self.put(4088, data[4088:4096], "hash")
        self.title("File header, second copy")
        need(data[4096:8192] == data[:4096], "two unlike copies of the header")
        self.lines.append("1000   the same 4096 bytes")

    def frame(self, frame):
        store, at = self.store, frame.offset
        data = store.data[at:frame.end]
        flags = [name for bit, name in ((1, "compressed"), (2, "carriesChanges"), (4, "settle"),
                                        (16, "stacked")) if frame.flags & bit]
        self.title("%s at %X, %d bytes" % (KINDS[frame.kind], at, frame.length))
        self.fields(at, data, [
            (2, "magic", None), (1, "kind", lambda n: KINDS[n]),
            (1, "flags", lambda n: ", ".join(flags) or "none"), (4, "storedLength", str),
            (4, "rawLength", str), (4, "headerHash", None),
            (8, "previousCommit", lambda n: "%X" % n), (8, "payloadHash", None)])
        payload = data[32:32 + frame.stored]
        at += 32
        if frame.kind <= CLOSE:
            front = self.record(at, payload)
        elif frame.kind == PAGE:
            front = 16
            self.fields(at, payload, [(4, "tree", str), (1, "level", str), (1, "layout", str),
                                      (2, "count", str), (8, "commit", str)])
        else:
            front = 24
            self.fields(at, payload, [(2, "entity", str), (2, "column", str), (4, "zero", None),
                                      (8, "object", str), (8, "commit", str)])
        body = payload[front:]
        if frame.flags & COMPRESSED:
            self.block(at + front, body)
            body = lz4_block(body, frame.raw - front)
            self.lines.append("       the block's content:")
            self.prefix = "+"
            self.body(frame, 0, body, payload)
            self.prefix = ""
        else:
            self.body(frame, at + front, body, payload)
        at += frame.stored
        padding = frame.end - 8 - at
        if padding:
            self.put(at, store.data[at:at + padding], "zeros up to a multiple of 8")
        self.put(frame.end - 8, data[-8:-4], "tail word: %d x 8 bytes" % (frame.length // 8))
        self.put(frame.end - 4, data[-4:], "tailMagic")

    def record(self, at, payload):
        self.fields(at, payload, [
            (8, "number", str), (8, "previousHash", None), (8, "bodyStart", lambda n: "%X" % n),
            (8, "bodyHash", None), (8, "checkpoint", lambda n: "%X" % n),
            (8, "durableEnd", lambda n: "%X" % n), (8, "epoch", None),
            (8, "clockMicroseconds", str), (8, "liveBytes", str), (8, "objectIDHighWater", str),
            (4, "schemaVersion", str), (4, "flags", str), (4, "operationCount", str),
            (4, "extraLength", str)])
        front = 96 + int.from_bytes(payload[92:96], "little")
        notes = Notes(self, at + 96, payload[96:front])
        notes.number(1, "author length")
        notes.raw(notes.last, "author")
        for _ in range(notes.varint("entity count")):
            for name in ("entity", "added", "changed", "deleted"):
                notes.varint(name)
        return front

    def block(self, at, data):
        """The sequences of an LZ4 block."""
        notes = Notes(self, at, data)

        def length(nibble, name):
            count, goes_on = nibble, nibble == 15
            while goes_on:
                byte = notes.number(1, "%s length goes on" % name)
                count, goes_on = count + byte, byte == 255
            return count

        while notes.at < len(data):
            token = notes.number(1, "token: %d literals%s" % (
                data[notes.at] >> 4, ", a match of %d + 4" % (data[notes.at] & 15)
                if data[notes.at] & 15 else ""))
            literals = length(token >> 4, "literal")
            if literals:
                notes.raw(literals, "literals")
            if notes.at < len(data):
                notes.number(2, "match: so many bytes back")
                length(token & 15, "match")

    def body(self, frame, at, data, payload):
        notes = Notes(self, at, data)
        if frame.kind in (TREE, CKPT):
            for _ in range(notes.varint("count of roots")):
                notes.varint("tree")
                notes.number(1, "level")
                notes.address("root")
                notes.varint("rows")
        if frame.kind == TREE:
            for _ in range(notes.varint("count of lists")):
                notes.varint("entity")
                notes.number(1, "change")
                for _ in range(notes.varint("count of runs")):
                    notes.varint("gap")
                    notes.varint("length")
            if frame.flags & SETTLE:
                for _ in range(notes.varint("count of absorbed commits")):
                    notes.varint("number")
                    notes.number(8, "epoch")
                    notes.number(8, "clock")
                    notes.sized("author")
        if frame.kind == DELTA:
            self.changes(notes)
        if frame.kind == PAGE:
            tree, level, _, count, _ = struct.unpack_from("<IBBHQ", payload)
            self.page(notes, tree, level, count)
        if frame.kind == VALUE:
            notes.raw(len(data), "the value")
        notes.end()

    def changes(self, notes):
        for _ in range(notes.varint("count of places")):
            kind = notes.number(1, "place: largeValue, blobFrame or blobFile")
            if kind == 1:
                for name in ("entity", "object", "column"):
                    notes.varint(name)
            else:
                notes.raw(32, "digest")
                notes.varint("length")
            if kind != 3:
                notes.address("value")
                notes.varint("length of the value")
        names = {1: "insert", 2: "update", 3: "delete", 4: "put", 5: "remove"}
        for _ in range(notes.varint("count of operations")):
            operation = notes.number(1, "operation " + names[notes.data[notes.at]])
            if operation >= 4:
                notes.varint("tree")
                notes.sized("key")
                if operation == 4:
                    notes.sized("value")
                continue
            notes.varint("entity")
            notes.varint("object")
            if operation == 1:
                notes.varint("length of the row")
                self.row(notes)
            elif operation == 2:
                notes.varint("length of the patch")
                count = notes.varint("count of columns")
                bitmap = notes.raw((count + 7) // 8, "bitmap of changed columns")
                changed = [c for c in range(count) if bitmap[c >> 3] >> (c & 7) & 1]
                self.values(notes, changed)

    def row(self, notes):
        self.values(notes, list(range(notes.varint("count of columns"))))

    def values(self, notes, columns):
        tags = [notes.varint("tag of column %d" % column) for column in columns]
        for column, tag in zip(columns, tags):
            if body_length(tag):
                notes.raw(body_length(tag), "body of column %d" % column)

    def page(self, notes, tree, level, count):
        notes.varint("prefix length")
        prefix = notes.raw(notes.last, "prefix")
        keys = [notes.varint("length of key %d" % index) for index in range(count)]
        values = [notes.varint("length of value %d" % index) if level == 0 else 0
                  for index in range(count)]
        keys = [prefix + notes.raw(length, "key %d" % index) for index, length in enumerate(keys)]
        for index, length in enumerate(values):
            if level:
                notes.address("child %d" % index)
                notes.varint("rows")
            elif tree in self.row_trees():
                notes.varint("value %d: commit" % index)
                self.row(notes)
            elif tree == 0 and keys[index] == b"schema":
                self.schema(notes)
            else:
                notes.raw(length, "value %d" % index)

    def schema(self, notes):
        """The record under the catalog's key "schema"."""
        notes.number(1, "layoutVersion")
        for size, name in ((4, "version"), (4, "revision"), (2, "derivation"), (2, "next entity"),
                           (4, "next tree")):
            notes.number(size, name)
        for _ in range(notes.varint("count of entities")):
            notes.number(2, "entity")
            notes.sized("name")
            notes.number(4, "tree")
            notes.number(1, "isHiddenLink")
            notes.number(2, "next column")
            for _ in range(notes.varint("count of attributes")):
                notes.number(2, "column")
                notes.sized("name")
                notes.number(1, "type")
                if notes.number(1, "flags") & 2:
                    notes.varint("external limit")
                notes.varint("length of the default")
                self.row(notes)
            for _ in range(notes.varint("count of relationships")):
                notes.sized("name")
                notes.number(2, "target")
                if notes.number(1, "flags") & 4:
                    notes.sized("inverse")
                notes.number(1, "delete rule")
                links = notes.number(1, "links")
                for size, name in {1: ((2, "column"), (4, "index tree")), 2: (),
                                   3: ((2, "hidden entity"), (1, "side"))}[links]:
                    notes.number(size, name)
            for _ in range(notes.varint("count of indexes")):
                notes.number(4, "index tree")
                notes.number(1, "isUnique")
                for _ in range(notes.varint("count of terms")):
                    notes.number(2, "column")
                    notes.number(1, "isDescending")

    def row_trees(self):
        return {entity["tree"] for entity in State(self.store).schema.entities}


class Notes(Reader):
    """A reader that writes down what it reads."""

    def __init__(self, dump, base, data):
        super().__init__(data)
        self.dump, self.base, self.last = dump, base, 0

    def note(self, start, text):
        self.dump.put(self.base + start, self.data[start:self.at], text)

    def number(self, size, text):
        start = self.at
        self.last = super().number(size)
        shown = "" if size == 8 or text.startswith(("token", "operation")) else " %d" % self.last
        self.note(start, text + shown)
        return self.last

    def varint(self, text):
        start, value, shift = self.at, 0, 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        self.note(start, "%s %d" % (text, value))
        self.last = value
        return value

    def raw(self, count, text):
        start = self.at
        data = self.take(count)
        if count:
            plain = all(32 <= byte < 127 for byte in data)
            self.note(start, text + (" \"%s\"" % data.decode() if plain and count < 40 else ""))
        return data

    def sized(self, text):
        return self.raw(self.varint("length of " + text), text)

    def address(self, text):
        self.varint("%s: offset / 8" % text)
        self.varint("storedLength")
        self.number(8, "payloadHash")


def main(arguments):
    paths = [argument for argument in arguments if not argument.startswith("--")]
    if len(paths) != 1 or not paths[0].endswith(".varve"):
        print(__doc__, file=sys.stderr)
        return 64
    try:
        store = Store(paths[0])
        if "--dump" in arguments:
            print("\n".join(Dump(store).all()[1:]))
            return 0
        state = State(store)
        print("store %s generation %d" % (store.store_id, store.generation))
        print("commit %d schema %d" % (state.number, state.schema.version))
        for line in state.lines():
            print(line)
    except (Damaged, KeyError, IndexError, ValueError, struct.error) as error:
        print("%s: %s" % (paths[0], error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
