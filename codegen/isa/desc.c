/* DMA queue descriptors as rows: fields, text both ways, rules. No field is named here. */
#include "codegen/isa/desc.h"

#include "codegen/isa/parse.h"

const cps_qfield_row cps_qfields[CPS_QFIELDS] = {
#define CPS_QFIELD(in, id, first, len, k, a, s, text)                                          \
    {.name = #id,                                                                              \
     .doc = text,                                                                              \
     .form = CPS_Q_##in,                                                                       \
     .at = first,                                                                              \
     .bits = len,                                                                              \
     .kind = CPS_FK_##k,                                                                       \
     .arg = a,                                                                                 \
     .sure = CPS_SURE_##s},
#include "codegen/isa/desc.def"
};

const cps_qform_row cps_qforms[CPS_QFORMS] = {
#define CPS_QDESC(id, s, text) [CPS_Q_##id] = {.name = #id, .doc = text, .sure = CPS_SURE_##s},
#include "codegen/isa/desc.def"
};

/* ---- fields ---- */

cps_qdesc
cps_qdesc_load(const uint8_t *b)
{
    uint64_t v[2] = {0, 0};
    for (unsigned i = 0; i < CPS_QDESC_BYTES; i++)
        v[i / 8] |= (uint64_t)b[i] << (8 * (i % 8));
    return (cps_qdesc){(uint32_t)v[0], (uint32_t)(v[0] >> 32), v[1]};
}

void
cps_qdesc_store(uint8_t *b, const cps_qdesc *d)
{
    uint64_t v[2] = {d->w0 | (uint64_t)d->w1 << 32, d->addr};
    for (unsigned i = 0; i < CPS_QDESC_BYTES; i++)
        b[i] = (uint8_t)(v[i / 8] >> (8 * (i % 8)));
}

static uint64_t
mask(const cps_qfield_row *r)
{
    return r->bits == 64 ? ~0ull : (1ull << r->bits) - 1;
}

uint64_t
cps_qdesc_get(const cps_qdesc *d, cps_qfield f)
{
    const cps_qfield_row *r = &cps_qfields[f];
    uint64_t half = r->at < 64 ? d->w0 | (uint64_t)d->w1 << 32 : d->addr;
    return half >> (r->at % 64) & mask(r);
}

void
cps_qdesc_set(cps_qdesc *d, cps_qfield f, uint64_t v)
{
    const cps_qfield_row *r = &cps_qfields[f];
    uint64_t half = r->at < 64 ? d->w0 | (uint64_t)d->w1 << 32 : d->addr;
    half = (half & ~(mask(r) << (r->at % 64))) | (v & mask(r)) << (r->at % 64);
    if (r->at < 64) {
        d->w0 = (uint32_t)half;
        d->w1 = (uint32_t)(half >> 32);
    } else {
        d->addr = half;
    }
}

cps_qform
cps_qdesc_guess(const cps_qdesc *d)
{
    return d->w1 ? CPS_Q_M2S : CPS_Q_S2M;
}

/* ---- to text ---- */

void
cps_qdesc_print(const cps_qdesc *d, cps_qform form, cps_buf *out)
{
    if (form >= CPS_QFORMS)
        form = cps_qdesc_guess(d);
    cps_buf_puts(out, cps_qforms[form].name);
    for (unsigned f = 0; f < CPS_QFIELDS; f++) {
        const cps_qfield_row *r = &cps_qfields[f];
        uint64_t v = cps_qdesc_get(d, (cps_qfield)f);
        bool size = r->kind == CPS_FK_SIZE;
        if (r->form != form || (!v && !size))
            continue;
        cps_buf_printf(out, " %s", r->name);
        if (r->kind == CPS_FK_BIT)
            continue;
        const char *name = r->kind == CPS_FK_ENUM
                               ? cps_isa_value_name((cps_isa_enum)r->arg, (unsigned)v)
                               : NULL;
        if (name)
            cps_buf_printf(out, "=%s", name);
        else if (r->kind == CPS_FK_HEX)
            cps_buf_printf(out, "=0x%llx", (unsigned long long)v);
        else
            cps_buf_printf(out, "=%llu", (unsigned long long)(size && !v ? 65536 : v));
    }
}

/* ---- from text ---- */

static unsigned
find(cps_qform form, const char *s, size_t n)
{
    for (unsigned f = 0; f < CPS_QFIELDS; f++)
        if (cps_qfields[f].form == form && cps_cas_same(s, n, cps_qfields[f].name))
            return f;
    return CPS_QFIELDS;
}

static bool
unknown(cps_cas *ps, cps_qform form, const char *s, const char *end)
{
    char word[32];
    const char *best = NULL;
    int closest = 4;
    cps_cas_fail(ps, CPS_E9202, s, end, "'%.*s' is no field of %s", (int)(end - s), s,
                 cps_qforms[form].name);
    if ((size_t)(end - s) >= sizeof word)
        return false;
    memcpy(word, s, (size_t)(end - s));
    word[end - s] = '\0';
    for (unsigned f = 0; f < CPS_QFIELDS; f++) {
        int dist = cps_edit_distance(word, cps_qfields[f].name);
        if (cps_qfields[f].form == form && dist < closest) {
            closest = dist;
            best = cps_qfields[f].name;
        }
    }
    if (best)
        cps_help(ps->d, "did you mean '%s'?", best);
    return false;
}

static bool
value(cps_cas *ps, const cps_qfield_row *r, uint64_t *v)
{
    const char *from = ps->p;
    unsigned named;
    if (r->kind == CPS_FK_ENUM) {
        if (!cps_cas_named(ps, CPS_FK_ENUM, r->arg, 1u << r->bits, &named))
            return false;
        *v = named;
        return true;
    }
    if (!cps_cas_number_of(ps, r->kind == CPS_FK_SIZE ? 32 : r->bits, false, v))
        return false;
    if (r->kind != CPS_FK_SIZE)
        return true;
    if (*v > 65536)
        return cps_cas_fail(ps, CPS_E9204, from, ps->p, "a buffer has at most 65,536 bytes");
    if (*v == 0)
        return cps_cas_fail(ps, CPS_E9204, from, ps->p, "a buffer has at least one byte");
    *v &= 0xFFFF;
    return true;
}

static bool
line(cps_cas *ps, cps_qdesc *d)
{
    const char *s = ps->p, *end = cps_cas_word_end(ps, s);
    unsigned form = 0;
    uint64_t given = 0;
    *d = (cps_qdesc){0, 0, 0};
    while (form < CPS_QFORMS && !cps_cas_same(s, (size_t)(end - s), cps_qforms[form].name))
        form++;
    if (form == CPS_QFORMS)
        return cps_cas_fail(ps, CPS_E9201, s, CPS_MAX(end, s + 1),
                            "a descriptor begins with M2S or S2M");
    for (ps->p = end;;) {
        if (ps->p < ps->end && !cps_cas_blank(*ps->p))
            return cps_cas_fail(ps, CPS_E9203, ps->p, cps_cas_chunk_end(ps, ps->p),
                                "expected a blank here");
        cps_cas_skip_blanks(ps);
        if (ps->p == ps->end)
            return true;
        s = ps->p;
        end = cps_cas_word_end(ps, s);
        unsigned f = find((cps_qform)form, s, (size_t)(end - s));
        if (f == CPS_QFIELDS)
            return unknown(ps, (cps_qform)form, s, CPS_MAX(end, s + 1));
        const cps_qfield_row *r = &cps_qfields[f];
        uint64_t v = 1;
        if (given >> f & 1)
            return cps_cas_fail(ps, CPS_E9206, s, end, "'%s' is given twice", r->name);
        given |= 1ull << f;
        ps->p = end;
        bool bare = r->kind == CPS_FK_BIT && (end == ps->end || *end != '=');
        if (!bare && (!cps_cas_expect(ps, '=') || !value(ps, r, &v)))
            return false;
        cps_qdesc_set(d, (cps_qfield)f, v);
    }
}

// The end of a line's content: its end, or "//" after a blank or at the start.
static const char *
content_end(const char *s, const char *stop)
{
    for (const char *p = s; p + 1 < stop; p++)
        if (p[0] == '/' && p[1] == '/' && (p == s || cps_cas_blank(p[-1])))
            return p;
    return stop;
}

bool
cps_qdesc_parse(const char *text, size_t n, uint32_t file, cps_diags *d, cps_buf *out)
{
    cps_cas ps = {.text = text, .d = d, .file = file};
    const char *stop = text + n;
    bool good = true;
    _Static_assert(CPS_QFIELDS <= 64, "given fields are bits of a word");
    if (n >= UINT32_MAX) {
        cps_error(d, CPS_E9208, CPS_NOSPAN, "text of %zu bytes, at most 4 GiB are read", n);
        return false;
    }
    for (const char *s = text; s < stop;) {
        const char *nl = memchr(s, '\n', (size_t)(stop - s));
        cps_qdesc one;
        uint8_t b[CPS_QDESC_BYTES];
        ps.stop = nl ? nl : stop;
        ps.p = s;
        ps.end = content_end(s, ps.stop);
        s = nl ? nl + 1 : stop;
        while (ps.end > ps.p && cps_cas_blank(ps.end[-1]))
            ps.end--;
        cps_cas_skip_blanks(&ps);
        if (ps.p == ps.end)
            continue;
        if (!line(&ps, &one)) {
            good = false;
            continue;
        }
        cps_qdesc_store(b, &one);
        cps_buf_put(out, b, sizeof b);
    }
    return good;
}

/* ---- rules ---- */

bool
cps_qdesc_verify(const cps_qdesc *d, cps_qform form, cps_diags *diags, cps_span at)
{
    unsigned before = cps_diags_errors(diags);
    if (form >= CPS_QFORMS)
        form = cps_qdesc_guess(d);
    for (unsigned f = 0; f < CPS_QFIELDS; f++) {
        const cps_qfield_row *r = &cps_qfields[f];
        uint64_t v = cps_qdesc_get(d, (cps_qfield)f);
        const char *name = cps_qforms[form].name;
        if (r->form != form)
            continue;
        if (!strncmp(r->name, "reserved", 8) && v)
            cps_error(diags, CPS_E5506, at, "'%s': %s is 0x%llx, not zero", name, r->name,
                      (unsigned long long)v);
        else if (r->kind == CPS_FK_ENUM &&
                 !cps_isa_value_name((cps_isa_enum)r->arg, (unsigned)v))
            cps_error(diags, CPS_E5509, at, "'%s': no %s %u", name, r->name, (unsigned)v);
    }
    return cps_diags_errors(diags) == before;
}
