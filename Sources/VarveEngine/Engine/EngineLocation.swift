// Where an open store is: for the tests that look at it from outside.

extension Engine {
    /// Where the store is.
    package var location: StoreLocation { .directory(directory, name: fileName) }
}
