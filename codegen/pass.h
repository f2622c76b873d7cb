/* The passes of the back end and what they hand to each other. Tile passes change a working
 * copy of the tile program in place; `cps_pass_select` turns it into a machine program, on
 * which `cps_pass_sync` and `cps_pass_emit` work. */
#ifndef CPS_CODEGEN_PASS_H
#define CPS_CODEGEN_PASS_H

#include "codegen/codegen.h"
#include "codegen/isa/timing.h"

/* A storage that is streamed from HBM. */
typedef struct cps_spilled {
    const char *name;
    cps_span loc;
    uint32_t transfers; /* between its frames and its home, and their bytes */
    int64_t bytes;
} cps_spilled;

/* What an instruction of some kind cost last: the next of its kind mostly costs the same. */
typedef struct cps_cost_seen {
    cps_bundle b;
    cps_cost cost;
    uint8_t engine;
    bool some;
} cps_cost_seen;

/* What the passes share. */
typedef struct cps_cg {
    cps_arena *arena; /* of the compilation; what lasts is copied out at the end */
    cps_arena *keep;  /* of the result: notes */
    const cps_target *t;
    cps_tfunc *f; /* working copy */
    cps_diags *d;
    cps_codegen_opts o;
    /* spill.c: */
    unsigned tries; /* how often SBUF was too small so far */
    bool may_spill; /* there may be more to spill */
    bool full;      /* alloc: SBUF is too small, and spilling may help */
    CPS_VEC(cps_spilled) spilled;
    int64_t sbuf_peak; /* bytes per partition; alloc */
    int psum_banks;    /* banks used; alloc */
    cps_cost_seen *costs; /* per instruction: cost.c */
    cps_bundle *blank;    /* per bundle of the ISA: as cps_isa_new makes it, once it was wanted */
} cps_cg;

static inline cps_bundle
cps_cg_bundle(const cps_cg *g, cps_insn i)
{
    cps_bundle *b = &g->blank[i];
    if (!b->b[1]) // its length stands there
        *b = cps_isa_new(i, g->t->gen);
    return *b;
}

/* A deep enough copy of `f` in `a`: views, instructions, buffers and lists can be changed. */
cps_tfunc *cps_tile_copy(cps_arena *a, const cps_tfunc *f);

/* ---- tile program to tile program ---- */
/* Ids, counts and axes are in range: what the passes rely on without looking again. */
bool cps_pass_check(cps_cg *g);
/* Storage that SBUF has no room for lives in HBM: see spill.c. Does nothing at the first try. */
bool cps_pass_spill(cps_cg *g);
/* Every instruction has an engine that can run it. */
bool cps_pass_engine(cps_cg *g);
/* Every operand fits its instruction: see legalise.c. */
bool cps_pass_legalise(cps_cg *g);
/* Every on-chip buffer is placed; live buffers never share bytes. */
bool cps_pass_alloc(cps_cg *g);
/* Marks the moving views that keep their distance (`alone`): see moves.c. */
void cps_moves_alone(cps_tfunc *f, cps_arena *a);
/* The list is in issue order: scheduled by physical dependences; `after` holds. */
bool cps_pass_order(cps_cg *g);

/* ---- machine program ---- */
#define CPS_QUEUES 32
#define CPS_ACC_DIMS (CPS_TILE_DIMS + 1)

/* One access of memory by physical address: `run` contiguous bytes at base + sum of i_k *
 * step_k. Dims have step >= 1 and num >= 2, steep first. On chip it happens in partitions
 * [part, part + parts); base counts within the partition. */
typedef struct cps_macc {
    uint8_t space; /* CPS_HBM, CPS_SBUF, CPS_PSUM */
    bool write;
    uint16_t part, parts;
    uint32_t var; /* HBM: variable of the kernel */
    uint32_t buf; /* on chip: buffer of the tile program */
    int64_t base, run;
    int nd;
    struct {
        int64_t step, num;
    } d[CPS_ACC_DIMS];
} cps_macc;

typedef enum cps_mkind {
    CPS_M_UNIT, /* runs on the engine's datapath, completes in order */
    CPS_M_SEQ,  /* runs on the engine's sequencer: ordered after the datapath only by waiting */
    CPS_M_DMA,  /* starts a transfer that completes on its own: +16 on a semaphore */
    CPS_M_BARRIER, /* all engines meet, everything is complete, semaphores start again at 0 */
} cps_mkind;

/* One machine operation: a bundle on an engine and what it touches. */
typedef struct cps_mop {
    uint8_t kind, engine;
    cps_bundle code;
    uint32_t acc, nacc; /* in prog->accs */
    uint32_t block;     /* DMA by descriptors: index into kbin->blocks + 1 */
    uint8_t queue;      /* DMA: the in-order queue it travels on */
    uint16_t sem_field; /* DMA by record: the field that names the semaphore */
    bool meets;         /* barrier: the other core's too */
    uint32_t after;     /* index + 1 of an operation that must be complete; 0 none */
    uint32_t label;     /* this operation carries label `label` (per engine); 0 none */
    uint32_t target;    /* branch: to that label of the same engine; 0 none */
    uint32_t reloc;     /* index + 1 into prog->relocs of its first; */
    uint16_t nreloc;
    uint16_t nextent;
    uint32_t extent;    /* index into prog->extents of its first */
    cps_span loc;
    /* sync: */
    bool signal;          /* the engine's semaphore rises at completion */
    uint32_t wait, nwait; /* in prog->waits */
    /* sync, when notes are wanted: */
    uint32_t id;        /* 1-based place in the list before sync; 0: sync's own */
    uint32_t dep, ndep; /* in prog->deps */
} cps_mop;

typedef struct cps_mwait {
    uint8_t sem;
    uint32_t value;
} cps_mwait;

/* Noted: operation (its id less 1) that must come before, cps_depkind. */
typedef struct cps_mdep {
    uint32_t op;
    uint8_t kind;
} cps_mdep;

/* A relocation whose bundle index is known only when streams are written. */
typedef struct cps_mreloc {
    uint16_t field;
    uint32_t var;
    int64_t addend;
} cps_mreloc;

/* A slot with an address in a register, and the buffer of the tile program that it is of. */
typedef struct cps_mextent {
    uint16_t field;
    uint32_t buf;
} cps_mextent;

typedef struct cps_mprog {
    cps_kbin *k;          /* variables, descriptors and blocks are filled by select */
    CPS_VEC(cps_mop) ops; /* in program order; per engine also the order of its stream */
    CPS_VEC(cps_macc) accs;
    CPS_VEC(cps_mwait) waits;
    CPS_VEC(cps_mreloc) relocs;
    CPS_VEC(cps_mextent) extents;
    const uint32_t *var; /* variable of each HBM buffer */
    CPS_VEC(cps_mdep) deps;
    uint32_t op_ids; /* operations before sync */
    uint32_t labels; /* highest label */
    int semaphores;  /* used; sync */
} cps_mprog;

/* Instructions and descriptors of every tile instruction, with physical addresses. */
bool cps_pass_select(cps_cg *g, cps_mprog *p);
/* Waits and signals: every dependence between engines and transfers is covered. */
bool cps_pass_sync(cps_cg *g, cps_mprog *p);
/* Streams, relocations and source places. */
bool cps_pass_emit(cps_cg *g, cps_mprog *p);

/* Fills the notes of a finished program (notes.c). */
struct cps_notes;
void cps_notes_fill(cps_cg *g, const cps_mprog *p, struct cps_notes *n);

#endif
