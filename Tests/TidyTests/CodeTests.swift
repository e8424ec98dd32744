// What may stand in a source file: widths, lengths, unsafe code, calls that are banned.
import Testing

@Suite("Code") struct CodeTests {
    /// The only files that may say `unsafe`. Each use carries its reason on the line above.
    private static let fence: Set<String> = [
        "Sources/VarveBase/ByteBlocks.swift",
        "Sources/VarveBase/TracedMutex.swift",
        "Sources/VarveFormat/ByteReader.swift",
        "Sources/VarveFormat/ByteWriter.swift",
        "Sources/VarveFormat/BlockCompression.swift",
        "Sources/VarveFormat/ComingMemory.swift",
        // Rows are read where leaves hold them, and built in one block: the hottest code there is.
        "Sources/VarveFormat/RowBytes.swift",
        "Sources/VarveFormat/RowEncoder.swift",
        "Sources/VarveRecords/Rows/RowMemory.swift",
        "Sources/VarveRecords/Rows/HeadTable.swift",
        "Sources/VarveRecords/Rows/RowList.swift",
        "Sources/VarveRecords/Rows/RowLink.swift",
        "Sources/VarveRecords/Rows/EndedRows.swift",
        "Sources/VarveFormat/FrameHash.swift",
        "Sources/VarveFormat/BlobHasher.swift",
        // Leaves are made and read where they lie, and so are the tables of their texts.
        "Sources/VarveFormat/Leaves/LeafBody.swift",
        "Sources/VarveFormat/Leaves/LeafCells.swift",
        "Sources/VarveFormat/Leaves/LeafEncoder.swift",
        "Sources/VarveFormat/Leaves/LeafNumbers.swift",
        "Sources/VarveFormat/Leaves/LeafRowWriter.swift",
        "Sources/VarveFormat/Leaves/LeafTexts.swift",
        "Sources/VarveFormat/Leaves/PackedLeaf.swift",
        "Sources/VarveFormat/Leaves/PackedLeaf+Checks.swift",
        "Sources/VarveFormat/Leaves/PackedLeaf+Conditions.swift",
        "Sources/VarveFormat/Leaves/PackedLeaf+Heap.swift",
        "Sources/VarveFormat/Leaves/PackedLeaf+Numbers.swift",
        "Sources/VarveFormat/Leaves/PackedLeaf+Rows.swift",
        "Sources/VarveFormat/Leaves/PackedRowReader.swift",
        "Sources/VarveFormat/Texts/SymbolMemory.swift",
        "Sources/VarveIO/SystemCalls.swift",
        "Sources/VarveIO/Threads.swift",
        "Sources/VarveIO/FileWatch.swift",
        "Sources/VarveIO/MappedWord.swift",
        // Nodes: plain memory, read without locks and reference counts.
        "Sources/VarveEngine/Tree/Nodes/TreeNode.swift",
        "Sources/VarveEngine/Tree/Nodes/TreeNode+Children.swift",
        "Sources/VarveEngine/Tree/Nodes/TreeNode+Edited.swift",
        "Sources/VarveEngine/Tree/Nodes/TreeNode+Packed.swift",
        "Sources/VarveEngine/Tree/Nodes/TreeNode+Reading.swift",
        "Sources/VarveEngine/Tree/Nodes/TreeNode+Slots.swift",
        "Sources/VarveEngine/Tree/Nodes/LeafSweep.swift",
        "Sources/VarveEngine/Tree/Nodes/NodeView.swift",
        "Sources/VarveEngine/Tree/Nodes/InnerDecoding.swift",
        "Sources/VarveEngine/Tree/Nodes/LeafDecoding.swift",
        "Sources/VarveEngine/Tree/Nodes/LeafScan.swift",
        "Sources/VarveEngine/Tree/Cache/NodeTable.swift",
        "Sources/VarveEngine/Tree/Cache/NodeBlocks.swift",
        "Sources/VarveEngine/Tree/Cache/NodeCache.swift",
        "Sources/VarveEngine/Tree/Cache/NodeCache+Scans.swift",
        "Sources/VarveEngine/Tree/Cache/ReaderEpochs.swift",
        "Sources/VarveEngine/Tree/PagesAhead.swift",
        "Sources/VarveEngine/Tree/Tree.swift",
        "Sources/VarveEngine/Reading/TreeTable.swift",
        // Objects are found without being kept alive, and without a weak reference each.
        "Sources/VarveObjects/Context/ObjectRegistry.swift",
        "Sources/VarveObjects/Context/RegistryTable.swift",
        "Sources/VarveObjects/Objects/ObjectStorage.swift",
        // Swift hands executors around as unowned references.
        "Sources/VarveObjects/Container/SerialQueueExecutor.swift",
        "Sources/VarveObjects/Container/BackgroundContext.swift",
        "Sources/VarveObjects/Blobs/PageData.swift",
    ]

    /// Lines of the longest file allowed.
    private static let fileLinesMax = 500
    /// Lines of the longest function allowed, braces included. Is only lowered.
    private static let functionLinesMax = 60

    @Test("Each file of the fence is there") func theFenceNamesFiles() {
        let gone = Self.fence.subtracting(Repository.files.map(\.path))
        #expect(gone.isEmpty, "the fence names files that are gone: \(gone.sorted())")
    }

    @Test("No line is longer than 100 columns") func linesFitInHundredColumns() {
        for file in Repository.files
        where file.path.hasSuffix(".swift") && !file.isGenerated {
            for (index, line) in file.lines.enumerated() where line.count > 100 {
                Issue.record("\(file.path):\(index + 1): \(line.count) columns")
            }
        }
    }

    @Test("No file is longer than the cap") func filesAreShort() {
        for file in Repository.files where !file.isGenerated {
            #expect(
                file.lines.count <= Self.fileLinesMax,
                "\(file.path): \(file.lines.count) lines"
            )
        }
    }

    @Test("The example stays under 300 lines") func theExampleIsShort() {
        let files = Repository.files.filter { $0.path.hasPrefix("Examples/VarveNotes/") }
        #expect(files.count > 4)
        // The last line of a file ends, so there is an empty one behind it.
        #expect(files.map { $0.lines.count - 1 }.reduce(0, +) < 300)
    }

    @Test("No function is longer than the cap") func functionsAreShort() {
        for file in Repository.sources {
            // swift-format puts the closing brace under the first letter of the declaration.
            var open: (number: Int, indentation: Int)?
            for (index, line) in file.lines.enumerated() {
                let indentation = line.prefix { $0 == " " }.count
                // What a protocol asks for has no body and no end.
                if open != nil, Self.beginsFunction(line.dropFirst(indentation)),
                    open?.indentation == indentation
                {
                    open = nil
                }
                if let start = open {
                    guard line.dropFirst(indentation).hasPrefix("}"),
                        indentation == start.indentation
                    else { continue }
                    let length = index + 2 - start.number
                    #expect(
                        length <= Self.functionLinesMax,
                        "\(file.path):\(start.number): a function of \(length) lines"
                    )
                    open = nil
                } else if Self.beginsFunction(line.dropFirst(indentation)) {
                    open = line.hasSuffix("}") ? nil : (index + 1, indentation)
                }
            }
        }
    }

    /// Stores of these tests are verified when a test ends, or their damage is said in words.
    @Test("Suites with stores have the referee") func suitesHaveTheReferee() {
        let targets = ["VarveObjectsTests", "VarveRecordsTests", "VarveEngineTests"]
        var suites = 0
        for file in Repository.tests where targets.contains(String(file.components[1])) {
            for (number, line) in file.lines.enumerated() where line.hasPrefix("@Suite") {
                suites += 1
                #expect(
                    line.contains(".verified") || line.contains(".damagesStores("),
                    "\(file.path):\(number + 1): add .verified to the suite"
                )
            }
        }
        #expect(suites > 70)
    }

    @Test("Unsafe code stands in the files of the fence") func unsafeCodeStaysInsideTheFence() {
        for file in Repository.sources where !Self.fence.contains(file.path) {
            for (number, text) in file.codeLines where Self.words(text).contains("unsafe") {
                Issue.record("\(file.path):\(number): unsafe code outside the fence")
            }
        }
    }

    @Test("No forced try, cast or unwrap and no trap by hand in the library")
    func nothingIsForced() {
        for file in Repository.sources {
            for (number, text) in file.codeLines {
                for banned in ["try!", "as! ", "fatalError(", "Ounchecked"] {
                    #expect(!text.contains(banned), "\(file.path):\(number): \(banned)")
                }
            }
        }
    }

    @Test("Clock and chance come through the seam") func clockAndChanceComeThroughTheSeam() {
        let banned = [
            "Date()", "Date.now", "gettimeofday", "clock_gettime", "ContinuousClock",
            "SuspendingClock", ".random(in", ".random()", "SystemRandomNumberGenerator",
            "randomElement()", "shuffled()", "shuffle()", "arc4random", "getrandom",
        ]
        let below = ["VarveBase", "VarveFormat", "VarveIO", "VarveEngine", "VarveRecords"]
        for file in Repository.sources where below.contains(String(file.components[1])) {
            if ["SystemCalls.swift", "Environment.swift", "Threads.swift"].contains(file.name) {
                continue
            }
            for (number, text) in file.codeLines {
                for call in banned where text.contains(call) {
                    Issue.record("\(file.path):\(number): \(call) is banned below VarveObjects")
                }
            }
        }
    }

    @Test("An unchecked Sendable stands in an extension of its own, with its reason")
    func uncheckedSendableHasItsReason() {
        for file in Repository.sources {
            for (number, text) in file.codeLines where text.contains("@unchecked Sendable") {
                let isExtension = text.hasPrefix("extension ") && text.hasSuffix("{}")
                let above = number >= 2 ? file.lines[number - 2] : ""
                #expect(
                    isExtension && above.hasPrefix("//"),
                    "\(file.path):\(number): not an extension of its own with a reason above it"
                )
            }
        }
    }

    @Test("Nothing is left to be done later") func nothingIsLeftForLater() {
        let marks = ["TO" + "DO", "FIX" + "ME", "XX" + "X", "place" + "holder"]
        for file in Repository.files {
            for (index, line) in file.lines.enumerated() {
                for mark in marks where line.lowercased().contains(mark.lowercased()) {
                    Issue.record("\(file.path):\(index + 1): \(mark)")
                }
            }
        }
    }

    @Test("Tests use Swift Testing") func testsUseSwiftTesting() {
        for file in Repository.files {
            for (number, module) in file.imports {
                #expect(module != "XCTest", "\(file.path):\(number): XCTest")
            }
        }
    }

    private static func beginsFunction(_ line: Substring) -> Bool {
        let words = line.split(separator: " ").prefix(8)
        let modifiers: Set<Substring> = [
            "public", "private", "fileprivate", "internal", "package", "static", "mutating",
            "borrowing", "consuming", "nonisolated", "override", "final", "convenience",
            "@inlinable", "@discardableResult", "@usableFromInline", "@MainActor",
        ]
        guard let first = words.first(where: { !modifiers.contains($0) && !$0.hasPrefix("@") })
        else { return false }
        return first == "func" || first.hasPrefix("init(") || first.hasPrefix("init<")
    }

    private static func words(_ text: String) -> [Substring] {
        text.split { !$0.isLetter && !$0.isNumber && $0 != "_" }
    }
}
