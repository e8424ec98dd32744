// The layer `full`: no space, no right. Errors have their types, what was acknowledged is there,
// rows can be deleted on a full disk, and with space again the same handle goes on.

import Foundation
import VarveTesting

final class FullLayer: Layer {
    private let orders: Orders
    private let tally: Tally
    private var skipped: [String] = []

    init(_ orders: Orders, _ tally: Tally) {
        self.orders = orders
        self.tally = tally
    }

    /// What a case is about.
    enum Kind: CaseIterable {
        case tmpfs, ext4, sizeLimit, permissions
    }

    func run() throws {
        var number = 0
        while tally.cases < orders.cycles, !tally.hasViolations {
            let seed = orders.seed + UInt64(number / Kind.allCases.count)
            let kind = Kind.allCases[number % Kind.allCases.count]
            number += 1
            do {
                try run(kind, seed)
                tally.count()
                tally.note("\(kind)", 1)
            } catch let skip as Skip {
                let line = "SKIPPED full, \(kind): \(skip.reason)"
                if !skipped.contains(line) { skipped.append(line) }
                if skipped.count == Kind.allCases.count { throw skip }
                // It takes the place of a case, and is none.
                tally.skip(line)
                if number > 4 * orders.cycles { return }
            }
        }
    }

    private func run(_ kind: Kind, _ seed: UInt64) throws {
        var story: [String] = []
        var folder = "nowhere"
        do {
            switch kind {
            case .tmpfs:
                let disk = try SmallDisk(orders, isTemporary: true)
                folder = disk.path
                try fill(disk, seed, &story)
            case .ext4:
                let disk = try SmallDisk(orders, isTemporary: false)
                folder = disk.path
                try fill(disk, seed, &story)
            case .sizeLimit: try limit(seed, &story)
            case .permissions: try Permissions(orders).run(seed, &story)
            }
        } catch let violation as Violation {
            tally.report(
                Finding(
                    message: "\(kind), seed \(seed): \(violation)",
                    details: story.suffix(14).map { String($0) },
                    again: "full --seed \(seed) --cycles \(Kind.allCases.count)",
                    folder: folder
                )
            )
        }
    }

    /// The disk is full; then rows are deleted; then it is not full any more, or the process dies.
    private func fill(_ disk: SmallDisk, _ seed: UInt64, _ story: inout [String]) throws {
        defer { disk.remove() }
        let place = Place(folder: "\(disk.path)/store")
        mkdir(place.folder, 0o700)
        let filler = "\(disk.path)/filler"
        try disk.occupy(filler, leaving: (200 + Int(seed % 7) * 50) << 10)
        let referee = Referee(seed, place)
        referee.allowsErrors = true
        defer { story = referee.story }
        let process = try Filler(orders, referee, errors: "\(place.folder).errors", under: [])
        try process.untilFull()
        if seed % 3 == 2 {
            try process.die()
            // A full disk: who opens the store gets an error that says so, or the store.
            do {
                let store = try Library.open(place, isInline: true, isRoomy: true)
                let columns = try Columns(store)
                let rows = try store.snapshot().fetchIDs(RecordQuery(entity: columns.ballast.id))
                if let row = rows.first {
                    _ = try store.write { try $0.delete(columns.ballast.id, row) }
                }
                tally.note("deletes behind an opening on a full disk", 1)
                try? store.close()
            } catch {
                referee.note("on the full disk: \(error)")
                tally.note("on a full disk not opened, or nothing deleted", 1)
                if error.code != "noSpace" {
                    throw Violation("on a full disk the store does not open: \(error)")
                }
            }
            let reading = try Library.open(place, .readOnly)
            _ = try Contents(try reading.snapshot(), try Columns(reading))
            try reading.close()
            unlink(filler)
        } else {
            unlink(filler)
            try process.goOn()
        }
        unlink("\(place.folder).errors")
        referee.allowsErrors = false
        try referee.look(opensTwice: true)
        tally.note("saves acknowledged", referee.acknowledged)
    }

    /// The process may not make files longer than so much.
    private func limit(_ seed: UInt64, _ story: inout [String]) throws {
        guard findProgram("bash") != nil, let prlimit = findProgram("prlimit") else {
            throw Skip("no bash, or no prlimit")
        }
        let folder = try Folder(orders)
        let place = Place(folder: folder.path)
        let referee = Referee(seed, place)
        referee.allowsErrors = true
        defer { story = referee.story }
        let kibibytes = 100 + Int(seed % 11) * 17
        let process = try Filler(
            orders,
            referee,
            errors: "\(folder.path).errors",
            under: ["/bin/bash", "-c", "ulimit -S -f \(kibibytes); exec \"$0\" \"$@\""]
        )
        try process.untilFull()
        if seed % 3 == 2 {
            try process.die()
        } else {
            let words = [prlimit, "--pid", "\(process.child.process)", "--fsize=unlimited"]
            guard try Command.run(words) == 0 else { throw SetUpError("prlimit") }
            try process.goOn()
        }
        unlink("\(folder.path).errors")
        referee.allowsErrors = false
        try referee.look(opensTwice: true)
    }
}

/// A process that fills its disk.
final class Filler {
    let child: Child
    private let referee: Referee
    private var ballast = 0

    init(_ orders: Orders, _ referee: Referee, errors: String, under: [String]) throws {
        self.referee = referee
        child = try Child(
            "filler",
            under + [
                orders.program, "--role", "filler", "--folder", referee.place.folder, "--seed",
                "\(referee.seed)", "--writer", "1",
            ],
            errors: errors
        )
    }

    private func listen(until word: String) throws {
        let start = ContinuousClock.now
        while true {
            for line in child.hear() {
                try referee.hear(line, from: 1)
                if line == word { return }
            }
            if child.isAtEnd { throw Violation("the process ended with \(child.wait())") }
            if ContinuousClock.now - start > .seconds(Group.patience) {
                throw Violation("the process does not get on")
            }
            Child.wait(for: [child], milliseconds: 100)
        }
    }

    /// It has met the end of its space, and has deleted rows behind it.
    func untilFull() throws { try listen(until: "full") }

    /// There is space again.
    func goOn() throws {
        child.tell("space")
        try listen(until: "z")
        let ending = child.wait()
        if ending != .exited(0) { throw Violation("the process ended with \(ending)") }
    }

    func die() throws {
        child.signal(SIGKILL)
        _ = child.wait()
        for line in child.hear() { try referee.hear(line, from: 1) }
    }
}

/// A file system that is soon full.
final class SmallDisk {
    let path: String
    private var loop: LoopDisk?

    init(_ orders: Orders, isTemporary: Bool) throws {
        if !isTemporary {
            let disk = try LoopDisk(orders, "ext4", megabytes: 8)
            loop = disk
            path = disk.mountPoint
            return
        }
        if geteuid() != 0 { throw Skip("only root may mount") }
        let parent = orders.parent ?? FileManager.default.temporaryDirectory.path
        path = "\(parent)/varve-small-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        guard try Command.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", path]) == 0 else {
            rmdir(path)
            throw Skip("tmpfs cannot be mounted")
        }
    }

    /// Fills the disk but for some bytes.
    func occupy(_ name: String, leaving bytes: Int) throws {
        let file = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(file) }
        var status = statvfs()
        let block = [UInt8](repeating: 0x55, count: 32 << 10)
        while true {
            guard fstatvfs(file, &status) == 0 else { throw SetUpError("statvfs") }
            if Int(status.f_bavail) * Int(status.f_frsize) <= bytes { return }
            if write(file, block, block.count) <= 0 { return }
            // Delayed allocation counts only what is written.
            fsync(file)
        }
    }

    func remove() {
        if let loop { return loop.remove() }
        _ = try? Command.run(["umount", path])
        rmdir(path)
    }
}

/// What somebody finds who may not.
struct Permissions {
    private let orders: Orders
    init(_ orders: Orders) { self.orders = orders }

    private struct Step {
        var does: String
        var mode: String
        var folder: UInt16
        var file: UInt16
        var expects: [String]
    }

    func run(_ seed: UInt64, _ story: inout [String]) throws {
        if geteuid() != 0 { throw Skip("only root can be somebody else") }
        guard let setpriv = findProgram("setpriv") else { throw Skip("no setpriv") }
        let folder = try Folder(orders)
        let place = Place(folder: folder.path)
        let referee = Referee(seed, place)
        let words = [
            orders.program, "--role", "writer", "--folder", place.folder, "--seed", "\(seed)",
            "--writer", "1", "--steps", "12",
        ]
        guard try Command.run(words, isOurs: true) == 0 else {
            throw Violation("a writer without trouble fails")
        }
        // What it acknowledged was not heard: what is found is the truth.
        let known = try Contents.find(place)
        // The program itself must be within reach of nobody.
        let reach = try Command.run(nobody(setpriv) + [orders.program, "--role", "nothing"])
        if reach != 0 { throw Skip("nobody may not run \(orders.program)") }
        let steps = [
            Step(
                does: "opens for writing",
                mode: "write",
                folder: 0o755,
                file: 0o600,
                expects: ["permission"]
            ),
            Step(
                does: "opens for reading",
                mode: "read",
                folder: 0o755,
                file: 0o600,
                expects: ["permission"]
            ),
            Step(
                does: "opens for reading what all may read",
                mode: "read",
                folder: 0o755,
                file: 0o644,
                expects: ["ok"]
            ),
            Step(
                does: "opens for writing what it may only read",
                mode: "write",
                folder: 0o755,
                file: 0o644,
                expects: ["permission"]
            ),
            Step(
                does: "opens for reading in a folder it may not enter",
                mode: "read",
                folder: 0o700,
                file: 0o644,
                expects: ["permission"]
            ),
            Step(
                does: "makes a store in a folder it may only read",
                mode: "create",
                folder: 0o755,
                file: 0o644,
                expects: ["permission"]
            ),
        ]
        for step in steps {
            set(place, step.folder, step.file)
            let said = try probe(setpriv, place, step.mode, folder)
            story.append("nobody \(step.does): \(said)")
            if !step.expects.contains(said) {
                throw Violation("nobody \(step.does): \(said), not \(step.expects[0])")
            }
        }
        set(place, 0o700, 0o600)
        if try Contents.find(place) != known { throw Violation("the store is another one") }
        _ = referee
    }

    private func nobody(_ setpriv: String) -> [String] {
        [setpriv, "--reuid=65534", "--regid=65534", "--clear-groups"]
    }

    private func set(_ place: Place, _ folder: UInt16, _ file: UInt16) {
        chmod(place.folder, mode_t(folder))
        chmod(place.blobs, mode_t(folder))
        let names = (try? FileManager.default.contentsOfDirectory(atPath: place.blobs)) ?? []
        for name in names { chmod("\(place.blobs)/\(name)", mode_t(file)) }
        chmod(place.path, mode_t(file))
        chmod("\(place.path)-lock", mode_t(file))
    }

    /// What a process without rights says of an opening.
    private func probe(
        _ setpriv: String,
        _ place: Place,
        _ mode: String,
        _ folder: Folder
    ) throws -> String {
        let child = try Child(
            "probe",
            nobody(setpriv) + [
                orders.program, "--role", "probe", "--folder", place.folder, "--mode", mode,
            ],
            errors: "/dev/null"
        )
        var said: [String] = []
        while !child.isAtEnd {
            Child.wait(for: [child], milliseconds: 100)
            said += child.hear()
        }
        let ending = child.wait()
        return said.last ?? "\(ending)"
    }
}
