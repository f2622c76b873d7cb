/* Every row of the instruction table with random fields, and random programs of them: whatever
 * loads must run or fail with a diagnostic, and never touch memory that is not its own (run
 * under sanitizers). */
#include "tests/sim/kb.h"

#include "runtime/base/file.h"
#include "runtime/base/rng.h"

/* A random value that is often near what a field may hold. */
static uint64_t
value(cps_rng *r, const cps_field_row *f)
{
    switch ((cps_fkind)f->kind) {
    case CPS_FK_DTYPE:
        return 2 + cps_rng_below(r, 15);
    case CPS_FK_PAIR:
        return (2 + cps_rng_below(r, 13)) | (2 + cps_rng_below(r, 13)) << 4;
    case CPS_FK_ALU:
        return cps_rng_below(r, 8) ? cps_rng_below(r, 0x24) : cps_rng_below(r, 256);
    case CPS_FK_ENUM:
        return cps_rng_below(r, 5);
    case CPS_FK_ACTFN:
        return cps_rng_below(r, 40);
    case CPS_FK_IMM:
        return cps_rng_below(r, 2) ? cps_rng_below(r, 4096) * 4 : cps_rng_next(r);
    case CPS_FK_ADDR8:
        return cps_rng_below(r, 2) ? cps_rng_below(r, 1 << 25)
                                   : 0x100000000ull + cps_rng_below(r, 70000);
    default:
        return cps_rng_below(r, 4) ? cps_rng_below(r, 200) : cps_rng_next(r);
    }
}

static cps_ap
pattern(cps_rng *r, unsigned nd)
{
    static const unsigned parts[] = {0, 32, 64, 96};
    cps_ap a = {.nd = (uint8_t)nd};
    unsigned byte = (unsigned)cps_rng_below(r, 4096) * 4;
    unsigned part = parts[cps_rng_below(r, 4)];
    a.addr = cps_rng_below(r, 3) ? cps_addr_sbuf(part, byte) : cps_addr_psum(part, byte);
    if (cps_rng_below(r, 12) == 0)
        a.addr = 0x80000000u | (unsigned)cps_rng_below(r, 8);
    if (nd > 1 && cps_rng_below(r, 16) == 0)
        a.addr |= 0x20000000u; // a list of offsets
    static const uint16_t nums[] = {1, 1, 2, 3, 4, 8, 16, 32, 64, 100, 128};
    for (unsigned d = 0; d < nd; d++) {
        a.num[d] = nums[cps_rng_below(r, cps_countof(nums) - (d ? 6 : 0))];
        a.step[d] = (int16_t)(d == 0 ? 1 : (int)cps_rng_below(r, 64));
        if (cps_rng_below(r, 10) == 0)
            a.step[d] = (int16_t)((int)cps_rng_below(r, 400) - 200);
        if (cps_rng_below(r, 40) == 0)
            a.num[d] = (uint16_t)cps_rng_next(r);
    }
    return a;
}

/* Changes one field of an instruction. */
static void
change(cps_rng *r, cps_bundle *b, cps_gen g)
{
    cps_insn id = cps_isa_find(b->b[0], g);
    unsigned fmt = cps_insns[id].format, first = cps_formats[fmt].first;
    unsigned n = cps_formats[fmt + 1].first - first;
    if (n == 0)
        return;
    unsigned k = first + (unsigned)cps_rng_below(r, n);
    const cps_field_row *f = &cps_fields[k];
    if (f->kind == CPS_FK_TENSOR || f->kind == CPS_FK_DATA4D) {
        cps_ap a, x = pattern(r, f->arg);
        cps_isa_get_ap(b, (cps_field)k, &a);
        unsigned d = (unsigned)cps_rng_below(r, f->arg), what = (unsigned)cps_rng_below(r, 4);
        if (what == 0)
            a.addr = x.addr;
        else if (what == 1)
            a.step[d] = (int16_t)((int)cps_rng_below(r, 5) - 2);
        else if (what == 2 && a.num[0] % 2 == 0 && f->arg > 1 && a.num[1] == 1) {
            a.num[0] /= 2; // the same elements, folded
            a.num[1] = 2;
            a.step[1] = (int16_t)(a.num[0] * a.step[0]);
        } else
            a = x;
        cps_isa_set_ap(b, (cps_field)k, &a);
    } else if (strcmp(f->name, "ch") == 0 || strstr(f->name, "num_active")) {
        static const unsigned rows[] = {1, 32, 64, 96, 128, 5};
        cps_isa_set(b, (cps_field)k, rows[cps_rng_below(r, 6)]);
    } else if (f->kind == CPS_FK_STR || f->kind == CPS_FK_BYTES) {
        b->b[f->byte + cps_rng_below(r, f->bits / 8)] = (uint8_t)cps_rng_below(r, 32);
    } else if (f->arg > 1 && f->kind != CPS_FK_ENUM) {
        cps_isa_set_elem(b, (cps_field)k, (unsigned)cps_rng_below(r, f->arg), value(r, f));
    } else if (f->bits <= 64) {
        cps_isa_set(b, (cps_field)k, value(r, f));
    }
}

/* The published and constructed records of the golden file, as bytes. */
static unsigned
golden(cps_arena *a, cps_bundle **out)
{
    cps_file f;
    CHECK(cps_file_open("tests/golden/isa.tsv", true, &f));
    CPS_VEC(cps_bundle) v = {0};
    const char *p = (const char *)f.data, *end = p + f.n;
    while (p < end) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        eol = eol ? eol : end;
        int tabs = 0;
        const char *q = p;
        while (q < eol && tabs < 3)
            tabs += *q++ == '\t';
        if (*p != '#' && eol - q >= 128) {
            cps_bundle b;
            for (int i = 0; i < CPS_BUNDLE_BYTES; i++) {
                char x[3] = {q[2 * i], q[2 * i + 1], 0};
                b.b[i] = (uint8_t)strtoul(x, NULL, 16);
            }
            cps_vec_push(a, &v, b);
        }
        p = eol + 1;
    }
    cps_file_close(&f);
    *out = v.data;
    return v.n;
}

/* An instruction of row `id`, plain enough to pass the verifier where its rules are general. */
static cps_bundle
plain(cps_rng *r, cps_insn id, cps_gen g)
{
    cps_bundle b = cps_isa_new(id, g);
    unsigned fmt = cps_insns[id].format, slots = 0;
    unsigned t = (unsigned)cps_dtypes[cps_rng_below(r, 2) ? CPS_DT_FP32 : CPS_DT_BF16].wire;
    for (unsigned k = cps_formats[fmt].first; k < cps_formats[fmt + 1].first; k++) {
        const cps_field_row *f = &cps_fields[k];
        if (!(f->gens >> g & 1))
            continue;
        if (f->kind == CPS_FK_TENSOR || f->kind == CPS_FK_DATA4D) {
            cps_ap a = ap1(8192 * slots++, 64);
            cps_isa_set_ap(&b, (cps_field)k, &a);
        } else if (strcmp(f->name, "ch") == 0 || strcmp(f->name, "dst_element_count") == 0) {
            cps_isa_set(&b, (cps_field)k, 64);
        } else if (f->kind == CPS_FK_DTYPE) {
            cps_isa_set(&b, (cps_field)k, t);
        } else if (f->kind == CPS_FK_PAIR) {
            cps_isa_set(&b, (cps_field)k, t | t << 4);
        } else if (f->kind == CPS_FK_ALU) {
            cps_isa_set(&b, (cps_field)k, cps_rng_below(r, 2) ? CPS_ALU_ADD : CPS_ALU_BYPASS);
        }
    }
    return b;
}

static unsigned
run_some(kb *b, unsigned *ran)
{
    static uint8_t room[65536];
    b->d = cps_diags_create();
    bool loaded = cps_sim_load(b->s, b->k, b->d);
    if (loaded) {
        CHECK(cps_sim_bind(b->s, "x", room, sizeof room, true, b->d));
        cps_sim_opts o = {.checks = CPS_CHECK_ALL, .max_steps = 60, .trace = true};
        bool ok = cps_sim_run(b->s, &o, &b->rep, b->d);
        *ran += ok;
        if (!ok && cps_diags_errors(b->d) == 0)
            CHECK(!"a failure without a word");
    } else if (cps_diags_errors(b->d) == 0) {
        CHECK(!"a refusal without a word");
    }
    cps_diags_destroy(b->d);
    b->d = NULL;
    return loaded;
}

static void
try_one(kb *b, cps_engine e, cps_bundle x, unsigned *loaded, unsigned *ran)
{
    for (int k = 0; k < CPS_ENGINES; k++)
        b->k->stream[k].code.n = b->k->stream[k].locs.n = 0;
    kb_put(b, e, x);
    kb_put(b, e, x);
    *loaded += run_some(b, ran);
}

int
main(void)
{
    static const char *const targets[] = {"trn1", "trn2", "trn3"};
    cps_rng r;
    cps_rng_init(&r, 42, 0);
    unsigned made = 0, loaded = 0, ran = 0;
    for (unsigned t = 0; t < 3; t++) {
        kb b = kb_new(targets[t]);
        cps_diags_destroy(b.d);
        kb_var(&b, "x", CPS_VAR_INOUT, CPS_DT_U8, 65536);
        cps_gen g = b.k->gen;
        cps_bundle *seed;
        unsigned n = golden(b.a, &seed);
        CHECK(n > 40);
        for (unsigned id = 1; id < n + CPS_INSNS; id++) {
            cps_insn in =
                id < CPS_INSNS ? (cps_insn)id : cps_isa_find(seed[id - CPS_INSNS].b[0], g);
            const cps_insn_row *row = &cps_insns[in];
            if (in == CPS_INSN_NONE || !(row->gens >> g & 1) || strcmp(row->sem, "none") == 0)
                continue;
            unsigned e = 0, before = loaded;
            while (!(row->engines >> e & 1))
                e++;
            for (unsigned k = 0; k < 30; k++, made++) {
                cps_bundle x = id < CPS_INSNS ? plain(&r, in, g) : seed[id - CPS_INSNS];
                for (unsigned c = (unsigned)cps_rng_below(&r, 4); c > 0; c--)
                    change(&r, &x, g);
                try_one(&b, (cps_engine)e, x, &loaded, &ran);
            }
            if (getenv("CPS_FUZZ_VERBOSE"))
                printf("%s %s: %u of 30\n", targets[t], row->name, loaded - before);
        }
        kb_free(&(kb){.a = b.a, .s = b.s, .d = cps_diags_create()});
    }
    printf("%u instructions, %u loaded, %u ran to the end\n", made, loaded, ran);
    CHECK(made > 5000 && loaded > 2000 && ran > 500);
    return CHECK_DONE();
}
