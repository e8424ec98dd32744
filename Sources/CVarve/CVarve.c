// System calls and constants that Swift cannot reach.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "CVarve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#if defined(__linux__)
#include <sys/sysmacros.h>
#endif
#include <unistd.h>
#if defined(__APPLE__)
#include <mach/mach.h>
#include <malloc/malloc.h>
#include <sys/sysctl.h>
#elif defined(__linux__)
#include <malloc.h>
#include <stdlib.h>
#endif

uint64_t varve_resident_bytes(void) {
#if defined(__APPLE__)
    struct mach_task_basic_info facts;
    mach_msg_type_number_t count = MACH_TASK_BASIC_INFO_COUNT;
    kern_return_t result =
        task_info(mach_task_self(), MACH_TASK_BASIC_INFO, (task_info_t)&facts, &count);
    return result == KERN_SUCCESS ? facts.resident_size : 0;
#elif defined(__linux__)
    // Pages of the process, then those in memory: two numbers of at most 20 digits.
    char text[64] = {0};
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) return 0;
    char *rest = text;
    strtoull(text, &rest, 10);
    return strtoull(rest, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
#else
    return 0;
#endif
}

size_t varve_read_beginning(const char *path, void *room, size_t count) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    size_t got = 0;
    while (got < count) {
        ssize_t part = read(file, (char *)room + got, count - got);
        if (part < 0 && errno == EINTR) continue;
        if (part <= 0) break;
        got += (size_t)part;
    }
    close(file);
    return got;
}

uint64_t varve_memory_bytes(void) {
#ifdef _SC_PHYS_PAGES
    long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes : 0;
#else
    return 0;
#endif
}

int varve_memory_percent_left(void) {
#if defined(__APPLE__)
    // The figure that the system's own memory pressure goes by.
    int percent = 0;
    size_t size = sizeof percent;
    if (sysctlbyname("kern.memorystatus_level", &percent, &size, NULL, 0) != 0) return -1;
    return percent < 0 || percent > 100 ? -1 : percent;
#else
    return -1;
#endif
}

void varve_give_free_memory_back(void) {
#if defined(__APPLE__)
    malloc_zone_pressure_relief(NULL, 0);
#elif defined(__GLIBC__)
    malloc_trim(0);
#elif defined(__ANDROID__) && defined(M_PURGE) && __ANDROID_API__ >= 28
    mallopt(M_PURGE, 0);
#endif
}

int varve_lock_byte(int descriptor, int64_t byte, int exclusive, int wait) {
#ifdef F_OFD_SETLK
    struct flock lock = {0};
    lock.l_type = exclusive ? F_WRLCK : F_RDLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = (off_t)byte;
    lock.l_len = 1;
    while (fcntl(descriptor, wait ? F_OFD_SETLKW : F_OFD_SETLK, &lock) != 0) {
        if (errno != EINTR) return errno;
    }
    return 0;
#else
    // Whole-file locks of the description: coarser, never weaker.
    (void)byte;
    while (flock(descriptor, (exclusive ? LOCK_EX : LOCK_SH) | (wait ? 0 : LOCK_NB)) != 0) {
        if (errno != EINTR) return errno == EWOULDBLOCK ? EAGAIN : errno;
    }
    return 0;
#endif
}

void varve_unlock_byte(int descriptor, int64_t byte) {
#ifdef F_OFD_SETLK
    struct flock lock = {0};
    lock.l_type = F_UNLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = (off_t)byte;
    lock.l_len = 1;
    while (fcntl(descriptor, F_OFD_SETLK, &lock) != 0 && errno == EINTR) {
    }
#else
    (void)byte;
    while (flock(descriptor, LOCK_UN) != 0 && errno == EINTR) {
    }
#endif
}

int varve_look_at_file(int descriptor, const char *name, varve_file_facts *facts) {
#if defined(__linux__) && defined(STATX_INO)
    struct statx found;
    const unsigned int wanted =
        STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_UID | STATX_INO | STATX_SIZE;
    const int flags = AT_SYMLINK_NOFOLLOW | (name ? 0 : AT_EMPTY_PATH);
    if (statx(descriptor, name ? name : "", flags, wanted, &found) == 0) {
        facts->device = makedev(found.stx_dev_major, found.stx_dev_minor);
        facts->inode = found.stx_ino;
        facts->links = found.stx_nlink;
        facts->size = found.stx_size;
        facts->owner = found.stx_uid;
        facts->mode = found.stx_mode;
        return 0;
    }
    // Sandboxes that do not know the call refuse it.
    if (errno != ENOSYS && errno != EPERM) return errno;
#endif
    struct stat status;
    const int failed = name ? fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW)
                            : fstat(descriptor, &status);
    if (failed) return errno;
    facts->device = (uint64_t)status.st_dev;
    facts->inode = (uint64_t)status.st_ino;
    facts->links = (uint64_t)status.st_nlink;
    facts->size = status.st_size > 0 ? (uint64_t)status.st_size : 0;
    facts->owner = (uint32_t)status.st_uid;
    facts->mode = (uint32_t)status.st_mode;
    return 0;
}

int varve_bytes_locked(int descriptor, int64_t start, int64_t count) {
#ifdef F_OFD_SETLK
    struct flock lock = {0};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = (off_t)start;
    lock.l_len = (off_t)count;
    while (fcntl(descriptor, F_OFD_GETLK, &lock) != 0) {
        if (errno != EINTR) return -1;
    }
    return lock.l_type != F_UNLCK;
#else
    (void)descriptor;
    (void)start;
    (void)count;
    return -1;
#endif
}

int64_t varve_file_size_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return INT64_MAX;
    return limit.rlim_cur > (rlim_t)INT64_MAX ? INT64_MAX : (int64_t)limit.rlim_cur;
}

int varve_rename_exclusive(int directory, const char *from, const char *to) {
#if defined(__linux__) && defined(RENAME_NOREPLACE)
    if (renameat2(directory, from, directory, to, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return errno;
#elif defined(__APPLE__)
    if (renameatx_np(directory, from, directory, to, RENAME_EXCL) == 0) return 0;
    if (errno != EINVAL && errno != ENOTSUP) return errno;
#endif
    // File systems without it: a link never replaces either.
    if (linkat(directory, from, directory, to, 0) != 0) return errno;
    return unlinkat(directory, from, 0) == 0 ? 0 : errno;
}
