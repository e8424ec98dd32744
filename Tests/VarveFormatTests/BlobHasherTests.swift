// SHA-256 against the published vectors, on both paths.

import Testing
import VarveBase
import VarveFormat
import VarveTesting

@Suite struct BlobHasherTests {
    @Test(
        arguments: [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
            ),
            (
                "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                    + "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"
            ),
        ],
        [false, true]
    )
    func matchesThePublishedVectors(vector: (String, String), portable: Bool) {
        var hasher = BlobHasher(portable: portable)
        hasher.update(Array(vector.0.utf8))
        #expect(hasher.finalize().hexText == vector.1)
    }

    @Test(arguments: [false, true])
    func aMillionLettersMatch(portable: Bool) {
        var hasher = BlobHasher(portable: portable)
        let piece = [UInt8](repeating: 0x61, count: 999)
        for _ in 0..<1001 { hasher.update(piece) }
        hasher.update([0x61])
        #expect(
            hasher.finalize().hexText
                == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        )
    }

    @Test func piecesOfAnySizeGiveTheSameDigestOnBothPaths() {
        let seed: UInt64 = 6
        var random = SeededRandom(seed: seed)
        for count in Array(0...200) + [1000, 4096, 10_001] {
            let bytes = random.bytes(count)
            let whole = BlobHasher.digest(of: bytes)
            for portable in [false, true] {
                var hasher = BlobHasher(portable: portable)
                var at = 0
                while at < count {
                    let next = min(count, at + Int.random(in: 1...130, using: &random))
                    hasher.update(bytes[at..<next])
                    at = next
                }
                #expect(hasher.finalize() == whole, "seed \(seed), \(count) bytes")
            }
        }
    }

    @Test func aCopyGoesOnByItself() {
        var one = BlobHasher()
        one.update(Array("ab".utf8))
        var two = one
        one.update(Array("c".utf8))
        two.update(Array("d".utf8))
        #expect(one.finalize() == BlobHasher.digest(of: Array("abc".utf8)))
        #expect(two.finalize() == BlobHasher.digest(of: Array("abd".utf8)))
    }

    @Test func hexTextIsExactlySixtyFourLowercaseDigits() {
        let digest = BlobHasher.digest(of: [1, 2, 3])
        let text = digest.hexText
        #expect(text.utf8.count == 64)
        #expect(BlobDigest(hexText: text) == digest)
        #expect(digest.bytes.count == 32)
        for bad in [
            "", text.uppercased(), String(text.dropLast()), text + "0", " " + text.dropFirst(),
            "g" + text.dropFirst(), "0x" + text.dropFirst(2), "٣" + text.dropFirst(),
        ] {
            #expect(BlobDigest(hexText: bad) == nil)
        }
    }
}
