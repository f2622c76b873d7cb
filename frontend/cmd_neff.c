/* copse neff: containers. */
#include "frontend/neff.h"

#include "runtime/base/file.h"
#include "runtime/pkg/neff_graph.h"
#include "runtime/pkg/neff_pack.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool
is_package(cps_cli *c, const char *dir)
{
    return cps_path_exists(cps_path_join(c->arena, dir, "manifest.json"));
}

static bool
is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A container from a file or from an unpacked folder; NULL after diagnostics. */
static cps_neff *
open_neff(cps_cli *c, const char *path)
{
    bool ok = true;
    int64_t max = cps_cli_int(c, CPS_OPT_MAXBYTES, 0, 1, INT64_MAX, &ok);
    if (!ok)
        return NULL;
    if (is_folder(path)) {
        if (is_package(c, path)) {
            cps_error(c->diags, CPS_E8401, CPS_NOSPAN,
                      "'%s' is a package of copse and no unpacked container", path);
            cps_help(c->diags, "`copse neff pack %s -o F.neff` makes a container of it", path);
            return NULL;
        }
        return cps_neff_read_dir(c->arena, path, c->diags);
    }
    cps_file f;
    if (!cps_file_open(path, false, &f)) {
        cps_error(c->diags, CPS_E1001, CPS_NOSPAN, "cannot read '%s': %s", path,
                  strerror(errno));
        return NULL;
    }
    cps_neff *n = cps_neff_read(c->arena, f.data, f.n, (uint64_t)max, c->diags);
    if (n && !n->hash_ok) {
        cps_error(c->diags, CPS_W8407, CPS_NOSPAN,
                  "'%s': the hash in the header is not that of the archive", path);
        cps_note(c->diags, CPS_NOSPAN,
                 "the runtime looks at it only with NEURON_RT_VALIDATE_HASH=true");
    }
    cps_file_close(&f);
    return n;
}

static cps_exit
inspect(cps_cli *c, const char *path)
{
    bool ok = true;
    const cps_target *t = cps_cli_target(c, &ok);
    cps_neff *f = ok ? open_neff(c, path) : NULL;
    if (!f)
        return cps_cli_failed(c);
    cps_neff_info *i = cps_neff_describe(c->arena, f, c->diags);
    cps_buf b = {0};
    cps_gen g = t ? t->gen : CPS_V3;
    if (cps_cli_has(c, CPS_OPT_JSON))
        cps_neff_print_json(i, g, &b);
    else
        cps_neff_print_text(i, g, &b);
    ok = cps_cli_write(c, cps_cli_str(c, CPS_OPT_OUTPUT, "-"), b.data, b.n);
    cps_buf_fini(&b);
    return ok && !cps_diags_errors(c->diags) ? CPS_OK : cps_cli_failed(c);
}

/* PATH without its folders, with `ending` cut off when it has it. */
static const char *
base_name(cps_cli *c, const char *path, const char *ending)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    const char *base = cps_path_base(cps_arena_strndup(c->arena, path, n));
    n = strlen(base);
    size_t e = strlen(ending);
    return n > e && cps_has_suffix(base, ending) ? cps_arena_strndup(c->arena, base, n - e)
                                                 : base;
}

static cps_exit
unpack(cps_cli *c, const char *path)
{
    if (is_folder(path)) {
        cps_error(c->diags, CPS_E1105, CPS_NOSPAN,
                  "'neff unpack' takes a file, and '%s' is a folder", path);
        return CPS_USAGE;
    }
    const char *dir = cps_cli_str(c, CPS_OPT_OUTPUT, NULL);
    if (!dir)
        dir = base_name(c, path, ".neff");
    if (!*dir || !strcmp(dir, "-") || !strcmp(dir, path)) {
        cps_error(c->diags, CPS_E1104, CPS_NOSPAN,
                  "'neff unpack' needs a folder to write: -o DIR");
        return CPS_USAGE;
    }
    cps_neff *f = open_neff(c, path);
    if (!f || !cps_neff_unpack(f, dir, c->diags))
        return cps_cli_failed(c);
    fprintf(stderr, "%s: %u members\n", dir, f->members.n);
    return CPS_OK;
}

/* Writes the container; the line that says so goes to standard error. */
static bool
write_neff(cps_cli *c, const cps_neff *f, const char *to)
{
    cps_buf b = {0};
    bool ok = cps_neff_write(f, &b, c->diags) && cps_cli_write(c, to, b.data, b.n);
    if (ok)
        fprintf(stderr, "%s: %u members, %zu bytes\n", to, f->members.n, b.n);
    cps_buf_fini(&b);
    return ok;
}

bool
cps_neff_from_package(cps_cli *c, const char *dir, const char *kernel, const char *to)
{
    cps_package *p = cps_package_read(c->arena, dir, cps_cli_has(c, CPS_OPT_CHANGED), c->diags);
    cps_neff *f = p ? cps_neff_pack(c->arena, p, kernel, c->diags) : NULL;
    bool ok = f && write_neff(c, f, to);
    cps_package_close(p);
    return ok;
}

bool
cps_neff_emit(cps_cli *c, const char *dir)
{
    return cps_neff_from_package(c, dir, NULL, cps_path_join(c->arena, dir, "model.neff"));
}

cps_package *
cps_neff_open_package(cps_cli *c, const char *path)
{
    cps_neff *f = open_neff(c, path);
    return f ? cps_neff_package(c->arena, f, c->diags) : NULL;
}

static cps_exit
pack(cps_cli *c, const char *path)
{
    if (!is_folder(path)) {
        cps_error(c->diags, CPS_E1105, CPS_NOSPAN,
                  "'neff pack' takes a folder, and '%s' is none", path);
        return CPS_USAGE;
    }
    const char *to = cps_cli_str(c, CPS_OPT_OUTPUT, NULL),
               *kernel = cps_cli_str(c, CPS_OPT_KERNEL, NULL);
    if (!to)
        to = cps_arena_printf(c->arena, "%s.neff", base_name(c, path, ""));
    bool ok;
    if (is_package(c, path)) {
        ok = cps_neff_from_package(c, path, kernel, to);
    } else {
        if (kernel) {
            cps_error(c->diags, CPS_E1104, CPS_NOSPAN,
                      "'--kernel' picks from a package, and '%s' is none", path);
            return CPS_USAGE;
        }
        cps_neff *f = open_neff(c, path);
        if (f && !f->has_head)
            cps_neff_new_head(f, base_name(c, path, ""), 1, 0);
        ok = f && write_neff(c, f, to);
    }
    return ok ? CPS_OK : cps_cli_failed(c);
}

cps_exit
cps_cmd_neff(cps_cli *c)
{
    static const struct {
        const char *name;
        cps_exit (*run)(cps_cli *c, const char *path);
    } verbs[] = {{"inspect", inspect}, {"unpack", unpack}, {"pack", pack}};
    const char *verb = c->args.n ? c->args.data[0] : "";
    for (unsigned i = 0; i < cps_countof(verbs); i++) {
        if (strcmp(verbs[i].name, verb))
            continue;
        if (c->args.n == 2)
            return verbs[i].run(c, c->args.data[1]);
        cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "'neff %s' takes one path", verb);
        return CPS_USAGE;
    }
    cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "'neff' takes one of: inspect, unpack, pack");
    return CPS_USAGE;
}
