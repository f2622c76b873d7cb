/* The instruction table: lookups, single fields, and new bundles against golden bytes. */
#include "codegen/isa/isa.h"
#include "tests/check.h"

#include <stdlib.h>

static void
hex(const cps_bundle *b, char out[129])
{
    for (unsigned i = 0; i < CPS_BUNDLE_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", b->b[i]);
}

static cps_ap
ap1(uint32_t addr, uint16_t n)
{
    return (cps_ap){.addr = addr, .nd = 1, .step = {1}, .num = {n}};
}

static void
lookups(void)
{
    CHECK_INT(cps_isa_find(0x21, CPS_V2), CPS_INSN_ACTIVATE);
    CHECK_INT(cps_isa_find(0x25, CPS_V3), CPS_INSN_NONE);
    CHECK_INT(cps_isa_find(0x25, CPS_V4), CPS_INSN_ACTIVATE2);
    CHECK_INT(cps_isa_find(0x8A, CPS_V2), CPS_INSN_TENSOR_TENSOR_ADD_BF16);
    CHECK_INT(cps_isa_find(0x8A, CPS_V3), CPS_INSN_NONE);
    CHECK_INT(cps_isa_find(0x00, CPS_V3), CPS_INSN_NONE);
    CHECK_INT(cps_isa_find_any(0xF3), CPS_INSN_TENSOR_TENSOR_INT_WIDE);
    CHECK_INT(cps_isa_find_name("matmul"), CPS_INSN_MATMUL);
    CHECK_INT(cps_isa_find_name("no_such"), CPS_INSN_NONE);
    for (unsigned i = 1; i < CPS_INSNS; i++)
        for (unsigned g = 0; g < CPS_GENS; g++) {
            bool has = cps_insns[i].gens & (1u << g);
            uint8_t op = cps_isa_opcode((cps_insn)i, (cps_gen)g);
            CHECK_INT(cps_isa_find(op, (cps_gen)g), has ? (int)i : CPS_INSN_NONE);
        }
    // Counts of the enum union in the public sources: 140 real, 31 pseudo.
    unsigned real = 0, pseudo = 0;
    for (unsigned i = 1; i < CPS_INSNS; i++)
        *(cps_insns[i].pseudo ? &pseudo : &real) += 1;
    CHECK(real >= 140);
    CHECK(pseudo >= 31);
}

static void
names(void)
{
    CHECK_STR(cps_alu_name(0x04), "add");
    CHECK_INT(cps_alu_parse("multiply"), CPS_ALU_MULT);
    CHECK_INT(cps_alu_parse("frobnicate"), -1);
    CHECK(cps_alu_name(0x1E) == NULL);
    CHECK_INT(cps_alu_class_of(CPS_ALU_ABS_MAX, CPS_V3), CPS_ALUC_NONE);
    CHECK_INT(cps_alu_class_of(CPS_ALU_ABS_MAX, CPS_V4), CPS_ALUC_GENERAL);
    CHECK_STR(cps_actfn_name(7), "exp");
    CHECK_INT(cps_actfn_parse("log"), CPS_ACTFN_LN);
    CHECK_INT(cps_actfn_set(CPS_ACTFN_EXP), 0);
    CHECK_STR(cps_actset_name(14), "reciprocal_sqrt_and_small");
    CHECK_INT(cps_isa_dtype(0x03), CPS_DT_U8);
    CHECK_INT(cps_isa_dtype(0x0E), CPS_DT_FP8E4M3);
    CHECK_INT(cps_isa_dtype(0x0A), CPS_DT_FP32);
    CHECK_INT(cps_isa_dtype(0x17), CPS_DT_NONE);
    CHECK_STR(cps_isa_value_name(CPS_ENUM_ACCUM_CMD, 3), "ZERO_ACCUMULATE");
    CHECK_INT(cps_isa_value_parse(CPS_ENUM_ACCUM_CMD, "idle", 4), 0);
    CHECK_INT(cps_isa_value_parse(CPS_ENUM_ACCUM_CMD, "idl", 3), -1);
    CHECK_STR(cps_isa_value_name(CPS_ENUM_WAIT_MODE, 5), "SEM_GE_IMM");
    CHECK_STR(cps_isa_value_name(CPS_ENUM_UPDATE_MODE, 0x13), "SEM_INC_COMPLETE");
    CHECK_INT(CPS_WAIT_SEM_GE_REG, 0x85);
    CHECK_INT(CPS_UPDATE_SEM_ADD_IMM_COMPLETE, 0x15);
    CHECK_INT(cps_engine_parse("pool"), CPS_POOL);
    CHECK_INT(cps_engine_parse("cpu"), CPS_ENGINE_ANY);
}

static void
addresses(void)
{
    CHECK_INT(cps_addr_sbuf(96, 0x10), 0x01800010);
    CHECK_INT(cps_addr_psum(32, 2 * CPS_PSUM_BANK + 4), 0x02101004);
    CHECK_INT(cps_addr_psum(127, 7 * CPS_PSUM_BANK), 0x023FB800);
    CHECK(cps_addr_is_psum(0x023FB800) && !cps_addr_is_psum(0x01FC0000));
    CHECK_INT(cps_addr_partition(0x02101004), 32);
    CHECK_INT(cps_addr_byte(0x01800010), 0x10);
    CHECK_INT(cps_isa_pe_group(0, 128), 0xF);
    CHECK_INT(cps_isa_pe_group(64, 64), 0xC);
    CHECK_INT(cps_isa_pe_group(96, 17), 8);
    CHECK_INT(cps_isa_pe_group(32, 33), 0);
    CHECK_INT(cps_isa_pe_group(0, 0), 0);
}

/* The START matmul of the golden vectors, built field by field. */
static void
build(void)
{
    cps_bundle b = cps_isa_new(CPS_INSN_MATMUL, CPS_V3);
    cps_ap src = ap1(cps_addr_sbuf(0, 0x400), 512), dst = ap1(cps_addr_psum(0, 0), 512), got;
    cps_isa_set_ap(&b, CPS_F_S3D3_MM_src, &src);
    cps_isa_set_ap(&b, CPS_F_S3D3_MM_dst, &dst);
    cps_isa_set(&b, CPS_F_S3D3_MM_in_dtype, 6);
    cps_isa_set(&b, CPS_F_S3D3_MM_num_active_rows, 128);
    cps_isa_set(&b, CPS_F_S3D3_MM_num_active_cols, 128);
    cps_isa_set(&b, CPS_F_S3D3_MM_psum_accumulate_flags, CPS_PSUM_ACCUMULATE_START);
    cps_isa_set(&b, CPS_F_S3D3_MM_row_grp, cps_isa_pe_group(0, 128));
    cps_isa_set(&b, CPS_F_S3D3_MM_col_grp, cps_isa_pe_group(0, 128));
    char h[129];
    hex(&b, h);
    CHECK_STR(h, "0210000000000000000000000000000000040000010001000100000201000100"
                 "0600000000008080000000010f0f000000000002010001000100000201000100");
    cps_isa_get_ap(&b, CPS_F_S3D3_MM_dst, &got);
    CHECK_INT(got.addr, CPS_PSUM_BASE);
    CHECK_INT(got.nd, 3);
    CHECK_INT(got.num[0], 512);
    CHECK_INT(got.step[2], 1);

    b = cps_isa_new(CPS_INSN_IOTA, CPS_V2);
    cps_ap pattern = {.addr = 10, .nd = 1, .step = {1}, .num = {128}};
    cps_ap out = ap1(0x2000, 128);
    cps_isa_set_ap(&b, CPS_F_D4_IOTA_pattern, &pattern);
    cps_isa_set_ap(&b, CPS_F_D4_IOTA_dst, &out);
    cps_isa_set(&b, CPS_F_D4_IOTA_out_dtype, 8);
    cps_isa_set(&b, CPS_F_D4_IOTA_ch, 128);
    cps_isa_set(&b, CPS_F_D4_IOTA_channel_multiplier, 1000);
    hex(&b, h);
    CHECK_STR(h, "7e10000000000000000000000a00000001000000000000008000010001000100"
                 "00088000e8030000000000000020000001000100010001008000010001000100");

    b = cps_isa_new(CPS_INSN_MEMSET, CPS_V3);
    cps_isa_set_f32(&b, CPS_F_D4_MR_set_value, 1.0f);
    CHECK_INT(cps_isa_get(&b, CPS_F_D4_MR_set_value), 0x3F800000);
    b = cps_isa_new(CPS_INSN_MOVE, CPS_V3);
    cps_isa_set_elem(&b, CPS_F_CTRL_MV_imm, 7, 42);
    CHECK_INT(b.b[60], 42);
    CHECK_INT(cps_isa_get_elem(&b, CPS_F_CTRL_MV_imm, 7), 42);
    b = cps_isa_new(CPS_INSN_DRAIN, CPS_V3);
    CHECK_INT(b.b[40], 1);
}

/* Setting a field changes its bytes and no others; reading gives back what was set. */
static void
fields_are_exact(void)
{
    for (unsigned f = 1; f < CPS_FIELDS; f++) {
        const cps_field_row *r = &cps_fields[f];
        cps_bundle b;
        memset(&b, 0xA5, sizeof b);
        if (r->kind == CPS_FK_TENSOR || r->kind == CPS_FK_DATA4D) {
            cps_ap in = {.addr = 0x12345678, .nd = r->arg}, out;
            for (unsigned i = 0; i < r->arg; i++) {
                in.step[i] = (int16_t)(-3 - (int)i);
                in.num[i] = (uint16_t)(60000u + i);
            }
            cps_isa_set_ap(&b, (cps_field)f, &in);
            cps_isa_get_ap(&b, (cps_field)f, &out);
            CHECK(out.addr == in.addr && out.nd == in.nd);
            for (unsigned i = 0; i < r->arg; i++)
                CHECK(out.step[i] == in.step[i] && out.num[i] == in.num[i]);
        } else if (r->bits <= 64) {
            uint64_t mask = r->bits == 64 ? ~0ull : (1ull << r->bits) - 1;
            cps_isa_set(&b, (cps_field)f, 0x1122334455667788ull & mask);
            CHECK(cps_isa_get(&b, (cps_field)f) == (0x1122334455667788ull & mask));
        }
        for (unsigned i = 0; i < CPS_BUNDLE_BYTES; i++)
            if (i < r->byte || i >= r->byte + r->bits / 8u)
                CHECK(b.b[i] == 0xA5);
    }
}

/* Semantics that rows name exist in the simulator, and those of the simulator are named. */
static void
semantics(void)
{
    static const char *const known[] = {
#define SEM(name, ...) name,
#define SEMP(name, ...) name,
#include "runtime/sim/sem.def"
    };
    unsigned executable = 0;
    for (unsigned i = 1; i < CPS_INSNS; i++) {
        bool found = strcmp(cps_insns[i].sem, "none") == 0;
        executable += !found;
        for (size_t k = 0; k < cps_countof(known); k++)
            found = found || strcmp(known[k], cps_insns[i].sem) == 0;
        CHECK(found);
        if (!found)
            fprintf(stderr, "%s: no semantics '%s'\n", cps_insns[i].name, cps_insns[i].sem);
    }
    CHECK(executable > 100);
    for (size_t k = 0; k < cps_countof(known); k++) {
        bool used = false;
        for (unsigned i = 1; i < CPS_INSNS; i++)
            used = used || strcmp(known[k], cps_insns[i].sem) == 0;
        CHECK(used);
        if (!used)
            fprintf(stderr, "semantics '%s' are no row's\n", known[k]);
    }
}

int
main(void)
{
    lookups();
    semantics();
    names();
    addresses();
    build();
    fields_are_exact();
    return CHECK_DONE();
}
