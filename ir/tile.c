/* Construction and sizes of tile functions. Rows come from top.def and tattr.def. */
#include "ir/tile.h"

const cps_toprow cps_tops[CPS_TOPS] = {
    [CPS_T_NONE] = {.name = "none", .engines = "", .attrs = "", .outs = "", .ins = ""},
#define CPS_TOP(id, name, omin, omax, imin, imax, engines, attrs, doc, outs, ins)              \
    [CPS_T_##id] = {name, omin, omax, imin, imax, engines, attrs, doc, outs, ins},
#include "ir/top.def"
};

const cps_tattrrow cps_tattrs[CPS_TATTRS] = {
#define CPS_TATTR(id, name, kind, doc) [CPS_TA_##id] = {name, CPS_TK_##kind, doc},
#include "ir/tattr.def"
};

cps_top
cps_top_find(const char *name)
{
    for (int i = 1; i < CPS_TOPS; i++)
        if (cps_streq(cps_tops[i].name, name))
            return (cps_top)i;
    return CPS_T_NONE;
}

cps_tfunc *
cps_tile_new(cps_arena *a, const char *name, const char *target)
{
    cps_tfunc *f = cps_new(a, cps_tfunc);
    f->arena = a;
    f->name = cps_arena_strdup(a, name);
    f->target = cps_arena_strdup(a, target);
    f->cores = 1;
    cps_vec_add(a, &f->bufs); // buffer 0 is none
    return f;
}

uint32_t
cps_tile_buf(cps_tfunc *f, cps_tbuf b)
{
    cps_vec_push(f->arena, &f->bufs, b);
    return f->bufs.n - 1;
}

uint32_t
cps_tile_view(cps_tfunc *f, cps_tview v)
{
    cps_vec_push(f->arena, &f->views, v);
    return f->views.n - 1;
}

cps_tinst *
cps_tile_inst(cps_tfunc *f, cps_top op, cps_span loc)
{
    cps_tinst *i = cps_vec_add(f->arena, &f->insts);
    i->op = (uint16_t)op;
    i->engine = CPS_ENGINE_ANY;
    i->round = i->stage = -1;
    i->loc = loc;
    return i;
}

int64_t
cps_tbuf_elems(const cps_tbuf *b)
{
    int64_t n = 1;
    for (int i = b->space == CPS_SBUF || b->space == CPS_PSUM; i < b->rank; i++)
        n *= b->dim[i];
    return n;
}

int64_t
cps_tview_elems(const cps_tview *v)
{
    int64_t n = 1;
    for (int i = 0; i < v->nd; i++)
        n *= v->d[i].num;
    return n;
}

int64_t
cps_tbuf_bytes(const cps_tbuf *b)
{
    return cps_tbuf_elems(b) * cps_dtype_bytes(b->dtype);
}
