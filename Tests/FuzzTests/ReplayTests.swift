// The inputs of the fuzzers, without sanitizers: what they begin with, and what once failed.

import Foundation
import Testing
import VarveTesting

@Suite("Fuzz targets") struct ReplayTests {
    /// What is kept of a target: inputs that failed once, in tools/fuzz/Corpus.
    private static func kept(_ target: FuzzTarget) throws -> [(name: String, bytes: [UInt8])] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "tools/fuzz/Corpus/\(target.name)")
        guard FileManager.default.fileExists(atPath: folder.path) else { return [] }
        return try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted().map {
            ($0, [UInt8](try Data(contentsOf: folder.appending(path: $0))))
        }
    }

    @Test("Every input that failed once runs", arguments: FuzzTarget.all.map(\.name))
    func everyInputThatFailedOnceRuns(name: String) throws {
        let target = try #require(FuzzTarget.all.first { $0.name == name })
        target.prepare()
        let kept = try Self.kept(target)
        // Bugs of forged files have no other test than their inputs.
        if name == "open-fixed" { #expect(kept.count >= 8) }
        for input in kept {
            do { try target.run(input.bytes) } catch { Issue.record("\(input.name): \(error)") }
        }
    }

    @Test("Every seed runs", arguments: FuzzTarget.all.map(\.name).filter { $0 != "open-fixed" })
    func everySeedRuns(name: String) throws {
        let target = try #require(FuzzTarget.all.first { $0.name == name })
        target.prepare()
        let seeds = target.seeds()
        #expect(seeds.count >= 10)
        for seed in seeds {
            do { try target.run(seed.bytes) } catch { Issue.record("\(seed.name): \(error)") }
        }
    }

    /// Without the mutator's help nothing gets behind the first hash; so its output must be sound
    /// where it changed nothing, and reach what lies behind the hashes where it did.
    @Test("A store taken apart and put together is the same store")
    func aStoreTakenApartAndPutTogetherIsTheSameStore() throws {
        for seed in SeedStore.all where seed.name == "three-levels" || seed.name == "history" {
            let log = try #require(LogParts(seed.bytes))
            #expect(log.parts.count > 4)
            for compresses in [false, true] {
                let disk = StoreChecks.disk(log.assembled(compresses: compresses))
                #expect(try StoreChecks.look(disk), "\(seed.name)")
            }
        }
    }

    @Test("The same changes give the same bytes, and the checks hold")
    func changedStoresKeepThePromises() throws {
        // The fuzzers roll dice; a test that stands in the way of others does not.
        var random = SeededRandom(seed: 1)
        let seeds = SeedStore.all.filter { LogParts($0.bytes) != nil }
        for _ in 0..<12 {
            let seed = seeds[Int(random.next() % UInt64(seeds.count))]
            let number = random.next()
            func mutated() -> [UInt8] {
                var own = SeededRandom(seed: number)
                return LogMutation.mutate(seed.bytes, seed: number) { bytes, _ in
                    guard !bytes.isEmpty else { return [7] }
                    var bytes = bytes
                    bytes[Int(own.next() % UInt64(bytes.count))] ^= 1 << UInt8(own.next() % 8)
                    return bytes
                }
            }
            let bytes = mutated()
            #expect(bytes == mutated())
            do { try StoreChecks.run(on: bytes) } catch {
                Issue.record("\(seed.name), seed \(random.seed), \(number): \(error)")
            }
        }
    }
}
