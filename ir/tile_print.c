/* Tile text out. Buffers print with their id, views in place where they are used, attributes in
 * the order of tattr.def. The content of package constants is part of the text: elements when
 * few, else bytes in hexadecimal, 64 a string. tile_parse.c reads all of it back. */
#include "codegen/isa/isa.h"
#include "ir/scan.h"
#include "ir/tile_text.h"

const char *const cps_space_names[CPS_SPACES] = {"hbm", "sbuf", "psum", "reg"};
const char *const cps_role_names[CPS_ROLES] = {"local", "in", "out", "inout", "data"};

typedef struct ctx {
    const cps_tfunc *f;
    cps_buf *out;
    bool locs, anon;
} ctx;

static void
put_loc(const ctx *c, cps_span at)
{
    if (at.file && c->locs)
        cps_buf_printf(c->out, " loc %u:%u:%u", at.file, at.begin, at.end);
}

static void
put_buf(const ctx *c, uint32_t id)
{
    const char *name = c->f->bufs.data[id].name;
    cps_buf_putc(c->out, '%');
    if (name && *name && !c->anon) {
        cps_put_name(c->out, name);
        cps_buf_putc(c->out, '.');
    }
    cps_buf_printf(c->out, "%u", id);
}

static void
put_data(const ctx *c, const cps_tbuf *b)
{
    int64_t bytes = cps_tbuf_bytes(b), count = cps_tbuf_elems(b);
    const uint8_t *p = b->data;
    if (count <= CPS_TILE_INLINE) {
        cps_buf_puts(c->out, " [");
        for (int64_t i = 0; i < count; i++) {
            cps_buf_puts(c->out, i ? ", " : "");
            cps_put_element(c->out, b->dtype, p + i * cps_dtype_bytes(b->dtype));
        }
        cps_buf_putc(c->out, ']');
        return;
    }
    for (int64_t i = 0; i < bytes; i += 64) {
        cps_buf_puts(c->out, "\n  \"");
        for (int64_t k = i; k < bytes && k < i + 64; k++) {
            cps_buf_putc(c->out, "0123456789abcdef"[p[k] >> 4]);
            cps_buf_putc(c->out, "0123456789abcdef"[p[k] & 15]);
        }
        cps_buf_putc(c->out, '"');
    }
}

static void
put_decl(const ctx *c, uint32_t id)
{
    const cps_tbuf *b = &c->f->bufs.data[id];
    cps_type t = {.dtype = b->dtype, .rank = b->rank};
    memcpy(t.dim, b->dim, sizeof t.dim);
    put_buf(c, id);
    cps_buf_printf(c->out, " = %s ", cps_space_names[b->space]);
    cps_type_print(&t, c->out);
    if (b->space == CPS_HBM)
        cps_buf_printf(c->out, " %s", cps_role_names[b->role]);
    if (b->ring)
        cps_buf_printf(c->out, " ring %u turn %u", b->ring, b->turn);
    if (b->slots)
        cps_buf_printf(c->out, " slots %u", b->slots);
    if (b->depth)
        cps_buf_printf(c->out, " depth %u", b->depth);
    if (b->pin_byte >= 0)
        cps_buf_printf(c->out, " at %d", b->pin_byte);
    if (b->pin_bank >= 0)
        cps_buf_printf(c->out, " bank %d", b->pin_bank);
    if (b->pin_part >= 0)
        cps_buf_printf(c->out, " parts %d", b->pin_part);
    if (b->placed)
        cps_buf_printf(c->out, " placed %u:%u", b->part, b->byte);
    put_loc(c, b->loc);
    if (b->data)
        put_data(c, b);
    cps_buf_putc(c->out, '\n');
}

static void
put_view(const ctx *c, uint32_t id)
{
    const cps_tview *v = &c->f->views.data[id];
    const cps_tbuf *b = &c->f->bufs.data[v->buf];
    put_buf(c, v->buf);
    if (v->dtype != b->dtype)
        cps_buf_printf(c->out, " as %s", cps_dtype_name(v->dtype));
    cps_buf_putc(c->out, '[');
    if (v->parts)
        cps_buf_printf(c->out, "p%u:%u, ", v->part, v->parts);
    cps_buf_printf(c->out, "%lld", (long long)v->off);
    for (int i = 0; i < v->nd; i++)
        cps_buf_printf(c->out, ", %lld*%lld", (long long)v->d[i].step, (long long)v->d[i].num);
    if (v->reg) {
        cps_buf_puts(c->out, ", reg ");
        put_buf(c, v->reg);
        cps_buf_printf(c->out, "*%lld", (long long)v->reg_step);
    }
    if (v->index) {
        cps_buf_puts(c->out, ", index ");
        put_view(c, v->index - 1); // an index view has none itself
    }
    cps_buf_putc(c->out, ']');
}

static void
put_oper(const ctx *c, const cps_toper *o)
{
    switch (o->kind) {
    case CPS_TO_NONE:
        cps_buf_putc(c->out, '_');
        break;
    case CPS_TO_VIEW:
        put_view(c, o->id);
        break;
    case CPS_TO_REG:
        put_buf(c, o->id);
        break;
    case CPS_TO_IMM:
        if (o->is_int)
            cps_buf_printf(c->out, "%lld", (long long)o->ival);
        else
            cps_put_float(c->out, o->imm);
    }
}

static void
put_list(const ctx *c, const cps_tlist *l)
{
    bool counts = false;
    for (int i = l->n; i < 2 * l->n && i < (int)cps_countof(l->v); i++)
        counts = counts || l->v[i];
    cps_buf_putc(c->out, '[');
    for (int i = 0; i < l->n; i++) {
        cps_buf_printf(c->out, i ? ", %d" : "%d", l->v[i]);
        if (counts)
            cps_buf_printf(c->out, "*%d", l->v[l->n + i]);
    }
    cps_buf_putc(c->out, ']');
}

static void
put_attrs(const ctx *c, const cps_tinst *x)
{
    if (!x->set)
        return;
    const char *sep = " {";
    for (int k = 0; k < CPS_TATTRS; k++) {
        if (!(x->set >> k & 1))
            continue;
        int32_t v = x->attr[k];
        const char *word = NULL;
        cps_buf_printf(c->out, "%s%s", sep, cps_tattrs[k].name);
        sep = ", ";
        switch ((cps_tattr_kind)cps_tattrs[k].kind) {
        case CPS_TK_FLAG:
            if (v == 1)
                continue;
            break;
        case CPS_TK_ALU:
            word = cps_alu_name((unsigned)v);
            break;
        case CPS_TK_FUNC:
            word = cps_actfn_name((unsigned)v);
            break;
        case CPS_TK_INTS:
            cps_buf_putc(c->out, '=');
            put_list(c, &c->f->lists.data[v]);
            continue;
        case CPS_TK_INT:
            break;
        }
        if (word)
            cps_buf_printf(c->out, "=%s", word);
        else
            cps_buf_printf(c->out, "=%d", v);
    }
    cps_buf_putc(c->out, '}');
}

static void
put_inst(const ctx *c, const cps_tinst *x, int indent)
{
    cps_buf_printf(c->out, "%*s%s", 2 * indent, "", cps_tops[x->op].name);
    for (int i = 0; i < x->nout; i++) {
        cps_buf_puts(c->out, i ? ", " : " ");
        put_oper(c, &x->out[i]);
    }
    cps_buf_puts(c->out, x->nout && x->nin ? " <- " : x->nin ? " " : "");
    for (int i = 0; i < x->nin; i++) {
        cps_buf_puts(c->out, i ? ", " : "");
        put_oper(c, &x->in[i]);
    }
    put_attrs(c, x);
    if (x->engine != CPS_ENGINE_ANY || x->pinned)
        cps_buf_printf(c->out, " %s %s", x->pinned ? "pin" : "on",
                       cps_engine_name((cps_engine)x->engine));
    if (x->label)
        cps_buf_printf(c->out, " label %u", x->label);
    if (x->after)
        cps_buf_printf(c->out, " after %u", x->after);
    if (x->priority)
        cps_buf_printf(c->out, " priority %d", x->priority);
    if (x->round != -1)
        cps_buf_printf(c->out, " round %d", x->round);
    if (x->stage != -1)
        cps_buf_printf(c->out, " stage %d", x->stage);
    put_loc(c, x->loc);
    cps_buf_putc(c->out, '\n');
}

static void
put_func(const ctx *c)
{
    const cps_tfunc *f = c->f;
    int indent = 0;
    cps_buf_puts(c->out, "copse.tile 1\nkernel @");
    cps_put_name(c->out, c->anon ? "" : f->name);
    cps_buf_puts(c->out, " on ");
    cps_put_name(c->out, f->target);
    cps_buf_printf(c->out, " core %d of %d\n", f->core, f->cores);
    for (uint32_t i = 1; i < f->bufs.n; i++)
        put_decl(c, i);
    for (uint32_t i = 0; i < f->insts.n; i++) {
        const cps_tinst *x = &f->insts.data[i];
        indent -= indent > 0 && (x->op == CPS_T_END || x->op == CPS_T_ELSE);
        put_inst(c, x, CPS_MIN(indent, 16));
        indent += x->op == CPS_T_LOOP || x->op == CPS_T_WHEN || x->op == CPS_T_ELSE;
    }
}

void
cps_tile_print(const cps_tfunc *f, bool locs, cps_buf *out)
{
    put_func(&(ctx){.f = f, .out = out, .locs = locs});
}

cps_digest
cps_tile_digest(const cps_tfunc *f)
{
    cps_buf b = {0};
    put_func(&(ctx){.f = f, .out = &b, .anon = true});
    cps_digest d = cps_digest_of(b.data, b.n);
    cps_buf_fini(&b);
    return d;
}
