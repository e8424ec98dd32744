// Counts flushes of the whole process, and empties the page cache of files: Linux only.
//
// The functions below stand in front of the C library's own, for every library of this process:
// the dynamic linker finds the program's symbols first.
#define _GNU_SOURCE
#include "CFlushCount.h"

#ifdef __linux__

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_int counting;
static atomic_llong flushes;

void flush_count_enable(int enabled) { atomic_store(&counting, enabled); }

int64_t flush_count(void) { return atomic_load(&flushes); }

static void flushed(void) {
    if (atomic_load_explicit(&counting, memory_order_relaxed)) atomic_fetch_add(&flushes, 1);
}

static void wrote(int file) {
    if (!atomic_load_explicit(&counting, memory_order_relaxed)) return;
    int saved = errno;
    int flags = fcntl(file, F_GETFL);
    if (flags >= 0 && (flags & O_DSYNC)) atomic_fetch_add(&flushes, 1);
    errno = saved;
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

__attribute__((visibility("default"))) int fdatasync(int file) {
    REAL(fdatasync);
    flushed();
    return real(file);
}

__attribute__((visibility("default"))) int fsync(int file) {
    REAL(fsync);
    flushed();
    return real(file);
}

__attribute__((visibility("default"))) int msync(void *start, size_t length, int flags) {
    REAL(msync);
    if (flags & MS_SYNC) flushed();
    return real(start, length, flags);
}

__attribute__((visibility("default"))) ssize_t pwrite(
    int file, const void *bytes, size_t count, off_t offset) {
    REAL(pwrite);
    wrote(file);
    return real(file, bytes, count, offset);
}

__attribute__((visibility("default"))) ssize_t pwrite64(
    int file, const void *bytes, size_t count, off64_t offset) {
    REAL(pwrite64);
    wrote(file);
    return real(file, bytes, count, offset);
}

int drop_cached_pages(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno;
    // Only clean pages can go.
    int result = fsync(file) == 0 ? posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) : errno;
    close(file);
    return result;
}

int64_t cached_pages(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    struct stat status;
    int64_t count = -1;
    if (fstat(file, &status) == 0) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        size_t pages = ((size_t)status.st_size + page - 1) / page;
        if (pages == 0) {
            count = 0;
        } else {
            size_t size = (size_t)status.st_size;
            void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);
            unsigned char *resident = malloc(pages);
            if (map != MAP_FAILED && resident && mincore(map, size, resident) == 0) {
                count = 0;
                for (size_t index = 0; index < pages; index++) count += resident[index] & 1;
            }
            free(resident);
            if (map != MAP_FAILED) munmap(map, size);
        }
    }
    close(file);
    return count;
}

#else

void flush_count_enable(int enabled) { (void)enabled; }
int64_t flush_count(void) { return -1; }
int drop_cached_pages(const char *path) { (void)path; return -1; }
int64_t cached_pages(const char *path) { (void)path; return -1; }

#endif

#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 33)
#include <malloc.h>
#define HAS_MALLINFO2 1
#endif
#endif

#ifdef HAS_MALLINFO2
int64_t allocated_bytes(void) {
    struct mallinfo2 info = mallinfo2();
    return (int64_t)(info.uordblks + info.hblkhd);
}
#else
int64_t allocated_bytes(void) { return -1; }
#endif
