/* Inside the tile evaluator: memory, lanes, and one function per family of instructions. */
#ifndef CPS_IR_TILE_EVAL_H
#define CPS_IR_TILE_EVAL_H

#include "codegen/isa/isa.h"
#include "ir/tile_check.h"

/* A buffer in memory: partitions `row` bytes apart (HBM: one row). `def` has a byte for each
 * byte of `data`, 1 where something was written; NULL: all of it counts as written. */
typedef struct cps_temem {
    uint8_t *data, *def;
    int64_t row;
    bool owned;
} cps_temem;

/* A walk over bytes: nd outer axes, slowest first, of runs of `run` contiguous bytes. */
typedef struct cps_tewalk {
    int nd;
    int64_t step[CPS_TILE_DIMS + 1], num[CPS_TILE_DIMS + 1];
    int64_t run;
} cps_tewalk;

/* A view, resolved: where its first byte is (partition 0 of the view) and how it walks. */
typedef struct cps_teat {
    const cps_tview *v;
    const cps_temem *m;
    int64_t base; /* byte offset of the first element in m->data */
    int64_t n;    /* elements per partition, or of the tensor */
    unsigned es;  /* bytes of an element */
    cps_tewalk w; /* free axes */
} cps_teat;

enum { CPS_TE_ROWS = 6 };

typedef struct cps_te {
    const cps_tfunc *f;
    cps_diags *d;
    cps_gen gen;
    cps_temem *mem;
    int32_t *reg;
    bool *reg_set;
    const cps_tinst *x;
    float acc[2][128]; /* accumulators of ACT and DVE, by lane */
    bool acc_set[2][128];
    int64_t room; /* elements of each scratch row */
    float *row[CPS_TE_ROWS];
    uint8_t *raw;   /* 8 bytes an element */
    uint8_t *stage; /* results of all lanes, when they may not be stored at once */
    size_t stage_room;
    bool staged;
} cps_te;

bool cps_te_fail(cps_te *e, cps_code code, const char *fmt, ...) CPS_PRINTF(3, 4);

/* ---- memory (tile_eval_mem.c) ---- */
bool cps_te_at(cps_te *e, const cps_toper *o, cps_teat *at);
bool cps_te_place(cps_te *e, const cps_tview *v, cps_teat *at);
void cps_te_axis(cps_tewalk *w, int64_t step, int64_t num); /* puts an axis in front */
void cps_te_gather(const uint8_t *p, const cps_tewalk *w, uint8_t *out);
void cps_te_scatter(uint8_t *p, const cps_tewalk *w, const uint8_t *in);
void cps_te_mark(uint8_t *def, const cps_tewalk *w);
/* False after E8101 when a byte of the walk (from data offset `base`) was never written. */
bool cps_te_defined(cps_te *e, const cps_teat *at, int64_t base, const cps_tewalk *w);
bool cps_te_rows(cps_te *e, int64_t elems);

/* Lane p of a view: raw elements, or converted. Loads check that all was written. */
bool cps_te_load_raw(cps_te *e, const cps_teat *at, unsigned p, uint8_t *out);
bool cps_te_load(cps_te *e, const cps_teat *at, unsigned p, float *out);
bool cps_te_load_i64(cps_te *e, const cps_teat *at, unsigned p, int64_t *out);
void cps_te_store_raw(cps_te *e, const cps_teat *at, unsigned p, const uint8_t *in);
void cps_te_store(cps_te *e, const cps_teat *at, unsigned p, const float *in);
void cps_te_store_i64(cps_te *e, const cps_teat *at, unsigned p, const int64_t *in);

/* Between stage and flush, stores to `out` are kept aside. */
bool cps_te_stage(cps_te *e, const cps_teat *out, unsigned lanes);
void cps_te_flush(cps_te *e, const cps_teat *out, unsigned lanes);

/* ---- arithmetic (tile_alu.c) ---- */
/* out[i] = a[i*sa] op b[i*sb], rounded to binary32; strides 0 or 1. False for an operator
 * without a binary32 form. */
bool cps_alu_f32(unsigned op, const float *a, int sa, const float *b, int sb, float *out,
                 int64_t n);
float cps_alu_f32_identity(unsigned op);
uint32_t cps_alu_bits(unsigned op, uint32_t a, uint32_t b, unsigned width);
int64_t cps_alu_int(unsigned op, int64_t a, int64_t b);
bool cps_alu_compare(unsigned op, int64_t a, int64_t b); /* IS_EQ ... IS_NE */
bool cps_act_f32(unsigned fn, const float *in, float *out, int64_t n);

/* ---- instructions ---- */
bool cps_te_vector(cps_te *e); /* ACT, DVE, POOL: tile_eval_vec.c, tile_eval_row.c */
bool cps_te_rowwise(cps_te *e);
bool cps_te_pe(cps_te *e);                                    /* tile_eval_pe.c */
bool cps_te_dma(cps_te *e);                                   /* tile_eval_dma.c */
bool cps_te_int(cps_te *e, const cps_toper *o, int32_t *out); /* number or register */

#endif
