/* Blocks of DMA descriptors (dma.h). Plain copies count bytes; casts and sums count elements of
 * their types, transposes elements of their size. What the operands do not give back exactly is
 * added as plain numbers. */
#include "codegen/bir/dma.h"

#include <string.h>

#define STR(s) cps_bn_str(c->arena, (s))
#define INT(i) cps_bn_int(c->arena, (int64_t)(i))

static const struct {
    uint8_t op, bir;
} ops[] = {
    [CPS_DESC_COPY] = {CPS_DESC_COPY, CPS_BOP_DMADescriptorCopy},
    [CPS_DESC_CAST] = {CPS_DESC_CAST, CPS_BOP_DMADescriptorCopy},
    [CPS_DESC_ADD] = {CPS_DESC_ADD, CPS_BOP_DMADescriptorCCE},
    [CPS_DESC_TRANSPOSE] = {CPS_DESC_TRANSPOSE, CPS_BOP_DMADescriptorTranspose},
};

const char *
cps_bdma_name(cps_arena *a, const cps_kblock *b)
{
    return cps_arena_printf(a, "%s_%u", b->queue, b->id);
}

// ---- writing ----

static cps_json *
write_side(cps_bctx *c, uint32_t var, int64_t off, int n, const int64_t *step,
           const int64_t *size, cps_dtype t)
{
    cps_bwalk w = {.var = var, .base = off};
    int64_t es = cps_dtype_bytes(t);
    if (size[0] % es)
        return NULL;
    for (int i = n - 1; i > 0; i--) {
        w.d[w.nd].step = step[i];
        w.d[w.nd++].num = size[i];
    }
    w.d[w.nd].step = es;
    w.d[w.nd++].num = size[0] / es;
    return cps_bmem_write_walk(c, &w, t);
}

static cps_dtype
element(int bytes)
{
    return bytes == 2 ? CPS_DT_U16 : bytes == 4 ? CPS_DT_U32 : CPS_DT_U8;
}

static bool
same(const cps_kdesc *a, const cps_kdesc *b)
{
    bool ok = a->op == b->op && a->from == b->from && a->to == b->to &&
              a->from_off == b->from_off && a->to_off == b->to_off && a->nfrom == b->nfrom &&
              a->nto == b->nto && a->from_dtype == b->from_dtype &&
              a->to_dtype == b->to_dtype && a->elem == b->elem && a->rows == b->rows &&
              a->cols == b->cols;
    for (int i = 0; ok && i < a->nfrom; i++)
        ok = a->from_step[i] == b->from_step[i] && a->from_size[i] == b->from_size[i];
    for (int i = 0; ok && i < a->nto; i++)
        ok = a->to_step[i] == b->to_step[i] && a->to_size[i] == b->to_size[i];
    return ok;
}

static cps_json *
integers(cps_bctx *c, const int64_t *v, int n)
{
    cps_json *list = cps_bn_new(c->arena, CPS_JSON_ARR);
    for (int i = 0; i < n; i++)
        cps_bn_add(list, NULL, INT(v[i]));
    return list;
}

// Everything as it stands in the kernel, in bytes.
static cps_json *
plain(cps_bctx *c, const cps_kdesc *d)
{
    cps_json *p = cps_bn_new(c->arena, CPS_JSON_OBJ);
    cps_bn_add(p, "op", INT(d->op));
    cps_bn_add(p, "from_dtype", STR(cps_dtype_name(d->from_dtype)));
    cps_bn_add(p, "from_off", INT(d->from_off));
    cps_bn_add(p, "from_steps", integers(c, d->from_step, d->nfrom));
    cps_bn_add(p, "from_sizes", integers(c, d->from_size, d->nfrom));
    cps_bn_add(p, "to_dtype", STR(cps_dtype_name(d->to_dtype)));
    cps_bn_add(p, "to_off", INT(d->to_off));
    cps_bn_add(p, "to_steps", integers(c, d->to_step, d->nto));
    cps_bn_add(p, "to_sizes", integers(c, d->to_size, d->nto));
    cps_bn_add(p, "elem", INT(d->elem));
    return p;
}

static bool read_desc(cps_bctx *c, const cps_json *v, cps_kdesc *d);

static cps_json *
write_desc(cps_bctx *c, const cps_kdesc *d)
{
    cps_dtype ft = d->from_dtype, tt = d->to_dtype;
    if (d->op == CPS_DESC_TRANSPOSE)
        ft = tt = element(d->elem);
    cps_json *v = cps_bn_new(c->arena, CPS_JSON_OBJ);
    cps_json *own = cps_bn_new(c->arena, CPS_JSON_OBJ);
    cps_json *from =
        write_side(c, d->from, d->from_off, d->nfrom, d->from_step, d->from_size, ft);
    cps_json *to = write_side(c, d->to, d->to_off, d->nto, d->to_step, d->to_size, tt);
    // Bytes always have a pattern.
    if (!from)
        from = write_side(c, d->from, d->from_off, d->nfrom, d->from_step, d->from_size,
                          CPS_DT_U8);
    if (!to)
        to = write_side(c, d->to, d->to_off, d->nto, d->to_step, d->to_size, CPS_DT_U8);
    cps_bn_add(v, "opcode", STR(cps_bops[ops[d->op].bir].name));
    cps_bn_add(v, "num_tiling_dimensions", INT(CPS_MAX(d->nfrom, d->nto)));
    cps_bn_add(cps_bn_add(v, "ins", cps_bn_new(c->arena, CPS_JSON_ARR)), NULL, from);
    cps_bn_add(cps_bn_add(v, "outs", cps_bn_new(c->arena, CPS_JSON_ARR)), NULL, to);
    if (d->op == CPS_DESC_ADD)
        cps_bn_add(v, "op", STR("Add"));
    if (d->op == CPS_DESC_TRANSPOSE)
        cps_bn_add(own, "transpose", integers(c, (int64_t[]){d->rows, d->cols}, 2));
    if (own->n)
        cps_bn_add(v, "copse", own);
    cps_kdesc got;
    if (read_desc(c, v, &got) && same(d, &got))
        return v;
    bool fresh = !own->n;
    cps_bn_add(own, "desc", plain(c, d));
    if (fresh)
        cps_bn_add(v, "copse", own);
    cps_assert(read_desc(c, v, &got) && same(d, &got));
    return v;
}

cps_json *
cps_bdma_write(cps_bctx *c, const cps_kblock *b, cps_engine queue_owner, int64_t place)
{
    cps_json *v = cps_bn_new(c->arena, CPS_JSON_OBJ);
    cps_bn_add(v, "name", STR(cps_bdma_name(c->arena, b)));
    cps_bn_add(v, "block_id", INT(b->id));
    cps_json *s = cps_bn_add(v, "sync_info", cps_bn_new(c->arena, CPS_JSON_OBJ));
    cps_bn_add(s, "on_wait", cps_bn_new(c->arena, CPS_JSON_ARR));
    cps_json *u = cps_bn_add(s, "on_update", cps_bn_new(c->arena, CPS_JSON_ARR));
    u = cps_bn_add(u, NULL, cps_bn_new(c->arena, CPS_JSON_OBJ));
    cps_bn_add(u, "mode", STR("sem-add-imm"));
    cps_bn_add(u, "id", INT(b->semaphore));
    cps_bn_add(u, "value", INT(CPS_BDMA_RISE));
    cps_json *own = cps_bn_new(c->arena, CPS_JSON_OBJ);
    if (b->owner != queue_owner)
        cps_bn_add(own, "engine", STR(cps_bmap_engine_name(b->owner)));
    if (place >= 0)
        cps_bn_add(own, "place", INT(place));
    if (own->n)
        cps_bn_add(v, "copse", own);
    cps_json *list = cps_bn_add(v, "descriptors", cps_bn_new(c->arena, CPS_JSON_ARR));
    cps_json **end = &list->first;
    for (uint32_t i = 0; i < b->ndesc; i++, list->n++) {
        *end = write_desc(c, &c->k->descs.data[b->first + i]);
        end = &(*end)->next;
    }
    return v;
}

// ---- reading ----

static bool
read_side(cps_bctx *c, const cps_json *list, uint32_t *var, int64_t *off, int *n, int64_t *step,
          int64_t *size, cps_dtype *t)
{
    const cps_json *x = list && list->kind == CPS_JSON_ARR && list->n == 1 ? list->first : NULL;
    cps_bwalk w;
    if (!x)
        return cps_bctx_fail(c, "a descriptor has one operand on each side");
    if (!cps_bmem_read_walk(c, x, &w, t))
        return false;
    int64_t es = cps_dtype_bytes(*t);
    if (!w.nd || w.d[w.nd - 1].step != es || w.nd > CPS_DESC_DIMS)
        return cps_bctx_fail(c,
                             "a descriptor ends with a run of elements and has up to %d pairs",
                             CPS_DESC_DIMS);
    *var = w.var;
    *off = w.base;
    *n = w.nd;
    for (int i = 0; i < w.nd; i++) {
        step[i] = i ? w.d[w.nd - 1 - i].step : 1;
        size[i] = i ? w.d[w.nd - 1 - i].num : w.d[w.nd - 1].num * es;
    }
    return true;
}

static bool
plain_list(const cps_json *p, const char *key, int *n, int64_t *out)
{
    const cps_json *list = cps_json_get(p, key);
    if (!list || list->kind != CPS_JSON_ARR || !list->n || list->n > CPS_DESC_DIMS)
        return false;
    *n = 0;
    for (const cps_json *x = list->first; x; x = x->next) {
        if (x->kind != CPS_JSON_INT)
            return false;
        out[(*n)++] = x->i;
    }
    return true;
}

static bool
read_plain(cps_bctx *c, const cps_json *p, cps_kdesc *d)
{
    bool ok = true;
    int nf = 0, nt = 0;
    int64_t op = cps_json_int(p, "op", true, 0, &ok),
            elem = cps_json_int(p, "elem", true, 0, &ok);
    const char *ft = cps_json_str(p, "from_dtype", true, "", &ok);
    const char *tt = cps_json_str(p, "to_dtype", true, "", &ok);
    d->from_off = cps_json_int(p, "from_off", true, 0, &ok);
    d->to_off = cps_json_int(p, "to_off", true, 0, &ok);
    ok = ok && plain_list(p, "from_steps", &nf, d->from_step) &&
         plain_list(p, "from_sizes", &d->nfrom, d->from_size) && nf == d->nfrom &&
         plain_list(p, "to_steps", &nt, d->to_step) &&
         plain_list(p, "to_sizes", &d->nto, d->to_size) && nt == d->nto && op >= 0 &&
         op < (int64_t)cps_countof(ops) && elem >= 0 && elem <= 8;
    d->op = (cps_descop)op;
    d->elem = (int)elem;
    d->from_dtype = cps_dtype_parse(ft, strlen(ft));
    d->to_dtype = cps_dtype_parse(tt, strlen(tt));
    return ok || cps_bctx_fail(c, "malformed plain descriptor");
}

static bool
read_desc(cps_bctx *c, const cps_json *v, cps_kdesc *d)
{
    const cps_json *code = cps_json_get(v, "opcode"), *own = cps_json_get(v, "copse");
    cps_bop op = code && code->kind == CPS_JSON_STR ? cps_bop_find(code->str) : CPS_BOP_NONE;
    cps_dtype ft, tt;
    *d = (cps_kdesc){.from_dtype = CPS_DT_U8, .to_dtype = CPS_DT_U8};
    if (!read_side(c, cps_json_get(v, "ins"), &d->from, &d->from_off, &d->nfrom, d->from_step,
                   d->from_size, &ft) ||
        !read_side(c, cps_json_get(v, "outs"), &d->to, &d->to_off, &d->nto, d->to_step,
                   d->to_size, &tt))
        return false;
    const cps_json *t = own ? cps_json_get(own, "transpose") : NULL;
    if (op == CPS_BOP_DMADescriptorTranspose) {
        if (!t || t->kind != CPS_JSON_ARR || t->n != 2 || t->first->kind != CPS_JSON_INT ||
            t->first->next->kind != CPS_JSON_INT)
            return cps_bctx_fail(c, "a transpose has its shape under 'copse'");
        d->op = CPS_DESC_TRANSPOSE;
        d->elem = (int)cps_dtype_bytes(ft);
        d->rows = t->first->i;
        d->cols = t->first->next->i;
    } else if (op == CPS_BOP_DMADescriptorCCE ||
               (op == CPS_BOP_DMADescriptorCopy && ft != tt)) {
        d->op = op == CPS_BOP_DMADescriptorCCE ? CPS_DESC_ADD : CPS_DESC_CAST;
        d->from_dtype = ft;
        d->to_dtype = tt;
    } else if (op != CPS_BOP_DMADescriptorCopy) {
        return cps_bctx_fail(c, "'%s' is no descriptor", code ? code->str : "");
    }
    const cps_json *p = own ? cps_json_get(own, "desc") : NULL;
    return !p || read_plain(c, p, d);
}

bool
cps_bdma_read(cps_bctx *c, const cps_json *v, cps_kbin *k, cps_kblock *out)
{
    bool ok = true;
    int64_t id = cps_json_int(v, "block_id", true, 0, &ok);
    const cps_json *s = cps_json_get(v, "sync_info");
    const cps_json *u = s ? cps_json_get(s, "on_update") : NULL;
    u = u && u->kind == CPS_JSON_ARR && u->n == 1 ? u->first : NULL;
    int64_t sem = u ? cps_json_int(u, "id", true, 0, &ok) : -1;
    int64_t rise = u ? cps_json_int(u, "value", true, 0, &ok) : -1;
    if (!ok || id < 0 || id > UINT32_MAX || sem < 0 || sem > 255 || rise != CPS_BDMA_RISE)
        return cps_bctx_fail(c, "a DMA block has a number and adds %d to one semaphore",
                             CPS_BDMA_RISE);
    out->id = (uint32_t)id;
    out->semaphore = (uint8_t)sem;
    out->first = k->descs.n;
    const cps_json *list = cps_json_get(v, "descriptors");
    for (const cps_json *x = list ? list->first : NULL; x; x = x->next) {
        cps_kdesc d;
        if (!read_desc(c, x, &d))
            return false;
        cps_vec_push(k->arena, &k->descs, d);
    }
    out->ndesc = k->descs.n - out->first;
    return true;
}
