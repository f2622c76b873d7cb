/* The table of published times, and its kernel files. */
#include "frontend/validate.h"

#include "runtime/base/file.h"

#include <errno.h>
#include <string.h>

extern const cps_source cps_validate_sources[];
extern const unsigned cps_validate_sources_count;

enum {
    NAME,
    PUBLISHED,
    KIND,
    LOW,
    GROUP,
    SOFT,
    DEVICE,
    DTYPE,
    SHAPE,
    FILE_,
    LEAF,
    TARGET,
    DIMS,
    ATTRS,
    MEASURE,
    FIXED,
    ORDER,
    SPEED,
    SOURCE,
    NOTE,
    COLUMNS
};

static const char head[] =
    "name\tpublished_ns\tkind\tlow_ns\tgroup\tsoft\tdevice\tdtype\tshape\t"
    "file\tleaf\ttarget\tdims\tattrs\tmeasure\tfixed\torder\tspeed\tsource\t"
    "note";

const char *
cps_validate_text(cps_cli *c, const cps_vtable *t, const char *file, size_t *n)
{
    if (!t->dir) {
        for (unsigned i = 0; i < cps_validate_sources_count; i++)
            if (!strcmp(cps_validate_sources[i].path, file)) {
                *n = cps_validate_sources[i].n;
                return cps_validate_sources[i].text;
            }
        cps_error(c->diags, CPS_E1001, CPS_NOSPAN, "no replay is called '%s'", file);
        return NULL;
    }
    cps_file f;
    const char *path = cps_path_join(c->arena, t->dir, file);
    if (!cps_file_open(path, true, &f)) {
        cps_error(c->diags, CPS_E1001, CPS_NOSPAN, "cannot read '%s': %s", path,
                  strerror(errno));
        return NULL;
    }
    *n = f.n;
    char *text = cps_arena_strndup(c->arena, (const char *)f.data, f.n);
    cps_file_close(&f);
    return text;
}

static bool
bad(cps_cli *c, uint32_t line, const char *what)
{
    cps_error(c->diags, CPS_E1113, CPS_NOSPAN, "rows.tsv:%u: %s", line, what);
    return false;
}

static bool
word(const char *s, const char *yes, bool *out)
{
    *out = !strcmp(s, yes);
    return *out || !strcmp(s, "-");
}

static bool
number(const char *s, double *out)
{
    *out = 0;
    return !strcmp(s, "-") || (cps_parse_double(s, strlen(s), out) && *out > 0 && *out < 1e15);
}

static bool
order(const char *s, int *out)
{
    int64_t v;
    *out = 0;
    if (!strcmp(s, "copse") || !strcmp(s, "-"))
        return true;
    if (!strcmp(s, "written"))
        *out = -1;
    else if (!strncmp(s, "ahead", 5) && cps_parse_int(s + 5, strlen(s + 5), &v) && v > 0 &&
             v < 4096)
        *out = (int)v;
    return *out != 0;
}

static bool
row(cps_cli *c, char *text, uint32_t line, cps_vrow *r)
{
    char *f[COLUMNS] = {text};
    int n = 1;
    for (char *p = text; *p; p++)
        if (*p == '\t') {
            *p = 0;
            if (n == COLUMNS)
                return bad(c, line, "too many columns");
            f[n++] = p + 1;
        }
    if (n != COLUMNS)
        return bad(c, line, "a row has 20 columns");
    bool measured = !strcmp(f[KIND], "measured"), open = !strcmp(f[FILE_], "-");
    *r = (cps_vrow){.name = f[NAME],
                    .bound = !strcmp(f[KIND], "bound"),
                    .group = f[GROUP],
                    .device = f[DEVICE],
                    .dtype = f[DTYPE],
                    .shape = f[SHAPE],
                    .file = open ? NULL : f[FILE_],
                    .op = f[LEAF],
                    .target = f[TARGET],
                    .dims = f[DIMS],
                    .attrs = f[ATTRS],
                    .measure = f[MEASURE],
                    .source = f[SOURCE],
                    .note = f[NOTE],
                    .line = line};
    char *slash = strchr(f[LEAF], '/');
    if (!measured && !r->bound)
        return bad(c, line, "kind is measured or bound");
    if (!number(f[PUBLISHED], &r->published) || r->published == 0 || !number(f[LOW], &r->low))
        return bad(c, line, "times are numbers of nanoseconds");
    if (!open && !slash)
        return bad(c, line, "the leaf is given as OP/LEAF");
    if (open && !strcmp(f[NOTE], "-"))
        return bad(c, line, "a row that is not replayed says why");
    if (!word(f[SOFT], "soft", &r->soft) || !word(f[FIXED], "fixed", &r->fixed) ||
        !order(f[ORDER], &r->lookahead) || !word(f[SPEED], "slow", &r->slow))
        return bad(c, line, "soft, fixed, order or speed has no such value");
    if (slash) {
        *slash = 0;
        r->leaf = slash + 1;
    }
    return true;
}

bool
cps_validate_read(cps_cli *c, const char *dir, cps_vtable *t)
{
    size_t n;
    *t = (cps_vtable){.dir = dir};
    const char *text = cps_validate_text(c, t, "rows.tsv", &n);
    if (!text)
        return false;
    uint32_t line = 0;
    for (size_t at = 0; at < n;) {
        size_t len = strcspn(text + at, "\n");
        char *one = cps_arena_strndup(c->arena, text + at, len);
        at += len + 1;
        line++;
        if (line == 1 && strcmp(one, head))
            return bad(c, line, "the first line names the columns");
        if (line == 1 || !len || *one == '#')
            continue;
        cps_vrow r;
        if (!row(c, one, line, &r))
            return false;
        for (uint32_t k = 0; k < t->rows.n; k++)
            if (!strcmp(t->rows.data[k].name, r.name))
                return bad(c, line, "the name stands there twice");
        cps_vec_push(c->arena, &t->rows, r);
    }
    return true;
}
