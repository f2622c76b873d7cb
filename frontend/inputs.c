/* Seeded and given inputs; see LANGUAGE.md, "Seeded inputs", for the definition. */
#include "frontend/inputs.h"

#include "runtime/base/file.h"
#include "runtime/base/npy.h"
#include "runtime/base/rng.h"

#include <errno.h>
#include <string.h>

static bool
passes_indices(cps_op op)
{
    return op == CPS_OP_CAST || op == CPS_OP_RESHAPE || op == CPS_OP_TRANSPOSE ||
           op == CPS_OP_BROADCAST || op == CPS_OP_SLICE;
}

int64_t
cps_index_bound(const cps_func *f, cps_val v)
{
    int64_t best = 0;
    for (uint32_t i = 0; i < f->nodes.n; i++) {
        const cps_node *n = &f->nodes.data[i];
        for (unsigned k = 0; k < n->nin; k++) {
            if (n->in[k] != v)
                continue;
            int64_t b = 0;
            if ((n->op == CPS_OP_GATHER || n->op == CPS_OP_GATHER_ELEMS) && k == 1) {
                const cps_type *t = &f->vals.data[n->in[0]].type;
                b = t->dim[cps_attr_int(n->attr, n->nattr, "axis", 0)];
            } else if (passes_indices((cps_op)n->op)) {
                b = cps_index_bound(f, n->out[0]);
                b = b == 2 ? 0 : b;
            }
            if (b && (!best || b < best))
                best = b;
        }
    }
    return best ? best : 2;
}

void
cps_io_random(cps_arena *a, cps_io *io, uint64_t seed, uint64_t index, int64_t bound)
{
    int64_t n = cps_type_count(&io->type);
    unsigned size = cps_dtype_bytes(io->type.dtype);
    io->data = cps_arena_raw(a, (size_t)n * size + 1);
    cps_rng r;
    cps_rng_init(&r, seed, index);
    uint8_t *p = io->data;
    bool flt = cps_dtype_is_float(io->type.dtype);
    for (int64_t i = 0; i < n; i++, p += size) {
        if (flt)
            cps_from_f64(io->type.dtype, p, cps_rng_normal(&r));
        else
            cps_from_i64(io->type.dtype, p, (int64_t)cps_rng_below(&r, (uint64_t)bound));
    }
}

static bool
from_file(cps_cli *c, cps_io *io, const char *path)
{
    cps_file f;
    if (!cps_file_open(path, false, &f)) {
        cps_error(c->diags, CPS_E1001, CPS_NOSPAN, "cannot read '%s': %s", path, strerror(errno));
        return false;
    }
    cps_npy npy;
    const char *why = NULL;
    bool ok = cps_npy_parse(f.data, f.n, &npy, &why);
    if (!ok) {
        cps_error(c->diags, CPS_E1005, CPS_NOSPAN, "'%s': %s", path, why);
    } else {
        ok = npy.rank == io->type.rank;
        for (int k = 0; ok && k < npy.rank; k++)
            ok = npy.dim[k] == io->type.dim[k];
        cps_buf want = {0};
        cps_type_print(&io->type, &want);
        if (!ok) {
            cps_buf got = {0};
            for (int k = 0; k < npy.rank; k++)
                cps_buf_printf(&got, "%s%lld", k ? "," : "", (long long)npy.dim[k]);
            cps_error(c->diags, CPS_E1006, CPS_NOSPAN, "'%s' has shape [%s], input '%s' is %s", path,
                      got.data ? got.data : "", io->name, want.data);
            cps_buf_fini(&got);
        } else {
            io->data = cps_arena_raw(c->arena, npy.count * cps_dtype_bytes(io->type.dtype) + 1);
            size_t at = 0;
            ok = cps_npy_convert(&npy, io->type.dtype, io->data, &at, &why);
            if (!ok)
                cps_error(c->diags, CPS_E1006, CPS_NOSPAN,
                          "'%s' does not convert to %s: element %zu %s", path, want.data, at, why);
        }
        cps_buf_fini(&want);
    }
    cps_file_close(&f);
    return ok;
}

bool
cps_io_inputs(cps_cli *c, cps_io *io, unsigned n, const int64_t *bound)
{
    bool ok = true;
    uint64_t seed = (uint64_t)cps_cli_int(c, CPS_OPT_SEED, 0, 0, INT64_MAX, &ok);
    for (uint32_t k = 0; k < c->opt[CPS_OPT_INPUT].n; k++) {
        const char *s = c->opt[CPS_OPT_INPUT].data[k];
        const char *eq = strrchr(s, '=');
        unsigned i = n;
        if (eq)
            for (i = 0; i < n; i++)
                if (strlen(io[i].name) == (size_t)(eq - s) && !strncmp(io[i].name, s, (size_t)(eq - s)))
                    break;
        if (i < n) {
            ok = from_file(c, &io[i], eq + 1) && ok;
            continue;
        }
        cps_error(c->diags, CPS_E1007, CPS_NOSPAN, "'--input %s' names no input", s);
        for (i = 0; i < n; i++) {
            cps_buf t = {0};
            cps_type_print(&io[i].type, &t);
            cps_note(c->diags, CPS_NOSPAN, "input '%s' is %s", io[i].name, t.data);
            cps_buf_fini(&t);
        }
        ok = false;
    }
    for (unsigned i = 0; ok && i < n; i++)
        if (!io[i].data)
            cps_io_random(c->arena, &io[i], seed, i, bound ? bound[i] : 2);
    return ok;
}

bool
cps_io_save(cps_cli *c, const char *dir, const char *prefix, const cps_io *io)
{
    if (!cps_mkdirs(dir)) {
        cps_error(c->diags, CPS_E1002, CPS_NOSPAN, "cannot make '%s': %s", dir, strerror(errno));
        return false;
    }
    const char *file = cps_arena_printf(c->arena, "%s%s.npy", prefix, cps_path_quote(c->arena, io->name));
    cps_buf b = {0};
    if (io->exact)
        cps_npy_format_f64(&b, io->type.rank, io->type.dim, io->exact);
    else
        cps_npy_format(&b, io->type.dtype, io->type.rank, io->type.dim, io->data);
    bool ok = cps_cli_write(c, cps_path_join(c->arena, dir, file), b.data, b.n);
    cps_buf_fini(&b);
    return ok;
}
