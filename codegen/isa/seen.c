/* Bundles met before: a hash table over 56 of their 64 bytes. */
#include "codegen/isa/seen.h"

#include "codegen/isa/sync_row.h"

enum { SYNC_BYTE = 4, FIRST_SLOTS = 256 };

void
cps_isa_seen_init(cps_isa_seen *m, cps_arena *a)
{
    *m = (cps_isa_seen){.arena = a, .slots = FIRST_SLOTS};
    m->slot = cps_new_array(a, uint32_t, m->slots);
}

static uint32_t
hash(const cps_bundle *b)
{
    uint64_t h = 0, w;
    for (unsigned i = 0; i < CPS_BUNDLE_BYTES / 8; i++) {
        memcpy(&w, b->b + 8 * i, 8);
        h = (h ^ w) * 0x9E3779B97F4A7C15ull; // 2^64 / golden ratio, odd
        h ^= h >> 29;
    }
    return (uint32_t)h;
}

static void
grow(cps_isa_seen *m)
{
    m->slots *= 4;
    m->slot = cps_new_array(m->arena, uint32_t, m->slots);
    for (uint32_t i = 0; i < m->all.n; i++) {
        uint32_t k = hash(&m->all.data[i].b) & (m->slots - 1);
        while (m->slot[k])
            k = (k + 1) & (m->slots - 1);
        m->slot[k] = i + 1;
    }
}

uint64_t *
cps_isa_seen_at(cps_isa_seen *m, const cps_bundle *b, uint32_t as)
{
    cps_bundle key = *b;
    uint64_t band = as;
    memcpy(key.b + SYNC_BYTE, &band, sizeof band);
    uint32_t k = hash(&key) & (m->slots - 1);
    for (; m->slot[k]; k = (k + 1) & (m->slots - 1)) {
        cps_isa_alike *x = &m->all.data[m->slot[k] - 1];
        if (memcmp(&x->b, &key, sizeof key) == 0)
            return &x->value;
    }
    if (m->all.n * 2 >= m->slots) {
        grow(m);
        return cps_isa_seen_at(m, b, as);
    }
    cps_isa_alike fresh = {.b = key};
    cps_vec_push(m->arena, &m->all, fresh);
    m->slot[k] = m->all.n;
    return &m->all.data[m->all.n - 1].value;
}

bool
cps_isa_verify_again(cps_isa_seen *m, const cps_bundle *b, cps_gen g, cps_engine e, cps_diags *d,
                     cps_span at)
{
    uint64_t *fine = cps_isa_seen_at(m, b, e);
    if (*fine)
        return cps_isa_verify_sync(b, g, e, d, at);
    unsigned said = cps_diags_count(d);
    bool good = cps_isa_verify(b, g, e, d, at);
    *fine = cps_diags_count(d) == said; // what is said, is said every time
    return good;
}

void
cps_isa_print_again(cps_isa_seen *m, cps_buf *texts, const cps_bundle *b, cps_gen g, cps_buf *out)
{
    cps_insn id = cps_isa_find(b->b[0], g);
    if (!id || cps_sync_second(cps_insns[id].format)) { // whose text stands behind the first band's
        cps_isa_print(b, g, out);
        return;
    }
    uint64_t *place = cps_isa_seen_at(m, b, 0); // offset << 16 | length
    if (!*place) {
        cps_bundle quiet = *b;
        memset(quiet.b + SYNC_BYTE, 0, 8);
        size_t from = texts->n;
        cps_isa_print(&quiet, g, texts);
        *place = from << 16 | (texts->n - from);
    }
    cps_buf_put(out, texts->data + (*place >> 16), *place & 0xFFFF);
    cps_isa_print_sync(b, g, out);
}
