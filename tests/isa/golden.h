/* The golden instruction vectors: tests/golden/isa.tsv (kind, name, generations, bytes,
 * meaning). */
#ifndef CPS_TESTS_ISA_GOLDEN_H
#define CPS_TESTS_ISA_GOLDEN_H

#include "codegen/isa/isa.h"
#include "runtime/base/file.h"

#include <stdio.h>
#include <string.h>

typedef struct golden {
    char kind[8], name[64];
    unsigned gens; /* mask */
    cps_bundle b;
} golden;

/* Rows read, at most `most`; 0 when the file cannot be read. */
static unsigned
golden_read(golden *out, unsigned most)
{
    cps_file f;
    unsigned n = 0;
    if (!cps_file_open("tests/golden/isa.tsv", true, &f))
        return 0;
    const char *s = (const char *)f.data, *end = s + f.n;
    while (s < end && n < most) {
        const char *nl = memchr(s, '\n', (size_t)(end - s));
        char gens[32], hex[256];
        if (*s != '#' &&
            sscanf(s, "%7[^\t]\t%63[^\t]\t%31[^\t]\t%255[0-9a-f]", out[n].kind, out[n].name,
                   gens, hex) == 4 &&
            strlen(hex) == 128) {
            out[n].gens = 0;
            for (unsigned g = 0; g < CPS_GENS; g++)
                if (strstr(gens, cps_gen_name((cps_gen)g)))
                    out[n].gens |= 1u << g;
            for (unsigned i = 0; i < CPS_BUNDLE_BYTES; i++) {
                unsigned v = 0;
                sscanf(hex + 2 * i, "%2x", &v);
                out[n].b.b[i] = (uint8_t)v;
            }
            n++;
        }
        s = nl ? nl + 1 : end;
    }
    cps_file_close(&f);
    return n;
}

#endif
