// One measurement in a process of its own: this very program, started again.

public import Foundation

/// Runs requests by starting this very program again.
public enum ChildProcess {
    /// Starts `program measure REQUEST` and returns what it printed.
    public static func execute(_ request: ProcessRequest, program: String) throws -> Data {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        let text = String(decoding: try JSONEncoder().encode(request), as: UTF8.self)
        process.arguments = ["measure", text]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationReason == .exit, process.terminationStatus == 0 else {
            throw BenchmarkError(
                "\(request.workload): \(request.contestant) failed "
                    + "(status \(process.terminationStatus))"
            )
        }
        return data
    }

    /// Does what a request asks for; the other side of `execute`.
    public static func answer(
        _ text: String,
        workload find: (String) -> Workload?
    ) throws -> Data {
        let request = try JSONDecoder().decode(ProcessRequest.self, from: Data(text.utf8))
        guard let workload = find(request.workload),
            let contestant = workload.contestants.first(where: { $0.key == request.contestant })
        else { throw BenchmarkError("no contestant \(request.contestant)") }
        if request.preparing {
            try contestant.stock?.fill(request.session)
            return Data()
        }
        return try JSONEncoder().encode(contestant.measure(request.session))
    }
}
