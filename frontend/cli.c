/* Parsing of the command line out of the rows of opt.def, and the services commands share. */
#include "frontend/cli.h"

#include "frontend/depfile.h"
#include "frontend/dsl/registry.h"
#include "kernels/tuned.h"
#include "runtime/base/file.h"
#include "runtime/sim/sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct opt_row {
    const char *name, *arg;
    bool many;
    const char *commands, *help;
} opt_row;

static const opt_row opts[CPS_OPTS] = {
#define CPS_OPT(id, name, arg, many, commands, help) {name, arg, many, commands, help},
#include "frontend/opt.def"
};

typedef struct cmd_row {
    const char *name, *form, *help;
} cmd_row;

static const cmd_row cmds[] = {
#define CPS_CMD(id, name, form, help) {name, form, help},
#include "frontend/cmd.def"
};

static bool
word_in(const char *words, const char *w)
{
    size_t n = strlen(w);
    for (const char *p = words; (p = strstr(p, w)); p += n)
        if ((p == words || p[-1] == ' ') && (p[n] == 0 || p[n] == ' '))
            return true;
    return false;
}

static bool
takes(const opt_row *o, const char *command)
{
    return !strcmp(o->commands, "*") || word_in(o->commands, command);
}

const char *
cps_cli_near(const char *name)
{
    const char *best = NULL;
    int dist = 3;
    for (unsigned i = 0; i < cps_countof(cmds); i++) {
        int k = cps_edit_distance(name, cmds[i].name);
        if (k < dist) {
            dist = k;
            best = cmds[i].name;
        }
    }
    return best;
}

void
cps_cli_help(const char *command, cps_buf *out)
{
    if (!command) {
        cps_buf_puts(out, "copse: ahead-of-time kernel compiler for AWS NeuronCore\n\n"
                          "usage: copse COMMAND [ARGUMENT...] [OPTION...]\n\ncommands:\n");
        for (unsigned i = 0; i < cps_countof(cmds); i++)
            cps_buf_printf(out, "  %-16s%s\n", cmds[i].name, cmds[i].help);
        cps_buf_puts(out, "\n`copse COMMAND --help` shows a command's options, `copse help CODE` the "
                          "page of a diagnostic.\n"
                          "Exit codes: 0 fine, 1 bad input, 2 usage, 3 results differ, 4 does not fit, "
                          "5 declined,\n70 a bug of ours, 74 input or output failed.\n");
        return;
    }
    for (unsigned i = 0; i < cps_countof(cmds); i++)
        if (!strcmp(cmds[i].name, command))
            cps_buf_printf(out, "usage: copse %s %s [OPTION...]\n%s\n\noptions:\n", command,
                           cmds[i].form, cmds[i].help);
    for (unsigned i = 0; i < CPS_OPTS; i++) {
        if (!takes(&opts[i], command))
            continue;
        char head[64];
        // Short options take their argument as the next word; long ones after '='.
        bool sep = opts[i].name[1] != '-';
        snprintf(head, sizeof head, "%s%s%s", opts[i].name,
                 *opts[i].arg ? (sep ? " " : "=") : "", opts[i].arg);
        cps_buf_printf(out, "  %-28s%s%s\n", head, opts[i].help,
                       opts[i].many ? " (may be repeated)" : "");
    }
}

/* The row that `word` spells; *value is set for `--name=value`, `-ovalue` and `-O2`. */
static int
match(const char *word, const char *command, const char **value)
{
    *value = NULL;
    for (int i = 0; i < CPS_OPTS; i++) {
        size_t n = strlen(opts[i].name);
        if (!takes(&opts[i], command) || strncmp(word, opts[i].name, n) != 0)
            continue;
        if (word[n] == 0)
            return i;
        bool is_long = word[1] == '-';
        if (is_long && word[n] == '=') {
            *value = word + n + 1;
            return i;
        }
        if (!is_long && *opts[i].arg) {
            *value = word + n;
            return i;
        }
    }
    return -1;
}

bool
cps_cli_parse(cps_cli *c, int argc, char **argv)
{
    bool ok = true, only_args = false;
    for (int k = 0; k < argc; k++) {
        const char *w = argv[k], *value;
        if (only_args || w[0] != '-' || w[1] == 0) {
            cps_vec_push(c->arena, &c->args, w);
            continue;
        }
        if (!strcmp(w, "--")) {
            only_args = true;
            continue;
        }
        if (!strcmp(w, "-h"))
            w = "--help";
        int o = match(w, c->command, &value);
        if (o < 0) {
            cps_error(c->diags, CPS_E1103, CPS_NOSPAN, "'%s' has no option '%s'", c->command, w);
            int dist = 4;
            const char *near = NULL;
            for (int i = 0; i < CPS_OPTS; i++) {
                int e = takes(&opts[i], c->command) ? cps_edit_distance(w, opts[i].name) : 4;
                if (e < dist) {
                    dist = e;
                    near = opts[i].name;
                }
            }
            if (near)
                cps_help(c->diags, "did you mean '%s'?", near);
            else
                cps_help(c->diags, "`copse %s --help` lists its options", c->command);
            ok = false;
            continue;
        }
        if (*opts[o].arg && !value) {
            if (k + 1 >= argc) {
                cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'%s' needs a value %s", w, opts[o].arg);
                ok = false;
                continue;
            }
            value = argv[++k];
        } else if (!*opts[o].arg && value) {
            cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'%s' takes no value", opts[o].name);
            ok = false;
            continue;
        }
        cps_vec_push(c->arena, &c->opt[o], value ? value : "");
    }
    const char *fmt = cps_cli_word(c, CPS_OPT_MSGFMT, "text", "text json");
    const char *col = cps_cli_word(c, CPS_OPT_COLOR, "auto", "auto always never");
    bool numbers = true;
    cps_cli_int(c, CPS_OPT_OLEVEL, 2, 0, 3, &numbers);
    cps_cli_int(c, CPS_OPT_THREADS, 1, 1, 256, &numbers);
    if (cps_cli_has(c, CPS_OPT_MODELTYPE) &&
        !cps_cli_word(c, CPS_OPT_MODELTYPE, "", "transformer generic unet-inference"))
        numbers = false;
    const char *no = getenv("NO_COLOR");
    if (fmt)
        c->json_messages = !strcmp(fmt, "json");
    if (col)
        c->color = !strcmp(col, "always") ||
                   (!strcmp(col, "auto") && !(no && *no) && isatty(STDERR_FILENO));
    return ok && fmt && col && numbers;
}

const char *
cps_cli_str(const cps_cli *c, cps_opt o, const char *dflt)
{
    return c->opt[o].n ? c->opt[o].data[c->opt[o].n - 1] : dflt;
}

int64_t
cps_cli_int(cps_cli *c, cps_opt o, int64_t dflt, int64_t lo, int64_t hi, bool *ok)
{
    const char *s = cps_cli_str(c, o, NULL);
    int64_t v = dflt;
    if (s && (!cps_parse_int(s, strlen(s), &v) || v < lo || v > hi)) {
        cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'%s %s' is not an integer in %lld..%lld",
                  opts[o].name, s, (long long)lo, (long long)hi);
        *ok = false;
        return dflt;
    }
    return v;
}

int
cps_cli_cores(cps_cli *c, const cps_target *t, bool *ok)
{
    int n = (int)cps_cli_int(c, CPS_OPT_LNC, 1, 1, 2, ok);
    if (n == 1 || (t && t->gen >= CPS_V3))
        return n;
    cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'%s 2': %s has no logical cores of two",
              opts[CPS_OPT_LNC].name, t ? t->name : "the host");
    *ok = false;
    return 1;
}

const char *
cps_cli_word(cps_cli *c, cps_opt o, const char *dflt, const char *words)
{
    const char *s = cps_cli_str(c, o, dflt);
    if (*s && word_in(words, s))
        return s;
    cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'%s %s': the value is one of: %s", opts[o].name, s,
              words);
    return NULL;
}

const cps_target *
cps_cli_target(cps_cli *c, bool *ok)
{
    const char *name = cps_cli_str(c, CPS_OPT_TARGET, "trn2");
    if (!strcmp(name, "host"))
        return NULL;
    const cps_target *t = cps_target_load(name, c->arena, c->diags);
    if (!t)
        *ok = false;
    else if (!cps_target_find(name)) // it was a file
        cps_cli_depends(c, name);
    return t;
}

/* Choices of --tuned for the registry. */
static bool
read_tuned(cps_cli *c)
{
    const char *path = cps_cli_str(c, CPS_OPT_TUNED, NULL);
    cps_file f;
    if (!path)
        return true;
    if (!cps_file_open(path, true, &f)) {
        cps_error(c->diags, CPS_E1001, CPS_NOSPAN, "cannot read '%s': %s", path, strerror(errno));
        return false;
    }
    cps_cli_depends(c, path);
    c->registry->tuned = cps_tuned_parse(c->arena, path, (const char *)f.data, f.n, c->diags);
    cps_file_close(&f);
    return c->registry->tuned != NULL;
}

cps_registry *
cps_cli_registry(cps_cli *c)
{
    if (!c->registry && !c->registry_failed) {
        c->registry = cps_dsl_registry_create(c->arena, c->diags);
        for (uint32_t i = 0; c->registry && i < c->opt[CPS_OPT_KPATH].n; i++) {
            const char *path = c->opt[CPS_OPT_KPATH].data[i];
            cps_file f;
            if (!cps_file_open(path, true, &f)) {
                cps_error(c->diags, CPS_E1001, CPS_NOSPAN, "cannot read '%s': %s", path,
                          strerror(errno));
                cps_dsl_registry_destroy(c->registry);
                return c->registry = NULL;
            }
            cps_cli_depends(c, path);
            const char *text = cps_arena_strndup(c->arena, (const char *)f.data, f.n);
            size_t n = f.n;
            cps_file_close(&f);
            if (!cps_dsl_registry_add(c->registry, path, text, n, c->diags)) {
                cps_cli_flush(c); // places in messages belong to the registry's sources
                c->registry_failed = true;
                cps_dsl_registry_destroy(c->registry);
                return c->registry = NULL;
            }
        }
        if (c->registry && !read_tuned(c)) {
            cps_dsl_registry_destroy(c->registry);
            return c->registry = NULL;
        }
    }
    return c->registry;
}

cps_cache *
cps_cli_cache(cps_cli *c)
{
    if (!c->cache)
        c->cache = cps_cli_has(c, CPS_OPT_NOCACHE)
                       ? cps_cache_none(c->arena)
                       : cps_cache_open(c->arena, cps_cli_str(c, CPS_OPT_CACHE, NULL), c->diags);
    return c->cache;
}

unsigned
cps_cli_checks(cps_cli *c, bool *ok)
{
    const char *s = cps_cli_str(c, CPS_OPT_CHECK, "races,uninit,bounds");
    unsigned mask = 0;
    if (!strcmp(s, "none"))
        return 0;
    while (*s) {
        size_t n = strcspn(s, ",");
        if (n == 5 && !strncmp(s, "races", n))
            mask |= CPS_CHECK_RACES;
        else if (n == 6 && !strncmp(s, "uninit", n))
            mask |= CPS_CHECK_UNINIT;
        else if (n == 6 && !strncmp(s, "bounds", n))
            mask |= CPS_CHECK_BOUNDS;
        else {
            cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'--check' has no '%.*s'", (int)n, s);
            cps_help(c->diags, "of races, uninit, bounds, with commas; or none");
            *ok = false;
        }
        s += n + (s[n] == ',');
    }
    return mask;
}

bool
cps_cli_write(cps_cli *c, const char *path, const void *data, size_t n)
{
    if (cps_file_write(path, data, n))
        return true;
    cps_error(c->diags, CPS_E1002, CPS_NOSPAN, "cannot write '%s': %s", path, strerror(errno));
    return false;
}

void
cps_cli_flush(cps_cli *c)
{
    cps_buf b = {0};
    c->json_messages ? cps_diags_render_json(c->diags, &b)
                     : cps_diags_render(c->diags, &b, c->color);
    if (b.n)
        fwrite(b.data, 1, b.n, stderr);
    cps_buf_fini(&b);
    cps_diags_clear(c->diags);
}

cps_exit
cps_cli_failed(const cps_cli *c)
{
    cps_exit code = CPS_BAD_INPUT;
    if (c->registry_failed)
        return code;
    for (unsigned i = 0; i < cps_diags_count(c->diags); i++) {
        cps_code k = cps_diags_code(c->diags, i);
        const char *name = cps_diag_rows[k].name;
        // storage that does not fit: the allocator's findings, and one buffer alone too large
        if (!strncmp(name, "E410", 4) || !strcmp(name, "E5113"))
            return CPS_NO_FIT;
        if (k == CPS_E1001 || k == CPS_E1002 || k == CPS_E8001)
            code = CPS_IO;
        if (k == CPS_E1108 || k == CPS_E7405)
            return CPS_DECLINED; // nothing is wrong with the input, but no leaf takes it
        if (k == CPS_E1103 || k == CPS_E1104 || k == CPS_E1105)
            return CPS_USAGE;
    }
    return code;
}

double
cps_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}
