/* Digests: FIPS 180-4 example values, framing, hex, and the spread of the quick mix. */
#include "runtime/base/hash.h"
#include "runtime/base/sum.h"
#include "tests/check.h"

#include <stdlib.h>

static const char *
hex_of(cps_digest d)
{
    static char text[65];
    cps_digest_hex(&d, text);
    return text;
}

static void
known(void)
{
    CHECK_STR(hex_of(cps_digest_of("", 0)),
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK_STR(hex_of(cps_digest_of("abc", 3)),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    char *a = malloc(1000000);
    memset(a, 'a', 1000000);
    CHECK_STR(hex_of(cps_digest_of(a, 1000000)),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(a);
}

// The framing, written out by hand.
static void
framing(void)
{
    static const uint8_t plain[] = "key\0"
                                   "\x02\x01\x03\0\0\0abc"
                                   "\x03\0\x08\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11";
    cps_hasher h;
    cps_hash_init(&h, "key");
    cps_hash_str(&h, 0x102, "abc");
    cps_hash_u64(&h, 3, 0x1122334455667788u);
    cps_digest got = cps_hash_final(&h), want = cps_digest_of(plain, sizeof(plain) - 1);
    CHECK(cps_digest_eq(&got, &want));
    // Neighbouring fields do not run together.
    cps_digest d[2];
    for (int i = 0; i < 2; i++) {
        cps_hash_init(&h, "t");
        cps_hash_str(&h, 1, i ? "ab" : "a");
        cps_hash_str(&h, 2, i ? "" : "b");
        d[i] = cps_hash_final(&h);
    }
    CHECK(!cps_digest_eq(&d[0], &d[1]));
    for (int i = 0; i < 2; i++) {
        cps_hash_init(&h, i ? "tx" : "t");
        cps_hash_bytes(&h, i ? "y" : "xy", i ? 1 : 2);
        d[i] = cps_hash_final(&h);
    }
    CHECK(!cps_digest_eq(&d[0], &d[1]));
}

static void
hex(void)
{
    cps_digest d = cps_digest_of("x", 1), back;
    char text[66];
    cps_digest_hex(&d, text);
    CHECK_INT(strlen(text), 64);
    CHECK(cps_digest_parse(text, &back) && cps_digest_eq(&d, &back));
    text[10] = 'G';
    CHECK(!cps_digest_parse(text, &back));
    text[10] = 'A'; // upper case is not ours
    CHECK(!cps_digest_parse(text, &back));
    CHECK(!cps_digest_parse("", &back));
    memset(text, 'a', 65);
    text[65] = 0;
    CHECK(!cps_digest_parse(text, &back));
}

static void
spread(void)
{
    unsigned bucket[64] = {0};
    for (uint64_t i = 0; i < 64000; i++)
        bucket[cps_mix64(i << 20) & 63]++;
    for (int i = 0; i < 64; i++)
        CHECK(bucket[i] > 800 && bucket[i] < 1200);
    char text[40] = {0};
    uint64_t seen[40];
    for (int n = 0; n < 40; n++) { // zeros of each length differ
        seen[n] = cps_hash_mem(text, (size_t)n);
        for (int k = 0; k < n; k++)
            CHECK(seen[k] != seen[n]);
    }
}

/* Every instruction set gives the sums that are in files, of one text and of its two halves. */
static void
sums(void)
{
    static uint8_t text[5000], secret[CPS_SECRET_BYTES];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)(i * 131 >> 3);
    for (size_t i = 0; i < sizeof secret; i++)
        secret[i] = (uint8_t)(i * 77 + 5);
    const cps_sum_with *all[] = {&cps_sum_plain,
#ifdef __x86_64__
                                 __builtin_cpu_supports("avx2") ? &cps_sum_avx2 : &cps_sum_plain
#endif
    };
    static const size_t len[] = {0, 1, 16, 17, 128, 129, 240, 241, 1024, 1025, 5000};
    for (size_t k = 0; k < cps_countof(all); k++)
        for (size_t i = 0; i < cps_countof(len); i++)
            for (size_t cut = 0; cut <= len[i]; cut += 1 + len[i] / 7) {
                cps_sum_pair one = cps_sum_plain.one(text, len[i], NULL), keyed = cps_sum_plain.one(text, len[i], secret);
                cps_sum_pair got = all[k]->one(text, len[i], NULL), two = all[k]->two(text, cut, text + cut, len[i] - cut);
                cps_sum_pair also = all[k]->one(text, len[i], secret);
                CHECK(got.low == one.low && got.high == one.high && two.low == one.low && two.high == one.high);
                CHECK(also.low == keyed.low && also.high == keyed.high && (keyed.low != one.low || keyed.high != one.high));
            }
    // XXH3 of nothing, as its makers publish it
    static const uint8_t nothing[16] = {0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8,
                                        0x60, 0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f};
    cps_sum sum = cps_sum_of("", 0, NULL), both = cps_sum_of_two(text, 100, text + 100, 900);
    CHECK(memcmp(sum.b, nothing, sizeof nothing) == 0);
    sum = cps_sum_of(text, 1000, NULL);
    CHECK(memcmp(sum.b, both.b, sizeof sum.b) == 0);
}

int
main(void)
{
    known();
    framing();
    hex();
    spread();
    sums();
    return CHECK_DONE();
}
