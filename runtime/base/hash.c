/* Digests for keys and files, and the quick mix for tables in memory.
 *
 * In: bytes. Out: SHA-256 by libcrypto, with the framing of the cache keys: a domain tag that ends
 * with NUL, then fields as u16 id, u32 length, bytes, all little endian. Ids ascend by
 * agreement of the callers. The 64-bit mix is free to change between versions: it is never
 * written out. */
#include "runtime/base/hash.h"
#include "runtime/base/sum.h"

#define OPENSSL_SUPPRESS_DEPRECATED // the plain calls: no provider is loaded, a context is a struct
#include <openssl/md5.h>
#include <openssl/sha.h>
#include <string.h>

_Static_assert(sizeof(SHA256_CTX) <= sizeof(cps_hasher), "cps_hasher has room for libcrypto's");
_Static_assert(_Alignof(SHA256_CTX) <= _Alignof(cps_hasher), "cps_hasher is aligned for libcrypto's");

static inline SHA256_CTX *
ctx(cps_hasher *h)
{
    return (SHA256_CTX *)(void *)h;
}

void
cps_hash_init(cps_hasher *h, const char *domain)
{
    SHA256_Init(ctx(h));
    cps_hash_bytes(h, domain, strlen(domain) + 1);
}

void
cps_hash_bytes(cps_hasher *h, const void *p, size_t n)
{
    if (n)
        SHA256_Update(ctx(h), p, n);
}

void
cps_hash_field(cps_hasher *h, uint16_t id, const void *p, size_t n)
{
    cps_assert(n <= UINT32_MAX);
    uint8_t head[6] = {(uint8_t)id,       (uint8_t)(id >> 8), (uint8_t)n,
                       (uint8_t)(n >> 8), (uint8_t)(n >> 16), (uint8_t)(n >> 24)};
    cps_hash_bytes(h, head, sizeof(head));
    cps_hash_bytes(h, p, n);
}

void
cps_hash_str(cps_hasher *h, uint16_t id, const char *s)
{
    cps_hash_field(h, id, s, strlen(s));
}

void
cps_hash_u64(cps_hasher *h, uint16_t id, uint64_t v)
{
    uint8_t b[8];
    for (int i = 0; i < 8; i++)
        b[i] = (uint8_t)(v >> (8 * i));
    cps_hash_field(h, id, b, sizeof(b));
}

cps_digest
cps_hash_final(cps_hasher *h)
{
    cps_digest d;
    SHA256_Final(d.b, ctx(h));
    return d;
}

cps_digest
cps_digest_of(const void *p, size_t n)
{
    cps_hasher h;
    SHA256_Init(ctx(&h));
    cps_hash_bytes(&h, p, n);
    return cps_hash_final(&h);
}

static const cps_sum_with *
sums(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2"))
        return &cps_sum_avx2;
#endif
    return &cps_sum_plain;
}

static cps_sum
canonical(cps_sum_pair h)
{
    cps_sum out;
    for (int i = 0; i < 8; i++) {
        out.b[i] = (uint8_t)(h.high >> (56 - 8 * i));
        out.b[8 + i] = (uint8_t)(h.low >> (56 - 8 * i));
    }
    return out;
}

cps_sum
cps_sum_of(const void *p, size_t n, const uint8_t *secret)
{
    return canonical(sums()->one(p, n, secret));
}

cps_sum
cps_sum_of_two(const void *p, size_t n, const void *q, size_t m)
{
    return canonical(sums()->two(p, n, q, m));
}

void
cps_md5(const void *p, size_t n, uint8_t out[16])
{
    MD5_CTX c;
    MD5_Init(&c);
    if (n)
        MD5_Update(&c, p, n);
    MD5_Final(out, &c);
}

bool
cps_digest_eq(const cps_digest *a, const cps_digest *b)
{
    return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

void
cps_digest_hex(const cps_digest *d, char out[65])
{
    static const char hex[] = "0123456789abcdef";
    for (int i = 0; i < 32; i++) {
        out[2 * i] = hex[d->b[i] >> 4];
        out[2 * i + 1] = hex[d->b[i] & 15];
    }
    out[64] = 0;
}

static int
hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool
cps_digest_parse(const char *hex, cps_digest *out)
{
    if (strnlen(hex, 65) != 64)
        return false;
    for (int i = 0; i < 32; i++) {
        int hi = hex_digit(hex[2 * i]), lo = hex_digit(hex[2 * i + 1]);
        if (hi < 0 || lo < 0)
            return false;
        out->b[i] = (uint8_t)(hi << 4 | lo);
    }
    return true;
}

uint64_t
cps_mix64(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

uint64_t
cps_hash_mem(const void *p, size_t n)
{
    const uint8_t *s = p;
    uint64_t h = cps_mix64(n + 0x9e3779b97f4a7c15u), w;
    for (; n >= 8; s += 8, n -= 8) {
        memcpy(&w, s, 8);
        h = cps_mix64(h ^ w) * 3;
    }
    w = 0;
    if (n)
        memcpy(&w, s, n);
    return cps_mix64(h ^ w);
}
