/* Build tool: `embed OUT ROOT FILE...` writes the kernel sources and their index as a C table.
 * FILEs are paths inside ROOT, in the order they shall have; the output depends on them alone.
 * `embed --plain NAME OUT ROOT FILE...` writes the table NAME of sources only, and NAME_count.
 */
#include "kernels/index.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct source {
    const char *path;
    char *text;
    size_t n;
} source;

static char *
slurp(const char *root, const char *path, size_t *n)
{
    char name[4096];
    size_t cap = 0;
    char *s = NULL;
    FILE *f;

    if (snprintf(name, sizeof(name), "%s/%s", root, path) >= (int)sizeof(name) ||
        !(f = fopen(name, "rb"))) {
        fprintf(stderr, "embed: cannot read %s/%s\n", root, path);
        exit(1);
    }
    *n = 0;
    while (!feof(f) && !ferror(f)) {
        if (*n + 4096 > cap)
            s = realloc(s, cap = cap * 2 + 8192);
        if (!s)
            exit(1);
        *n += fread(s + *n, 1, 4096, f);
    }
    if (ferror(f))
        exit(1);
    fclose(f);
    return s;
}

static void
quote(FILE *o, const char *s, size_t n)
{
    fputc('"', o);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            fprintf(o, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", o);
        else if (c < 32 || c > 126)
            fprintf(o, "\\%03o", c);
        else
            fputc(c, o);
    }
    fputc('"', o);
}

// Line by line: compilers limit single literals, not their concatenation as bytes.
static void
put_text(FILE *o, size_t i, const source *s)
{
    fprintf(o, "static const char text_%zu[] =\n", i);
    for (size_t b = 0; b < s->n;) {
        size_t e = b;
        while (e < s->n && s->text[e] != '\n')
            e++;
        if (e < s->n)
            e++;
        fputs("    ", o);
        quote(o, s->text + b, e - b);
        fputc('\n', o);
        b = e;
    }
    fputs(s->n ? "    ;\n" : "    \"\";\n", o);
}

// "trn1, trn2" -> "trn1 trn2"
static void
put_targets(FILE *o, const cps_scan_item *x)
{
    bool first = true;
    fputc('"', o);
    for (size_t i = 0; i < x->ntargets;) {
        while (i < x->ntargets && !isalnum((unsigned char)x->targets[i]) &&
               x->targets[i] != '_')
            i++;
        size_t b = i;
        while (i < x->ntargets &&
               (isalnum((unsigned char)x->targets[i]) || x->targets[i] == '_'))
            i++;
        if (i > b)
            fprintf(o, "%s%.*s", first ? "" : " ", (int)(i - b), x->targets + b);
        first = first && i == b;
    }
    fputc('"', o);
}

int
main(int argc, char **argv)
{
    const char *table = "cps_kernel_sources";
    bool plain = argc > 2 && !strcmp(argv[1], "--plain");
    if (plain) {
        table = argv[2];
        argv += 2;
        argc -= 2;
    }
    size_t n = argc > 3 ? (size_t)argc - 3 : 0, defs = 0;
    source *s = calloc(n + 1, sizeof(*s));
    FILE *o;

    if (argc < 3 || !s || !(o = fopen(argv[1], "wb"))) {
        fprintf(stderr, "usage: embed [--plain NAME] OUT ROOT FILE...\n");
        return 1;
    }
    fputs("// Made by kernels/embed.c from the .cps files; do not edit.\n"
          "#include \"kernels/index.h\"\n#include \"kernels/registry.h\"\n\n",
          o);
    if (plain)
        fprintf(o, "extern const cps_source %s[];\nextern const unsigned %s_count;\n\n", table,
                table);
    for (size_t i = 0; i < n; i++) {
        s[i].path = argv[i + 3];
        s[i].text = slurp(argv[2], s[i].path, &s[i].n);
        put_text(o, i, &s[i]);
    }
    fprintf(o, "\nconst cps_source %s[] = {\n", table);
    for (size_t i = 0; i < n; i++) {
        fputs("    {", o);
        quote(o, s[i].path, strlen(s[i].path));
        fprintf(o, ", text_%zu, %zu},\n", i, s[i].n);
    }
    if (plain)
        fprintf(o, "    {0, 0, 0}};\nconst unsigned %s_count = %zu;\n", table, n);
    else
        fprintf(o, "    {0, 0, 0}};\nconst unsigned cps_kernel_source_count = %zu;\n\n", n);
    if (!plain)
        fputs("const cps_kernel_def cps_kernel_defs[] = {\n", o);
    for (size_t i = 0; i < n && !plain; i++) {
        cps_scan_item x;
        for (size_t at = 0; cps_kernel_scan(s[i].text, s[i].n, &at, &x); defs++) {
            fprintf(o, "    {'%c', \"%.*s\", ", x.kind, (int)x.nname, x.name);
            if (x.kind == 'L') {
                fprintf(o, "\"%.*s\", ", (int)x.nop, x.op);
                put_targets(o, &x);
            } else {
                fputs("0, 0", o);
            }
            fprintf(o, ", %zu},\n", i);
        }
    }
    if (!plain)
        fprintf(o, "    {0, 0, 0, 0, 0}};\nconst unsigned cps_kernel_def_count = %zu;\n", defs);
    if (fclose(o) != 0)
        return 1;
    for (size_t i = 0; i < n; i++)
        free(s[i].text);
    free(s);
    return 0;
}
