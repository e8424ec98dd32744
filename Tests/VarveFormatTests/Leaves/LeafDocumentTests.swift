// The tables of Format.md about leaves of layout 1 say what the code does.

import Testing
import VarveBase

@testable import VarveFormat

@Suite("Leaves of layout 1 in the document") struct LeafDocumentTests {
    private let document: FormatDocument

    init() throws { document = try FormatDocument() }

    /// Reads bytes as a table of fields without gaps says they lie.
    private func fields(_ table: String, of bytes: [UInt8]) throws -> [String: UInt64] {
        var fields: [String: UInt64] = [:]
        var next = 0
        for row in try document.table(table).rows {
            let at = Int(try #require(FormatDocument.number(row["At"] ?? "")))
            let size = Int(try #require(FormatDocument.number(row["Size"] ?? "")))
            #expect(at == next, "\(table) at \(at)")
            next = at + size
            let word = bytes[at..<next].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            fields[try #require(row["Field"])] = word
        }
        #expect(next == bytes.count, "\(table)")
        return fields
    }

    @Test("Fields of the front lie where the document says") func frontOfALeaf() throws {
        var rows = LeafRows()
        for index in 0..<8 as Range<UInt64> {
            let row = RowCoding.encode([.int(1 << 40), .text(String(repeating: "x", count: 9))])
            rows.append(index * 3, index + 1, row)
        }
        let address = SymbolSetAddress(
            first: FileOffset(8192),
            twin: FileOffset(16_384),
            storedLength: 99,
            payloadHash: 5
        )
        let set = SymbolSet(columns: [], tables: [])
        let body = try #require(LeafEncoder.anyBody(of: rows, symbols: (set, address)))
        let front = unsafe try fields(
            "Leaf front fields",
            of: Array(body[..<PackedLeaf.frontLength])
        )
        #expect(
            front == [
                "columns": 2, "tupleBits": 3, "farBases": 1, "zero": 0, "rawBytes": 8 * 21,
                "rowBytesMax": 20, "heapSlope": 0, "heapBase": 13, "set": 8192, "twin": 16_384,
                "setHash": 5, "setLength": 99, "zeroBehindSet": 0,
            ]
        )
        let plans = (0..<5).map { index in
            Array(body[56 + 8 * index..<64 + 8 * index])
        }
        // The keys take no bits; versions 1 to 8 take three; the number has a far base.
        let keys = try fields("Leaf plan fields", of: plans[0])
        #expect(
            keys == [
                "typeAndCoding": 0x01, "width": 0, "specials": 0, "scale": 3, "bit": 0, "base": 0,
            ]
        )
        #expect(try fields("Leaf plan fields", of: plans[2])["width"] == 3)
        #expect(try fields("Leaf plan fields", of: plans[2])["base"] == 1)
        #expect(try fields("Leaf plan fields", of: plans[3])["specials"] == 128)
        let texts = try fields("Leaf plan fields", of: plans[4])
        #expect(texts["typeAndCoding"] == 0x84 && texts["scale"] == 1)
    }

    @Test("Types, codings and flags are those of the code") func numbersOfPlans() throws {
        let types: [LeafType] = [
            .bool, .int, .double, .uuid, .text, .date, .float, .reference, .data, .any,
        ]
        #expect(
            try document.table("Leaf types").numbers()
                == Dictionary(uniqueKeysWithValues: types.map { ("\($0)", UInt64($0.rawValue)) })
        )
        let codings: [LeafCoding] = [
            .packed, .decimal, .binary, .raw, .sparse, .sparseDecimal, .sparseBinary, .text,
            .dictionary, .body,
        ]
        #expect(
            try document.table("Leaf codings").numbers()
                == Dictionary(uniqueKeysWithValues: codings.map { ("\($0)", UInt64($0.rawValue)) })
        )
        #expect(LeafType(rawValue: 10) == nil && LeafCoding(rawValue: 10) == nil)
        #expect(
            try document.table("Leaf specials").numbers() == [
                "nil": LeafPlan.nilFlag, "absent": LeafPlan.absentFlag,
                "common": LeafPlan.commonFlag, "far": LeafPlan.farFlag,
            ]
        )
    }

    @Test("Limits are those of the code") func limits() throws {
        let limits: [String: Int] = unsafe [
            "frontLength": PackedLeaf.frontLength, "frontPlans": PackedLeaf.frontPlans,
            "planLength": LeafPlan.length, "widthMax": LeafPlan.widthMax,
            "rowBytesLimit": PackedLeaf.rowBytesLimit, "decimalMax": ScaledDoubles.decimalMax,
            "binaryMax": ScaledDoubles.binaryMax, "slopeMax": Int(KeyLine.slopeMax),
            "dictionaryMax": LeafDictionary.countMax, "rawBytesLimit": PackedLeaf.rawBytesLimit,
            "cellsLimit": PackedLeaf.cellsLimit,
        ]
        #expect(try document.table("Leaf limits").numbers().mapValues { Int($0) } == limits)
        #expect(
            try document.table("Symbol set limits").numbers().mapValues { Int($0) } == [
                "tablesMax": SymbolSet.tablesMax, "symbolsMax": SymbolTable.symbolsMax,
                "symbolBytesMax": SymbolTable.symbolBytesMax, "escape": Int(SymbolTable.escape),
            ]
        )
    }
}
