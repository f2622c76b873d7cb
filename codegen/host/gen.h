/* Inside libcopse-llvm.so: the state of one generation, and the pieces that emit code. Vectors
 * are LLVM vectors of a whole number of lanes; a `lanes` of 1 means a plain scalar.
 *
 * In registers floats are fp32 (or fp64 inside pow and the reductions of large angles),
 * integers have their own width, bool is i1. In memory everything has its storage dtype. */
#ifndef CPS_CODEGEN_HOST_GEN_H
#define CPS_CODEGEN_HOST_GEN_H

#include "codegen/host/plan.h"
#include "runtime/base/map.h"

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

typedef LLVMValueRef V;
typedef LLVMTypeRef T;

typedef struct gen {
    host_plan *p;
    cps_arena *arena;
    LLVMContextRef ctx;
    LLVMModuleRef mod;
    LLVMBuilderRef b;
    T i1, i8, i16, i32, i64, f16, f32, f64, ptr;
    int lanes;     /* fp32 elements of a vector register */
    int registers; /* vector registers there are */
    bool fma;
    V fn;            /* function being emitted */
    V *base;         /* of each value: address in the function being emitted */
    V *embedded;     /* of each constant: global, or NULL */
    cps_map bodies;  /* text of an emitted function -> its V */
    V angles;        /* table of large-angle reduction, on demand */
    V angle_fn[8];   /* its function for 1, 2, 4 .. lanes, on demand */
    V merge_fn;      /* the sorter, on demand */
    unsigned errors; /* diagnostics of LLVM itself */
    cps_buf error;
} gen;

/* The context, types and target facts are set. Emits all functions. */
void cps_gen_module(gen *g);

/* module.c: a new internal function, emitted by what follows; and its end: when one with the
 * same body exists already, that one is returned and the new one dropped. */
V cps_gen_begin(gen *g, T type);
V cps_gen_end(gen *g, V fn);

/* object.c */
bool cps_gen_target(gen *g, const cps_host_opts *o, LLVMTargetMachineRef *tm);
bool cps_gen_optimise(gen *g, LLVMTargetMachineRef tm, int olevel);
bool cps_gen_object(gen *g, LLVMTargetMachineRef tm, cps_buf *out);

/* header.c */
void cps_gen_header(const host_plan *p, cps_buf *out);

/* ---- small things ---- */

static inline T
vec(T scalar, int lanes)
{
    return lanes == 1 ? scalar : LLVMVectorType(scalar, (unsigned)lanes);
}
static inline V
i64c(const gen *g, int64_t v)
{
    return LLVMConstInt(g->i64, (unsigned long long)v, 1);
}
int cps_gen_lanes(V v);
T cps_gen_scalar(V v); /* element type of a vector's or scalar's type */
V cps_gen_splat(gen *g, V scalar, int lanes);
V cps_gen_const_f(gen *g, T scalar, int lanes, double v);
V cps_gen_const_i(gen *g, T scalar, int lanes, int64_t v);
V cps_gen_lane_mask(gen *g, int lanes, int64_t live); /* first `live` lanes */
V cps_gen_call(gen *g, const char *intrinsic, int ntypes, T *types, int n, V *args);
V cps_gen_call1(gen *g, const char *intrinsic, V x);

/* ---- loops.c ---- */

enum { CARRIED = 32 };

/* A loop that runs at least once: for (i = 0; i < end; i += step). Values carried from one
 * iteration to the next are named when it opens. */
typedef struct loop {
    LLVMBasicBlockRef before, body, after;
    V iv, end;
    int64_t step;
    int ncarried;
    V phi[CARRIED], next[CARRIED];
} loop;

void cps_loop_open(gen *g, loop *l, V end, int64_t step);
V cps_loop_carry(gen *g, loop *l, V init); /* right after opening */
void cps_loop_close(gen *g, loop *l);      /* next[] are set; they hold after the loop */

/* A nest: counters of all loops of a stage; those not open yet are NULL. */
typedef struct nest_at {
    V iv[HOST_LOOPS];
    int axis; /* loop the lanes run along, -1: none */
    int lanes;
    V mask; /* NULL: all lanes */
} nest_at;

V cps_gen_aff(gen *g, const host_aff *a, const nest_at *at); /* of the first lane */
V cps_gen_load(gen *g, cps_val base, cps_dtype t, const host_aff *a, const nest_at *at);
void cps_gen_store(gen *g, cps_val base, cps_dtype t, const host_aff *a, const nest_at *at,
                   V v);
/* Storage <-> register form. */
T cps_gen_mem(const gen *g, cps_dtype t);
T cps_gen_reg(const gen *g, cps_dtype t);
V cps_gen_widen(gen *g, cps_dtype t, V mem);
V cps_gen_narrow(gen *g, cps_dtype t, V reg);

/* All expressions of the stage at this point; yields the last. `all` (nx values) may be NULL.
 */
V cps_gen_eval(gen *g, const host_stage *s, const nest_at *at, V *all);
/* One op row on register operands. */
V cps_gen_op(gen *g, const cps_node *n, cps_dtype in, int nin, V *x);
V cps_gen_cast(gen *g, cps_dtype from, cps_dtype to, V x);

/* Stages. `at` has the shared loops open. */
void cps_gen_map(gen *g, const host_stage *s, nest_at *at, int from);
void cps_gen_reduce(gen *g, const host_stage *s, nest_at *at, int from);
void cps_gen_scan(gen *g, const host_stage *s, nest_at *at, int from);
void cps_gen_scatter(gen *g, const host_stage *s, nest_at *at, int from);
void cps_gen_sort(gen *g, const host_stage *s);
void cps_gen_matmul(gen *g, const host_stage *s);
/* acc op x, as the reduction of the node does. */
V cps_gen_fold(gen *g, const cps_node *n, cps_dtype t, V acc, V x);
/* W x W elements transposed in registers. */
void cps_gen_transpose(gen *g, V *rows, int lanes);

/* ---- math.c: fp32 vectors or scalars ---- */
V cps_m_fma(gen *g, V a, V b, V c);
V cps_m_exp(gen *g, V x);
V cps_m_log(gen *g, V x);
V cps_m_sqrt(gen *g, V x);
V cps_m_rsqrt(gen *g, V x);
V cps_m_reciprocal(gen *g, V x);
V cps_m_sin(gen *g, V x);
V cps_m_cos(gen *g, V x);
V cps_m_arctan(gen *g, V x);
V cps_m_tanh(gen *g, V x);
V cps_m_erf(gen *g, V x);
V cps_m_sigmoid(gen *g, V x);
V cps_m_softplus(gen *g, V x);
V cps_m_gelu(gen *g, V x);
V cps_m_gelu_tanh(gen *g, V x);
V cps_m_silu(gen *g, V x);
V cps_m_swish(gen *g, V x);
V cps_m_mish(gen *g, V x);
V cps_m_floor(gen *g, V x);
V cps_m_ceil(gen *g, V x);
V cps_m_round(gen *g, V x);
V cps_m_pow(gen *g, V x, V y);
V cps_m_fmod(gen *g, V x, V y);
V cps_m_mod(gen *g, V x, V y); /* sign of the divisor */

#endif
