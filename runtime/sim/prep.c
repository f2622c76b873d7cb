/* Preparing an instruction once: operands, scalars, sync and costs out of its 64 bytes, by the
 * rows of the instruction table. Which fields an instruction has, what dtype each operand has
 * and where each scalar comes from is the table's business; nothing here names an instruction.
 */
#include "runtime/sim/machine.h"

#include <stdarg.h>
#include <stdio.h>

static const sem_row sems[] = {
#define SEM(n, p, x, k) {n, NULL, x, k},
#define SEMP(n, p, x, k) {n, p, x, k},
#include "runtime/sim/sem.def"
#undef SEM
#undef SEMP
};

const sem_row *
sem_find(const char *name)
{
    for (unsigned i = 0; i < cps_countof(sems); i++) {
        if (strcmp(sems[i].name, name) == 0)
            return &sems[i];
    }
    return NULL;
}

/* ---- naming things in messages ---- */

const cps_kloc *
insn_loc(const cps_sim *s, const insn *i)
{
    const cps_kstream *st = &group_core(s, i->core)->k->stream[i->engine];
    return st->locs.n > i->index && st->locs.data[i->index].file ? &st->locs.data[i->index]
                                                                 : NULL;
}

void
insn_name(const cps_sim *s, const insn *i, cps_buf *out)
{
    const cps_kloc *at = insn_loc(s, i);
    if (group_named(s))
        cps_buf_printf(out, "core %u ", i->core);
    cps_buf_printf(out, "%s[%u] %s", cps_engine_name((cps_engine)i->engine), i->index,
                   cps_insns[i->id].name);
    if (at)
        cps_buf_printf(out, " (%s:%u)", at->file, at->line);
}

void
place_text(const cps_sim *s, const rect *r, cps_buf *out)
{
    if (r->space == SP_HBM) {
        cps_buf_printf(out, "'%s' bytes %lld..%lld", s->vars.data[r->var].v->name,
                       (long long)r->lo, (long long)r->hi);
        return;
    }
    int shift = r->space == SP_SBUF ? 18 : 15;
    int64_t mask = (1 << shift) - 1;
    int64_t p0 = r->lo >> shift, p1 = (r->hi - 1) >> shift, b0 = r->lo & mask;
    int64_t b1 = ((r->hi - 1) & mask) + 1;
    cps_buf_printf(out, "%s ", r->space == SP_SBUF ? "SBUF" : "PSUM");
    if (p0 == p1)
        cps_buf_printf(out, "partition %lld", (long long)p0);
    else
        cps_buf_printf(out, "partitions %lld..%lld", (long long)p0, (long long)p1);
    if (b1 > b0)
        cps_buf_printf(out, " bytes %lld..%lld", (long long)b0, (long long)b1);
}

static bool
fail(cps_sim *s, const insn *i, cps_code code, const char *fmt, va_list ap)
{
    char text[768];
    vsnprintf(text, sizeof text, fmt, ap);
    cps_buf b = {0};
    if (i)
        insn_name(s, i, &b);
    cps_error(s->d, code, CPS_NOSPAN, "%s%s%s", i ? b.data : "", i ? ": " : "", text);
    cps_buf_fini(&b);
    return false;
}

bool
load_fail(cps_sim *s, const insn *i, cps_code code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fail(s, i, code, fmt, ap);
    va_end(ap);
    return false;
}

bool
run_fault(cps_sim *s, const insn *i, cps_code code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fail(s, i, code, fmt, ap);
    va_end(ap);
    s->fault = true;
    return false;
}

/* ---- operands ---- */

static void
merge_dims(opnd *o)
{
    o->nd = 0;
    for (unsigned d = 0; d < o->raw_nd; d++) {
        if (o->raw_num[d] == 1)
            continue;
        int32_t step = o->raw_step[d];
        if (o->nd && step == o->step[o->nd - 1] * (int64_t)o->num[o->nd - 1]) {
            o->num[o->nd - 1] *= o->raw_num[d];
            continue;
        }
        o->step[o->nd] = step;
        o->num[o->nd++] = o->raw_num[d];
    }
    if (o->nd == 0) {
        o->nd = 1;
        o->step[0] = 1;
        o->num[0] = 1;
    }
    o->flat = o->nd == 1 && o->step[0] == 1;
    o->lo = 0;
    o->hi = o->es;
    for (unsigned d = 0; d < o->nd; d++) {
        int64_t far = (int64_t)o->step[d] * (o->num[d] - 1) * o->es;
        *(far < 0 ? &o->lo : &o->hi) += far;
    }
}

bool
opnd_set(const cps_sim *s, opnd *o, const cps_ap *ap, cps_dtype t, unsigned rows)
{
    (void)s;
    unsigned mark = ap->addr >> 24;
    o->dtype = (uint8_t)t;
    o->es = (uint8_t)cps_dtype_bytes(t);
    o->rows = (uint8_t)rows;
    o->reg = 0xFF;
    if (mark & 0x60) // shape registers, indirection
        return false;
    if (mark & 0x80) {
        o->reg = ap->addr & 0x3F;
    } else {
        o->psum = cps_addr_is_psum(ap->addr);
        o->part = (uint8_t)cps_addr_partition(ap->addr);
        o->byte = cps_addr_byte(ap->addr);
        if (cps_addr_partition(ap->addr) >= LANES)
            return false;
    }
    uint64_t count = 1;
    o->raw_nd = ap->nd;
    for (unsigned d = 0; d < ap->nd; d++) {
        o->raw_step[d] = ap->step[d];
        o->raw_num[d] = ap->num[d];
        count *= ap->num[d];
        if (count == 0 || count > ROW_MAX)
            return false;
    }
    o->count = (uint32_t)count;
    merge_dims(o);
    return o->es != 0;
}

static cps_dtype
dtype_in(const cps_bundle *b, const cps_field_row *f)
{
    if (f->dtype == CPS_F_NONE)
        return CPS_DT_FP32;
    unsigned v = (unsigned)cps_isa_get(b, (cps_field)f->dtype);
    v = f->part == CPS_PART_LOW ? v & 15 : f->part == CPS_PART_HIGH ? v >> 4 & 15 : v;
    return v == 0 ? CPS_DT_FP32 : cps_isa_dtype(v); // 0: "not given", fp32 where it may stand
}

bool
scalar_point(cps_sim *s, insn *i, scalar *c, uint32_t bits, cps_dtype t)
{
    cps_ap ap = {.addr = bits & 0x7FFFFF, .nd = 1, .step = {1}, .num = {1}};
    if (!opnd_set(s, &c->at, &ap, t, i->rows))
        return false;
    c->mode = c->mode == SC_IMM ? SC_PTR : c->mode;
    c->at.part = i->nop ? i->op[0].part : 0;
    c->at.byte = bits & 0x3FFFF;
    c->at.psum = 0;
    return true;
}

static bool
add_scalar(cps_sim *s, insn *i, const cps_field_row *f, cps_field field)
{
    scalar *c = &i->sc[i->nsc++];
    unsigned src = (unsigned)cps_isa_get(&i->b, (cps_field)f->source);
    bool swapped = cps_fields[f->source].arg == CPS_ENUM_IMM_SRC_N;
    c->bits = (uint32_t)cps_isa_get(&i->b, field);
    c->mode = src == 2 ? SC_REG : (src == 1) != swapped ? SC_PTR : SC_IMM;
    if (src > 2)
        return load_fail(s, i, CPS_E8202, "operand '%s': unknown source %u", f->name, src);
    if (c->mode == SC_IMM)
        return true;
    if (!scalar_point(s, i, c, c->bits, dtype_in(&i->b, f)))
        return load_fail(s, i, CPS_E8202, "operand '%s' cannot be addressed", f->name);
    c->at.field = (uint16_t)field;
    if (c->mode == SC_REG)
        c->at.reg = c->bits & 0x3F;
    return true;
}

/* The field of a format that says how many partitions; CPS_F_NONE: none does. */
static unsigned
rows_field(const cps_format_row *f)
{
    for (unsigned k = f[0].first; k < f[1].first; k++) {
        if (strcmp(cps_fields[k].name, "ch") == 0 ||
            strcmp(cps_fields[k].name, "num_active_rows") == 0)
            return k;
    }
    return CPS_F_NONE;
}

/* What an instruction's row says by name, found once. */
static const sem_row *
model_of(cps_sim *s, unsigned id)
{
    model *m = &s->model[id];
    if (!m->sem) {
        m->sem = sem_find(cps_insns[id].sem);
        m->rows = (uint16_t)rows_field(&cps_formats[cps_insns[id].format]);
    }
    return m->sem;
}

/* Packed elements have no value of their own: what moves bits may take them, nothing else. */
static bool
packed_fits(cps_sim *s, const insn *i)
{
    for (unsigned k = 0; k < i->nop; k++) {
        if (i->op[k].group && i->sem->kind == SEM_OWN)
            return load_fail(s, i, CPS_E8202, "no indirect patterns here");
    }
    static const char *const moves[] = {"copy", "memset", "stream_shuffle", "stream_transpose"};
    bool packed = false;
    for (unsigned k = 0; k < i->nop; k++)
        packed |= cps_dtypes[i->op[k].dtype].kind == 'P';
    for (unsigned k = 0; k < i->nsc; k++)
        packed |= i->sc[k].mode != SC_IMM && cps_dtypes[i->sc[k].at.dtype].kind == 'P';
    for (unsigned k = 0; k < cps_countof(moves); k++)
        packed = packed && strcmp(i->sem->name, moves[k]) != 0;
    return !packed || load_fail(s, i, CPS_E8202, "packed elements can only be moved");
}

static bool
prep_operands(cps_sim *s, insn *i, const cps_format_row *f)
{
    unsigned rows = s->model[i->id].rows;
    i->rows = rows ? (uint8_t)cps_isa_get(&i->b, (cps_field)rows) : LANES; // no field: all partitions
    for (int pass = 0; pass < 2; pass++) { // tensors first: pointers take their lanes
        for (unsigned k = f[0].first; k < f[1].first; k++) {
            const cps_field_row *r = &cps_fields[k];
            if (!(r->gens >> s->k->gen & 1))
                continue;
            cps_ap ap;
            if (pass == 0 && r->kind == CPS_FK_TENSOR) {
                cps_isa_get_ap(&i->b, (cps_field)k, &ap);
                if (i->nop == MAX_OPNDS || i->rows < 1 || i->rows > LANES ||
                    !(cps_addr_is_indirect(ap.addr)
                          ? indirect_set(s, i, &i->op[i->nop], (cps_field)k, dtype_in(&i->b, r),
                                         i->rows)
                          : opnd_set(s, &i->op[i->nop], &ap, dtype_in(&i->b, r), i->rows)))
                    return load_fail(s, i, CPS_E8202,
                                     "operand '%s' cannot be simulated: indirection, shape "
                                     "registers, more than %d elements or no such place",
                                     r->name, ROW_MAX);
                i->op[i->nop].field = (uint16_t)k;
                i->op[i->nop].out = r->out;
                i->nop++;
            } else if (pass == 0 && r->kind == CPS_FK_DATA4D) {
                cps_isa_get_ap(&i->b, (cps_field)k, &i->pat);
            } else if (pass == 1 && r->kind == CPS_FK_IMM && r->source != CPS_F_NONE &&
                       i->nsc < MAX_SCALARS) {
                if (!add_scalar(s, i, r, (cps_field)k))
                    return false;
            }
        }
    }
    for (unsigned k = 0; k < i->nop; k++) {
        i->psum_port |= i->op[k].psum;
        i->sbuf_port |= !i->op[k].psum;
    }
    return true;
}

/* ---- sync ---- */

static void
add_wait(sync *y, uint64_t mode, uint64_t idx, uint64_t value)
{
    if (mode == CPS_WAIT_NONE || mode == CPS_WAIT_UNORDERED)
        return;
    y->wait_mode[y->nwait] = (uint8_t)mode;
    y->wait_idx[y->nwait] = (uint8_t)idx;
    y->wait_value[y->nwait++] = (uint32_t)value;
}

static void
add_update(sync *y, uint64_t mode, uint64_t idx, uint64_t value)
{
    if (mode == CPS_UPDATE_NONE)
        return;
    y->update_mode[y->nupdate] = (uint8_t)mode;
    y->update_idx[y->nupdate] = (uint8_t)idx;
    y->update_value[y->nupdate++] = (uint32_t)value;
}

static void
prep_sync(insn *i)
{
    const cps_bundle *b = &i->b;
    uint64_t v = cps_isa_get(b, CPS_F_EVENTS_semaphore_value);
    add_wait(&i->sy, cps_isa_get(b, CPS_F_EVENTS_wait_mode),
             cps_isa_get(b, CPS_F_EVENTS_wait_idx), v);
    add_update(&i->sy, cps_isa_get(b, CPS_F_EVENTS_update_mode),
               cps_isa_get(b, CPS_F_EVENTS_update_idx), v);
    if (cps_insns[i->id].format != CPS_FMT_CTRL_ES)
        return;
    add_wait(&i->sy, cps_isa_get(b, CPS_F_CTRL_ES_wait_mode),
             cps_isa_get(b, CPS_F_CTRL_ES_wait_idx),
             cps_isa_get(b, CPS_F_CTRL_ES_sem_wait_value));
    add_update(&i->sy, cps_isa_get(b, CPS_F_CTRL_ES_update_mode),
               cps_isa_get(b, CPS_F_CTRL_ES_update_idx),
               cps_isa_get(b, CPS_F_CTRL_ES_sem_update_value));
}

/* A proof looks at what an instruction touches, not at what it does: those that differ in the sync
 * band alone share their operands. */
static bool
prep_alike(cps_sim *s, engine *e, insn *i, const cps_bundle *b)
{
    const insn *like = (const insn *)(uintptr_t)*cps_isa_seen_at(&s->alike, b, e->id);
    if (!like)
        return false;
    uint32_t index = i->index;
    *i = *like;
    i->index = index;
    i->b = *b;
    i->sy = (sync){.nwait = 0};
    prep_sync(i);
    return true;
}

bool
prep_insn(cps_sim *s, engine *e, insn *i, const cps_bundle *b)
{
    if (s->proof && prep_alike(s, e, i, b))
        return true;
    i->engine = e->id;
    i->b = *b;
    i->op = cps_new_array(s->load_arena, opnd, MAX_OPNDS);
    i->sc = cps_new_array(s->load_arena, scalar, MAX_SCALARS);
    i->id = (uint16_t)cps_isa_find(b->b[0], s->k->gen);
    if (i->id == CPS_INSN_NONE)
        return load_fail(s, NULL, CPS_E8202, "%s[%u]: opcode 0x%02x is no instruction of %s",
                         cps_engine_name((cps_engine)e->id), i->index, b->b[0],
                         cps_gen_name(s->k->gen));
    const cps_insn_row *row = &cps_insns[i->id];
    i->sem = model_of(s, i->id);
    if (!i->sem)
        return load_fail(s, i, CPS_E8202, "no model of this instruction: %s", row->doc);
    prep_sync(i);
    i->data = i->sem->kind != SEM_SEQ;
    if (i->data &&
        (!prep_operands(s, i, &cps_formats[row->format]) || !packed_fits(s, i)))
        return false;
    if (!s->proof) // which holds whatever the times
        cps_timing(s->t, (cps_engine)e->id, b, &i->cost);
    if (i->sem->prepare && !i->sem->prepare(s, i))
        return false;
    if (s->proof && i->data)
        *cps_isa_seen_at(&s->alike, b, e->id) = (uintptr_t)i;
    return true;
}
