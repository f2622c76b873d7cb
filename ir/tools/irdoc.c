/* irdoc FILE: fills the tables of IR.md from the rows they describe, in place. irdoc --check
 * FILE changes nothing and fails when a table is not what the rows say. Between the lines
 * "<!-- table NAME -->" and "<!-- end -->" the file is ours, everything else is prose. */
#include "ir/ir.h"
#include "ir/tile.h"
#include "runtime/base/file.h"

#include <stdio.h>

static const char *const classes[] = {
    [CPS_OC_CONST] = "constant",  [CPS_OC_UNARY] = "unary",          [CPS_OC_BINARY] = "binary",
    [CPS_OC_TERNARY] = "ternary", [CPS_OC_REDUCE] = "reduction",     [CPS_OC_SHAPE] = "shape",
    [CPS_OC_INDEX] = "index",     [CPS_OC_CONTRACT] = "contraction", [CPS_OC_SCAN] = "scan",
    [CPS_OC_CALL] = "call",
};

// Text of a table cell: the characters that would end it are escaped.
static void
cell(cps_buf *out, const char *s)
{
    for (; *s; s++) {
        if (*s == '|')
            cps_buf_putc(out, '\\');
        cps_buf_putc(out, *s);
    }
}

static void
count(cps_buf *out, unsigned lo, unsigned hi)
{
    if (lo == hi)
        cps_buf_printf(out, "%u", lo);
    else
        cps_buf_printf(out, "%u..%u", lo, hi);
}

static void
code(cps_buf *out, const char *s)
{
    if (*s)
        cps_buf_printf(out, "`%s`", s);
}

static void
ops(cps_buf *out)
{
    cps_buf_puts(out, "| op | class | operands | results | dtypes | attributes | meaning |\n"
                      "|---|---|---|---|---|---|---|\n");
    for (int i = 1; i < CPS_OPS; i++) {
        const cps_oprow *r = &cps_ops[i];
        cps_buf_printf(out, "| `%s` | %s | ", r->name, classes[r->opclass]);
        count(out, r->nin_min, r->nin_max);
        cps_buf_puts(out, " | ");
        count(out, i == CPS_OP_CALL ? 0 : r->nout, r->nout);
        cps_buf_printf(out, " | %s | ", r->kinds);
        code(out, r->attrs);
        cps_buf_puts(out, " | ");
        cell(out, r->doc);
        cps_buf_puts(out, " |\n");
    }
}

static void
insts(cps_buf *out)
{
    cps_buf_puts(out, "| instruction | results | operands | engines | attributes | meaning |\n"
                      "|---|---|---|---|---|---|\n");
    for (int i = 1; i < CPS_TOPS; i++) {
        const cps_toprow *r = &cps_tops[i];
        cps_buf_printf(out, "| `%s` | ", r->name);
        count(out, r->nout_min, r->nout_max);
        cps_buf_printf(out, "%s%s | ", *r->outs ? " " : "", r->outs);
        count(out, r->nin_min, r->nin_max);
        cps_buf_printf(out, "%s%s | %s | ", *r->ins ? " " : "", r->ins, r->engines);
        code(out, r->attrs);
        cps_buf_puts(out, " | ");
        cell(out, r->doc);
        cps_buf_puts(out, " |\n");
    }
}

static void
attrs(cps_buf *out)
{
    static const char *const kinds[] = {"operator", "function", "number", "flag", "list"};
    cps_buf_puts(out, "| attribute | holds | meaning |\n|---|---|---|\n");
    for (int i = 0; i < CPS_TATTRS; i++) {
        cps_buf_printf(out, "| `%s` | %s | ", cps_tattrs[i].name, kinds[cps_tattrs[i].kind]);
        cell(out, cps_tattrs[i].doc);
        cps_buf_puts(out, " |\n");
    }
}

static void
dtypes(cps_buf *out)
{
    cps_buf_puts(out, "| dtype | kind | bits | also read as |\n|---|---|---|---|\n");
    for (int i = 1; i < CPS_DT_COUNT; i++)
        cps_buf_printf(
            out, "| `%s` | %c | %u | %s |\n", cps_dtypes[i].name,
            cps_dtypes[i].kind == 'S' || cps_dtypes[i].kind == 'U' ? 'I' : cps_dtypes[i].kind,
            cps_dtypes[i].bits, cps_dtypes[i].alias);
}

static const struct {
    const char *name;
    void (*put)(cps_buf *);
} tables[] = {{"ops", ops}, {"instructions", insts}, {"attributes", attrs}, {"dtypes", dtypes}};

// The file with its tables made anew; NULL with a message when the markers are out of order.
static const char *
fill(const char *text, cps_buf *out)
{
    static const char open[] = "<!-- table ", close[] = "<!-- end -->";
    size_t seen = 0;
    for (const char *p; (p = strstr(text, open));) {
        const char *name = p + strlen(open), *line = strchr(name, '\n');
        const char *end = line ? strstr(line, close) : NULL;
        size_t k = 0;
        if (!end)
            return "a table is not closed";
        while (k < cps_countof(tables) &&
               (strncmp(name, tables[k].name, strlen(tables[k].name)) ||
                name[strlen(tables[k].name)] != ' '))
            k++;
        if (k == cps_countof(tables))
            return "a table has an unknown name";
        cps_buf_put(out, text, (size_t)(line + 1 - text));
        tables[k].put(out);
        seen |= (size_t)1 << k;
        text = end;
    }
    cps_buf_puts(out, text);
    return seen == ((size_t)1 << cps_countof(tables)) - 1 ? NULL : "a table is missing";
}

int
main(int argc, char **argv)
{
    bool check = argc == 3 && strcmp(argv[1], "--check") == 0;
    const char *path = check ? argv[2] : argv[1];
    cps_file f;
    if (argc != (check ? 3 : 2) || !cps_file_open(path, true, &f)) {
        fprintf(stderr, "usage: irdoc [--check] IR.md\n");
        return 2;
    }
    cps_buf out = {0};
    const char *why = fill((const char *)f.data, &out);
    bool same = !why && out.n == f.n && memcmp(out.data, f.data, f.n) == 0;
    int rc = 0;
    if (why || (check && !same)) {
        fprintf(stderr, "%s: %s\n", path, why ? why : "not current; run irdoc on it");
        rc = 1;
    } else if (!check && !same && !cps_file_write(path, out.data, out.n)) {
        perror(path);
        rc = 1;
    }
    cps_file_close(&f);
    cps_buf_fini(&out);
    return rc;
}
