// Reading values that left their rows.

internal import VarveBase
internal import VarveFormat

/// Reading values that left their rows.
enum LargeValues {
    static func read(
        _ key: [UInt8],
        in tree: Tree,
        _ readPlace: (ValuePlace) throws(EngineError) -> [UInt8]
    ) throws(EngineError) -> [UInt8] {
        guard let bytes = try tree.value(key) else {
            throw .damaged("a row names a large value that the store does not have")
        }
        return try readPlace(
            decoded { () throws(FormatError) in try ValuePlace(decoding: bytes) }
        )
    }
}
