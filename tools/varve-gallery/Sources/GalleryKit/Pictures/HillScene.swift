// What generated pictures show, pixel by pixel.

import Foundation

/// What a generated picture shows: a sky that changes from top to bottom, a sun, and ranges of
/// hills, the nearest darkest. Rows are drawn one at a time.
struct HillScene {
    private struct Colour {
        var red: Double
        var green: Double
        var blue: Double

        init(hue: Double, saturation: Double, brightness: Double) {
            func channel(_ offset: Double) -> Double {
                let position = (offset + hue * 6).truncatingRemainder(dividingBy: 6)
                let share = max(0, min(position, 4 - position, 1))
                return 255 * brightness * (1 - saturation * share)
            }
            red = channel(5)
            green = channel(3)
            blue = channel(1)
        }

        func mixed(with other: Colour, share: Double) -> Colour {
            var result = self
            result.red += (other.red - red) * share
            result.green += (other.green - green) * share
            result.blue += (other.blue - blue) * share
            return result
        }

        var bytes: (UInt8, UInt8, UInt8) { (UInt8(red), UInt8(green), UInt8(blue)) }
    }

    private struct Range {
        var colour: (UInt8, UInt8, UInt8)
        var firstRow: [Int]  // per column: the first row, from the top, that belongs to the hills
    }

    private let width: Int
    private let height: Int
    private let skyTop: Colour
    private let skyBottom: Colour
    private let sun: (column: Int, row: Int, radius: Int)
    private let sunColour: (UInt8, UInt8, UInt8)
    private let ranges: [Range]  // nearest first

    init(width: Int, height: Int, random: inout SeededRandom) {
        self.width = width
        self.height = height
        let hue = Double.random(in: 0..<1, using: &random)
        skyTop = Colour(hue: hue, saturation: 0.55, brightness: 0.75)
        skyBottom = Colour(hue: hue + 0.12, saturation: 0.25, brightness: 1)
        sunColour = Colour(hue: hue + 0.15, saturation: 0.1, brightness: 1).bytes
        let radius = Int.random(in: width / 24...width / 10, using: &random)
        sun = (
            Int.random(in: radius..<(width - radius), using: &random),
            Int.random(in: radius..<(height / 2), using: &random), radius
        )

        let dark = Colour(hue: hue + 0.55, saturation: 0.6, brightness: 0.2)
        let count = Int.random(in: 3...6, using: &random)
        var ranges: [Range] = []
        for distance in 0..<count {
            let share = Double(distance + 1) / Double(count + 1)
            let waves = (1...4).map { octave in
                (
                    frequency: Double(octave) * Double.random(in: 1.5...4, using: &random),
                    phase: Double.random(in: 0..<(2 * Double.pi), using: &random),
                    weight: Double(height) * 0.07 / Double(octave)
                )
            }
            let base = Double(height) * (0.92 - 0.5 * share)
            let outline = (0..<width).map { column in
                let x = Double(column) / Double(width)
                return Int(
                    waves.reduce(base) { $0 + sin(x * $1.frequency * 6 + $1.phase) * $1.weight }
                )
            }
            let colour = dark.mixed(with: skyBottom, share: share * 0.8)
            ranges.append(Range(colour: colour.bytes, firstRow: outline))
        }
        self.ranges = ranges
    }

    /// Appends the red, green and blue bytes of one row.
    func appendRow(_ row: Int, to pixels: inout [UInt8]) {
        let sky = skyTop.mixed(with: skyBottom, share: Double(row) / Double(height)).bytes
        let sunRow = row - sun.row
        for column in 0..<width {
            var colour = sky
            let sunColumn = column - sun.column
            if sunColumn * sunColumn + sunRow * sunRow < sun.radius * sun.radius {
                colour = sunColour
            }
            for range in ranges where row >= range.firstRow[column] {
                colour = range.colour
                break
            }
            pixels.append(colour.0)
            pixels.append(colour.1)
            pixels.append(colour.2)
        }
    }
}
