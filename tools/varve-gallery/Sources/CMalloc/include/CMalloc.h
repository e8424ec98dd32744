// One call of the C library that Swift's Glibc module does not show.
#ifndef C_MALLOC_H
#define C_MALLOC_H

#if defined(__GLIBC__) || defined(__linux__)
#include <features.h>
#endif

#ifdef __GLIBC__
#include <malloc.h>
#endif

// Gives the free pages of the heap back to the system, where the C library can.
static inline void gallery_give_freed_memory_back(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

#endif
