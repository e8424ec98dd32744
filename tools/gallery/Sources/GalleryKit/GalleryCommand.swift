package import ArgumentParser
import Foundation

/// The command line.
package struct GalleryCommand: AsyncParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "gallery",
        abstract: "Shows 40,000 rows and hundreds of pictures going by in flat memory.",
        subcommands: [])

    package init() {}
    package func run() async throws {
        let c = try GeoNames.cities()
        let d = try GeoNames.countries()
        let m = try ResidentMemory()
        print(c.count, d.count, try m.sample(), try m.peak())
        let t = ContinuousClock.now
        var n = 0
        for i in 0..<100 {
            let g = GeneratedPicture(seed: UInt64(i))
            var k = 0
            var d = Data()
            g.write { k += $0.count; if i < 4 {d += $0} }
            precondition(k == g.byteCount)
            if i < 4 { try d.write(to: URL(filePath: "/tmp/p\(i).png")) }
            n += k
        }
        print(n, ContinuousClock.now - t, try m.sample(), try m.peak())
        func noisy(_ v: Int) -> Int { v + Int.random(in: -2_000_000...2_000_000) }
        let chart = MemoryChart([100, 400, 4000].flatMap { n in (1...4).compactMap { r in
            n > 400 && r < 3 ? nil : MemoryChart.Series(round: r, pictures: n, windowBytes: 21_000_000, bytesOverStart: (0..<n).map { r == 1 ? $0 * 1_950_000 : noisy(min(10, $0) * 2_000_000 + 4_000_000) }) } })
        try chart.svg.write(toFile: "/tmp/c.svg", atomically: true, encoding: .utf8)
        let chart2 = MemoryChart([100].flatMap { n in (1...4).compactMap { r in
            n > 400 && r < 3 ? nil : MemoryChart.Series(round: r, pictures: n, windowBytes: 21_000_000, bytesOverStart: (0..<n).map { r == 1 ? $0 * 1_950_000 : noisy(min(10, $0) * 2_000_000 + 4_000_000) }) } })
        try chart2.svg.write(toFile: "/tmp/c1.svg", atomically: true, encoding: .utf8)
    }
}
