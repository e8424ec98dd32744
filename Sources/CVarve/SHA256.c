// SHA-256 (FIPS 180-4). Two ways to do one block: C for every CPU, and x86 SHA instructions,
// chosen at run time. Both are tested against the published vectors and against each other.
#include "CVarve.h"

#include <string.h>

static const uint32_t constants[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t value, unsigned bits) {
    return value >> bits | value << (32 - bits);
}

static void blocks_portable(uint32_t state[8], const uint8_t *bytes, size_t blocks) {
    for (; blocks > 0; blocks--, bytes += 64) {
        uint32_t words[64];
        for (int i = 0; i < 16; i++) {
            words[i] = (uint32_t)bytes[4 * i] << 24 | (uint32_t)bytes[4 * i + 1] << 16 |
                       (uint32_t)bytes[4 * i + 2] << 8 | (uint32_t)bytes[4 * i + 3];
        }
        for (int i = 16; i < 64; i++) {
            uint32_t s0 = rotate(words[i - 15], 7) ^ rotate(words[i - 15], 18) ^ words[i - 15] >> 3;
            uint32_t s1 = rotate(words[i - 2], 17) ^ rotate(words[i - 2], 19) ^ words[i - 2] >> 10;
            words[i] = words[i - 16] + s0 + words[i - 7] + s1;
        }
        uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
        uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
        for (int i = 0; i < 64; i++) {
            uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
            uint32_t one = h + s1 + ((e & f) ^ (~e & g)) + constants[i] + words[i];
            uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
            uint32_t two = s0 + ((a & b) ^ (a & c) ^ (b & c));
            h = g;
            g = f;
            f = e;
            e = d + one;
            d = c;
            c = b;
            b = a;
            a = one + two;
        }
        state[0] += a;
        state[1] += b;
        state[2] += c;
        state[3] += d;
        state[4] += e;
        state[5] += f;
        state[6] += g;
        state[7] += h;
    }
}

#if (defined(__x86_64__) || defined(__i386__)) && (defined(__clang__) || defined(__GNUC__))
#define VARVE_HAS_SHA_PATH 1
#include <cpuid.h>
#include <immintrin.h>

__attribute__((target("sha,sse4.1,ssse3")))
static void blocks_accelerated(uint32_t state[8], const uint8_t *bytes, size_t blocks) {
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bULL, 0x0405060700010203ULL);
    // The instructions want the state as (A, B, E, F) and (C, D, G, H).
    __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)&state[0]), 0xB1);
    __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)&state[4]), 0x1B);
    __m128i abef = _mm_alignr_epi8(low, high, 8);
    __m128i cdgh = _mm_blend_epi16(high, low, 0xF0);

    for (; blocks > 0; blocks--, bytes += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i words[4];
        for (int i = 0; i < 4; i++) {
            words[i] = _mm_shuffle_epi8(
                _mm_loadu_si128((const __m128i *)(bytes + 16 * i)), swap);
        }
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            // Four rounds with words[i & 3], which is then replaced by the word 16 further on.
            __m128i now = words[i & 3];
            __m128i sum = _mm_add_epi32(
                now, _mm_load_si128((const __m128i *)&constants[4 * i]));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
            if (i < 12) {
                __m128i last = words[(i + 3) & 3];
                __m128i middle = _mm_alignr_epi8(last, words[(i + 2) & 3], 4);
                __m128i next = _mm_sha256msg1_epu32(now, words[(i + 1) & 3]);
                words[i & 3] = _mm_sha256msg2_epu32(_mm_add_epi32(next, middle), last);
            }
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    low = _mm_shuffle_epi32(abef, 0x1B);
    high = _mm_shuffle_epi32(cdgh, 0xB1);
    _mm_storeu_si128((__m128i *)&state[0], _mm_blend_epi16(low, high, 0xF0));
    _mm_storeu_si128((__m128i *)&state[4], _mm_alignr_epi8(high, low, 8));
}

static int has_instructions(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
    int has_ssse3 = (c >> 9) & 1, has_sse41 = (c >> 19) & 1;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    return has_ssse3 && has_sse41 && ((b >> 29) & 1);
}

int varve_sha256_is_accelerated(void) {
    // Asked once: in a virtual machine each question goes out to the host, microseconds each time.
    static int answer; // 0: not asked yet; threads that ask at once get the same answer.
    int known = __atomic_load_n(&answer, __ATOMIC_RELAXED);
    if (known == 0) {
        known = has_instructions() ? 2 : 1;
        __atomic_store_n(&answer, known, __ATOMIC_RELAXED);
    }
    return known == 2;
}
#else
int varve_sha256_is_accelerated(void) { return 0; }
#endif

static void do_blocks(varve_sha256 *context, const uint8_t *bytes, size_t blocks) {
    if (blocks == 0) return;
#ifdef VARVE_HAS_SHA_PATH
    if (!context->portable) {
        blocks_accelerated(context->state, bytes, blocks);
        return;
    }
#endif
    blocks_portable(context->state, bytes, blocks);
}

void varve_sha256_begin(varve_sha256 *context, int portable) {
    static const uint32_t start[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    };
    memset(context, 0, sizeof *context);
    memcpy(context->state, start, sizeof start);
    context->portable = portable || !varve_sha256_is_accelerated();
}

void varve_sha256_update(varve_sha256 *context, const uint8_t *bytes, size_t count) {
    size_t used = (size_t)(context->length % 64);
    context->length += count;
    if (used > 0) {
        size_t part = 64 - used < count ? 64 - used : count;
        memcpy(context->block + used, bytes, part);
        bytes += part;
        count -= part;
        if (used + part < 64) return;
        do_blocks(context, context->block, 1);
    }
    do_blocks(context, bytes, count / 64);
    bytes += count - count % 64;
    if (count % 64 > 0) memcpy(context->block, bytes, count % 64);
}

void varve_sha256_finish(varve_sha256 *context, uint8_t digest[32]) {
    size_t used = (size_t)(context->length % 64);
    uint64_t bits = context->length * 8;
    context->block[used++] = 0x80;
    if (used > 56) {
        memset(context->block + used, 0, 64 - used);
        do_blocks(context, context->block, 1);
        used = 0;
    }
    memset(context->block + used, 0, 56 - used);
    for (int i = 0; i < 8; i++) context->block[56 + i] = (uint8_t)(bits >> (56 - 8 * i));
    do_blocks(context, context->block, 1);
    for (int i = 0; i < 8; i++) {
        digest[4 * i] = (uint8_t)(context->state[i] >> 24);
        digest[4 * i + 1] = (uint8_t)(context->state[i] >> 16);
        digest[4 * i + 2] = (uint8_t)(context->state[i] >> 8);
        digest[4 * i + 3] = (uint8_t)context->state[i];
    }
}
