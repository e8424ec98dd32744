// Counts what this process asks of the disk and of the allocator, whichever library asks for it.
#ifndef CFLUSHCOUNT_H
#define CFLUSHCOUNT_H

#include <stdint.h>

// Switches counting on or off. Off costs one relaxed load per call.
void flush_count_enable(int enabled);

// Flushes so far: fdatasync, fsync, msync(MS_SYNC), and writes to files opened with O_DSYNC or
// O_SYNC. -1 where they cannot be counted.
int64_t flush_count(void);

// Drops the clean pages of a file from the page cache. 0, or an error number.
int drop_cached_pages(const char *path);

// How many pages of a file are in the page cache, -1 when that cannot be told.
int64_t cached_pages(const char *path);

// Bytes that the process has from the C library's allocator and has not given back, -1 when that
// cannot be told.
int64_t allocated_bytes(void);

#endif
