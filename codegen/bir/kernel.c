/* From a document to a kernel: storages to variables and places, queues to blocks of
 * descriptors, instructions to records. A branch knows its distance once every block has its
 * place. What comes out passes cps_kbin_check, so a document can say nothing that the rest does
 * not expect. */
#include "codegen/bir/dma.h"
#include "codegen/bir/insn.h"
#include "codegen/bir/read.h"

#include <stdlib.h>
#include <string.h>

typedef struct jump {
    uint8_t engine;
    uint32_t index;
    const char *target;
    const cps_json *at;
} jump;

typedef struct maker {
    const cps_bir *b;
    const cps_bfunc *f;
    cps_diags *d;
    cps_arena *scratch;
    cps_kbin *k;
    cps_bctx c;
    CPS_VEC(jump) jumps;
    cps_map starts;          // block -> index into `start`
    CPS_VEC(uint32_t) start; // CPS_ENGINES numbers for each block
    CPS_VEC(uint32_t) rank;  // DMA block -> when it is triggered first, or the place said
    bool placed;
    cps_map files; // source names, made once
} maker;

static bool
fail(maker *m, const cps_json *at, const char *why)
{
    const cps_json *name = cps_json_get(at, "name");
    cps_bir_say(m->b, m->d, CPS_E9307, at, "no kernel can be made of '%s': %s",
                name && name->kind == CPS_JSON_STR ? name->str : "it", why);
    return false;
}

static const char *
text(const cps_json *v, const char *key)
{
    const cps_json *m = v ? cps_json_get(v, key) : NULL;
    return m && m->kind == CPS_JSON_STR ? m->str : NULL;
}

static int64_t
integer(const cps_json *v, const char *key, int64_t dflt)
{
    const cps_json *m = v ? cps_json_get(v, key) : NULL;
    return m && m->kind == CPS_JSON_INT ? m->i : dflt;
}

// ---- storages ----

static bool
shape_of(const cps_json *set, int *rank, int64_t *dim)
{
    const cps_json *s = cps_json_get(set, "tensor_shape");
    if (!s || s->kind != CPS_JSON_ARR || s->n > CPS_MAX_RANK)
        return false;
    *rank = 0;
    for (const cps_json *x = s->first; x; x = x->next) {
        if (x->kind != CPS_JSON_INT || x->i < 0 || x->i > (int64_t)1 << 40)
            return false;
        dim[(*rank)++] = x->i;
    }
    return true;
}

static bool
kind_of(const cps_json *set, const char *type, cps_varkind *out)
{
    const char *kind = text(set, "kind"), *own = text(cps_json_get(set, "copse"), "kind");
    // two kinds are spelled as others are, and say so
    int said = !own ? -1 : !strcmp(own, "inout") ? CPS_VAR_INOUT : !strcmp(own, "shared") ? CPS_VAR_SHARED : -1;
    for (int i = CPS_VAR_INPUT; kind && i <= CPS_VAR_SHARED; i++) {
        if (said >= 0 ? i != said : i == CPS_VAR_INOUT || i == CPS_VAR_SHARED)
            continue;
        if (!strcmp(cps_bvars[i].kind, kind) &&
            !strcmp(cps_bvars[i].type, type)) {
            *out = (cps_varkind)i;
            return true;
        }
    }
    return false;
}

static bool
add_variable(maker *m, const cps_json *set, const cps_json *loc)
{
    const cps_json *own = cps_json_get(set, "copse");
    const char *dt = text(set, "dtype"), *mine = text(own, "dtype");
    cps_kvar v = {.name = cps_arena_strdup(m->k->arena, text(set, "name"))};
    v.dtype = mine ? cps_dtype_parse(mine, strlen(mine))
              : dt ? cps_bmap_dtype(dt)
                   : CPS_DT_NONE;
    if (!v.dtype || !shape_of(set, &v.rank, v.dim) || !kind_of(set, text(loc, "type"), &v.kind))
        return fail(m, set,
                    "a tensor has a known dtype, a shape of numbers, and is input, output, "
                    "Const or Internal");
    v.bytes = cps_dtype_bytes(v.dtype);
    for (int i = 0; i < v.rank; i++)
        if (__builtin_mul_overflow(v.bytes, v.dim[i], &v.bytes))
            return fail(m, set, "the tensor is too large");
    v.bytes = integer(own, "bytes", v.bytes);
    if (v.kind == CPS_VAR_DATA) {
        const char *hex = text(own, "data");
        if (!hex || v.bytes < 0 || (uint64_t)v.bytes * 2 != strlen(hex))
            return fail(m, set, "a constant has its bytes as hex digits under 'copse'");
        uint8_t *data = cps_arena_raw(m->k->arena, (size_t)v.bytes + 1);
        if (!cps_bn_bytes(cps_json_get(own, "data"), data, (size_t)v.bytes))
            return fail(m, set, "a constant has its bytes as hex digits under 'copse'");
        v.data = data;
    }
    cps_bmem mem = {.name = text(loc, "name"),
                    .set = v.name,
                    .space = CPS_BS_HBM,
                    .var = m->k->vars.n,
                    .bytes = v.bytes};
    cps_vec_push(m->k->arena, &m->k->vars, v);
    if (!cps_bctx_add(&m->c, &mem))
        return fail(m, loc, "the name stands for a whole memory");
    return true;
}

static bool
add_place(maker *m, const cps_json *set, const cps_json *loc, bool psum)
{
    const cps_json *dims = cps_json_get(loc, "dims");
    int64_t addr = integer(loc, "addr", -1), base = integer(loc, "base", -1);
    bool pair = dims && dims->kind == CPS_JSON_ARR && dims->n == 2 &&
                dims->first->kind == CPS_JSON_INT && dims->first->next->kind == CPS_JSON_INT;
    int64_t parts = pair ? dims->first->i : -1, bytes = pair ? dims->first->next->i : -1;
    int64_t room = psum ? CPS_PSUM_STRIDE : CPS_SBUF_STRIDE;
    if (addr < 0 || base < 0 || base > 127 || parts < 1 || parts > 128 || bytes < 1 ||
        bytes > room || addr > room - bytes)
        return fail(m, loc,
                    "a place on chip has an address, a base partition and dims "
                    "[partitions, bytes of one] inside its memory");
    cps_bmem mem = {.name = text(loc, "name"),
                    .set = text(set, "name"),
                    .space = psum ? CPS_BS_PSUM : CPS_BS_SB,
                    .part = (uint32_t)base,
                    .parts = (uint32_t)parts,
                    .byte = (uint32_t)addr,
                    .bytes = bytes};
    // The two whole memories are known without being declared.
    cps_bctx_add(&m->c, &mem);
    return true;
}

static bool
storages(maker *m)
{
    const cps_json *all = cps_json_get(m->f->node, "allocations");
    for (const cps_json *s = all ? all->first : NULL; s; s = s->next) {
        cps_bobj o = cps_bobj_of(CPS_BO_STORAGE, s);
        if (o == CPS_BO_REGISTER)
            continue;
        const cps_json *list = o == CPS_BO_MEMSET ? cps_json_get(s, "memorylocations") : NULL;
        if (!list || list->n != 1)
            return fail(m, s, "a tensor has one place");
        const char *type = text(list->first, "type");
        if (!type)
            return fail(m, s, "a place has a type");
        bool psum = !strcmp(type, "PSUM"), sb = !strcmp(type, "SB");
        if (psum || sb ? !add_place(m, s, list->first, psum) : !add_variable(m, s, list->first))
            return false;
    }
    return true;
}

// ---- queues ----

static bool
queues(maker *m)
{
    const cps_json *all = cps_json_get(m->b->root, "queues");
    for (const cps_json *q = all ? all->first : NULL; q; q = q->next) {
        const cps_json *list = cps_json_get(q, "dma_blocks");
        const char *engine = text(q, "engine");
        cps_engine owner = engine ? cps_bmap_engine(engine) : CPS_ENGINE_ANY;
        for (const cps_json *x = list ? list->first : NULL; x; x = x->next) {
            const char *own = text(cps_json_get(x, "copse"), "engine");
            cps_kblock b = {.owner = own ? cps_bmap_engine(own) : owner,
                            .queue = cps_arena_strdup(m->k->arena, text(q, "name"))};
            if (b.owner == CPS_ENGINE_ANY)
                return fail(m, q, "a queue belongs to an engine");
            if (!cps_bdma_read(&m->c, x, m->k, &b))
                return fail(m, x, m->c.why);
            cps_vec_push(m->k->arena, &m->k->blocks, b);
            int64_t place = integer(cps_json_get(x, "copse"), "place", -1);
            bool said = place >= 0 && place < UINT32_MAX;
            m->placed = m->placed || said;
            cps_vec_push(m->scratch, &m->rank, said ? (uint32_t)place : UINT32_MAX);
            *cps_map_at_str(&m->c.blocks, text(x, "name"), NULL) = m->k->blocks.n;
        }
    }
    return true;
}

static int
by_rank(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

// The back end lists blocks and descriptors in the order of their triggers; a document may say
// another. What nothing triggers comes last, as listed.
static void
order_blocks(maker *m)
{
    cps_kbin *k = m->k;
    uint32_t n = k->blocks.n, nd = 0;
    cps_kblock *b = cps_new_array(m->scratch, cps_kblock, n + 1);
    cps_kdesc *d = cps_new_array(m->scratch, cps_kdesc, k->descs.n + 1);
    uint64_t *order = cps_new_array(m->scratch, uint64_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        order[i] = (uint64_t)m->rank.data[i] << 32 | i;
    qsort(order, n, sizeof *order, by_rank);
    for (uint32_t i = 0; i < n; i++) {
        b[i] = k->blocks.data[(uint32_t)order[i]];
        memcpy(d + nd, k->descs.data + b[i].first, b[i].ndesc * sizeof *d);
        b[i].first = nd;
        nd += b[i].ndesc;
    }
    if (n)
        memcpy(k->blocks.data, b, n * sizeof *b);
    if (nd)
        memcpy(k->descs.data, d, nd * sizeof *d);
}

// ---- instructions ----

static cps_kloc
keep_place(maker *m, cps_kloc l)
{
    if (!l.file)
        return l;
    bool fresh;
    uint64_t *v = cps_map_at_str(&m->files, l.file, &fresh);
    if (fresh)
        *v = (uintptr_t)cps_arena_strdup(m->k->arena, l.file);
    l.file = (const char *)(uintptr_t)*v;
    return l;
}

static void
put(maker *m, cps_engine e, const cps_bundle *b, const cps_kloc *at)
{
    cps_kstream *s = &m->k->stream[e];
    cps_vec_push(m->k->arena, &s->code, *b);
    cps_vec_push(m->k->arena, &s->locs, *at);
}

static void
put_record(maker *m, cps_engine e, const cps_brec *r, const cps_json *at)
{
    cps_kstream *s = &m->k->stream[e];
    cps_kloc loc = keep_place(m, r->loc);
    for (unsigned i = 0; i < r->nwait; i++) {
        cps_bundle b = cps_binsn_wait(m->k->gen, r->wait[i]);
        put(m, e, &b, &loc);
    }
    for (unsigned i = 0; i < r->nreloc; i++) {
        cps_kreloc x = r->reloc[i];
        x.engine = e;
        x.index = s->code.n;
        cps_vec_push(m->k->arena, &m->k->relocs, x);
    }
    if (r->target) {
        jump j = {(uint8_t)e, s->code.n, r->target, at};
        cps_vec_push(m->scratch, &m->jumps, j);
    }
    put(m, e, &r->b, &loc);
}

static void
note_trigger(maker *m, const cps_json *v, uint32_t *triggers)
{
    const cps_json *list = cps_json_get(v, "dma_blocks");
    const cps_json *x = list && list->kind == CPS_JSON_ARR ? list->first : NULL;
    const uint64_t *at =
        x && x->kind == CPS_JSON_STR ? cps_map_find_str(&m->c.blocks, x->str) : NULL;
    if (!m->placed && at && *at && m->rank.data[*at - 1] == UINT32_MAX)
        m->rank.data[*at - 1] = (*triggers)++;
}

static const cps_json *
blocks_of(const cps_bfunc *f)
{
    const cps_json *v = cps_json_get(f->node, "blocks");
    return v ? v : cps_json_get(f->node, "basic_blocks");
}

static bool
instructions(maker *m)
{
    uint32_t triggers = 0;
    cps_arena *nodes = cps_arena_create();
    m->c.arena = nodes;
    bool ok = true;
    for (const cps_json *b = blocks_of(m->f)->first; b && ok; b = b->next) {
        *cps_map_at_str(&m->starts, text(b, "name"), NULL) = m->start.n;
        for (int e = 0; e < CPS_ENGINES; e++)
            cps_vec_push(m->scratch, &m->start, m->k->stream[e].code.n);
        for (const cps_json *v = cps_json_get(b, "instructions")->first; v && ok; v = v->next) {
            cps_mark mark = cps_arena_mark(nodes);
            cps_bgroup g;
            ok = cps_binsn_read(&m->c, v, &g);
            if (!ok)
                fail(m, v, m->c.why);
            for (int i = 0; ok && i < CPS_BS_COUNT; i++)
                if (g.r[i].here)
                    put_record(m, g.engine, &g.r[i], v);
            note_trigger(m, v, &triggers);
            cps_arena_release(nodes, mark);
        }
    }
    m->c.arena = m->scratch;
    cps_arena_destroy(nodes);
    if (ok)
        order_blocks(m);
    return ok;
}

static bool
link_jumps(maker *m)
{
    for (uint32_t i = 0; i < m->jumps.n; i++) {
        const jump *j = &m->jumps.data[i];
        const uint64_t *at = cps_map_find_str(&m->starts, j->target);
        if (!at)
            return fail(m, j->at, "it goes to a block that is not there");
        int64_t to = m->start.data[*at + j->engine];
        cps_isa_set(&m->k->stream[j->engine].code.data[j->index], CPS_F_CTRL_BR_branch,
                    (uint64_t)(to - (int64_t)j->index));
    }
    return true;
}

// ---- the whole ----

static void
read_stats(maker *m, const cps_json *own)
{
    const cps_json *s = own ? cps_json_get(own, "stats") : NULL;
    const cps_json *min = s ? cps_json_get(s, "engine_min_ps") : NULL;
    cps_kstats *o = &m->k->stats;
    o->flops = integer(s, "flops", 0);
    o->hbm_bytes = integer(s, "hbm_bytes", 0);
    o->pe_flops_ps = integer(s, "pe_flops_ps", 0);
    for (int e = 0; e < CPS_ENGINES; e++)
        o->engine_min_ps[e] = integer(min, cps_engine_name((cps_engine)e), 0);
    o->sbuf_peak = integer(s, "sbuf_peak", 0);
    o->psum_banks = (int)integer(s, "psum_banks", 0);
    o->semaphores = (int)integer(s, "semaphores", 0);
}

/* Bundles are named by number: where some were added or taken away nothing is known of the others. */
static bool
read_extents(maker *m, const cps_json *own)
{
    const cps_json *n = own ? cps_json_get(own, "bundles") : NULL;
    for (int e = 0; e < CPS_ENGINES; e++)
        if (integer(n, cps_engine_name((cps_engine)e), -1) != m->k->stream[e].code.n)
            return true;
    return cps_kbin_extents_read(m->k, cps_json_get(own, "extents"), true) ||
           fail(m, m->f->node, "its extents are malformed");
}

static bool
make(maker *m, cps_arena *a)
{
    const cps_json *own = cps_json_get(m->f->node, "copse");
    const char *arch = text(m->b->root, "arch"), *target = text(own, "target");
    unsigned g = 0;
    while (arch && g < CPS_GENS && strcmp(arch, cps_barchs[g].arch))
        g++;
    if (!arch || g == CPS_GENS)
        return fail(m, m->b->root, "its arch is not sunda, gen3 or core_v4");
    int64_t core = integer(own, "core", 0), cores = integer(own, "cores", 1);
    if (core < 0 || core > 1024 || cores < 1 || cores > 1024)
        return fail(m, m->f->node, "core and cores are out of range");
    m->k =
        cps_kbin_new(a, cps_arena_strdup(a, text(m->f->node, "name")),
                     cps_arena_strdup(a, target ? target : cps_barchs[g].target), (cps_gen)g);
    m->k->core = (int)core;
    m->k->cores = (int)cores;
    cps_bctx_init(&m->c, m->scratch, (cps_gen)g);
    m->c.k = m->k;
    cps_map_init(&m->starts, m->scratch);
    cps_map_init(&m->files, m->scratch);
    read_stats(m, own);
    if (!storages(m) || !queues(m) || !instructions(m) || !link_jumps(m) || !read_extents(m, own))
        return false;
    cps_buf why = {0};
    bool ok = cps_kbin_check(m->k, &why);
    if (!ok)
        fail(m, m->f->node, why.data);
    cps_buf_fini(&why);
    return ok;
}

cps_kbin *
cps_bir_kernel(cps_arena *a, const cps_bir *b, cps_diags *d)
{
    maker m = {.b = b, .d = d, .scratch = cps_arena_create()};
    bool ok = b->funcs.n == 1;
    if (ok)
        m.f = &b->funcs.data[0];
    else
        cps_bir_say(b, d, CPS_E9307, b->root,
                    "no kernel can be made of %u functions: it takes one", b->funcs.n);
    ok = ok && make(&m, a);
    cps_arena_destroy(m.scratch);
    return ok ? m.k : NULL;
}
