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
        #expect(found?.bytes == 24_684_084 << 10)
        #expect(found?.leftShare == 12_000_000.0 / 24_684_084)
    }

    @Test func aGroupLimitsWhatIsBelowIt() throws {
        let found = memory([
            "/proc/meminfo": Self.meminfo, "/proc/self/cgroup": "0::/apps/mine\n",
            "/sys/fs/cgroup/apps/mine/memory.max": "max\n",
            "/sys/fs/cgroup/apps/memory.max": "1073741824\n",
            "/sys/fs/cgroup/apps/memory.current": "1000000000\n",
            // Both kinds of files in memory can go.
            "/sys/fs/cgroup/apps/memory.stat":
                "anon 5\ninactive_file 100000000\nactive_file 300000000\nfile 7\n",
        ])
        #expect(found?.bytes == 1_073_741_824)
        #expect(found?.leftShare == 473_741_824.0 / 1_073_741_824)
    }

    @Test func theLeastShareOfAnyLevelCounts() throws {
        let found = memory([
            "/proc/meminfo": "MemTotal: 67108864 kB\nMemAvailable: 1048576 kB\n",
            "/proc/self/cgroup": "0::/mine\n",
            "/sys/fs/cgroup/mine/memory.max": "8589934592\n",
            "/sys/fs/cgroup/mine/memory.current": "4294967296\n",
        ])
        #expect(found == MachineMemory(bytes: 8 << 30, leftShare: 1.0 / 64))
        let unknown = memory([
            "/proc/meminfo": "MemTotal: 67108864 kB\n", "/proc/self/cgroup": "0::/mine\n",
            "/sys/fs/cgroup/mine/memory.max": "8589934592\n",
        ])
        #expect(unknown == MachineMemory(bytes: 8 << 30, leftShare: nil))
    }

    @Test func theFirstVersionOfGroups() throws {
        let root = "/sys/fs/cgroup/memory"
        var files = [
            "/proc/meminfo": "MemTotal: 24684084 kB\nMemAvailable: 20000000 kB\n",
            "/proc/self/cgroup": "5:devices:/a\n4:memory:/box\n0::/\n",
            root + "/box/memory.limit_in_bytes": "536870912\n",
            root + "/box/memory.usage_in_bytes": "536870912\n",
            root + "/box/memory.stat": "total_inactive_file 536870913\n",
            root + "/memory.limit_in_bytes": "9223372036854771712\n",
        ]
        #expect(memory(files)?.bytes == 536_870_912)
        // No more can go than is used at all: the machine as a whole has less left then.
        #expect(memory(files)?.leftShare == 20_000_000.0 / 24_684_084)
        files[root + "/box/memory.limit_in_bytes"] = "9223372036854771712\n"
        #expect(memory(files)?.bytes == 24_684_084 << 10)
        #expect(memory(files)?.leftShare == 20_000_000.0 / 24_684_084)
    }

    @Test func whatIsNotSaidIsNotKnown() throws {
        #expect(memory([:]) == nil)
        #expect(memory(["/proc/meminfo": "MemTotal: nothing kB"]) == nil)
        let old = memory(["/proc/meminfo": "MemTotal: 1024 kB\n", "/proc/self/cgroup": "::::\n:"])
        #expect(old == MachineMemory(bytes: 1 << 20, leftShare: nil))
        #expect(memory(["/proc/meminfo": "MemTotal: 18446744073709551615 kB"]) == nil)
    }

    @Test func thisMachineHasMemory() throws {
        let now = try #require(MachineMemory.now())
        #expect(now.bytes > 64 << 20)
        #expect((0...1).contains(now.leftShare ?? 1))
    }
}
