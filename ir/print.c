/* Graph text out. Values are numbered in order of definition, so the text depends neither on
 * dead values nor on how the module was built; names are kept in front of the number.
 * Attributes stand sorted by key, clauses in one order. parse.c reads all of it back; IR.md has
 * the grammar. */
#include "ir/scan.h"


typedef struct ctx {
    cps_module *m;
    const cps_func *f;
    cps_buf *out;
    unsigned opts;
    uint32_t *number; // value -> printed number
} ctx;

static void
put_val(const ctx *c, cps_val v)
{
    const char *name = c->f->vals.data[v].name;
    if (!v) {
        cps_buf_putc(c->out, '_');
        return;
    }
    cps_buf_putc(c->out, '%');
    if (name && *name && !(c->opts & CPS_IR_ANON)) {
        cps_put_name(c->out, name);
        cps_buf_putc(c->out, '.');
    }
    cps_buf_printf(c->out, "%u", c->number[v]);
}

static void
put_digest(cps_buf *out, const cps_digest *d)
{
    char hex[65];
    cps_digest_hex(d, hex);
    cps_buf_printf(out, "\"%s\"", hex);
}

static void
put_const(const ctx *c, const cps_node *n)
{
    cps_const *k = &c->m->consts.data[n->cst];
    const char *value_name = c->f->vals.data[n->out[0]].name;
    cps_type_print(&k->type, c->out);
    int64_t count = cps_type_count(&k->type);
    if (count <= CPS_TEXT_INLINE) {
        cps_buf_puts(c->out, " [");
        for (int64_t i = 0; i < count; i++) {
            cps_buf_puts(c->out, i ? ", " : "");
            cps_put_element(c->out, k->type.dtype,
                            (const uint8_t *)k->data + i * cps_dtype_bytes(k->type.dtype));
        }
        cps_buf_putc(c->out, ']');
    } else {
        cps_buf_puts(c->out, " blob ");
        put_digest(c->out, cps_const_digest(k));
    }
    if (k->name && !cps_streq(k->name, value_name) && !(c->opts & CPS_IR_ANON)) {
        cps_buf_puts(c->out, " name ");
        cps_put_string(c->out, k->name);
    }
}

static void
put_pick(const ctx *c, const cps_decision *p)
{
    cps_buf_puts(c->out, " leaf ");
    if (p->leaf)
        cps_put_string(c->out, p->leaf);
    else
        cps_buf_puts(c->out, "none");
    cps_buf_puts(c->out, " why ");
    cps_put_string(c->out, p->why ? p->why : "");
    cps_buf_puts(c->out, " on ");
    cps_put_string(c->out, p->on ? p->on : "");
    cps_buf_printf(c->out, " cost %lld digest ", (long long)p->cost_ns);
    put_digest(c->out, &p->digest);
    cps_buf_puts(c->out, " config ");
    cps_put_attrs(c->out, p->nconfig, p->config);
}

static void
put_node(const ctx *c, const cps_node *n)
{
    cps_buf_puts(c->out, "  ");
    for (int i = 0; i < n->nout; i++) {
        cps_buf_puts(c->out, i ? ", " : "");
        put_val(c, n->out[i]);
    }
    cps_buf_printf(c->out, n->nout ? " = %s " : "%s ", cps_ops[n->op].name);
    if (n->op == CPS_OP_CONST) {
        put_const(c, n);
    } else {
        if (n->op == CPS_OP_CALL) {
            cps_buf_putc(c->out, '@');
            cps_put_name(c->out, n->callee);
            cps_buf_puts(c->out, n->nin ? " " : "");
        }
        for (int i = 0; i < n->nin; i++) {
            cps_buf_puts(c->out, i ? ", " : "");
            put_val(c, n->in[i]);
        }
        if (n->nattr) {
            cps_buf_puts(c->out, n->nin || n->op == CPS_OP_CALL ? " " : "");
            cps_put_attrs(c->out, n->nattr, n->attr);
        }
        for (int i = 0; i < n->nout; i++) {
            cps_buf_puts(c->out, i ? ", " : " : ");
            cps_type_print(&c->f->vals.data[n->out[i]].type, c->out);
        }
    }
    if (n->pick)
        put_pick(c, n->pick);
    if (n->from && !(c->opts & CPS_IR_ANON)) {
        cps_buf_puts(c->out, " from ");
        cps_put_string(c->out, n->from);
    }
    if (n->loc.file && (c->opts & CPS_IR_LOCS))
        cps_buf_printf(c->out, " loc %u:%u:%u", n->loc.file, n->loc.begin, n->loc.end);
    cps_buf_putc(c->out, '\n');
}

static void
put_func(ctx *c, const cps_func *f)
{
    c->f = f;
    c->number = cps_new_array(c->m->arena, uint32_t, f->vals.n);
    uint32_t next = 0;
    for (uint32_t i = 0; i < f->inputs.n; i++)
        c->number[f->inputs.data[i]] = ++next;
    for (uint32_t i = 0; i < f->nodes.n; i++)
        for (int k = 0; k < f->nodes.data[i].nout; k++)
            c->number[f->nodes.data[i].out[k]] = ++next;

    cps_buf_puts(c->out, "func @");
    cps_put_name(c->out, f->name);
    cps_buf_puts(c->out, " {\n");
    for (uint32_t i = 0; i < f->inputs.n; i++) {
        cps_buf_puts(c->out, "  input ");
        put_val(c, f->inputs.data[i]);
        cps_buf_puts(c->out, ": ");
        cps_type_print(&f->vals.data[f->inputs.data[i]].type, c->out);
        cps_buf_putc(c->out, '\n');
    }
    for (uint32_t i = 0; i < f->nodes.n; i++)
        put_node(c, &f->nodes.data[i]);
    for (uint32_t i = 0; i < f->outputs.n; i++) {
        cps_buf_puts(c->out, "  output ");
        cps_put_string(c->out, c->opts & CPS_IR_ANON ? "" : f->output_names.data[i]);
        cps_buf_putc(c->out, ' ');
        put_val(c, f->outputs.data[i]);
        cps_buf_putc(c->out, '\n');
    }
    cps_buf_puts(c->out, "}\n");
}

void
cps_ir_print_opts(cps_module *m, unsigned opts, cps_buf *out)
{
    ctx c = {.m = m, .out = out, .opts = opts};
    cps_mark mark = cps_arena_mark(m->arena);
    cps_buf_puts(out, "copse.graph 1\nmodule ");
    cps_put_string(out, opts & CPS_IR_ANON ? "" : m->name);
    cps_buf_putc(out, '\n');
    for (uint32_t i = 0; i < m->funcs.n; i++)
        put_func(&c, m->funcs.data[i]);
    cps_arena_release(m->arena, mark);
}

void
cps_ir_print(cps_module *m, cps_buf *out)
{
    cps_ir_print_opts(m, 0, out);
}

cps_digest
cps_ir_digest(cps_module *m)
{
    cps_buf b = {0};
    cps_ir_print_opts(m, CPS_IR_ANON, &b);
    cps_digest d = cps_digest_of(b.data, b.n);
    cps_buf_fini(&b);
    return d;
}
