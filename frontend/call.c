/* A call of an operator out of the command line: --dims, --dtype, --with, --attr and the cores.
 */
#include "frontend/call.h"

#include "kernels/tuned.h"

#include <string.h>

/* "a=1,b=2" or "a,b" cut at commas into names and values. */
static bool
pairs(cps_cli *c, const char *s, const char **name, const char **value, int *n)
{
    while (s && *s) {
        size_t len = strcspn(s, ",");
        const char *eq = memchr(s, '=', len);
        if (*n == 64 || !len || (value && !eq)) {
            cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'%.*s' is not of the form %s", (int)len,
                      s, value ? "NAME=VALUE" : "NAME");
            return false;
        }
        name[*n] = cps_arena_strndup(c->arena, s, eq ? (size_t)(eq - s) : len);
        for (int k = 0; k < *n; k++)
            if (!strcmp(name[k], name[*n])) {
                cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'%s' is given twice", name[k]);
                return false;
            }
        if (value)
            value[*n] = cps_arena_strndup(c->arena, eq + 1, len - (size_t)(eq + 1 - s));
        (*n)++;
        s += len + (s[len] == ',');
    }
    return true;
}

bool
cps_cli_call(cps_cli *c, const char *op, const cps_target *t, cps_instance *out)
{
    cps_registry *r = cps_cli_registry(c);
    if (!r)
        return false;
    cps_opinfo info;
    if (!r->find_op(r->self, op, &info)) {
        cps_error(c->diags, CPS_E1106, CPS_NOSPAN, "there is no operator '%s'", op);
        cps_help(c->diags, "`copse kernel list` shows all");
        return false;
    }
    const char *dim[64], *value[64], *with[64], *akey[64], *atext[64];
    int64_t size[64];
    int ndim = 0, nwith = 0, nattr = 0;
    if (!pairs(c, cps_cli_str(c, CPS_OPT_DIMS, ""), dim, value, &ndim) ||
        !pairs(c, cps_cli_str(c, CPS_OPT_WITH, ""), with, NULL, &nwith))
        return false;
    for (int k = 0; k < ndim; k++)
        if (!cps_parse_int(value[k], strlen(value[k]), &size[k]) || size[k] < 1 ||
            size[k] > (int64_t)1 << 40) {
            cps_error(c->diags, CPS_E1104, CPS_NOSPAN,
                      "'--dims %s=%s': a dimension is a positive integer", dim[k], value[k]);
            return false;
        }
    for (uint32_t k = 0; k < c->opt[CPS_OPT_ATTR].n; k++)
        if (!pairs(c, c->opt[CPS_OPT_ATTR].data[k], akey, atext, &nattr))
            return false;
    const char *dt = cps_cli_str(c, CPS_OPT_DTYPE, "bf16");
    cps_dtype dtype = cps_dtype_parse(dt, strlen(dt));
    if (dtype == CPS_DT_NONE) {
        cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'--dtype %s' is no dtype", dt);
        return false;
    }
    bool ok = true;
    int cores = cps_cli_cores(c, t, &ok);
    return ok && r->make(r->self, c->arena, op, ndim, dim, size, dtype, nwith, with, nattr,
                         akey, atext, t, cores, out, c->diags);
}

bool
cps_cli_pin(cps_cli *c, const cps_instance *i, cps_candidate *k)
{
    cps_registry *r = cps_cli_registry(c);
    cps_buf said = {0};
    cps_param *p;
    uint32_t np;
    cps_attr *fixed;
    uint16_t nfixed;
    const char *why = NULL;
    if (!c->opt[CPS_OPT_PARAM].n)
        return true;
    for (uint32_t q = 0; q < c->opt[CPS_OPT_PARAM].n; q++)
        cps_buf_printf(&said, "%s%s", q ? "," : "", c->opt[CPS_OPT_PARAM].data[q]);
    const char *config = cps_arena_strndup(c->arena, said.n ? said.data : "", said.n);
    cps_buf_fini(&said);
    if (!cps_cli_has(c, CPS_OPT_LEAF)) {
        cps_error(c->diags, CPS_E1104, CPS_NOSPAN,
                  "'--param %s' is of a leaf: name it with --leaf", config);
        return false;
    }
    if (!r->params(r->self, c->arena, i, k->leaf, &p, &np))
        return false;
    if (!cps_config_parse(c->arena, config, p, np, &fixed, &nfixed, &why)) {
        cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'--param %s': %s", config, why);
        for (uint32_t q = 0; q < np; q++) {
            cps_buf b = {0};
            for (uint32_t v = 0; v < p[q].n; v++) {
                cps_buf_puts(&b, v ? ", " : "");
                cps_attr_print(&p[q].value[v], &b);
            }
            cps_note(c->diags, CPS_NOSPAN, "of %s", b.data);
            cps_buf_fini(&b);
        }
        return false;
    }
    if (r->candidate(r->self, c->arena, i, k->leaf, fixed, nfixed, k, c->diags) && k->ok)
        return true;
    cps_error(c->diags, CPS_E2401, CPS_NOSPAN, "leaf '%s' does not take --param %s: %s",
              k->leaf, config, k->nreasons ? k->reason[0] : "its text has errors");
    return false;
}
