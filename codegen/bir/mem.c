/* Access patterns both ways (mem.h). Reading trusts nothing: every number is bounded before it
 * is multiplied. */
#include "codegen/bir/mem.h"

#include <string.h>

enum { WHOLE = 2 }; // the first locations are the whole memories
#define ELEMS_MAX ((int64_t)1 << 44)

static const uint32_t strides[] = {
    [CPS_BS_SB] = CPS_SBUF_STRIDE, [CPS_BS_PSUM] = CPS_PSUM_STRIDE};

bool
cps_bctx_fail(cps_bctx *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    c->why = cps_arena_vprintf(c->arena, fmt, ap);
    va_end(ap);
    return false;
}

bool
cps_bctx_add(cps_bctx *c, const cps_bmem *m)
{
    bool fresh;
    uint64_t *at = cps_map_at_str(&c->by_name, m->name, &fresh);
    if (!fresh)
        return false;
    *at = c->mem.n;
    cps_vec_push(c->keep, &c->mem, *m);
    return true;
}

void
cps_bctx_init(cps_bctx *c, cps_arena *keep, cps_gen g)
{
    *c = (cps_bctx){.arena = keep, .keep = keep, .gen = g};
    cps_map_init(&c->by_name, keep);
    cps_map_init(&c->blocks, keep);
    static const cps_bmem whole[WHOLE] = {{.name = "sb_all",
                                           .set = "sb",
                                           .space = CPS_BS_SB,
                                           .parts = 128,
                                           .bytes = CPS_SBUF_STRIDE},
                                          {.name = "psum_all",
                                           .set = "psum",
                                           .space = CPS_BS_PSUM,
                                           .parts = 128,
                                           .bytes = CPS_PSUM_STRIDE}};
    for (unsigned i = 0; i < WHOLE; i++)
        cps_bctx_add(c, &whole[i]);
}

// ---- writing ----

static bool
holds(const cps_bmem *m, cps_bspace space, uint32_t part, uint32_t byte, int64_t es)
{
    return m->space == space && part >= m->part && part - m->part < m->parts &&
           byte >= m->byte && byte - m->byte < m->bytes && m->bytes % es == 0 &&
           (byte - m->byte) % es == 0;
}

// The location that holds a byte of a partition: one the record is known to touch, the only one
// that ever stood there, or the whole memory.
static const cps_bmem *
locate(cps_bctx *c, cps_bspace space, uint32_t part, uint32_t byte, int64_t es)
{
    for (uint32_t i = 0; i < c->nref; i++) {
        const cps_bmem *m = &c->mem.data[c->ref[i]];
        if (holds(m, space, part, byte, es))
            return m;
    }
    const cps_bmem *only = NULL;
    uint32_t n = 0;
    for (uint32_t i = WHOLE; i < c->mem.n && n < 2; i++)
        if (holds(&c->mem.data[i], space, part, byte, es)) {
            only = &c->mem.data[i];
            n++;
        }
    if (n == 1)
        return only;
    if (byte % es)
        return NULL;
    c->used[space] = true;
    return &c->mem.data[space];
}

static cps_json *
operand(cps_bctx *c, const char *kind, const char *dtype)
{
    cps_json *v = cps_bn_new(c->arena, CPS_JSON_OBJ);
    cps_bn_add(v, "kind", cps_bn_str(c->arena, kind));
    if (dtype)
        cps_bn_add(v, "dtype", cps_bn_str(c->arena, dtype));
    return v;
}

static void
add_pair(cps_bctx *c, cps_json *ap, cps_json *shape, int64_t step, int64_t num)
{
    cps_json *p = cps_bn_add(ap, NULL, cps_bn_new(c->arena, CPS_JSON_ARR));
    cps_bn_add(p, NULL, cps_bn_int(c->arena, step));
    cps_bn_add(p, NULL, cps_bn_int(c->arena, num));
    if (shape)
        cps_bn_add(shape, NULL, cps_bn_int(c->arena, num));
}

static void
add_place(cps_bctx *c, cps_json *v, const cps_bmem *m, int64_t offset)
{
    cps_bn_add(v, "memref", cps_bn_str(c->arena, m->name));
    cps_bn_add(v, "memsetref", cps_bn_str(c->arena, m->set));
    cps_bn_add(v, "offset", cps_bn_int(c->arena, offset));
}

cps_json *
cps_bmem_write_reg(cps_bctx *c, unsigned r, const char *dtype)
{
    cps_json *v = operand(c, "register_access", dtype);
    c->reg[r & 255] = true;
    cps_bn_add(v, "regref", cps_bn_str(c->arena, cps_arena_printf(c->arena, "r%u", r)));
    return v;
}

cps_json *
cps_bmem_write_slot(cps_bctx *c, const cps_ap *ap, cps_dtype t, unsigned parts)
{
    int64_t es = cps_dtype_bytes(t);
    unsigned nd = ap->nd;
    while (nd > 1 && ap->step[nd - 1] == 1 && ap->num[nd - 1] == 1)
        nd--;
    cps_json *pairs = cps_bn_new(c->arena, CPS_JSON_ARR);
    cps_json *shape = cps_bn_new(c->arena, CPS_JSON_ARR);
    bool reg = ap->addr >> 24 == 0x80 && !(ap->addr & 0xFFFF00);
    const cps_bmem *m = NULL;
    int64_t row = 0;
    if (!reg) {
        if (ap->addr >> 29)
            return NULL;
        m = locate(c, cps_addr_is_psum(ap->addr) ? CPS_BS_PSUM : CPS_BS_SB,
                   cps_addr_partition(ap->addr), cps_addr_byte(ap->addr), es);
        if (!m)
            return NULL;
        row = m->bytes / es;
    }
    add_pair(c, pairs, shape, row, parts);
    for (unsigned i = nd; i-- > 0;)
        add_pair(c, pairs, shape, ap->step[i], ap->num[i]);
    cps_json *v = operand(c, reg ? "register_ap" : "physical_ap", cps_bmap_dtype_name(t));
    cps_bn_add(v, "ap", pairs);
    if (reg) {
        unsigned r = ap->addr & 255;
        c->reg[r] = true;
        cps_bn_add(v, "regref", cps_bn_str(c->arena, cps_arena_printf(c->arena, "r%u", r)));
        cps_bn_add(v, "is_regloc_offset", cps_bn_bool(c->arena, false));
        cps_bn_add(v, "reg_ap_offset", cps_bn_int(c->arena, 0));
        cps_bn_add(v, "const_ap_offset", cps_bn_int(c->arena, 0));
        return v;
    }
    cps_bn_add(v, "access_shape", shape);
    add_place(c, v, m,
              (int64_t)(cps_addr_partition(ap->addr) - m->part) * row +
                  (cps_addr_byte(ap->addr) - m->byte) / es);
    return v;
}

cps_json *
cps_bmem_write_column(cps_bctx *c, unsigned part, uint32_t byte, cps_dtype t, unsigned parts)
{
    cps_ap ap = {.nd = 1, .step = {1}, .num = {1}};
    if (byte >= CPS_SBUF_STRIDE)
        return NULL;
    ap.addr = cps_addr_sbuf(part, byte);
    return cps_bmem_write_slot(c, &ap, t, parts);
}

// A distance in the flat aperture as partitions and bytes.
static void
split(int64_t bytes, int64_t *parts, int64_t *rest)
{
    int64_t stride = CPS_SBUF_STRIDE, half = stride / 2;
    *parts = (bytes + (bytes < 0 ? -half : half)) / stride;
    *rest = bytes - *parts * stride;
}

cps_json *
cps_bmem_write_walk(cps_bctx *c, const cps_bwalk *w, cps_dtype t)
{
    int64_t es = cps_dtype_bytes(t), row = 0, offset;
    const cps_bmem *m = NULL;
    if (w->var) {
        for (uint32_t i = 2; i < c->mem.n && !m; i++)
            if (c->mem.data[i].space == CPS_BS_HBM && c->mem.data[i].var == w->var)
                m = &c->mem.data[i];
        if (!m || w->base % es)
            return NULL;
        offset = w->base / es;
    } else {
        uint32_t part = (uint32_t)(w->base / CPS_SBUF_STRIDE);
        uint32_t byte = (uint32_t)(w->base % CPS_SBUF_STRIDE);
        m = locate(c, CPS_BS_SB, part, byte, es);
        if (!m)
            return NULL;
        row = m->bytes / es;
        offset = (int64_t)(part - m->part) * row + (byte - m->byte) / es;
    }
    cps_json *pairs = cps_bn_new(c->arena, CPS_JSON_ARR);
    cps_json *shape = cps_bn_new(c->arena, CPS_JSON_ARR);
    if (!w->var && (!w->nd || w->d[0].step % CPS_SBUF_STRIDE))
        add_pair(c, pairs, shape, row, 1);
    for (int i = 0; i < w->nd; i++) {
        int64_t parts = 0, rest = w->d[i].step;
        if (!w->var)
            split(w->d[i].step, &parts, &rest);
        if (rest % es)
            return NULL;
        add_pair(c, pairs, shape, parts * row + rest / es, w->d[i].num);
    }
    cps_json *v = operand(c, "physical_ap", cps_bmap_dtype_name(t));
    cps_bn_add(v, "ap", pairs);
    cps_bn_add(v, "access_shape", shape);
    add_place(c, v, m, offset);
    return v;
}

// ---- reading ----

bool
cps_bmem_is(const cps_json *v, const char *kind)
{
    const cps_json *k = cps_json_get(v, "kind");
    return k && k->kind == CPS_JSON_STR && !strcmp(k->str, kind);
}

bool
cps_bmem_reg_name(const char *name, unsigned *r)
{
    int64_t i;
    if (name[0] != 'r' || !cps_parse_int(name + 1, strlen(name + 1), &i) || i < 0 || i > 255)
        return false;
    *r = (unsigned)i;
    return true;
}

bool
cps_bmem_read_reg(cps_bctx *c, const cps_json *v, unsigned *r)
{
    const cps_json *n = v ? cps_json_get(v, "regref") : NULL;
    if (n && n->kind == CPS_JSON_STR && cps_bmem_reg_name(n->str, r))
        return true;
    return cps_bctx_fail(c, "an operand is no register r0 to r255");
}

typedef struct pattern {
    int n;
    struct {
        int64_t step, num;
    } d[12];
    cps_dtype t;
    int64_t es, offset;
    const cps_bmem *m;
} pattern;

static bool
read_pairs(cps_bctx *c, const cps_json *v, pattern *p)
{
    const cps_json *ap = cps_json_get(v, "ap"), *dt = cps_json_get(v, "dtype");
    p->t = dt && dt->kind == CPS_JSON_STR ? cps_bmap_dtype(dt->str) : CPS_DT_NONE;
    if (!p->t)
        return cps_bctx_fail(c, "an operand has no known dtype");
    p->es = cps_dtype_bytes(p->t);
    if (!ap || ap->kind != CPS_JSON_ARR || !ap->n || ap->n > cps_countof(p->d))
        return cps_bctx_fail(c, "an access pattern has 1 to %zu pairs", cps_countof(p->d));
    for (const cps_json *x = ap->first; x; x = x->next, p->n++) {
        const cps_json *s = x->kind == CPS_JSON_ARR && x->n == 2 ? x->first : NULL;
        if (!s || s->kind != CPS_JSON_INT || s->next->kind != CPS_JSON_INT)
            return cps_bctx_fail(c, "a pair of an access pattern is [step, number]");
        p->d[p->n].step = s->i;
        p->d[p->n].num = s->next->i;
        if (s->i > ELEMS_MAX || s->i < -ELEMS_MAX || s->next->i < 0 || s->next->i > ELEMS_MAX)
            return cps_bctx_fail(c, "a pair of an access pattern is out of range");
    }
    return true;
}

static bool
read_place(cps_bctx *c, const cps_json *v, pattern *p)
{
    const cps_json *ref = cps_json_get(v, "memref"), *off = cps_json_get(v, "offset");
    const uint64_t *at =
        ref && ref->kind == CPS_JSON_STR ? cps_map_find_str(&c->by_name, ref->str) : NULL;
    if (!at)
        return cps_bctx_fail(c, "an operand's memref is no location");
    p->m = &c->mem.data[*at];
    if (!off || off->kind != CPS_JSON_INT || off->i < 0 || off->i > ELEMS_MAX)
        return cps_bctx_fail(c, "an operand's offset is no number in range");
    p->offset = off->i;
    if (p->m->space != CPS_BS_HBM && p->m->bytes / p->es < 1)
        return cps_bctx_fail(c, "location '%s' is smaller than an element", p->m->name);
    return true;
}

// Partition and byte of an offset into an on-chip location.
static bool
on_chip(cps_bctx *c, const pattern *p, unsigned *part, uint32_t *byte)
{
    int64_t row = p->m->bytes / p->es;
    int64_t q = p->m->part + p->offset / row, b = p->m->byte + p->offset % row * p->es;
    if (q > 127 || b >= strides[p->m->space])
        return cps_bctx_fail(c, "an operand lies outside of its memory");
    *part = (unsigned)q;
    *byte = (uint32_t)b;
    return true;
}

static uint32_t
address(const cps_bmem *m, unsigned part, uint32_t byte)
{
    return m->space == CPS_BS_PSUM ? cps_addr_psum(part, byte) : cps_addr_sbuf(part, byte);
}

bool
cps_bmem_read_slot(cps_bctx *c, const cps_json *v, unsigned dims, cps_ap *ap, cps_dtype *t,
                   unsigned *parts)
{
    pattern p = {0};
    bool reg = cps_bmem_is(v, "register_ap");
    unsigned part = 0, r = 0;
    uint32_t byte = 0;
    if (!reg && !cps_bmem_is(v, "physical_ap"))
        return cps_bctx_fail(c, "an operand is no access pattern");
    if (!read_pairs(c, v, &p))
        return false;
    if (reg ? !cps_bmem_read_reg(c, v, &r) : !read_place(c, v, &p))
        return false;
    if (!reg && p.m->space == CPS_BS_HBM)
        return cps_bctx_fail(c, "engines do not reach '%s'", p.m->name);
    if (!reg && !on_chip(c, &p, &part, &byte))
        return false;
    if (p.n < 2 || p.n - 1 > (int)dims || p.d[0].num > 255)
        return cps_bctx_fail(c, "the access pattern has %d dimensions, the slot %u", p.n - 1,
                             dims);
    *ap = (cps_ap){.nd = (uint8_t)(p.n - 1)};
    ap->addr = reg ? 0x80000000u | r : address(p.m, part, byte);
    for (int i = 1; i < p.n; i++) {
        if (p.d[i].step != (int16_t)p.d[i].step || p.d[i].num > 65535)
            return cps_bctx_fail(
                c, "a step or a number of an access pattern needs more than 16 bits");
        ap->step[p.n - 1 - i] = (int16_t)p.d[i].step;
        ap->num[p.n - 1 - i] = (uint16_t)p.d[i].num;
    }
    *t = p.t;
    *parts = (unsigned)p.d[0].num;
    return true;
}

bool
cps_bmem_read_column(cps_bctx *c, const cps_json *v, unsigned *part, uint32_t *byte,
                     cps_dtype *t, unsigned *parts)
{
    cps_ap ap;
    if (!cps_bmem_read_slot(c, v, 1, &ap, t, parts))
        return false;
    if (ap.addr >> 29 || cps_addr_is_psum(ap.addr))
        return cps_bctx_fail(c, "a scalar operand stands in SBUF");
    *part = cps_addr_partition(ap.addr);
    *byte = cps_addr_byte(ap.addr);
    return true;
}

bool
cps_bmem_read_walk(cps_bctx *c, const cps_json *v, cps_bwalk *w, cps_dtype *t)
{
    pattern p = {0};
    *w = (cps_bwalk){0};
    if (!cps_bmem_is(v, "physical_ap"))
        return cps_bctx_fail(c, "an operand is no placed access pattern");
    if (!read_pairs(c, v, &p) || !read_place(c, v, &p))
        return false;
    *t = p.t;
    if (p.m->space == CPS_BS_PSUM)
        return cps_bctx_fail(c, "DMA does not reach PSUM");
    bool hbm = p.m->space == CPS_BS_HBM;
    int64_t row = hbm ? 1 : p.m->bytes / p.es;
    if (hbm) {
        w->var = p.m->var;
        w->base = p.offset * p.es;
    } else {
        unsigned part;
        uint32_t byte;
        if (!on_chip(c, &p, &part, &byte))
            return false;
        w->base = cps_addr_sbuf(part, byte);
    }
    for (int i = 0; i < p.n; i++) {
        if (p.d[i].num == 1 && i + 1 < p.n)
            continue;
        if (w->nd == (int)cps_countof(w->d))
            return cps_bctx_fail(c, "an access pattern has too many dimensions");
        int64_t step = p.d[i].step * p.es;
        // one element: where rows are as short, its step could be taken for a partition
        if (p.d[i].num == 1)
            step = p.es;
        else if (!hbm)
            step = p.d[i].step / row * CPS_SBUF_STRIDE + p.d[i].step % row * p.es;
        w->d[w->nd].step = step;
        w->d[w->nd++].num = p.d[i].num;
    }
    return true;
}
