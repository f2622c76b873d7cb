/* A kernel as a BIR document.
 *
 * Streams are cut into basic blocks at branches and their targets. All engines of our kernels
 * run the same control flow, so the pieces of one number make up one block; engines that do not
 * are given blocks of their own. In a block records are grouped into instructions: waits before
 * the record that takes them, companions with their main record (map.def). Program order is
 * that of the notes, else engine by engine.
 *
 * The text is made piece by piece: nothing but one instruction is ever held as a tree. */
#include "codegen/bir/bir.h"
#include "codegen/bir/dma.h"
#include "codegen/bir/insn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A group of records, or a single one that only its bytes can say.
typedef struct item {
    uint64_t order;       // block, then place in the program
    uint32_t first, last; // records of the engine
    uint32_t main;        // the one whose notes count for the place
    uint8_t engine;
    bool raw;
    bool before, after; // companions
    uint32_t self;      // waits stand from first to here: the first record that is no wait
} item;

typedef struct engine_blocks {
    uint32_t *leader; // where blocks begin, after the first
    uint32_t n, base; // base: number of the first block
} engine_blocks;

typedef struct writer {
    const cps_kbin *k;
    const cps_notes *notes;
    cps_arena *arena, *scratch;
    cps_bctx c;
    engine_blocks e[CPS_ENGINES];
    uint32_t blocks;
    uint32_t place; // location of the first place
    CPS_VEC(item) items;
    uint32_t *rank[CPS_ENGINES]; // record -> item
    CPS_VEC(uint32_t) refs;      // of the item under work
    uint32_t *reloc[CPS_ENGINES],
        *reloc_next;   // record -> its first relocation + 1, and further
    uint32_t *trigger; // DMA block -> the item that triggers it + 1
    bool listed;       // DMA blocks stand in the order of their triggers
    cps_jsonw w;
} writer;

// ---- basic blocks ----

static bool
branches(const writer *w, cps_engine e, uint32_t i, uint32_t *target)
{
    const cps_kstream *s = &w->k->stream[e];
    const cps_bundle *b = &s->code.data[i];
    if (cps_isa_find(b->b[0], w->k->gen) != CPS_INSN_COMPARE_BRANCH ||
        cps_isa_get(b, CPS_F_CTRL_BR_target_mode) != CPS_BR_TARGET_MODE_RELATIVE_IMMEDIATE)
        return false;
    int64_t to = (int64_t)i + (int64_t)cps_isa_get(b, CPS_F_CTRL_BR_branch);
    if (to < 0 || to > s->code.n)
        return false;
    *target = (uint32_t)to;
    return true;
}

static void
find_leaders(writer *w, cps_engine e)
{
    const cps_kstream *s = &w->k->stream[e];
    bool *at = cps_new_array(w->arena, bool, s->code.n + 1);
    engine_blocks *b = &w->e[e];
    uint32_t target;
    for (uint32_t i = 0; i < s->code.n; i++)
        if (branches(w, e, i, &target)) {
            at[target] = true;
            at[i + 1] = at[i + 1] || i + 1 < s->code.n;
        }
    at[0] = false; // the first block begins there anyway
    b->leader = cps_new_array(w->arena, uint32_t, s->code.n + 1);
    for (uint32_t i = 0; i <= s->code.n; i++)
        if (at[i])
            b->leader[b->n++] = i;
}

static void
number_blocks(writer *w)
{
    uint32_t same = UINT32_MAX;
    bool alike = true;
    for (int e = 0; e < CPS_ENGINES; e++) {
        find_leaders(w, (cps_engine)e);
        if (!w->k->stream[e].code.n)
            continue;
        alike = alike && (same == UINT32_MAX || same == w->e[e].n);
        same = w->e[e].n;
    }
    w->blocks = same == UINT32_MAX ? 1 : same + 1;
    if (alike)
        return;
    w->blocks = 0;
    for (int e = 0; e < CPS_ENGINES; e++) {
        w->e[e].base = w->blocks;
        w->blocks += w->e[e].n + 1;
    }
}

// The block that a record is in; the one that begins at `i` when several do.
static uint32_t
block_of(const writer *w, cps_engine e, uint32_t i)
{
    const engine_blocks *b = &w->e[e];
    uint32_t lo = 0, hi = b->n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (b->leader[mid] <= i)
            lo = mid + 1;
        else
            hi = mid;
    }
    return b->base + lo;
}

static const char *
block_name(writer *w, uint32_t block)
{
    return cps_arena_printf(w->c.arena, "bb%u", block);
}

// ---- groups ----

static cps_insn
insn_at(const writer *w, cps_engine e, uint32_t i)
{
    return cps_isa_find(w->k->stream[e].code.data[i].b[0], w->k->gen);
}

static cps_kloc
loc_at(const writer *w, cps_engine e, uint32_t i)
{
    const cps_kstream *s = &w->k->stream[e];
    return s->locs.n ? s->locs.data[i] : (cps_kloc){0};
}

static bool
is_wait(const writer *w, cps_engine e, uint32_t i, cps_bwait *out)
{
    const cps_bundle *b = &w->k->stream[e].code.data[i];
    if (insn_at(w, e, i) != CPS_INSN_EVENT_SEMAPHORE)
        return false;
    *out = (cps_bwait){(uint8_t)cps_isa_get(b, CPS_F_CTRL_ES_wait_idx),
                       (uint32_t)cps_isa_get(b, CPS_F_CTRL_ES_sem_wait_value)};
    cps_bundle plain = cps_binsn_wait(w->k->gen, *out);
    return !memcmp(plain.b, b->b, sizeof plain.b);
}

// The first record from `i` on that is no wait of a later one; `end` bounds the block.
static uint32_t
past_waits(const writer *w, cps_engine e, uint32_t i, uint32_t end)
{
    cps_bwait ignored;
    uint32_t k = i;
    cps_kloc at = loc_at(w, e, i);
    while (k < end && is_wait(w, e, k, &ignored))
        k++;
    if (k == i || k == end || insn_at(w, e, k) == CPS_INSN_EVENT_SEMAPHORE ||
        !cps_isa_get(&w->k->stream[e].code.data[k], CPS_F_EVENTS_wait_mode))
        return i;
    for (uint32_t j = i; j <= k; j++) {
        cps_kloc l = loc_at(w, e, j);
        if (!cps_streq(l.file, at.file) || l.line != at.line || l.col != at.col)
            return i;
    }
    return k;
}

static void
fill_record(writer *w, cps_engine e, uint32_t first, uint32_t self, cps_brec *r)
{
    const cps_kstream *s = &w->k->stream[e];
    uint32_t target;
    *r = (cps_brec){.here = true, .insn = insn_at(w, e, self), .b = s->code.data[self]};
    r->loc = loc_at(w, e, self);
    cps_bwait *wait = cps_new_array(w->c.arena, cps_bwait, self - first + 1);
    for (uint32_t i = first; i < self; i++)
        is_wait(w, e, i, &wait[r->nwait++]);
    r->wait = wait;
    if (branches(w, e, self, &target)) {
        uint32_t here = block_of(w, e, self);
        r->target = block_name(w, block_of(w, e, target));
        r->next = here + 1 < w->blocks ? block_name(w, here + 1) : NULL;
        cps_isa_set(&r->b, CPS_F_CTRL_BR_branch, 0);
    }
    for (uint32_t i = w->reloc[e][self]; i && r->nreloc < CPS_BRELOCS;
         i = w->reloc_next[i - 1]) {
        const cps_kreloc *x = &w->k->relocs.data[i - 1];
        r->reloc[r->nreloc++] =
            (cps_kreloc){.field = x->field, .var = x->var, .addend = x->addend};
    }
}

static void
chain_relocs(writer *w)
{
    for (int e = 0; e < CPS_ENGINES; e++)
        w->reloc[e] = cps_new_array(w->arena, uint32_t, w->k->stream[e].code.n + 1);
    w->reloc_next = cps_new_array(w->arena, uint32_t, w->k->relocs.n + 1);
    for (uint32_t i = w->k->relocs.n; i-- > 0;) {
        const cps_kreloc *x = &w->k->relocs.data[i];
        w->reloc_next[i] = w->reloc[x->engine][x->index];
        w->reloc[x->engine][x->index] = i + 1;
    }
}

static uint64_t
order_of(const writer *w, cps_engine e, uint32_t i)
{
    uint64_t place = w->notes && i < w->notes->record[e].n ? w->notes->record[e].data[i].order
                                                           : (uint64_t)e << 29 | i;
    return (uint64_t)block_of(w, e, i) << 32 | place;
}

static void
push_item(writer *w, item x)
{
    x.order = order_of(w, (cps_engine)x.engine, x.main);
    cps_vec_push(w->arena, &w->items, x);
}

static void
places_of(writer *w, const item *x)
{
    w->refs.n = 0;
    for (uint32_t i = x->first; w->notes && i <= x->last; i++) {
        if (i >= w->notes->record[x->engine].n)
            break;
        const cps_nrecord *r = &w->notes->record[x->engine].data[i];
        for (uint32_t k = 0; k < r->nref; k++)
            cps_vec_push(w->arena, &w->refs, w->place + w->notes->refs.data[r->ref + k]);
    }
    w->c.ref = w->refs.data;
    w->c.nref = w->refs.n;
}

static cps_json *
instruction(writer *w, const item *x)
{
    cps_bgroup g = {.engine = (cps_engine)x->engine};
    uint32_t self = x->self, from = x->first;
    places_of(w, x);
    if (x->raw) {
        fill_record(w, g.engine, x->first, x->first, &g.r[CPS_BS_MAIN]);
        g.r[CPS_BS_MAIN].b = w->k->stream[x->engine].code.data[x->first];
        return cps_binsn_write_raw(&w->c, &g.r[CPS_BS_MAIN], g.engine);
    }
    if (x->before) {
        fill_record(w, g.engine, from, self, &g.r[CPS_BS_BEFORE]);
        from = self + 1;
    }
    fill_record(w, g.engine, from, x->main, &g.r[CPS_BS_MAIN]);
    if (x->after)
        fill_record(w, g.engine, x->main + 1, x->last, &g.r[CPS_BS_AFTER]);
    return cps_binsn_write(&w->c, &g);
}

// Whether an instruction can say the group; remembers which registers and memories it names.
static bool
can_say(writer *w, const item *x)
{
    cps_mark mark = cps_arena_mark(w->scratch);
    bool ok = instruction(w, x) != NULL;
    cps_arena_release(w->scratch, mark);
    return ok;
}

static uint32_t
group_at(writer *w, cps_engine e, uint32_t i, uint32_t end)
{
    item x = {.first = i, .engine = (uint8_t)e};
    x.self = x.main = x.last = past_waits(w, e, i, end);
    cps_insn insn = insn_at(w, e, x.self);
    if (x.self + 1 < end) {
        uint32_t next = past_waits(w, e, x.self + 1, end);
        if (cps_bmap_companion(insn_at(w, e, next), CPS_BS_BEFORE, insn)) {
            x.before = true;
            x.main = x.last = next;
            insn = insn_at(w, e, next);
        }
    }
    if (x.main + 1 < end) {
        uint32_t next = past_waits(w, e, x.main + 1, end);
        if (cps_bmap_companion(insn, CPS_BS_AFTER, insn_at(w, e, next))) {
            x.after = true;
            x.last = next;
        }
    }
    if (can_say(w, &x)) {
        push_item(w, x);
        return x.last + 1;
    }
    // Record by record: what has an instruction of its own, else its bytes.
    for (uint32_t k = x.first; k <= x.last; k++) {
        item one = {.first = k, .last = k, .main = k, .self = k, .engine = (uint8_t)e};
        one.raw = !can_say(w, &one);
        push_item(w, one);
    }
    return x.last + 1;
}

static int
by_order(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    if (x->engine != y->engine)
        return x->engine < y->engine ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static void
group_all(writer *w)
{
    for (int e = 0; e < CPS_ENGINES; e++) {
        uint32_t n = w->k->stream[e].code.n;
        for (uint32_t i = 0, b = 0; i < n;) {
            while (b < w->e[e].n && w->e[e].leader[b] <= i)
                b++;
            i = group_at(w, (cps_engine)e, i, b < w->e[e].n ? w->e[e].leader[b] : n);
        }
    }
    if (w->items.n)
        qsort(w->items.data, w->items.n, sizeof(item), by_order);
    for (int e = 0; e < CPS_ENGINES; e++)
        w->rank[e] = cps_new_array(w->arena, uint32_t, w->k->stream[e].code.n + 1);
    for (uint32_t i = 0; i < w->items.n; i++)
        for (uint32_t k = w->items.data[i].first; k <= w->items.data[i].last; k++)
            w->rank[w->items.data[i].engine][k] = i;
}

// ---- DMA blocks ----

static void
print(writer *w, const cps_json *v, cps_bobj o)
{
    cps_bjson_print(&w->w, v, CPS_BF_OBJ, o);
}

// Blocks of a queue hold what a trigger's record touches: its places serve the descriptors.
static cps_json *
dma_block(writer *w, uint32_t i, cps_engine owner)
{
    w->c.nref = 0;
    if (w->trigger[i])
        places_of(w, &w->items.data[w->trigger[i] - 1]);
    return cps_bdma_write(&w->c, &w->k->blocks.data[i], owner, w->listed ? -1 : (int64_t)i);
}

static void
print_dma_block(writer *w, uint32_t i, cps_engine owner)
{
    cps_mark mark = cps_arena_mark(w->scratch);
    print(w, dma_block(w, i, owner), CPS_BO_DMABLOCK);
    cps_arena_release(w->scratch, mark);
}

static void
find_triggers(writer *w)
{
    w->trigger = cps_new_array(w->arena, uint32_t, w->k->blocks.n + 1);
    for (uint32_t i = 0; i < w->items.n; i++) {
        const item *x = &w->items.data[i];
        const cps_bundle *b = &w->k->stream[x->engine].code.data[x->main];
        if (x->raw || insn_at(w, (cps_engine)x->engine, x->main) != CPS_INSN_PSEUDO_DMA_TRIGGER)
            continue;
        const char *name = (const char *)b->b + cps_fields[CPS_F_PSEUDO_DMA_TRIGGER_queue].byte;
        char key[64];
        snprintf(key, sizeof key, "%.32s_%u", name,
                 (unsigned)cps_isa_get(b, CPS_F_PSEUDO_DMA_TRIGGER_block_id));
        const uint64_t *at = cps_map_find_str(&w->c.blocks, key);
        if (at && !w->trigger[*at - 1])
            w->trigger[*at - 1] = i + 1;
    }
    w->listed = true;
    for (uint32_t i = 0; i < w->k->blocks.n; i++)
        w->listed = w->listed && w->trigger[i] && (!i || w->trigger[i - 1] < w->trigger[i]);
    // Which whole memories descriptors name must be known before storages are printed.
    for (uint32_t i = 0; i < w->k->blocks.n; i++) {
        cps_mark mark = cps_arena_mark(w->scratch);
        dma_block(w, i, CPS_SP);
        cps_arena_release(w->scratch, mark);
    }
}

// ---- storages ----

static const char *
free_name(writer *w, const char *name)
{
    const char *set = name;
    while (cps_map_find_str(&w->c.by_name, cps_arena_printf(w->arena, "%s_0", set)))
        set = cps_arena_printf(w->arena, "%s'", set);
    return set;
}

static void
add_locations(writer *w)
{
    for (uint32_t i = 1; i < w->k->vars.n; i++) {
        const cps_kvar *v = &w->k->vars.data[i];
        // Variables have unique names already.
        cps_bmem m = {.set = v->name, .space = CPS_BS_HBM, .var = i, .bytes = v->bytes};
        m.name = cps_arena_printf(w->arena, "%s_0", v->name);
        while (!cps_bctx_add(&w->c, &m))
            m.name = cps_arena_printf(w->arena, "%s'", m.name);
    }
    for (int i = 0; i < 2; i++) {
        cps_bmem *whole = &w->c.mem.data[i];
        while (cps_kbin_var(w->k, whole->set) != UINT32_MAX && cps_kbin_var(w->k, whole->set))
            whole->set = cps_arena_printf(w->arena, "%s'", whole->set);
    }
    w->place = w->c.mem.n;
    for (uint32_t i = 0; w->notes && i < w->notes->places.n; i++) {
        const cps_nplace *p = &w->notes->places.data[i];
        cps_bmem m = {.space = p->psum ? CPS_BS_PSUM : CPS_BS_SB,
                      .part = p->part,
                      .parts = p->rank ? (uint32_t)p->dim[0] : 1,
                      .byte = p->byte,
                      .bytes = p->bytes};
        m.set = free_name(w, p->name);
        m.name = cps_arena_printf(w->arena, "%s_0", m.set);
        cps_bctx_add(&w->c, &m);
    }
}

#define STR(s) cps_bn_str(w->c.arena, (s))
#define INT(i) cps_bn_int(w->c.arena, (int64_t)(i))
#define LIST() cps_bn_new(w->c.arena, CPS_JSON_ARR)
#define OBJ() cps_bn_new(w->c.arena, CPS_JSON_OBJ)

static cps_json *
set_node(writer *w, const char *name, const char *kind, cps_dtype t, int rank,
         const int64_t *dim)
{
    cps_json *v = OBJ(), *shape = LIST();
    cps_bn_add(v, "name", STR(name));
    cps_bn_add(v, "kind", STR(kind));
    cps_bn_add(v, "dtype", STR(cps_bmap_dtype_name(t)));
    for (int i = 0; i < rank; i++)
        cps_bn_add(shape, NULL, INT(dim[i]));
    cps_bn_add(v, "tensor_shape", shape);
    return v;
}

static cps_json *
add_location(writer *w, cps_json *set, const cps_bmem *m, const char *type)
{
    cps_json *list = cps_bn_add(set, "memorylocations", LIST());
    cps_json *v = cps_bn_add(list, NULL, OBJ());
    cps_bn_add(v, "name", STR(m->name));
    cps_bn_add(v, "type", STR(type));
    return v;
}

static void
print_variable(writer *w, uint32_t i)
{
    const cps_kvar *v = &w->k->vars.data[i];
    const cps_bvar_row *row = &cps_bvars[v->kind];
    cps_json *set = set_node(w, v->name, row->kind, v->dtype, v->rank, v->dim), *own = OBJ();
    int64_t bytes = cps_dtype_bytes(v->dtype);
    cps_bn_add(add_location(w, set, &w->c.mem.data[1 + i], row->type), "var_id", INT(i));
    for (int k = 0; k < v->rank; k++)
        bytes *= v->dim[k];
    if (v->kind == CPS_VAR_INOUT)
        cps_bn_add(own, "kind", STR("inout"));
    if (v->kind == CPS_VAR_SHARED)
        cps_bn_add(own, "kind", STR("shared"));
    if (cps_bmap_dtype(cps_bmap_dtype_name(v->dtype)) != v->dtype)
        cps_bn_add(own, "dtype", STR(cps_dtype_name(v->dtype)));
    if (bytes != v->bytes)
        cps_bn_add(own, "bytes", INT(v->bytes));
    if (v->kind == CPS_VAR_DATA)
        cps_bn_add(own, "data", cps_bn_hex(w->c.arena, v->data, (size_t)v->bytes));
    if (own->n)
        cps_bn_add(set, "copse", own);
    print(w, set, CPS_BO_STORAGE);
}

static void
print_place(writer *w, const cps_bmem *m, cps_dtype t, int rank, const int64_t *dim)
{
    cps_json *set = set_node(w, m->set, "Internal", t, rank, dim);
    bool psum = m->space == CPS_BS_PSUM;
    cps_json *v = add_location(w, set, m, psum ? "PSUM" : "SB");
    cps_bn_add(v, "addr", INT(m->byte));
    cps_bn_add(v, "base", INT(m->part));
    cps_bn_add(v, "allocated", cps_bn_bool(w->c.arena, true));
    if (psum)
        cps_bn_add(v, "bank", INT(m->byte / CPS_PSUM_BANK));
    cps_json *dims = cps_bn_add(v, "dims", LIST());
    cps_bn_add(dims, NULL, INT(m->parts));
    cps_bn_add(dims, NULL, INT(m->bytes));
    print(w, set, CPS_BO_STORAGE);
}

static void
print_allocations(writer *w)
{
    uint32_t n = w->k->vars.n - 1 + (w->notes ? w->notes->places.n : 0);
    for (int i = 0; i < 2; i++)
        n += w->c.used[i];
    for (int i = 0; i < 256; i++)
        n += w->c.reg[i];
    cps_jsonw_key(&w->w, "allocations");
    cps_jsonw_arr(&w->w, n < 2);
    for (uint32_t i = 1; i < w->k->vars.n; i++) {
        cps_mark mark = cps_arena_mark(w->scratch);
        print_variable(w, i);
        cps_arena_release(w->scratch, mark);
    }
    for (uint32_t i = 0; i < 2; i++) {
        const cps_bmem *m = &w->c.mem.data[i];
        if (w->c.used[i])
            print_place(w, m, CPS_DT_U8, 2, (int64_t[]){m->parts, m->bytes});
    }
    for (uint32_t i = 0; w->notes && i < w->notes->places.n; i++) {
        const cps_nplace *p = &w->notes->places.data[i];
        cps_mark mark = cps_arena_mark(w->scratch);
        print_place(w, &w->c.mem.data[w->place + i], p->dtype, p->rank, p->dim);
        cps_arena_release(w->scratch, mark);
    }
    for (unsigned i = 0; i < 256; i++) {
        if (!w->c.reg[i])
            continue;
        cps_json *v = OBJ();
        cps_bn_add(v, "name", STR(cps_arena_printf(w->c.arena, "r%u", i)));
        cps_bn_add(v, "numPhysicalRegs", INT(1));
        print(w, v, CPS_BO_STORAGE);
    }
    cps_jsonw_end_arr(&w->w);
}

// ---- instructions ----

static int
ascending(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

// Other instructions that this one must follow, each with its strongest reason.
static void
add_dependences(writer *w, uint32_t self, cps_json *v)
{
    static const char *const kinds[] = {"Invalid", "Ordered", "Anti", "Output", "Flow"};
    const item *x = &w->items.data[self];
    CPS_VEC(uint64_t) found = {0};
    for (uint32_t i = x->first; w->notes && i <= x->last && i < w->notes->record[x->engine].n;
         i++) {
        const cps_nrecord *r = &w->notes->record[x->engine].data[i];
        for (uint32_t k = 0; k < r->ndep; k++) {
            const cps_ndep *d = &w->notes->deps.data[r->dep + k];
            uint32_t by = w->rank[d->engine][d->index];
            if (by != self)
                cps_vec_push(w->c.arena, &found, (uint64_t)by << 8 | d->kind);
        }
    }
    if (!found.n)
        return;
    qsort(found.data, found.n, sizeof(uint64_t), ascending);
    cps_json *list = cps_bn_add(v, "dependencies", LIST()), **end = &list->first;
    for (uint32_t i = 0; i < found.n; i++) {
        if (i + 1 < found.n && found.data[i + 1] >> 8 == found.data[i] >> 8)
            continue;
        cps_json *edge = LIST();
        cps_bn_add(edge, NULL,
                   STR(cps_arena_printf(w->c.arena, "I-%u", (uint32_t)(found.data[i] >> 8))));
        cps_bn_add(edge, NULL, STR(kinds[found.data[i] & 255]));
        *end = edge;
        end = &edge->next;
        list->n++;
    }
}

static void
print_instruction(writer *w, uint32_t i)
{
    cps_mark mark = cps_arena_mark(w->scratch);
    cps_json *v = instruction(w, &w->items.data[i]);
    cps_assert(v);
    cps_bn_add(v, "name", STR(cps_arena_printf(w->c.arena, "I-%u", i)));
    cps_bn_add(v, "origin", STR("Internal"));
    cps_bn_add(v, "engine_id", INT(0));
    cps_bn_add(v, "scheduled_start", INT(0));
    cps_bn_add(v, "scheduled_end", INT(0));
    cps_bn_add(v, "optin_passes", LIST());
    add_dependences(w, i, v);
    print(w, v, CPS_BO_INST);
    cps_arena_release(w->scratch, mark);
}

static void
print_blocks(writer *w)
{
    uint32_t i = 0;
    cps_jsonw_key(&w->w, "blocks");
    cps_jsonw_arr(&w->w, false);
    for (uint32_t b = 0; b < w->blocks; b++) {
        uint32_t from = i;
        while (i < w->items.n && w->items.data[i].order >> 32 == b)
            i++;
        cps_jsonw_obj(&w->w, false);
        cps_jsonw_key(&w->w, "instructions");
        cps_jsonw_arr(&w->w, from == i);
        for (uint32_t k = from; k < i; k++)
            print_instruction(w, k);
        cps_jsonw_end_arr(&w->w);
        cps_jsonw_key(&w->w, "name");
        cps_jsonw_str(&w->w, block_name(w, b));
        cps_jsonw_end_obj(&w->w);
    }
    cps_jsonw_end_arr(&w->w);
}

// ---- queues ----

static void
print_queue_tail(writer *w, const char *engine, const char *name)
{
    cps_jsonw_key(&w->w, "engine");
    cps_jsonw_str(&w->w, engine);
    cps_jsonw_key(&w->w, "name");
    cps_jsonw_str(&w->w, name);
    cps_jsonw_key(&w->w, "num_dma_engines");
    cps_jsonw_int(&w->w, CPS_BDMA_RISE);
    cps_jsonw_end_obj(&w->w);
}

static void
print_queues(writer *w)
{
    const cps_kbin *k = w->k;
    bool *done = cps_new_array(w->arena, bool, k->blocks.n + 1), dge[CPS_ENGINES] = {false};
    cps_field sem, rise;
    uint32_t n = k->blocks.n;
    for (uint32_t i = 0; i < w->items.n; i++) {
        const item *x = &w->items.data[i];
        cps_insn insn = insn_at(w, (cps_engine)x->engine, x->main);
        if (insn && !x->raw && cps_binsn_dma_semaphore(cps_insns[insn].format, &sem, &rise)) {
            dge[x->engine] = true;
            n++;
        }
    }
    cps_jsonw_key(&w->w, "queues");
    cps_jsonw_arr(&w->w, !n);
    for (uint32_t i = 0; i < k->blocks.n; i++) {
        const cps_kblock *first = &k->blocks.data[i];
        if (done[i])
            continue;
        cps_jsonw_obj(&w->w, false);
        cps_jsonw_key(&w->w, "dma_blocks");
        cps_jsonw_arr(&w->w, false);
        for (uint32_t j = i; j < k->blocks.n; j++) {
            if (strcmp(k->blocks.data[j].queue, first->queue))
                continue;
            done[j] = true;
            print_dma_block(w, j, first->owner);
        }
        cps_jsonw_end_arr(&w->w);
        print_queue_tail(w, cps_bmap_engine_name(first->owner), first->queue);
    }
    for (int e = 0; e < CPS_ENGINES; e++) {
        if (!dge[e])
            continue;
        cps_jsonw_obj(&w->w, false);
        cps_jsonw_key(&w->w, "dge_type");
        cps_jsonw_str(&w->w, e == CPS_POOL ? "Software" : "Hardware");
        print_queue_tail(w, cps_bmap_engine_name((cps_engine)e),
                         cps_arena_printf(w->arena, "dge_%s", cps_engine_name((cps_engine)e)));
    }
    cps_jsonw_end_arr(&w->w);
}

// ---- the whole ----

/* As in kernel.json, and how many bundles each engine has: they are named by number. */
static void
add_extents(writer *w, cps_json *own)
{
    cps_buf b = {0};
    cps_jsonw x;
    const char *why;
    size_t at;
    cps_jsonw_init(&x, &b);
    cps_jsonw_obj(&x, false);
    cps_kbin_extents_write(w->k, &x);
    cps_jsonw_end_obj(&x);
    const cps_json *all = cps_json_parse(w->arena, b.data, b.n, &why, &at);
    cps_buf_fini(&b);
    cps_assert(all != NULL);
    cps_json *bundles = cps_bn_add(own, "bundles", OBJ());
    for (int e = 0; e < CPS_ENGINES; e++)
        cps_bn_add(bundles, cps_engine_name((cps_engine)e), INT(w->k->stream[e].code.n));
    cps_bn_add(own, "extents", (cps_json *)(uintptr_t)cps_json_get(all, "extents"));
}

static void
print_own(writer *w)
{
    const cps_kstats *s = &w->k->stats;
    cps_json *v = OBJ(), *stats = OBJ(), *min = OBJ();
    cps_bn_add(v, "target", STR(w->k->target));
    cps_bn_add(v, "core", INT(w->k->core));
    cps_bn_add(v, "cores", INT(w->k->cores));
    cps_bn_add(v, "stats", stats);
    cps_bn_add(stats, "flops", INT(s->flops));
    cps_bn_add(stats, "hbm_bytes", INT(s->hbm_bytes));
    cps_bn_add(stats, "pe_flops_ps", INT(s->pe_flops_ps));
    for (int e = 0; e < CPS_ENGINES; e++)
        cps_bn_add(min, cps_engine_name((cps_engine)e), INT(s->engine_min_ps[e]));
    cps_bn_add(stats, "engine_min_ps", min);
    cps_bn_add(stats, "sbuf_peak", INT(s->sbuf_peak));
    cps_bn_add(stats, "psum_banks", INT(s->psum_banks));
    cps_bn_add(stats, "semaphores", INT(s->semaphores));
    if (w->k->extents.n)
        add_extents(w, v);
    cps_jsonw_key(&w->w, "copse");
    cps_bjson_print(&w->w, v, CPS_BF_BLOB, 0);
}

void
cps_bir_write(const cps_kbin *k, const cps_notes *notes, cps_buf *out)
{
    writer w = {.k = k, .notes = notes, .arena = cps_arena_create()};
    w.scratch = cps_arena_create();
    cps_bctx_init(&w.c, w.arena, k->gen);
    w.c.arena = w.scratch;
    w.c.k = k;
    for (uint32_t i = 0; i < k->blocks.n; i++)
        *cps_map_at_str(&w.c.blocks, cps_bdma_name(w.arena, &k->blocks.data[i]), NULL) = i + 1;
    add_locations(&w);
    number_blocks(&w);
    chain_relocs(&w);
    group_all(&w);
    find_triggers(&w);
    cps_jsonw_init(&w.w, out);
    cps_jsonw_obj(&w.w, false);
    cps_jsonw_key(&w.w, "arch");
    cps_jsonw_str(&w.w, cps_barchs[k->gen].arch);
    cps_jsonw_key(&w.w, "functions");
    cps_jsonw_arr(&w.w, false);
    cps_jsonw_obj(&w.w, false);
    print_allocations(&w);
    print_blocks(&w);
    print_own(&w);
    cps_jsonw_key(&w.w, "name");
    cps_jsonw_str(&w.w, k->name);
    cps_jsonw_key(&w.w, "origin");
    cps_jsonw_str(&w.w, "Internal");
    cps_jsonw_end_obj(&w.w);
    cps_jsonw_end_arr(&w.w);
    print_queues(&w);
    cps_jsonw_key(&w.w, "version");
    cps_jsonw_int(&w.w, 2);
    cps_jsonw_end_obj(&w.w);
    cps_jsonw_done(&w.w);
    cps_arena_destroy(w.scratch);
    cps_arena_destroy(w.arena);
}
