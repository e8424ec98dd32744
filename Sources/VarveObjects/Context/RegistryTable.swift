// FENCE: the table of a context's living objects: plain memory under the lock of their registry.
//
// Invariants
// - Entries stand in the order in which they came. One whose object has ended is empty, with the
//   address 0, until the table is made anew; those behind the last used one are not initialised.
// - A place of the index holds the number of an entry and 1, or 0. Each living entry has exactly
//   one place, on the way from the home of its ID in steps of 17 over places that are not 0.
// - There are twice as many places as there is room for entries, and no more of them in use than
//   entries: every way ends at a place that holds 0. Both numbers are powers of two.
// - An object with the token t has entry t - `tokenBase`, if that one has this token: its end needs
//   no search. Others are found by their IDs.
//
// Why two arrays: a list of objects is written and taken out in one direction, in whole cache
// lines, and the index that is looked through at random has 4 bytes for each place.

internal import CVarve
import VarveBase
import VarveRecords

/// Where each living object is, by ID.
@safe struct RegistryTable: ~Copyable {
    struct Entry: BitwiseCopyable {
        var id: UInt64
        /// Address of the object; 0: the entry is empty.
        var object: UInt
        /// ID of the next object of the list that this one was fetched with; 0: none.
        var next: UInt64
        var entity: Int32
        var token: UInt32
    }

    /// Small: most contexts of requests have few objects, or none.
    private static let roomMin = 16
    /// Larger tables are given back when no object is left.
    private static let roomKept = 1024

    private(set) var entries: UnsafeMutablePointer<Entry>
    private var places: UnsafeMutablePointer<UInt32>
    /// How many entries there is room for.
    private(set) var room = 0
    /// Entries in use, empty ones included.
    private(set) var used = 0
    /// Living objects.
    private(set) var count = 0
    private var tokenBase: UInt32 = 0
    /// Rows of ended objects, pinned still.
    var ended = EndedRows()
    /// Address of the context; 0 when its end has begun.
    var context: UInt = 0
    /// Whether objects may keep the context.
    var mayKeepContext = true
    /// Whether there is a reference to the context.
    private(set) var isContextKept = false

    /// Takes no memory before the first object.
    init() { unsafe (entries, places) = (Self.allocate(0), Self.allocate(0)) }

    deinit { unsafe Self.free(entries, places, room) }

    /// Memory for so many trivial elements; for none an address at which nobody looks.
    private static func allocate<Element: BitwiseCopyable>(
        _ count: Int
    ) -> UnsafeMutablePointer<Element> {
        let layout = MemoryLayout<Element>.self
        guard
            let memory = unsafe count == 0
                ? UnsafeMutableRawPointer(bitPattern: layout.alignment)
                : varve_allocate(count * layout.stride)
        else { preconditionFailure("no memory for the objects of a context") }
        return unsafe memory.bindMemory(to: Element.self, capacity: count)
    }

    /// Ends what `allocate` gave for a room.
    private static func free(
        _ entries: UnsafeMutablePointer<Entry>,
        _ places: UnsafeMutablePointer<UInt32>,
        _ room: Int
    ) {
        if room == 0 { return }
        unsafe varve_free(entries)
        unsafe varve_free(places)
    }

    // MARK: Finding

    /// IDs that follow one another share cache lines, 16 at a time, each in a lane of its own.
    /// Every 16th ID alone would fill one lane only, if it were not mixed.
    @inline(__always)
    private func home(_ id: UInt64) -> Int {
        let mix = NumberHash.mix(id &>> 4, 0)
        let lane = (Int(truncatingIfNeeded: id) ^ (mix >> 58)) & 15
        return (mix &<< 4 | lane) & (2 &* room &- 1)
    }

    /// The next cache line and the next lane. 17 is odd, so that the way meets every place.
    @inline(__always)
    private func after(_ place: Int) -> Int { (place &+ 17) & (2 &* room &- 1) }

    /// Asks for the memory where an ID's entry is looked for, which will be soon.
    @inline(__always)
    func foresee(_ id: ObjectID) {
        if room == 0 { return }
        // `home` is below 2 x `room`.
        unsafe varve_ask_for_memory(places + home(id.rawValue))
    }

    /// The number of an ID's entry; nil when it has none.
    @inline(__always)
    func entry(of id: ObjectID) -> Int? {
        if count == 0 { return nil }
        var place = home(id.rawValue)
        while true {
            // Places are below 2 x `room` by the mask, numbers below `used`.
            let number = unsafe Int(places[place]) &- 1
            if number < 0 { return nil }
            if unsafe entries[number].id == id.rawValue, unsafe entries[number].object != 0 {
                return number
            }
            place = after(place)
        }
    }

    /// A new reference to the object of an ID; 0 if its end has begun, or it is of another entity:
    /// retaining that one could mean letting it go for good, here under the lock.
    @inline(__always)
    func retained(_ id: ObjectID, entity: Int? = nil) -> UInt {
        guard let number = entry(of: id) else { return 0 }
        if let entity, self.entity(at: number) != entity { return 0 }
        return retained(at: number)
    }

    /// A new reference to the object of an entry; 0 if its end has begun.
    @inline(__always)
    func retained(at number: Int) -> UInt {
        // The object is not freed while its entry stands here.
        unsafe UInt(
            bitPattern: varve_try_retain(
                UnsafeMutableRawPointer(bitPattern: entries[number].object)
            )
        )
    }

    /// The number of the entity that an entry's object belongs to.
    @inline(__always)
    func entity(at number: Int) -> Int { Int(unsafe entries[number].entity) }

    // MARK: Changing

    mutating func insert(
        _ object: UInt,
        _ id: ObjectID,
        entity: Int,
        token: UInt32,
        next: ObjectID?
    ) {
        reserve(1)
        var place = home(id.rawValue)
        var free = -1
        while true {
            let number = unsafe Int(places[place]) &- 1
            if number < 0 { break }
            if unsafe entries[number].object == 0 {
                if free < 0 { free = place }
            } else if unsafe entries[number].id == id.rawValue {
                // The end of the object that was here finds another token.
                unsafe entries[number].object = 0
                count &-= 1
                if free < 0 { free = place }
                break
            }
            place = after(place)
        }
        unsafe places[free < 0 ? place : free] = UInt32(truncatingIfNeeded: used &+ 1)
        unsafe (entries + used).initialize(
            to: Entry(
                id: id.rawValue,
                object: object,
                next: next?.rawValue ?? 0,
                entity: Int32(truncatingIfNeeded: entity),
                token: token
            )
        )
        tokenBase = token &- UInt32(truncatingIfNeeded: used)
        used &+= 1
        count &+= 1
        if !isContextKept { keepContext() }
    }

    mutating func setNext(of id: ObjectID, to next: ObjectID?) {
        guard let number = entry(of: id) else { return }
        unsafe entries[number].next = next?.rawValue ?? 0
    }

    mutating func remove(_ id: ObjectID, token: UInt32) {
        var number = Int(token &- tokenBase)
        // Numbers below `used` are initialised.
        if number >= used || !isEntry(number, of: id, token) {
            guard let found = entry(of: id), isEntry(found, of: id, token) else { return }
            number = found
        }
        unsafe entries[number].object = 0
        count &-= 1
        if count == 0 {
            clear()
        } else if room > Self.roomMin, count < room / 8 {
            rebuild(room / 4)
        }
    }

    @inline(__always)
    private func isEntry(_ number: Int, of id: ObjectID, _ token: UInt32) -> Bool {
        unsafe entries[number].token == token && entries[number].id == id.rawValue
            && entries[number].object != 0
    }

    /// No object is left: all places are free again.
    private mutating func clear() {
        if room > Self.roomKept || room > Self.roomMin && used < room / 8 {
            rebuild(0)
        } else if used == 1 {
            // The only one since all were free: it stands at its home.
            unsafe places[home(entries[0].id)] = 0
            used = 0
        } else {
            unsafe places.update(repeating: 0, count: 2 * room)
            used = 0
        }
    }

    // MARK: Room

    /// Makes room for so many more: a table that is made anew has a quarter of it free, which pays
    /// for the next time.
    mutating func reserve(_ more: Int) {
        if used &+ more <= room { return }
        let needed = count &+ more
        precondition(needed < Int(Int32.max) / 2, "too many objects in one context")
        var size = max(Self.roomMin, room)
        while needed > size / 4 * 3 { size *= 2 }
        rebuild(size)
    }

    /// Makes the table anew, without empty entries.
    private mutating func rebuild(_ size: Int) {
        let (old, oldPlaces, oldRoom, oldUsed) = unsafe (entries, places, room, used)
        unsafe (entries, places) = (Self.allocate(size), Self.allocate(2 * size))
        unsafe places.initialize(repeating: 0, count: 2 * size)
        (room, used) = (size, 0)
        for number in 0..<oldUsed where unsafe old[number].object != 0 {
            // Each ID lives there once: the way ends at a free place.
            var place = unsafe home(old[number].id)
            while unsafe places[place] != 0 { place = after(place) }
            unsafe places[place] = UInt32(truncatingIfNeeded: used &+ 1)
            unsafe (entries + used).initialize(to: old[number])
            used &+= 1
        }
        // Right for those behind the last gap.
        if used > 0 { tokenBase = unsafe entries[used &- 1].token &- UInt32(used &- 1) }
        unsafe Self.free(old, oldPlaces, oldRoom)
    }

    // MARK: The context

    /// A new reference to the context; 0 if its end has begun.
    func retainedContext() -> UInt {
        if context == 0 { return 0 }
        // The context is not freed while its address stands here: `ObjectRegistry.endContext`.
        return unsafe UInt(
            bitPattern: varve_try_retain(UnsafeMutableRawPointer(bitPattern: context))
        )
    }

    /// Takes a reference to the context if it is to be kept. Objects are inserted by the context,
    /// so it lives.
    private mutating func keepContext() {
        guard mayKeepContext, let pointer = unsafe UnsafeMutableRawPointer(bitPattern: context)
        else { return }
        isContextKept = unsafe varve_try_retain(pointer) != nil
    }

    /// Makes the reference to the context what it should be.
    /// - Returns: the reference that ends, for the caller to release behind the lock; 0: none.
    mutating func contextLetGo() -> UInt {
        let isWanted = mayKeepContext && count > 0
        if isWanted == isContextKept { return 0 }
        if isWanted {
            keepContext()
            return 0
        }
        isContextKept = false
        return context
    }
}
