/* Selection: every tile instruction becomes bundles with physical addresses.
 *
 * In: a legal program with engines and places. Out: the machine program, in the same order:
 * each operation is one bundle on one engine, with the bytes it reads and writes; transfers
 * refer to a block of descriptors (dma.c). Bytes follow the project's encoding rulings. What
 * keeps state inside an engine (weights in the PE, activation tables, accumulators, DVE keys
 * and lane maps) is set up here; engines are in order, so it needs no synchronisation. Nothing
 * about time is decided: waits and signals are sync.c's. */
#include "codegen/select.h"

// The noted slots of the operation's own format; others are of a bundle that comes later.
static void
take_moved(cps_sel *s, cps_mop *m)
{
    cps_insn i = cps_isa_find(m->code.b[0], s->g->t->gen);
    uint32_t left = 0;
    m->extent = s->p->extents.n;
    for (uint32_t k = 0; k < s->moved.n; k++) {
        cps_mextent x = s->moved.data[k];
        if (cps_fields[x.field].format != cps_insns[i].format) {
            s->moved.data[left++] = x;
            continue;
        }
        cps_vec_push(s->g->arena, &s->p->extents, x);
        m->nextent++;
    }
    s->moved.n = left;
}

cps_mop *
cps_sel_op(cps_sel *s, cps_mkind kind, cps_engine e, const cps_bundle *b, cps_span loc)
{
    cps_mop *m = cps_vec_add(s->g->arena, &s->p->ops);
    m->kind = (uint8_t)kind;
    m->engine = (uint8_t)e;
    m->code = *b;
    m->acc = s->p->accs.n;
    m->reloc = s->p->relocs.n;
    m->loc = loc;
    if (s->moved.n)
        take_moved(s, m);
    return m;
}

void
cps_sel_moved(cps_sel *s, cps_field f, const cps_tview *v)
{
    cps_vec_push(s->g->arena, &s->moved, ((cps_mextent){(uint16_t)f, v->buf}));
}

// Sorts the walk steep first, joins what touches, and leaves base, run and dims >= 2.
static void
normalise(cps_macc *a)
{
    int n = 0;
    for (int i = 0; i < a->nd; i++) {
        int64_t step = a->d[i].step, num = a->d[i].num;
        if (step < 0) {
            a->base += step * (num - 1);
            step = -step;
        }
        if (num < 2 || step == 0)
            continue;
        int k = n++;
        for (; k > 0 && a->d[k - 1].step < step; k--)
            a->d[k] = a->d[k - 1];
        a->d[k].step = step;
        a->d[k].num = num;
    }
    while (n > 0 && a->d[n - 1].step <= a->run) {
        a->run += a->d[n - 1].step * (a->d[n - 1].num - 1);
        n--;
    }
    a->nd = n;
}

void
cps_sel_access(const cps_sel *s, const cps_tview *v, bool write, cps_macc *out)
{
    const cps_tbuf *b = cps_sel_buf(s, v);
    int64_t es = cps_dtype_bytes(v->dtype);
    *out = (cps_macc){.space = (uint8_t)b->space, .write = write, .run = es};
    if (b->space == CPS_HBM) {
        out->var = s->var[v->buf];
        out->base = v->off * es;
    } else {
        out->buf = v->buf;
        out->part = (uint16_t)(b->part + v->part);
        out->parts = v->parts;
        out->base = b->byte + v->off * es;
    }
    if ((v->reg && !v->alone) || (v->index && b->space == CPS_HBM)) {
        // Anywhere in the buffer: known only when it runs.
        out->base = b->space == CPS_HBM ? 0 : b->byte;
        out->run = cps_tbuf_bytes(b);
        return;
    }
    out->nd = v->nd;
    for (int i = 0; i < v->nd; i++) {
        out->d[i].step = v->d[i].step * es;
        out->d[i].num = v->d[i].num;
    }
    normalise(out);
}

void
cps_sel_touch(cps_sel *s, const cps_tview *v, bool write)
{
    cps_mop *m = &s->p->ops.data[s->p->ops.n - 1];
    cps_macc a;
    cps_sel_access(s, v, write, &a);
    cps_vec_push(s->g->arena, &s->p->accs, a);
    m->nacc++;
}

unsigned
cps_sel_out(cps_dtype t)
{
    return (unsigned)cps_dtypes[t].wire;
}

unsigned
cps_sel_in(cps_dtype t)
{
    return cps_sel_out(t == CPS_DT_TF32 ? CPS_DT_FP32 : t);
}

void
cps_sel_slot(cps_sel *s, cps_bundle *b, cps_field f, cps_engine e, const cps_tview *v,
             cps_span loc)
{
    const cps_tbuf *buf = cps_sel_buf(s, v);
    unsigned part = buf->part + v->part;
    uint32_t byte = (uint32_t)(buf->byte + v->off * cps_dtype_bytes(v->dtype));
    cps_ap ap = {.nd = (uint8_t)v->nd};
    ap.addr = buf->space == CPS_PSUM ? cps_addr_psum(part, byte) : cps_addr_sbuf(part, byte);
    cps_assert(v->nd <= 4);
    for (int i = 0; i < v->nd; i++) {
        ap.step[i] = (int16_t)v->d[v->nd - 1 - i].step;
        ap.num[i] = (uint16_t)v->d[v->nd - 1 - i].num;
    }
    if (v->reg) {
        ap.addr = 0x80000000u | cps_sel_address(s, e, v, ap.addr, loc);
        cps_sel_moved(s, f, v);
    }
    cps_isa_set_ap(b, f, &ap);
}

// ---- what the encoders below have in common ----

typedef struct enc {
    cps_sel *s;
    const cps_tinst *x;
    cps_bundle b;
} enc;

static enc
begin(cps_sel *s, const cps_tinst *x, cps_insn i)
{
    return (enc){s, x, cps_cg_bundle(s->g, i)};
}

#define SET(field, value) cps_isa_set(&c.b, CPS_F_##field, (uint64_t)(value))
#define PAIR(lo, hi) ((unsigned)(lo) | (unsigned)(hi) << 4)

static void
slot(enc *c, cps_field f, const cps_tview *v)
{
    // The view may move while its address is computed.
    cps_tview copy = *v;
    cps_sel_slot(c->s, &c->b, f, (cps_engine)c->x->engine, &copy, c->x->loc);
}

static int
attr(const enc *c, cps_tattr_key k)
{
    return cps_tinst_get(c->x, k, 0);
}

// Closes the operation: reads of `in`, writes of `out` (NULL: not given).
static void
end(enc *c, const cps_tview *out, const cps_tview *a, const cps_tview *b)
{
    cps_sel_op(c->s, CPS_M_UNIT, (cps_engine)c->x->engine, &c->b, c->x->loc);
    if (a)
        cps_sel_touch(c->s, a, false);
    if (b)
        cps_sel_touch(c->s, b, false);
    if (out)
        cps_sel_touch(c->s, out, true);
}

static void
read_scalar(cps_sel *s, cps_toper o)
{
    if (o.kind == CPS_TO_VIEW)
        cps_sel_touch(s, cps_sel_view(s, o), false);
}

// A scalar as the four bytes of its slot; `source` gets IMM_SRC. Columns start where the data
// starts, so the pointer is the offset within the partition.
static uint32_t
scalar(const cps_sel *s, cps_toper o, bool raw, unsigned *source)
{
    if (o.kind == CPS_TO_VIEW) {
        const cps_tview *v = cps_sel_view(s, o);
        *source = CPS_IMM_SRC_POINTER_IMMEDIATE;
        return (uint32_t)(cps_sel_buf(s, v)->byte + v->off * cps_dtype_bytes(v->dtype));
    }
    *source = CPS_IMM_SRC_INSTRUCTION_IMMEDIATE;
    if (raw)
        return o.is_int ? (uint32_t)o.ival : (uint32_t)(int64_t)o.imm;
    return cps_f32_bits(o.is_int ? (float)o.ival : o.imm);
}

static unsigned
rows_of(const cps_tview *v)
{
    return v->parts;
}

// Reads an accumulator register into the second result.
static void
read_accumulator(cps_sel *s, const cps_tinst *x, cps_insn i)
{
    if (x->nout < 2)
        return;
    enc c = begin(s, x, i);
    const cps_tview *v = cps_sel_view(s, x->out[1]);
    SET(D1_RD_dtype, cps_sel_out(v->dtype));
    SET(D1_RD_ch, rows_of(v));
    SET(D1_RD_negated, i == CPS_INSN_DVE_READ_ACCUMULATOR ? attr(&c, CPS_TA_NEGATE) : 0);
    slot(&c, CPS_F_D1_RD_dst, v);
    end(&c, cps_sel_view(s, x->out[1]), NULL, NULL);
}

static unsigned
accumulate(const enc *c)
{
    int acc = attr(c, CPS_TA_ACC);
    return acc || c->x->nout < 2 ? (unsigned)acc : (unsigned)CPS_ACCUM_CMD_ZERO_ACCUMULATE;
}

// ---- ACT ----

// One bit per table set for every function that needs tables.
static void
act_sets(cps_sel *s)
{
    static const struct {
        unsigned wire;
        const char *name, *other;
        int set;
    } fns[] = {
#define CPS_ACTFN(id, wire, name, other, set, sure) {wire, name, other, set},
#include "codegen/isa/act.def"
    };
    static const struct {
        unsigned index;
        const char *fns;
    } sets[] = {
#define CPS_ACTSET(index, name, fns) {index, fns},
#include "codegen/isa/act.def"
    };
    for (size_t i = 0; i < cps_countof(fns); i++) {
        if (fns[i].set < 0)
            continue;
        uint32_t mask = 1u << fns[i].set;
        for (size_t k = 0; k < cps_countof(sets); k++)
            for (const char *p = sets[k].fns; *p;) {
                size_t n = strcspn(p, " ");
                if ((strlen(fns[i].name) == n && !memcmp(fns[i].name, p, n)) ||
                    (strlen(fns[i].other) == n && !memcmp(fns[i].other, p, n)))
                    mask |= 1u << sets[k].index;
                p += n + (p[n] == ' ');
            }
        s->acts[fns[i].wire] = mask;
    }
}

// Loads the set that serves the most activations from here on, when the loaded one does not.
static void
want_table(cps_sel *s, const cps_tinst *x, unsigned fn)
{
    uint32_t mask = s->acts[fn & 255];
    if (!mask || (s->act_set && (mask >> (s->act_set - 1) & 1)))
        return;
    for (uint32_t i = s->inst + 1; i < s->g->f->insts.n; i++) {
        const cps_tinst *y = &s->g->f->insts.data[i];
        if (y->op != CPS_T_ACTIVATION)
            continue;
        uint32_t next = s->acts[cps_tinst_get(y, CPS_TA_FUNC, 0) & 255];
        if (!next)
            continue;
        if (!(mask & next))
            break;
        mask &= next;
        if (!(mask & (mask - 1)))
            break; // nothing left to choose
    }
    unsigned set = (unsigned)__builtin_ctz(mask);
    s->act_set = set + 1;
    enc c = begin(s, x, CPS_INSN_ACTIVATION_TABLE_LOAD);
    SET(CTRL_TL_set, set);
    end(&c, NULL, NULL, NULL);
}

// The first table is loaded before everything else: ACT stands idle then, waiting for data.
// What a branch leaves loaded is not known, unless one set serves all activations: then it
// stays.
static void
first_table(cps_sel *s)
{
    uint32_t first = UINT32_MAX, all = UINT32_MAX, loops = 0, depth = 0;
    bool control = false, early = false, turns = false;
    for (uint32_t i = 0; i < s->g->f->insts.n; i++) {
        const cps_tinst *x = &s->g->f->insts.data[i];
        depth += x->op == CPS_T_LOOP || x->op == CPS_T_WHEN;
        loops += x->op == CPS_T_LOOP;
        if (x->op == CPS_T_END && --depth == 0)
            loops = 0;
        control |= depth > 0;
        unsigned fn = (unsigned)cps_tinst_get(x, CPS_TA_FUNC, CPS_ACTFN_COPY);
        if (x->op != CPS_T_ACTIVATION || !s->acts[fn & 255])
            continue;
        first = CPS_MIN(first, i);
        all &= s->acts[fn & 255];
        early |= !control;
        turns |= loops > 0;
    }
    s->act_stays = all && (early || turns);
    if (first == UINT32_MAX || (!early && !s->act_stays))
        return;
    const cps_tinst *x = &s->g->f->insts.data[first];
    s->inst = first;
    want_table(s, x, (unsigned)cps_tinst_get(x, CPS_TA_FUNC, CPS_ACTFN_COPY));
}

static bool
activation(cps_sel *s, const cps_tinst *x)
{
    unsigned fn = (unsigned)cps_tinst_get(x, CPS_TA_FUNC, CPS_ACTFN_COPY), source, ignored;
    want_table(s, x, fn);
    enc c = begin(s, x, CPS_INSN_ACTIVATE);
    const cps_tview *src = cps_sel_view(s, x->in[0]);
    cps_dtype bias = CPS_DT_FP32;
    SET(S3D3_AC_activation_function, fn);
    SET(S3D3_AC_accumulator_cmd, accumulate(&c));
    SET(S3D3_AC_scale, scalar(s, x->in[1], false, &source));
    SET(S3D3_AC_scale_src, source);
    SET(S3D3_AC_bias, scalar(s, x->in[2], false, &ignored));
    SET(S3D3_AC_bias_src_n, x->in[2].kind == CPS_TO_VIEW ? CPS_IMM_SRC_N_POINTER_IMMEDIATE
                                                         : CPS_IMM_SRC_N_INSTRUCTION_IMMEDIATE);
    SET(S3D3_AC_in_bias_dtype, PAIR(cps_sel_in(src->dtype), cps_sel_in(bias)));
    SET(S3D3_AC_out_dtype, cps_sel_out(cps_sel_view(s, x->out[0])->dtype));
    SET(S3D3_AC_ch, rows_of(src));
    slot(&c, CPS_F_S3D3_AC_src, src);
    slot(&c, CPS_F_S3D3_AC_dst, cps_sel_view(s, x->out[0]));
    end(&c, cps_sel_view(s, x->out[0]), cps_sel_view(s, x->in[0]), NULL);
    read_scalar(s, x->in[1]);
    read_scalar(s, x->in[2]);
    read_accumulator(s, x, CPS_INSN_ACTIVATION_READ_ACCUMULATOR);
    return true;
}

// ---- DVE and POOL ----

static bool
bitwise(const enc *c, cps_tattr_key k)
{
    cps_alu_class cls = cps_alu_class_of((unsigned)attr(c, k), c->s->g->t->gen);
    return cls == CPS_ALUC_BITVEC || cls == CPS_ALUC_CRC;
}

static bool
tensor_tensor(cps_sel *s, const cps_tinst *x)
{
    enc c = begin(s, x, CPS_INSN_TENSOR_TENSOR_ARITH);
    if (bitwise(&c, CPS_TA_OP0))
        c = begin(s, x, CPS_INSN_TENSOR_TENSOR_BITVEC);
    const cps_tview *a = cps_sel_view(s, x->in[0]), *b = cps_sel_view(s, x->in[1]);
    SET(S3S3D3_TT_in0_in1_dtype, PAIR(cps_sel_in(a->dtype), cps_sel_in(b->dtype)));
    SET(S3S3D3_TT_out_dtype, cps_sel_out(cps_sel_view(s, x->out[0])->dtype));
    SET(S3S3D3_TT_op, attr(&c, CPS_TA_OP0));
    SET(S3S3D3_TT_ch, rows_of(a));
    slot(&c, CPS_F_S3S3D3_TT_src0, a);
    slot(&c, CPS_F_S3S3D3_TT_src1, cps_sel_view(s, x->in[1]));
    slot(&c, CPS_F_S3S3D3_TT_dst, cps_sel_view(s, x->out[0]));
    end(&c, cps_sel_view(s, x->out[0]), cps_sel_view(s, x->in[0]), cps_sel_view(s, x->in[1]));
    return true;
}

static bool
copy_pred(cps_sel *s, const cps_tinst *x)
{
    const cps_tview *p = cps_sel_view(s, x->in[0]), *d = cps_sel_view(s, x->in[1]);
    const cps_tview *o = cps_sel_view(s, x->out[0]);
    enc c =
        begin(s, x, d->dtype == o->dtype ? CPS_INSN_COPY_PREDICATED : CPS_INSN_CAST_PREDICATED);
    SET(S3S3D3_TT_in0_in1_dtype, PAIR(cps_sel_in(p->dtype), cps_sel_in(d->dtype)));
    SET(S3S3D3_TT_out_dtype,
        d->dtype == o->dtype ? cps_sel_in(o->dtype) : cps_sel_out(o->dtype));
    SET(S3S3D3_TT_op, CPS_ALU_BYPASS);
    SET(S3S3D3_TT_ch, rows_of(p));
    slot(&c, CPS_F_S3S3D3_TT_src0, p);
    slot(&c, CPS_F_S3S3D3_TT_src1, cps_sel_view(s, x->in[1]));
    slot(&c, CPS_F_S3S3D3_TT_dst, cps_sel_view(s, x->out[0]));
    end(&c, cps_sel_view(s, x->out[0]), cps_sel_view(s, x->in[0]), cps_sel_view(s, x->in[1]));
    return true;
}

// The fields that TENSOR_SCALAR and its accumulating form share.
static void
ts_fields(enc *e, cps_toper s0, cps_toper s1)
{
    enc c = *e;
    bool raw = bitwise(&c, CPS_TA_OP0);
    unsigned source;
    const cps_tview *src = cps_sel_view(c.s, c.x->in[0]);
    SET(S3D3_TS_in_dtype, cps_sel_in(src->dtype));
    SET(S3D3_TS_out_dtype, cps_sel_out(cps_sel_view(c.s, c.x->out[0])->dtype));
    SET(S3D3_TS_ch, rows_of(src));
    SET(S3D3_TS_op0, attr(&c, CPS_TA_OP0));
    SET(S3D3_TS_imm0, scalar(c.s, s0, raw, &source));
    SET(S3D3_TS_imm0_src, source);
    SET(S3D3_TS_imm1, scalar(c.s, s1, raw, &source));
    SET(S3D3_TS_imm1_src, source);
    slot(&c, CPS_F_S3D3_TS_src, src);
    slot(&c, CPS_F_S3D3_TS_dst, cps_sel_view(c.s, c.x->out[0]));
    *e = c;
}

static bool
tensor_scalar(cps_sel *s, const cps_tinst *x)
{
    enc c = begin(s, x, CPS_INSN_TENSOR_SCALAR_ARITH);
    if (bitwise(&c, CPS_TA_OP0))
        c = begin(s, x, CPS_INSN_TENSOR_SCALAR_BITVEC);
    bool one = !attr(&c, CPS_TA_OP1);
    ts_fields(&c, x->in[1], one ? cps_to_imm(0) : x->in[2]);
    SET(S3D3_TS_op1, attr(&c, CPS_TA_OP1));
    SET(S3D3_TS_reverse_operands, attr(&c, CPS_TA_REVERSE) & (one ? 1 : 3));
    end(&c, cps_sel_view(s, x->out[0]), cps_sel_view(s, x->in[0]), NULL);
    read_scalar(s, x->in[1]);
    if (!one)
        read_scalar(s, x->in[2]);
    return true;
}

static bool
ts_reduce(cps_sel *s, const cps_tinst *x)
{
    enc c = begin(s, x, CPS_INSN_TENSOR_SCALAR_CACHE_REDUCE);
    ts_fields(&c, x->in[1], cps_to_imm(0));
    SET(S3D3_TS_op1, cps_tinst_get(x, CPS_TA_RED, CPS_ALU_ADD));
    SET(S3D3_TS_accumulator_cmd, accumulate(&c));
    end(&c, cps_sel_view(s, x->out[0]), cps_sel_view(s, x->in[0]), NULL);
    read_scalar(s, x->in[1]);
    read_accumulator(s, x, CPS_INSN_DVE_READ_ACCUMULATOR);
    return true;
}

// The fields of the format with two tensors and a scalar.
static void
stt_fields(enc *e, cps_toper a, cps_toper b, cps_toper imm)
{
    enc c = *e;
    unsigned source;
    const cps_tview *v = cps_sel_view(c.s, a), *w = cps_sel_view(c.s, b);
    SET(S2S2D2_STT_in0_in1_dtype, PAIR(cps_sel_in(v->dtype), cps_sel_in(w->dtype)));
    SET(S2S2D2_STT_out_dtype, cps_sel_out(cps_sel_view(c.s, c.x->out[0])->dtype));
    SET(S2S2D2_STT_ch, rows_of(v));
    SET(S2S2D2_STT_imm0, scalar(c.s, imm, bitwise(&c, CPS_TA_OP0), &source));
    SET(S2S2D2_STT_imm0_src, source);
    SET(S2S2D2_STT_imm0_dtype, cps_dtypes[CPS_DT_FP32].wire);
    slot(&c, CPS_F_S2S2D2_STT_src0, v);
    slot(&c, CPS_F_S2S2D2_STT_src1, cps_sel_view(c.s, b));
    slot(&c, CPS_F_S2S2D2_STT_dst, cps_sel_view(c.s, c.x->out[0]));
    *e = c;
}

static bool
stt(cps_sel *s, const cps_tinst *x)
{
    enc c = begin(s, x, CPS_INSN_SCALAR_TENSOR_TENSOR_ARITH);
    if (bitwise(&c, CPS_TA_OP0)) {
        c = begin(s, x, CPS_INSN_SCALAR_TENSOR_TENSOR_BITVEC);
    }
    stt_fields(&c, x->in[0], x->in[2], x->in[1]);
    SET(S2S2D2_STT_op0, attr(&c, CPS_TA_OP0));
    SET(S2S2D2_STT_op1, attr(&c, CPS_TA_OP1));
    SET(S2S2D2_STT_reverse_operands, attr(&c, CPS_TA_REVERSE));
    end(&c, cps_sel_view(s, x->out[0]), cps_sel_view(s, x->in[0]), cps_sel_view(s, x->in[2]));
    read_scalar(s, x->in[1]);
    return true;
}

static bool
scan(cps_sel *s, const cps_tinst *x)
{
    enc c = begin(s, x, CPS_INSN_TENSOR_TENSOR_SCAN_ARITH);
    stt_fields(&c, x->in[0], x->in[1], x->in[2]);
    SET(S2S2D2_STT_op0, attr(&c, CPS_TA_OP0));
    SET(S2S2D2_STT_op1, attr(&c, CPS_TA_OP1));
    end(&c, cps_sel_view(s, x->out[0]), cps_sel_view(s, x->in[0]), cps_sel_view(s, x->in[1]));
    read_scalar(s, x->in[2]);
    return true;
}

static bool
select_reduce(cps_sel *s, const cps_tinst *x)
{
    enc c = begin(s, x, CPS_INSN_SELECT_REDUCE);
    stt_fields(&c, x->in[0], x->in[1], x->in[2]);
    SET(S2S2D2_STT_op0, CPS_ALU_BYPASS);
    SET(S2S2D2_STT_op1, CPS_ALU_MAX);
    SET(S2S2D2_STT_accumulator_cmd, accumulate(&c));
    end(&c, cps_sel_view(s, x->out[0]), cps_sel_view(s, x->in[0]), cps_sel_view(s, x->in[1]));
    read_scalar(s, x->in[2]);
    read_accumulator(s, x, CPS_INSN_DVE_READ_ACCUMULATOR);
    return true;
}

static bool
range_select(cps_sel *s, const cps_tinst *x)
{
    enc c = begin(s, x, CPS_INSN_RANGE_SELECT);
    const cps_tview *src = cps_sel_view(s, x->in[0]), *dst = cps_sel_view(s, x->out[0]);
    unsigned source;
    SET(S2D2_RS_ch, rows_of(src));
    SET(S2D2_RS_in_out_dtype, PAIR(cps_sel_in(src->dtype), cps_sel_out(dst->dtype)));
    SET(S2D2_RS_reduce_cmd, accumulate(&c));
    SET(S2D2_RS_base, cps_f32_bits((float)attr(&c, CPS_TA_BASE)));
    SET(S2D2_RS_comp_op0, attr(&c, CPS_TA_OP0));
    SET(S2D2_RS_comp_op1, attr(&c, CPS_TA_OP1));
    SET(S2D2_RS_bound0, scalar(s, x->in[1], false, &source));
    SET(S2D2_RS_bound0_src, source);
    SET(S2D2_RS_bound1, scalar(s, x->in[2], false, &source));
    SET(S2D2_RS_bound1_src, source);
    slot(&c, CPS_F_S2D2_RS_src, src);
    slot(&c, CPS_F_S2D2_RS_dst, cps_sel_view(s, x->out[0]));
    end(&c, cps_sel_view(s, x->out[0]), cps_sel_view(s, x->in[0]), NULL);
    read_scalar(s, x->in[1]);
    read_scalar(s, x->in[2]);
    read_accumulator(s, x, CPS_INSN_DVE_READ_ACCUMULATOR);
    return true;
}

// One tensor to one tensor.
static enc
one_to_one(cps_sel *s, const cps_tinst *x, cps_insn i)
{
    enc c = begin(s, x, i);
    const cps_tview *src = cps_sel_view(s, x->in[0]);
    bool bits =
        i == CPS_INSN_COPY || i == CPS_INSN_STREAM_SHUFFLE || i == CPS_INSN_STREAM_TRANSPOSE;
    cps_dtype out = cps_sel_view(s, x->out[0])->dtype;
    SET(S4D4_TR_in_dtype, cps_sel_in(src->dtype));
    SET(S4D4_TR_out_dtype, bits ? cps_sel_in(out) : cps_sel_out(out));
    SET(S4D4_TR_ch, rows_of(src));
    slot(&c, CPS_F_S4D4_TR_src, src);
    slot(&c, CPS_F_S4D4_TR_dst, cps_sel_view(s, x->out[0]));
    return c;
}

static bool
plain(enc c)
{
    end(&c, cps_sel_view(c.s, c.x->out[0]), cps_sel_view(c.s, c.x->in[0]), NULL);
    return true;
}

static bool
copy(cps_sel *s, const cps_tinst *x)
{
    bool same = cps_sel_view(s, x->in[0])->dtype == cps_sel_view(s, x->out[0])->dtype;
    return plain(one_to_one(s, x, same ? CPS_INSN_COPY : CPS_INSN_CAST));
}

static bool
reciprocal(cps_sel *s, const cps_tinst *x)
{
    return plain(one_to_one(s, x, CPS_INSN_RECIPROCAL));
}

static bool
tensor_reduce(cps_sel *s, const cps_tinst *x)
{
    enc probe = {s, x, {{0}}};
    enc c = one_to_one(s, x,
                       bitwise(&probe, CPS_TA_OP0) ? CPS_INSN_TENSOR_REDUCE_BITVEC
                                                   : CPS_INSN_TENSOR_REDUCE_ARITH);
    SET(S4D4_TR_op, attr(&c, CPS_TA_OP0));
    SET(S4D4_TR_op_dim, CPS_TENSOR_SUBDIM_X + attr(&c, CPS_TA_AXES) - 1);
    SET(S4D4_TR_negated, attr(&c, CPS_TA_NEGATE));
    return plain(c);
}

static bool
shuffle(cps_sel *s, const cps_tinst *x)
{
    enc c = begin(s, x, CPS_INSN_LOAD_MASK_SELECT);
    if (!(x->set >> CPS_TA_MASK & 1) || s->g->f->lists.data[x->attr[CPS_TA_MASK]].n != 32) {
        cps_error(s->g->d, CPS_E5303, x->loc, "'%s' needs a mask of 32 lanes",
                  cps_tops[x->op].name);
        return false;
    }
    for (unsigned i = 0; i < 32; i++)
        c.b.b[cps_fields[CPS_F_CTRL_IM_immediate].byte + i] =
            (uint8_t)s->g->f->lists.data[x->attr[CPS_TA_MASK]].v[i];
    end(&c, NULL, NULL, NULL);
    return plain(one_to_one(s, x, CPS_INSN_STREAM_SHUFFLE));
}

static bool
transpose(cps_sel *s, const cps_tinst *x)
{
    return plain(one_to_one(s, x, CPS_INSN_STREAM_TRANSPOSE));
}

static bool
fill(cps_sel *s, const cps_tinst *x)
{
    enc c = begin(s, x, CPS_INSN_MEMSET);
    const cps_tview *v = cps_sel_view(s, x->out[0]);
    uint8_t raw[8] = {0};
    uint32_t word = 0;
    if (x->in[0].is_int && cps_dtype_is_int(v->dtype))
        cps_from_i64(v->dtype, raw, x->in[0].ival);
    else
        cps_from_f32(v->dtype, raw, x->in[0].is_int ? (float)x->in[0].ival : x->in[0].imm);
    for (unsigned i = 0; i < cps_dtype_bytes(v->dtype) && i < 4; i++)
        word |= (uint32_t)raw[i] << (8 * i);
    SET(D4_MR_dst_element_count, cps_tview_elems(v));
    SET(D4_MR_dtype, cps_sel_out(v->dtype));
    SET(D4_MR_ch, rows_of(v));
    SET(D4_MR_set_value, word);
    slot(&c, CPS_F_D4_MR_dst, v);
    end(&c, cps_sel_view(s, x->out[0]), NULL, NULL);
    return true;
}

// The index pattern; legalisation keeps the counts behind the steps.
static cps_ap
data4d(const cps_sel *s, const cps_tinst *x, int sign)
{
    const cps_tlist *list = &s->g->f->lists.data[x->attr[CPS_TA_PATTERN]];
    cps_ap ap = {.nd = (uint8_t)list->n,
                 .addr = (uint32_t)(sign * cps_tinst_get(x, CPS_TA_BASE, 0))};
    for (int i = 0; i < list->n; i++) {
        ap.step[i] = (int16_t)(sign * list->v[list->n - 1 - i]);
        ap.num[i] = (uint16_t)list->v[2 * list->n - 1 - i];
    }
    return ap;
}

static bool
iota(cps_sel *s, const cps_tinst *x)
{
    enc c = begin(s, x, CPS_INSN_IOTA);
    const cps_tview *v = cps_sel_view(s, x->out[0]);
    cps_ap ap = data4d(s, x, 1);
    cps_isa_set_ap(&c.b, CPS_F_D4_IOTA_pattern, &ap);
    SET(D4_IOTA_out_dtype, cps_sel_out(v->dtype));
    SET(D4_IOTA_ch, rows_of(v));
    SET(D4_IOTA_channel_multiplier, (uint32_t)attr(&c, CPS_TA_CHANNEL));
    slot(&c, CPS_F_D4_IOTA_dst, v);
    end(&c, cps_sel_view(s, x->out[0]), NULL, NULL);
    return true;
}

// A register of POOL that holds `bits`.
static unsigned
fill_register(cps_sel *s, const cps_tinst *x, uint32_t bits)
{
    unsigned first = (unsigned)s->g->t->sync_registers - CPS_SEL_FILLS;
    for (unsigned i = 0; i < CPS_SEL_FILLS; i++)
        if (s->fill_known[i] && s->fill[i] == bits)
            return first + i;
    unsigned i = s->fill_next++ % CPS_SEL_FILLS;
    s->fill_known[i] = true;
    s->fill[i] = bits;
    cps_sel_move(s, CPS_POOL, first + i, bits, x->loc);
    return first + i;
}

static bool
affine_select(cps_sel *s, const cps_tinst *x)
{
    static const int16_t cmp[256] = {[CPS_ALU_IS_GT] = 1 + CPS_AFFINE_SELECT_CMP_GT,
                                     [CPS_ALU_IS_GE] = 1 + CPS_AFFINE_SELECT_CMP_GE,
                                     [CPS_ALU_IS_EQ] = 1 + CPS_AFFINE_SELECT_CMP_EQ,
                                     [CPS_ALU_IS_NE] = 1 + CPS_AFFINE_SELECT_CMP_NE};
    int op = cps_tinst_get(x, CPS_TA_OP0, CPS_ALU_IS_EQ) & 255;
    // Smaller is greater with every term turned round.
    int sign = op == CPS_ALU_IS_LT || op == CPS_ALU_IS_LE ? -1 : 1;
    if (sign < 0)
        op = op == CPS_ALU_IS_LT ? CPS_ALU_IS_GT : CPS_ALU_IS_GE;
    if (!cmp[op]) {
        cps_error(s->g->d, CPS_E5303, x->loc, "'%s' compares by gt, ge, lt, le, eq or ne",
                  cps_tops[x->op].name);
        return false;
    }
    float fill = x->in[1].is_int ? (float)x->in[1].ival : x->in[1].imm;
    unsigned reg = fill_register(s, x, cps_f32_bits(fill));
    enc c = begin(s, x, CPS_INSN_TENSOR_SCALAR_AFFINE_SELECT);
    const cps_tview *src = cps_sel_view(s, x->in[0]), *dst = cps_sel_view(s, x->out[0]);
    cps_ap ap = data4d(s, x, sign);
    cps_isa_set_ap(&c.b, CPS_F_S2D2_TS_AS_mask, &ap);
    SET(S2D2_TS_AS_ch, rows_of(src));
    SET(S2D2_TS_AS_in_out_dtype, PAIR(cps_sel_in(src->dtype), cps_sel_out(dst->dtype)));
    SET(S2D2_TS_AS_fill_mode, cmp[op] - 1);
    SET(S2D2_TS_AS_fill_reg, reg);
    SET(S2D2_TS_AS_channel_multiplier, (uint32_t)(sign * attr(&c, CPS_TA_CHANNEL)));
    slot(&c, CPS_F_S2D2_TS_AS_src, src);
    slot(&c, CPS_F_S2D2_TS_AS_dst, cps_sel_view(s, x->out[0]));
    end(&c, cps_sel_view(s, x->out[0]), cps_sel_view(s, x->in[0]), NULL);
    return true;
}

static bool
part_reduce(cps_sel *s, const cps_tinst *x)
{
    static const struct {
        uint8_t alu, insn, op;
    } ops[] = {
        {CPS_ALU_ADD, CPS_INSN_CROSS_LANE_REDUCE_ARITH, CPS_CROSS_REDUCE_OP_ADD},
        {CPS_ALU_MAX, CPS_INSN_CROSS_LANE_REDUCE_ARITH, CPS_CROSS_REDUCE_OP_MAX},
        {CPS_ALU_BITWISE_OR, CPS_INSN_CROSS_LANE_REDUCE_BITVEC, CPS_CROSS_REDUCE_OP_OR},
        {CPS_ALU_BITWISE_AND, CPS_INSN_CROSS_LANE_REDUCE_BITVEC, CPS_CROSS_REDUCE_OP_AND},
        {CPS_ALU_BITWISE_XOR, CPS_INSN_CROSS_LANE_REDUCE_BITVEC, CPS_CROSS_REDUCE_OP_XOR},
    };
    int alu = cps_tinst_get(x, CPS_TA_OP0, CPS_ALU_ADD);
    for (size_t i = 0; i < cps_countof(ops); i++) {
        if (ops[i].alu != alu)
            continue;
        enc c = begin(s, x, (cps_insn)ops[i].insn);
        const cps_tview *src = cps_sel_view(s, x->in[0]);
        SET(S4D4_CR_in_dtype, cps_sel_in(src->dtype));
        SET(S4D4_CR_out_dtype, cps_sel_out(cps_sel_view(s, x->out[0])->dtype));
        SET(S4D4_CR_ch, rows_of(src));
        SET(S4D4_CR_reduce_op, ops[i].op);
        SET(S4D4_CR_reduce_axis, CPS_REDUCE_AXIS_PARTITIONS);
        slot(&c, CPS_F_S4D4_CR_src, src);
        slot(&c, CPS_F_S4D4_CR_dst, cps_sel_view(s, x->out[0]));
        return plain(c);
    }
    cps_error(s->g->d, CPS_E5303, x->loc, "'%s' has no operator '%s'", cps_tops[x->op].name,
              cps_alu_name((unsigned)alu));
    return false;
}

// Statistics and top-8: a row in, a few values out.
static bool
row_to_few(cps_sel *s, const cps_tinst *x, cps_insn i, float even, float odd)
{
    enc c = begin(s, x, i);
    const cps_tview *src = cps_sel_view(s, x->in[0]);
    SET(S4D2_BN_in_dtype, cps_sel_in(src->dtype));
    SET(S4D2_BN_out_dtype, cps_sel_out(cps_sel_view(s, x->out[0])->dtype));
    SET(S4D2_BN_ch, rows_of(src));
    SET(S4D2_BN_even_count, cps_f32_bits(even));
    SET(S4D2_BN_odd_count, cps_f32_bits(odd));
    slot(&c, CPS_F_S4D2_BN_src, src);
    slot(&c, CPS_F_S4D2_BN_dst, cps_sel_view(s, x->out[0]));
    return plain(c);
}

static bool
bn_stats(cps_sel *s, const cps_tinst *x)
{
    int64_t n = cps_tview_elems(cps_sel_view(s, x->in[0]));
    return row_to_few(s, x, CPS_INSN_BATCH_NORM_STATS2, (float)((n + 1) / 2), (float)(n / 2));
}

static bool
bn_aggr(cps_sel *s, const cps_tinst *x)
{
    return row_to_few(s, x, CPS_INSN_BATCH_NORM_AGGREGATE, 0, 0);
}

static bool
max8(cps_sel *s, const cps_tinst *x)
{
    return row_to_few(s, x, CPS_INSN_MAX8, 0, 0);
}

static void
load_keys(cps_sel *s, const cps_tinst *x)
{
    enc c = begin(s, x, CPS_INSN_MATCH_VALUE_LOAD);
    const cps_tview *v = cps_sel_view(s, x->in[1]);
    SET(S2_BN_dtype, cps_sel_in(v->dtype));
    SET(S2_BN_ch, rows_of(v));
    slot(&c, CPS_F_S2_BN_src, v);
    end(&c, NULL, cps_sel_view(s, x->in[1]), NULL);
}

static bool
find_index8(cps_sel *s, const cps_tinst *x)
{
    load_keys(s, x);
    return row_to_few(s, x, CPS_INSN_FIND_INDEX8, 0, 0);
}

static bool
match_replace8(cps_sel *s, const cps_tinst *x)
{
    load_keys(s, x);
    enc c = begin(s, x, CPS_INSN_MATCH_REPLACE8);
    const cps_tview *src = cps_sel_view(s, x->in[0]);
    SET(S4D4_MR_in_dtype, cps_sel_in(src->dtype));
    SET(S4D4_MR_out_dtype, cps_sel_out(cps_sel_view(s, x->out[0])->dtype));
    SET(S4D4_MR_ch, rows_of(src));
    SET(S4D4_MR_immediate, cps_f32_bits(x->in[2].is_int ? (float)x->in[2].ival : x->in[2].imm));
    slot(&c, CPS_F_S4D4_MR_src, src);
    slot(&c, CPS_F_S4D4_MR_dst, cps_sel_view(s, x->out[0]));
    plain(c);
    if (x->nout < 2)
        return true;
    if (s->g->t->gen == CPS_V2) {
        cps_error(s->g->d, CPS_E5303, x->loc, "'%s' gives positions from v3 on",
                  cps_tops[x->op].name);
        return false;
    }
    c = begin(s, x, CPS_INSN_DVE_READ_INDICES);
    const cps_tview *v = cps_sel_view(s, x->out[1]);
    SET(D4_MR_dst_element_count, cps_tview_elems(v));
    SET(D4_MR_dtype, cps_sel_out(v->dtype));
    SET(D4_MR_ch, rows_of(v));
    slot(&c, CPS_F_D4_MR_dst, v);
    end(&c, cps_sel_view(s, x->out[1]), NULL, NULL);
    return true;
}

// ---- the list ----

static bool (*const encode[CPS_TOPS])(cps_sel *, const cps_tinst *) = {
#define CPS_LOWER(op, shape, dims, outs, ins, fn) [CPS_T_##op] = fn,
#include "codegen/lower.def"
};

static bool
variables(cps_sel *s)
{
    static const uint8_t kinds[] = {[CPS_LOCAL] = CPS_VAR_TMP,
                                    [CPS_IN] = CPS_VAR_INPUT,
                                    [CPS_OUT] = CPS_VAR_OUTPUT,
                                    [CPS_INOUT] = CPS_VAR_INOUT,
                                    [CPS_DATA] = CPS_VAR_DATA};
    const cps_tfunc *f = s->g->f;
    for (uint32_t i = 1; i < f->bufs.n; i++) {
        const cps_tbuf *b = &f->bufs.data[i];
        if (b->space != CPS_HBM)
            continue;
        // what a leaf keeps in HBM is there for both cores: a barrier() orders them
        bool shared = b->role == CPS_LOCAL && f->cores > 1;
        cps_kvar v = {.kind = shared ? CPS_VAR_SHARED : (cps_varkind)kinds[b->role],
                      .dtype = b->dtype,
                      .rank = b->rank,
                      .bytes = cps_tbuf_bytes(b),
                      .data = b->data};
        v.name = cps_arena_strdup(s->g->arena, b->name);
        if (cps_kbin_var(s->p->k, v.name) != UINT32_MAX)
            v.name = cps_arena_printf(s->g->arena, "%s.%u", b->name, i);
        for (int k = 0; k < b->rank; k++)
            v.dim[k] = b->dim[k];
        s->var[i] = s->p->k->vars.n;
        cps_vec_push(s->g->arena, &s->p->k->vars, v);
    }
    return true;
}

bool
cps_pass_select(cps_cg *g, cps_mprog *p)
{
    cps_sel s = {.g = g, .p = p, .ok = true};
    p->k = cps_kbin_new(g->arena, g->f->name, g->t->name, g->t->gen);
    p->k->core = g->f->core;
    p->k->cores = g->f->cores > 0 ? g->f->cores : 1;
    p->var = s.var = cps_new_array(g->arena, uint32_t, g->f->bufs.n);
    s.version = cps_new_array(g->arena, uint32_t, g->f->bufs.n);
    s.reg = cps_new_array(g->arena, uint8_t, g->f->bufs.n);
    cps_map_init(&s.labels, g->arena);
    act_sets(&s);
    cps_vec_reserve(g->arena, &p->ops, 2 * g->f->insts.n + 64); // a product has two
    cps_vec_reserve(g->arena, &p->accs, 4 * g->f->insts.n);
    bool ok = variables(&s) && cps_sel_registers(&s);
    if (ok)
        first_table(&s);
    for (uint32_t i = 0; ok && i < g->f->insts.n; i++) {
        const cps_tinst *x = &g->f->insts.data[i];
        s.inst = i;
        s.first_op = p->ops.n;
        ok = encode[x->op](&s, x) && s.ok;
        if (!ok || s.first_op == p->ops.n)
            continue;
        if (x->after) {
            const uint64_t *at = cps_map_find(&s.labels, x->after);
            p->ops.data[s.first_op].after = at ? (uint32_t)*at : 0;
        }
        if (x->label)
            *cps_map_at(&s.labels, x->label, NULL) = p->ops.n;
        for (int k = 0; k < x->nout; k++)
            if (x->out[k].kind == CPS_TO_VIEW)
                s.version[cps_sel_view(&s, x->out[k])->buf]++;
    }
    p->k->stats.sbuf_peak = g->sbuf_peak;
    p->k->stats.psum_banks = g->psum_banks;
    return ok;
}
