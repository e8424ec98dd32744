// What the programs share: a line for each thing that holds, and a folder for the store.

import Dispatch
import Foundation

/// Prints what holds. If it does not, says so and ends the program with status 1.
public func check(_ what: String, _ holds: Bool) {
    // Unlike `print`, which keeps lines back while the output is a pipe.
    FileHandle.standardOutput.write(Data("\(holds ? "ok" : "NOT SO"): \(what)\n".utf8))
    if !holds { exit(1) }
}

/// Runs `body` with a folder that is gone afterwards. One that waits for ever is ended.
@MainActor public func withFolder(_ body: @MainActor (URL) async throws -> Void) async throws {
    let folder = URL.temporaryDirectory.appending(path: "varve-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    DispatchQueue.global().asyncAfter(deadline: .now() + 120) {
        check("the program ends in two minutes", false)
    }
    try await body(folder)
}
