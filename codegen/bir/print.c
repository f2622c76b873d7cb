/* The printed form: members sorted by name as the published writer does, lines as the layouts
 * of bir.def say, numbers as they were read. Printing what was printed changes nothing. */
#include "codegen/bir/bir.h"
#include "codegen/bir/read.h"

#include <stdlib.h>
#include <string.h>

static int
by_key(const void *a, const void *b)
{
    const cps_json *x = *(const cps_json *const *)a, *y = *(const cps_json *const *)b;
    return strcmp(x->key, y->key);
}

static void
print_scalar(cps_jsonw *w, const cps_json *v)
{
    switch (v->kind) {
    case CPS_JSON_BOOL:
        cps_jsonw_bool(w, v->i != 0);
        break;
    case CPS_JSON_INT:
        cps_jsonw_int(w, v->i);
        break;
    case CPS_JSON_NUM:
        if (v->str)
            cps_jsonw_raw(w, v->str);
        else
            cps_jsonw_num(w, v->num);
        break;
    case CPS_JSON_STR:
        cps_jsonw_str(w, v->str);
        break;
    default:
        cps_jsonw_null(w);
    }
}

static cps_bop
opcode(cps_bobj o, const cps_json *v)
{
    const cps_json *op =
        o == CPS_BO_INST || o == CPS_BO_DESCRIPTOR ? cps_json_get(v, "opcode") : NULL;
    return op && op->kind == CPS_JSON_STR ? cps_bop_find(op->str) : CPS_BOP_NONE;
}

static void
print_object(cps_jsonw *w, const cps_json *v, cps_bobj o)
{
    enum { FEW = 64 };
    const cps_json *few[FEW], **m = few;
    uint32_t n = 0;
    if (v->n > FEW) {
        m = malloc(v->n * sizeof *m);
        if (!m)
            cps_out_of_memory(v->n * sizeof *m);
    }
    for (const cps_json *x = v->first; x; x = x->next)
        m[n++] = x;
    qsort(m, n, sizeof *m, by_key);
    cps_bop op = opcode(o, v);
    cps_jsonw_obj(w, o == CPS_BO_NONE || cps_bobjs[o].layout != CPS_BL_SPREAD || !n);
    for (uint32_t i = 0; i < n; i++) {
        const cps_bkey_row *r = o ? cps_bkey_find(o, op, m[i]->key) : NULL;
        cps_jsonw_key(w, m[i]->key);
        cps_bjson_print(w, m[i], r ? (cps_bform)r->form : CPS_BF_ANY, r ? r->arg : 0);
    }
    cps_jsonw_end_obj(w);
    if (m != few)
        free(m);
}

void
cps_bjson_print(cps_jsonw *w, const cps_json *v, cps_bform form, unsigned arg)
{
    bool typed = form == CPS_BF_OBJ || form == CPS_BF_LIST;
    if (v->kind == CPS_JSON_OBJ) {
        print_object(w, v, form == CPS_BF_OBJ ? cps_bobj_of((cps_bobj)arg, v) : CPS_BO_NONE);
        return;
    }
    if (v->kind != CPS_JSON_ARR) {
        print_scalar(w, v);
        return;
    }
    cps_blayout l = typed ? (cps_blayout)cps_bobjs[arg].layout : CPS_BL_FLAT;
    cps_jsonw_arr(w, l == CPS_BL_FLAT || !v->n || (l == CPS_BL_LINE && v->n == 1));
    for (const cps_json *x = v->first; x; x = x->next)
        cps_bjson_print(w, x, form == CPS_BF_LIST ? CPS_BF_OBJ : CPS_BF_ANY, arg);
    cps_jsonw_end_arr(w);
}

void
cps_bir_print(const cps_bir *b, cps_buf *out)
{
    cps_jsonw w;
    cps_jsonw_init(&w, out);
    if (b->top != b->root) {
        cps_jsonw_obj(&w, false);
        cps_jsonw_key(&w, "module");
    }
    cps_bjson_print(&w, b->root, CPS_BF_OBJ, CPS_BO_MODULE);
    if (b->top != b->root)
        cps_jsonw_end_obj(&w);
    cps_jsonw_done(&w);
}
