#!/usr/bin/env python3
"""Lists the rows of a Varve store. Written from Format.md alone, with nothing but Python: it shows
that a stranger can read the format, and a test holds it against the library.

    tools/read-store.py STORE.varve           the rows of the newest commit
    tools/read-store.py STORE.varve --log     a line for each commit frame, and what counts
    tools/read-store.py STORE.varve --dump    every byte of the file with its meaning

It opens the file for reading only. Damage ends it with a message and exit code 1. When the newest
commit has rotted, so that an earlier one is shown, it says so and ends with exit code 2. With --dump,
an address is a place in the file; one that begins with + is a place in a block after decompression.
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


# "Frame kinds", "Frame flags", "Frame constants"
DELTA, TREE, CKPT, CLOSE, PAGE, VALUE = 1, 2, 3, 4, 5, 6
KINDS = {1: "DELTA", 2: "TREE", 3: "CKPT", 4: "CLOSE", 5: "PAGE", 6: "VALUE"}
LARGEST = {1: 1 << 30, 2: 1 << 30, 3: 1 << 24, 4: 1 << 24, 5: 1 << 26, 6: 1 << 25}
COMPRESSED, CHANGES, SETTLE, STACKED = 1, 2, 4, 16
TAIL_MAGIC = 0x4C545246
LOG_START = 8192


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
        # What was read of sets of symbol tables, by place; the trees that have leaves of layout 1;
        # the bases of leaves of layout 2 of the commit that is read.
        self.symbol_sets, self.packed_trees, self.bases = {}, set(), set()
        self.read_header()
        # 1. of "Reading a log": the end of the data.
        self.data_end = max(len(self.data.rstrip(b"\0")), LOG_START)

    # "File header"
    def header_copy(self, start):
        """The bytes of a copy of the header; None when it is not sound."""
        copy = self.data[start:start + 4096]
        if copy[:8] != bytes.fromhex("56415256450D0A1A") or len(copy) < 4096 or copy[72] > 64:
            return None
        return copy if xxh64(copy[:4088]) == int.from_bytes(copy[4088:], "little") else None

    def read_header(self):
        copy = self.header_copy(0) or self.header_copy(4096)
        need(copy is not None, "no sound file header")
        self.reader_needs = struct.unpack_from("<I", copy, 12)[0]
        need(self.reader_needs <= 3, "a format that is too new")
        self.store_id, self.file_id = copy[24:40].hex(), copy[40:56]
        self.generation = struct.unpack_from("<Q", copy, 56)[0]
        self.seed = xxh64(self.file_id)

    # "Frames"
    def frame(self, offset):
        """The frame whose sound header stands at an offset, or None."""
        if offset < LOG_START or offset % 8 or offset + 32 > len(self.data):
            return None
        header = self.data[offset:offset + 32]
        magic, kind, flags, stored, raw, own, previous, payload = struct.unpack("<HBBIIIQQ", header)
        if magic != 0x5646:
            return None
        zeroed = header[:12] + bytes(4) + header[16:]
        if xxh64(zeroed, self.seed ^ offset) & 0xFFFFFFFF != own:
            return None
        if kind not in KINDS or flags & ~(COMPRESSED | CHANGES | SETTLE | STACKED):
            return None
        if max(stored, raw) > LARGEST[kind] or previous >= offset:
            return None
        found = Frame(offset, kind, flags, stored, raw, previous, payload)
        return found if found.end <= len(self.data) else None

    def stored_payload(self, frame):
        return self.data[frame.offset + 32:frame.offset + 32 + frame.stored]

    def is_sound(self, frame):
        return xxh64(self.stored_payload(frame), self.seed) == frame.hash

    def payload(self, frame, front):
        """The payload of a sound frame, decompressed; the front is not."""
        stored = self.stored_payload(frame)
        need(front <= min(frame.stored, frame.raw), "a payload without its front")
        if frame.flags & COMPRESSED:
            return stored[:front] + lz4_block(stored[front:], frame.raw - front)
        need(frame.raw == frame.stored, "a length that does not fit")
        return stored

    # "Commit record"
    def commit(self, offset):
        """The sound commit frame at an offset with its record, or None."""
        frame = self.frame(offset)
        if frame is None or frame.kind > CLOSE or frame.end > self.data_end + 4096:
            return None
        stored = self.stored_payload(frame)
        if frame.stored < 96 or not self.is_sound(frame):
            return None
        names = ("number", "previous_hash", "body_start", "body_hash", "checkpoint", "durable_end",
                 "epoch", "clock", "live", "high_water")
        for name, value in zip(names, struct.unpack_from("<7Qq2Q", stored)):
            setattr(frame, name, value)
        frame.schema_version, flags, frame.operations, extra = struct.unpack_from("<4I", stored, 80)
        if max(frame.body_start, frame.durable_end) > offset or frame.checkpoint >= offset:
            return None
        if max(frame.number, frame.live, frame.high_water) >= 1 << 62 or extra > 1 << 20:
            return None
        frame.front = 96 + extra
        try:
            reader = Reader(stored[96:96 + extra])
            author = reader.number(1)
            need(len(reader.data) == extra and author <= 64, "an author that is too long")
            frame.author = reader.take(author).decode("utf-8")
            for _ in range(reader.varint()):
                need(reader.varint() < 1 << 16, "an entity that is none")
                reader.varint(), reader.varint(), reader.varint()
        except (Damaged, UnicodeDecodeError):
            return None
        need(flags & 0xFFFF == 0, "a store that needs a newer reader")
        return frame

    # "Reading a log"

    def tail_word(self, end):
        """The length that the tail word before a place says, or None."""
        if end < LOG_START + 40 or end > len(self.data):
            return None
        eighths, magic = struct.unpack_from("<II", self.data, end - 8)
        length = eighths * 8
        return length if magic == TAIL_MAGIC and 40 <= length <= end - LOG_START else None

    def found_from_the_end(self):
        """Step 2: frames with a sound header, the newest first."""
        place = (self.data_end + 7) // 8 * 8
        while place > LOG_START:
            length = self.tail_word(place)
            frame = self.frame(place - length) if length else None
            if frame is None or frame.length != length:
                offset = place - 8
                while offset >= LOG_START and self.frame(offset) is None:
                    offset -= 8
                if offset < LOG_START:
                    return
                frame = self.frame(offset)
            yield frame
            place = frame.offset

    def find(self):
        """Step 3: finds the accepted commit, the proven one, and those that were passed over."""
        self.torn = []
        for frame in self.found_from_the_end():
            if not frame.flags & STACKED and frame.previous != 0:
                need(self.commit(frame.previous) is not None,
                     "the commit at %x is damaged; it was on disk before the frame at %x was written"
                     % (frame.previous, frame.offset))
            candidate = self.commit(frame.offset)
            if candidate is None:
                continue
            proven = self.proven_by(candidate)
            if proven is not None:
                self.accepted, self.proven = candidate, proven
                return
            self.torn.append(candidate)
        raise Damaged("the log holds no sound commit")

    def proven_by(self, candidate):
        """Step 4: the proven commit of a candidate's chain; None when the chain is torn."""
        durable_end, link = candidate.durable_end, candidate
        while link.end > durable_end and link.previous != 0:
            place, before = self.broken_body(link), None
            if place is None:
                place, before = link.previous, self.previous(link)
            if before is None:
                need(place >= durable_end, "the log is damaged at %x, which was on disk before commit "
                     "%d was written" % (place, candidate.number))
                return None
            link = before
        return link

    def broken_body(self, commit):
        """Where a commit's body is not sound; None when all of it is."""
        position, value = commit.body_start, self.seed
        while position < commit.offset:
            frame = self.frame(position)
            if frame is None or frame.kind not in (PAGE, VALUE) or frame.end > commit.offset \
                    or not self.is_sound(frame):
                return position
            value = xxh64(frame.hash.to_bytes(8, "little"), value)
            position = frame.end
        return None if value == commit.body_hash else commit.offset

    def previous(self, commit):
        """The commit that another one names as the one before it, or None."""
        before = self.commit(commit.previous)
        if before is None or before.kind == CLOSE or before.hash != commit.previous_hash:
            return None
        return before if before.end <= commit.body_start and before.number <= commit.number else None

    def behind(self):
        """Step 5: what lies behind the accepted commit, as (start, end, frame or None, verdict)."""
        position = self.accepted.end
        while position < self.data_end:
            frame = self.frame(position)
            if frame is None:
                end = self.next_header(position)
                data = position + len(self.data[position:end].rstrip(b"\0"))
                data = (data + 7) // 8 * 8
                length = self.tail_word(data)
                is_rotten = length is not None and position <= data - length and length <= 1 << 30 \
                    and not self.misses_sector(data - length, data)
            elif self.is_sound(frame) and frame.end <= self.data_end + 4096:
                yield position, frame.end, frame, "sound"
                position = frame.end
                continue
            else:
                end = self.next_header(position + 8)
                is_rotten = frame.end <= self.data_end + 4096 and frame.kind not in (CKPT, CLOSE) \
                    and not frame.flags & SETTLE and self.tail_word(frame.end) == frame.length \
                    and not self.misses_sector(position, frame.end)
            if any(self.data[position:end]):
                yield position, end, frame, "rotten" if is_rotten else "torn"
            position = end

    def next_header(self, position):
        while position < self.data_end and self.frame(position) is None:
            position += 8
        return min(position, self.data_end)

    def misses_sector(self, start, end):
        while start < end:
            stop = min(end, (start // 512 + 1) * 512)
            if not any(self.data[start:stop]):
                return True
            start = stop
        return False

    # "Addresses", "Pages", "Values"
    def addressed(self, address, kind, below):
        offset, stored, payload_hash = address
        frame = self.frame(offset)
        need(frame is not None and frame.kind == kind and frame.stored == stored
             and frame.hash == payload_hash, "no such frame at %x" % offset)
        need(frame.end <= below, "an address that leads forward")
        need(self.is_sound(frame), "a damaged frame at %x" % offset)
        return self.payload(frame, 16 if kind == PAGE else 24)

    def walk(self, tree, level, address, rows, below, entries):
        payload = self.addressed(address, PAGE, below)
        own_tree, own_level, layout, count, _ = struct.unpack_from("<IBBHQ", payload)
        need((own_tree, own_level) == (tree, level), "a page of another tree")
        need(count > 0 and level <= 15, "a page that no tree has")
        need(layout == 0 or layout <= 2 and level == 0, "an unknown layout")
        if layout > 0:
            need(rows == count, "a page with another count")
            walk = self.walk_packed if layout == 1 else self.walk_edited
            walk(tree, address[0], payload, count, entries)
            return
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

    # "Leaves of layout 1", "Sets of symbol tables"
    def walk_packed(self, tree, offset, payload, count, entries):
        need(self.reader_needs >= 2, "a leaf of format version 2 in a store of version 1")
        need(tree >= 16, "a leaf of layout 1 in a tree without rows")
        need(not self.frame(offset).flags & COMPRESSED, "a leaf of layout 1 in a block")
        self.packed_trees.add(tree)
        entries.update(Leaf(self, payload[16:], count, offset).entries())

    # "Leaves of layout 2"
    def walk_edited(self, tree, offset, payload, count, entries):
        need(self.reader_needs >= 3, "a leaf of format version 3 in a store of an older one")
        need(tree >= 16, "a leaf of layout 2 in a tree without rows")
        changes = EditedLeaf(payload[16:])
        basis = self.addressed(changes.basis, PAGE, offset)
        own_tree, own_level, layout, basis_count, _ = struct.unpack_from("<IBBHQ", basis)
        need((own_tree, own_level, layout) == (tree, 0, 1), "a basis of another kind")
        need(changes.basis[0] not in self.bases, "a basis of two leaves")
        self.bases.add(changes.basis[0])
        rows = {}
        self.walk_packed(tree, changes.basis[0], basis, basis_count, rows)
        merged = changes.applied(rows)
        need(len(merged) == count, "a page with another count")
        entries.update(merged)

    def symbol_set(self, places, stored, payload_hash, below):
        """The tables of a set, of the first of its two frames that is sound."""
        need(places[0] != places[1], "a set that is there once")
        for place in places:
            need(place % 8 == 0 and place >= LOG_START and stored > 0
                 and place + 32 + (stored + 7) // 8 * 8 + 8 <= below,
                 "a set where none can be")
        for place in places:
            if (place, stored, payload_hash) in self.symbol_sets:
                return self.symbol_sets[place, stored, payload_hash]
            try:
                payload = self.addressed((place, stored, payload_hash), VALUE, below)
                need(payload[2:8] == b"\xff\xff\0\0\0\0", "a value that is no set")
                tables = symbol_tables(payload[24:])
            except (Damaged, IndexError) as error:
                damage = error
                continue
            self.symbol_sets[place, stored, payload_hash] = tables
            return tables
        raise Damaged("both frames of a set are damaged: %s" % damage)

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


def is_text(data):
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


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


def symbol_tables(data):
    """"Sets of symbol tables": the symbols of each table, by their codes."""
    reader, tables, before = Reader(data), [], -1
    count = reader.number(2)
    need(count <= 1024, "too many tables of symbols")
    for _ in range(count):
        column, counts = reader.number(2), reader.take(8)
        need(before < column < 1024, "tables of symbols that do not ascend")
        need(sum(counts) <= 255, "too many symbols")
        tables.append([reader.take(size) for size, symbols in enumerate(counts, 1)
                       for _ in range(symbols)])
        before = column
    reader.end()
    return tables


def expand(data, symbols):
    """A text that is coded with a table of symbols; as it is without one."""
    if symbols is None:
        return data
    out, codes = bytearray(), iter(data)
    for code in codes:
        if code == 255:
            code = next(codes, None)
            need(code is not None, "a coded text that ends with an escape")
            out.append(code)
        else:
            need(code < len(symbols), "a code without a symbol")
            out += symbols[code]
    return bytes(out)


def spelled_varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def signed(number):
    """The i64 of a sum, which is without carry."""
    return (number + (1 << 63) & MASK) - (1 << 63)


# "Leaf types", "Leaf specials", "Leaf codings"
LEAF_TYPES = "bool int double uuid text date float reference data any".split()
BOOL, INT, DOUBLE, UUID, TEXT, DATE, FLOAT, REFERENCE, DATA, ANY = range(10)
IS_NULL, IS_ABSENT, IS_COMMON, FAR = 1, 2, 4, 128
LEAF_CODINGS = ("packed decimal binary raw sparse sparseDecimal sparseBinary text dictionary "
                "body").split()
(PACKED, DECIMAL, BINARY, RAW, SPARSE, SPARSE_DECIMAL, SPARSE_BINARY, CODED, DICTIONARY,
 IN_BODY) = range(10)
# The types that a coding has.
TYPES = {PACKED: {BOOL, INT, FLOAT, REFERENCE}, RAW: {INT, DOUBLE, DATE, REFERENCE, UUID},
         CODED: {TEXT, DATA}, DICTIONARY: {TEXT, DATA}, IN_BODY: {ANY}}
TYPES[SPARSE] = TYPES[PACKED] | TYPES[RAW]
for coding in (DECIMAL, BINARY, SPARSE_DECIMAL, SPARSE_BINARY):
    TYPES[coding] = {DOUBLE, DATE}
# The least and the largest scale, where it is not 0.
SCALES = {DECIMAL: (0, 15), SPARSE_DECIMAL: (0, 15), BINARY: (0, 52), SPARSE_BINARY: (0, 52),
          DICTIONARY: (1, 255)}


class Plan:
    """"Leaf plan fields": where the codes of a column lie in a tuple, and what they say."""

    def __init__(self, data):
        kind, self.width, self.flags, self.scale, self.bit, self.base = \
            struct.unpack("<BBBBHh", data)
        self.type, self.coding = kind & 15, kind >> 4
        need(self.type in TYPES.get(self.coding, ()), "a coding that the type does not have")
        self.is_sparse = self.coding in (SPARSE, SPARSE_DECIMAL, SPARSE_BINARY)
        self.specials = [flag for flag in (IS_NULL, IS_ABSENT, IS_COMMON) if self.flags & flag]
        self.bits = min(len(self.specials), 2) if self.is_sparse else self.width

    def check(self, leaf, scales=None):
        """Fields that a coding does not use are 0."""
        if self.type == UUID or self.coding == RAW:
            need(self.width == (128 if self.type == UUID else 64), "a raw value of another width")
        else:
            need(self.width <= (64 if self.is_sparse else 32 if self.coding >= CODED else 56),
                 "a code that is too wide")
        need(self.bit + self.bits <= leaf.tuple_bits, "a code outside the tuple")
        need(self.coding != RAW or self.bit % 8 == 0 and leaf.tuple_bits % 8 == 0,
             "a raw value that begins inside a byte")
        flags = 0 if self.coding == RAW else IS_NULL | IS_ABSENT
        if self.type != UUID:
            flags |= IS_COMMON if self.is_sparse else 0
            flags |= 0 if self.coding in (RAW, CODED, IN_BODY) else FAR
        need(self.flags & ~flags == 0, "specials that the coding does not have")
        least, most = scales or SCALES.get(self.coding, (0, 0))
        need(least <= self.scale <= most, "a scale that the coding does not have")
        self.find_base(leaf)

    def find_base(self, leaf):
        number = self.base & 0xFFFF
        if self.flags & FAR:
            need(number < len(leaf.far_bases), "a far base that is not there")
            self.base = leaf.far_bases[number]
        if self.coding in (RAW, IN_BODY) or self.type == UUID:
            need(self.base == 0, "a base that the coding does not use")
        if self.coding == CODED:
            self.table, self.base = leaf.table(number, self.type), 0
        if self.coding == DICTIONARY:
            self.place, self.base = self.base, 0
            self.table, self.entries = leaf.dictionary(self)


class EditedLeaf:
    """"Leaves of layout 2"."""

    def __init__(self, body):
        reader = Reader(body)
        self.basis, self.kept_bytes = reader.address(), reader.varint()
        self.gone, row = [], 0
        for _ in range(reader.varint()):
            row += reader.varint()
            self.gone.append(row)
            row += 1
        self.objects, object_ = [], 0
        for index in range(reader.varint()):
            step = reader.varint()
            need(step > 0 or index == 0, "objects that do not ascend")
            object_ += step
            self.objects.append(object_)
        need(object_ <= MASK, "an object that is too large")
        lengths = [reader.varint() for _ in self.objects]
        self.values = [reader.take(length) for length in lengths]
        reader.end()

    def applied(self, rows):
        """The rows of the basis, by key, with the changes."""
        need(not self.gone or self.gone[-1] < len(rows), "a row that the basis does not have")
        gone = set(self.gone)
        kept = {key: value for index, (key, value) in enumerate(rows.items()) if index not in gone}
        need(sum(map(len, kept.values())) == self.kept_bytes, "kept bytes that are others")
        own = {number.to_bytes(8, "big"): value
               for number, value in zip(self.objects, self.values)}
        need(not kept.keys() & own.keys(), "a row that is there twice")
        return dict(sorted({**kept, **own}.items()))


class Leaf:
    """"Leaves of layout 1"."""

    def __init__(self, store, body, count, offset):
        self.count, reader = count, Reader(body)
        columns, self.tuple_bits, far_bases, zero = (reader.number(2) for _ in range(4))
        self.raw_bytes, self.row_bytes_max, self.heap_slope = (reader.number(4) for _ in range(3))
        self.heap_base = reader.number(4, signed=True)
        places = self.places = reader.number(8), reader.number(8)
        set_hash = reader.number(8)
        set_length, zero_behind = reader.number(4), reader.number(4)
        need(columns <= 1024 and self.row_bytes_max <= 65536, "a leaf that is too large")
        # No leaf of layout 0 could have more, and the rows are to be those of one.
        need(self.raw_bytes <= 1 << 24, "a leaf of too many bytes")
        need(count * (columns + 1) <= 1 << 20, "a leaf of too many cells")
        need(zero == 0 and zero_behind == 0, "a reserved field that is not 0")
        self.tables = []
        if places[0]:
            self.tables = store.symbol_set(places, set_length, set_hash, offset)
        else:
            need(places[1] == set_hash == set_length == 0, "a leaf with half a place of a set")
        self.keys, self.heap_plan, self.versions, *self.columns = [
            Plan(reader.take(8)) for _ in range(3 + columns)]
        self.far_bases = [reader.number(8, signed=True) for _ in range(far_bases)]
        self.tuples = reader.take((count * self.tuple_bits + 7) // 8)
        self.heap = reader.rest()
        self.check_plans()

    def check_plans(self):
        keys, heap, versions = self.keys, self.heap_plan, self.versions
        need((keys.type, keys.coding, keys.flags & ~FAR) == (INT, PACKED, 0),
             "a plan that no keys have")
        need((heap.type, heap.coding, heap.flags, heap.base) == (INT, PACKED, 0, 0),
             "a plan that no heap has")
        need(versions.type == INT and not versions.flags & (IS_NULL | IS_ABSENT),
             "a plan that no versions have")
        keys.check(self, scales=(1, 255))
        for plan in (heap, versions, *self.columns):
            plan.check(self)

    def table(self, number, kind):
        """The symbols of a table of the leaf's set; None where bytes are as they are."""
        need(number <= (len(self.tables) if kind == TEXT else 0), "a table that is not there")
        return self.tables[number - 1] if number else None

    def dictionary(self, plan):
        need(0 <= plan.place <= len(self.heap), "a dictionary outside the heap")
        reader = Reader(self.heap)
        reader.at = plan.place
        table = self.table(reader.number(2), plan.type)
        ends = [reader.number(2) for _ in range(plan.scale)]
        entries = []
        for start, end in zip([0] + ends, ends):
            need(start <= end, "ends that do not ascend")
            entries.append(reader.take(end - start))
        return table, entries

    def entries(self):
        """Keys with versions and rows, as a leaf of layout 0 has them."""
        entries, before, raw_bytes, longest = {}, -1, 0, 0
        for index in range(self.count):
            code = self.bits(index, self.keys)
            key = self.keys.base + index * self.keys.scale + code & MASK
            need(key > before, "objects that do not ascend")
            version, row = self.row(index)
            entries[key.to_bytes(8, "big")] = version + row
            before, raw_bytes = key, raw_bytes + len(version + row)
            longest = max(longest, len(row))
            need(raw_bytes <= self.raw_bytes, "more bytes of rows than the leaf says")
        need((raw_bytes, longest) == (self.raw_bytes, self.row_bytes_max),
             "other bytes of rows than the leaf says")
        return entries

    def bits(self, index, plan):
        """The code that a plan has in the tuple of a row."""
        first = index * self.tuple_bits + plan.bit
        word = int.from_bytes(self.tuples[first >> 3:first + plan.bits + 7 >> 3], "little")
        return word >> (first & 7) & (1 << plan.bits) - 1

    def part(self, index):
        """Where the part of a row begins in the heap."""
        part = self.heap_base + index * self.heap_slope + self.bits(index, self.heap_plan)
        need(0 <= part <= len(self.heap), "a part outside the heap")
        return part

    def row(self, index):
        """The version and the row, of their codes and the row's part of the heap."""
        reader = Reader(self.heap)
        reader.at = self.part(index)
        version = self.number(self.versions, self.bits(index, self.versions), reader) & MASK
        values, length = [], 0
        for plan in self.columns:
            values.append(self.value(plan, self.bits(index, plan), reader))
            length += len(values[-1][1])
            need(length <= self.row_bytes_max, "a row that is too long")
        while values and values[-1][0] == ABSENT:
            values.pop()
        row = spelled_varint(len(values)) + b"".join(spelled_varint(tag) for tag, _ in values) \
            + b"".join(body for _, body in values)
        need(len(row) <= self.row_bytes_max, "a row that is too long")
        return spelled_varint(version), row

    def number(self, plan, code, reader):
        """What a code other than null and absent says: the base, or it and n."""
        if code < len(plan.specials):
            return plan.base
        if plan.is_sparse:
            return plan.base + reader.number((plan.width + 7) // 8)
        return plan.base + code - len(plan.specials)

    def value(self, plan, code, reader):
        """Tag and body of a column."""
        special = plan.specials[code] if code < len(plan.specials) else IS_COMMON
        if special != IS_COMMON:
            return (NULL if special == IS_NULL else ABSENT), b""
        number = self.number(plan, code, reader)
        if plan.coding == IN_BODY:
            inner = Reader(reader.take(number))
            tag = inner.varint()
            need(tag not in (ABSENT, NULL), "a body without a value")
            body = inner.take(body_length(tag))
            inner.end()
            return tag, body
        if plan.coding in (CODED, DICTIONARY):
            if plan.coding == DICTIONARY:
                need(number < len(plan.entries), "a number that the dictionary does not have")
                data = plan.entries[number]
            else:
                data = reader.take(number)
            # A byte of text has two of codes at most.
            need(len(data) <= 2 * self.row_bytes_max, "a row that is too long")
            data = expand(data, plan.table)
            return (32 if plan.type == TEXT else 33) + 2 * len(data), data
        if plan.type == UUID:
            return 13, number.to_bytes(16, "little")
        return self.numeric(plan, number & MASK)

    def numeric(self, plan, word):
        """Tag and body of a number by its 64 bits: "Leaf types"."""
        if plan.type == BOOL:
            need(word <= 1, "a bool that is none")
            return 2 + word, b""
        if plan.type == FLOAT:
            need(word < 1 << 32, "a float that is none")
            return 10, word.to_bytes(4, "little")
        if plan.type == REFERENCE:
            size = 4 if word < 1 << 32 else 8
            return (16 if size == 4 else 17), word.to_bytes(size, "little")
        if plan.type == INT:
            if word <= 1:
                return 4 + word, b""
            number = signed(word)
            size = next(size for size in (1, 2, 4, 8) if -1 << 8 * size - 1 <= number
                        < 1 << 8 * size - 1)
            return {1: 6, 2: 7, 4: 8, 8: 9}[size], number.to_bytes(size, "little", signed=True)
        body = word.to_bytes(8, "little")
        if plan.coding in (DECIMAL, SPARSE_DECIMAL):
            body = struct.pack("<d", float(signed(word)) / float(10 ** plan.scale))
        elif plan.coding in (BINARY, SPARSE_BINARY):
            body = struct.pack("<d", float(signed(word)) / float(2 ** plan.scale))
        return (11 if plan.type == DOUBLE else 12), body


class Schema:
    """"Schema"."""

    def __init__(self, data):
        reader = Reader(data)
        need(reader.number(1) == 1, "a schema of another layout")
        self.version, self.revision = reader.number(4), reader.number(4)
        need(reader.number(2) == 1, "another derivation")
        reader.number(2), reader.number(4)
        self.index_trees = set()
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
            self.index_trees.add(reader.number(4))
            reader.number(1)
            for _ in range(reader.varint()):
                reader.number(2), reader.number(1)
        entity["columns"] = columns
        return entity


class State:
    """The rows as of the newest commit: "The state of a commit"."""

    def __init__(self, store):
        self.store = store
        store.find()
        deltas, commit = [], store.accepted
        if commit.kind == CLOSE:
            commit = store.previous(commit)
            need(commit is not None, "a CLOSE without its commit")
        self.number = commit.number
        while commit.kind == DELTA:
            deltas.append(commit)
            commit = store.previous(commit)
            need(commit is not None, "a broken chain")
        need(commit.kind != CLOSE, "a commit that stands on a CLOSE")
        self.trees, self.rows, self.blob_places = {}, {}, {}
        self.load(commit)
        for delta in reversed(deltas):
            self.apply(delta)

    def load(self, commit):
        store = self.store
        reader = Reader(store.payload(commit, commit.front)[commit.front:])
        store.bases = set()
        for _ in range(reader.varint()):
            tree, level, address, rows = (reader.varint(), reader.number(1), reader.address(),
                                          reader.varint())
            entries = {}
            store.walk(tree, level, address, rows, commit.offset, entries)
            need(list(entries) == sorted(entries), "keys that do not ascend")
            self.trees[tree] = entries
        self.schema = self.newest_schema()
        need(not self.schema or not self.schema.index_trees & store.packed_trees,
             "a leaf of layout 1 in a tree without rows")
        for digest, entry in self.trees.get(1, {}).items():
            entry = Reader(entry)
            entry.varint(), entry.varint()
            if entry.number(1) == 1:
                self.blob_places[digest] = entry.place()
        self.large = {}
        for key, place in self.trees.get(3, {}).items():
            self.large[struct.unpack(">HQH", key)] = Reader(place).place()
        for entity in self.schema.entities if self.schema else []:
            rows = self.rows.setdefault(entity["number"], {})
            for key, entry in self.trees.get(entity["tree"], {}).items():
                entry = Reader(entry)
                rows[int.from_bytes(key, "big")] = (entry.varint(), decode_row(entry.rest()))

    def newest_schema(self):
        """The schema under "schema"; None in a store that never had one."""
        data = self.trees.get(0, {}).get(b"schema")
        return None if data is None else Schema(data)

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
                    entries.pop(key, None)
                continue
            rows, row_id = self.rows.setdefault(reader.varint(), {}), reader.varint()
            need((row_id in rows) == (operation != 1), "a change of a row that does not fit")
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
            path = os.path.join(self.store.blobs, digest.hex())
            need(os.path.isfile(path), "a blob without its file")
            with open(path, "rb") as file:
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
        need(name == "data" or is_text(body), "a text that is no UTF-8")
        if len(body) > 40:
            return "%s(%d bytes, %016x)" % (name, len(body), xxh64(body))
        if name == "data":
            return "data(%s)" % body.hex()
        return '"%s"' % "".join(
            c if " " <= c <= "~" and c not in '"\\' else "\\u{%x}" % ord(c)
            for c in body.decode("utf-8"))

    def lines(self):
        entities = self.schema.entities if self.schema else []
        for entity in sorted(entities, key=lambda entity: entity["number"]):
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
        self.prefix, self.known_row_trees = "", None

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
            frame, start = self.sound_frame(offset), offset
            while frame is None and offset < end:
                offset += 8
                frame = self.sound_frame(offset)
            if offset > start:
                self.title("No sound frame: a void, or a write that was torn")
                self.put(start, self.store.data[start:offset], "")
            if frame is not None:
                self.frame(frame)
                offset = frame.end
        if offset < len(self.store.data):
            self.title("Room for the next frames")
            self.zeros(offset, len(self.store.data) - offset, "")
        return self.lines

    def sound_frame(self, offset):
        frame = self.store.frame(offset)
        return frame if frame is not None and self.store.is_sound(frame) else None

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
        if data[4096:8192] == data[:4096]:
            self.lines.append("1000   the same 4096 bytes")
        else:
            self.put(4096, data[4096:8192], "another copy: the first sound one counts")

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
            tree, level, layout, count, _ = struct.unpack_from("<IBBHQ", payload)
            if layout == 1:
                self.packed_page(notes, Leaf(self.store, data, count, frame.offset))
            elif layout == 2:
                self.edited_page(notes)
            else:
                self.page(notes, tree, level, count)
        if frame.kind == VALUE and self.is_set(payload, data):
            self.symbol_set(notes)
        elif frame.kind == VALUE:
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

    def edited_page(self, notes):
        """A leaf of layout 2."""
        notes.address("basis")
        notes.varint("kept bytes")
        for _ in range(notes.varint("count of gone rows")):
            notes.varint("rows in front of a gone one")
        count = notes.varint("count of own rows")
        for index in range(count):
            notes.varint("object %d" % index)
        for index in range(count):
            notes.varint("length of value %d" % index)
        for index in range(count):
            notes.varint("value %d: commit" % index)
            self.row(notes)

    def packed_page(self, notes, leaf):
        """A leaf of layout 1."""
        for size, name in ((2, "columns"), (2, "tupleBits"), (2, "farBases"), (2, "zero"),
                           (4, "rawBytes"), (4, "rowBytesMax"), (4, "heapSlope")):
            notes.number(size, name)
        notes.number(4, "heapBase", signed=True)
        for size, name in ((8, "set %X" % leaf.places[0]), (8, "twin %X" % leaf.places[1]),
                           (8, "setHash"), (4, "setLength"), (4, "zeroBehindSet")):
            notes.number(size, name)
        names = ["the keys", "the heap", "the versions"]
        names += ["column %d" % column for column in range(len(leaf.columns))]
        for name, plan in zip(names, (leaf.keys, leaf.heap_plan, leaf.versions, *leaf.columns)):
            notes.number(1, "plan of %s, %s, %s: typeAndCoding" % (
                name, LEAF_TYPES[plan.type], LEAF_CODINGS[plan.coding]))
            for field in ("width", "specials", "scale"):
                notes.number(1, field)
            notes.number(2, "bit")
            notes.number(2, "base", signed=plan.coding != CODED and not plan.flags & FAR)
        for index, base in enumerate(leaf.far_bases):
            notes.number(8, "far base %d: %d" % (index, base))
        if leaf.tuple_bits % 8:
            notes.raw(len(leaf.tuples), "tuples of %d bits" % leaf.tuple_bits)
        else:
            for index in range(leaf.count):
                notes.raw(leaf.tuple_bits // 8, "tuple of row %d" % index)
        self.heap(notes, leaf)

    def heap(self, notes, leaf):
        """The heap of such a leaf, as far as its parts do not overlap."""
        start = notes.at
        parts = {leaf.part(index): index for index in range(leaf.count)}
        dictionaries = {plan.place: (column, plan) for column, plan in enumerate(leaf.columns)
                        if plan.coding == DICTIONARY}
        places = sorted({*parts, *dictionaries, len(leaf.heap)})
        notes.raw(places[0], "heap")
        for place, end in zip(places, places[1:]):
            if place in dictionaries and notes.at - start == place:
                column, plan = dictionaries[place]
                notes.number(2, "dictionary of column %d: table" % column)
                for index in range(plan.scale):
                    notes.number(2, "end of entry %d" % index)
                for index, entry in enumerate(plan.entries):
                    notes.raw(len(entry), "entry %d" % index)
            notes.raw(max(0, start + end - notes.at),
                      "heap of row %d" % parts[place] if place in parts else "heap")

    def is_set(self, payload, data):
        """Whether a value is a set of symbol tables: its front alone does not say so."""
        try:
            return payload[2:4] == b"\xff\xff" and symbol_tables(data) is not None
        except Damaged:
            return False

    def symbol_set(self, notes):
        for _ in range(notes.number(2, "count of tables")):
            notes.number(2, "column")
            counts = [notes.number(1, "symbols of %d bytes" % size) for size in range(1, 9)]
            code = 0
            for size, count in enumerate(counts, 1):
                for _ in range(count):
                    notes.raw(size, "symbol %d" % code)
                    code += 1

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
        if self.known_row_trees is None:
            self.known_row_trees = {entity["tree"] for entity in State(self.store).schema.entities}
        return self.known_row_trees


class Notes(Reader):
    """A reader that writes down what it reads."""

    def __init__(self, dump, base, data):
        super().__init__(data)
        self.dump, self.base, self.last = dump, base, 0

    def note(self, start, text):
        self.dump.put(self.base + start, self.data[start:self.at], text)

    def number(self, size, text, signed=False):
        start = self.at
        self.last = super().number(size, signed)
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


def log_lines(store):
    """One line for each commit frame, for each body, and for what is no frame."""
    store.find()
    # The chain of the accepted commit: what is below it and not of it is a void.
    chain, link = {}, store.accepted
    while link is not None:
        chain[link.offset] = link
        link = store.previous(link) if link.previous else None
    verdicts = {start: (end, verdict) for start, end, _, verdict in store.behind()}
    torn = {commit.offset for commit in store.torn}
    bodies = {commit.body_start: commit for commit in chain.values()}
    lines = ["offset  bytes  frame                          previous  durableEnd"]

    def line(offset, length, text, record=None, note=""):
        fields = "%9X  %10X" % (record.previous, record.durable_end) if record else ""
        lines.append(("%-6X %6d  %-30s%-21s  %s" % (offset, length, text, fields, note)).rstrip())

    offset = LOG_START
    while offset < store.data_end:
        commit, frame = store.commit(offset), store.frame(offset)
        behind = offset >= store.accepted.end
        void = "behind" if behind else "" if offset in chain else "void"
        if offset in bodies and bodies[offset].offset > offset:
            commit = bodies[offset]
            frames, kinds, note = offset, [], ""
            while frames < commit.offset:
                frame = store.frame(frames)
                if frame is None or frame.end > commit.offset:
                    note = "damaged: no frame of this body at %X" % frames
                    break
                kinds.append(frame.kind)
                frames = frame.end
            counts = ["%d %s" % (kinds.count(kind), KINDS[kind]) for kind in (VALUE, PAGE)
                      if kind in kinds]
            line(offset, commit.offset - offset, ", ".join(counts) or "body", note=note)
            offset = commit.offset
        elif commit is not None:
            flags = [name for bit, name in ((SETTLE, "settle"), (STACKED, "stacked"))
                     if commit.flags & bit]
            note = void
            if offset in torn:
                note = "torn: its chain breaks above its durableEnd"
            elif offset == store.accepted.offset:
                note = "accepted, proven" if offset == store.proven.offset else "accepted"
            elif offset == store.proven.offset:
                note = "proven"
            line(offset, commit.length,
                 ", ".join(["%s %d" % (KINDS[commit.kind], commit.number)] + flags), commit, note)
            offset = commit.end
        elif frame is not None and store.is_sound(frame):
            end = frame.end
            # Its tail word never arrived, and an older writer went on at that very place.
            if (end - 8) % 4096 == 0 and store.tail_word(end) is None and store.frame(end - 8):
                end -= 8
            line(offset, end - offset, KINDS[frame.kind], note=void)
            offset = end
        else:
            end = verdicts[offset][0] if offset in verdicts else store.next_header(offset + 8)
            part = store.data[offset:end]
            data = (offset + len(part.rstrip(b"\0")) + 7) // 8 * 8 if any(part) else offset
            if data > offset:
                text = "%s, not whole" % KINDS[frame.kind] if frame else "no frame"
                line(offset, data - offset, text,
                     note=verdicts[offset][1] if offset in verdicts else void)
            if end > data:
                line(data, end - data, "zeros", note="" if behind else void)
            offset = max(end, data)
    if offset < len(store.data):
        line(offset, len(store.data) - offset, "zeros: room")
    return lines


def main(arguments):
    paths = [argument for argument in arguments if not argument.startswith("--")]
    if len(paths) != 1 or not paths[0].endswith(".varve"):
        print(__doc__, file=sys.stderr)
        return 64
    try:
        store = Store(paths[0])
        if "--log" in arguments:
            print("\n".join(log_lines(store)))
            return 0
        if "--dump" in arguments:
            print("\n".join(Dump(store).all()[1:]))
            return 0
        state = State(store)
        print("store %s generation %d" % (store.store_id, store.generation))
        print("commit %d schema %d" % (state.number, state.schema.version if state.schema else 0))
        for line in state.lines():
            print(line)
        for start, end, _, verdict in store.behind():
            if verdict == "rotten":
                print("%s: the newest commit has rotted, at %x; this is the one before"
                      % (paths[0], start), file=sys.stderr)
                return 2
    except (Damaged, KeyError, IndexError, ValueError, struct.error) as error:
        print("%s: %s" % (paths[0], error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
