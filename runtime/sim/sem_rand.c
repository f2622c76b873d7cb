/* Random numbers. Every lane of an engine has a state of each generator; which one an
 * instruction uses follows from engine and generation: LFSR on the vector engine before v4 and
 * on GpSimd of v2, XORWOW on GpSimd from v3 and everywhere on v4 (NKI), PCG32 on the scalar
 * engine (two words of state).
 *
 * The LFSR is 32-bit Fibonacci with taps 32, 22, 2, 1, stepped 32 times for a word (compiler's
 * simulator); XORWOW is Marsaglia's with Weyl increment 362437; PCG32 and Philox4x32-10 are the
 * published algorithms with their published constants. The states at power-on and the way from
 * a seed to states are not published: MODEL.md. */
#include "runtime/sim/machine.h"

#define F(x) (unsigned)cps_isa_get(&i->b, x)

enum { XORWOW_WORDS = 6, PHILOX_WORDS = 7, STATE_WORDS = 24 };

/* ---- the generators ---- */

static uint32_t
lfsr_next(uint32_t *state)
{
    uint32_t x = *state;
    for (unsigned k = 0; k < 32; k++) {
        uint32_t bit = (x ^ x >> 10 ^ x >> 30 ^ x >> 31) & 1;
        x = x >> 1 | bit << 31;
    }
    return *state = x ? x : 1;
}

static uint32_t
xorwow_next(uint32_t *x)
{
    uint32_t t = x[0] ^ x[0] >> 2;
    memmove(x, x + 1, 4 * sizeof *x);
    x[4] = x[4] ^ x[4] << 4 ^ t ^ t << 1;
    x[5] += 362437;
    return x[4] + x[5];
}

static uint32_t
pcg_next(uint32_t *x)
{
    uint64_t old = (uint64_t)x[1] << 32 | x[0];
    uint64_t next = old * 0x5851F42D4C957F2Dull + 0x14057B7EF767814Full;
    x[0] = (uint32_t)next;
    x[1] = (uint32_t)(next >> 32);
    uint32_t shifted = (uint32_t)((old >> 18 ^ old) >> 27), by = (uint32_t)(old >> 59);
    return shifted >> by | shifted << (-by & 31);
}

/* Words 0..3 count, 4..5 are the key, 6 says which word of the block comes next. */
static uint32_t
philox_next(uint32_t *x)
{
    uint32_t c[4] = {x[0], x[1], x[2], x[3]}, k[2] = {x[4], x[5]};
    for (unsigned r = 0; r < 10; r++) {
        uint64_t p = (uint64_t)0xD2511F53 * c[0], q = (uint64_t)0xCD9E8D57 * c[2];
        uint32_t n[4] = {(uint32_t)(q >> 32) ^ c[1] ^ k[0], (uint32_t)q,
                         (uint32_t)(p >> 32) ^ c[3] ^ k[1], (uint32_t)p};
        memcpy(c, n, sizeof c);
        k[0] += 0x9E3779B9;
        k[1] += 0xBB67AE85;
    }
    uint32_t out = c[x[6] & 3];
    x[6] = (x[6] + 1) & 3;
    for (unsigned w = 0; w < 4 && x[6] == 0 && ++x[w] == 0; w++)
        continue;
    return out;
}

/* ---- states ---- */

static uint64_t
mix(uint64_t *z)
{
    uint64_t x = *z += 0x9E3779B97F4A7C15ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}

static void
rand_seed(engine *e, uint64_t seed)
{
    e->unseeded = false;
    for (unsigned l = 0; l < LANES; l++) {
        rand_lane *r = &e->rand[l];
        uint64_t z = seed ^ (uint64_t)e->id << 56 ^ (uint64_t)l << 40;
        *r = (rand_lane){.lfsr = (uint32_t)mix(&z) | 1, .rounding = (uint32_t)mix(&z) | 1};
        for (unsigned k = 0; k < STATE_WORDS; k++)
            r->xorwow[k] = (uint32_t)mix(&z) | 1;
        for (unsigned k = 0; k < 2; k++)
            r->pcg[k] = (uint32_t)mix(&z);
        for (unsigned k = 0; k < 6; k++)
            r->philox[k] = (uint32_t)mix(&z);
        for (unsigned k = 0; e->seed && k < 16; k++)
            e->seed[k][l] = (uint32_t)mix(&z) | 1;
    }
}

void
rand_begin(engine *e, uint64_t seed)
{
    e->unseeded = true;
    e->first_seed = seed;
}

void
rand_need(engine *e)
{
    if (e->unseeded)
        rand_seed(e, e->first_seed);
}

static rand_lane *
lane_of(engine *e, unsigned lane)
{
    rand_need(e);
    return &e->rand[lane];
}

/* XORWOW states of a lane: the vector engine has four, which take turns. */
static unsigned
xorwow_states(const engine *e)
{
    return e->id == CPS_DVE ? 4 : 1;
}

static uint32_t
next_of(engine *e, unsigned lane, unsigned algorithm)
{
    rand_lane *r = lane_of(e, lane);
    switch (algorithm) {
    case CPS_RAND_ALGORITHM_XORWOW: {
        uint32_t *state = r->xorwow + XORWOW_WORDS * r->turn;
        r->turn = (uint8_t)((r->turn + 1u) % xorwow_states(e));
        return xorwow_next(state);
    }
    case CPS_RAND_ALGORITHM_PCG32:
        return pcg_next(r->pcg);
    case CPS_RAND_ALGORITHM_PHILOX:
        return philox_next(r->philox);
    default:
        return lfsr_next(&r->lfsr);
    }
}

static unsigned
algorithm_of(const cps_sim *s, const engine *e)
{
    if (e->id == CPS_ACT)
        return CPS_RAND_ALGORITHM_PCG32;
    bool wow = s->k->gen >= CPS_V4 || (e->id == CPS_POOL && s->k->gen >= CPS_V3);
    return wow ? CPS_RAND_ALGORITHM_XORWOW : CPS_RAND_ALGORITHM_LFSR;
}

uint32_t
rand_rounding(engine *e, unsigned lane)
{
    // the tensor engine's seeds are words of their own
    rand_lane *r = lane_of(e, lane);
    return lfsr_next(e->seed ? &e->seed[0][lane] : &r->rounding);
}

/* ---- numbers ---- */

/* Random words, of which the least significant bits stay (NKI rng). */
static void
raw_words(cps_sim *s, engine *e, const insn *i, unsigned algorithm, unsigned skip)
{
    const opnd *o = &i->op[0];
    for (unsigned p = 0; p < i->rows; p++) {
        uint8_t *v = (uint8_t *)s->row[0];
        for (uint32_t k = 0; k < o->count; k++) {
            for (unsigned q = 0; q < skip; q++)
                next_of(e, p, algorithm);
            uint64_t w = next_of(e, p, algorithm);
            memcpy(v + (size_t)k * o->es, &w, o->es);
        }
        store_raw(s, o, p, v);
    }
}

bool
exec_rng(cps_sim *s, engine *e, insn *i)
{
    raw_words(s, e, i, algorithm_of(s, e), 0);
    return true;
}

bool
prep_rand(cps_sim *s, insn *i)
{
    i->fn = (uint8_t)F(CPS_F_D4_RAND_rand_algorithm);
    i->set = F(CPS_F_D4_RAND_rand_num_steps);
    return F(CPS_F_D4_RAND_post_process) == CPS_RAND_POST_PROC_RAW_U32 ||
           load_fail(s, i, CPS_E8202,
                     "where a range of random numbers stands is not published");
}

bool
exec_rand(cps_sim *s, engine *e, insn *i)
{
    raw_words(s, e, i, i->fn, i->set);
    return true;
}

bool
prep_rand2(cps_sim *s, insn *i)
{
    return cps_dtype_is_float((cps_dtype)i->op[0].dtype) ||
           load_fail(s, i, CPS_E8202, "numbers of a range are floats");
}

/* u = bitcast(bits & 0x7FFFFF | 0x3F800000) - 1; min + (max - min) * u. */
bool
exec_rand2(cps_sim *s, engine *e, insn *i)
{
    const opnd *o = &i->op[0];
    float lo[LANES], hi[LANES];
    scalar_f32(s, &i->sc[0], i->rows, lo);
    scalar_f32(s, &i->sc[1], i->rows, hi);
    for (unsigned p = 0; p < i->rows; p++) {
        float *v = s->row[0], wide = hi[p] - lo[p];
        for (uint32_t k = 0; k < o->count; k++) {
            uint32_t w = next_of(e, p, CPS_RAND_ALGORITHM_XORWOW);
            float u = cps_bits_f32((w & 0x7FFFFF) | 0x3F800000) - 1.0f;
            float m = wide * u;
            v[k] = lo[p] + m;
        }
        store_f32(s, o, p, v);
    }
    return true;
}

bool
prep_dropout(cps_sim *s, insn *i)
{
    i->rev = F(CPS_F_S3D3_DROPOUT_threshold_type) == CPS_DROPOUT_THRESHOLD_TYPE_KEEP_RATE;
    return (i->op[0].count == i->op[1].count && i->op[0].es == i->op[1].es) ||
           load_fail(s, i, CPS_E8202, "the sides differ in shape or type");
}

/* Keeps an element when u > threshold (drop rate) or u < threshold (keep rate), u in (0, 1). */
bool
exec_dropout(cps_sim *s, engine *e, insn *i)
{
    const opnd *x = &i->op[0], *o = &i->op[1];
    unsigned algorithm = algorithm_of(s, e);
    float t[LANES];
    scalar_f32(s, &i->sc[0], i->rows, t);
    for (unsigned p = 0; p < i->rows; p++) {
        uint8_t *v = (uint8_t *)s->row[0];
        load_raw(s, x, p, v);
        for (uint32_t k = 0; k < x->count; k++) {
            float u = (float)((next_of(e, p, algorithm) >> 8) + 0.5) * 0x1p-24f;
            if (i->rev ? !(u < t[p]) : !(u > t[p]))
                memset(v + (size_t)k * x->es, 0, x->es);
        }
        store_raw(s, o, p, v);
    }
    return true;
}

/* ---- states as words ---- */

/* The words of a generator in lane `lane`: how many, and where. */
static uint32_t *
state_of(engine *e, unsigned lane, unsigned generator, unsigned *words)
{
    rand_lane *r = lane_of(e, lane);
    *words = generator == CPS_RAND_SRC_XORWOW   ? XORWOW_WORDS * xorwow_states(e)
             : generator == CPS_RAND_SRC_PHILOX ? PHILOX_WORDS
                                                : 1;
    if (generator == CPS_RAND_SRC_OUTPUT_CVT_LFSR)
        return &r->rounding;
    if (e->id == CPS_ACT) {
        *words = 2;
        return r->pcg;
    }
    return generator == CPS_RAND_SRC_XORWOW   ? r->xorwow
           : generator == CPS_RAND_SRC_PHILOX ? r->philox
                                              : &r->lfsr;
}

static bool
state_fits(cps_sim *s, insn *i, unsigned generator, uint32_t count)
{
    unsigned words = 0;
    state_of(&s->eng[i->engine], 0, generator, &words);
    i->fn = (uint8_t)generator;
    return count == words ||
           load_fail(s, i, CPS_E8202, "%u words for a state of %u", count, words);
}

bool
prep_rand_get(cps_sim *s, insn *i)
{
    return state_fits(s, i, F(CPS_F_D4_RAND_rand_generator), i->op[0].count);
}

bool
exec_rand_get(cps_sim *s, engine *e, insn *i)
{
    unsigned words;
    for (unsigned p = 0; p < i->rows; p++)
        store_raw(s, &i->op[0], p, state_of(e, p, i->fn, &words));
    return true;
}

bool
prep_rand_set(cps_sim *s, insn *i)
{
    i->cmd = (uint8_t)F(CPS_F_S1_RAND_update_state);
    unsigned generator = F(CPS_F_S1_RAND_rand_generator);
    if (i->cmd == CPS_RAND_STATE_UPDATE_SRC_TENSOR)
        return state_fits(s, i, generator, i->op[0].count);
    i->nop = 0; // the pattern is not read
    i->fn = (uint8_t)generator;
    return true;
}

bool
exec_rand_set(cps_sim *s, engine *e, insn *i)
{
    unsigned words;
    for (unsigned p = 0; p < i->rows; p++) {
        uint32_t *x = state_of(e, p, i->fn, &words);
        lane_of(e, p)->turn = 0;
        if (i->cmd == CPS_RAND_STATE_UPDATE_SRC_TENSOR) {
            load_raw(s, &i->op[0], p, x);
            continue;
        }
        unsigned one = words == STATE_WORDS ? XORWOW_WORDS : words;
        for (unsigned k = 0; k < words; k++)
            x[k] = (uint32_t)cps_isa_get_elem(&i->b, CPS_F_S1_RAND_imm_state, k % one);
        for (unsigned k = 0; k < words && i->cmd == CPS_RAND_STATE_UPDATE_IMM_LANE; k += one)
            x[k] += p * (words / one) + k / one;
    }
    return true;
}

/* Seeds the vector engine (NKI set_rng_seed), and the engine of the stream. */
bool
exec_rng_seed(cps_sim *s, engine *e, insn *i)
{
    rand_seed(&s->eng[CPS_DVE], F(CPS_F_PSEUDO_SET_RNG_SEED_seed));
    if (e->id != CPS_DVE)
        rand_seed(e, F(CPS_F_PSEUDO_SET_RNG_SEED_seed));
    return true;
}
