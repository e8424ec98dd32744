// A process of the campaign: started, listened to, stopped and killed.
//
// Invariants
// - Nothing of one child is open in another: who ends closes his pipes.
// - What a child said before it died is heard: the pipe is read to its end before it is judged.

import Foundation

/// How a process ended.
enum Ending: Equatable, CustomStringConvertible {
    case exited(Int32)
    case killed(Int32)

    var description: String {
        switch self {
        case .exited(let code): "exit \(code)"
        case .killed(let signal): "signal \(signal)"
        }
    }
}

/// A process that was started.
final class Child {
    let name: String
    let process: pid_t
    private var input: Int32
    private let output: Int32
    private var unfinished: [UInt8] = []
    private(set) var isAtEnd = false
    private(set) var ending: Ending?

    /// - Parameters:
    ///   - words: the program's path and its arguments.
    ///   - errors: a file that its standard error is added to.
    init(
        _ name: String,
        _ words: [String],
        environment: [String: String] = [:],
        errors: String
    ) throws {
        self.name = name
        var pipes: [Int32] = []
        for _ in 0..<2 {
            var ends: [Int32] = [0, 0]
            guard pipe(&ends) == 0 else { throw SetUpError("pipe: \(errno)") }
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            pipes += ends
        }
        #if canImport(Darwin)
        var actions: posix_spawn_file_actions_t?
        #else
        var actions = posix_spawn_file_actions_t()
        #endif
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, pipes[0], 0)
        posix_spawn_file_actions_adddup2(&actions, pipes[3], 1)
        posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY | O_CREAT | O_APPEND, 0o644)
        var all = ProcessInfo.processInfo.environment
        all.merge(environment) { $1 }
        // A trap is to end the process at once: nobody reads the backtrace.
        all["SWIFT_BACKTRACE"] = "enable=no"
        var arguments = words.map { strdup($0) } + [nil]
        var variables = all.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in arguments + variables { free(text) } }
        var process: pid_t = 0
        let code = posix_spawn(&process, words[0], &actions, nil, &arguments, &variables)
        close(pipes[0])
        close(pipes[3])
        (input, output) = (pipes[1], pipes[2])
        self.process = process
        guard code == 0 else {
            close(input)
            close(output)
            throw SetUpError("\(words[0]) cannot be started: \(String(cString: strerror(code)))")
        }
        _ = fcntl(output, F_SETFL, O_NONBLOCK)
    }

    deinit {
        if ending == nil {
            signal(SIGKILL)
            _ = wait()
        }
        if input >= 0 { close(input) }
        close(output)
    }

    /// The whole lines that it has said since; returns at once.
    func hear() -> [String] {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while !isAtEnd {
            let count = read(output, &buffer, buffer.count)
            if count > 0 {
                unfinished += buffer[..<count]
            } else if count == 0 {
                isAtEnd = true
            } else if errno != EINTR {
                break
            }
        }
        guard let last = unfinished.lastIndex(of: UInt8(ascii: "\n")) else { return [] }
        let lines = unfinished[..<last].split(separator: UInt8(ascii: "\n"))
            .map { String(decoding: $0, as: UTF8.self) }
        unfinished.removeSubrange(...last)
        return lines
    }

    func signal(_ number: Int32) { if ending == nil { kill(process, number) } }

    /// Asks it to close its store and to end.
    func dismiss() {
        if input >= 0 { close(input) }
        input = -1
    }

    /// Says something to it.
    func tell(_ line: String) {
        let bytes = Array("\(line)\n".utf8)
        _ = write(input, bytes, bytes.count)
    }

    /// Returns when it has ended.
    func wait() -> Ending {
        if let ending { return ending }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0 && errno == EINTR {}
        let low = status & 0x7F
        let ending = low == 0 ? Ending.exited(status >> 8 & 0xFF) : .killed(low)
        self.ending = ending
        return ending
    }

    /// Whether it has ended; returns at once.
    var hasEnded: Bool {
        if ending != nil { return true }
        var status: Int32 = 0
        guard waitpid(process, &status, WNOHANG) == process else { return false }
        let low = status & 0x7F
        ending = low == 0 ? .exited(status >> 8 & 0xFF) : .killed(low)
        return true
    }

    /// Stops it, and returns when it does nothing more.
    func stop() {
        signal(SIGSTOP)
        var status: Int32 = 0
        while waitpid(process, &status, WUNTRACED) < 0 && errno == EINTR {}
        if status & 0xFF != 0x7F { ending = .killed(status & 0x7F) }
    }

    /// Waits until one of the children says something or ends, `milliseconds` at most.
    static func wait(for children: [Child], milliseconds: Int) {
        var polls = children.filter { !$0.isAtEnd }.map {
            pollfd(fd: $0.output, events: Int16(POLLIN), revents: 0)
        }
        if polls.isEmpty {
            usleep(UInt32(milliseconds) * 1000)
        } else {
            _ = poll(&polls, nfds_t(polls.count), Int32(milliseconds))
        }
    }
}

/// The machine does not let a layer run: it is skipped, not passed.
struct Skip: Error {
    let reason: String
    init(_ reason: String) { self.reason = reason }
}

/// The campaign itself could not do something; no word about the store.
struct SetUpError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
