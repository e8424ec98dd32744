// Reading a request inside a filter: `folder in Folder.where { name == "x" }.limit(3)`.

import VarveBase

extension QueryParser {
    /// Reads a request whose objects a value is among; nil: something else comes next.
    mutating func request(_ value: QueryValue) throws(QueryTextError) -> InnerRequest? {
        let start = scanner.place
        guard case .reference(let target) = value.kind,
            let (name, isQuoted) = try scanner.takeName(),
            isQuoted || !Self.reserved.contains(name), !scanner.sees(".."), scanner.take(".")
        else {
            scanner.move(to: start)
            return nil
        }
        guard name == target.name else {
            throw scanner.error(
                "\(value.text) leads to \(target.name), not to \(name)",
                at: start,
                possible: [QueryText.spelled(target.name)]
            )
        }
        var request = InnerRequest(entity: name)
        if scanner.take(word: "where") {
            request.predicate = try braced(target)
        } else if !scanner.take(word: "all") {
            scanner.skipSpaces()
            throw scanner.error(
                "expected a request of \(name)",
                possible: ["where {", "all"]
            )
        }
        while try option(&request, target) {}
        return request
    }

    /// Reads what narrows a request; false: nothing more does.
    private mutating func option(
        _ request: inout InnerRequest,
        _ target: RecordEntity
    ) throws(QueryTextError) -> Bool {
        let before = scanner
        guard scanner.take(".") else { return false }
        if scanner.take(word: "sorted") {
            try scanner.expect("{", "and an order of \(target.name)")
            request.sort = try steps(target, end: "}")
            try scanner.expect("}", "after the order")
            return true
        }
        for name in ["limit", "offset"] where scanner.take(word: name) {
            try scanner.expect("(", "after \(name)")
            scanner.skipSpaces()
            let place = scanner.place
            guard let number = scanner.takeNumber().flatMap({ Int($0) }), number >= 0 else {
                throw scanner.error("expected a number from 0 on", at: place, possible: ["0", "1"])
            }
            try scanner.expect(")", "after the number")
            if name == "limit" { request.limit = number } else { request.offset = number }
            return true
        }
        if scanner.take(word: "includingPendingChanges") {
            try scanner.expect("(", "after includingPendingChanges")
            let isTrue = scanner.take(word: "true")
            if !isTrue, !scanner.take(word: "false") {
                scanner.skipSpaces()
                throw scanner.error("expected true or false", possible: ["true", "false"])
            }
            try scanner.expect(")", "after it")
            request.includesEdits = isTrue
            return true
        }
        scanner = before
        _ = scanner.take(".")
        scanner.skipSpaces()
        throw scanner.error(
            "a request has no such part",
            possible: ["sorted {", "limit(", "offset(", "includingPendingChanges("]
        )
    }
}
