/* The tensor engine's structured sparsity, and the seeds of its stochastic rounding.
 *
 * Nothing public says how a tag picks its element; this reading fits every documented pattern
 * (4:16, 4:12, 4:8, 2:8, 2:4, 1:4, 1:2). A tag has four bits: the upper two name one of the
 * four rows of the PE row's group of four, the lower two one of the feature maps that the
 * moving data bring. Bits of the row that are forced (force_tag) are the PE row's own. */
#include "runtime/sim/pe.h"

#define F(x) (unsigned)cps_isa_get(&i->b, x)

enum { TAGS = 4 /* of a word */, SEED_ROWS = 16 };

bool
prep_ldtags(cps_sim *s, insn *i)
{
    const opnd *x = &i->op[0];
    i->fn = (uint8_t)(F(CPS_F_S3_LT_force_tag) >> 2);
    if (x->es != 2 || x->count > LANES / TAGS || F(CPS_F_S3_LT_force_tag) & ~0xCu)
        return load_fail(s, i, CPS_E8202, "%u words of tags, forced 0x%x", x->count,
                         F(CPS_F_S3_LT_force_tag));
    return pe_groups(s, i, F(CPS_F_S3_LT_row_grp), 0xF, 1);
}

bool
exec_ldtags(cps_sim *s, engine *e, insn *i)
{
    unsigned r0 = i->group & 0xFF;
    uint16_t word[LANES / TAGS];
    for (unsigned k = 0; k < i->rows; k++) {
        load_raw(s, &i->op[0], k, word);
        for (unsigned c = 0; c < i->op[0].count * TAGS; c++) {
            unsigned tag = word[c / TAGS] >> 4 * (c % TAGS) & 15, row = tag >> 2;
            row = (row & ~(unsigned)i->fn) | ((r0 + k) & 3 & i->fn);
            e->tag[r0 + k][c] = (uint8_t)(row << 2 | (tag & 3));
        }
    }
    return true;
}

bool
prep_matmul_sparse(cps_sim *s, insn *i)
{
    unsigned cols = F(CPS_F_S4D3_MM_num_active_cols), n = i->op[1].count;
    i->fn = (uint8_t)cols;
    i->cmd = (uint8_t)F(CPS_F_S4D3_MM_psum_accumulate_flags);
    i->op[1].rows = (uint8_t)cols;
    i->set = n ? i->op[0].count / n : 0; // feature maps
    if (n > MM_COLS || i->set < 1 || i->set > 4 || i->op[0].count != n * i->set ||
        F(CPS_F_S4D3_MM_active_row_mode) || F(CPS_F_S4D3_MM_perf_opt) ||
        F(CPS_F_S4D3_MM_fp32_mode) || (!i->op[1].psum && i->op[1].reg == 0xFF))
        return load_fail(s, i, CPS_E8202,
                         "no model of this mode, or %u elements for %u columns", i->op[0].count,
                         n);
    return pe_groups(s, i, F(CPS_F_S4D3_MM_row_grp), F(CPS_F_S4D3_MM_col_grp), cols);
}

bool
exec_matmul_sparse(cps_sim *s, engine *e, insn *i)
{
    unsigned r0 = i->group & 0xFF, c0 = i->group >> 8, cols = i->fn, rows = i->rows;
    uint32_t n = i->op[1].count, per = i->op[0].count;
    for (unsigned k = 0; k < rows; k++)
        load_f32(s, &i->op[0], k, s->mm_x + (size_t)k * per);
    memset(s->mm_acc, 0, (size_t)cols * n * sizeof *s->mm_acc);
    for (unsigned m = 0; m < cols; m++) {
        float *acc = s->mm_acc + (size_t)m * n;
        for (unsigned k = 0; k < rows; k++) {
            float w = e->w[0][(size_t)(r0 + k) * LANES + c0 + m];
            unsigned tag = e->tag[r0 + k][c0 + m], from = (k & ~3u) + (tag >> 2);
            if ((tag & 3) >= i->set || from >= rows)
                return run_fault(s, i, CPS_E8305, "tag %u of row %u points to row %u, map %u",
                                 tag, k, from, tag & 3);
            const float *x = s->mm_x + (size_t)from * per + (size_t)(tag & 3) * n;
            for (uint32_t c = 0; c < n; c++)
                acc[c] += w * x[c];
        }
    }
    s->rep.pe_macs += (uint64_t)rows * cols * n;
    pe_accumulate(s, e, i, s->mm_acc, n, F(CPS_F_S4D3_MM_psum_zero_region));
    return true;
}

/* ---- seeds: 16 words of each of 128 columns ---- */

bool
prep_pe_seed(cps_sim *s, insn *i)
{
    i->cmd = (uint8_t)F(CPS_F_S2S1D2_PE_SEED_mode);
    if (i->cmd != CPS_PE_SEED_MODE_LOAD && i->cmd != CPS_PE_SEED_MODE_SAVE)
        return load_fail(s, i, CPS_E8202, "no model of mode %u", i->cmd);
    if (i->cmd == CPS_PE_SEED_MODE_SAVE)
        i->op[0] = i->op[2];
    i->nop = 1; // the other side and the identity are not touched
    i->rows = i->op[0].rows = SEED_ROWS;
    return (i->op[0].count == LANES && i->op[0].es == 4) ||
           load_fail(s, i, CPS_E8202, "%u words; a row of seeds is %u", i->op[0].count, LANES);
}

bool
exec_pe_seed(cps_sim *s, engine *e, insn *i)
{
    rand_need(e);
    for (unsigned p = 0; p < SEED_ROWS; p++) {
        if (i->cmd == CPS_PE_SEED_MODE_LOAD)
            load_raw(s, &i->op[0], p, e->seed[p]);
        else
            store_raw(s, &i->op[0], p, e->seed[p]);
    }
    return true;
}
