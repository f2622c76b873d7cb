/* Making a kernel value and finding things in it. Everything a kernel owns lives in the arena
 * it was made in; the value is plain data, so that back end, cache, package and simulator share
 * it. */
#include "runtime/pkg/kbin.h"
#include "runtime/pkg/kbin_priv.h"

const char *const cps_verdict_names[CPS_VERDICTS] = {"open", "proved", "refuted"};

const char *const cps_pkg_kinds[CPS_VARKINDS] = {
    [CPS_VAR_SB] = "state-buffer", [CPS_VAR_INPUT] = "input", [CPS_VAR_OUTPUT] = "output",
    [CPS_VAR_INOUT] = "inout",     [CPS_VAR_TMP] = "tmp-buf", [CPS_VAR_DATA] = "file",
    [CPS_VAR_SHARED] = "shared-buf",
};

const char *const cps_pkg_ops[CPS_DESCOPS] = {
    [CPS_DESC_COPY] = "copy",
    [CPS_DESC_CAST] = "cast",
    [CPS_DESC_ADD] = "add",
    [CPS_DESC_TRANSPOSE] = "transpose",
};

cps_kbin *
cps_kbin_new(cps_arena *a, const char *name, const char *target, cps_gen gen)
{
    cps_kbin *k = cps_new(a, cps_kbin);
    k->arena = a;
    k->name = cps_arena_strdup(a, name);
    k->target = cps_arena_strdup(a, target);
    k->gen = gen;
    k->cores = 1;
    cps_kvar *sb = cps_vec_add(a, &k->vars);
    sb->name = "sb";
    sb->kind = CPS_VAR_SB;
    sb->dtype = CPS_DT_U8;
    sb->rank = 1;
    sb->dim[0] = sb->bytes = CPS_PKG_APERTURE;
    return k;
}

uint32_t
cps_kbin_var(const cps_kbin *k, const char *name)
{
    for (uint32_t i = 0; i < k->vars.n; i++) {
        if (strcmp(k->vars.data[i].name, name) == 0)
            return i;
    }
    return UINT32_MAX;
}

cps_field
cps_pkg_field(const cps_bundle *b, cps_gen g, const char *name)
{
    cps_insn i = cps_isa_find(b->b[0], g);
    if (i == CPS_INSN_NONE)
        return CPS_F_NONE;
    const cps_format_row *f = &cps_formats[cps_insns[i].format];
    for (unsigned k = f[0].first; k < f[1].first; k++) {
        if (strcmp(cps_fields[k].name, name) == 0)
            return (cps_field)k;
    }
    return CPS_F_NONE;
}
