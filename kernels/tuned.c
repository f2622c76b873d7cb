/* See tuned.h: reading, writing and applying tuned choices. */
#include "kernels/tuned.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char first_line[] = "# copse tuned choices 1";

cps_tuned *
cps_tuned_new(cps_arena *a, const char *name)
{
    cps_tuned *t = cps_new(a, cps_tuned);
    t->arena = a;
    t->name = cps_arena_strdup(a, name);
    cps_map_init(&t->at, a);
    return t;
}

void
cps_tuned_put(cps_tuned *t, const cps_tuned_row *row)
{
    bool fresh;
    cps_tuned_row r = *row;
    r.call = cps_arena_strdup(t->arena, row->call);
    r.leaf = cps_arena_strdup(t->arena, row->leaf);
    r.config = cps_arena_strdup(t->arena, row->config);
    uint64_t *at = cps_map_at_str(&t->at, r.call, &fresh);
    if (fresh) {
        cps_vec_push(t->arena, &t->rows, r);
        *at = t->rows.n;
    } else {
        t->rows.data[*at - 1] = r;
    }
}

void
cps_tuned_drop(cps_tuned *t, const char *call)
{
    uint64_t *at = cps_map_find_str(&t->at, call);
    if (at)
        t->rows.data[*at - 1].leaf =
            NULL; // its place stays; printing and looking up pass it over
}

static cps_tuned_row *
find(cps_tuned *t, const char *call)
{
    uint64_t *at = cps_map_find_str(&t->at, call);
    cps_tuned_row *r = at ? &t->rows.data[*at - 1] : NULL;
    return r && r->leaf ? r : NULL;
}

/* ---- the file ---- */

enum { FIELDS = 7 };

static bool
parse_digest(const char *s, cps_digest *out)
{
    static const char hex[] = "0123456789abcdef";
    if (strlen(s) != 2 * sizeof out->b)
        return false;
    for (size_t k = 0; k < sizeof out->b; k++) {
        const char *hi = strchr(hex, s[2 * k]), *lo = strchr(hex, s[2 * k + 1]);
        if (!hi || !lo)
            return false;
        out->b[k] = (uint8_t)((hi - hex) << 4 | (lo - hex));
    }
    return true;
}

/* What is wrong with a line, or NULL after its row was added. */
static const char *
parse_line(cps_tuned *t, const char *line, uint32_t number)
{
    char *field[FIELDS];
    char *s = cps_arena_strdup(t->arena, line);
    for (int k = 0; k < FIELDS; k++) {
        char *tab = strchr(s, '\t');
        if ((tab == NULL) != (k == FIELDS - 1))
            return "a line has 7 fields with one tab between";
        field[k] = s;
        if (tab)
            *tab = 0, s = tab + 1;
        if (!*field[k])
            return "a field is empty";
    }
    cps_tuned_row r = {.call = field[0], .leaf = field[1], .line = number};
    r.config = strcmp(field[2], "-") ? field[2] : "";
    if (!cps_parse_int(field[3], strlen(field[3]), &r.ns) || r.ns < 1 ||
        !cps_parse_int(field[4], strlen(field[4]), &r.ns_without) || r.ns_without < 1)
        return "fields 4 and 5 are times in ns";
    if (!parse_digest(field[5], &r.leaf_digest) || !parse_digest(field[6], &r.target_digest))
        return "fields 6 and 7 are digests of 64 hexadecimal digits";
    if (cps_map_find_str(&t->at, r.call))
        return "the call has a line already";
    cps_tuned_put(t, &r);
    return NULL;
}

cps_tuned *
cps_tuned_parse(cps_arena *a, const char *name, const char *text, size_t n, cps_diags *d)
{
    cps_tuned *t = cps_tuned_new(a, name);
    uint32_t number = 0;
    for (size_t at = 0; at < n || !number;) {
        const char *end = at < n ? memchr(text + at, '\n', n - at) : NULL;
        size_t len = end ? (size_t)(end - text) - at : n - at;
        const char *line = cps_arena_strndup(a, text + at, len);
        const char *wrong = NULL;
        if (++number == 1)
            wrong = strcmp(line, first_line) ? "the first line is not '# copse tuned choices 1'"
                                             : NULL;
        else if (strlen(line) != len)
            wrong = "a zero byte";
        else if (*line && *line != '#')
            wrong = parse_line(t, line, number);
        if (wrong) {
            uint32_t file = cps_diags_line(d, name, number, text + at, len);
            cps_error(d, CPS_E1114, (cps_span){file, 0, 0}, "%s", wrong);
            return NULL;
        }
        at += len + 1;
    }
    return t;
}

static int
by_call(const void *x, const void *y)
{
    const cps_tuned_row *a = *(cps_tuned_row *const *)x, *b = *(cps_tuned_row *const *)y;
    return strcmp(a->call, b->call);
}

void
cps_tuned_print(const cps_tuned *t, cps_buf *out)
{
    cps_arena *scratch = cps_arena_create();
    cps_tuned_row **row = cps_new_array(scratch, cps_tuned_row *, t->rows.n + 1);
    uint32_t n = 0;
    for (uint32_t k = 0; k < t->rows.n; k++)
        if (t->rows.data[k].leaf)
            row[n++] = &t->rows.data[k];
    qsort(row, n, sizeof *row, by_call);
    cps_buf_printf(out,
                   "%s\n# call\tleaf\tparameters\tns\tns without\tdigest of the leaf\tdigest "
                   "of the target\n",
                   first_line);
    for (uint32_t k = 0; k < n; k++) {
        char leaf[65], target[65];
        cps_digest_hex(&row[k]->leaf_digest, leaf);
        cps_digest_hex(&row[k]->target_digest, target);
        cps_buf_printf(out, "%s\t%s\t%s\t%" PRId64 "\t%" PRId64 "\t%s\t%s\n", row[k]->call,
                       row[k]->leaf, *row[k]->config ? row[k]->config : "-", row[k]->ns,
                       row[k]->ns_without, leaf, target);
    }
    cps_arena_destroy(scratch);
}

/* ---- use ---- */

void
cps_config_print(const cps_candidate *c, cps_buf *out)
{
    for (unsigned k = 0; k < c->nconfig; k++) {
        cps_buf_puts(out, k ? "," : "");
        cps_attr_print(&c->config[k], out);
    }
}

/* The value of the parameter whose text as "NAME=VALUE" is [s, s + n), or NULL. */
static const cps_attr *
value_of(const cps_param *p, const char *s, size_t n)
{
    const cps_attr *found = NULL;
    for (uint32_t k = 0; k < p->n && !found; k++) {
        cps_buf b = {0};
        cps_attr_print(&p->value[k], &b);
        if (b.n == n && !memcmp(b.data, s, n))
            found = &p->value[k];
        cps_buf_fini(&b);
    }
    return found;
}

bool
cps_config_parse(cps_arena *a, const char *config, const cps_param *p, uint32_t np,
                 cps_attr **out, uint16_t *n, const char **why)
{
    *out = NULL;
    *n = 0;
    for (const char *s = config; *s;) {
        size_t len = strcspn(s, ",");
        const cps_attr *x = NULL;
        for (uint32_t k = 0; k < np && !x; k++)
            x = value_of(&p[k], s, len);
        if (!x) {
            *why =
                cps_arena_printf(a, "the leaf has no parameter value '%.*s' here", (int)len, s);
            return false;
        }
        cps_attr_put(a, out, n, *x);
        s += len + (s[len] == ',');
    }
    return true;
}

/* The candidate a row stands for, or why it cannot be used. */
static const char *
resolve(const cps_tuned_row *row, cps_registry *r, cps_arena *a, const cps_instance *i,
        cps_candidate *cand, unsigned n, cps_diags *d)
{
    unsigned at = 0;
    cps_param *p;
    uint32_t np;
    cps_attr *fixed;
    uint16_t nfixed;
    const char *why = NULL;
    cps_candidate c;
    while (at < n && strcmp(cand[at].leaf, row->leaf))
        at++;
    if (at == n)
        return cps_arena_printf(a, "the library has no leaf '%s' for it", row->leaf);
    if (!i->target || !cps_digest_eq(&row->target_digest, &i->target->digest))
        return "the target's description has changed";
    cps_digest text = r->digest(r->self, row->leaf);
    if (!cps_digest_eq(&row->leaf_digest, &text))
        return cps_arena_printf(a, "the text of leaf '%s' has changed", row->leaf);
    if (!r->params(r->self, a, i, row->leaf, &p, &np) ||
        !cps_config_parse(a, row->config, p, np, &fixed, &nfixed, &why))
        return why ? why : "the leaf has errors";
    if (nfixed != np)
        return "the leaf has other parameters";
    if (!r->candidate(r->self, a, i, row->leaf, fixed, nfixed, &c, d) || !c.ok)
        return cps_arena_printf(a, "leaf '%s' refuses it: %s", row->leaf,
                                c.nreasons ? c.reason[0] : "an error");
    c.tuned = true;
    cand[at] = c;
    return NULL;
}

void
cps_tuned_apply(cps_tuned *t, cps_registry *r, cps_arena *a, const cps_instance *i,
                cps_candidate *cand, unsigned n, cps_diags *d)
{
    cps_buf call = {0};
    cps_instance_print(i, &call);
    cps_tuned_row *row = find(t, call.data);
    cps_buf_fini(&call);
    const char *why = row ? resolve(row, r, a, i, cand, n, d) : NULL;
    if (!why || row->told)
        return;
    row->told = true;
    cps_error(d, CPS_W1115, CPS_NOSPAN, "line %u of '%s' is stale and not used: %s", row->line,
              t->name, why);
    cps_note(d, CPS_NOSPAN, "it is for %s", row->call);
    cps_help(d, "`copse tune` finds it anew");
}
