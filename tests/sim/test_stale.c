/* What a run finds in memory: what earlier runs and earlier kernels of the machine left is never seen, whether the
 * checks were on then or are on now, however little of a block is written. */
#include "tests/sim/kb.h"

#include "runtime/sim/debug.h"

#include <string.h>

enum { PARTS = 128, WIDE = 512 /* fp32 elements: more than one block */, FEW = 10, ODD = 3 };

/* Zeros in n elements of every partition. */
static void
zeros(kb *b, uint32_t at, int step, int n)
{
    cps_bundle m = kb_insn(b, CPS_INSN_MEMSET);
    cps_ap ap = ap1(at, n);
    ap.step[0] = (int16_t)step;
    kb_ap(&m, CPS_F_D4_MR_dst, ap);
    cps_isa_set(&m, CPS_F_D4_MR_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&m, CPS_F_D4_MR_ch, PARTS);
    cps_isa_set(&m, CPS_F_D4_MR_dst_element_count, (unsigned)n);
    kb_put(b, CPS_DVE, m);
}

static void
copy(kb *b, uint32_t from, uint32_t to, int n)
{
    cps_bundle c = kb_insn(b, CPS_INSN_COPY);
    kb_ap(&c, CPS_F_S4D4_TR_src, ap1(from, n));
    kb_ap(&c, CPS_F_S4D4_TR_dst, ap1(to, n));
    cps_isa_set(&c, CPS_F_S4D4_TR_in_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&c, CPS_F_S4D4_TR_out_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&c, CPS_F_S4D4_TR_ch, PARTS);
    kb_put(b, CPS_DVE, c);
}

static uint32_t
place(bool psum, unsigned byte)
{
    return psum ? cps_addr_psum(0, byte) : cps_addr_sbuf(0, byte);
}

/* A kernel of its own: the whole of a region and one behind it are written, or a little and all of it is
 * read into the third. */
static cps_kbin *
kernel(kb *b, bool psum, bool whole)
{
    b->k = cps_kbin_new(b->a, whole ? "whole" : "little", "trn2", b->t->gen);
    if (whole) {
        zeros(b, place(psum, 0), 1, WIDE);
        zeros(b, place(psum, 4 * WIDE), 1, WIDE);
    } else {
        zeros(b, place(psum, 4 * ODD), 2, FEW);
        copy(b, place(psum, 0), place(psum, 8 * WIDE), WIDE);
    }
    return b->k;
}

static bool
run(kb *b, cps_kbin *k, unsigned checks)
{
    cps_sim_opts o = {.checks = checks};
    return cps_sim_load(b->s, k, b->d) && cps_sim_run(b->s, &o, &b->rep, b->d);
}

/* Bytes of partition `part` that are not as the kernel that writes a little leaves them. */
static unsigned
wrong(kb *b, bool psum, unsigned part, bool watched)
{
    static uint8_t got[12 * WIDE], mark[12 * WIDE];
    cps_spot at = {psum ? CPS_SPOT_PSUM : CPS_SPOT_SBUF, part, 0};
    unsigned bad = 0;
    CHECK(cps_sim_peek(b->s, &at, sizeof got, got, mark));
    for (unsigned k = 0; k < 3 * WIDE; k++) {
        unsigned e = k % WIDE;
        bool set = e >= ODD && e < ODD + 2 * FEW && (e - ODD) % 2 == 0, here = k < WIDE;
        uint8_t want = set && k / WIDE != 1 ? 0 : 0xFF;
        bool written = !watched || (here ? set : k >= 2 * WIDE);
        for (unsigned q = 4 * k; q < 4 * k + 4; q++)
            bad += got[q] != want || mark[q] != written;
    }
    return bad;
}

static void
test_left_over(bool psum, unsigned before, unsigned now)
{
    kb b = kb_new("trn2");
    cps_kbin *whole = kernel(&b, psum, true), *little = kernel(&b, psum, false);
    CHECK(run(&b, whole, before));
    for (int again = 0; again < 2; again++) {
        CHECK(run(&b, little, now) == !now);
        CHECK_INT(b.rep.uninit, now != 0);
        CHECK_INT(wrong(&b, psum, 0, now) + wrong(&b, psum, 77, now), 0);
    }
    CHECK(run(&b, whole, now));
    CHECK(run(&b, little, before) == !before);
    CHECK_INT(wrong(&b, psum, 5, before), 0);
    kb_free(&b);
}

/* Rows of an odd length from a large input to a large output, which does not begin at a line of the host. */
static void
test_large_output(void)
{
    enum { ROW = 8191, PITCH = 8200, BYTES = PARTS * PITCH };
    kb b = kb_new("trn2");
    uint32_t x = kb_var(&b, "x", CPS_VAR_INPUT, CPS_DT_U8, BYTES), y = kb_var(&b, "y", CPS_VAR_OUTPUT, CPS_DT_U8, BYTES);
    kb_block(&b, CPS_SP, "q_in", 0, 3, true, x, 0, PITCH, 0, PARTS, 5, ROW);
    kb_block(&b, CPS_SP, "q_out", 0, 4, false, y, 0, PITCH, 0, PARTS, 5, ROW);
    kb_put(&b, CPS_SP, kb_trigger(&b, "q_in", 0));
    cps_bundle out = kb_trigger(&b, "q_out", 0), end = kb_insn(&b, CPS_INSN_EVENT_SEMAPHORE);
    kb_wait(&out, 3, 16);
    kb_put(&b, CPS_SP, out);
    kb_wait(&end, 4, 16);
    kb_put(&b, CPS_SP, end);
    CHECK(kb_load(&b));
    uint8_t *in = malloc(BYTES), *room = malloc(BYTES + 13), *to = room + 13;
    memset(room, 7, BYTES + 13);
    for (unsigned k = 0; k < BYTES; k++)
        in[k] = (uint8_t)(k * 2654435761u >> 24);
    CHECK(cps_sim_bind(b.s, "x", in, BYTES, true, b.d) && cps_sim_bind(b.s, "y", to, BYTES, false, b.d));
    CHECK(kb_run(&b));
    unsigned bad = 0;
    for (unsigned k = 0; k < BYTES; k++)
        bad += to[k] != (k % PITCH < ROW ? in[k] : 7);
    CHECK_INT(bad, 0);
    free(in);
    free(room);
    kb_free(&b);
}

int
main(void)
{
    static const unsigned checks[2] = {0, CPS_CHECK_ALL};
    for (int k = 0; k < 8; k++)
        test_left_over(k & 1, checks[k >> 1 & 1], checks[k >> 2]);
    test_large_output();
    return CHECK_DONE();
}
