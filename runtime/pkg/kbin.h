/* One compiled kernel: what the back end makes, the trace cache stores, the package holds and the
 * simulator loads. Streams are in the pre-load form of a container (pseudo records present);
 * descriptors are the engine JSON's `dma` items; every HBM address inside a bundle is a
 * relocation. Variables are named; on-chip memory is the variable "sb" with partition<<18 + byte
 * as its offset. */
#ifndef CPS_PKG_KBIN_H
#define CPS_PKG_KBIN_H

#include "codegen/isa/isa.h"
#include "runtime/base/diag.h"
#include "runtime/base/hash.h"
#include "runtime/base/json.h"
#include "runtime/base/npy.h"
#include "runtime/base/vec.h"
#include "runtime/pkg/files.h"

typedef enum cps_varkind {
    CPS_VAR_SB,     /* "sb": the state buffer aperture */
    CPS_VAR_INPUT,
    CPS_VAR_OUTPUT,
    CPS_VAR_INOUT,
    CPS_VAR_TMP,    /* private HBM of the kernel */
    CPS_VAR_DATA,   /* constants carried by the kernel (lists, identities) */
    CPS_VAR_SHARED  /* HBM that both cores of a pair see, of the kernel's own */
} cps_varkind;

typedef struct cps_kvar {
    const char *name;
    cps_varkind kind;
    cps_dtype dtype;      /* element type, for reports */
    int rank;
    int64_t dim[CPS_MAX_RANK];
    int64_t bytes;
    const void *data;     /* CPS_VAR_DATA */
} cps_kvar;

#define CPS_DESC_DIMS 4

typedef enum cps_descop { CPS_DESC_COPY, CPS_DESC_CAST, CPS_DESC_ADD, CPS_DESC_TRANSPOSE } cps_descop;

/* One descriptor item: patterns innermost first, in bytes; size[0] counts contiguous bytes with
 * step 1, as in the engine JSON of a container. Both sides move the same number of elements in
 * the same order. */
typedef struct cps_kdesc {
    cps_descop op;
    uint32_t from, to;    /* variable ids */
    int64_t from_off, to_off;
    int nfrom, nto;
    int64_t from_step[CPS_DESC_DIMS], from_size[CPS_DESC_DIMS];
    int64_t to_step[CPS_DESC_DIMS], to_size[CPS_DESC_DIMS];
    cps_dtype from_dtype, to_dtype; /* u8 for plain copies */
    int elem;             /* TRANSPOSE: element bytes */
    int64_t rows, cols;   /* TRANSPOSE: of the source */
} cps_kdesc;

/* A block of descriptors fired by one PSEUDO_DMA_TRIGGER (queue name, block id). On completion the
 * semaphore has risen by 16 (one per DMA engine, also by those that moved nothing). */
typedef struct cps_kblock {
    cps_engine owner;     /* whose stream triggers it */
    const char *queue;
    uint32_t id;
    uint8_t semaphore;
    uint32_t first, ndesc; /* in kbin->descs */
    cps_span loc;
} cps_kblock;

/* The 64-bit or 32-bit slot `field` of bundle `index` in stream `engine` holds addend + address of
 * `var` after loading. */
typedef struct cps_kreloc {
    cps_engine engine;
    uint32_t index;
    uint16_t field;       /* cps_field, by name in the file */
    uint32_t var;
    int64_t addend;
} cps_kreloc;

/* What an address in a register may reach: the tile, or the variable in HBM, that the access is of.
 * The loader does not need it, and whoever runs the kernel may pass over it; the simulator holds
 * each such access to it. */
typedef struct cps_kextent {
    cps_engine engine;
    uint32_t index;       /* bundle */
    uint16_t field;       /* the slot with the address: cps_field, by name in the file */
    uint32_t var;         /* all of this variable; 0: on chip, */
    const char *name;     /* the tile of this name: */
    bool psum;
    uint16_t part, parts;
    uint32_t byte, bytes; /* of each partition */
} cps_kextent;

/* A replica group: `n` ranks, in kbin->ranks from `first`. Collectives name the table by number. */
typedef struct cps_kgroup {
    uint32_t table, first, n;
} cps_kgroup;

/* In a permutation with number `table`, rank `from` sends to rank `to`. */
typedef struct cps_kpair {
    uint32_t table, from, to;
} cps_kpair;

/* Where a bundle came from, for listings and reports. */
typedef struct cps_kloc {
    const char *file;     /* source name, or NULL */
    uint32_t line, col;
} cps_kloc;

typedef struct cps_kstream {
    CPS_VEC(cps_bundle) code;
    CPS_VEC(cps_kloc) locs; /* as long as code, or empty */
} cps_kstream;

/* What a static proof says of a kernel (runtime/sim/prove.c); OPEN also where none was made. */
typedef enum cps_verdict { CPS_PROOF_OPEN, CPS_PROOF_HOLDS, CPS_PROOF_FAILS, CPS_VERDICTS } cps_verdict;
extern const char *const cps_verdict_names[CPS_VERDICTS]; /* open, proved, refuted */

typedef struct cps_kstats {
    int64_t flops, hbm_bytes;       /* of the kernel's mathematics: what must move and be computed */
    int64_t pe_flops_ps;            /* PE time of the mathematics at the dtype's peak, picoseconds */
    int64_t engine_min_ps[CPS_ENGINES]; /* declared minimum passes per engine; 0 where none */
    int64_t sbuf_peak;              /* bytes per partition */
    int psum_banks;                 /* at the peak */
    int semaphores;                 /* used */
    uint8_t races, deadlock;        /* cps_verdict: free of them */
} cps_kstats;

typedef struct cps_kbin {
    cps_arena *arena;
    const char *name;               /* leaf name */
    const char *target;
    cps_gen gen;
    int core, cores;
    struct cps_kbin *peer;          /* core 0 of 2: the kernel of core 1; else NULL */
    cps_kstream stream[CPS_ENGINES];
    CPS_VEC(cps_kvar) vars;         /* [0] is "sb" */
    CPS_VEC(cps_kdesc) descs;
    CPS_VEC(cps_kblock) blocks;
    CPS_VEC(cps_kreloc) relocs;
    CPS_VEC(cps_kextent) extents;
    CPS_VEC(cps_kgroup) groups;     /* none: one table, 0, of one group of all ranks */
    CPS_VEC(uint32_t) ranks;
    CPS_VEC(cps_kpair) pairs;
    cps_kstats stats;
} cps_kbin;

cps_kbin *cps_kbin_new(cps_arena *a, const char *name, const char *target, cps_gen gen);
uint32_t cps_kbin_var(const cps_kbin *k, const char *name); /* id, or UINT32_MAX */
/* Whether counts, names, references, shapes and variable bounds agree; the first thing wrong is
 * described in `why`. Readers and the simulator rely on it. */
bool cps_kbin_check(const cps_kbin *k, cps_buf *why);

/* Files of one kernel folder (of a pair: of core0/ and core1/ in it): {pe,act,pool,dve,sp}.bin, dma.json, reloc.json, kernel.json,
 * kernel.cas (listing), data.bin when there are constants. Deterministic bytes. Block spans are of
 * a session and not kept: the places of the trigger bundles are. Blocks come back by engine. False
 * with errno on I/O failure. */
bool cps_kbin_write(const cps_kbin *k, const char *dir);
/* The same files, not written: names begin with `folder` ("" or ending in '/'). */
void cps_kbin_files(const cps_kbin *k, const char *folder, cps_pfiles *out);
/* The listing alone: assembly text of all streams, with the source place of each instruction. */
void cps_kbin_listing(const cps_kbin *k, cps_buf *out);
/* The list `extents` of kernel.json, with its key, when there are some; and its value, or NULL where there
 * is none: false when it is malformed. `loose`: slots that a bundle has not are passed over. */
void cps_kbin_extents_write(const cps_kbin *k, cps_jsonw *w);
bool cps_kbin_extents_read(cps_kbin *k, const cps_json *list, bool loose);
/* Reads the folder back; the listing is not read. NULL after E1001, E8011 or E8012. Never trusts
 * the files: sizes, counts, names and offsets are checked. */
cps_kbin *cps_kbin_read(cps_arena *a, const char *dir, cps_diags *d);

/* One self-contained byte string (for the cache): sections with lengths, exact round trip. */
void cps_kbin_pack(const cps_kbin *k, cps_buf *out);
cps_kbin *cps_kbin_unpack(cps_arena *a, const void *bytes, size_t n, const char **why);

#endif
