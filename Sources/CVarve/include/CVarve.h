// Constants and calls that Swift cannot reach, and SHA-256 (names of blob files).
#ifndef CVARVE_H
#define CVARVE_H

#include <stddef.h>
#include <stdint.h>

// Locks one byte for the open file description (released when its last descriptor closes).
// Returns 0 or an errno; EAGAIN or EACCES when another description holds it and `wait` is 0.
int varve_lock_byte(int descriptor, int64_t byte, int exclusive, int wait);

// Renames inside a directory; EEXIST when the new name is taken. Returns 0 or an errno.
int varve_rename_exclusive(int directory, const char *from, const char *to);

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

#endif
