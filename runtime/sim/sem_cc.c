/* Exchanges between logical cores: collectives, send and receive, the number of a rank.
 *
 * The runtime rewrites these records for its collective cores, which work beside the engines: the
 * record is posted and its engine goes on; what it updates is updated when the exchange is complete.
 * The posts of a rank for one stream are taken in order. An exchange begins when every member has
 * posted it, and moves its bytes when it ends. Results are the same on all members: sums are made in
 * the order of the group, one DMA accumulation after another (rounded to the type each time). */
#include "runtime/sim/group.h"

#define F(x) cps_isa_get(&i->b, x)
#define CPS_CC_ELEMENTS ((int64_t)1 << 40)

/* What a record asks for, beyond the collective types of the ISA. */
enum { CC_SEND = 32, CC_RECV };

struct exchange {
    uint8_t type, op;
    cps_dtype dtype;
    uint32_t table; /* of replica groups, or of pairs */
    uint32_t in, out;
    int64_t in_off, out_off, count; /* elements of this rank's input; bytes of a message */
    unsigned peer;
    uint8_t mode, sem; /* update when it is complete; mode 0: none */
    uint32_t value;
    uint16_t queue; /* what is in order: collectives, the messages to or from one rank */
};

/* A record that waits for the others, or is under way. */
struct post {
    cps_sim *s;
    const insn *i;
    const exchange *x;
    unsigned rank, place, n; /* its place among the n members */
    unsigned member[CPS_SIM_CORES];
    int64_t in_bytes, out_bytes;
    xfer *t;
    uint32_t change; /* index + 1 of its record in the chain of the semaphore */
    bool busy;       /* begun */
    post *next;      /* of the members */
};

/* ---- ranks ---- */

static unsigned
rank_of(const cps_sim *s)
{
    return s->group ? s->group->rank_of[s->core] : 0;
}

static unsigned
ranks(const cps_sim *s)
{
    return s->group && s->group->nranks ? s->group->nranks : 1;
}

/* The machine that keeps the posts of a rank: its first core's. */
static cps_sim *
keeper(cps_sim *s, unsigned rank)
{
    return s->group ? s->group->core[s->group->first[rank]] : s;
}

/* Members of the replica group of `rank` in `table`, in order; 0: there is none. A kernel without
 * tables means all ranks. */
static unsigned
group_of(const cps_sim *s, uint32_t table, unsigned rank, unsigned *out)
{
    const cps_kbin *k = s->k;
    if (k->groups.n == 0 && table == 0) {
        for (unsigned r = 0; r < ranks(s); r++)
            out[r] = r;
        return ranks(s);
    }
    for (uint32_t g = 0; g < k->groups.n; g++) {
        const cps_kgroup *x = &k->groups.data[g];
        bool in = false;
        for (uint32_t m = 0; m < x->n && x->n <= CPS_SIM_CORES; m++) {
            out[m] = k->ranks.data[x->first + m];
            in |= out[m] == rank;
        }
        if (x->table == table && in)
            return x->n <= CPS_SIM_CORES ? x->n : 0;
    }
    return 0;
}

/* Where `rank` sends to in a permutation, and from whom it hears; ranks(s): nowhere, nobody. */
static void
route(const cps_sim *s, const post *p, unsigned rank, unsigned *to, unsigned *from)
{
    *to = *from = ranks(s);
    if (p->x->type == CPS_COLLECTIVE_TYPE_PERMUTE_IMPLICIT ||
        p->x->type == CPS_COLLECTIVE_TYPE_PERMUTE_REDUCE_IMPLICIT) {
        for (unsigned m = 0; m < p->n; m++) {
            if (p->member[m] != rank)
                continue;
            *to = p->member[(m + 1) % p->n];
            *from = p->member[(m + p->n - 1) % p->n];
        }
        return;
    }
    for (uint32_t k = 0; k < p->s->k->pairs.n; k++) {
        const cps_kpair *x = &p->s->k->pairs.data[k];
        if (x->table != p->x->table)
            continue;
        if (x->from == rank)
            *to = x->to;
        if (x->to == rank)
            *from = x->from;
    }
}

/* All ranks of a permutation, ascending. */
static unsigned
paired(const cps_sim *s, uint32_t table, unsigned *out)
{
    unsigned n = 0;
    for (unsigned r = 0; r < ranks(s); r++) {
        bool in = false;
        for (uint32_t k = 0; k < s->k->pairs.n; k++) {
            const cps_kpair *x = &s->k->pairs.data[k];
            in |= x->table == table && (x->from == r || x->to == r);
        }
        if (in)
            out[n++] = r;
    }
    return n;
}

static bool
permutes(const exchange *x)
{
    return x->type >= CPS_COLLECTIVE_TYPE_PERMUTE &&
           x->type <= CPS_COLLECTIVE_TYPE_PERMUTE_REDUCE_IMPLICIT;
}

static bool
reduces(const exchange *x)
{
    return x->type == CPS_COLLECTIVE_TYPE_ALL_REDUCE ||
           x->type == CPS_COLLECTIVE_TYPE_REDUCE_SCATTER ||
           x->type == CPS_COLLECTIVE_TYPE_PERMUTE_REDUCE ||
           x->type == CPS_COLLECTIVE_TYPE_PERMUTE_REDUCE_IMPLICIT;
}

/* ---- loading ---- */

/* Its update is made when the exchange is complete, not when the engine has posted it. */
static bool
take_update(cps_sim *s, insn *i, exchange *x)
{
    if (i->sy.nupdate) {
        x->mode = i->sy.update_mode[0];
        x->sem = i->sy.update_idx[0];
        x->value = i->sy.update_value[0];
    }
    i->sy.nupdate = 0;
    unsigned what = x->mode & 0x0F;
    return (!(x->mode & 0x80) && (x->mode == 0 || what >= CPS_UPDATE_SEM_INC_READ)) ||
           load_fail(s, i, CPS_E8202, "an exchange changes a semaphore by a number in the record");
}

static bool
hbm_of(cps_sim *s, const insn *i, uint32_t var, bool written)
{
    if (var == 0 || var >= s->vars.n)
        return load_fail(s, i, CPS_E8202, "tensor %u is no variable in HBM", var);
    if (written)
        s->vars.data[var].quiet = false;
    if (written && s->vars.data[var].v->kind == CPS_VAR_DATA)
        return load_fail(s, i, CPS_E8205, "write to the constant '%s'", s->vars.data[var].v->name);
    return true;
}

static bool
fits_type(cps_sim *s, const insn *i, const exchange *x)
{
    if (!x->dtype || cps_dtypes[x->dtype].kind == 'P')
        return load_fail(s, i, CPS_E8202, "a collective needs a type of whole elements");
    if (!reduces(x))
        return true;
    if (x->op != CPS_ALU_ADD && x->op != CPS_ALU_MAX && x->op != CPS_ALU_MIN)
        return load_fail(s, i, CPS_E8202, "collectives add, or take the larger or the smaller");
    if (!cps_dtype_is_float(x->dtype))
        return load_fail(s, i, CPS_E8202, "collectives reduce floats");
    return true;
}

bool
prep_collective(cps_sim *s, insn *i)
{
    bool first = i->id == CPS_INSN_PSEUDO_ALLREDUCE;
    exchange *x = cps_new(s->load_arena, exchange);
    i->xc = x;
    if (first) {
        x->type = CPS_COLLECTIVE_TYPE_ALL_REDUCE;
        x->op = (uint8_t)F(CPS_F_PSEUDO_ALLREDUCE_op);
        x->dtype = cps_isa_dtype((unsigned)F(CPS_F_PSEUDO_ALLREDUCE_dtype));
        x->in = (uint32_t)F(CPS_F_PSEUDO_ALLREDUCE_input_tensor_id);
        x->out = (uint32_t)F(CPS_F_PSEUDO_ALLREDUCE_output_tensor_id);
        x->count = (int64_t)F(CPS_F_PSEUDO_ALLREDUCE_num_elements);
    } else {
        x->type = (uint8_t)F(CPS_F_PSEUDO_TRIGGER_COLLECTIVE_ctype);
        x->op = (uint8_t)F(CPS_F_PSEUDO_TRIGGER_COLLECTIVE_op);
        x->dtype = cps_isa_dtype((unsigned)F(CPS_F_PSEUDO_TRIGGER_COLLECTIVE_dtype));
        x->table = (uint32_t)F(CPS_F_PSEUDO_TRIGGER_COLLECTIVE_group_id);
        x->in = (uint32_t)F(CPS_F_PSEUDO_TRIGGER_COLLECTIVE_input_tensor_id);
        x->out = (uint32_t)F(CPS_F_PSEUDO_TRIGGER_COLLECTIVE_output_tensor_id);
        x->count = (int64_t)F(CPS_F_PSEUDO_TRIGGER_COLLECTIVE_num_elements);
        x->in_off = (int64_t)F(CPS_F_PSEUDO_TRIGGER_COLLECTIVE_src);
        x->out_off = (int64_t)F(CPS_F_PSEUDO_TRIGGER_COLLECTIVE_dst);
    }
    if (x->type < CPS_COLLECTIVE_TYPE_ALL_REDUCE ||
        x->type > CPS_COLLECTIVE_TYPE_PERMUTE_REDUCE_IMPLICIT)
        return load_fail(s, i, CPS_E8202, "no model of this collective: its counts are not in the record");
    if (x->count < 1 || x->count > CPS_CC_ELEMENTS)
        return load_fail(s, i, CPS_E8202, "%lld elements", (long long)x->count);
    x->queue = load_queue(s, "cc");
    return take_update(s, i, x) && fits_type(s, i, x) && hbm_of(s, i, x->in, false) && hbm_of(s, i, x->out, true);
}

bool
prep_sendrecv(cps_sim *s, insn *i)
{
    exchange *x = cps_new(s->load_arena, exchange);
    uint64_t peer = F(CPS_F_PSEUDO_SENDRECV_peer);
    bool send = F(CPS_F_PSEUDO_SENDRECV_is_send) & 1;
    i->xc = x;
    x->type = send ? CC_SEND : CC_RECV;
    x->dtype = CPS_DT_U8;
    x->peer = (unsigned)CPS_MIN(peer, UINT32_MAX);
    x->in = x->out = (uint32_t)F(CPS_F_PSEUDO_SENDRECV_tensor_id);
    x->in_off = x->out_off = (int64_t)F(CPS_F_PSEUDO_SENDRECV_offset);
    x->count = (int64_t)F(CPS_F_PSEUDO_SENDRECV_size);
    if (x->count < 1 || x->count > CPS_CC_ELEMENTS)
        return load_fail(s, i, CPS_E8202, "%lld bytes", (long long)x->count);
    x->queue = load_queue(s, cps_arena_printf(s->load_arena, "%s_%u", send ? "to" : "from", x->peer));
    return take_update(s, i, x) && hbm_of(s, i, x->in, !send);
}

bool
prep_rank_id(cps_sim *s, insn *i)
{
    if (F(CPS_F_PSEUDO_RANK_ID_dst_reg) >= REGS)
        return load_fail(s, i, CPS_E8202, "there is no register %u",
                         (unsigned)F(CPS_F_PSEUDO_RANK_ID_dst_reg));
    return F(CPS_F_PSEUDO_RANK_ID_iteration) == 0 ||
           load_fail(s, i, CPS_E8202, "whose data an iteration works on is not published");
}

bool
exec_rank_id(cps_sim *s, engine *e, insn *i)
{
    unsigned m[CPS_SIM_CORES], own = rank_of(s), at = 0;
    unsigned n = group_of(s, (uint32_t)F(CPS_F_PSEUDO_RANK_ID_group_id), own, m);
    while (at < n && m[at] != own)
        at++;
    if (at == n)
        return run_fault(s, i, CPS_E8305, "rank %u is in no replica group %u", own,
                         (unsigned)F(CPS_F_PSEUDO_RANK_ID_group_id));
    e->reg[F(CPS_F_PSEUDO_RANK_ID_dst_reg)] = at;
    return true;
}

/* ---- posting ---- */

static rect
bytes_of(uint32_t var, int64_t off, int64_t n)
{
    rect r = {.space = SP_HBM, .var = var, .base = off, .run = n};
    rect_close(&r);
    return r;
}

static bool
in_variable(cps_sim *s, const insn *i, uint32_t var, int64_t off, int64_t n)
{
    const cps_kvar *v = s->vars.data[var].v;
    if (off >= 0 && off <= v->bytes && n <= v->bytes - off)
        return true;
    s->rep.bounds++;
    return run_fault(s, i, CPS_E8302, "bytes %lld..%lld of '%s', which has %lld", (long long)off,
                     (long long)(off + n), v->name, (long long)v->bytes);
}

/* Members and sizes: false after a fault. */
static bool
measure(cps_sim *s, const insn *i, post *p)
{
    const exchange *x = p->x;
    int64_t in = x->count * cps_dtype_bytes(x->dtype);
    bool permute = x->type == CPS_COLLECTIVE_TYPE_PERMUTE ||
                   x->type == CPS_COLLECTIVE_TYPE_PERMUTE_REDUCE;
    if (x->type >= CC_SEND) {
        if (x->peer >= ranks(s) || x->peer == p->rank)
            return run_fault(s, i, CPS_E8305, "rank %u exchanges with rank %u of %u", p->rank, x->peer,
                             ranks(s));
        p->n = 2;
        p->member[0] = x->type == CC_SEND ? p->rank : x->peer;
        p->member[1] = x->type == CC_SEND ? x->peer : p->rank;
    } else if (permute) {
        p->n = paired(s, x->table, p->member);
    } else {
        p->n = group_of(s, x->table, p->rank, p->member);
    }
    p->place = 0;
    while (p->place < p->n && p->member[p->place] != p->rank)
        p->place++;
    if (permute && p->place == p->n) { // sends nothing and hears nothing
        p->n = 1;
        p->place = 0;
        p->member[0] = p->rank;
    }
    for (unsigned m = 0; m < p->n; m++)
        if (p->member[m] >= ranks(s))
            return run_fault(s, i, CPS_E8305, "rank %u of %u takes part", p->member[m], ranks(s));
    if (p->place == p->n)
        return run_fault(s, i, CPS_E8305, "rank %u is in no replica group %u", p->rank, x->table);
    bool parts = x->type == CPS_COLLECTIVE_TYPE_REDUCE_SCATTER ||
                 x->type == CPS_COLLECTIVE_TYPE_ALL_TO_ALL;
    if (parts && x->count % p->n)
        return run_fault(s, i, CPS_E8305, "%lld elements cannot be divided among %u ranks",
                         (long long)x->count, p->n);
    p->in_bytes = in;
    p->out_bytes = x->type == CPS_COLLECTIVE_TYPE_REDUCE_SCATTER ? in / p->n
                   : x->type == CPS_COLLECTIVE_TYPE_ALL_GATHER  ? in * p->n
                                                                 : in;
    return (x->type == CC_RECV || in_variable(s, i, x->in, x->in_off, p->in_bytes)) &&
           (x->type == CC_SEND || in_variable(s, i, x->out, x->out_off, p->out_bytes));
}

static int32_t
amount_of(const exchange *x)
{
    switch (x->mode & 0x0F) {
    case CPS_UPDATE_SEM_INC_READ:
        return 1;
    case CPS_UPDATE_SEM_DEC_READ:
        return -1;
    case CPS_UPDATE_SEM_ADD_IMM_READ:
        return (int32_t)x->value;
    case CPS_UPDATE_SEM_SUB_IMM_READ:
        return (int32_t)-x->value;
    default:
        return 0;
    }
}

/* A transfer on the core's queue for exchanges, as far as checks and records know it. */
static void
enqueue(cps_sim *s, engine *e, const insn *i, post *p)
{
    queue *q = &s->queues.data[p->x->queue];
    unsigned source = CPS_ENGINES + p->x->queue;
    xfer *t = p->t = cps_new(s->run_arena, xfer);
    block *b = t->b = cps_new(s->run_arena, block);
    b->arena = s->run_arena;
    b->queue = p->x->queue;
    b->to_var = b->from_var = true;
    b->bytes = CPS_MAX(p->in_bytes, p->out_bytes);
    b->ndesc = 1;
    b->engines = 1;
    if (p->x->type != CC_RECV)
        cps_vec_push(s->run_arena, &b->ring[0].reads, bytes_of(p->x->in, p->x->in_off, p->in_bytes));
    if (p->x->type != CC_SEND)
        cps_vec_push(s->run_arena, &b->ring[0].writes,
                     bytes_of(p->x->out, p->x->out_off, p->out_bytes));
    t->by = i;
    t->seq = ++q->seq;
    t->trigger = s->now;
    t->vc = e->vc;
    t->op = p;
    s->rep.dma_transfers++;
    if (s->rec)
        rec_submit(s, e, t, s->now, s->now);
    if (!(s->opts.checks & CPS_CHECK_RACES))
        return;
    q->vc = vc_join(s, q->vc, e->vc);
    race_transfer(s, t, 0);
    int32_t amount = amount_of(p->x);
    if (amount) {
        sync_issue(s, p->x->sem, source, amount, amount, q->vc, 0, t->seq, i);
        p->change = sync_changes(s, p->x->sem, source);
    }
}

/* ---- meeting ---- */

static bool
same(const post *a, const post *b)
{
    const exchange *x = a->x, *y = b->x;
    if (x->type >= CC_SEND || y->type >= CC_SEND)
        return x->type != y->type && x->type >= CC_SEND && y->type >= CC_SEND && x->count == y->count;
    return x->type == y->type && x->dtype == y->dtype && x->count == y->count &&
           (x->op == y->op || !reduces(x)) && a->n == b->n &&
           memcmp(a->member, b->member, a->n * sizeof *a->member) == 0;
}

static void
misfit(cps_sim *s, const post *a, const post *b)
{
    cps_buf n = {0};
    insn_name(s, b->i, &n);
    run_fault(a->s, a->i, CPS_E8207, "does not go with %s, which rank %u has posted for it", n.data,
              b->rank);
    s->fault = true;
    cps_buf_fini(&n);
}

/* The post of rank `r` that is to go with `p`: the first of its collectives, or of its messages on the
 * way that `p` is on. For the rank of `p` itself: what comes first there. */
static post *
partner(const post *p, unsigned r)
{
    const cps_sim *k = keeper(p->s, r);
    bool message = p->x->type >= CC_SEND, own = r == p->rank;
    for (uint32_t n = 0; n < k->posts.n; n++) {
        post *o = k->posts.data[n];
        if (message ? o->x->type >= CC_SEND && (o->x->type == p->x->type) == own &&
                          o->x->peer == (own ? p->x->peer : p->rank)
                    : o->x->type < CC_SEND)
            return o;
    }
    return NULL;
}

static unsigned
log2_up(unsigned n)
{
    unsigned k = 0;
    while (1u << k < n)
        k++;
    return k;
}

/* Hops by the published choice of algorithms (a mesh of one step for small messages, recursive
 * doubling above), and the bytes a rank sends over its links. */
static cps_ps
duration(const cps_target *t, const post *p)
{
    double in = (double)p->in_bytes, n = p->n, sent = in;
    bool all = p->x->type == CPS_COLLECTIVE_TYPE_ALL_REDUCE;
    if (p->n < 2)
        return 0;
    unsigned hops = p->in_bytes < t->cc_mesh_bytes ? 1 : log2_up(p->n);
    if (p->x->type >= CC_SEND || permutes(p->x))
        hops = 1;
    else if (p->x->type == CPS_COLLECTIVE_TYPE_ALL_GATHER)
        sent = in * (n - 1);
    else
        sent = in * (n - 1) / n * (all ? 2 : 1); // all-reduce: reduce-scatter, then all-gather
    return ns_ps((all ? 2 : 1) * hops * t->cc_hop_ns + sent / t->cc_link_bytes_per_ns);
}

/* The others of the ring went on because the one that came last came. */
static void
record_last(post *p)
{
    post *last = p;
    for (post *m = p->next; m != p; m = m->next)
        if (m->t->trigger > last->t->trigger)
            last = m;
    uint32_t from = last->s->rec ? last->s->rec->xfer.data[last->t->rec & ~REC_XFER].from : REC_NONE;
    for (post *m = last->next; m != last; m = m->next)
        rec_let_go(m->s, m->t->rec, last->s, from);
}

/* The exchange of the ring of posts begins, at the time of core `s`. */
static void
begin(cps_sim *s, post *p)
{
    vclock vc = p->t->vc;
    post *lead = p, *m = p;
    do {
        vc = vc_join(s, vc, m->t->vc);
        if (m->s->core < lead->s->core)
            lead = m;
        m = m->next;
    } while (m != p);
    do {
        m->busy = true;
        m->t->first = s->now;
        m->t->vc = vc;
        m = m->next;
    } while (m != p);
    record_last(p);
    group_send(s, lead->s, (event){.t = s->now + duration(s->t, p), .kind = EV_CC, .x = lead->t});
}

/* Begins the exchange of `p` when all members have come to it. */
static void
try_begin(cps_sim *s, post *p)
{
    if (p->busy || partner(p, p->rank) != p)
        return;
    post *last = p;
    for (unsigned m = 0; m < p->n; m++) {
        post *o = p->member[m] == p->rank ? p : partner(p, p->member[m]);
        if (!o || o->busy)
            return;
        if (!same(p, o) && o != p) {
            misfit(s, p, o);
            return;
        }
        if (o == p)
            continue;
        last->next = o;
        last = o;
    }
    last->next = p;
    begin(s, p);
}

static bool
submit(cps_sim *s, engine *e, insn *i)
{
    post *p = cps_new(s->run_arena, post);
    *p = (post){.s = s, .i = i, .x = i->xc, .rank = rank_of(s)};
    if (!measure(s, i, p))
        return false;
    enqueue(s, e, i, p);
    cps_sim *k = keeper(s, p->rank);
    cps_vec_push(k->run_arena, &k->posts, p);
    try_begin(s, p);
    return !s->fault;
}

bool
exec_collective(cps_sim *s, engine *e, insn *i)
{
    return submit(s, e, i);
}

bool
exec_sendrecv(cps_sim *s, engine *e, insn *i)
{
    return submit(s, e, i);
}

/* ---- the bytes ---- */

static uint8_t *
in_of(const post *p)
{
    return p->s->vars.data[p->x->in].data + p->x->in_off;
}

static uint8_t *
out_of(const post *p)
{
    return p->s->vars.data[p->x->out].data + p->x->out_off;
}

/* to[k] = to[k] op from[k], as a DMA engine accumulates. */
static void
accumulate(const exchange *x, uint8_t *to, const uint8_t *from, int64_t n)
{
    unsigned es = cps_dtype_bytes(x->dtype);
    for (int64_t k = 0; k < n; k++, to += es, from += es)
        cps_from_f32(x->dtype, to, alu_f32_1(x->op, cps_to_f32(x->dtype, to), cps_to_f32(x->dtype, from)));
}

/* What every member brought, one after another in the order of the group: outputs may lie where
 * inputs did. */
static uint8_t *
gathered(cps_arena *a, post *const *all, unsigned n)
{
    size_t each = (size_t)all[0]->in_bytes;
    uint8_t *b = cps_arena_raw(a, each * n + 1);
    for (unsigned m = 0; m < n; m++)
        memcpy(b + m * each, in_of(all[m]), each);
    return b;
}

static void
give(const post *p, unsigned place, post *const *all, const uint8_t *b)
{
    const exchange *x = p->x;
    size_t each = (size_t)p->in_bytes, part = each / p->n;
    unsigned es = cps_dtype_bytes(x->dtype), to, from;
    uint8_t *out = out_of(p);
    switch (x->type) {
    case CPS_COLLECTIVE_TYPE_ALL_REDUCE:
    case CPS_COLLECTIVE_TYPE_REDUCE_SCATTER: {
        size_t n = (size_t)p->out_bytes, at = x->type == CPS_COLLECTIVE_TYPE_ALL_REDUCE ? 0 : place * part;
        memcpy(out, b + at, n);
        for (unsigned m = 1; m < p->n; m++)
            accumulate(x, out, b + m * each + at, (int64_t)(n / es));
        break;
    }
    case CPS_COLLECTIVE_TYPE_ALL_GATHER:
        memcpy(out, b, each * p->n);
        break;
    case CPS_COLLECTIVE_TYPE_ALL_TO_ALL:
        for (unsigned m = 0; m < p->n; m++)
            memcpy(out + m * part, b + m * each + place * part, part);
        break;
    default:
        route(p->s, p, p->rank, &to, &from);
        if (reduces(x))
            memcpy(out, b + place * each, each);
        else
            memset(out, 0, each);
        for (unsigned m = 0; m < p->n; m++) {
            if (all[m]->rank != from)
                continue;
            if (reduces(x))
                accumulate(x, out, b + m * each, (int64_t)(each / es));
            else
                memcpy(out, b + m * each, each);
        }
        break;
    }
}

static void
move(post *const *all, unsigned n)
{
    cps_arena *a = cps_arena_create();
    for (unsigned m = 0; m < n; m++) {
        const post *p = all[m];
        rect r = bytes_of(p->x->in, p->x->in_off, p->in_bytes);
        if (p->x->type != CC_RECV)
            check_read(p->s, p->i, &r);
    }
    if (all[0]->x->type >= CC_SEND) {
        memcpy(out_of(all[1]), in_of(all[0]), (size_t)all[0]->in_bytes);
    } else {
        uint8_t *b = gathered(a, all, n);
        for (unsigned m = 0; m < n; m++)
            give(all[m], m, all, b);
    }
    for (unsigned m = 0; m < n; m++) {
        const post *p = all[m];
        rect w = bytes_of(p->x->out, p->x->out_off, p->out_bytes);
        if (p->x->type != CC_SEND)
            mark_rect(p->s, &w);
    }
    cps_arena_destroy(a);
}

static void
finish(cps_sim *from, post *p)
{
    cps_sim *s = p->s;
    const exchange *x = p->x;
    cps_ps seen = from->now + ns_ps(s->t->dma_receipt_ns);
    unsigned source = CPS_ENGINES + x->queue;
    s->end = CPS_MAX(s->end, seen);
    s->rep.dma_bytes += (uint64_t)p->t->b->bytes;
    s->rep.dma_descriptors++;
    p->t->last = from->now;
    if (s->rec)
        rec_exchange(s, p->t, seen);
    if (s->opts.checks & CPS_CHECK_RACES) { // who hears of it knows what all members knew
        queue *q = &s->queues.data[x->queue];
        q->vc = vc_join(s, q->vc, p->t->vc);
        if (p->change)
            sync_learn(s, x->sem, source, p->change - 1, p->t->vc);
    }
    if (!x->mode)
        return;
    event ev = {.t = seen,
                .kind = EV_SEM,
                .a = x->sem,
                .b = (uint16_t)source,
                .mode = x->mode & 0x0F,
                .amount = (x->mode & 0x0F) == CPS_UPDATE_SEM_WR_IMM_READ ? (int32_t)x->value : amount_of(x),
                .by = p->i,
                .vc = p->t->vc,
                .wr = p->t->seq,
                .rec = p->t->rec};
    group_send(from, s, ev);
}

void
cc_done(cps_sim *s, const xfer *t)
{
    post *p = t->op, *all[CPS_SIM_CORES] = {NULL};
    unsigned n = p->n;
    for (unsigned k = 0; k < n; k++, p = p->next)
        for (unsigned m = 0; m < n; m++)
            if (p->member[m] == p->rank)
                all[m] = p;
    if (!s->opts.no_data)
        move(all, n);
    for (unsigned m = 0; m < n && s->opts.probe && !s->fault; m++) {
        cps_sim *k = all[m]->s;
        k->now = CPS_MAX(k->now, s->now); // nothing of that core is due before
        probe(k, CPS_PROBE_MOVED, all[m]->i);
        s->fault |= k->fault;
    }
    for (unsigned m = 0; m < n; m++) {
        cps_sim *k = keeper(s, all[m]->rank);
        uint32_t at = 0;
        while (k->posts.data[at] != all[m])
            at++;
        k->posts.n--;
        memmove(k->posts.data + at, k->posts.data + at + 1, (k->posts.n - at) * sizeof *k->posts.data);
        finish(s, all[m]);
    }
    for (unsigned m = 0; m < n && !s->fault; m++) { // what stood behind them
        cps_sim *k = keeper(s, all[m]->rank);
        for (uint32_t q = 0; q < k->posts.n && !s->fault; q++)
            try_begin(s, k->posts.data[q]);
    }
}

/* ---- what is left when nothing goes on ---- */

unsigned
cc_missing(const post *p)
{
    for (unsigned m = 0; m < p->n; m++) {
        const post *o = p->member[m] == p->rank ? p : partner(p, p->member[m]);
        if (!o || (p->x->type < CC_SEND && !same(p, o) && o != p))
            return keeper(p->s, p->member[m])->core;
    }
    return p->s->core;
}

const post *
cc_raiser(cps_sim *s, unsigned sem)
{
    const cps_sim *k = keeper(s, rank_of(s));
    for (uint32_t n = 0; n < k->posts.n; n++) {
        const post *p = k->posts.data[n];
        if (p->s == s && p->x->mode && p->x->sem == sem)
            return p;
    }
    return NULL;
}

const insn *
cc_insn(const post *p)
{
    return p->i;
}

bool
cc_raises(const insn *i, unsigned sem)
{
    return i->xc && i->xc->mode && i->xc->sem == sem;
}
