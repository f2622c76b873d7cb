/* dma.json: the `dma` items of a container's engine JSON, grouped by the engine that owns the
 * queue. Names and meanings are the public NEFF documentation's: an item has id, queue,
 * semaphore and desc[]; a desc has op (copy when absent), from, to, offsets, steps and sizes in
 * bytes with the innermost dimension first, dtypes (uint8 when absent), and for transposes the
 * shape and the element size. */
#include "runtime/pkg/kbin_priv.h"

static void
put_ints(cps_jsonw *w, const char *key, const int64_t *v, int n)
{
    cps_jsonw_key(w, key);
    cps_jsonw_arr(w, true);
    for (int i = 0; i < n; i++)
        cps_jsonw_int(w, v[i]);
    cps_jsonw_end_arr(w);
}

static void
put_desc(const cps_kbin *k, const cps_kdesc *c, cps_jsonw *w)
{
    cps_jsonw_obj(w, true);
    if (c->op != CPS_DESC_COPY) {
        cps_jsonw_key(w, "op");
        cps_jsonw_str(w, cps_pkg_ops[c->op]);
    }
    cps_jsonw_key(w, "from");
    cps_jsonw_str(w, k->vars.data[c->from].name);
    cps_jsonw_key(w, "from_off");
    cps_jsonw_int(w, c->from_off);
    put_ints(w, "from_steps", c->from_step, c->nfrom);
    put_ints(w, "from_sizes", c->from_size, c->nfrom);
    if (c->from_dtype != CPS_DT_U8) {
        cps_jsonw_key(w, "from_dtype");
        cps_jsonw_str(w, cps_dtype_name(c->from_dtype));
    }
    cps_jsonw_key(w, "to");
    cps_jsonw_str(w, k->vars.data[c->to].name);
    cps_jsonw_key(w, "to_off");
    cps_jsonw_int(w, c->to_off);
    put_ints(w, "to_steps", c->to_step, c->nto);
    put_ints(w, "to_sizes", c->to_size, c->nto);
    if (c->to_dtype != CPS_DT_U8) {
        cps_jsonw_key(w, "to_dtype");
        cps_jsonw_str(w, cps_dtype_name(c->to_dtype));
    }
    if (c->op == CPS_DESC_TRANSPOSE) {
        put_ints(w, "transpose_shape", (int64_t[]){c->rows, c->cols}, 2);
        cps_jsonw_key(w, "transpose_element_size");
        cps_jsonw_int(w, c->elem);
    }
    cps_jsonw_end_obj(w);
}

void
cps_pkg_dma_write(const cps_kbin *k, cps_buf *out)
{
    cps_jsonw w;
    cps_jsonw_init(&w, out);
    cps_jsonw_obj(&w, false);
    for (int e = 0; e < CPS_ENGINES; e++) {
        cps_jsonw_key(&w, cps_engine_name((cps_engine)e));
        cps_jsonw_arr(&w, false);
        for (uint32_t i = 0; i < k->blocks.n; i++) {
            const cps_kblock *b = &k->blocks.data[i];
            if (b->owner != (cps_engine)e)
                continue;
            cps_jsonw_obj(&w, false);
            cps_jsonw_key(&w, "id");
            cps_jsonw_int(&w, b->id);
            cps_jsonw_key(&w, "queue");
            cps_jsonw_str(&w, b->queue);
            cps_jsonw_key(&w, "semaphore");
            cps_jsonw_int(&w, b->semaphore);
            cps_jsonw_key(&w, "desc");
            cps_jsonw_arr(&w, false);
            for (uint32_t d = 0; d < b->ndesc; d++)
                put_desc(k, &k->descs.data[b->first + d], &w);
            cps_jsonw_end_arr(&w);
            cps_jsonw_end_obj(&w);
        }
        cps_jsonw_end_arr(&w);
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

static bool
get_desc(cps_kbin *k, const cps_json *o, const char **why)
{
    cps_kdesc *c = cps_vec_add(k->arena, &k->descs);
    bool ok = o->kind == CPS_JSON_OBJ;
    *why = "malformed descriptor";
    if (!ok)
        return false;
    const char *op = cps_json_str(o, "op", false, "copy", &ok);
    const char *from = cps_json_str(o, "from", true, "", &ok);
    const char *to = cps_json_str(o, "to", true, "", &ok);
    c->from_off = cps_json_int(o, "from_off", true, 0, &ok);
    c->to_off = cps_json_int(o, "to_off", true, 0, &ok);
    if (!ok)
        return false;
    int n = 0, m = 0;
    if (!get_ints(o, "from_steps", c->from_step, CPS_DESC_DIMS, &c->nfrom) ||
        !get_ints(o, "from_sizes", c->from_size, CPS_DESC_DIMS, &n) || n != c->nfrom ||
        !get_ints(o, "to_steps", c->to_step, CPS_DESC_DIMS, &c->nto) ||
        !get_ints(o, "to_sizes", c->to_size, CPS_DESC_DIMS, &m) || m != c->nto)
        return false;
    if (!get_dtype(o, "from_dtype", &c->from_dtype) || !get_dtype(o, "to_dtype", &c->to_dtype))
        return false;
    unsigned i = 0;
    while (i < CPS_DESCOPS && strcmp(op, cps_pkg_ops[i]) != 0)
        i++;
    *why = "unknown descriptor operation";
    if (i == CPS_DESCOPS)
        return false;
    c->op = (cps_descop)i;
    *why = "descriptor names an unknown variable";
    c->from = cps_kbin_var(k, from);
    c->to = cps_kbin_var(k, to);
    if (c->from == UINT32_MAX || c->to == UINT32_MAX)
        return false;
    if (c->op == CPS_DESC_TRANSPOSE) {
        int64_t shape[2];
        *why = "malformed transpose";
        if (!get_ints(o, "transpose_shape", shape, 2, &n) || n != 2)
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
cps_pkg_dma_read(cps_kbin *k, const cps_json *doc, const char **why)
{
    for (int e = 0; e < CPS_ENGINES; e++) {
        const cps_json *items = cps_json_get(doc, cps_engine_name((cps_engine)e));
        *why = "an engine's list is missing";
        if (!items || items->kind != CPS_JSON_ARR)
            return false;
        for (const cps_json *o = items->first; o; o = o->next) {
            if (!get_block(k, (cps_engine)e, o, why))
                return false;
        }
    }
    return true;
}
