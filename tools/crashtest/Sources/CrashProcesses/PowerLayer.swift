// The layer `powercut`: a file system of its own, in a file, that is cut off at any moment.
//
// Order of acts: stop the writer, hear what it acknowledged, shut the file system down, kill the
// writer, unmount, mount, compare. A sync that is under way during the shutdown may return success:
// what is heard later says nothing.
//
// One cycle in eight is a control: the writer's syncs are left out, and the cut must be found. The
// stores of controls are thrown away.

import Foundation
import VarveTesting

final class PowerLayer: Layer {
    private static let controlOneIn = 8
    /// Saves of a control: enough that some of them are lost.
    private static let controlSaves = 30

    private let orders: Orders
    private let tally: Tally
    private var random: SeededRandom

    init(_ orders: Orders, _ tally: Tally) {
        self.orders = orders
        self.tally = tally
        random = SeededRandom(seed: orders.seed)
    }

    private func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }

    func run() throws {
        guard orders.shim != nil else { throw Skip("the control needs the library for LD_PRELOAD") }
        let disk = try LoopDisk(orders, orders.fileSystem, megabytes: LoopDisk.size(orders))
        defer { disk.remove() }
        var number = 0
        var seed = orders.seed
        var (controls, found) = (0, 0)
        var place = disk.place("store")
        var referee = Referee(seed, place, losesRelaxed: true)
        while tally.cases < orders.cycles {
            number += 1
            if number % Self.controlOneIn == 0 {
                controls += 1
                if try control(disk, seed) { found += 1 }
                continue
            }
            do {
                try cycle(disk, referee)
                tally.count()
                if tally.cases % 25 == 0 {
                    try referee.clean()
                    tally.note("saves acknowledged", referee.acknowledged)
                    seed += 1
                    place = disk.place("store-\(seed)")
                    referee = Referee(seed, place, losesRelaxed: true)
                }
            } catch let violation as Violation {
                tally.report(
                    Finding(
                        message: "store \(seed), cut \(number): \(violation)",
                        details: Array(referee.story.suffix(12)),
                        again: "powercut --fs \(orders.fileSystem) --seed \(orders.seed) "
                            + "--cycles \(orders.cycles)",
                        folder: disk.keep()
                    )
                )
                return
            }
        }
        tally.note("controls, of which found", controls)
        tally.note("controls found", found)
        if controls > 0, found * 10 < controls * 9 {
            tally.report(
                Finding(
                    message: "only \(found) of \(controls) cuts without syncs were found",
                    again: "powercut --fs \(orders.fileSystem) --seed \(orders.seed)",
                    folder: disk.image
                )
            )
        }
    }

    private func cycle(_ disk: LoopDisk, _ referee: Referee) throws {
        let errors = disk.errors
        let writers = pick(4) == 0 ? 2 : 1
        var children: [(number: UInt64, child: Child)] = []
        for number in 1...writers {
            var words = [
                orders.program, "--role", "writer", "--folder", referee.place.folder,
                "--seed", "\(referee.seed)", "--writer", "\(number)",
            ]
            if pick(2) == 0 { words.append("--compacts") }
            children.append((UInt64(number), try Child("writer \(number)", words, errors: errors)))
        }
        let wanted = referee.acknowledged + 1 + pick(60)
        let start = ContinuousClock.now
        while referee.acknowledged < wanted {
            Child.wait(for: children.map(\.child), milliseconds: 100)
            for (number, child) in children {
                for line in child.hear() { try referee.hear(line, from: number) }
                if child.isAtEnd { throw Violation("\(child.name) ended: \(child.wait())") }
            }
            if ContinuousClock.now - start > .seconds(Group.patience) {
                throw Violation("nobody saved for a minute")
            }
        }
        usleep(UInt32(pick(4000)))
        for (_, child) in children { child.stop() }
        for (number, child) in children {
            for line in child.hear() { try referee.hear(line, from: number) }
        }
        referee.note("the power goes")
        try disk.cut(children.map(\.child))
        try referee.look(verifies: tally.cases % 2 == 0, opensTwice: tally.cases % 4 == 0)
    }

    /// A writer whose syncs do nothing.
    /// - Returns: whether the loss was noticed.
    private func control(_ disk: LoopDisk, _ seed: UInt64) throws -> Bool {
        let place = disk.place("control-\(random.next())")
        let referee = Referee(seed, place, losesRelaxed: true)
        // A store that is there, and on disk.
        let words = [
            orders.program, "--role", "writer", "--folder", place.folder, "--seed", "\(seed)",
            "--writer", "1",
        ]
        let before = try Child("before", words + ["--steps", "5"], errors: disk.errors)
        while !before.isAtEnd {
            Child.wait(for: [before], milliseconds: 100)
            for line in before.hear() { try referee.hear(line, from: 1) }
        }
        _ = before.wait()
        let child = try Child(
            "control",
            words,
            environment: ["LD_PRELOAD": orders.shim ?? "", "VARVE_SHIM_NO_SYNC": "1"],
            errors: disk.errors
        )
        let wanted = referee.acknowledged + Self.controlSaves
        while referee.acknowledged < wanted, !child.isAtEnd {
            Child.wait(for: [child], milliseconds: 100)
            for line in child.hear() { try referee.hear(line, from: 1) }
        }
        child.stop()
        for line in child.hear() { try referee.hear(line, from: 1) }
        try disk.cut([child])
        defer { try? FileManager.default.removeItem(atPath: place.folder) }
        do { try referee.look() } catch is Violation { return true }
        return false
    }
}

/// A file system in a file.
final class LoopDisk {
    let image: String
    let mountPoint: String
    private let fileSystem: String
    private var isKept = false

    var errors: String { "\(image).errors" }

    static func size(_ orders: Orders) -> Int { orders.fileSystem == "xfs" ? 320 : 64 }

    init(_ orders: Orders, _ fileSystem: String, megabytes: Int) throws {
        self.fileSystem = fileSystem
        guard ["ext4", "xfs"].contains(fileSystem) else {
            throw Skip("\(fileSystem) cannot be cut off")
        }
        if geteuid() != 0 { throw Skip("only root may mount") }
        guard let make = findProgram("mkfs.\(fileSystem)") else {
            throw Skip("mkfs.\(fileSystem) is not installed")
        }
        let folder = orders.parent ?? FileManager.default.temporaryDirectory.path
        let name = "\(folder)/varve-disk-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        image = "\(name).image"
        mountPoint = name
        try FileManager.default.createDirectory(atPath: name, withIntermediateDirectories: true)
        let file = open(image, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0, ftruncate(file, off_t(megabytes) << 20) == 0 else {
            throw Skip("there is no room for a file system of \(megabytes) MB")
        }
        close(file)
        let quiet = fileSystem == "xfs" ? ["-q", "-f"] : ["-q", "-F", "-m", "0"]
        guard try Command.run([make] + quiet + [image]) == 0 else {
            remove()
            throw Skip("mkfs.\(fileSystem) fails")
        }
        do { try mount() } catch {
            remove()
            throw Skip("a file system in a file cannot be mounted: \(error)")
        }
    }

    private func mount() throws {
        let words = ["mount", "-t", fileSystem, "-o", "loop", image, mountPoint]
        guard try Command.run(words) == 0 else { throw SetUpError("mount of \(image)") }
    }

    /// A folder for a store in it, made and on disk.
    func place(_ name: String) -> Place {
        let folder = "\(mountPoint)/\(name)"
        mkdir(folder, 0o700)
        let descriptor = open(mountPoint, O_RDONLY | O_CLOEXEC)
        fsync(descriptor)
        close(descriptor)
        return Place(folder: folder)
    }

    /// From here on nothing reaches the disk; then the processes end, and the disk comes back.
    func cut(_ children: [Child]) throws {
        let descriptor = open(mountPoint, O_RDONLY | O_CLOEXEC)
        // The same call for ext4 and XFS: EXT4_IOC_SHUTDOWN, XFS_IOC_GOINGDOWN; without writing the
        // journal's waiting part.
        var flags: UInt32 = 2
        let code = ioctl(descriptor, 0x8004_587D, &flags)
        let reason = errno
        close(descriptor)
        for child in children {
            child.signal(SIGKILL)
            _ = child.wait()
        }
        if code != 0 { throw Skip("\(fileSystem) does not let itself be cut off: \(reason)") }
        try unmount()
        try mount()
    }

    private func unmount() throws {
        for _ in 0..<100 {
            if try Command.run(["umount", mountPoint]) == 0 { return }
            usleep(20_000)
        }
        throw SetUpError("\(mountPoint) cannot be unmounted")
    }

    func keep() -> String {
        isKept = true
        return image
    }

    func remove() {
        _ = try? Command.run(["umount", mountPoint])
        rmdir(mountPoint)
        unlink(errors)
        if !isKept { unlink(image) }
    }
}

/// A program of the system that runs to its end.
enum Command {
    /// - Parameter isOurs: a process of this program: it would end with its standard input.
    /// - Returns: its exit code.
    static func run(_ words: [String], isOurs: Bool = false) throws -> Int32 {
        guard let program = findProgram(words[0]) ?? (words[0].hasPrefix("/") ? words[0] : nil)
        else { throw Skip("\(words[0]) is not installed") }
        let child = try Child(words[0], [program] + words.dropFirst(), errors: "/dev/null")
        if !isOurs { child.dismiss() }
        while !child.isAtEnd {
            Child.wait(for: [child], milliseconds: 1000)
            _ = child.hear()
        }
        if case .exited(let code) = child.wait() { return code }
        return -1
    }
}
