/* The instruction vectors: tests/golden/isa.tsv, and isa-more.tsv with every format and form,
 * derived by hand (kind, name, generations, bytes, meaning). */
#ifndef CPS_TESTS_ISA_GOLDEN_H
#define CPS_TESTS_ISA_GOLDEN_H

#include "codegen/isa/isa.h"
#include "runtime/base/file.h"

#include <stdio.h>
#include <string.h>

#define GOLDEN_FILE "tests/golden/isa.tsv"
#define GOLDEN_MORE "tests/golden/isa-more.tsv"
enum { GOLDEN_MOST = 512, GOLDEN_COUNT = 47 };

typedef struct golden {
    char kind[8], name[64], meaning[1024];
    unsigned gens; /* mask */
    cps_bundle b;
} golden;

/* Rows read, at most `most`; 0 when the file cannot be read or a line of it is no row. */
static inline unsigned
golden_read_file(const char *path, golden *out, unsigned most)
{
    cps_file f;
    unsigned n = 0;
    if (!cps_file_open(path, true, &f))
        return 0;
    const char *s = (const char *)f.data, *end = s + f.n;
    while (s < end && n < most) {
        const char *nl = memchr(s, '\n', (size_t)(end - s));
        char gens[32], hex[256];
        if (*s != '#') {
            if (sscanf(s, "%7[^\t]\t%63[^\t]\t%31[^\t]\t%255[0-9a-f]\t%1023[^\n]", out[n].kind,
                       out[n].name, gens, hex, out[n].meaning) != 5 ||
                strlen(hex) != 128) {
                fprintf(stderr, "%s: bad line %.60s\n", path, s);
                cps_file_close(&f);
                return 0;
            }
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

static inline unsigned
golden_read(golden *out, unsigned most)
{
    return golden_read_file(GOLDEN_FILE, out, most);
}

/* Both files. */
static inline unsigned
golden_read_all(golden *out)
{
    unsigned n = golden_read_file(GOLDEN_FILE, out, GOLDEN_MOST);
    return n + golden_read_file(GOLDEN_MORE, out + n, GOLDEN_MOST - n);
}

#endif
