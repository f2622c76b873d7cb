/* A container is read, described and checked; what was read is written and read to the same
 * members; a program that it holds becomes a package, or messages say why not.
 *
 * The size of the archive in the header is mended, or each change of length would end there. An
 * input that begins with '#' gives the members themselves, a line "#name" before each: what is
 * in them is then reached without the checksums of a tar. */
#include "tests/fuzz/fuzz.h"

#include "runtime/pkg/neff_graph.h"
#include "runtime/pkg/neff_pack.h"

static void
same_members(const cps_neff *f, const cps_neff *g)
{
    for (uint32_t i = 0; i < f->members.n; i++) {
        const cps_neff_member *m = &f->members.data[i], *k = cps_neff_find(g, m->name);
        FUZZ_CHECK(k && k->n == m->n && (!m->n || memcmp(k->data, m->data, m->n) == 0));
    }
}

static cps_neff *
listed(cps_arena *a, const char *p, size_t n)
{
    cps_neff *f = cps_neff_new(a);
    cps_neff_new_head(f, "model", 1, 0);
    for (const char *end = p + n; p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p)), *name = p + 1;
        if (!nl)
            break;
        const char *data = nl + 1, *next = memmem(nl, (size_t)(end - nl), "\n#", 2);
        const char *stop = next && next > nl ? next : end;
        name = cps_arena_strndup(a, name, (size_t)(nl - name));
        if (*name && !cps_neff_find(f, name) && stop >= data)
            cps_neff_add(f, name, cps_arena_strndup(a, data, (size_t)(stop - data)),
                         (size_t)(stop - data));
        p = stop == end ? end : stop + 1;
    }
    return f;
}

static cps_neff *
container(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    uint8_t *mended = cps_arena_raw(a, n + 1);
    if (n)
        memcpy(mended, p, n);
    for (unsigned i = 0; i < 8 && n >= CPS_NEFF_HEAD; i++)
        mended[0x10 + i] = (uint8_t)((uint64_t)(n - CPS_NEFF_HEAD) >> (8 * i));
    return cps_neff_read(a, mended, n, 1 << 22, d);
}

bool
fuzz_neff(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    bool list = n && *p == '#';
    cps_neff *f = list ? listed(a, (const char *)p, n) : container(a, p, n, d);
    FUZZ_CHECK(f || cps_diags_errors(d) > 0);
    if (!f)
        return false;
    cps_buf text = {0}, file = {0};
    cps_neff_info *info = cps_neff_describe(a, f, d);
    FUZZ_CHECK(info != NULL);
    cps_neff_check check[CPS_NEFF_CHECKS];
    cps_neff_checks(info, check);
    const char *why = NULL;
    size_t at;
    cps_neff_print_json(info, CPS_V3, &text);
    FUZZ_CHECK(cps_json_parse(a, text.data, text.n, &why, &at) != NULL);
    cps_neff_print_text(info, CPS_V3, &text);
    cps_diags *d2 = cps_diags_create();
    bool written = cps_neff_write(f, &file, d2);
    FUZZ_CHECK(written || list);
    if (written) {
        cps_neff *g = cps_neff_read(a, (const uint8_t *)file.data, file.n, 1 << 23, d2);
        FUZZ_CHECK(g ? g->hash_ok : list); // names that no container may hold
        if (g)
            same_members(f, g);
    }
    unsigned before = cps_diags_errors(d);
    bool ok = cps_neff_package(a, f, d) != NULL;
    FUZZ_CHECK(ok || cps_diags_errors(d) > before);
    cps_diags_destroy(d2);
    cps_buf_fini(&text);
    cps_buf_fini(&file);
    return ok;
}
