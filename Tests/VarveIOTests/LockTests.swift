// Locks between openings, and between processes.

import Foundation
import Testing
import VarveIO

@Suite struct LockTests {
    @Test(arguments: Implementation.allCases)
    func aSecondOpeningIsRefusedUntilTheFirstReleases(_ implementation: Implementation) throws {
        try implementation.withDirectory { directory in
            let first = try directory.lockExclusive("lock", wait: false)
            let error = #expect(throws: IOError.self) {
                try directory.lockExclusive("lock", wait: false)
            }
            #expect(error?.isHeld == true)
            let shared = #expect(throws: IOError.self) {
                try directory.lock("lock", byte: 0, kind: .shared, wait: false)
            }
            #expect(shared?.isHeld == true)
            // Another byte is another lock.
            let other = try directory.lock("lock", byte: 1, kind: .exclusive, wait: false)
            // Closing another opening of the file must not drop the lock.
            try directory.openFile("lock", mode: .readWrite).close()
            #expect(throws: IOError.self) { try directory.lockExclusive("lock", wait: false) }
            first.release()
            first.release()
            let second = try directory.lockExclusive("lock", wait: true)
            second.release()
            other.release()
        }
    }

    @Test(arguments: Implementation.allCases)
    func sharedLocksKeepOutExclusiveOnes(_ implementation: Implementation) throws {
        try implementation.withDirectory { directory in
            let one = try directory.lock("lock", byte: 7, kind: .shared, wait: false)
            let two = try directory.lock("lock", byte: 7, kind: .shared, wait: false)
            one.release()
            #expect(throws: IOError.self) {
                try directory.lock("lock", byte: 7, kind: .exclusive, wait: false)
            }
            two.release()
            try directory.lock("lock", byte: 7, kind: .exclusive, wait: false).release()
        }
    }

    @Test(arguments: Implementation.allCases)
    func aForgottenLockIsReleased(_ implementation: Implementation) throws {
        try implementation.withDirectory { directory in
            _ = try directory.lockExclusive("lock", wait: false)
            try directory.lockExclusive("lock", wait: false).release()
        }
    }

    @Test(arguments: Implementation.allCases)
    func aWaiterGetsTheLockAfterRelease(_ implementation: Implementation) throws {
        try implementation.withDirectory { directory in
            let first = try directory.lockExclusive("lock", wait: false)
            let done = DispatchSemaphore(value: 0)
            let thread = Thread {
                if let lock = try? directory.lockExclusive("lock", wait: true) {
                    lock.release()
                    done.signal()
                }
            }
            thread.start()
            #expect(done.wait(timeout: .now() + 0.05) == .timedOut)
            first.release()
            #expect(done.wait(timeout: .now() + 20) == .success)
        }
    }

    #if os(Linux)
    /// flock(1) cannot see these locks, so a second process is a Python one; skipped without it.
    @Test func anotherProcessIsRefusedAndItsDeathFreesTheLock() throws {
        guard FileManager.default.isExecutableFile(atPath: "/usr/bin/python3") else { return }
        try withTemporaryPath { path in
            let directory = try PosixDirectory.open(path: path)
            try directory.lockExclusive("lock", wait: false).release()
            let other = Process()
            other.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
            other.arguments = [
                "-c",
                """
                import fcntl, struct, sys, time
                file = open(sys.argv[1], "r+b")
                # struct flock: type, whence, start, length, pid; 37 is F_OFD_SETLK
                fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0))
                print("held", flush=True)
                time.sleep(60)
                """,
                "\(path)/lock",
            ]
            let output = Pipe()
            other.standardOutput = output
            try other.run()
            #expect(!output.fileHandleForReading.availableData.isEmpty)
            let error = #expect(throws: IOError.self) {
                try directory.lockExclusive("lock", wait: false)
            }
            #expect(error?.isHeld == true)
            // The hard way: a child may inherit a blocked SIGTERM.
            #expect(kill(other.processIdentifier, SIGKILL) == 0)
            other.waitUntilExit()
            try directory.lockExclusive("lock", wait: false).release()
        }
    }
    #endif
}
