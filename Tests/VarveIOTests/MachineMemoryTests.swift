// What the system's files say of memory. The texts are as Linux writes them, cut short.

import Testing

@testable import VarveIO

@Suite("Memory of the machine")
struct MachineMemoryTests {
    private static let meminfo = """
        MemTotal:       24684084 kB
        MemFree:         1234567 kB
        MemAvailable:   12000000 kB
        Buffers:           12345 kB
        """

    private func memory(_ files: [String: String]) -> MachineMemory? {
        MachineMemory { files[$0] }
    }

    @Test func withoutAGroupItIsTheMachines() throws {
        let found = memory(["/proc/meminfo": Self.meminfo, "/proc/self/cgroup": "0::/\n"])
        #expect(found == MachineMemory(bytes: 24_684_084 << 10, availableBytes: 12_000_000 << 10))
    }

    @Test func aGroupLimitsWhatIsBelowIt() throws {
        let found = memory([
            "/proc/meminfo": Self.meminfo, "/proc/self/cgroup": "0::/apps/mine\n",
            "/sys/fs/cgroup/apps/mine/memory.max": "max\n",
            "/sys/fs/cgroup/apps/memory.max": "1073741824\n",
            "/sys/fs/cgroup/apps/memory.current": "1000000000\n",
            "/sys/fs/cgroup/apps/memory.stat": "anon 5\ninactive_file 400000000\nfile 7\n",
        ])
        #expect(found == MachineMemory(bytes: 1_073_741_824, availableBytes: 473_741_824))
    }

    @Test func theFirstVersionOfGroups() throws {
        let root = "/sys/fs/cgroup/memory"
        var files = [
            "/proc/meminfo": Self.meminfo,
            "/proc/self/cgroup": "5:devices:/a\n4:memory:/box\n0::/\n",
            root + "/box/memory.limit_in_bytes": "536870912\n",
            root + "/box/memory.usage_in_bytes": "536870912\n",
            root + "/box/memory.stat": "total_inactive_file 536870913\n",
            root + "/memory.limit_in_bytes": "9223372036854771712\n",
        ]
        #expect(memory(files)?.bytes == 536_870_912)
        // No more is idle than is used at all.
        #expect(memory(files)?.availableBytes == 536_870_912)
        files[root + "/box/memory.limit_in_bytes"] = "9223372036854771712\n"
        #expect(memory(files)?.bytes == 24_684_084 << 10)
        #expect(memory(files)?.availableBytes == 12_000_000 << 10)
    }

    @Test func whatIsNotSaidIsNotKnown() throws {
        #expect(memory([:]) == nil)
        #expect(memory(["/proc/meminfo": "MemTotal: nothing kB"]) == nil)
        let old = memory(["/proc/meminfo": "MemTotal: 1024 kB\n", "/proc/self/cgroup": "::::\n:"])
        #expect(old == MachineMemory(bytes: 1 << 20, availableBytes: nil))
        #expect(memory(["/proc/meminfo": "MemTotal: 18446744073709551615 kB"]) == nil)
    }

    @Test func thisMachineHasMemory() throws {
        let now = try #require(MachineMemory.now())
        #expect(now.bytes > 64 << 20)
        #expect(now.availableBytes ?? 1 > 0 && now.availableBytes ?? 0 <= now.bytes)
    }
}
