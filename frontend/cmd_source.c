/* copse compile F.cps: the operator of a source file, called as the options say (--dims and the others
 * of `kernel compile`; --dim NAME=N too, as for models). A file that declares several, or leaves of
 * several, needs --kernel NAME. */
#include "frontend/cmd_source.h"

#include "frontend/block.h"
#include "frontend/call.h"
#include "frontend/compile.h"
#include "frontend/cmd_kernel.h"
#include "frontend/depfile.h"
#include "frontend/model.h"

#include <string.h>

bool
cps_is_source(const char *path)
{
    return cps_has_suffix(path, ".cps");
}

bool
cps_source_options(cps_cli *c, const char *path)
{
    static const struct {
        cps_opt opt;
        const char *name;
    } own[] = {{CPS_OPT_DIMS, "--dims"}, {CPS_OPT_DTYPE, "--dtype"}, {CPS_OPT_ATTR, "--attr"}, {CPS_OPT_WITH, "--with"},
               {CPS_OPT_LEAF, "--leaf"}, {CPS_OPT_PARAM, "--param"}, {CPS_OPT_KERNEL, "--kernel"}};
    for (unsigned i = 0; i < cps_countof(own); i++)
        if (!cps_is_source(path) && cps_cli_has(c, own[i].opt)) {
            cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'%s' says how an operator of a .cps file is called, and '%s' is none",
                      own[i].name, path);
            if (own[i].opt == CPS_OPT_DIMS)
                cps_help(c->diags, "sizes of a model are given one by one: --dim NAME=N");
            return false;
        }
    return true;
}

/* The names that the file stands for: operators that it declares, else those that its leaves are of. */
static unsigned
names_of(cps_registry *r, const char *path, const char *out[], unsigned most)
{
    unsigned n = 0;
    for (unsigned pass = 0; pass < 2 && !n; pass++) {
        for (unsigned i = 0; i < (pass ? r->leaves(r->self) : r->ops(r->self)); i++) {
            cps_opinfo op;
            cps_leafinfo leaf;
            const char *name = NULL;
            if (pass ? r->leaf(r->self, i, &leaf) && !strcmp(leaf.file, path) : r->op(r->self, i, &op) && !strcmp(op.file, path))
                name = pass ? leaf.op : op.name;
            bool fresh = name != NULL;
            for (unsigned k = 0; k < n && fresh; k++)
                fresh = strcmp(out[k], name) != 0;
            if (fresh && n < most)
                out[n++] = name;
        }
    }
    return n;
}

static const char *
choose(cps_cli *c, const char *path)
{
    enum { MOST = 64 };
    const char *name[MOST], *want = cps_cli_str(c, CPS_OPT_KERNEL, NULL);
    cps_registry *r = cps_cli_registry(c);
    if (!r)
        return NULL;
    unsigned n = names_of(r, path, name, MOST);
    for (unsigned i = 0; want && i < n; i++)
        if (!strcmp(name[i], want))
            return name[i];
    if (!want && n == 1)
        return name[0];
    if (want)
        cps_error(c->diags, CPS_E1106, CPS_NOSPAN, "'%s' has no operator '%s'", path, want);
    else
        cps_error(c->diags, CPS_E1105, CPS_NOSPAN,
                  n ? "'%s' has %u operators: --kernel NAME says which" : "'%s' has no operator and no leaf", path, n);
    for (unsigned i = 0; i < n; i++)
        cps_note(c->diags, CPS_NOSPAN, "there is '%s'", name[i]);
    return NULL;
}

/* `--dim A=1 --dim B=2` as `--dims A=1,B=2`. */
static void
join_dims(cps_cli *c)
{
    cps_buf b = {0};
    for (uint32_t i = 0; i < c->opt[CPS_OPT_DIM].n; i++)
        cps_buf_printf(&b, "%s%s", b.n ? "," : "", c->opt[CPS_OPT_DIM].data[i]);
    if (b.n && cps_cli_has(c, CPS_OPT_DIMS))
        cps_buf_printf(&b, ",%s", cps_cli_str(c, CPS_OPT_DIMS, ""));
    if (b.n)
        cps_vec_push(c->arena, &c->opt[CPS_OPT_DIMS], cps_arena_strndup(c->arena, b.data, b.n));
    cps_buf_fini(&b);
}

/* Text of one stage; a block's kernels stand one behind the other. */
static bool
text_of(cps_cli *c, const cps_instance *inst, const char *emit, cps_buf *out)
{
    cps_registry *r = cps_cli_registry(c);
    cps_module *m = cps_module_new(c->arena, inst->op);
    if (!strcmp(emit, "graph")) {
        if (!r->calls(r->self, m, inst, c->diags))
            return false;
        cps_ir_print(m, out);
        return true;
    }
    if (cps_is_block(c, inst->op)) {
        unsigned hits = 0, misses = 0;
        cps_package *p = cps_block_package(c, inst, &m, &hits, &misses);
        for (uint32_t i = 0; p && i < p->kernels.n; i++) {
            const cps_pkernel *k = &p->kernels.data[i];
            if (!strcmp(emit, "tile"))
                cps_buf_put(out, k->text, k->text_bytes);
            else
                cps_kbin_listing(k->kbin, out);
        }
        return p != NULL;
    }
    cps_candidate *cand;
    const char *why;
    unsigned n;
    cps_compiled bin;
    int k = cps_choose(c, inst, cps_cli_str(c, CPS_OPT_LEAF, NULL), &cand, &n, &why);
    if (k < 0 || !cps_cli_pin(c, inst, &cand[k]))
        return false;
    if (!strcmp(emit, "tile"))
        return cps_compile_tile(c, c->arena, inst, &cand[k], out);
    if (!cps_compile_kernel(c, c->arena, inst, &cand[k], &bin))
        return false;
    cps_kbin_listing(bin.kbin, out);
    return true;
}

static cps_exit
emit_text(cps_cli *c, const char *op, const char *emit, const char *to)
{
    bool ok = true;
    const cps_target *t = cps_cli_target(c, &ok);
    cps_instance inst;
    cps_buf b = {0};
    ok = ok && cps_cli_call(c, op, t, &inst) && text_of(c, &inst, emit, &b) &&
         cps_cli_write(c, to, b.data ? b.data : "", b.n) && cps_depfile_write(c, to);
    cps_buf_fini(&b);
    return ok ? CPS_OK : cps_cli_failed(c);
}

cps_exit
cps_source_compile(cps_cli *c, const char *path, const char *to)
{
    const char *emit = cps_cli_has(c, CPS_OPT_EMIT) ? cps_cli_word(c, CPS_OPT_EMIT, "", "graph tile asm neff bir") : NULL;
    if (cps_cli_has(c, CPS_OPT_EMIT) && !emit)
        return CPS_USAGE;
    bool given = false;
    for (uint32_t i = 0; i < c->opt[CPS_OPT_KPATH].n; i++)
        given = given || !strcmp(c->opt[CPS_OPT_KPATH].data[i], path);
    uint32_t before = c->opt[CPS_OPT_KPATH].n;
    if (!given)
        cps_vec_push(c->arena, &c->opt[CPS_OPT_KPATH], path);
    join_dims(c);
    const char *op = choose(c, path);
    if (!given)
        c->opt[CPS_OPT_KPATH].n = before; // it is the input, named once
    if (!op)
        return cps_cli_failed(c);
    bool text = emit && strcmp(emit, "neff") && strcmp(emit, "bir");
    return text ? emit_text(c, op, emit, to ? to : "-") : cps_kernel_compile(c, op, to);
}
