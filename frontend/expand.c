/* See expand.h. A leaf is compiled for one call; under each line of its source stand the instructions
 * that come of it, by engine and opcode with their number and the cycles that one takes, and the
 * temporaries that the line needs and nobody declared. */
#include "frontend/expand.h"

#include "codegen/isa/timing.h"
#include "frontend/call.h"
#include "frontend/compile.h"
#include "frontend/dsl/instance.h"
#include "frontend/dsl/registry.h"
#include "ir/tile_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Instructions of one kind, or temporaries of one shape, of one line. */
typedef struct row {
    const char *file;
    uint32_t line;
    int engine;       /* -1: a temporary */
    const char *what; /* opcode; type, shape and space */
    uint32_t count;
    int64_t least, most; /* cycles of one */
} row;

typedef struct expansion {
    cps_cli *c;
    const cps_target *t;
    CPS_VEC(row) rows;
} expansion;

static void
add(expansion *x, const char *file, uint32_t line, int engine, const char *what, int64_t cycles)
{
    for (uint32_t i = 0; i < x->rows.n; i++) {
        row *r = &x->rows.data[i];
        if (r->line != line || r->engine != engine || strcmp(r->file, file) || strcmp(r->what, what))
            continue;
        r->count++;
        r->least = CPS_MIN(r->least, cycles);
        r->most = CPS_MAX(r->most, cycles);
        return;
    }
    row r = {cps_arena_strdup(x->c->arena, file), line, engine, cps_arena_strdup(x->c->arena, what), 1, cycles, cycles};
    cps_vec_push(x->c->arena, &x->rows, r);
}

/* A buffer whose place is not its own name is one that the line needs for itself. */
static void
add_temporaries(void *ctx, cps_tfunc *f)
{
    expansion *x = ctx;
    for (uint32_t i = 1; i < f->bufs.n; i++) {
        const cps_tbuf *b = &f->bufs.data[i];
        size_t n, len = strlen(b->name);
        uint32_t line, col;
        if (b->space == CPS_HBM || !b->loc.file)
            continue;
        const char *text = cps_diags_source_text(x->c->diags, b->loc.file, &n);
        if (b->loc.begin + len <= n && !strncmp(text + b->loc.begin, b->name, len))
            continue;
        cps_buf what = {0};
        cps_buf_printf(&what, "%s %s[", cps_space_names[b->space], cps_dtype_name(b->dtype));
        for (int k = 0; k < b->rank; k++)
            cps_buf_printf(&what, "%s%" PRId64, k ? ", " : "", b->dim[k]);
        cps_buf_puts(&what, "]");
        cps_diags_locate(x->c->diags, b->loc, &line, &col);
        add(x, cps_diags_source_name(x->c->diags, b->loc.file), line, -1, what.data, 0);
        cps_buf_fini(&what);
    }
}

static void
add_instructions(expansion *x, const cps_kbin *k)
{
    for (int e = 0; e < CPS_ENGINES; e++) {
        const cps_kstream *s = &k->stream[e];
        for (uint32_t i = 0; i < s->code.n && s->locs.n; i++) {
            cps_insn insn = cps_isa_find(s->code.data[i].b[0], k->gen);
            cps_cost cost;
            if (!s->locs.data[i].file || insn == CPS_INSN_NONE)
                continue;
            cps_timing(x->t, (cps_engine)e, &s->code.data[i], &cost);
            add(x, s->locs.data[i].file, s->locs.data[i].line, e, cps_insns[insn].name, cost.cycles);
        }
    }
}

static int
by_place(const void *a, const void *b)
{
    const row *x = a, *y = b;
    int file = strcmp(x->file, y->file);
    if (file || x->line != y->line)
        return file ? file : x->line < y->line ? -1 : 1;
    if (x->engine != y->engine) // temporaries last
        return (unsigned)x->engine < (unsigned)y->engine ? -1 : 1;
    return strcmp(x->what, y->what);
}

static void
put_row(const row *r, cps_buf *out)
{
    if (r->engine < 0) {
        cps_buf_printf(out, "      |     temporary %s", r->what);
        if (r->count > 1)
            cps_buf_printf(out, " x %u", r->count);
        cps_buf_putc(out, '\n');
        return;
    }
    cps_buf_printf(out, "      |     %-4s %-28s x %-6u %" PRId64, cps_engine_name((cps_engine)r->engine), r->what, r->count, r->least);
    if (r->most > r->least)
        cps_buf_printf(out, " to %" PRId64, r->most);
    cps_buf_puts(out, r->most == 1 ? " cycle\n" : " cycles\n");
}

/* The lines of `file` from the first that became something to the last, with what they became. */
static void
put_file(const expansion *x, const char *file, cps_buf *out)
{
    const char *text = NULL;
    size_t n = 0;
    for (uint32_t f = 1; !text && f <= cps_diags_sources(x->c->diags); f++)
        if (!strcmp(cps_diags_source_name(x->c->diags, f), file))
            text = cps_diags_source_text(x->c->diags, f, &n);
    uint32_t i = 0, end = 0, line = 1;
    while (strcmp(x->rows.data[i].file, file))
        i++;
    for (uint32_t k = i; k < x->rows.n && !strcmp(x->rows.data[k].file, file); k++)
        end = x->rows.data[k].line;
    cps_buf_printf(out, "// %s\n", file);
    for (const char *p = text ? text : "", *stop = p + n; line <= end; line++) {
        const char *nl = p < stop ? memchr(p, '\n', (size_t)(stop - p)) : NULL;
        size_t len = nl ? (size_t)(nl - p) : (size_t)(stop - p);
        if (line >= x->rows.data[i].line || line + 1 >= x->rows.data[i].line)
            cps_buf_printf(out, "%5u | %.*s\n", line, (int)len, p);
        for (; i < x->rows.n && x->rows.data[i].line == line && !strcmp(x->rows.data[i].file, file); i++)
            put_row(&x->rows.data[i], out);
        if (i == x->rows.n || strcmp(x->rows.data[i].file, file))
            break;
        p = nl ? nl + 1 : stop;
    }
}

/* Options of a call out of the leaf's first case, where none are given. */
static bool
take_case(cps_cli *c, const char *leaf)
{
    cps_registry *r = cps_cli_registry(c);
    struct cps_dsl_set *s = cps_dsl_registry_set(r, NULL);
    const cps_dsl_leaf *l = cps_dsl_find_leaf(s, leaf);
    cps_dsl_case *k;
    uint32_t n = 0;
    if (cps_cli_has(c, CPS_OPT_DIMS))
        return true;
    if (!l || !cps_dsl_cases(s, c->arena, l, &k, &n, c->diags) || !n)
        return false;
    cps_buf b = {0};
    for (uint32_t i = 0; i < k->ndim; i++)
        cps_buf_printf(&b, "%s%s=%" PRId64, i ? "," : "", k->dim[i], k->size[i]);
    cps_vec_push(c->arena, &c->opt[CPS_OPT_DIMS], cps_arena_strndup(c->arena, b.data, b.n));
    cps_buf_fini(&b);
    for (uint32_t i = 0; i < k->nattr; i++)
        cps_vec_push(c->arena, &c->opt[CPS_OPT_ATTR], cps_arena_printf(c->arena, "%s=%s", k->attr[i], k->text[i]));
    if (k->dtype && !cps_cli_has(c, CPS_OPT_DTYPE))
        cps_vec_push(c->arena, &c->opt[CPS_OPT_DTYPE], cps_dtype_name(k->dtype));
    if (*k->with && !cps_cli_has(c, CPS_OPT_WITH)) {
        char *with = cps_arena_strdup(c->arena, k->with);
        for (char *p = with; *p; p++)
            *p = *p == ' ' ? ',' : *p;
        cps_vec_push(c->arena, &c->opt[CPS_OPT_WITH], with);
    }
    if (k->cores > 1 && !cps_cli_has(c, CPS_OPT_LNC))
        cps_vec_push(c->arena, &c->opt[CPS_OPT_LNC], cps_arena_printf(c->arena, "%d", k->cores));
    return true;
}

/* A target that the leaf is for, where none is said and it is not for the usual one. */
static void
take_target(cps_cli *c, const cps_leafinfo *leaf)
{
    if (cps_cli_has(c, CPS_OPT_TARGET) || strstr(leaf->targets, "trn2"))
        return;
    size_t n = strcspn(leaf->targets, " ");
    cps_vec_push(c->arena, &c->opt[CPS_OPT_TARGET], cps_arena_strndup(c->arena, leaf->targets, n));
}

cps_exit
cps_kernel_expand(cps_cli *c, const char *name)
{
    cps_registry *r = cps_cli_registry(c);
    cps_leafinfo leaf = {0};
    cps_opinfo op;
    bool ok = r != NULL, found = false;
    for (unsigned i = 0; ok && !found && i < r->leaves(r->self); i++)
        found = r->leaf(r->self, i, &leaf) && !strcmp(leaf.name, name);
    if (ok && !found && !r->find_op(r->self, name, &op)) {
        cps_error(c->diags, CPS_E1106, CPS_NOSPAN, "no operator or leaf is called '%s'", name);
        cps_help(c->diags, "`copse kernel list` shows all");
        return CPS_BAD_INPUT;
    }
    if (!ok)
        return cps_cli_failed(c);
    const char *of = found ? leaf.op : name, *force = found ? leaf.name : cps_cli_str(c, CPS_OPT_LEAF, NULL);
    if (found) {
        cps_dsl_registry_set(r, of); // loads it
        take_target(c, &leaf);
        ok = take_case(c, leaf.name);
    }
    const cps_target *t = ok ? cps_cli_target(c, &ok) : NULL;
    if (ok && !t) {
        cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'--expand' is of NeuronCore instructions, and the host has none");
        return CPS_USAGE;
    }
    cps_instance inst;
    cps_candidate *cand;
    const char *why;
    unsigned n;
    if (!ok || !cps_cli_call(c, of, t, &inst))
        return cps_cli_failed(c);
    int k = cps_choose(c, &inst, force, &cand, &n, &why);
    expansion x = {.c = c, .t = t};
    cps_trial trial = {.before = add_temporaries, .ctx = &x};
    const cps_kbin *bin = k >= 0 && cps_cli_pin(c, &inst, &cand[k]) ? cps_compile_trial(c, c->arena, &inst, &cand[k], &trial) : NULL;
    if (!bin)
        return cps_cli_failed(c);
    for (const cps_kbin *core = bin; core; core = core->peer)
        add_instructions(&x, core);
    if (x.rows.n)
        qsort(x.rows.data, x.rows.n, sizeof *x.rows.data, by_place);
    cps_buf out = {0};
    cps_buf_printf(&out, "// leaf %s for ", cand[k].leaf);
    cps_instance_print(&inst, &out);
    cps_buf_puts(&out, "\n// under each line its instructions: engine, opcode, how many stand in the streams, cycles of one\n");
    for (uint32_t i = 0; i < x.rows.n; i++)
        if (!i || strcmp(x.rows.data[i].file, x.rows.data[i - 1].file))
            put_file(&x, x.rows.data[i].file, &out);
    fwrite(out.data, 1, out.n, stdout);
    cps_buf_fini(&out);
    return CPS_OK;
}
