// Who may open the files of a store.

import VarveBase

#if canImport(Darwin)
/// How Apple's systems protect a file while the device is locked.
public enum FileProtection: Int32, Sendable {
    /// It cannot be read or written while the device is locked: reads and saves then fail with
    /// `permissionDenied` or `ioFailed`.
    case complete = 1
    /// One that is open when the device is locked can be used until it is closed.
    case completeUnlessOpen = 2
    /// It can be used once the user has unlocked the device after a start.
    case completeUntilFirstUserAuthentication = 3
    /// It can always be used.
    case none = 4
}
#endif

extension ContainerOptions {
    /// What the engine gives to new files.
    /// - Throws: `invalidRequest`.
    func rights(_ place: String) throws(StoreError) -> FileRights {
        let isPossible = filePermissions & ~0o666 == 0 && filePermissions & 0o600 == 0o600
        let isAllowed = allowsForeignWriters || filePermissions & 0o022 == 0
        guard isPossible, isAllowed else {
            throw StoreError(
                .invalidRequest,
                "files with the mode 0\(String(filePermissions, radix: 8)) could not be opened",
                place: .init(store: place),
                suggestion: isPossible
                    ? "Let nobody but the user write, or set allowsForeignWriters as well."
                    : "Let the user read and write, and give no right but these two."
            )
        }
        var rights = FileRights(mode: filePermissions)
        #if canImport(Darwin)
        rights.protectionClass = fileProtection?.rawValue
        #endif
        return rights
    }
}
