/* Relations of element counts: what rows COUNT name. Shapes are known here. */
#include "codegen/isa/verify.h"

static void
differ(cps_checker *c, const char *a, uint64_t na, const char *what, uint64_t nb)
{
    cps_check_report(c, CPS_RULE_COUNT, "%s has %llu elements, %s %llu", a,
                     (unsigned long long)na, what, (unsigned long long)nb);
}

void
cps_count_equal(cps_checker *c, const cps_operands *o)
{
    for (unsigned i = 0; i < o->ins; i++)
        if (o->out && o->in[i]->count != o->out->count) {
            differ(c, o->in[i]->r->name, o->in[i]->count, "dst", o->out->count);
            return;
        }
}

void
cps_count_sources(cps_checker *c, const cps_operands *o)
{
    if (o->in[0]->count != o->in[1]->count)
        differ(c, "src0", o->in[0]->count, "src1", o->in[1]->count);
}

// Two rows share a PE in double-row mode: the source then has two elements a column.
static unsigned
per_column(const cps_checker *c, cps_field mode)
{
    return cps_check_get(c, mode) == CPS_PERF_OPT_MODE_DOUBLE_ROW ? 2 : 1;
}

void
cps_count_columns(cps_checker *c, const cps_operands *o)
{
    unsigned per = per_column(c, CPS_F_S3D3_MM_perf_opt);
    if (o->in[0]->count != per * o->out->count)
        differ(c, "src", o->in[0]->count, per == 2 ? "twice dst would be" : "dst",
               per * o->out->count);
}

void
cps_count_weights(cps_checker *c, const cps_operands *o)
{
    uint64_t want = (uint64_t)per_column(c, CPS_F_S3_LW_perf_opt) *
                    cps_check_get(c, CPS_F_S3_LW_num_active_cols);
    if (o->in[0]->count != want)
        differ(c, "src", o->in[0]->count, "the active columns take", want);
}

// The field that says how many dimensions fold is the format's only one of its enum.
void
cps_count_folded(cps_checker *c, const cps_operands *o)
{
    unsigned dim = 0;
    for (unsigned f = c->first; f < c->end; f++)
        if (cps_fields[f].kind == CPS_FK_ENUM && cps_fields[f].arg == CPS_ENUM_TENSOR_SUBDIM)
            dim = cps_check_get(c, (cps_field)f);
    uint64_t kept = 1;
    for (unsigned i = dim < 2 ? 0 : dim - 1; i < o->in[0]->ap.nd; i++)
        kept *= o->in[0]->ap.num[i];
    if (kept != o->out->count)
        differ(c, "dst", o->out->count, "the dimensions that stay", kept);
}

void
cps_count_lanes(cps_checker *c, const cps_operands *o)
{
    bool all = cps_check_get(c, CPS_F_S4D4_CR_reduce_axis) == CPS_REDUCE_AXIS_ALL;
    uint64_t want = all ? 1 : o->in[0]->count;
    if (o->out->count != want)
        differ(c, "dst", o->out->count, "the reduction", want);
}

static void
multiple(cps_checker *c, const cps_operands *o, unsigned of)
{
    if (o->in[0]->count % of)
        differ(c, "src", o->in[0]->count, "it takes multiples of", of);
}

void
cps_count_thirty_two(cps_checker *c, const cps_operands *o)
{
    multiple(c, o, 32);
}

void
cps_count_triples(cps_checker *c, const cps_operands *o)
{
    multiple(c, o, 3);
}

void
cps_count_fours(cps_checker *c, const cps_operands *o)
{
    multiple(c, o, 4);
}

// STREAM_TRANSPOSE works on blocks of 32 x 32 and may write fewer elements than it reads.
void
cps_count_blocks(cps_checker *c, const cps_operands *o)
{
    multiple(c, o, 32);
    if (o->out->count > o->in[0]->count)
        differ(c, "dst", o->out->count, "src only", o->in[0]->count);
}

void
cps_count_gathered(cps_checker *c, const cps_operands *o)
{
    unsigned n = cps_check_get(c, CPS_F_S4D4_IC_src_num_elem);
    unsigned per = cps_check_get(c, CPS_F_S4D4_IC_src_num_elem_per_idx);
    (void)o;
    if (per && n / per > 4096)
        differ(c, "the index list", n / per, "at most", 4096);
}

void
cps_count_stated(cps_checker *c, const cps_operands *o)
{
    unsigned n = cps_check_get(c, CPS_F_D4_MR_dst_element_count);
    if (n != o->out->count)
        differ(c, "dst", o->out->count, "dst_element_count says", n);
}

void
cps_count_one_more(cps_checker *c, const cps_operands *o)
{
    if (o->out->count != o->in[0]->count + 1)
        differ(c, "dst", o->out->count, "src and the count are", o->in[0]->count + 1);
}
