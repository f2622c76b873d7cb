/* SHA-256 for cache keys and digests (libcrypto does the arithmetic), with the framing that keeps
 * adjacent fields from running together; XXH3 for check sums of large contents. */
#ifndef CPS_BASE_HASH_H
#define CPS_BASE_HASH_H

#include "runtime/base/base.h"

typedef struct cps_digest {
    uint8_t b[32];
} cps_digest;

typedef struct cps_hasher {
    uint64_t state[16]; /* room for libcrypto's context, checked in hash.c */
    uint64_t rest[16];
} cps_hasher;

void cps_hash_init(cps_hasher *h, const char *domain);
void cps_hash_bytes(cps_hasher *h, const void *p, size_t n); /* raw, no framing */
/* One field: u16 id, u32 length, bytes (middle-end reference 6.8). */
void cps_hash_field(cps_hasher *h, uint16_t id, const void *p, size_t n);
void cps_hash_str(cps_hasher *h, uint16_t id, const char *s);
void cps_hash_u64(cps_hasher *h, uint16_t id, uint64_t v); /* little endian */
cps_digest cps_hash_final(cps_hasher *h);

cps_digest cps_digest_of(const void *p, size_t n);
bool cps_digest_eq(const cps_digest *a, const cps_digest *b);
/* 64 lower-case hex digits and NUL. */
void cps_digest_hex(const cps_digest *d, char out[65]);
bool cps_digest_parse(const char *hex, cps_digest *out);

/* A fast check sum (XXH3, 128 bits): finds damage and tells the contents of files apart, at the
 * speed of memory. With a `secret` nobody else knows, two contents of one sum cannot be made up. */
#define CPS_SECRET_BYTES 192
typedef struct cps_sum {
    uint8_t b[16];
} cps_sum;
cps_sum cps_sum_of(const void *p, size_t n, const uint8_t *secret /* CPS_SECRET_BYTES, or NULL */);
cps_sum cps_sum_of_two(const void *p, size_t n, const void *q, size_t m); /* of both, one behind the other */

/* MD5, where a foreign format asks for it; never as a key of our own. */
void cps_md5(const void *p, size_t n, uint8_t out[16]);

/* A fast 64-bit mix for tables in memory; never written to a file. */
uint64_t cps_mix64(uint64_t x);
uint64_t cps_hash_mem(const void *p, size_t n);

#endif
