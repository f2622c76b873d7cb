/* Digests: FIPS 180-4 example values, framing, hex, and the spread of the quick mix. */
#include "runtime/base/hash.h"
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

int
main(void)
{
    known();
    framing();
    hex();
    spread();
    return CHECK_DONE();
}
