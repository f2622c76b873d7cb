/* The extents of a kernel as JSON: the list `extents` of kernel.json and of what a container
 * keeps for us. A kernel without addresses in registers has none, and a reader may pass over
 * the list. */
#include "runtime/pkg/kbin_priv.h"

void
cps_kbin_extents_write(const cps_kbin *k, cps_jsonw *w)
{
    if (!k->extents.n)
        return;
    cps_jsonw_key(w, "extents");
    cps_jsonw_arr(w, false);
    for (uint32_t i = 0; i < k->extents.n; i++) {
        const cps_kextent *x = &k->extents.data[i];
        cps_jsonw_obj(w, true);
        cps_jsonw_put_str(w, "engine", cps_engine_name(x->engine));
        cps_jsonw_put_int(w, "bundle", x->index);
        cps_jsonw_put_str(w, "field", cps_fields[x->field].name);
        if (x->var) {
            cps_jsonw_put_str(w, "var", k->vars.data[x->var].name);
        } else {
            cps_jsonw_put_str(w, "tile", x->name);
            cps_jsonw_put_str(w, "space", x->psum ? "psum" : "sbuf");
            cps_jsonw_put_int(w, "partition", x->part);
            cps_jsonw_put_int(w, "partitions", x->parts);
            cps_jsonw_put_int(w, "byte", x->byte);
            cps_jsonw_put_int(w, "bytes", x->bytes);
        }
        cps_jsonw_end_obj(w);
    }
    cps_jsonw_end_arr(w);
}

static uint32_t
number(const cps_json *o, const char *key, uint32_t most, bool *ok)
{
    int64_t v = cps_json_int(o, key, true, 0, ok);
    *ok = *ok && v >= 0 && v <= most;
    return *ok ? (uint32_t)v : 0;
}

static bool
read_one(cps_kbin *k, const cps_json *o, bool loose)
{
    bool ok = o->kind == CPS_JSON_OBJ;
    if (!ok)
        return false;
    cps_kextent x = {.engine = cps_engine_parse(cps_json_str(o, "engine", true, "", &ok))};
    x.index = number(o, "bundle", CPS_PKG_BUNDLES, &ok);
    const char *field = cps_json_str(o, "field", true, "", &ok),
               *var = cps_json_str(o, "var", false, NULL, &ok);
    if (!ok || (unsigned)x.engine >= CPS_ENGINES || x.index >= k->stream[x.engine].code.n)
        return false;
    x.field = (uint16_t)cps_pkg_field(&k->stream[x.engine].code.data[x.index], k->gen, field);
    if (var) {
        x.var = cps_kbin_var(k, var);
    } else {
        x.name = cps_arena_strdup(k->arena, cps_json_str(o, "tile", true, "", &ok));
        const char *space = cps_json_str(o, "space", true, "", &ok);
        x.psum = !strcmp(space, "psum");
        x.part = (uint16_t)number(o, "partition", CPS_PKG_LANES, &ok);
        x.parts = (uint16_t)number(o, "partitions", CPS_PKG_LANES, &ok);
        x.byte = number(o, "byte", CPS_SBUF_STRIDE, &ok);
        x.bytes = number(o, "bytes", CPS_SBUF_STRIDE, &ok);
        ok = ok && (x.psum || !strcmp(space, "sbuf"));
    }
    if (x.field != CPS_F_NONE || !loose)
        cps_vec_push(k->arena, &k->extents, x);
    return ok;
}

bool
cps_kbin_extents_read(cps_kbin *k, const cps_json *list, bool loose)
{
    if (!list)
        return true;
    if (list->kind != CPS_JSON_ARR || list->n > CPS_PKG_ITEMS)
        return false;
    for (const cps_json *o = list->first; o; o = o->next)
        if (!read_one(k, o, loose))
            return false;
    return true;
}
