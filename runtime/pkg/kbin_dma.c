/* dma.json: the `dma` items of a container's engine JSON, grouped by the engine that owns the
 * queue. Names and meanings are the public NEFF documentation's: an item has id, queue,
 * semaphore and desc[]; a desc has op (copy when absent), from, to, offsets, steps and sizes in
 * bytes with the innermost dimension first, dtypes (uint8 when absent), and for transposes the
 * shape and the element size. The container's own form has its names of dtypes, four numbers in a
 * transpose's shape, and a list of sources where a transfer adds. */
#include "runtime/pkg/kbin_priv.h"

#include <stdio.h>

static void
put_ints(cps_jsonw *w, const char *key, const int64_t *v, int n)
{
    cps_jsonw_key(w, key);
    cps_jsonw_arr(w, true);
    for (int i = 0; i < n; i++)
        cps_jsonw_int(w, v[i]);
    cps_jsonw_end_arr(w);
}

static const struct {
    cps_dtype type;
    const char *word;
} words[] = {
#define CPS_NEFF_DTYPE(t, word) {CPS_DT_##t, word},
#include "runtime/pkg/neff.def"
};

/* As a container spells it; types that the public list lacks keep our names. */
const char *
cps_pkg_dtype_word(cps_dtype t)
{
    for (unsigned i = 0; i < cps_countof(words); i++)
        if (words[i].type == t)
            return words[i].word;
    return cps_dtype_name(t);
}

/* One side: "from" or "to" (`as`), of the source's or the destination's pattern (`to`). */
static void
put_side(const cps_kbin *k, const cps_kdesc *c, bool to, const char *as, bool container, cps_jsonw *w)
{
    char key[32];
    cps_dtype t = to ? c->to_dtype : c->from_dtype;
    cps_jsonw_key(w, as);
    cps_jsonw_str(w, k->vars.data[to ? c->to : c->from].name);
    snprintf(key, sizeof key, "%s_off", as);
    cps_jsonw_key(w, key);
    cps_jsonw_int(w, to ? c->to_off : c->from_off);
    snprintf(key, sizeof key, "%s_steps", as);
    put_ints(w, key, to ? c->to_step : c->from_step, to ? c->nto : c->nfrom);
    snprintf(key, sizeof key, "%s_sizes", as);
    put_ints(w, key, to ? c->to_size : c->from_size, to ? c->nto : c->nfrom);
    if (t == CPS_DT_U8)
        return;
    snprintf(key, sizeof key, "%s_dtype", as);
    cps_jsonw_key(w, key);
    cps_jsonw_str(w, container ? cps_pkg_dtype_word(t) : cps_dtype_name(t));
}

static void
put_desc(const cps_kbin *k, const cps_kdesc *c, bool container, cps_jsonw *w)
{
    cps_jsonw_obj(w, true);
    if (c->op != CPS_DESC_COPY) {
        cps_jsonw_key(w, "op");
        cps_jsonw_str(w, cps_pkg_ops[c->op]);
    }
    if (container && c->op == CPS_DESC_ADD) {
        // A container lists what is added: the source, and what the destination held.
        cps_jsonw_key(w, "from_arr");
        cps_jsonw_arr(w, true);
        for (int i = 0; i < 2; i++) {
            cps_jsonw_obj(w, true);
            put_side(k, c, i == 1, "from", container, w);
            cps_jsonw_end_obj(w);
        }
        cps_jsonw_end_arr(w);
    } else {
        put_side(k, c, false, "from", container, w);
    }
    put_side(k, c, true, "to", container, w);
    if (c->op == CPS_DESC_TRANSPOSE) {
        put_ints(w, "transpose_shape", (int64_t[]){c->rows, c->cols, 1, 1}, container ? 4 : 2);
        cps_jsonw_key(w, "transpose_element_size");
        cps_jsonw_int(w, c->elem);
    }
    cps_jsonw_end_obj(w);
}

void
cps_pkg_items_write(const cps_kbin *k, cps_engine e, bool container, cps_jsonw *w)
{
    cps_jsonw_arr(w, false);
    for (uint32_t i = 0; i < k->blocks.n; i++) {
        const cps_kblock *b = &k->blocks.data[i];
        if (b->owner != e)
            continue;
        cps_jsonw_obj(w, false);
        cps_jsonw_key(w, "id");
        cps_jsonw_int(w, b->id);
        cps_jsonw_key(w, "queue");
        cps_jsonw_str(w, b->queue);
        cps_jsonw_key(w, "semaphore");
        cps_jsonw_int(w, b->semaphore);
        cps_jsonw_key(w, "desc");
        cps_jsonw_arr(w, false);
        for (uint32_t d = 0; d < b->ndesc; d++)
            put_desc(k, &k->descs.data[b->first + d], container, w);
        cps_jsonw_end_arr(w);
        cps_jsonw_end_obj(w);
    }
    cps_jsonw_end_arr(w);
}

void
cps_pkg_dma_write(const cps_kbin *k, cps_buf *out)
{
    cps_jsonw w;
    cps_jsonw_init(&w, out);
    cps_jsonw_obj(&w, false);
    for (int e = 0; e < CPS_ENGINES; e++) {
        cps_jsonw_key(&w, cps_engine_name((cps_engine)e));
        cps_pkg_items_write(k, (cps_engine)e, false, &w);
    }
    cps_jsonw_end_obj(&w);
    cps_jsonw_done(&w);
}

static bool
get_ints(const cps_json *o, const char *key, int64_t *v, int max, int *n)
{
    const cps_json *a = cps_json_get(o, key);
    if (!a || a->kind != CPS_JSON_ARR || a->n == 0 || a->n > (uint32_t)max)
        return false;
    *n = 0;
    for (const cps_json *x = a->first; x; x = x->next) {
        if (x->kind != CPS_JSON_INT)
            return false;
        v[(*n)++] = x->i;
    }
    return true;
}

static bool
get_dtype(const cps_json *o, const char *key, cps_dtype *out)
{
    bool ok = true;
    const char *s = cps_json_str(o, key, false, "u8", &ok);
    *out = ok ? cps_dtype_parse(s, strlen(s)) : CPS_DT_NONE;
    return *out != CPS_DT_NONE;
}

/* A side back: NULL, or what is wrong with it. */
static const char *
get_side(const cps_kbin *k, const cps_json *o, bool to, const char *as, cps_kdesc *c)
{
    char steps[32], sizes[32], off[32], dtype[32];
    snprintf(steps, sizeof steps, "%s_steps", as);
    snprintf(sizes, sizeof sizes, "%s_sizes", as);
    snprintf(off, sizeof off, "%s_off", as);
    snprintf(dtype, sizeof dtype, "%s_dtype", as);
    bool ok = o->kind == CPS_JSON_OBJ;
    if (!ok)
        return "malformed descriptor";
    const char *name = cps_json_str(o, as, true, "", &ok);
    *(to ? &c->to_off : &c->from_off) = cps_json_int(o, off, true, 0, &ok);
    int n = 0, *nd = to ? &c->nto : &c->nfrom;
    if (!ok || !get_ints(o, steps, to ? c->to_step : c->from_step, CPS_DESC_DIMS, nd) ||
        !get_ints(o, sizes, to ? c->to_size : c->from_size, CPS_DESC_DIMS, &n) || n != *nd ||
        !get_dtype(o, dtype, to ? &c->to_dtype : &c->from_dtype))
        return "malformed descriptor";
    uint32_t v = cps_kbin_var(k, name);
    *(to ? &c->to : &c->from) = v;
    return v == UINT32_MAX ? "descriptor names an unknown variable" : NULL;
}

static bool
same_side(const cps_kdesc *a, const cps_kdesc *b)
{
    return a->to == b->to && a->to_off == b->to_off && a->nto == b->nto && a->to_dtype == b->to_dtype &&
           !memcmp(a->to_step, b->to_step, sizeof a->to_step) &&
           !memcmp(a->to_size, b->to_size, sizeof a->to_size);
}

static bool
get_desc(cps_kbin *k, const cps_json *o, const char **why)
{
    cps_kdesc *c = cps_vec_add(k->arena, &k->descs), held = {0};
    bool ok = o->kind == CPS_JSON_OBJ;
    *why = "malformed descriptor";
    if (!ok)
        return false;
    const char *op = cps_json_str(o, "op", false, "copy", &ok);
    const cps_json *from = cps_json_get(o, "from_arr");
    bool listed = from != NULL;
    if (!ok || (listed && (from->kind != CPS_JSON_ARR || from->n != 2)))
        return false;
    const char *bad = get_side(k, listed ? from->first : o, false, "from", c);
    if (!bad)
        bad = get_side(k, o, true, "to", c);
    if (!bad && listed)
        bad = get_side(k, from->first->next, true, "from", &held);
    if (bad) {
        *why = bad;
        return false;
    }
    unsigned i = 0;
    while (i < CPS_DESCOPS && strcmp(op, cps_pkg_ops[i]) != 0)
        i++;
    *why = "unknown descriptor operation";
    if (i == CPS_DESCOPS || (listed && (i != CPS_DESC_ADD || !same_side(c, &held))))
        return false;
    c->op = (cps_descop)i;
    if (c->op == CPS_DESC_TRANSPOSE) {
        int64_t shape[4] = {0, 0, 1, 1};
        int n = 0;
        *why = "malformed transpose";
        if (!get_ints(o, "transpose_shape", shape, 4, &n) || n % 2 || shape[2] != 1 || shape[3] != 1)
            return false;
        c->rows = shape[0];
        c->cols = shape[1];
        int64_t elem = cps_json_int(o, "transpose_element_size", true, 0, &ok);
        if (!ok || elem < 1 || elem > 8)
            return false;
        c->elem = (int)elem;
    }
    return true;
}

static bool
get_block(cps_kbin *k, cps_engine e, const cps_json *o, const char **why)
{
    *why = "malformed dma item";
    if (o->kind != CPS_JSON_OBJ)
        return false;
    bool ok = true;
    int64_t id = cps_json_int(o, "id", true, 0, &ok);
    const char *queue = cps_json_str(o, "queue", true, "", &ok);
    int64_t sem = cps_json_int(o, "semaphore", true, 0, &ok);
    const cps_json *desc = cps_json_get(o, "desc");
    if (!ok || id < 0 || id > UINT32_MAX || sem < 0 || sem > 255 || !desc ||
        desc->kind != CPS_JSON_ARR || k->blocks.n >= CPS_PKG_ITEMS)
        return false;
    cps_kblock *b = cps_vec_add(k->arena, &k->blocks);
    b->owner = e;
    b->queue = cps_arena_strdup(k->arena, queue);
    b->id = (uint32_t)id;
    b->semaphore = (uint8_t)sem;
    b->first = k->descs.n;
    b->ndesc = desc->n;
    for (const cps_json *d = desc->first; d; d = d->next) {
        if (k->descs.n >= CPS_PKG_ITEMS || !get_desc(k, d, why))
            return false;
    }
    return true;
}

bool
cps_pkg_items_read(cps_kbin *k, cps_engine e, const cps_json *items, const char **why)
{
    *why = "an engine's list is missing";
    if (!items || items->kind != CPS_JSON_ARR)
        return false;
    for (const cps_json *o = items->first; o; o = o->next)
        if (!get_block(k, e, o, why))
            return false;
    return true;
}

bool
cps_pkg_dma_read(cps_kbin *k, const cps_json *doc, const char **why)
{
    for (int e = 0; e < CPS_ENGINES; e++)
        if (!cps_pkg_items_read(k, (cps_engine)e, cps_json_get(doc, cps_engine_name((cps_engine)e)), why))
            return false;
    return true;
}
