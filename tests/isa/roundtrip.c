/* Random round trips of instruction text, for every row and generation:
 *   - instructions with random legal fields: bytes to text to bytes to text, both the same;
 *   - the same text spelled by a person (operands in another order, other case of the mnemonic,
 *     more blanks, a comment): the same bytes, which print the text of before;
 *   - random 64 bytes: they print and come back.
 *
 *   roundtrip COUNT SEED [v2|v3|v4]   COUNT instructions and a quarter as many random records
 * for each generation; ten million take about a minute */
#include "codegen/isa/text.h"
#include "tests/check.h"
#include "tests/isa/random.h"

#include <stdlib.h>

enum { BATCH = 1024 };

static cps_rng rng;
static cps_diags *diags;
static cps_buf text, bytes, again, spelled;

static void
show(const cps_bundle *b, unsigned n)
{
    cps_buf why = {0};
    cps_diags_render(diags, &why, false);
    fprintf(stderr, "%s", why.n ? why.data : "");
    const char *line = text.data;
    for (unsigned i = 0; i < n; i++) {
        const char *nl = strchr(line, '\n');
        const uint8_t *back = (const uint8_t *)bytes.data + (size_t)i * CPS_BUNDLE_BYTES;
        if (bytes.n != (size_t)n * CPS_BUNDLE_BYTES || memcmp(back, b[i].b, CPS_BUNDLE_BYTES)) {
            fprintf(stderr, "record %u of the batch: %.*s\n", i, (int)(nl - line), line);
            for (unsigned k = 0; k < CPS_BUNDLE_BYTES; k++)
                fprintf(stderr, "%02x%s", b[i].b[k], k + 1 < CPS_BUNDLE_BYTES ? "" : "\n");
            break;
        }
        line = nl + 1;
    }
    cps_buf_fini(&why);
    cps_diags_clear(diags);
}

static bool
same_bytes(const char *s, size_t len, const cps_bundle *b, unsigned n, cps_gen g)
{
    bytes.n = 0;
    return cps_isa_parse(s, len, 0, g, diags, &bytes) &&
           bytes.n == (size_t)n * CPS_BUNDLE_BYTES && memcmp(bytes.data, b, bytes.n) == 0;
}

// name=value, not S[4]=1.
static bool
is_operand(const char *s, unsigned n)
{
    size_t name = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_.");
    return name < n && s[name] == '=';
}

// One line as a person might write it: words between blanks outside quotes, operands turned
// round. A function stands before them, clauses after them; both stay.
static void
spell(const char *s, const char *end)
{
    const char *word[64];
    unsigned len[64], n = 0, first = 1, last;
    while (s < end && n < 64) {
        bool quoted = false;
        const char *from = s;
        for (; s < end && (quoted || *s != ' '); s++)
            quoted ^= *s == '"';
        word[n] = from;
        len[n++] = (unsigned)(s - from);
        s += s < end;
    }
    while (first < n && !is_operand(word[first], len[first]))
        first++;
    for (last = first; last < n && is_operand(word[last], len[last]);)
        last++;
    for (unsigned i = 0; i < n; i++) {
        unsigned from = i >= first && i < last ? first + last - 1 - i : i;
        cps_buf_put(&spelled, "   ", i ? 1 + i % 3 : 0);
        size_t at = spelled.n;
        cps_buf_put(&spelled, word[from], len[from]);
        for (size_t k = at; i == 0 && k < spelled.n; k++)
            if (spelled.data[k] >= 'A' && spelled.data[k] <= 'Z')
                spelled.data[k] = (char)(spelled.data[k] + 32);
    }
    cps_buf_puts(&spelled, " // said\n");
}

static bool
round_trip(const cps_bundle *b, unsigned n, cps_gen g, bool legal)
{
    text.n = again.n = spelled.n = 0;
    cps_isa_print_lines(b, n, g, &text);
    bool ok = same_bytes(text.data, text.n, b, n, g);
    cps_isa_print_lines((const cps_bundle *)bytes.data, (unsigned)(bytes.n / CPS_BUNDLE_BYTES),
                        g, &again);
    ok = ok && again.n == text.n && memcmp(again.data, text.data, text.n) == 0;
    if (!ok)
        show(b, n);
    if (ok && legal && cps_rng_below(&rng, 8) == 0) {
        for (const char *s = text.data, *end = s + text.n; s < end;) {
            const char *nl = memchr(s, '\n', (size_t)(end - s));
            spell(s, nl);
            s = nl + 1;
        }
        ok = same_bytes(spelled.data, spelled.n, b, n, g);
        if (!ok) {
            fprintf(stderr, "spelled in another way:\n");
            show(b, n);
        }
    }
    return ok;
}

static unsigned long
verified(const cps_bundle *b, unsigned n, cps_gen g)
{
    unsigned long good = 0;
    for (unsigned i = 0; i < n; i += 61) {
        good += cps_isa_verify(&b[i], g, CPS_ENGINE_ANY, diags, CPS_NOSPAN);
        cps_diags_clear(diags);
    }
    return good;
}

static void
generation(cps_gen g, unsigned long count)
{
    static cps_bundle b[BATCH];
    unsigned long made = 0, random = 0, good = 0, looked = 0, differ = 0;
    unsigned rows = 0;
    for (unsigned i = 1; i < CPS_INSNS; i++)
        rows += cps_insns[i].gens >> g & 1;
    for (cps_insn row = CPS_INSN_NONE; made < count;) {
        unsigned n = (unsigned)CPS_MIN(count - made, (unsigned long)BATCH);
        for (unsigned i = 0; i < n; i++) {
            row = random_next(row, g);
            b[i] = random_insn(&rng, row, g);
        }
        differ += !round_trip(b, n, g, true);
        good += verified(b, n, g);
        looked += (n + 60) / 61;
        made += n;
    }
    while (random < count / 4) {
        unsigned n = (unsigned)CPS_MIN(count / 4 - random, (unsigned long)BATCH);
        for (unsigned i = 0; i < n; i++)
            for (unsigned j = 0; j < CPS_BUNDLE_BYTES; j += 8) {
                uint64_t v = cps_rng_next(&rng);
                v &= i % 3 ? ~0ull : cps_rng_next(&rng) & cps_rng_next(&rng);
                memcpy(b[i].b + j, &v, 8);
            }
        differ += !round_trip(b, n, g, false);
        random += n;
    }
    printf("%s: %lu instructions of %u rows (%lu%% of a sample pass the verifier), %lu random "
           "records, %lu differences\n",
           cps_gen_name(g), made, rows, looked ? 100 * good / looked : 0, random, differ);
    fflush(stdout);
    CHECK(differ == 0 && made == count);
}

int
main(int argc, char **argv)
{
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    diags = cps_diags_create();
    for (unsigned g = 0; g < CPS_GENS; g++)
        if (argc < 4 || strcmp(argv[3], cps_gen_name((cps_gen)g)) == 0) {
            cps_rng_init(&rng, seed, g);
            generation((cps_gen)g, count);
        }
    cps_buf *all[] = {&text, &bytes, &again, &spelled};
    for (unsigned i = 0; i < cps_countof(all); i++)
        cps_buf_fini(all[i]);
    cps_diags_destroy(diags);
    return CHECK_DONE();
}
