/* Descriptors of DMA queues: the rows cover every bit once, the driver's constants come out,
 * text goes both ways for any bytes, and each mistake has its code and place. */
#include "codegen/isa/desc.h"
#include "runtime/base/rng.h"
#include "tests/check.h"

#include <stdlib.h>

static cps_diags *diags;

static void
rows(void)
{
    for (unsigned form = 0; form < CPS_QFORMS; form++) {
        unsigned covered[128] = {0}, wrong = 0;
        for (unsigned f = 0; f < CPS_QFIELDS; f++) {
            const cps_qfield_row *r = &cps_qfields[f];
            CHECK(r->bits > 0 && r->at + r->bits <= 128 && r->doc[0]);
            CHECK(r->at / 64 == (r->at + r->bits - 1u) / 64);
            for (unsigned i = 0; r->form == form && i < r->bits; i++)
                covered[r->at + i]++;
            for (unsigned g = 0; g < f; g++)
                CHECK(cps_qfields[g].form != r->form || strcmp(cps_qfields[g].name, r->name));
        }
        for (unsigned i = 0; i < 128; i++)
            wrong += covered[i] != 1;
        CHECK_INT(wrong, 0);
    }
}

// Word 1 of a plain copy, and with a write barrier, as the driver's defaults make them.
static void
constants(void)
{
    cps_qdesc d = {0, 0, 0};
    cps_qdesc_set(&d, CPS_QF_M2S_last_block, 1);
    cps_qdesc_set(&d, CPS_QF_M2S_first_block, 1);
    cps_qdesc_set(&d, CPS_QF_M2S_copy, 1);
    cps_qdesc_set(&d, CPS_QF_M2S_op, CPS_QDESC_OP_CME);
    CHECK_INT(d.w1, 0x01080003);
    cps_qdesc_set(&d, CPS_QF_M2S_write_barrier, 1);
    CHECK_INT(d.w1, 0x05080003);
    cps_qdesc_set(&d, CPS_QF_M2S_op, CPS_QDESC_OP_CCE);
    CHECK_INT(d.w1, 0x06080003);
    cps_qdesc_set(&d, CPS_QF_M2S_length, 4096);
    cps_qdesc_set(&d, CPS_QF_M2S_ring, 1);
    cps_qdesc_set(&d, CPS_QF_M2S_first, 1);
    cps_qdesc_set(&d, CPS_QF_M2S_last, 1);
    CHECK_INT(d.w0, 0x0D001000);
    CHECK_INT(cps_qdesc_bytes(&d), 4096);
    CHECK_INT(cps_qdesc_bytes(&(cps_qdesc){0, 0, 0}), 65536);
    cps_qdesc_set(&d, CPS_QF_M2S_address, 0x123456789ABCDEFull);
    uint8_t b[CPS_QDESC_BYTES];
    cps_qdesc_store(b, &d);
    CHECK_INT(b[1], 0x10);
    CHECK_INT(b[3], 0x0D);
    CHECK_INT(b[7], 0x06);
    CHECK_INT(b[8], 0xEF);
    cps_qdesc e = cps_qdesc_load(b);
    CHECK(e.w0 == d.w0 && e.w1 == d.w1 && e.addr == d.addr);
}

static void
text(void)
{
    static const struct {
        uint32_t w0, w1;
        uint64_t addr;
        const char *text;
    } want[] = {
        {0x0D001000, 0x01080003, 0x2000000000,
         "M2S address=0x2000000000 length=4096 ring=1 first last last_block first_block copy "
         "op=CME"},
        {0x0D000000, 0, 0x100000000, "S2M address=0x100000000 length=65536 ring=1 first last"},
        {0x11000004, 0x05080003, 0x40,
         "M2S address=0x40 length=4 ring=1 interrupt last_block first_block copy op=CME "
         "write_barrier"},
        {0x00000001, 0xFC700000, 0, "M2S length=1 op_type=CRC8 op=0 write_barrier netag=31"},
        {0x42AA0001, 0x01B80000, 0,
         "M2S length=1 reserved0=0xaa ring=2 barrier copy op_type=CHECKSUM16 op=3"},
    };
    for (size_t i = 0; i < cps_countof(want); i++) {
        cps_qdesc d = {want[i].w0, want[i].w1, want[i].addr};
        cps_buf b = {0};
        cps_qdesc_print(&d, CPS_QFORMS, &b);
        if (i != 3) // op 0 is left out
            CHECK_STR(b.data, want[i].text);
        cps_buf_fini(&b);
        CHECK(cps_qdesc_parse(want[i].text, strlen(want[i].text), 0, diags, &b));
        CHECK_INT(b.n, CPS_QDESC_BYTES);
        if (b.n == CPS_QDESC_BYTES) {
            cps_qdesc e = cps_qdesc_load((const uint8_t *)b.data);
            CHECK(e.w0 == d.w0 && e.w1 == d.w1 && e.addr == d.addr);
        }
        cps_buf_fini(&b);
    }
}

static void
any_bytes(void)
{
    cps_rng r;
    cps_rng_init(&r, 5, 0);
    unsigned wrong = 0;
    for (unsigned k = 0; k < 20000; k++) {
        uint8_t b[CPS_QDESC_BYTES];
        for (unsigned i = 0; i < sizeof b; i++)
            b[i] = (uint8_t)(cps_rng_below(&r, 3) ? cps_rng_next(&r) >> 40 : 0);
        cps_qdesc d = cps_qdesc_load(b);
        cps_buf text = {0}, back = {0};
        cps_qdesc_print(&d, (cps_qform)(k % 3), &text);
        wrong += !cps_qdesc_parse(text.data, text.n, 0, diags, &back) || back.n != sizeof b ||
                 memcmp(back.data, b, sizeof b) != 0;
        bool ok = cps_qdesc_verify(&d, (cps_qform)(k % 3), diags, CPS_NOSPAN);
        wrong += ok != (cps_diags_errors(diags) == 0);
        cps_diags_clear(diags);
        cps_buf_fini(&text);
        cps_buf_fini(&back);
    }
    CHECK_INT(wrong, 0);
}

static void
mistakes(void)
{
    static const struct {
        const char *line, *at;
        cps_code code;
    } bad[] = {
        {"FROB", "FROB", CPS_E9201},
        {"m2s", "m2s", CPS_E9201},
        {"M2S adress=3", "adress", CPS_E9202},
        {"S2M op=CME", "op", CPS_E9202},
        {"M2S length=0", "0", CPS_E9204},
        {"M2S length=65537", "65537", CPS_E9204},
        {"M2S ring=4", "4", CPS_E9204},
        {"M2S op=FROB", "FROB", CPS_E9203},
        {"M2S op=8", "8", CPS_E9204},
        {"M2S ring", NULL, CPS_E9203},
        {"M2S first first", "first", CPS_E9206},
        {"M2S first=2", "2", CPS_E9204},
        {"M2S,first", ",first", CPS_E9203},
        {"M2S =3", "=", CPS_E9202},
    };
    for (size_t i = 0; i < cps_countof(bad); i++) {
        cps_buf out = {0}, text = {0};
        cps_diags_clear(diags);
        size_t n = strlen(bad[i].line);
        uint32_t file = cps_diags_source(diags, "d.cas", bad[i].line, n);
        CHECK(!cps_qdesc_parse(bad[i].line, n, file, diags, &out));
        CHECK_INT(out.n, 0);
        CHECK_INT(cps_diags_errors(diags), 1);
        CHECK(cps_diags_code(diags, 0) == bad[i].code);
        cps_diags_render(diags, &text, false);
        char mark[64] = "^";
        if (bad[i].at)
            memset(mark + 1, '~', strlen(bad[i].at) - 1);
        CHECK(strstr(text.data, mark) != NULL);
        cps_buf_fini(&text);
        cps_buf_fini(&out);
    }
    static const struct {
        cps_qdesc d;
        cps_code code;
    } broken[] = {{{1 << 16, 1, 0}, CPS_E5506},
                  {{0, 4, 0}, CPS_E5506},
                  {{1 << 16, 0, 0}, CPS_E5506},
                  {{0, 3 << 23, 0}, CPS_E5509}};
    for (size_t i = 0; i < cps_countof(broken); i++) {
        cps_diags_clear(diags);
        CHECK(!cps_qdesc_verify(&broken[i].d, CPS_QFORMS, diags, CPS_NOSPAN));
        CHECK(cps_diags_count(diags) == 1 && cps_diags_code(diags, 0) == broken[i].code);
    }
    cps_diags_clear(diags);
}

int
main(void)
{
    diags = cps_diags_create();
    rows();
    constants();
    text();
    any_bytes();
    mistakes();
    cps_diags_destroy(diags);
    return CHECK_DONE();
}
