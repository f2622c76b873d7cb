/* See depfile.h. One rule, as compilers write it: the target, a colon, a file a line. */
#include "frontend/depfile.h"

#include "runtime/base/file.h"

#include <string.h>

void
cps_cli_depends(cps_cli *c, const char *path, const char *name)
{
    size_t n = (size_t)(cps_path_base(path) - path);
    const char *dep = cps_arena_printf(c->arena, "%.*s%s", (int)n, path, name);
    for (uint32_t i = 0; i < c->deps.n; i++)
        if (!strcmp(c->deps.data[i], dep))
            return;
    cps_vec_push(c->arena, &c->deps, dep);
}

bool
cps_depfile_allowed(cps_cli *c, const char *out)
{
    if (!cps_cli_has(c, CPS_OPT_MD) && !cps_cli_has(c, CPS_OPT_MF))
        return true;
    for (uint32_t i = 0; i < c->args.n; i++)
        if (!strcmp(c->args.data[i], "-")) {
            cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'-MD' writes names of files, and standard input has none");
            return false;
        }
    if (out && strcmp(out, "-"))
        return true;
    cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'-MD' writes what a file depends on, and standard output is none");
    cps_help(c->diags, "say where to write: -o PATH");
    return false;
}

/* As make reads it: a blank and '#' after a backslash, '$' twice. */
static void
put_name(cps_buf *b, const char *s)
{
    for (; *s; s++) {
        if (*s == ' ' || *s == '\t' || *s == '#')
            cps_buf_putc(b, '\\');
        if (*s == '$')
            cps_buf_putc(b, '$');
        cps_buf_putc(b, *s);
    }
}

static void
put_dep(cps_buf *b, const char *s)
{
    cps_buf_puts(b, " \\\n  ");
    put_name(b, s);
}

bool
cps_depfile_write(cps_cli *c, const char *out)
{
    if (!cps_cli_has(c, CPS_OPT_MD) && !cps_cli_has(c, CPS_OPT_MF))
        return true;
    const char *path = cps_cli_str(c, CPS_OPT_MF, NULL), *target = cps_cli_str(c, CPS_OPT_TARGET, NULL);
    if (!path)
        path = cps_arena_printf(c->arena, "%s.d", out);
    cps_buf b = {0};
    put_name(&b, out);
    cps_buf_putc(&b, ':');
    for (uint32_t i = 0; i < c->args.n; i++)
        if (cps_path_exists(c->args.data[i])) // not the name of an operator
            put_dep(&b, c->args.data[i]);
    for (uint32_t i = 0; i < c->deps.n; i++)
        put_dep(&b, c->deps.data[i]);
    for (uint32_t i = 0; i < c->opt[CPS_OPT_KPATH].n; i++)
        put_dep(&b, c->opt[CPS_OPT_KPATH].data[i]);
    if (cps_cli_has(c, CPS_OPT_TUNED))
        put_dep(&b, cps_cli_str(c, CPS_OPT_TUNED, ""));
    if (target && strcmp(target, "host") && !cps_target_find(target))
        put_dep(&b, target);
    cps_buf_putc(&b, '\n');
    bool ok = cps_cli_write(c, path, b.data, b.n);
    cps_buf_fini(&b);
    return ok;
}
