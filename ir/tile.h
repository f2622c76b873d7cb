/* The tile level: one kernel on one core. Buffers in HBM, SBUF, PSUM and registers; views of
 * them (access patterns); instructions that read and write views, in program order. The meaning
 * is that of executing the list in order; engines, addresses and semaphores come later and
 * never change it.
 *
 * A buffer with a ring belongs to a declaration that was executed several times: execution i
 * uses slot i mod slots. To the meaning each execution is fresh storage. */
#ifndef CPS_IR_TILE_H
#define CPS_IR_TILE_H

#include "codegen/isa/enum.h"
#include "runtime/base/diag.h"
#include "runtime/base/hash.h"
#include "runtime/base/npy.h"
#include "runtime/base/num.h"
#include "runtime/base/vec.h"

typedef enum cps_space { CPS_HBM, CPS_SBUF, CPS_PSUM, CPS_REG } cps_space;
typedef enum cps_role { CPS_LOCAL, CPS_IN, CPS_OUT, CPS_INOUT, CPS_DATA } cps_role;

typedef enum cps_top {
    CPS_T_NONE = 0,
#define CPS_TOP(id, ...) CPS_T_##id,
#include "ir/top.def"
    CPS_TOPS
} cps_top;

typedef enum cps_tattr_key {
#define CPS_TATTR(id, ...) CPS_TA_##id,
#include "ir/tattr.def"
    CPS_TATTRS
} cps_tattr_key;

typedef struct cps_toprow {
    const char *name;
    uint8_t nout_min, nout_max, nin_min, nin_max;
    const char *engines; /* blank-separated, preferred first */
    const char *attrs;   /* blank-separated keys */
    const char *doc;
    const char *outs, *ins; /* role of each operand, see top.def */
} cps_toprow;

extern const cps_toprow cps_tops[CPS_TOPS];
cps_top cps_top_find(const char *name); /* CPS_T_NONE when unknown */

/* What an attribute holds: an ALU operator or activation function (wire value), a number, a
 * flag (present or not), or a list of numbers. */
typedef enum cps_tattr_kind {
    CPS_TK_ALU,
    CPS_TK_FUNC,
    CPS_TK_INT,
    CPS_TK_FLAG,
    CPS_TK_INTS
} cps_tattr_kind;

typedef struct cps_tattrrow {
    const char *name;
    uint8_t kind; /* cps_tattr_kind */
    const char *doc;
} cps_tattrrow;

extern const cps_tattrrow cps_tattrs[CPS_TATTRS];

#define CPS_TILE_DIMS 6 /* of a view, the partition axis of on-chip views not counted */

/* Storage. Buffer ids are indices into tfunc->bufs; 0 is none. */
typedef struct cps_tbuf {
    const char *name; /* source name; printing appends the id */
    cps_space space;
    cps_role role; /* HBM; CPS_DATA holds package constants */
    cps_dtype dtype;
    int rank; /* declared extents: HBM dims; on chip [partitions, free...] */
    int64_t dim[CPS_MAX_RANK];
    uint32_t ring;    /* declaration id, 0 none; buffers of one ring share slots */
    uint32_t turn;    /* how often the declaration had been executed before */
    uint16_t slots;   /* 0: the compiler chooses */
    uint8_t depth;    /* loops and conditions open where it is declared: all its uses stand in the
                         innermost of them, and it holds nothing from one turn of that to the next */
    int32_t pin_byte; /* `at`: byte offset in the partition; -1 free */
    int32_t pin_bank; /* `bank`; -1 free */
    int16_t pin_part; /* `parts`; -1 free */
    const void *data; /* CPS_DATA */
    cps_span loc;
    /* Filled by the allocator; printed when set. */
    bool placed;
    uint32_t byte; /* offset in the partition (SBUF, PSUM) */
    uint16_t part; /* first partition */
} cps_tbuf;

/* One axis of a view: `num` elements, `step` apart, in elements of the view's dtype. */
typedef struct cps_tdim {
    int64_t step, num;
} cps_tdim;

/* A view. On chip: partitions [part, part + parts) of the buffer and, in each, the free axes
 * `d`, slowest first, starting at element `off` of the partition. In HBM: parts is 0 and the
 * axes `d` cover the tensor from element `off`; when a DMA pairs it with an on-chip view, the
 * axes are matched in row-major order of all axes (partition first), unit axes ignored. */
typedef struct cps_tview {
    uint32_t buf;
    cps_dtype dtype; /* as read or written; may reinterpret the buffer's */
    uint16_t part, parts;
    int64_t off;
    int nd;
    cps_tdim d[CPS_TILE_DIMS];
    uint32_t reg; /* register buffer added to `off` times reg_step; 0 none */
    int64_t reg_step;
    uint32_t index; /* HBM views of a dma_copy: view id + 1 of a [p,1] integer tile, p =
                       d[0].num, that replaces axis 0's position: element k of axis 0 is at
                       off + index[k] * d[0].step + ... */
    bool alone; /* HBM view that moves: between barriers nothing else reaches the tensor but views
                   that move with it; codegen/moves.c, not part of the text */
} cps_tview;

typedef enum cps_topkind { CPS_TO_NONE, CPS_TO_VIEW, CPS_TO_IMM, CPS_TO_REG } cps_topkind;

/* An operand. IMM: the fp32 number `imm`, exact; or, when `is_int`, the integer `ival` (for
 * bitwise and integer operators, integer fills, registers and loop bounds). Arithmetic takes an
 * integer as the fp32 nearest to it. */
typedef struct cps_toper {
    cps_topkind kind;
    uint32_t id; /* VIEW: index into tfunc->views; REG: buffer id */
    float imm;
    bool is_int;
    int64_t ival;
} cps_toper;

typedef struct cps_tinst {
    uint16_t op;    /* cps_top */
    uint8_t engine; /* `on`, or what engine assignment chose; CPS_ENGINE_ANY */
    bool pinned;    /* engine was written in the source */
    uint8_t nout, nin;
    cps_toper out[2], in[3];
    uint32_t set;             /* bit per attribute given */
    int32_t attr[CPS_TATTRS]; /* scalars; INTS: index into tfunc->lists */
    uint32_t label;           /* `LABEL:`; 0 none */
    uint32_t after;           /* must follow the instruction with this label; 0 none */
    int32_t priority;
    int32_t round, stage; /* software pipeline place; -1 none */
    cps_span loc;
} cps_tinst;

/* PATTERN: n steps, one for each free axis of the result, slowest first. Legalisation may walk
 * the result by other axes than the index; it then keeps the counts of the index's axes in
 * v[n..2n), which are 0 otherwise. */
typedef struct cps_tlist {
    int n;
    int32_t v[32];
} cps_tlist;

typedef struct cps_tfunc {
    cps_arena *arena;
    const char *name;   /* leaf name */
    const char *target; /* target name */
    int core, cores;
    bool split; /* traced for each core: its cores do different parts; not part of the text */
    CPS_VEC(cps_tbuf) bufs; /* [0] unused; HBM arguments first, in operand order */
    CPS_VEC(cps_tview) views;
    CPS_VEC(cps_tinst) insts;
    CPS_VEC(cps_tlist) lists;
} cps_tfunc;

cps_tfunc *cps_tile_new(cps_arena *a, const char *name, const char *target);
uint32_t cps_tile_buf(cps_tfunc *f, cps_tbuf b); /* returns the id */
uint32_t cps_tile_view(cps_tfunc *f, cps_tview v);
cps_tinst *cps_tile_inst(cps_tfunc *f, cps_top op, cps_span loc); /* zeroed, engine any */
static inline void
cps_tinst_set(cps_tinst *i, cps_tattr_key k, int32_t v)
{
    i->set |= 1u << k;
    i->attr[k] = v;
}
static inline int32_t
cps_tinst_get(const cps_tinst *i, cps_tattr_key k, int32_t dflt)
{
    return i->set >> k & 1 ? i->attr[k] : dflt;
}
static inline cps_toper
cps_to_view(uint32_t view)
{
    return (cps_toper){.kind = CPS_TO_VIEW, .id = view};
}
static inline cps_toper
cps_to_imm(float v)
{
    return (cps_toper){.kind = CPS_TO_IMM, .imm = v};
}

/* Elements per partition of an on-chip buffer or view; all elements of an HBM one. */
int64_t cps_tbuf_elems(const cps_tbuf *b);
int64_t cps_tview_elems(const cps_tview *v);
int64_t cps_tbuf_bytes(const cps_tbuf *b); /* per partition on chip, whole tensor in HBM */

/* Text (.cir): header line, one line a buffer, one line an instruction; print(parse(print)) is
 * exact. Locations print as trailing `loc file:begin:end` only when `locs`. IR.md has the form.
 */
void cps_tile_print(const cps_tfunc *f, bool locs, cps_buf *out);
cps_tfunc *cps_tile_parse(cps_arena *a, const char *text, size_t n, uint32_t file,
                          cps_diags *d);

/* Rules of the level: arity, spaces and engines per row, bounds of every pattern at both ends,
 * partition starts, PSUM and matmul limits, dtypes; generation limits from the target facts. */
struct cps_target;
bool cps_tile_verify(const cps_tfunc *f, const struct cps_target *t, cps_diags *d);

/* Executes the list in order on host memory, with the engines' arithmetic (fp32 inside, results
 * rounded when written). `args[i]` is the storage of the i-th HBM argument (dtype of the
 * buffer). Reading bytes never written is a diagnostic (E8xxx) with the instruction's place. */
bool cps_tile_eval(const cps_tfunc *f, void *const *args, cps_diags *d);

/* SHA-256 of the text without locations and names. */
cps_digest cps_tile_digest(const cps_tfunc *f);

#endif
