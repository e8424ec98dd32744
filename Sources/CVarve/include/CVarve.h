// Constants and calls that Swift cannot reach, SHA-256 (names of blob files), numbers for threads.
#ifndef CVARVE_H
#define CVARVE_H

#include <stddef.h>
#include <stdint.h>

// Locks one byte for the open file description (released when its last descriptor closes).
// Returns 0 or an errno; EAGAIN or EACCES when another description holds it and `wait` is 0.
int varve_lock_byte(int descriptor, int64_t byte, int exclusive, int wait);

// Gives the lock up for all descriptors of the description, also those that a child of a fork has
// until it runs another program.
void varve_unlock_byte(int descriptor, int64_t byte);

// Whether another open file description has a lock of any kind on one of the bytes: 1 or 0, and -1
// where the system cannot tell.
int varve_bytes_locked(int descriptor, int64_t start, int64_t count);

// 8 aligned bytes that another process may write meanwhile.
static inline uint64_t varve_load_word(const void *place) {
    return __atomic_load_n((const uint64_t *)place, __ATOMIC_ACQUIRE);
}

// Renames inside a directory; EEXIST when the new name is taken. Returns 0 or an errno.
int varve_rename_exclusive(int directory, const char *from, const char *to);

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

// Retains a native Swift object whose memory is not freed, unless its end has begun: then NULL.
void *varve_try_retain(void *object);

#endif
