// Every combination of the arguments of @Relationship, as an app writes it.
#if Macros
import Varve

@Entity final class Near: ManagedObject {
    @Relationship
    var r1: ToMany<Far>
    @Relationship(originalName: "x2")
    var r2: ToMany<Far>
    @Relationship(originalName: "x3", "y3")
    var r3: ToMany<Far>
    @Relationship(ordered: true)
    var r4: ToMany<Far>
    @Relationship(ordered: true, originalName: "x5")
    var r5: ToMany<Far>
    @Relationship(ordered: true, originalName: "x6", "y6")
    var r6: ToMany<Far>
    @Relationship(ordered: false)
    var r7: ToMany<Far>
    @Relationship(ordered: false, originalName: "x8")
    var r8: ToMany<Far>
    @Relationship(ordered: false, originalName: "x9", "y9")
    var r9: ToMany<Far>
    @Relationship(deleteRule: .nullify)
    var r10: ToMany<Far>
    @Relationship(deleteRule: .nullify, originalName: "x11")
    var r11: ToMany<Far>
    @Relationship(deleteRule: .nullify, originalName: "x12", "y12")
    var r12: ToMany<Far>
    @Relationship(deleteRule: .nullify, ordered: true)
    var r13: ToMany<Far>
    @Relationship(deleteRule: .nullify, ordered: true, originalName: "x14")
    var r14: ToMany<Far>
    @Relationship(deleteRule: .nullify, ordered: true, originalName: "x15", "y15")
    var r15: ToMany<Far>
    @Relationship(ordered: true, deleteRule: .nullify)
    var r16: ToMany<Far>
    @Relationship(ordered: true, deleteRule: .nullify, originalName: "x17")
    var r17: ToMany<Far>
    @Relationship(ordered: true, deleteRule: .nullify, originalName: "x18", "y18")
    var r18: ToMany<Far>
    @Relationship(deleteRule: .nullify, ordered: false)
    var r19: ToMany<Far>
    @Relationship(deleteRule: .nullify, ordered: false, originalName: "x20")
    var r20: ToMany<Far>
    @Relationship(deleteRule: .nullify, ordered: false, originalName: "x21", "y21")
    var r21: ToMany<Far>
    @Relationship(ordered: false, deleteRule: .nullify)
    var r22: ToMany<Far>
    @Relationship(ordered: false, deleteRule: .nullify, originalName: "x23")
    var r23: ToMany<Far>
    @Relationship(ordered: false, deleteRule: .nullify, originalName: "x24", "y24")
    var r24: ToMany<Far>
    @Relationship(deleteRule: .cascade)
    var r25: ToMany<Far>
    @Relationship(deleteRule: .cascade, originalName: "x26")
    var r26: ToMany<Far>
    @Relationship(deleteRule: .cascade, originalName: "x27", "y27")
    var r27: ToMany<Far>
    @Relationship(deleteRule: .cascade, ordered: true)
    var r28: ToMany<Far>
    @Relationship(deleteRule: .cascade, ordered: true, originalName: "x29")
    var r29: ToMany<Far>
    @Relationship(deleteRule: .cascade, ordered: true, originalName: "x30", "y30")
    var r30: ToMany<Far>
    @Relationship(ordered: true, deleteRule: .cascade)
    var r31: ToMany<Far>
    @Relationship(ordered: true, deleteRule: .cascade, originalName: "x32")
    var r32: ToMany<Far>
    @Relationship(ordered: true, deleteRule: .cascade, originalName: "x33", "y33")
    var r33: ToMany<Far>
    @Relationship(deleteRule: .cascade, ordered: false)
    var r34: ToMany<Far>
    @Relationship(deleteRule: .cascade, ordered: false, originalName: "x35")
    var r35: ToMany<Far>
    @Relationship(deleteRule: .cascade, ordered: false, originalName: "x36", "y36")
    var r36: ToMany<Far>
    @Relationship(ordered: false, deleteRule: .cascade)
    var r37: ToMany<Far>
    @Relationship(ordered: false, deleteRule: .cascade, originalName: "x38")
    var r38: ToMany<Far>
    @Relationship(ordered: false, deleteRule: .cascade, originalName: "x39", "y39")
    var r39: ToMany<Far>
    @Relationship(deleteRule: .deny)
    var r40: ToMany<Far>
    @Relationship(deleteRule: .deny, originalName: "x41")
    var r41: ToMany<Far>
    @Relationship(deleteRule: .deny, originalName: "x42", "y42")
    var r42: ToMany<Far>
    @Relationship(deleteRule: .deny, ordered: true)
    var r43: ToMany<Far>
    @Relationship(deleteRule: .deny, ordered: true, originalName: "x44")
    var r44: ToMany<Far>
    @Relationship(deleteRule: .deny, ordered: true, originalName: "x45", "y45")
    var r45: ToMany<Far>
    @Relationship(ordered: true, deleteRule: .deny)
    var r46: ToMany<Far>
    @Relationship(ordered: true, deleteRule: .deny, originalName: "x47")
    var r47: ToMany<Far>
    @Relationship(ordered: true, deleteRule: .deny, originalName: "x48", "y48")
    var r48: ToMany<Far>
    @Relationship(deleteRule: .deny, ordered: false)
    var r49: ToMany<Far>
    @Relationship(deleteRule: .deny, ordered: false, originalName: "x50")
    var r50: ToMany<Far>
    @Relationship(deleteRule: .deny, ordered: false, originalName: "x51", "y51")
    var r51: ToMany<Far>
    @Relationship(ordered: false, deleteRule: .deny)
    var r52: ToMany<Far>
    @Relationship(ordered: false, deleteRule: .deny, originalName: "x53")
    var r53: ToMany<Far>
    @Relationship(ordered: false, deleteRule: .deny, originalName: "x54", "y54")
    var r54: ToMany<Far>
    @Relationship(deleteRule: .noAction)
    var r55: ToMany<Far>
    @Relationship(deleteRule: .noAction, originalName: "x56")
    var r56: ToMany<Far>
    @Relationship(deleteRule: .noAction, originalName: "x57", "y57")
    var r57: ToMany<Far>
    @Relationship(deleteRule: .noAction, ordered: true)
    var r58: ToMany<Far>
    @Relationship(deleteRule: .noAction, ordered: true, originalName: "x59")
    var r59: ToMany<Far>
    @Relationship(deleteRule: .noAction, ordered: true, originalName: "x60", "y60")
    var r60: ToMany<Far>
    @Relationship(ordered: true, deleteRule: .noAction)
    var r61: ToMany<Far>
    @Relationship(ordered: true, deleteRule: .noAction, originalName: "x62")
    var r62: ToMany<Far>
    @Relationship(ordered: true, deleteRule: .noAction, originalName: "x63", "y63")
    var r63: ToMany<Far>
    @Relationship(deleteRule: .noAction, ordered: false)
    var r64: ToMany<Far>
    @Relationship(deleteRule: .noAction, ordered: false, originalName: "x65")
    var r65: ToMany<Far>
    @Relationship(deleteRule: .noAction, ordered: false, originalName: "x66", "y66")
    var r66: ToMany<Far>
    @Relationship(ordered: false, deleteRule: .noAction)
    var r67: ToMany<Far>
    @Relationship(ordered: false, deleteRule: .noAction, originalName: "x68")
    var r68: ToMany<Far>
    @Relationship(ordered: false, deleteRule: .noAction, originalName: "x69", "y69")
    var r69: ToMany<Far>
    @Relationship(inverse: \Far.f70)
    var r70: ToMany<Far>
    @Relationship(inverse: \Far.f71, originalName: "x71")
    var r71: ToMany<Far>
    @Relationship(inverse: \Far.f72, originalName: "x72", "y72")
    var r72: ToMany<Far>
    @Relationship(inverse: \Far.f73, ordered: true)
    var r73: ToMany<Far>
    @Relationship(inverse: \Far.f74, ordered: true, originalName: "x74")
    var r74: ToMany<Far>
    @Relationship(inverse: \Far.f75, ordered: true, originalName: "x75", "y75")
    var r75: ToMany<Far>
    @Relationship(inverse: \Far.f76, ordered: false)
    var r76: ToMany<Far>
    @Relationship(inverse: \Far.f77, ordered: false, originalName: "x77")
    var r77: ToMany<Far>
    @Relationship(inverse: \Far.f78, ordered: false, originalName: "x78", "y78")
    var r78: ToMany<Far>
    @Relationship(inverse: \Far.f79, deleteRule: .nullify)
    var r79: ToMany<Far>
    @Relationship(inverse: \Far.f80, deleteRule: .nullify, originalName: "x80")
    var r80: ToMany<Far>
    @Relationship(inverse: \Far.f81, deleteRule: .nullify, originalName: "x81", "y81")
    var r81: ToMany<Far>
    @Relationship(inverse: \Far.f82, deleteRule: .nullify, ordered: true)
    var r82: ToMany<Far>
    @Relationship(inverse: \Far.f83, deleteRule: .nullify, ordered: true, originalName: "x83")
    var r83: ToMany<Far>
    @Relationship(
        inverse: \Far.f84,
        deleteRule: .nullify,
        ordered: true,
        originalName: "x84",
        "y84"
    )
    var r84: ToMany<Far>
    @Relationship(inverse: \Far.f85, ordered: true, deleteRule: .nullify)
    var r85: ToMany<Far>
    @Relationship(inverse: \Far.f86, ordered: true, deleteRule: .nullify, originalName: "x86")
    var r86: ToMany<Far>
    @Relationship(
        inverse: \Far.f87,
        ordered: true,
        deleteRule: .nullify,
        originalName: "x87",
        "y87"
    )
    var r87: ToMany<Far>
    @Relationship(inverse: \Far.f88, deleteRule: .nullify, ordered: false)
    var r88: ToMany<Far>
    @Relationship(inverse: \Far.f89, deleteRule: .nullify, ordered: false, originalName: "x89")
    var r89: ToMany<Far>
    @Relationship(
        inverse: \Far.f90,
        deleteRule: .nullify,
        ordered: false,
        originalName: "x90",
        "y90"
    )
    var r90: ToMany<Far>
    @Relationship(inverse: \Far.f91, ordered: false, deleteRule: .nullify)
    var r91: ToMany<Far>
    @Relationship(inverse: \Far.f92, ordered: false, deleteRule: .nullify, originalName: "x92")
    var r92: ToMany<Far>
    @Relationship(
        inverse: \Far.f93,
        ordered: false,
        deleteRule: .nullify,
        originalName: "x93",
        "y93"
    )
    var r93: ToMany<Far>
    @Relationship(inverse: \Far.f94, deleteRule: .cascade)
    var r94: ToMany<Far>
    @Relationship(inverse: \Far.f95, deleteRule: .cascade, originalName: "x95")
    var r95: ToMany<Far>
    @Relationship(inverse: \Far.f96, deleteRule: .cascade, originalName: "x96", "y96")
    var r96: ToMany<Far>
    @Relationship(inverse: \Far.f97, deleteRule: .cascade, ordered: true)
    var r97: ToMany<Far>
    @Relationship(inverse: \Far.f98, deleteRule: .cascade, ordered: true, originalName: "x98")
    var r98: ToMany<Far>
    @Relationship(
        inverse: \Far.f99,
        deleteRule: .cascade,
        ordered: true,
        originalName: "x99",
        "y99"
    )
    var r99: ToMany<Far>
    @Relationship(inverse: \Far.f100, ordered: true, deleteRule: .cascade)
    var r100: ToMany<Far>
    @Relationship(inverse: \Far.f101, ordered: true, deleteRule: .cascade, originalName: "x101")
    var r101: ToMany<Far>
    @Relationship(
        inverse: \Far.f102,
        ordered: true,
        deleteRule: .cascade,
        originalName: "x102",
        "y102"
    )
    var r102: ToMany<Far>
    @Relationship(inverse: \Far.f103, deleteRule: .cascade, ordered: false)
    var r103: ToMany<Far>
    @Relationship(inverse: \Far.f104, deleteRule: .cascade, ordered: false, originalName: "x104")
    var r104: ToMany<Far>
    @Relationship(
        inverse: \Far.f105,
        deleteRule: .cascade,
        ordered: false,
        originalName: "x105",
        "y105"
    )
    var r105: ToMany<Far>
    @Relationship(inverse: \Far.f106, ordered: false, deleteRule: .cascade)
    var r106: ToMany<Far>
    @Relationship(inverse: \Far.f107, ordered: false, deleteRule: .cascade, originalName: "x107")
    var r107: ToMany<Far>
    @Relationship(
        inverse: \Far.f108,
        ordered: false,
        deleteRule: .cascade,
        originalName: "x108",
        "y108"
    )
    var r108: ToMany<Far>
    @Relationship(inverse: \Far.f109, deleteRule: .deny)
    var r109: ToMany<Far>
    @Relationship(inverse: \Far.f110, deleteRule: .deny, originalName: "x110")
    var r110: ToMany<Far>
    @Relationship(inverse: \Far.f111, deleteRule: .deny, originalName: "x111", "y111")
    var r111: ToMany<Far>
    @Relationship(inverse: \Far.f112, deleteRule: .deny, ordered: true)
    var r112: ToMany<Far>
    @Relationship(inverse: \Far.f113, deleteRule: .deny, ordered: true, originalName: "x113")
    var r113: ToMany<Far>
    @Relationship(
        inverse: \Far.f114,
        deleteRule: .deny,
        ordered: true,
        originalName: "x114",
        "y114"
    )
    var r114: ToMany<Far>
    @Relationship(inverse: \Far.f115, ordered: true, deleteRule: .deny)
    var r115: ToMany<Far>
    @Relationship(inverse: \Far.f116, ordered: true, deleteRule: .deny, originalName: "x116")
    var r116: ToMany<Far>
    @Relationship(
        inverse: \Far.f117,
        ordered: true,
        deleteRule: .deny,
        originalName: "x117",
        "y117"
    )
    var r117: ToMany<Far>
    @Relationship(inverse: \Far.f118, deleteRule: .deny, ordered: false)
    var r118: ToMany<Far>
    @Relationship(inverse: \Far.f119, deleteRule: .deny, ordered: false, originalName: "x119")
    var r119: ToMany<Far>
    @Relationship(
        inverse: \Far.f120,
        deleteRule: .deny,
        ordered: false,
        originalName: "x120",
        "y120"
    )
    var r120: ToMany<Far>
    @Relationship(inverse: \Far.f121, ordered: false, deleteRule: .deny)
    var r121: ToMany<Far>
    @Relationship(inverse: \Far.f122, ordered: false, deleteRule: .deny, originalName: "x122")
    var r122: ToMany<Far>
    @Relationship(
        inverse: \Far.f123,
        ordered: false,
        deleteRule: .deny,
        originalName: "x123",
        "y123"
    )
    var r123: ToMany<Far>
    @Relationship(inverse: \Far.f124, deleteRule: .noAction)
    var r124: ToMany<Far>
    @Relationship(inverse: \Far.f125, deleteRule: .noAction, originalName: "x125")
    var r125: ToMany<Far>
    @Relationship(inverse: \Far.f126, deleteRule: .noAction, originalName: "x126", "y126")
    var r126: ToMany<Far>
    @Relationship(inverse: \Far.f127, deleteRule: .noAction, ordered: true)
    var r127: ToMany<Far>
    @Relationship(inverse: \Far.f128, deleteRule: .noAction, ordered: true, originalName: "x128")
    var r128: ToMany<Far>
    @Relationship(
        inverse: \Far.f129,
        deleteRule: .noAction,
        ordered: true,
        originalName: "x129",
        "y129"
    )
    var r129: ToMany<Far>
    @Relationship(inverse: \Far.f130, ordered: true, deleteRule: .noAction)
    var r130: ToMany<Far>
    @Relationship(inverse: \Far.f131, ordered: true, deleteRule: .noAction, originalName: "x131")
    var r131: ToMany<Far>
    @Relationship(
        inverse: \Far.f132,
        ordered: true,
        deleteRule: .noAction,
        originalName: "x132",
        "y132"
    )
    var r132: ToMany<Far>
    @Relationship(inverse: \Far.f133, deleteRule: .noAction, ordered: false)
    var r133: ToMany<Far>
    @Relationship(inverse: \Far.f134, deleteRule: .noAction, ordered: false, originalName: "x134")
    var r134: ToMany<Far>
    @Relationship(
        inverse: \Far.f135,
        deleteRule: .noAction,
        ordered: false,
        originalName: "x135",
        "y135"
    )
    var r135: ToMany<Far>
    @Relationship(inverse: \Far.f136, ordered: false, deleteRule: .noAction)
    var r136: ToMany<Far>
    @Relationship(inverse: \Far.f137, ordered: false, deleteRule: .noAction, originalName: "x137")
    var r137: ToMany<Far>
    @Relationship(
        inverse: \Far.f138,
        ordered: false,
        deleteRule: .noAction,
        originalName: "x138",
        "y138"
    )
    var r138: ToMany<Far>
    @Relationship
    var r139: Far?
    @Relationship(originalName: "x140")
    var r140: Far?
    @Relationship(originalName: "x141", "y141")
    var r141: Far?
    @Relationship(deleteRule: .nullify)
    var r142: Far?
    @Relationship(deleteRule: .nullify, originalName: "x143")
    var r143: Far?
    @Relationship(deleteRule: .nullify, originalName: "x144", "y144")
    var r144: Far?
    @Relationship(deleteRule: .cascade)
    var r145: Far?
    @Relationship(deleteRule: .cascade, originalName: "x146")
    var r146: Far?
    @Relationship(deleteRule: .cascade, originalName: "x147", "y147")
    var r147: Far?
    @Relationship(deleteRule: .deny)
    var r148: Far?
    @Relationship(deleteRule: .deny, originalName: "x149")
    var r149: Far?
    @Relationship(deleteRule: .deny, originalName: "x150", "y150")
    var r150: Far?
    @Relationship(deleteRule: .noAction)
    var r151: Far?
    @Relationship(deleteRule: .noAction, originalName: "x152")
    var r152: Far?
    @Relationship(deleteRule: .noAction, originalName: "x153", "y153")
    var r153: Far?
    @Relationship(inverse: \Far.f154)
    var r154: Far?
    @Relationship(inverse: \Far.f155, originalName: "x155")
    var r155: Far?
    @Relationship(inverse: \Far.f156, originalName: "x156", "y156")
    var r156: Far?
    @Relationship(inverse: \Far.f157, deleteRule: .nullify)
    var r157: Far?
    @Relationship(inverse: \Far.f158, deleteRule: .nullify, originalName: "x158")
    var r158: Far?
    @Relationship(inverse: \Far.f159, deleteRule: .nullify, originalName: "x159", "y159")
    var r159: Far?
    @Relationship(inverse: \Far.f160, deleteRule: .cascade)
    var r160: Far?
    @Relationship(inverse: \Far.f161, deleteRule: .cascade, originalName: "x161")
    var r161: Far?
    @Relationship(inverse: \Far.f162, deleteRule: .cascade, originalName: "x162", "y162")
    var r162: Far?
    @Relationship(inverse: \Far.f163, deleteRule: .deny)
    var r163: Far?
    @Relationship(inverse: \Far.f164, deleteRule: .deny, originalName: "x164")
    var r164: Far?
    @Relationship(inverse: \Far.f165, deleteRule: .deny, originalName: "x165", "y165")
    var r165: Far?
    @Relationship(inverse: \Far.f166, deleteRule: .noAction)
    var r166: Far?
    @Relationship(inverse: \Far.f167, deleteRule: .noAction, originalName: "x167")
    var r167: Far?
    @Relationship(inverse: \Far.f168, deleteRule: .noAction, originalName: "x168", "y168")
    var r168: Far?
    @Relationship(ordered: false, deleteRule: .deny)
    var r169: Far?
    @Relationship() var called: ToMany<Far>
}
#endif
