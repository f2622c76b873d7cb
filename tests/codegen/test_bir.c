/* BIR JSON: kernels there and back, any instruction stream there and back, documents of others,
 * and broken ones. */
#include "codegen/bir/schema.h"
#include "codegen/isa/text.h"
#include "runtime/base/file.h"
#include "runtime/base/rng.h"
#include "tests/check.h"
#include "tests/codegen/bir_round.h"
#include "tests/codegen/ops.h"

static const char *const targets[] = {"trn1", "trn2", "trn3"};

static cps_kbin *
compile(tp *p, cps_notes *n)
{
    cps_kbin *k = NULL;
    cps_codegen_opts o = {.verify = true, .notes = n};
    return cps_codegen(p->a, p->f, p->t, &o, &k, p->d) ? k : NULL;
}

static uint32_t
count(const char *text, const char *word)
{
    uint32_t n = 0;
    for (const char *s = text; (s = strstr(s, word)); s += strlen(word))
        n++;
    return n;
}

static void
kernels(void)
{
    for (size_t i = 0; i < cps_countof(targets); i++)
        for (int what = 0; what < 5; what++) {
            static const cps_dtype types[] = {CPS_DT_BF16, CPS_DT_FP32, CPS_DT_FP8E4M3};
            tp p = tp_new(targets[i]);
            if (what == 0)
                tp_make_ops(&p);
            else if (what == 1)
                tp_make_softmax(&p, CPS_DT_BF16, 300, 1000);
            else
                tp_make_matmul(&p, types[what - 2], 300, 200, 700);
            cps_notes n = {0};
            cps_kbin *k = compile(&p, &n);
            CHECK(k != NULL);
            if (!k) {
                bir_report(p.d);
                continue;
            }
            CHECK(bir_round_trip(k, &n));
            CHECK(bir_round_trip(k, NULL)); // without notes: whole memories, no dependences
            cps_buf text = {0};
            cps_bir_write(k, &n, &text);
            // every record of ours has an instruction, every operand a buffer
            CHECK_INT(count(text.data, "InlineASMBytes"), 0);
            CHECK_INT(count(text.data, "\"sb_all\"") + count(text.data, "\"psum_all\""), 0);
            CHECK(count(text.data, "\"Flow\"") > 0);
            cps_buf_fini(&text);
            tp_free(&p);
        }
}

// The notes agree with the streams, and asking for them changes nothing.
static void
notes(void)
{
    tp p = tp_new("trn2");
    tp_make_ops(&p);
    cps_notes n = {0};
    cps_kbin *k = compile(&p, &n), *plain = compile(&p, NULL);
    CHECK(k && plain && bir_same_kernel(k, plain));
    uint32_t edges = 0;
    for (int e = 0; k && e < CPS_ENGINES; e++) {
        CHECK_INT(n.record[e].n, k->stream[e].code.n);
        for (uint32_t i = 0; i < n.record[e].n; i++) {
            const cps_nrecord *r = &n.record[e].data[i];
            CHECK(i == 0 || r->order >= n.record[e].data[i - 1].order);
            edges += r->ndep;
            for (uint32_t d = 0; d < r->ndep; d++) {
                const cps_ndep *x = &n.deps.data[r->dep + d];
                CHECK(x->kind >= CPS_DEP_ORDERED && x->kind <= CPS_DEP_FLOW);
                CHECK(n.record[x->engine].data[x->index].order < r->order);
            }
        }
    }
    CHECK(edges > 20 && n.places.n > 5);
    tp_free(&p);
}

// A kernel of nothing but the given records, spread over the engines.
static cps_kbin *
of_records(cps_arena *a, const cps_bundle *b, uint32_t n, cps_gen g)
{
    static const char *const names[] = {"trn1", "trn2", "trn3"};
    cps_kbin *k = cps_kbin_new(a, "records", names[g], g);
    for (uint32_t i = 0; i < n; i++) {
        cps_kstream *s = &k->stream[i % CPS_ENGINES];
        cps_vec_push(a, &s->code, b[i]);
        cps_vec_push(a, &s->locs, (cps_kloc){0});
    }
    return k;
}

// Records written by people, every instruction of the table, then the same with damaged bytes:
// what no row of the mapping can say must come back all the same.
static void
every_record(void)
{
    cps_file f;
    CHECK(cps_file_open("tests/golden/isa.cas", true, &f));
    for (int g = 0; g < CPS_GENS; g++) {
        cps_arena *a = cps_arena_create();
        cps_diags *d = cps_diags_create();
        cps_buf b = {0};
        uint32_t source = cps_diags_source(d, "isa.cas", (const char *)f.data, f.n);
        CHECK(cps_isa_parse((const char *)f.data, f.n, source, (cps_gen)g, d, &b));
        for (unsigned i = 1; i < CPS_INSNS; i++) {
            cps_bundle one = cps_isa_new((cps_insn)i, (cps_gen)g);
            cps_buf_put(&b, &one, sizeof one);
        }
        uint32_t n = (uint32_t)(b.n / CPS_BUNDLE_BYTES);
        cps_bundle *r = cps_new_array(a, cps_bundle, n + 1);
        CHECK(n > CPS_INSNS + 20);
        memcpy(r, b.data, b.n);
        CHECK(bir_round_trip(of_records(a, r, n, (cps_gen)g), NULL));
        cps_rng rng;
        cps_rng_init(&rng, 7, (uint64_t)g);
        for (int round = 0; round < 20; round++) {
            cps_bundle *m = cps_new_array(a, cps_bundle, n + 1);
            memcpy(m, r, n * sizeof *m);
            for (uint32_t i = 0; i < n; i++)
                for (uint64_t k = cps_rng_below(&rng, 4); k-- > 0;)
                    m[i].b[cps_rng_below(&rng, CPS_BUNDLE_BYTES)] =
                        (uint8_t)cps_rng_below(&rng, 256);
            for (uint32_t i = n; i > 1; i--) { // another order: other neighbours
                uint32_t j = (uint32_t)cps_rng_below(&rng, i);
                cps_bundle t = m[i - 1];
                m[i - 1] = m[j];
                m[j] = t;
            }
            CHECK(bir_round_trip(of_records(a, m, n, (cps_gen)g), NULL));
        }
        cps_buf_fini(&b);
        cps_diags_destroy(d);
        cps_arena_destroy(a);
    }
    cps_file_close(&f);
}

// Streams of compiled kernels with damaged records: companions and waits meet odd neighbours.
static void
damaged_kernels(void)
{
    for (unsigned seed = 0; seed < 60; seed++) {
        tp p = tp_new(targets[seed % 3]);
        cps_rng r;
        cps_rng_init(&r, seed, 11);
        tp_make_ops(&p);
        cps_notes n = {0};
        cps_kbin *k = compile(&p, &n);
        CHECK(k != NULL);
        for (unsigned i = 0; k && i < 30; i++) {
            cps_kstream *s = &k->stream[cps_rng_below(&r, CPS_ENGINES)];
            if (!s->code.n)
                continue;
            uint32_t at = (uint32_t)cps_rng_below(&r, s->code.n);
            // relocations and triggers keep their fields: a kernel that contradicts itself is
            // refused elsewhere
            unsigned byte = (unsigned)(4 + cps_rng_below(&r, 60));
            s->code.data[at].b[byte] ^= (uint8_t)(1u << cps_rng_below(&r, 8));
        }
        if (k)
            CHECK(bir_round_trip(k, seed % 2 ? &n : NULL));
        tp_free(&p);
    }
}

// ---- documents of others ----

static cps_bir *
parse(cps_arena *a, cps_diags *d, const char *text)
{
    return cps_bir_read(a, text, strlen(text),
                        cps_diags_source(d, "x.bir.json", text, strlen(text)), d);
}

static bool
has(const cps_diags *d, cps_code c)
{
    for (unsigned i = 0; i < cps_diags_count(d); i++)
        if (cps_diags_code(d, i) == c)
            return true;
    return false;
}

static void
foreign(void)
{
    // Unsorted members, old spellings, bare dependences, affine expressions of both versions,
    // big unsigned numbers, unknown members, words and opcodes.
    static const char text[] =
        "{\"version\":1,\"archRev\":7,\"arch\":\"gen3\",\"queues\":[{\"name\":\"q\",\"num_dma_"
        "engines\":16,"
        "\"dma_blocks\":[{\"name\":\"b\",\"block_id\":0}]}],"
        "\"functions\":[{\"name\":\"main\",\"basic_blocks\":[{\"name\":\"entry\","
        "\"instructions\":["
        "{\"name\":\"i1\",\"opcode\":\"Load\",\"engine\":\"SP\",\"queue\":\"q\",\"dge_type\":"
        "\"Hardware\","
        "\"ins\":[{\"memref\":\"x0\",\"memsetref\":\"x\",\"dtype\":\"bfloat16\",\"offset\":"
        "{\"kind\":\"SumKind\",\"n_terms\":1,\"terms\":[{\"kind\":\"MultKind\",\"var\":"
        "{\"kind\":\"AffIVKind\",\"axis\":\"i\"},\"scale\":4}]},\"ap\":[[128,128],[1,128]]}],"
        "\"outs\":[],\"frobnicate\":1.50},"
        "{\"name\":\"i2\",\"opcode\":\"Frob\",\"engine\":\"Turbo\",\"ins\":[{\"value\":"
        "1e400000000000}]},"
        "{\"name\":\"i3\",\"opcode\":\"DMATrigger\",\"engine\":\"SP\",\"dma_blocks\":[\"b\"],"
        "\"dependencies\":[\"i1\",[\"i2\",\"Anti\"],[\"i1\",5]],"
        "\"unroll_dependencies\":[[\"i1\",\"Flow\",[{\"terms\":[{\"AxisLabel\":\"a\",\"coef\":"
        "2}],\"c\":1}],[]]]},"
        "{\"name\":\"i4\",\"opcode\":\"Matmult\",\"engine\":\"PE\",\"perf_mode\":\"DoubleRow\","
        "\"psum_zero_region\":2048,\"tile_size\":[128,128]}"
        "]}],\"allocations\":[{\"name\":\"x\",\"kind\":\"ExternalInput\",\"dtype\":"
        "\"bfloat16\","
        "\"tensor_shape\":[128,128],\"memorylocations\":[{\"name\":\"x0\",\"type\":\"Input\","
        "\"addr\":18446744073709551615}]}]}]}";
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    char *good = cps_arena_strdup(a, text);
    char *huge = strstr(good, "1e400000000000");
    memcpy(huge, "0.100000000000", 14); // a number no double holds is no JSON of ours
    CHECK(parse(a, d, text) == NULL && has(d, CPS_E9301));
    cps_diags_clear(d);
    cps_bir *b = parse(a, d, good);
    CHECK(b != NULL);
    CHECK_INT(cps_diags_errors(d), 0);
    CHECK(has(d, CPS_N9306));
    if (!b) {
        bir_report(d);
        return;
    }
    cps_bir_stats s;
    cps_bir_stats_of(b, &s);
    CHECK_INT(s.functions, 1);
    CHECK_INT(s.blocks, 1);
    CHECK_INT(s.instructions, 4);
    CHECK_INT(s.queues, 1);
    CHECK_INT(s.dma_blocks, 1);
    CHECK_INT(s.allocations, 1);
    CHECK_INT(s.unknown, 3); // frobnicate, Frob, Turbo
    cps_buf one = {0}, two = {0};
    cps_bir_print(b, &one);
    CHECK(strstr(one.data, "18446744073709551615") != NULL);
    CHECK(strstr(one.data, "\"frobnicate\": 1.50") != NULL);
    CHECK(strstr(one.data, "0.100000000000") != NULL);
    CHECK(strstr(one.data, "\"basic_blocks\"") != NULL);
    cps_bir *again = parse(a, d, one.data);
    CHECK(again != NULL);
    if (again)
        cps_bir_print(again, &two);
    CHECK(two.n == one.n && !memcmp(one.data, two.data, one.n));
    // No streams can be made of it, and it says why.
    cps_diags_clear(d);
    CHECK(cps_bir_kernel(a, b, d) == NULL && has(d, CPS_E9307));
    cps_buf_fini(&one);
    cps_buf_fini(&two);
    cps_diags_destroy(d);
    cps_arena_destroy(a);
}

// ---- broken documents ----

#define FUNCTION(blocks)                                                                       \
    "{\"functions\":[{\"name\":\"f\",\"allocations\":[],\"blocks\":[" blocks "]}]}"
#define INST(rest)                                                                             \
    FUNCTION("{\"name\":\"b\",\"instructions\":[{\"name\":\"i\",\"engine\":\"SP\"," rest "}]"  \
             "}")

static void
broken(void)
{
    static const struct {
        const char *text, *where;
        cps_code code;
    } rows[] = {
        {"", "", CPS_E9301},
        {"{", "", CPS_E9301},
        {"[]", "", CPS_E9301},
        {"{\"functions\":[],\"functions\":[]}", "", CPS_E9301},
        {"{\"version\":2}", "", CPS_E9301},
        {"{\"functions\":3}", "/functions", CPS_E9302},
        {"{\"functions\":[3]}", "/functions", CPS_E9302},
        {"{\"functions\":[],\"version\":3}", "/version", CPS_E9302},
        {"{\"functions\":[],\"version\":\"2\"}", "/version", CPS_E9302},
        {"{\"functions\":[{\"blocks\":[]}]}", "/functions/0", CPS_E9303},
        {"{\"functions\":[{\"name\":\"f\"}]}", "/functions/0", CPS_E9303},
        {FUNCTION("{\"instructions\":[]}"), "/functions/0/blocks/0", CPS_E9303},
        {FUNCTION("{\"name\":\"b\"}"), "/functions/0/blocks/0", CPS_E9303},
        {FUNCTION("{\"name\":\"b\",\"instructions\":[{\"opcode\":\"NoOp\"}]}"),
         "/functions/0/blocks/0/instructions/0", CPS_E9303},
        {FUNCTION("{\"name\":\"b\",\"instructions\":[]},{\"name\":\"b\",\"instructions\":[]}"),
         "/functions/0/blocks/1/name", CPS_E9304},
        {INST("\"opcode\":7"), "/functions/0/blocks/0/instructions/0/opcode", CPS_E9302},
        {INST("\"opcode\":\"DMATrigger\",\"queue\":\"q\""),
         "/functions/0/blocks/0/instructions/0/queue", CPS_E9305},
        {INST("\"opcode\":\"DMATrigger\",\"dma_blocks\":[\"q_0\"]"),
         "/functions/0/blocks/0/instructions/0/dma_blocks/0", CPS_E9305},
        {INST("\"opcode\":\"NoOp\",\"dependencies\":[\"j\"]"),
         "/functions/0/blocks/0/instructions/0/dependencies/0", CPS_E9305},
        {INST("\"opcode\":\"NoOp\",\"dependencies\":[[\"i\",8]]"),
         "/functions/0/blocks/0/instructions/0/dependencies", CPS_E9302},
        {INST("\"opcode\":\"UncondBranch\",\"target\":\"c\""),
         "/functions/0/blocks/0/instructions/0/target", CPS_E9305},
        {INST("\"opcode\":\"NoOp\",\"ins\":[{\"kind\":\"physical_ap\",\"ap\":[[1,1]],"
              "\"offset\":0,"
              "\"dtype\":\"int8\",\"memref\":\"m\",\"memsetref\":\"m\"}]"),
         "/functions/0/blocks/0/instructions/0/ins/0/memref", CPS_E9305},
        {INST("\"opcode\":\"NoOp\",\"ins\":[{\"kind\":\"physical_ap\",\"ap\":[[1,\"1\"]],"
              "\"offset\":0}]"),
         "/functions/0/blocks/0/instructions/0/ins/0/ap", CPS_E9302},
        {INST("\"opcode\":\"NoOp\",\"ins\":[{\"kind\":\"register_access\",\"regref\":\"r1\"}]"),
         "/functions/0/blocks/0/instructions/0/ins/0/regref", CPS_E9305},
        {INST("\"opcode\":\"NoOp\",\"sync_info\":[]"),
         "/functions/0/blocks/0/instructions/0/sync_info", CPS_E9302},
        {INST("\"opcode\":\"NoOp\",\"copse\":1"), "/functions/0/blocks/0/instructions/0/copse",
         CPS_E9302},
        {INST("\"opcode\":\"NoOp\",\"optin_passes\":[1]"),
         "/functions/0/blocks/0/instructions/0/optin_passes", CPS_E9302},
    };
    for (size_t i = 0; i < cps_countof(rows); i++) {
        cps_arena *a = cps_arena_create();
        cps_diags *d = cps_diags_create();
        CHECK(parse(a, d, rows[i].text) == NULL);
        bool ok = has(d, rows[i].code) && strstr(cps_diags_text(d, 0), rows[i].where);
        CHECK(ok);
        if (!ok) {
            fprintf(stderr, "row %zu\n", i);
            bir_report(d);
        }
        cps_diags_destroy(d);
        cps_arena_destroy(a);
    }
    // A thousand brackets, and as many wrong members as anyone may care to send.
    cps_buf b = {0};
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    cps_buf_puts(&b, "{\"functions\":");
    for (int i = 0; i < 1000; i++)
        cps_buf_putc(&b, '[');
    CHECK(parse(a, d, b.data) == NULL && has(d, CPS_E9301));
    cps_diags_destroy(d);
    b.n = 0;
    d = cps_diags_create();
    cps_buf_puts(&b, "{\"functions\":[");
    for (int i = 0; i < 20000; i++)
        cps_buf_printf(&b, "%s{\"name\":%d}", i ? "," : "", i);
    cps_buf_puts(&b, "]}");
    CHECK(parse(a, d, b.data) == NULL && has(d, CPS_E9303));
    CHECK(cps_diags_errors(d) >= 40000);
    cps_diags_destroy(d);
    cps_arena_destroy(a);
    cps_buf_fini(&b);
}

// A document of ours with one thing changed: a kernel, or E9307 with the place.
static void
no_kernels(void)
{
    static const struct {
        const char *from, *to, *says;
    } rows[] = {
        {"\"arch\": \"gen3\"", "\"arch\": \"gen9\"", "arch"},
        {"\"opcode\": \"TensorCopy\"", "\"opcode\": \"NKIKernel\"", "no record is known"},
        {"\"engine\": \"DVE\"", "\"engine\": \"DMA\"", "engine"},
        {"\"offset\": 0}", "\"offset\": -1}", "offset"},
        {"\"type\": \"SB\"", "\"type\": \"Input\"", "a tensor has"},
        {"\"addr\": 0", "\"addr\": 99999999", "inside its memory"},
        {"\"kind\": \"ExternalInput\"", "\"kind\": \"Pointer\"", "input, output"},
        {"\"dtype\": \"float32\", \"kind\": \"physical_ap\"",
         "\"dtype\": \"complex\", \"kind\": \"physical_ap\"", "dtype"},
        {"\"mode\": \"sem-inc\"", "\"mode\": \"sem-frob\"", "sync_info"},
        {"\"perf_mode\": \"None\"", "\"perf_mode\": \"Fast\"", "perf_mode"},
        {"\"value\": 16", "\"value\": 15", "adds 16"},
        {"\"opcode\": \"DMADescriptorCopy\"", "\"opcode\": \"Load\"", "no descriptor"},
    };
    tp p = tp_new("trn2");
    tp_make_matmul(&p, CPS_DT_BF16, 128, 128, 512);
    cps_notes n = {0};
    cps_kbin *k = compile(&p, &n);
    CHECK(k != NULL);
    cps_buf text = {0};
    if (k)
        cps_bir_write(k, &n, &text);
    for (size_t i = 0; k && i < cps_countof(rows); i++) {
        const char *at = strstr(text.data, rows[i].from);
        // the last one stands in the descriptors, behind the instructions
        if (!strcmp(rows[i].from, "\"value\": 16"))
            at = strstr(strstr(text.data, "\"dma_blocks\": ["), "\"value\": 16");
        for (const char *q = at; q && !strncmp(rows[i].from, "\"value", 6);
             q = strstr(q + 1, rows[i].from))
            at = q;
        CHECK(at != NULL);
        if (!at)
            continue;
        char *changed = cps_arena_printf(p.a, "%.*s%s%s", (int)(at - text.data), text.data,
                                         rows[i].to, at + strlen(rows[i].from));
        cps_diags *d = cps_diags_create();
        cps_bir *b = parse(p.a, d, changed);
        bool ok = b && !cps_bir_kernel(p.a, b, d) && has(d, CPS_E9307);
        bool said = false;
        for (unsigned m = 0; m < cps_diags_count(d); m++)
            said = said || (cps_diags_code(d, m) == CPS_E9307 &&
                            strstr(cps_diags_text(d, m), rows[i].says));
        CHECK(ok && said);
        if (!ok || !said) {
            fprintf(stderr, "row %zu\n", i);
            bir_report(d);
        }
        cps_diags_destroy(d);
    }
    cps_buf_fini(&text);
    tp_free(&p);
}

// Damaged texts: read or refused, printed and made into kernels or refused; never a crash.
static void
mutants(void)
{
    tp p = tp_new("trn3");
    tp_make_ops(&p);
    cps_notes n = {0};
    cps_kbin *k = compile(&p, &n);
    cps_buf text = {0};
    if (k)
        cps_bir_write(k, &n, &text);
    CHECK(k != NULL);
    static const char *const words[] = {
        "-1",         "0",     "99999999999", "18446744073709551615",
        "\"r300\"",   "null",  "[]",          "{}",
        "\"sb_all\"", "1e300", "true",        "\"\""};
    unsigned read = 0, made = 0;
    for (unsigned seed = 0; k && seed < 400; seed++) {
        cps_rng r;
        cps_rng_init(&r, seed, 5);
        cps_arena *a = cps_arena_create();
        cps_diags *d = cps_diags_create();
        char *t = cps_arena_strndup(a, text.data, text.n);
        for (unsigned i = 1 + (unsigned)cps_rng_below(&r, 3); i-- > 0;) {
            // a number or a letter somewhere becomes another
            size_t at = (size_t)cps_rng_below(&r, text.n);
            const char *w = words[cps_rng_below(&r, cps_countof(words))];
            while (at + 32 < text.n && !(t[at] >= '0' && t[at] <= '9'))
                at++;
            if (cps_rng_below(&r, 2)) {
                size_t end = at;
                while (end < text.n && t[end] >= '0' && t[end] <= '9')
                    end++;
                t = cps_arena_printf(a, "%.*s%s%s", (int)at, t, w, t + end);
                if (strlen(t) < text.n)
                    break;
            } else {
                t[at] = (char)('0' + cps_rng_below(&r, 10));
            }
        }
        cps_bir *b = parse(a, d, t);
        read += b != NULL;
        if (b) {
            cps_buf out = {0};
            cps_bir_print(b, &out);
            cps_kbin *x = cps_bir_kernel(a, b, d);
            made += x != NULL;
            CHECK((x == NULL) == has(d, CPS_E9307));
            cps_buf_fini(&out);
        } else {
            CHECK(cps_diags_errors(d) > 0);
        }
        cps_diags_destroy(d);
        cps_arena_destroy(a);
    }
    printf("400 mutants: %u read, %u made\n", read, made);
    CHECK(read > 100 && made > 20 && made < read);
    cps_buf_fini(&text);
    tp_free(&p);
}

// BIR.md lists every object and instruction with its members, from the rows: each line below
// must stand in it. Members and names that are ours carry a star.
static void
document(void)
{
    cps_file f;
    cps_buf line = {0};
    CHECK(cps_file_open("codegen/bir/BIR.md", true, &f));
    cps_arena *a = cps_arena_create();
    const char *text = cps_arena_strndup(a, (const char *)f.data, f.n);
    for (unsigned o = 1; o < CPS_BO_COUNT; o++) {
        line.n = 0;
        cps_buf_printf(&line, "| %s |", cps_bobjs[o].doc);
        for (unsigned i = 0; i < cps_bkey_count; i++)
            if (cps_bkeys[i].owner == o)
                cps_buf_printf(&line, " `%s`%s", cps_bkeys[i].key,
                               cps_bkeys[i].sure == 'S' ? "" : "*");
        cps_buf_puts(&line, " |\n");
        CHECK(strstr(text, line.data) != NULL);
        if (!strstr(text, line.data))
            fputs(line.data, stderr);
    }
    for (unsigned o = 1; o < CPS_BOP_COUNT; o++) {
        const cps_bop_row *r = &cps_bops[o];
        line.n = 0;
        cps_buf_printf(&line, "| %s%s |", r->name, r->sure == 'S' ? "" : "*");
        if (r->ordinal >= 0)
            cps_buf_printf(&line, " %d |", r->ordinal);
        else
            cps_buf_puts(&line, " |");
        if (r->like)
            cps_buf_printf(&line, " as %s", cps_bops[r->like].name);
        for (unsigned i = 0; i < cps_bopkey_count; i++)
            if (cps_bopkeys[i].owner == o)
                cps_buf_printf(&line, " `%s`%s", cps_bopkeys[i].key,
                               cps_bopkeys[i].sure == 'S' ? "" : "*");
        cps_buf_puts(&line, " |\n");
        CHECK(strstr(text, line.data) != NULL);
        if (!strstr(text, line.data))
            fputs(line.data, stderr);
    }
    cps_buf_fini(&line);
    cps_arena_destroy(a);
    cps_file_close(&f);
}

int
main(void)
{
    document();
    kernels();
    notes();
    every_record();
    damaged_kernels();
    foreign();
    broken();
    no_kernels();
    mutants();
    return CHECK_DONE();
}
