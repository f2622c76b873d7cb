/* See depfile.h. One rule, as compilers write it: the target, a colon, a file a line. */
#include "frontend/depfile.h"

#include "runtime/base/file.h"

#include <string.h>

void
cps_cli_depends(cps_cli *c, const char *path)
{
    for (uint32_t i = 0; i < c->deps.n; i++)
        if (!strcmp(c->deps.data[i], path))
            return;
    cps_vec_push(c->arena, &c->deps, path);
}

void
cps_cli_depends_beside(cps_cli *c, const char *path, const char *name)
{
    size_t n = (size_t)(cps_path_base(path) - path);
    cps_cli_depends(c, cps_arena_printf(c->arena, "%.*s%s", (int)n, path, name));
}

/* A line ends a rule, quoted or not, and a backslash at the end of a name would quote what follows. */
static bool
can_name(cps_cli *c, const char *s)
{
    size_t n = strlen(s);
    const char *what = strpbrk(s, "\r\n") ? "has a line break" : n && s[n - 1] == '\\' ? "ends in a backslash" : NULL;
    if (!what)
        return true;
    cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'-MD' writes names of files as make reads them, and '%s' %s", s, what);
    cps_help(c->diags, "rename the file");
    return false;
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
        return can_name(c, out);
    cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'-MD' writes what a file depends on, and standard output is none");
    cps_help(c->diags, "say where to write: -o PATH");
    return false;
}

/* As GNU make reads it: blanks, '#' and ':' after a backslash, backslashes right before them twice
 * (elsewhere they are themselves), '$' twice. */
static void
put_name(cps_buf *b, const char *s)
{
    unsigned slashes = 0;
    for (; *s; s++) {
        if (strchr(" \t#:", *s))
            for (unsigned i = 0; i <= slashes; i++)
                cps_buf_putc(b, '\\');
        if (*s == '$')
            cps_buf_putc(b, '$');
        cps_buf_putc(b, *s);
        slashes = *s == '\\' ? slashes + 1 : 0;
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
    const char *path = cps_cli_str(c, CPS_OPT_MF, NULL);
    if (!path)
        path = cps_arena_printf(c->arena, "%s.d", out);
    bool ok = can_name(c, out);
    for (uint32_t i = 0; i < c->deps.n; i++)
        ok = ok && can_name(c, c->deps.data[i]);
    if (!ok)
        return false;
    cps_buf b = {0};
    put_name(&b, out);
    cps_buf_putc(&b, ':');
    for (uint32_t i = 0; i < c->deps.n; i++)
        put_dep(&b, c->deps.data[i]);
    cps_buf_putc(&b, '\n');
    ok = cps_cli_write(c, path, b.data, b.n);
    cps_buf_fini(&b);
    return ok;
}
