/* Selection for transfers whose descriptors are made while the kernel runs (DGE).
 *
 * A view with an index tile gathers or scatters rows: DMA_INDIRECT records on POOL, whose
 * software descriptor generation follows indices (NKI DGE guide). One record moves one element
 * of every row, up to 64 KiB; both sides count their steps in elements, so the element is the
 * largest size that divides the row, its pitch and, on chip, the distance of partitions (256
 * KiB), and a row of odd length takes several records. Indices beyond the tensor fault, or
 * leave the row out.
 *
 * A view moved by a register: DMA_DIRECT2D records, the moving address in a register pair;
 * where axes swap DMA_TRANSPOSE records, one for each tile of the outer axes. */
#include "codegen/select.h"

#define SET(field, value) cps_isa_set(&b, CPS_F_##field, (uint64_t)(value))
#define RECORDS_MAX 256
#define RISE 16

static bool
refuse(cps_sel *s, const cps_tinst *x, const char *why)
{
    cps_error(s->g->d, CPS_E5305, x->loc, "'%s': %s", cps_tops[x->op].name, why);
    return false;
}

static int64_t
gcd(int64_t a, int64_t b)
{
    if (a < 0)
        a = -a;
    if (b < 0)
        b = -b;
    while (b) {
        int64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

// One side of the transfer: rows, then the walk of a row, in bytes.
typedef struct side {
    const cps_tview *v;
    bool hbm;
    int64_t base, es, rows, pitch;
    cps_pat p;
} side;

static void
side_of(cps_sel *s, const cps_tview *v, side *o)
{
    const cps_tbuf *b = cps_sel_buf(s, v);
    *o = (side){.v = v, .hbm = b->space == CPS_HBM, .es = cps_dtype_bytes(v->dtype), .rows = 1};
    int from = 0;
    if (o->hbm) {
        o->base = v->off * o->es;
        if (v->nd > 0) {
            o->rows = v->d[0].num;
            o->pitch = v->d[0].step * o->es;
            from = 1;
        }
    } else {
        o->base = cps_addr_sbuf(b->part + v->part, (unsigned)(b->byte + v->off * o->es));
        o->rows = v->parts;
        o->pitch = CPS_SBUF_STRIDE;
    }
    for (int i = from; i < v->nd; i++)
        if (v->d[i].num != 1)
            o->p.d[o->p.nd++] = (cps_tdim){v->d[i].step * o->es, v->d[i].num};
}

// The address of a side in its 64-bit field: on chip a number, in HBM a relocation.
static void
put_address(cps_sel *s, cps_bundle *b, cps_field f, const side *o, int64_t off, cps_mreloc *r,
            unsigned *nr)
{
    if (!o->hbm) {
        cps_isa_set(b, f, (uint64_t)(o->base + off));
        return;
    }
    r[(*nr)++] = (cps_mreloc){(uint16_t)f, s->var[o->v->buf], o->base + off};
}

static cps_mop *
record(cps_sel *s, const cps_tinst *x, const cps_bundle *b, cps_field sem, const cps_mreloc *r,
       unsigned nr)
{
    uint32_t id;
    const char *name =
        cps_arena_printf(s->g->arena, "dge_%s", cps_engine_name((cps_engine)x->engine));
    uint8_t queue = cps_sel_queue(s, name, &id);
    cps_mop *m = cps_sel_op(s, CPS_M_DMA, (cps_engine)x->engine, b, x->loc);
    m->sem_field = (uint16_t)sem;
    m->queue = queue;
    m->nreloc = (uint16_t)nr;
    for (unsigned i = 0; i < nr; i++)
        cps_vec_push(s->g->arena, &s->p->relocs, r[i]);
    return m;
}

// How many rows an index may choose from.
static int64_t
index_limit(const cps_sel *s, const side *o)
{
    int64_t lo, hi;
    cps_pat_span(&o->p, &lo, &hi);
    int64_t room = cps_tbuf_bytes(cps_sel_buf(s, o->v)) - o->base - hi - o->es;
    return o->pitch > 0 && room >= 0 ? room / o->pitch + 1 : 0;
}

bool
cps_sel_indirect(cps_sel *s, const cps_tinst *x)
{
    const cps_tview *src = cps_sel_view(s, x->in[0]), *dst = cps_sel_view(s, x->out[0]);
    if (x->op != CPS_T_DMA || src->reg || dst->reg)
        return refuse(s, x, "an index tile goes with plain copies of fixed place");
    bool gather = src->index != 0, scatter = dst->index != 0;
    if (gather && scatter)
        return refuse(s, x, "only one side can be indexed");
    side from, to;
    side_of(s, src, &from);
    side_of(s, dst, &to);
    side *far = gather ? &from : &to, *near = gather ? &to : &from;
    const cps_tview iv = s->g->f->views.data[far->v->index - 1];
    const cps_tbuf *ib = cps_sel_buf(s, &iv);
    if (!far->hbm || near->hbm)
        return refuse(s, x, "rows are chosen in HBM, the other side is a tile");
    if (ib->space != CPS_SBUF || cps_dtype_bytes(iv.dtype) != 4 ||
        !cps_dtype_is_int(iv.dtype) || cps_tview_elems(&iv) != 1 || iv.parts != far->rows ||
        near->rows != far->rows)
        return refuse(s, x,
                      "indices are a [p,1] tile of 32-bit integers in SBUF, one for each row");
    if (from.v->dtype != to.v->dtype && from.es != to.es)
        return refuse(s, x, "an indexed copy keeps the size of its elements");
    int64_t limit = index_limit(s, far);
    // Rows in elements that divide both pitches; one record for each element of the row.
    cps_pat p[2] = {from.p, to.p};
    if (!cps_pat_refine(p, 2, INT64_MAX / 2))
        return refuse(s, x, "the two sides do not pair element by element");
    int64_t run = from.es, elem;
    int outer = p[0].nd;
    if (outer && p[0].d[outer - 1].step == run && p[1].d[outer - 1].step == run)
        run *= p[0].d[--outer].num;
    elem = gcd(gcd(run, from.pitch), to.pitch);
    while (elem > 32768)
        elem /= 2;
    int64_t count = run / elem;
    for (int i = 0; i < outer; i++)
        count *= p[0].d[i].num;
    if (count > RECORDS_MAX || from.pitch / elem != (int32_t)(from.pitch / elem) ||
        to.pitch / elem != (int32_t)(to.pitch / elem))
        return refuse(s, x,
                      "the rows are too broken: more than 256 records; choose whole rows, of a "
                      "length that divides by a power of two");
    unsigned bound = cps_sel_scratch(s);
    cps_sel_move(s, (cps_engine)x->engine, bound, (uint32_t)CPS_MIN(limit, INT32_MAX), x->loc);
    int64_t idx[CPS_PAT_DIMS] = {0};
    for (int64_t c = 0; c < count;) {
        int64_t foff = 0, toff = 0;
        for (int i = 0; i < outer; i++) {
            foff += idx[i] * p[0].d[i].step;
            toff += idx[i] * p[1].d[i].step;
        }
        for (int64_t k = 0; k < run; k += elem, c++) {
            cps_bundle b = cps_isa_new(CPS_INSN_DMA_INDIRECT, s->g->t->gen);
            cps_mreloc r[2];
            unsigned nr = 0;
            unsigned flags = gather ? CPS_INDIRECT_DMA_MODE_SRC : CPS_INDIRECT_DMA_MODE_DST;
            if (!cps_tinst_get(x, CPS_TA_OOB, 0))
                flags |= 1u << 2; // an index beyond the bound is an error
            SET(DMA_INDIRECT1D_sem_increment, RISE);
            SET(DMA_INDIRECT1D_idx_num_active_channels, iv.parts);
            SET(DMA_INDIRECT1D_flags, flags);
            SET(DMA_INDIRECT1D_src_step_elem, (uint32_t)(int32_t)(from.pitch / elem));
            SET(DMA_INDIRECT1D_src_num_elem, from.rows);
            SET(DMA_INDIRECT1D_src_elem_size, elem);
            SET(DMA_INDIRECT1D_dst_step_elem, (uint32_t)(int32_t)(to.pitch / elem));
            SET(DMA_INDIRECT1D_dst_num_elem, to.rows);
            SET(DMA_INDIRECT1D_dst_elem_size, elem);
            SET(DMA_INDIRECT1D_in_dtype, cps_sel_in(from.v->dtype));
            SET(DMA_INDIRECT1D_out_dtype, cps_sel_in(from.v->dtype));
            uint32_t at = cps_addr_sbuf(ib->part + iv.part, (unsigned)(ib->byte + iv.off * 4));
            cps_isa_set(
                &b, gather ? CPS_F_DMA_INDIRECT1D_src_idx : CPS_F_DMA_INDIRECT1D_dst_idx, at);
            cps_isa_set(&b,
                        gather ? CPS_F_DMA_INDIRECT1D_src_idx_bound_reg
                               : CPS_F_DMA_INDIRECT1D_dst_idx_bound_reg,
                        0x80 | bound);
            if (cps_tinst_get(x, CPS_TA_ACCUMULATE, 0))
                SET(DMA_INDIRECT1D_compute_op, CPS_DGE_COMPUTE_OP_ADD);
            put_address(s, &b, CPS_F_DMA_INDIRECT1D_src, &from, foff + k, r, &nr);
            put_address(s, &b, CPS_F_DMA_INDIRECT1D_dst, &to, toff + k, r, &nr);
            record(s, x, &b, CPS_F_DMA_INDIRECT1D_semaphore, r, nr);
            cps_sel_touch(s, cps_sel_view(s, x->in[0]), false);
            cps_sel_touch(s, &iv, false);
            if (cps_tinst_get(x, CPS_TA_ACCUMULATE, 0))
                cps_sel_touch(s, cps_sel_view(s, x->out[0]), false);
            cps_sel_touch(s, cps_sel_view(s, x->out[0]), true);
        }
        for (int i = outer; i-- > 0;) {
            if (++idx[i] < p[0].d[i].num)
                break;
            idx[i] = 0;
        }
    }
    return true;
}

// A walk as element size and two counted steps.
typedef struct grid {
    int64_t elem, step[2], num[2];
} grid;

static bool
grid_of(const cps_pat *in, int64_t es, int64_t elem, grid *g)
{
    cps_pat p = *in;
    cps_pat_merge(&p, 65535);
    *g = (grid){.elem = elem, .step = {1, 1}, .num = {1, 1}};
    int n = 0, last = p.nd;
    int64_t run = es;
    if (last && p.d[last - 1].step == es)
        run *= p.d[--last].num;
    if (run % elem)
        return false;
    if (run > elem) {
        g->step[n] = 1;
        g->num[n++] = run / elem;
    }
    for (; last-- > 0; n++) {
        if (n == 2 || p.d[last].step % elem)
            return false;
        g->step[n] = p.d[last].step / elem;
        g->num[n] = p.d[last].num;
    }
    return g->num[0] <= 65535 && g->num[1] <= 65535 && g->step[0] == (int32_t)g->step[0] &&
           g->step[1] == (int32_t)g->step[1];
}

static int64_t
run_of(const cps_pat *in, int64_t es)
{
    cps_pat p = *in;
    cps_pat_merge(&p, 65535);
    int64_t run = p.nd && p.d[p.nd - 1].step == es ? es * p.d[p.nd - 1].num : es;
    for (int i = 0; i < p.nd; i++)
        if (p.d[i].step != es)
            run = gcd(run, p.d[i].step);
    while (run > 32768)
        run = run % 2 ? es : run / 2;
    return run;
}

// The moving address into a register pair: the register times its step, plus where it starts.
static void
moving_address(cps_sel *s, cps_bundle *b, cps_field f, const cps_tinst *x, const side *o,
               int64_t off)
{
    cps_engine e = (cps_engine)x->engine;
    unsigned r = cps_sel_scratch(s);
    cps_sel_alu(s, e, CPS_ALU_MULT, r, s->reg[o->v->reg],
                (uint32_t)(int32_t)(o->v->reg_step * o->es), x->loc);
    cps_sel_move(s, e, r + 1, 0, x->loc);
    if (o->hbm) {
        // 64 bits: the pair plus the address of the tensor.
        cps_bundle a = cps_isa_new(CPS_INSN_ALU_OP, s->g->t->gen);
        cps_isa_set(&a, CPS_F_CTRL_AL_op, CPS_ALU_ADD);
        cps_isa_set(&a, CPS_F_CTRL_AL_dtype, (uint64_t)cps_dtypes[CPS_DT_U64].wire);
        cps_isa_set(&a, CPS_F_CTRL_AL_src1_datasrc, CPS_DATA_SRC_IMMEDIATE);
        cps_isa_set(&a, CPS_F_CTRL_AL_src0_lo, r);
        cps_isa_set(&a, CPS_F_CTRL_AL_src0_hi, r + 1);
        cps_isa_set(&a, CPS_F_CTRL_AL_dst_lo, r);
        cps_isa_set(&a, CPS_F_CTRL_AL_dst_hi, r + 1);
        cps_mop *m = cps_sel_op(s, CPS_M_SEQ, e, &a, x->loc);
        m->nreloc = 1;
        cps_mreloc l = {CPS_F_CTRL_AL_imm, s->var[o->v->buf], o->base + off};
        cps_vec_push(s->g->arena, &s->p->relocs, l);
    } else {
        cps_sel_alu(s, e, CPS_ALU_ADD, r, r, (uint32_t)(o->base + off), x->loc);
    }
    cps_isa_set(b, f, 0x80ull << 56 | (uint64_t)(r + 1) << 8 | r);
    cps_sel_moved(s, f, o->v);
}

static void
place(cps_sel *s, cps_bundle *b, cps_field f, const cps_tinst *x, const side *o, int64_t off,
      cps_mreloc *r, unsigned *nr)
{
    if (o->v->reg)
        moving_address(s, b, f, x, o, off);
    else
        put_address(s, b, f, o, off, r, nr);
}

static cps_pat
whole(const side *o, bool rows)
{
    cps_pat p = {0};
    if (rows && o->rows > 1)
        p.d[p.nd++] = (cps_tdim){o->pitch, o->rows};
    for (int i = 0; i < o->p.nd; i++)
        p.d[p.nd++] = o->p.d[i];
    return p;
}

// Goes on to the next place of the outer `k` axes; false behind the last.
static bool
step_on(int64_t *idx, const cps_pat *p, int k)
{
    for (int i = k; i-- > 0;) {
        if (++idx[i] < p->d[i].num)
            return true;
        idx[i] = 0;
    }
    return false;
}

static int64_t
offset_at(const int64_t *idx, const cps_pat *p, int k)
{
    int64_t off = 0;
    for (int i = 0; i < k; i++)
        off += idx[i] * p->d[i].step;
    return off;
}

// The last two axes, as steps and counts of elements, fastest first.
static bool
put_tile(cps_bundle *b, const cps_pat *p, int64_t es, cps_field step, cps_field num)
{
    for (int i = 0; i < 2; i++) {
        cps_tdim d = p->d[p->nd - 1 - i];
        if (d.step % es || d.step / es != (int32_t)(d.step / es) || d.num > UINT16_MAX)
            return false;
        cps_isa_set_elem(b, step, (unsigned)i, (uint32_t)(int32_t)(d.step / es));
        cps_isa_set_elem(b, num, (unsigned)i, (uint64_t)d.num);
    }
    return true;
}

// A piece that one DMA_TRANSPOSE takes: it cuts its rows into tiles of 16, of up to 256 bytes.
static bool
one_transpose(cps_sel *s, const cps_tinst *x, const side *from, const side *to)
{
    const cps_pat p = whole(from, true), q = whole(to, true);
    int n = p.nd;
    if (!s->g->t->dma_transpose)
        return refuse(s, x, "this target has no DMA transpose");
    if (from->v->dtype != to->v->dtype || (from->es != 2 && from->es != 4))
        return refuse(s, x, "a moving transpose keeps the type, of 2 or 4 bytes");
    bool swapped = n >= 2 && n == q.nd && p.d[n - 1].num == q.d[n - 2].num &&
                   p.d[n - 2].num == q.d[n - 1].num;
    for (int i = 0; i < n - 2; i++)
        swapped = swapped && p.d[i].num == q.d[i].num;
    if (!swapped)
        return refuse(s, x, "the result is not the source with its last axes swapped");
    if (p.d[n - 2].num % 16 || p.d[n - 1].num * from->es > 256)
        return refuse(s, x,
                      "a moving transpose takes multiples of 16 rows, of up to 256 bytes each");
    bool even = to->base % 32 == 0 && (!to->v->reg || to->v->reg_step * to->es % 32 == 0);
    for (int i = 0; i < n - 2; i++) // pieces begin anywhere along these
        even = even && q.d[i].step % 32 == 0;
    if (!even)
        return refuse(s, x, "a moving transpose writes from multiples of 32 bytes on");
    return true;
}

static bool
moving_transpose(cps_sel *s, const cps_tinst *x, const side *from, const side *to)
{
    if (!one_transpose(s, x, from, to))
        return false;
    cps_pat p = whole(from, true), q = whole(to, true);
    int outer = p.nd - 2;
    int64_t idx[CPS_PAT_DIMS] = {0}, count = 1;
    for (int i = 0; i < outer; i++)
        count *= p.d[i].num;
    if (count > RECORDS_MAX)
        return refuse(s, x, "the walk is too broken: more than 256 records");
    do {
        cps_bundle b = cps_isa_new(CPS_INSN_DMA_TRANSPOSE, s->g->t->gen);
        cps_mreloc r[2];
        unsigned nr = 0;
        if (!put_tile(&b, &p, from->es, CPS_F_DMA_DIRECT2D_XPOSE_src_step_elem,
                      CPS_F_DMA_DIRECT2D_XPOSE_src_num_elem) ||
            !put_tile(&b, &q, to->es, CPS_F_DMA_DIRECT2D_XPOSE_dst_step_elem,
                      CPS_F_DMA_DIRECT2D_XPOSE_dst_num_elem))
            return refuse(s, x, "steps or counts are too large");
        SET(DMA_DIRECT2D_XPOSE_tile_cols, p.d[outer + 1].num);
        SET(DMA_DIRECT2D_XPOSE_in_dtype, cps_sel_in(from->v->dtype));
        SET(DMA_DIRECT2D_XPOSE_out_dtype, cps_sel_in(to->v->dtype));
        place(s, &b, CPS_F_DMA_DIRECT2D_XPOSE_src, x, from, offset_at(idx, &p, outer), r, &nr);
        place(s, &b, CPS_F_DMA_DIRECT2D_XPOSE_dst, x, to, offset_at(idx, &q, outer), r, &nr);
        record(s, x, &b, CPS_F_DMA_DIRECT2D_XPOSE_semaphore, r, nr);
        cps_sel_touch(s, from->v, false);
        cps_sel_touch(s, to->v, true);
    } while (step_on(idx, &p, outer));
    return true;
}

bool
cps_sel_moving_dma(cps_sel *s, const cps_tinst *x)
{
    side from, to;
    side_of(s, cps_sel_view(s, x->in[0]), &from);
    side_of(s, cps_sel_view(s, x->out[0]), &to);
    if (cps_sel_buf(s, from.v)->space == CPS_PSUM || cps_sel_buf(s, to.v)->space == CPS_PSUM)
        return refuse(s, x, "DMA does not reach PSUM; copy through SBUF");
    if (x->op == CPS_T_DMA_TRANSPOSE)
        return moving_transpose(s, x, &from, &to);
    cps_pat p[2] = {whole(&from, true), whole(&to, true)};
    if (!cps_pat_refine(p, 2, INT64_MAX / 2) || !cps_pat_cut(p, 2, 65535))
        return refuse(s, x, "the two sides do not pair element by element");
    bool add = cps_tinst_get(x, CPS_TA_ACCUMULATE, 0), cast = from.v->dtype != to.v->dtype;
    grid a, c;
    cps_pat pf, pt;
    int k = 0;
    for (;; k++) {
        pf = (cps_pat){.nd = p[0].nd - k};
        pt = pf;
        for (int i = k; i < p[0].nd; i++) {
            pf.d[i - k] = p[0].d[i];
            pt.d[i - k] = p[1].d[i];
        }
        int64_t fe = add || cast ? from.es : run_of(&pf, from.es);
        int64_t te = add || cast ? to.es : run_of(&pt, to.es);
        if (grid_of(&pf, from.es, fe, &a) && grid_of(&pt, to.es, te, &c))
            break;
    }
    int64_t count = 1, idx[CPS_PAT_DIMS] = {0};
    for (int i = 0; i < k; i++)
        count *= p[0].d[i].num;
    if (count > RECORDS_MAX)
        return refuse(s, x, "the walk is too broken: more than 256 records");
    do {
        int64_t foff = offset_at(idx, &p[0], k), toff = offset_at(idx, &p[1], k);
        cps_bundle b = cps_isa_new(CPS_INSN_DMA_MEMCPY, s->g->t->gen);
        cps_mreloc r[2];
        unsigned nr = 0;
        SET(DMA_DIRECT2D_sem_increment, RISE);
        SET(DMA_DIRECT2D_compute_op, add ? CPS_DGE_COMPUTE_OP_ADD : CPS_DGE_COMPUTE_OP_NONE);
        SET(DMA_DIRECT2D_src_elem_size, a.elem);
        SET(DMA_DIRECT2D_dst_elem_size, c.elem);
        for (unsigned i = 0; i < 2; i++) {
            cps_isa_set_elem(&b, CPS_F_DMA_DIRECT2D_src_step_elem, i,
                             (uint32_t)(int32_t)a.step[i]);
            cps_isa_set_elem(&b, CPS_F_DMA_DIRECT2D_src_num_elem, i, (uint64_t)a.num[i]);
            cps_isa_set_elem(&b, CPS_F_DMA_DIRECT2D_dst_step_elem, i,
                             (uint32_t)(int32_t)c.step[i]);
            cps_isa_set_elem(&b, CPS_F_DMA_DIRECT2D_dst_num_elem, i, (uint64_t)c.num[i]);
        }
        SET(DMA_DIRECT2D_in_dtype, cps_sel_in(from.v->dtype));
        SET(DMA_DIRECT2D_out_dtype, cps_sel_in(to.v->dtype));
        place(s, &b, CPS_F_DMA_DIRECT2D_src, x, &from, foff, r, &nr);
        place(s, &b, CPS_F_DMA_DIRECT2D_dst, x, &to, toff, r, &nr);
        record(s, x, &b, CPS_F_DMA_DIRECT2D_semaphore, r, nr);
        cps_sel_touch(s, cps_sel_view(s, x->in[0]), false);
        if (add)
            cps_sel_touch(s, cps_sel_view(s, x->out[0]), false);
        cps_sel_touch(s, cps_sel_view(s, x->out[0]), true);
    } while (step_on(idx, &p[0], k));
    return true;
}
