// A library for LD_PRELOAD: the calls that a store makes fail, or end the process, when they are told.
//
// Counts the calls on files from the moment on at which the process looks for a file of the name
// "/varve-work-begins". From the environment:
//
//     VARVE_SHIM_LOG=PATH      the kind of each call is added to this file, one letter each
//     VARVE_SHIM_CALL=N        the first call that goes wrong
//     VARVE_SHIM_TIMES=N       so many calls go wrong: those of the same kind; 0: for ever
//     VARVE_SHIM_ANY=1         all kinds go wrong, not only that of the first
//     VARVE_SHIM_ACTION=WHAT   kill, kill-half (half of a write is done), kill-after, fail,
//                              fail-after (done all the same), short (half of it is done)
//     VARVE_SHIM_ERRNO=N       what a call that fails says
//     VARVE_SHIM_NO_SYNC=1     syncs do nothing and succeed
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum action { PASS, KILL, KILL_HALF, KILL_AFTER, FAIL, FAIL_AFTER, SHORT };

static atomic_long calls;
static atomic_bool counts;
static atomic_int victim; // the kind of the first call that went wrong
static atomic_long wrong; // calls that went wrong
static long first, times;
static int any, code, log_file = -1;
static enum action wanted;

static int skips_syncs(void) {
    static int known = -1;
    if (known < 0) known = getenv("VARVE_SHIM_NO_SYNC") != NULL;
    return known;
}

static long number(const char *name) {
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

static void begin(void) {
    static const char *names[] = {"",     "kill",       "kill-half", "kill-after",
                                  "fail", "fail-after", "short"};
    const char *action = getenv("VARVE_SHIM_ACTION");
    for (int i = 1; action && i < 7; i++) {
        if (strcmp(action, names[i]) == 0) wanted = (enum action)i;
    }
    first = number("VARVE_SHIM_CALL");
    times = number("VARVE_SHIM_TIMES");
    any = (int)number("VARVE_SHIM_ANY");
    code = (int)number("VARVE_SHIM_ERRNO");
    const char *path = getenv("VARVE_SHIM_LOG");
    if (path) {
        log_file = (int)syscall(SYS_openat, AT_FDCWD, path,
                                O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    }
    atomic_store(&counts, 1);
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

// What is to happen to this call.
static enum action judge(char kind) {
    if (!atomic_load(&counts)) return PASS;
    int before = errno;
    if (log_file >= 0) syscall(SYS_write, log_file, &kind, 1L);
    errno = before;
    long mine = atomic_fetch_add(&calls, 1) + 1;
    if (first == 0 || mine < first) return PASS;
    int none = 0;
    atomic_compare_exchange_strong(&victim, &none, kind);
    if (!any && atomic_load(&victim) != kind) return PASS;
    if (times != 0 && atomic_fetch_add(&wrong, 1) >= times) return PASS;
    if (wanted == KILL) die();
    return wanted;
}

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

// A call that is done or not, nothing in between.
#define WHOLE(kind, call) \
    enum action action = judge(kind); \
    if (action == FAIL) { \
        errno = code; \
        return -1; \
    } \
    __typeof__(call) result = call; \
    if (action == KILL_AFTER || action == KILL_HALF) die(); \
    if (action == FAIL_AFTER) { \
        errno = code; \
        return -1; \
    } \
    return result

// A call that may be done in part.
#define PARTIAL(kind, count, call) \
    enum action action = judge(kind); \
    if (action == FAIL) { \
        errno = code; \
        return -1; \
    } \
    if ((action == SHORT || action == KILL_HALF) && count > 1) count /= 2; \
    ssize_t result = call; \
    if (action == KILL_AFTER || action == KILL_HALF) die(); \
    if (action == FAIL_AFTER) { \
        errno = code; \
        return -1; \
    } \
    return result

int access(const char *path, int mode) {
    NEXT(access);
    if (strcmp(path, "/varve-work-begins") == 0) begin();
    return next(path, mode);
}

ssize_t write(int file, const void *bytes, size_t count) {
    NEXT(write);
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return next(file, bytes, count);
    PARTIAL('w', count, next(file, bytes, count));
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    NEXT(pwrite);
    PARTIAL('w', count, next(file, bytes, count, offset));
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
    NEXT(pwrite64);
    PARTIAL('w', count, next(file, bytes, count, offset));
}

ssize_t pread(int file, void *bytes, size_t count, off_t offset) {
    NEXT(pread);
    PARTIAL('p', count, next(file, bytes, count, offset));
}

ssize_t pread64(int file, void *bytes, size_t count, off64_t offset) {
    NEXT(pread64);
    PARTIAL('p', count, next(file, bytes, count, offset));
}

int fsync(int file) {
    NEXT(fsync);
    if (skips_syncs()) return 0;
    WHOLE('s', next(file));
}

int fdatasync(int file) {
    NEXT(fdatasync);
    if (skips_syncs()) return 0;
    WHOLE('s', next(file));
}

int ftruncate(int file, off_t size) {
    NEXT(ftruncate);
    WHOLE('t', next(file, size));
}

int ftruncate64(int file, off64_t size) {
    NEXT(ftruncate64);
    WHOLE('t', next(file, size));
}

int rename(const char *from, const char *to) {
    NEXT(rename);
    WHOLE('r', next(from, to));
}

int renameat(int a, const char *from, int b, const char *to) {
    NEXT(renameat);
    WHOLE('r', next(a, from, b, to));
}

int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
    NEXT(renameat2);
    WHOLE('r', next(a, from, b, to, flags));
}

int linkat(int a, const char *from, int b, const char *to, int flags) {
    NEXT(linkat);
    WHOLE('r', next(a, from, b, to, flags));
}

int unlink(const char *name) {
    NEXT(unlink);
    WHOLE('u', next(name));
}

int unlinkat(int directory, const char *name, int flags) {
    NEXT(unlinkat);
    WHOLE('u', next(directory, name, flags));
}

int mkdirat(int directory, const char *name, mode_t mode) {
    NEXT(mkdirat);
    WHOLE('d', next(directory, name, mode));
}

static mode_t mode_of(int flags, va_list rest) {
    return flags & (O_CREAT | __O_TMPFILE) ? (mode_t)va_arg(rest, int) : 0;
}

int openat(int directory, const char *name, int flags, ...) {
    NEXT(openat);
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    WHOLE('o', next(directory, name, flags, mode));
}

int openat64(int directory, const char *name, int flags, ...) {
    NEXT(openat64);
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    WHOLE('o', next(directory, name, flags, mode));
}
