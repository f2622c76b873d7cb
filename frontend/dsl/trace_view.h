/* Views as the kernel language sees them: named, piece-aware logical axes over a storage. Pure
 * functions from view to view; nothing here knows the syntax tree or emits an instruction.
 *
 * An axis is a nest of levels (num, step), slowest first, so that joined axes need no copy; a
 * step is in elements of the view's dtype. On chip one axis may lie on the partitions: it has
 * no levels, one row a partition, and when folded (`K by 128`) continues in the free part every
 * `fold` rows. Pieces are absolute, numbers relative: `origin` is the absolute position of the
 * axis's element 0.
 *
 * Functions that can fail return false and describe it in the cps_view_err they are given; the
 * caller owns place and trail. */
#ifndef CPS_DSL_TRACE_VIEW_H
#define CPS_DSL_TRACE_VIEW_H

#include "frontend/dsl/eval.h"
#include "ir/tile.h"

#include <stddef.h>
#include <string.h>

#define CPS_VIEW_AXES 8
#define CPS_VIEW_LEVELS 5

typedef struct cps_vaxis {
    int64_t num; /* logical elements */
    int nl;      /* levels; 0 for the partition axis */
    cps_tdim l[CPS_VIEW_LEVELS];
    int64_t fold; /* partition axis: rows per fold, 0 when it lies in one */
    int64_t fold_step;
    int64_t origin;   /* absolute position of element 0 */
    const char *name; /* extent as written ("K"), or NULL */
    const char *decl; /* axis as declared ("kb by 128"), for notes; or NULL */
    int decl_axis;
} cps_vaxis;

typedef struct cps_view cps_view;
struct cps_view {
    void *store; /* the tracer's storage */
    const char *name;
    cps_space space;
    cps_dtype dtype;
    int nd;
    int paxis;    /* axis on the partitions; -1: none left (one partition), or HBM */
    int part;     /* first partition */
    bool all;     /* `[all, n]`: the partition axis stands for any number of rows */
    int64_t off;  /* elements from the start of the tensor, or of the partition */
    uint32_t reg; /* register buffer added to off, times reg_step; 0 none */
    int64_t reg_step;
    const cps_view *index; /* [p,1] integer tile in place of the position on axis 0 */
    cps_vaxis ax[CPS_VIEW_AXES]; /* `nd` of them; the last member, for cps_view_copy */
};

/* A copy for use as it is, or with fewer axes: those behind `nd` are not copied. */
static inline void
cps_view_copy(cps_view *to, const cps_view *v)
{
    memcpy(to, v, offsetof(cps_view, ax) + (size_t)v->nd * sizeof *v->ax);
}

typedef struct cps_view_err {
    cps_code code;
    const char *text;
    const char *note, *help; /* or NULL */
} cps_view_err;

/* One axis of a new storage, before layout. */
typedef struct cps_vdim {
    int64_t num;
    int64_t fold;  /* 0: not folded */
    bool all;      /* first on-chip axis only */
    int64_t align; /* folds start at multiples of so many bytes; 0: as close as they fit */
    int64_t origin;
    const char *name, *decl;
} cps_vdim;

/* Row-major HBM tensor; `order` 1 swaps the last two axes in storage. */
bool cps_view_hbm(cps_view *v, cps_dtype t, int nd, const cps_vdim *d, int order,
                  cps_view_err *e);
/* On-chip tile. `bank` is the bytes of a PSUM bank (0: not PSUM): folds then never straddle
 * two. *parts and dim[0..*rank) (dim[0] = partitions) are the buffer's extents. */
bool cps_view_tile(cps_view *v, cps_space s, cps_dtype t, int nd, const cps_vdim *d,
                   int64_t partitions, int64_t bank, int64_t *dim, int *rank, cps_arena *a,
                   cps_view_err *e);

/* Subscripts, one per axis, applied from the first axis on. */
typedef enum cps_vsub_kind {
    CPS_VS_ALL,   /* : */
    CPS_VS_AT,    /* a number: the axis goes */
    CPS_VS_SLICE, /* lo:hi:step, relative */
    CPS_VS_PIECE, /* absolute */
    CPS_VS_REG,   /* register * mul + add: the axis goes, or keeps `size` elements */
    CPS_VS_INDEX  /* index tile */
} cps_vsub_kind;

typedef struct cps_vsub {
    cps_vsub_kind kind;
    int64_t lo, hi, step; /* AT: lo; SLICE: with defaults filled in when has_hi is false */
    bool has_hi;
    cps_piece piece;
    const char *text; /* PIECE: as written, for messages */
    uint32_t reg;
    int64_t mul;  /* REG: position = reg * mul + lo */
    int64_t size; /* REG: 0 drops the axis */
    const cps_view *index;
} cps_vsub;

/* Applies `n` subscripts; *bad is the one in error. */
bool cps_view_index(cps_view *out, const cps_view *v, int n, const cps_vsub *s, cps_arena *a,
                    int *bad, cps_view_err *e);
bool cps_view_transpose(cps_view *out, const cps_view *v, cps_arena *a, cps_view_err *e);
/* "a (b c) -> b a c"; sizes of names in (name, size) pairs. */
bool cps_view_reshape(cps_view *out, const cps_view *v, const char *pattern, int nsize,
                      const char *const *sname, const int64_t *size, cps_arena *a,
                      cps_view_err *e);
bool cps_view_bits(cps_view *out, const cps_view *v, cps_dtype t, cps_arena *a,
                   cps_view_err *e);
bool cps_view_repeat(cps_view *out, const cps_view *v, int64_t n, int axis, cps_arena *a,
                     cps_view_err *e);
/* The last axis, of N elements, as N - n + 1 windows of n that overlap. */
bool cps_view_windows(cps_view *out, const cps_view *v, int64_t n, cps_arena *a,
                      cps_view_err *e);
/* Rows [lo, lo + n) of a folded partition axis: one fold (or part of one), or whole folds, then
 * as rows of one fold with the folds as a new axis behind them. */
bool cps_view_unfold(cps_view *out, const cps_view *v, int64_t lo, int64_t n, cps_view_err *e);

/* The axis with stride 1, or -1. Unit axes never count. */
int cps_view_inner(const cps_view *v);
int64_t cps_view_parts(const cps_view *v); /* partitions touched; `all` gives 1 */
bool cps_view_folded(const cps_view *v);   /* the partition axis lies in several folds */
int64_t cps_view_free(const cps_view *v);  /* elements per partition (HBM: all) */
/* "[128, 512]" */
const char *cps_view_shape(cps_arena *a, const cps_view *v);
/* Levels of an axis collapsed where they are contiguous. */
void cps_vaxis_tidy(cps_vaxis *x);
/* Text of everything, for tests: "sbuf fp32 p0 +64 [#128, 8*512:1]". */
const char *cps_view_text(cps_arena *a, const cps_view *v);

/* The tile-level view. On chip: partitions `parts` (0: those of the view), free levels of the
 * axes in logical order, unit levels dropped (one stays), neighbours merged when `merge`.
 * False (E3108) when more than CPS_TILE_DIMS levels are left. `index` is filled by the caller.
 */
bool cps_view_lower(const cps_view *v, uint32_t buf, int64_t parts, bool merge, cps_tview *out,
                    cps_arena *a, cps_view_err *e);

#endif
