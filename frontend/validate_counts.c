/* What a replay executes, counted as published profiles count it.
 *
 * In: a kernel. Out: instructions by name, HBM bytes, and the bytes of one partition that
 * instructions with a single tensor input read and wrote in SBUF and PSUM. Profiles of NKIBench
 * leave instructions with two inputs out and count each pass of an fp32 product
 * (tests/validate/README.md), so these figures can be set against theirs one by one. Control that
 * goes back would need a run: such kernels are not counted. */
#include "frontend/validate.h"

#include "codegen/isa/isa.h"

static void
count_operands(const cps_bundle *b, cps_gen g, const cps_format_row *f, cps_vcounts *out)
{
    double bytes[2][2] = {{0}}; // [out][psum]
    unsigned inputs = 0;
    for (unsigned k = f[0].first; k < f[1].first; k++) {
        const cps_field_row *r = &cps_fields[k];
        if (r->kind != CPS_FK_TENSOR || !(r->gens >> g & 1) || !cps_isa_there(b, r))
            continue;
        cps_ap ap;
        cps_isa_get_ap(b, (cps_field)k, &ap);
        double n = 1;
        for (unsigned d = 0; d < ap.nd; d++)
            n *= ap.num[d];
        unsigned wire =
            r->dtype == CPS_F_NONE ? 0 : (unsigned)cps_isa_get(b, (cps_field)r->dtype);
        wire = r->part == CPS_PART_LOW ? wire & 15 : r->part == CPS_PART_HIGH ? wire >> 4 : wire;
        cps_dtype t = wire ? cps_isa_dtype(wire) : CPS_DT_FP32;
        inputs += !r->out;
        bytes[r->out][cps_addr_is_psum(ap.addr)] += n * (t ? cps_dtype_bytes(t) : 4);
    }
    if (inputs > 1)
        return;
    out->sbuf_read += bytes[0][0];
    out->psum_read += bytes[0][1];
    out->sbuf_written += bytes[1][0];
    out->psum_written += bytes[1][1];
}

static double
desc_bytes(const cps_kdesc *d, bool from)
{
    double n = 1;
    for (int k = 0; k < (from ? d->nfrom : d->nto); k++)
        n *= (double)(from ? d->from_size[k] : d->to_size[k]);
    return n;
}

bool
cps_validate_count(const cps_kbin *k, cps_vcounts *out)
{
    *out = (cps_vcounts){0};
    for (unsigned e = 0; e < CPS_ENGINES; e++) {
        for (uint32_t i = 0; i < k->stream[e].code.n; i++) {
            const cps_bundle *b = &k->stream[e].code.data[i];
            cps_insn id = cps_isa_find(b->b[0], k->gen);
            if (id == CPS_INSN_NONE || id == CPS_INSN_COMPARE_BRANCH)
                return false;
            out->times[id]++;
            count_operands(b, k->gen, &cps_formats[cps_insns[id].format], out);
        }
    }
    for (uint32_t i = 0; i < k->blocks.n; i++) {
        const cps_kblock *b = &k->blocks.data[i];
        for (uint32_t d = b->first; d < b->first + b->ndesc; d++) {
            const cps_kdesc *x = &k->descs.data[d];
            out->hbm_read += x->from ? desc_bytes(x, true) : 0; // variable 0 is SBUF
            out->hbm_written += x->to ? desc_bytes(x, false) : 0;
        }
    }
    return true;
}
