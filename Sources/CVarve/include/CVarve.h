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

#endif
