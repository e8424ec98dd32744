// The referee of this target's tests: `varve verify` of each store that they open (StoreReferee).

import StoreReferee
import Testing

extension Trait where Self == VerifiesStores {
    /// Each store that a test opens is verified when it ends.
    static var verified: Self { VerifiesStores(.rows) }
}

extension Trait where Self == DamagesStores {
    /// The stores are not sound at the end of the test, for this reason, and are not verified.
    static func damagesStores(_ why: Comment) -> Self { DamagesStores(why) }
}
