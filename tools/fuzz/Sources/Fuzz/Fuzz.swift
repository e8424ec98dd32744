// The entry points that libFuzzer calls: one program for all targets, chosen by VARVE_FUZZ_TARGET.
//
// One program, because it is built and linked once. A broken promise ends the process, like a trap,
// so that libFuzzer keeps the input.

import FuzzTargets

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

@_silgen_name("LLVMFuzzerMutate")
private func libFuzzerMutate(
    _ data: UnsafeMutablePointer<UInt8>,
    _ size: Int,
    _ sizeMax: Int
) -> Int

@_silgen_name("LLVMFuzzerRunDriver")
private func libFuzzerRun(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ testOneInput: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// What SwiftPM links as `main`, since it is not told of libFuzzer: its own flags for two
/// sanitizers leave the compiler with the last of them, and nothing would guide the fuzzer.
@_cdecl("Fuzz_main")
public func begin(
    _ count: CInt,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
) -> CInt {
    var count = count
    var arguments = arguments
    return libFuzzerRun(&count, &arguments, testOneInput)
}

/// The target of this process.
private let target: FuzzTarget = {
    let name = getenv("VARVE_FUZZ_TARGET").map { String(cString: $0) } ?? ""
    guard let target = FuzzTarget.all.first(where: { $0.name == name }) else {
        let names = FuzzTarget.all.map(\.name).joined(separator: ", ")
        refuse("VARVE_FUZZ_TARGET must be one of: \(names)")
    }
    return target
}()

private func say(_ text: String) {
    print(text)
    fflush(nil)
}

/// The way it was called is wrong: no finding.
private func refuse(_ text: String) -> Never {
    say(text)
    exit(2)
}

/// Called once, before anything else.
@_cdecl("LLVMFuzzerInitialize")
public func initialize(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>
) -> CInt {
    if let folder = getenv("VARVE_FUZZ_SEEDS").map({ String(cString: $0) }) {
        for seed in target.seeds() { write(seed.bytes, to: "\(folder)/seed-\(seed.name)") }
        exit(0)
    }
    // Before the first input: what a target prepares once is not measured with it.
    target.prepare()
    return 0
}

private func write(_ bytes: [UInt8], to path: String) {
    guard let file = fopen(path, "w") else { refuse("\(path) cannot be written") }
    fwrite(bytes, 1, bytes.count, file)
    fclose(file)
}

/// One input.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let bytes = [UInt8](UnsafeBufferPointer(start: data, count: size))
    do {
        try target.run(bytes)
    } catch {
        say("a promise is broken: \(error)")
        // libFuzzer keeps the input of whatever dies by a signal.
        abort()
    }
    return 0
}

/// libFuzzer's own mutation of some bytes.
private func mutated(_ bytes: [UInt8], _ sizeMax: Int) -> [UInt8] {
    var room = bytes
    room.append(contentsOf: repeatElement(0, count: max(1, sizeMax - bytes.count)))
    let count = room.withUnsafeMutableBufferPointer { buffer -> Int in
        guard let base = buffer.baseAddress else { return 0 }
        return libFuzzerMutate(base, bytes.count, max(bytes.count, sizeMax))
    }
    return Array(room.prefix(count))
}

/// Another input of one, in its place.
@_cdecl("LLVMFuzzerCustomMutator")
public func customMutator(
    _ data: UnsafeMutablePointer<UInt8>,
    _ size: Int,
    _ sizeMax: Int,
    _ seed: CUnsignedInt
) -> Int {
    guard let mutate = target.mutate else { return libFuzzerMutate(data, size, sizeMax) }
    let bytes = [UInt8](UnsafeBufferPointer(start: data, count: size))
    let result = mutate(bytes, UInt64(seed), mutated)
    guard !result.isEmpty, result.count <= sizeMax else {
        return libFuzzerMutate(data, size, sizeMax)
    }
    for (index, byte) in result.enumerated() { data[index] = byte }
    return result.count
}
