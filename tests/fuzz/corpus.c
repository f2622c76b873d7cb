/* Where fuzzing starts from: DIR/KIND/NAME, inputs out of the repository, and DIR/KIND.dict,
 * words out of the tables. Run in the root of the source tree.
 *
 *   corpus DIR */
#include "tests/fuzz/fuzz.h"

#include "codegen/isa/sync_row.h"
#include "codegen/isa/text.h"
#include "ir/tile.h"
#include "runtime/base/file.h"
#include "runtime/base/map.h"
#include "runtime/base/str.h"
#include "runtime/pkg/neff.h"
#include "tests/isa/golden.h"

#include <dirent.h>

static const char *root;
static cps_arena *arena;
static bool fine = true;

static void
put(const char *kind, const char *name, const void *data, size_t n)
{
    const char *dir = cps_path_join(arena, root, kind);
    fine = cps_mkdirs(dir) && cps_file_write(cps_path_join(arena, dir, name), data, n) && fine;
}

/* ---- words ---- */

static void
word(cps_buf *b, const char *s)
{
    if (s && *s)
        cps_buf_printf(b, "\"%s\"\n", s);
}

// The strings of JSON text, each once, with their quotes.
static void
json_words(cps_buf *b, const char *p, size_t n)
{
    cps_map seen;
    cps_map_init(&seen, arena);
    for (const char *end = p + n, *q; (p = memchr(p, '"', (size_t)(end - p))) != NULL;
         p = q + 1) {
        q = memchr(p + 1, '"', (size_t)(end - p - 1));
        if (!q)
            break;
        bool plain = q - p > 1 && q - p < 40, fresh = false;
        for (const char *c = p + 1; c < q; c++)
            plain = plain && *c >= ' ' && *c < 0x7f && *c != '\\';
        if (!plain)
            continue;
        const char *s = cps_arena_strndup(arena, p + 1, (size_t)(q - p - 1));
        cps_map_at_str(&seen, s, &fresh);
        if (fresh)
            cps_buf_printf(b, "\"\\\"%s\\\"\"\n", s);
    }
}

static void
put_words(const char *kind, cps_buf *b)
{
    const char *path = cps_arena_printf(arena, "%s/%s.dict", root, kind);
    fine = cps_file_write(path, b->data, b->n) && fine;
    b->n = 0;
}

/* ---- inputs ---- */

// Files of the tree whose names end so.
static const struct {
    const char *kind, *folder, *suffix;
} folders[] = {
    {"asm", "tests/golden", "isa.cas"},    {"cir", "tests/golden/graph", ".txt"},
    {"cps", "kernels/leaves", ".cps"},     {"cps", "tests/dsl/sources", ".cps"},
    {"cps", "tests/golden/bad", ".cps"},   {"onnx", "tests/onnx/data", ".onnx"},
    {"tile", "tests/golden/tile", ".txt"}, {"xml", "codegen/isa/targets", ".xml"},
};

static void
copy_folder(const char *kind, const char *folder, const char *suffix)
{
    DIR *d = opendir(folder);
    fine = d != NULL && fine;
    for (struct dirent *e; d && (e = readdir(d));) {
        cps_file f;
        if (!cps_has_suffix(e->d_name, suffix) ||
            !cps_file_open(cps_path_join(arena, folder, e->d_name), false, &f))
            continue;
        put(kind, e->d_name, f.data, f.n);
        cps_file_close(&f);
    }
    if (d)
        closedir(d);
}

// One bundle and its line.
static void
put_bundle(const char *name, const cps_bundle *b, cps_gen g)
{
    cps_buf text = {0};
    cps_isa_print(b, g, &text);
    put("dis", name, b->b, CPS_BUNDLE_BYTES);
    put("asm", name, text.data, text.n);
    cps_buf_fini(&text);
}

// Golden vectors, and every instruction with all its fields.
static void
bundles(void)
{
    static golden v[256];
    for (unsigned i = 0, n = golden_read(v, 256); i < n; i++)
        put_bundle(v[i].name, &v[i].b, CPS_V3);
    for (unsigned i = 1; i < CPS_INSNS; i++) {
        cps_gen g = cps_insns[i].gens & CPS_IN_V2 ? CPS_V2 : CPS_V4;
        unsigned fmt = cps_insns[i].format;
        cps_bundle b = cps_isa_new((cps_insn)i, g);
        for (unsigned f = cps_formats[fmt].first; f < cps_formats[fmt + 1].first; f++)
            b.b[cps_fields[f].byte] += 1 + f % 3;
        b.b[4] = 1 + i % 7;
        b.b[6] = 1 + i % 9;
        put_bundle(cps_insns[i].name, &b, g);
    }
    static const char names[] = ".set n 0x10 // count\n.set at sbuf[p32+0x100]\nloop: NOP\n"
                                "COPY src=fp32@at[1][n] ch=n dst=fp32@at[1][n]\n"
                                "COMPARE_BRANCH branch=out\nCOMPARE_BRANCH branch=loop\nout:";
    put("asm", "names", names, sizeof names - 1);
}

static void
seeds(void)
{
    static const struct {
        const char *name;
        fuzz_seeder *make;
    } kinds[] = {
#define FUZZ_KIND(name, ...) {#name, seed_##name},
#include "tests/fuzz/kind.def"
    };
    for (size_t i = 0; i < cps_countof(kinds); i++) {
        cps_buf b = {0};
        fine = kinds[i].make(arena, &b) && fine;
        put(kinds[i].name, "seed", b.data, b.n);
        cps_buf_fini(&b);
    }
}

// The container as it is usually stored, and its members with their names.
static void
containers(void)
{
    cps_buf b = {0}, list = {0}, dict = {0};
    cps_diags *d = cps_diags_create();
    fine = seed_neff(arena, &b) && fine;
    cps_neff *f = cps_neff_read(arena, (const uint8_t *)b.data, b.n, 0, d);
    if (f) {
        b.n = 0;
        f->head.pkg_version = 2;
        fine = cps_neff_write(f, &b, d) && fine;
        put("neff", "packed", b.data, b.n);
        for (uint32_t i = 0; i < f->members.n; i++) {
            const cps_neff_member *m = &f->members.data[i];
            cps_buf_printf(&list, "%s#%s\n", i ? "\n" : "", m->name);
            cps_buf_put(&list, m->data, m->n);
        }
        put("neff", "members", list.data, list.n);
        json_words(&dict, list.data, list.n);
        put_words("neff", &dict);
    }
    fine = f && fine;
    cps_diags_destroy(d);
    cps_buf_fini(&b);
    cps_buf_fini(&list);
    cps_buf_fini(&dict);
}

/* ---- tables of words ---- */

static void
isa_words(cps_buf *b)
{
    static const char *const marks[] = {
        "sbuf[p", "psum[p", "reg[", "ptr[",    "var[",      "table[", "index:",
        "shape:", "wide:",  "->",   "][",      "@",         "0x",     "raw[",
        "]=",     ".set ",  ": ",   ".bytes ", " // ",      "wait ",  "then ",
        "wait2 ", "then2 ", "S[",   "E[",      "@complete", "@read"};
    for (size_t i = 0; i < cps_countof(marks); i++)
        word(b, marks[i]);
    for (unsigned i = 1; i < CPS_INSNS; i++)
        word(b, cps_insns[i].name);
    for (unsigned f = 1; f < CPS_FIELDS; f++)
        word(b, cps_fields[f].label);
    for (unsigned i = 0; i < cps_enums[CPS_ENUMS].first; i++)
        word(b, cps_enumvals[i].name);
    for (unsigned i = 1; i < CPS_DT_COUNT; i++)
        word(b, cps_dtypes[i].name);
    for (unsigned i = 0; i < 256; i++) {
        word(b, cps_alu_name(i));
        word(b, cps_actfn_name(i));
    }
    for (unsigned i = 0; i < cps_wait_count; i++)
        word(b, cps_waits[i].text);
    for (unsigned i = 0; i < cps_update_count; i++)
        word(b, cps_updates[i].text);
}

// Bytes that begin an instruction.
static void
dis_words(cps_buf *b)
{
    for (unsigned i = 1; i < CPS_INSNS; i++)
        cps_buf_printf(b, "\"\\x%02x\\x10\\x00\\x00\"\n", cps_insns[i].opcode);
}

static void
words(void)
{
    static const char *const dsl[] = {
#define CPS_DSL_KEYWORD(text, ...) text,
#include "frontend/dsl/keyword.def"
#define CPS_DSL_FUNCTION(text, ...) text,
#include "frontend/dsl/function.def"
#define CPS_DSL_MARK(text, ...) text,
#include "frontend/dsl/mark.def"
    };
    static const char *const graph[] = {
#define CPS_OP(id, text, ...) text,
#include "ir/op.def"
    };
    static const char *const tile[] = {
#define CPS_TOP(id, text, ...) text,
#include "ir/top.def"
#define CPS_TATTR(id, text, ...) text,
#include "ir/tattr.def"
    };
    cps_buf b = {0};
    isa_words(&b);
    put_words("asm", &b);
    dis_words(&b);
    put_words("dis", &b);
    for (size_t i = 0; i < cps_countof(dsl); i++)
        word(&b, dsl[i]);
    put_words("cps", &b);
    for (size_t i = 0; i < cps_countof(graph); i++)
        word(&b, graph[i]);
    put_words("cir", &b);
    for (size_t i = 0; i < cps_countof(tile); i++)
        word(&b, tile[i]);
    put_words("tile", &b);
    cps_buf_fini(&b);
}

int
main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("corpus DIR\n", stderr);
        return 2;
    }
    root = argv[1];
    arena = cps_arena_create();
    fine = cps_mkdirs(root);
    seeds();
    bundles();
    containers();
    for (size_t i = 0; i < cps_countof(folders); i++)
        copy_folder(folders[i].kind, folders[i].folder, folders[i].suffix);
    words();
    cps_arena_destroy(arena);
    if (!fine)
        fprintf(stderr, "corpus: '%s' could not be filled\n", root);
    return !fine;
}
