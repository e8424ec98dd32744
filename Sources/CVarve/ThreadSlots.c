// Small numbers for threads (CVarve.h).
//
// Invariants
// - A bit of `taken` is set exactly while a living thread has that number.
// - A number passes from a dying thread to a new one through `taken`: release, then acquire.

#include "CVarve.h"

#include <pthread.h>
#include <stdatomic.h>

_Thread_local int varve_thread_slot_known = 0;

static _Atomic uint64_t taken[VARVE_THREAD_SLOTS / 64];
static _Atomic int used;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int has_key;

// Runs when a thread ends. One that still works afterwards, in another destructor, takes a number
// anew, and this runs again.
static void give_back(void *value) {
    uintptr_t known = (uintptr_t)value;
    if (known == 0) return;
    unsigned slot = (unsigned)known - 1;
    varve_thread_slot_known = 0;
    atomic_fetch_and_explicit(
        &taken[slot / 64], ~(UINT64_C(1) << (slot % 64)), memory_order_release);
}

static void make_key(void) {
    has_key = pthread_key_create(&key, give_back) == 0;
}

int varve_thread_slot_claim(void) {
    pthread_once(&once, make_key);
    if (!has_key) return -1;
    for (int word = 0; word < VARVE_THREAD_SLOTS / 64; word++) {
        uint64_t bits = atomic_load_explicit(&taken[word], memory_order_relaxed);
        while (bits != UINT64_MAX) {
            int bit = __builtin_ctzll(~bits);
            uint64_t mask = UINT64_C(1) << bit;
            if (!atomic_compare_exchange_weak_explicit(
                    &taken[word], &bits, bits | mask, memory_order_acq_rel, memory_order_relaxed))
                continue;
            int slot = word * 64 + bit;
            // Before the number is used: whoever asks what readers do must ask this one too.
            int known = atomic_load(&used);
            while (known <= slot && !atomic_compare_exchange_weak(&used, &known, slot + 1)) {
            }
            if (pthread_setspecific(key, (void *)(uintptr_t)(slot + 1)) != 0) {
                // Nobody would give it back.
                atomic_fetch_and_explicit(&taken[word], ~mask, memory_order_release);
                return -1;
            }
            varve_thread_slot_known = slot + 1;
            return slot;
        }
    }
    return -1;
}

int varve_thread_slots_used(void) {
    return atomic_load(&used);
}
