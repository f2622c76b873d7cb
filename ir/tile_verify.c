/* The tile verifier, structure: every id exists, operands have the number and roles of their
 * row, patterns stay inside their buffers at both ends, element counts agree, control is
 * balanced. What passes here can be executed by the evaluator without looking again (registers
 * and index tiles move patterns only then, and are checked there). Each instruction in error is
 * reported; one message each. */
#include "codegen/isa/isa.h"
#include "ir/ir.h"
#include "ir/tile_check.h"
#include "runtime/base/map.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_NESTING 64

bool
cps_tile_fail(const cps_tinst *x, cps_diags *d, cps_code code, const char *fmt, ...)
{
    char text[384];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    cps_error(d, code, x->loc, "'%s': %s", cps_tops[x->op].name, text);
    return false;
}

#define FAIL(code, ...) return cps_tile_fail(x, d, CPS_##code, __VA_ARGS__)

/* ---- buffers ---- */

static bool
check_buf(const cps_tbuf *b, cps_diags *d)
{
    const char *name = b->name ? b->name : "", *why = NULL;
    cps_type t = {.dtype = b->dtype, .rank = b->rank};
    memcpy(t.dim, b->dim, sizeof t.dim);
    if (b->space > CPS_REG || b->role > CPS_DATA)
        why = "has no known space or role";
    else if (!cps_type_ok(&t))
        why = "has no dtype, a negative extent, or too many elements";
    else if (b->space == CPS_REG && (b->rank || b->dtype != CPS_DT_I32))
        why = "is a register, which holds one i32";
    else if (cps_on_chip(b) && (b->rank < 1 || b->dim[0] < 1 || b->dim[0] > 128))
        why = "needs 1 to 128 partitions as its first extent";
    else if (b->role == CPS_DATA && b->space == CPS_HBM && !b->data)
        why = "is package data without content";
    if (why)
        cps_error(d, CPS_E5113, b->loc, "buffer '%s' %s", name, why);
    return !why;
}

/* ---- views ---- */

static bool
check_index(const cps_tfunc *f, const cps_tinst *x, const cps_tview *v, cps_diags *d)
{
    if (v->index > f->views.n)
        FAIL(E5101, "view %u, an index, does not exist", v->index - 1);
    const cps_tview *i = &f->views.data[v->index - 1];
    if (i->buf == 0 || i->buf >= f->bufs.n || i->dtype <= CPS_DT_NONE ||
        i->dtype >= CPS_DT_COUNT)
        FAIL(E5101, "an index of no buffer or dtype");
    const cps_tbuf *b = cps_tc_buf(f, i);
    if (x->op != CPS_T_DMA || cps_tc_buf(f, v)->space != CPS_HBM || i->index)
        FAIL(E5101, "index tiles move axis 0 of a tensor in HBM, in dma_copy");
    if (b->space != CPS_SBUF || !cps_dtype_is_int(i->dtype) || cps_dtype_bytes(i->dtype) != 4)
        FAIL(E5108, "an index tile is i32 or u32 in SBUF");
    if (cps_tview_elems(i) != 1 || v->nd < 1 || i->parts != v->d[0].num)
        FAIL(E5107, "an index tile has one element for each of the %lld rows",
             v->nd ? (long long)v->d[0].num : 0);
    return true;
}

static bool
check_view(const cps_tfunc *f, const cps_tinst *x, uint32_t id, cps_diags *d)
{
    if (id >= f->views.n)
        FAIL(E5101, "view %u does not exist", id);
    const cps_tview *v = &f->views.data[id];
    if (v->buf == 0 || v->buf >= f->bufs.n || f->bufs.data[v->buf].space == CPS_REG)
        FAIL(E5101, "a view of no buffer");
    const cps_tbuf *b = cps_tc_buf(f, v);
    const char *name = b->name ? b->name : "";
    if (v->dtype <= CPS_DT_NONE || v->dtype >= CPS_DT_COUNT || v->nd < 0 ||
        v->nd > CPS_TILE_DIMS)
        FAIL(E5101, "a view of '%s' without dtype or with %d axes", name, v->nd);
    if (v->reg && (v->reg >= f->bufs.n || f->bufs.data[v->reg].space != CPS_REG))
        FAIL(E5101, "a view of '%s' is moved by what is no register", name);
    int64_t elems = 1;
    for (int i = 0; i < v->nd; i++)
        if (v->d[i].num < 1 || __builtin_mul_overflow(elems, v->d[i].num, &elems) ||
            elems > CPS_MAX_ELEMS || llabs(v->d[i].step) > CPS_MAX_ELEMS / v->d[i].num)
            FAIL(E5107, "axis %d of a view of '%s' has %lld elements, %lld apart", i, name,
                 (long long)v->d[i].num, (long long)v->d[i].step);
    if (llabs(v->off) > CPS_MAX_ELEMS || llabs(v->reg_step) > CPS_MAX_ELEMS)
        FAIL(E5106, "a view of '%s' starts at element %lld", name, (long long)v->off);
    if (cps_on_chip(b) ? v->parts < 1 || v->part + v->parts > b->dim[0] : v->parts != 0)
        FAIL(E5106, "partitions %u..%d of '%s', which has %lld", v->part,
             v->part + v->parts - 1, name, cps_on_chip(b) ? (long long)b->dim[0] : 0);
    int64_t lo, hi, bytes = cps_tbuf_bytes(b), es = cps_dtype_bytes(v->dtype);
    cps_tc_reach(v, v->index ? 1 : 0, &lo, &hi);
    if (!v->reg && (lo < 0 || hi >= bytes / es))
        FAIL(E5106, "a pattern of '%s' reaches element %lld, it has 0..%lld", name,
             (long long)(lo < 0 ? lo : hi), (long long)(bytes / es - 1));
    return !v->index || (check_index(f, x, v, d) && check_view(f, x, v->index - 1, d));
}

/* ---- operands by role ---- */

static bool
check_role(const cps_tfunc *f, const cps_tinst *x, const cps_toper *o, char role, int k,
           bool out, cps_diags *d)
{
    const char *side = out ? "result" : "operand", *want = NULL;
    bool reg_ok = o->id && o->id < f->bufs.n && f->bufs.data[o->id].space == CPS_REG;
    switch (role) {
    case 's':
        want = o->kind == CPS_TO_REG && !reg_ok ? "a register that exists" : NULL;
        break;
    case 'i':
        want = o->kind != CPS_TO_IMM ? "a number" : NULL;
        break;
    case 'r':
        want = o->kind != CPS_TO_REG || !reg_ok ? "a register" : NULL;
        break;
    case 'n':
        if (o->kind == CPS_TO_REG ? !reg_ok : o->kind != CPS_TO_IMM)
            want = "a whole number or a register";
        else if (o->kind == CPS_TO_IMM &&
                 (o->is_int ? o->ival != (int32_t)o->ival
                            : !(o->imm >= -2147483648.0f && o->imm < 2147483648.0f) ||
                                  o->imm != (float)(int32_t)o->imm))
            want = "a number that fits i32";
        break;
    default:
        want = o->kind != CPS_TO_VIEW ? "a view" : NULL;
    }
    if (want)
        FAIL(E5101, "%s %d must be %s", side, k, want);
    return o->kind != CPS_TO_VIEW || check_view(f, x, o->id, d);
}

static bool
check_counts(const cps_tfunc *f, const cps_tinst *x, cps_diags *d)
{
    const cps_toprow *row = &cps_tops[x->op];
    const cps_tview *main = NULL;
    for (int k = 0; k < x->nin && !main; k++)
        main = strchr("dw", row->ins[k]) ? cps_tc_view(f, &x->in[k]) : NULL;
    for (int k = 0; k < x->nout && !main; k++)
        main = strchr("dw", row->outs[k]) ? cps_tc_view(f, &x->out[k]) : NULL;
    if (!main)
        return true;
    for (int i = 0; i < x->nout + x->nin; i++) {
        bool out = i < x->nout;
        int k = out ? i : i - x->nout;
        char role = out ? row->outs[k] : row->ins[k];
        const cps_tview *v = cps_tc_view(f, out ? &x->out[k] : &x->in[k]);
        if (!v)
            continue;
        int64_t n = cps_tview_elems(v), want = cps_tview_elems(main);
        if (!cps_on_chip(cps_tc_buf(f, v)))
            FAIL(E5103, "%s %d is in HBM, which only DMA reaches", out ? "result" : "operand",
                 k);
        if (v->parts != main->parts)
            FAIL(E5107, "%s %d has %u partitions, the data %u", out ? "result" : "operand", k,
                 v->parts, main->parts);
        if ((role == 's' || role == '1') && n != 1)
            FAIL(E5107, "%s %d has %lld elements per partition, must have one",
                 out ? "result" : "operand", k, (long long)n);
        if (role == 'd' && n != want)
            FAIL(E5107, "%s %d has %lld elements per partition, the data %lld",
                 out ? "result" : "operand", k, (long long)n, (long long)want);
    }
    return true;
}

/* ---- rules of single instructions ---- */

static int64_t
elems(const cps_tfunc *f, const cps_toper *o)
{
    return cps_tview_elems(cps_tc_view(f, o));
}

static bool
check_matmul(const cps_tfunc *f, const cps_tinst *x, cps_diags *d)
{
    const cps_tview *w = cps_tc_view(f, &x->in[0]), *m = cps_tc_view(f, &x->in[1]);
    const cps_tview *o = cps_tc_view(f, &x->out[0]);
    int64_t pairs = cps_tinst_get(x, CPS_TA_PERF, 0) ? 2 : 1;
    for (int k = 0; k < 3; k++)
        if (!cps_on_chip(cps_tc_buf(f, k == 0 ? w : k == 1 ? m : o)))
            FAIL(E5103, "operands and result are on chip");
    if (w->parts != m->parts)
        FAIL(E5107, "%u partitions of weights against %u of moving data", w->parts, m->parts);
    if (cps_tview_elems(w) != pairs * o->parts ||
        cps_tview_elems(m) != pairs * cps_tview_elems(o))
        FAIL(E5107, "[%u,%lld]' @ [%u,%lld] does not give [%u,%lld]", w->parts,
             (long long)cps_tview_elems(w), m->parts, (long long)cps_tview_elems(m), o->parts,
             (long long)cps_tview_elems(o));
    return true;
}

static bool
check_transpose(const cps_tfunc *f, const cps_tinst *x, cps_diags *d)
{
    const cps_tview *s = cps_tc_view(f, &x->in[0]), *o = cps_tc_view(f, &x->out[0]);
    if (!cps_on_chip(cps_tc_buf(f, s)) || !cps_on_chip(cps_tc_buf(f, o)))
        FAIL(E5103, "operands and result are on chip");
    if (o->parts != cps_tview_elems(s) || cps_tview_elems(o) != s->parts)
        FAIL(E5107, "the transpose of [%u,%lld] is not [%u,%lld]", s->parts,
             (long long)cps_tview_elems(s), o->parts, (long long)cps_tview_elems(o));
    if (cps_dtype_bytes(s->dtype) != cps_dtype_bytes(o->dtype) &&
        !(cps_dtype_is_float(s->dtype) && o->dtype == CPS_DT_FP32))
        FAIL(E5108, "%s cannot become %s", cps_dtype_name(s->dtype), cps_dtype_name(o->dtype));
    if (x->nin == 2 &&
        (cps_tc_view(f, &x->in[1])->parts != s->parts || elems(f, &x->in[1]) != s->parts))
        FAIL(E5107, "the identity must be [%u,%u]", s->parts, s->parts);
    return true;
}

static bool
check_dma(const cps_tfunc *f, const cps_tinst *x, cps_diags *d)
{
    const cps_tview *s = cps_tc_view(f, &x->in[0]), *o = cps_tc_view(f, &x->out[0]);
    int64_t ns = cps_tview_elems(s) * CPS_MAX(s->parts, 1);
    int64_t no = cps_tview_elems(o) * CPS_MAX(o->parts, 1);
    char ks = cps_dtypes[s->dtype].kind, ko = cps_dtypes[o->dtype].kind;
    if (ns != no)
        FAIL(E5107, "%lld elements to %lld", (long long)ns, (long long)no);
    if (s->dtype != o->dtype && (ks == 'P' || ko == 'P' || cps_dtype_bytes(s->dtype) == 8 ||
                                 cps_dtype_bytes(o->dtype) == 8))
        FAIL(E5108, "a transfer cannot convert %s to %s", cps_dtype_name(s->dtype),
             cps_dtype_name(o->dtype));
    if (x->op == CPS_T_DMA_TRANSPOSE && s->dtype != o->dtype)
        FAIL(E5108, "a transposing transfer keeps its dtype");
    if (cps_tinst_get(x, CPS_TA_ACCUMULATE, 0) && !(ko == 'F' && ks == 'F'))
        FAIL(E5108, "accumulating transfers add floats");
    return true;
}

static bool
check_length(const cps_tfunc *f, const cps_tinst *x, cps_diags *d)
{
    const cps_toper *data = x->nin && x->in[0].kind == CPS_TO_VIEW ? &x->in[0] : NULL;
    int64_t n = data ? elems(f, data) : 0, o = elems(f, &x->out[0]);
    switch (x->op) {
    case CPS_T_BN_STATS:
        if (o != 6)
            FAIL(E5107, "gives six numbers per row, the result has %lld", (long long)o);
        break;
    case CPS_T_BN_AGGR:
        if (o != 2 || n % 3)
            FAIL(E5107, "takes triples and gives two numbers per row, not %lld from %lld",
                 (long long)o, (long long)n);
        break;
    case CPS_T_MAX8:
        if (o != 8 || n < 8 || n > 16384)
            FAIL(E5107, "takes 8 to 16384 elements and gives eight, not %lld from %lld",
                 (long long)o, (long long)n);
        break;
    case CPS_T_FIND_INDEX8:
        if (o != 8 || elems(f, &x->in[1]) != 8 || n < 8 || n > 16384)
            FAIL(E5107, "takes 8 to 16384 elements and eight values, gives eight positions");
        break;
    case CPS_T_MATCH_REPLACE8:
        if (elems(f, &x->in[1]) != 8 || (x->nout > 1 && elems(f, &x->out[1]) != 8))
            FAIL(E5107, "takes eight values and gives eight positions");
        break;
    case CPS_T_TENSOR_REDUCE: {
        const cps_tview *v = cps_tc_view(f, &x->in[0]);
        int axes = cps_tinst_get(x, CPS_TA_AXES, 0);
        int64_t kept = 1;
        for (int i = 0; i < v->nd - axes; i++)
            kept *= v->d[i].num;
        if (axes < 1 || axes > v->nd)
            FAIL(E5110, "reduces 1 to %d axes, not %d", v->nd, axes);
        if (o != kept)
            FAIL(E5107, "%lld elements are left, the result has %lld", (long long)kept,
                 (long long)o);
        break;
    }
    default:
        break;
    }
    return true;
}

static bool
check_partition_reduce(const cps_tfunc *f, const cps_tinst *x, cps_diags *d)
{
    const cps_tview *s = cps_tc_view(f, &x->in[0]), *o = cps_tc_view(f, &x->out[0]);
    if (!cps_on_chip(cps_tc_buf(f, s)) || !cps_on_chip(cps_tc_buf(f, o)))
        FAIL(E5103, "operand and result are on chip");
    if (o->parts != 1 || cps_tview_elems(o) != cps_tview_elems(s))
        FAIL(E5107, "[%u,%lld] reduces to [1,%lld]", s->parts, (long long)cps_tview_elems(s),
             (long long)cps_tview_elems(s));
    return true;
}

static bool
check_scalar_word(const cps_tfunc *f, const cps_tinst *x, cps_diags *d)
{
    const cps_tview *v = cps_tc_view(f, &x->in[0]);
    if (cps_tview_elems(v) != 1 || v->parts > 1 || cps_dtype_bytes(v->dtype) > 4 ||
        !cps_dtype_is_int(v->dtype))
        FAIL(E5107, "loads one integer of up to 32 bits");
    return true;
}

/* ---- attributes ---- */

static bool
row_has(cps_top op, const char *key)
{
    size_t n = strlen(key);
    for (const char *p = cps_tops[op].attrs; (p = strstr(p, key)); p += n)
        if ((p == cps_tops[op].attrs || p[-1] == ' ') && (p[n] == ' ' || !p[n]))
            return true;
    return false;
}

static bool
check_list(const cps_tfunc *f, const cps_tinst *x, cps_tattr_key k, cps_diags *d)
{
    if ((uint32_t)x->attr[k] >= f->lists.n)
        FAIL(E5110, "list %d of '%s' does not exist", x->attr[k], cps_tattrs[k].name);
    const cps_tlist *l = &f->lists.data[x->attr[k]];
    if (l->n < 0 || l->n > (int)cps_countof(l->v))
        FAIL(E5110, "list '%s' of %d entries", cps_tattrs[k].name, l->n);
    if (k == CPS_TA_MASK) {
        bool ok = l->n == 32;
        for (int i = 0; i < 32 && ok; i++)
            ok = l->v[i] == 255 || (l->v[i] >= 0 && l->v[i] < 32);
        if (!ok)
            FAIL(E5110, "the mask is 32 lanes 0..31 or 255");
        return true;
    }
    const cps_tview *o = cps_tc_view(f, &x->out[0]);
    bool counted = l->n > 0 && l->n <= 16 && l->v[l->n];
    int64_t n = 1;
    for (int i = 0; i < l->n && counted; i++)
        if (l->v[l->n + i] < 1 || (n *= l->v[l->n + i]) > CPS_MAX_ELEMS)
            FAIL(E5110, "count %d of the pattern", l->v[l->n + i]);
    if (counted ? n != cps_tview_elems(o) : l->n != o->nd)
        FAIL(E5110, "%d index steps for the %d axes of the result", l->n, o->nd);
    return true;
}

static bool
check_attrs(const cps_tfunc *f, const cps_tinst *x, cps_diags *d)
{
    if (x->set >> CPS_TATTRS)
        FAIL(E5101, "unknown attribute bits 0x%x", x->set);
    for (int k = 0; k < CPS_TATTRS; k++) {
        if (!(x->set >> k & 1))
            continue;
        if (!row_has((cps_top)x->op, cps_tattrs[k].name))
            FAIL(E5101, "there is no attribute '%s'", cps_tattrs[k].name);
        if (cps_tattrs[k].kind == CPS_TK_INTS && !check_list(f, x, (cps_tattr_key)k, d))
            return false;
        if (cps_tattrs[k].kind == CPS_TK_ALU && !cps_alu_name((unsigned)x->attr[k]))
            FAIL(E5110, "no operator has the number 0x%x", (unsigned)x->attr[k]);
        if (cps_tattrs[k].kind == CPS_TK_FUNC && !cps_actfn_name((unsigned)x->attr[k]))
            FAIL(E5110, "no function has the number %d", x->attr[k]);
    }
    static const struct {
        cps_tattr_key key;
        int lo, hi;
    } ranges[] = {{CPS_TA_ACC, 0, 3},
                  {CPS_TA_REVERSE, 0, 3},
                  {CPS_TA_DGE, 0, 2},
                  {CPS_TA_OOB, 0, 1},
                  {CPS_TA_PERF, 0, 1}};
    for (size_t i = 0; i < cps_countof(ranges); i++) {
        int v = cps_tinst_get(x, ranges[i].key, ranges[i].lo);
        if (v < ranges[i].lo || v > ranges[i].hi)
            FAIL(E5110, "'%s' is %d, must be in %d..%d", cps_tattrs[ranges[i].key].name, v,
                 ranges[i].lo, ranges[i].hi);
    }
    // Operators without a sensible default must be given.
    bool needs = row_has((cps_top)x->op, "op0") && !(x->set >> CPS_TA_OP0 & 1);
    if (needs && x->op != CPS_T_PART_REDUCE && x->op != CPS_T_AFFINE_SELECT)
        FAIL(E5110, "'op0' is missing");
    if (x->op == CPS_T_RANGE_SELECT && !(x->set >> CPS_TA_OP1 & 1))
        FAIL(E5110, "'op1' is missing");
    if (x->op == CPS_T_SHUFFLE && !(x->set >> CPS_TA_MASK & 1))
        FAIL(E5110, "'mask' is missing");
    return true;
}

static bool
check_inst(const cps_tfunc *f, const cps_tinst *x, cps_diags *d)
{
    if (x->op == CPS_T_NONE || x->op >= CPS_TOPS) {
        cps_error(d, CPS_E5101, x->loc, "instruction number %u does not exist", x->op);
        return false;
    }
    const cps_toprow *row = &cps_tops[x->op];
    if (x->nout < row->nout_min || x->nout > row->nout_max || x->nin < row->nin_min ||
        x->nin > row->nin_max)
        FAIL(E5101, "%u results and %u operands", x->nout, x->nin);
    if (x->engine != CPS_ENGINE_ANY && x->engine >= CPS_ENGINES)
        FAIL(E5102, "there is no engine %u", x->engine);
    for (int k = 0; k < x->nout; k++)
        if (!check_role(f, x, &x->out[k], row->outs[k], k, true, d))
            return false;
    for (int k = 0; k < x->nin; k++)
        if (!check_role(f, x, &x->in[k], row->ins[k], k, false, d))
            return false;
    if (!check_attrs(f, x, d) || !check_counts(f, x, d))
        return false;
    switch (x->op) {
    case CPS_T_MATMUL:
        return check_matmul(f, x, d);
    case CPS_T_TRANSPOSE:
        return check_transpose(f, x, d);
    case CPS_T_DMA:
    case CPS_T_DMA_TRANSPOSE:
        return check_dma(f, x, d);
    case CPS_T_PART_REDUCE:
        return check_partition_reduce(f, x, d);
    case CPS_T_REG_LOAD:
        return check_scalar_word(f, x, d);
    default:
        return x->nout == 0 || x->out[0].kind != CPS_TO_VIEW || check_length(f, x, d);
    }
}

static bool
check_nesting(const cps_tfunc *f, cps_diags *d)
{
    uint16_t open[MAX_NESTING];
    int n = 0;
    for (uint32_t i = 0; i < f->insts.n; i++) {
        const cps_tinst *x = &f->insts.data[i];
        if (x->op == CPS_T_LOOP || x->op == CPS_T_WHEN) {
            if (n == MAX_NESTING)
                FAIL(E5112, "nested deeper than %d", MAX_NESTING);
            open[n++] = x->op;
        } else if (x->op == CPS_T_ELSE) {
            if (!n || open[n - 1] != CPS_T_WHEN)
                FAIL(E5112, "no open 'when'");
            open[n - 1] = CPS_T_ELSE;
        } else if (x->op == CPS_T_END && n-- == 0) {
            FAIL(E5112, "nothing is open");
        }
    }
    if (n) {
        cps_error(d, CPS_E5112, CPS_NOSPAN, "%d 'loop' or 'when' are not closed", n);
        return false;
    }
    return true;
}

// `home`: where the body begins in which each buffer is used, + 1; 0: not used so far.
static bool
check_use(const cps_tfunc *f, const cps_tinst *x, uint32_t buf, const uint32_t *body, int n, uint32_t *home,
          cps_diags *d)
{
    const cps_tbuf *b = &f->bufs.data[buf];
    if (b->depth == 0)
        return true;
    if (b->depth > n || (home[buf] && home[buf] != body[b->depth - 1]))
        FAIL(E5112, "'%s' is used outside the body it is declared in, at depth %d", b->name ? b->name : "", b->depth);
    home[buf] = body[b->depth - 1];
    return true;
}

// Uses of what is declared in a body stay in it.
static bool
check_homes(const cps_tfunc *f, cps_diags *d)
{
    cps_arena *a = cps_arena_create();
    uint32_t *home = cps_new_array(a, uint32_t, f->bufs.n), body[MAX_NESTING];
    bool ok = true;
    int n = 0;
    for (uint32_t i = 0; i < f->insts.n; i++) {
        const cps_tinst *x = &f->insts.data[i];
        for (int k = 0; k < x->nout + x->nin; k++) {
            const cps_toper *o = k < x->nout ? &x->out[k] : &x->in[k - x->nout];
            if (o->kind != CPS_TO_VIEW)
                continue;
            const cps_tview *v = &f->views.data[o->id];
            ok = check_use(f, x, v->buf, body, n, home, d) && ok;
            if (v->index)
                ok = check_use(f, x, f->views.data[v->index - 1].buf, body, n, home, d) && ok;
        }
        if (x->op == CPS_T_LOOP || x->op == CPS_T_WHEN)
            body[n++] = i + 1;
        else if (x->op == CPS_T_ELSE)
            body[n - 1] = i + 1;
        else if (x->op == CPS_T_END)
            n--;
    }
    cps_arena_destroy(a);
    return ok;
}

static bool
check_labels(const cps_tfunc *f, cps_diags *d)
{
    cps_arena *a = cps_arena_create();
    cps_map seen;
    bool ok = true;
    cps_map_init(&seen, a);
    for (uint32_t i = 0; i < f->insts.n; i++) {
        const cps_tinst *x = &f->insts.data[i];
        if (x->after && !cps_map_find(&seen, x->after))
            ok = cps_tile_fail(x, d, CPS_E5110, "label %u stands on nothing before this",
                               x->after);
        if (x->label)
            cps_map_at(&seen, x->label, NULL);
    }
    cps_arena_destroy(a);
    return ok;
}

bool
cps_tile_check(const cps_tfunc *f, cps_diags *d)
{
    bool ok = true;
    for (uint32_t i = 1; i < f->bufs.n; i++)
        ok = check_buf(&f->bufs.data[i], d) && ok;
    for (uint32_t i = 0; i < f->insts.n && ok; i++) // stands on sound buffers
        if (f->insts.data[i].op == CPS_T_NONE || f->insts.data[i].op >= CPS_TOPS)
            return check_inst(f, &f->insts.data[i], d);
    if (!ok || !check_nesting(f, d))
        return false;
    for (uint32_t i = 0; i < f->insts.n; i++)
        ok = check_inst(f, &f->insts.data[i], d) && ok;
    return ok && check_homes(f, d) && check_labels(f, d);
}

bool
cps_tile_verify(const cps_tfunc *f, const struct cps_target *t, cps_diags *d)
{
    if (!cps_tile_check(f, d))
        return false;
    bool ok = cps_tile_rules_bufs(f, t, d);
    for (uint32_t i = 0; i < f->insts.n; i++)
        ok = cps_tile_rules(f, &f->insts.data[i], t, d) && ok;
    return ok;
}
