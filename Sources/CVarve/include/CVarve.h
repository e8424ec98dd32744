// Constants and calls that Swift cannot reach, SHA-256 (names of blob files), the tags of rows, numbers for
// threads.
#ifndef CVARVE_H
#define CVARVE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// Locks one byte for the open file description (released when its last descriptor closes).
// Returns 0 or an errno; EAGAIN or EACCES when another description holds it and `wait` is 0.
int varve_lock_byte(int descriptor, int64_t byte, int exclusive, int wait);

// Gives the lock up for all descriptors of the description, also those that a child of a fork has
// until it runs another program.
void varve_unlock_byte(int descriptor, int64_t byte);

// Whether another open file description has a lock of any kind on one of the bytes: 1 or 0, and -1
// where the system cannot tell.
int varve_bytes_locked(int descriptor, int64_t start, int64_t count);

// Reads the beginning of a file, as much as there is room for; 0 when it cannot be read.
size_t varve_read_beginning(const char *path, void *room, size_t count);

// Bytes of memory of the machine; 0 where the system does not say.
uint64_t varve_memory_bytes(void);

// Percent of the machine's memory that can still be had; -1 where the system does not say.
int varve_memory_percent_left(void);

// Gives memory that was freed back to the system, where the allocator keeps it otherwise.
void varve_give_free_memory_back(void);

// 8 aligned bytes that another process may write meanwhile.
static inline uint64_t varve_load_word(const void *place) {
    return __atomic_load_n((const uint64_t *)place, __ATOMIC_ACQUIRE);
}

// Asks for the cache line of an address, whatever is there.
static inline void varve_ask_for_memory(const void *place) { __builtin_prefetch(place); }

// Renames inside a directory; EEXIST when the new name is taken. Returns 0 or an errno.
int varve_rename_exclusive(int directory, const char *from, const char *to);

// What is known of a file: its device and number tell it from all others that are there now.
typedef struct {
    uint64_t device;
    uint64_t inode;
    uint64_t links;
    uint64_t size;
    uint32_t owner;
    uint32_t mode;
} varve_file_facts;

// What a name in a directory refers to, not followed; without a name, what the descriptor refers to.
// Returns 0 or an errno.
//
// No times are asked for: Linux from 6.13 on gives a file whose times were read a new, exact time at
// its next write, and a change of the inode with it. For a store that looks at its name with each
// commit that was a quarter of the commit's time.
int varve_look_at_file(int descriptor, const char *name, varve_file_facts *facts);

// Bytes that a file of this process may have, INT64_MAX without a limit. A write beyond it ends the
// process with SIGXFSZ.
int64_t varve_file_size_limit(void);

// SHA-256, incremental. A context is a plain value: a copy goes on by itself.
typedef struct {
    uint32_t state[8];
    uint64_t length;
    uint8_t block[64];
    uint32_t portable;
} varve_sha256;

// With `portable`, the CPU's SHA instructions are not used even where they exist (for tests).
void varve_sha256_begin(varve_sha256 *context, int portable);
void varve_sha256_update(varve_sha256 *context, const uint8_t *bytes, size_t count);
// Ends the context; it must not be used afterwards.
void varve_sha256_finish(varve_sha256 *context, uint8_t digest[32]);
// Whether this CPU has SHA instructions that the code above uses.
int varve_sha256_is_accelerated(void);

// What a walk over a row's tags needs of a tag of one byte, below 128: bytes of its body, and two
// flags. `RowTag` has the rules; a test holds this table against it.
#define VARVE_TAG_UNKNOWN 0x4000
// A blob, or a value kept outside its row.
#define VARVE_TAG_ELSEWHERE 0x8000

static inline uint32_t varve_tag_facts(uint8_t tag) {
#define VARVE_TEXTS(n) n, n, n + 1, n + 1, n + 2, n + 2, n + 3, n + 3
#define VARVE_UNKNOWN_3 VARVE_TAG_UNKNOWN, VARVE_TAG_UNKNOWN, VARVE_TAG_UNKNOWN
    static const uint16_t facts[128] = {
        0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 4, 8, 8, 16, 11, 19, 4, 8,
        VARVE_TAG_ELSEWHERE | 40, VARVE_TAG_ELSEWHERE | 264, VARVE_TAG_ELSEWHERE | 264,
        VARVE_UNKNOWN_3, VARVE_UNKNOWN_3, VARVE_UNKNOWN_3, VARVE_TAG_UNKNOWN, VARVE_TAG_UNKNOWN,
        VARVE_TEXTS(0), VARVE_TEXTS(4), VARVE_TEXTS(8), VARVE_TEXTS(12),
        VARVE_TEXTS(16), VARVE_TEXTS(20), VARVE_TEXTS(24), VARVE_TEXTS(28),
        VARVE_TEXTS(32), VARVE_TEXTS(36), VARVE_TEXTS(40), VARVE_TEXTS(44),
    };
#undef VARVE_TEXTS
#undef VARVE_UNKNOWN_3
    return facts[tag & 127];
}

// The size alone: 0 for an unknown tag.
static inline uint32_t varve_tag_size(uint8_t tag) { return varve_tag_facts(tag) & 0x3FFF; }

// Memory of malloc's own alignment. Swift's own call asks for that alignment in words, which takes
// three times as long. NULL when there is none.
static inline void *varve_allocate(size_t bytes) { return malloc(bytes); }
static inline void varve_free(void *memory) { free(memory); }

// Small numbers for threads: what lock-free readers say they are busy with, they say in a line of
// memory of their own. A number is free again when its thread ends.
#define VARVE_THREAD_SLOTS 256

// 1 and the thread's number; 0 while it has none.
extern _Thread_local int varve_thread_slot_known;

// Takes a number for this thread; -1 when all are taken.
int varve_thread_slot_claim(void);

// This thread's number, below VARVE_THREAD_SLOTS; -1 when all were taken.
static inline int varve_thread_slot(void) {
    int known = varve_thread_slot_known;
    return known > 0 ? known - 1 : varve_thread_slot_claim();
}

// All numbers ever handed out are below this one.
int varve_thread_slots_used(void);

// Bytes of memory that this process has in use; 0 where the system does not say.
uint64_t varve_resident_bytes(void);

// Retains a native Swift object whose memory is not freed, unless its end has begun: then NULL.
void *varve_try_retain(void *object);

#endif
