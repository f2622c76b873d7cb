/* Inside the simulator: the machine, prepared instructions, footprints and the calls between
 * the files of this room. Times are picoseconds; partitions and bytes are physical. */
#ifndef CPS_SIM_MACHINE_H
#define CPS_SIM_MACHINE_H

#include "runtime/base/map.h"
#include "codegen/isa/desc.h"
#include "codegen/isa/seen.h"
#include "codegen/isa/text.h"
#include "runtime/sim/mm.h"
#include "runtime/sim/sim.h"
#include "runtime/sim/wide.h"

#include <math.h>
#include <stdlib.h>

enum {
    LANES = 128,
    PSUM_BYTES = 16384, /* of a partition: 8 banks of 2 KiB */
    PSUM_FRESH = PSUM_BYTES / 16, /* bytes of a partition's flags */
    WCODE_PITCH = 4 * LANES,
    /* Between the same byte of two partitions, on the host: an odd number of cache lines more than a
     * power of two, or a column of partitions would share one set of the host's caches. */
    PITCH_PAD = 33 * 64,
    PSUM_PITCH = PSUM_BYTES + PITCH_PAD,
    SLAB_SBUF = 0,
    SLAB_SBUF_INIT,
    SLAB_PSUM,
    SLAB_PSUM_INIT,
    SLABS,
    ROW_MAX = 65536,    /* elements of one partition's pattern (uint16 counts, 64K limit) */
    MAX_OPNDS = 4,
    MAX_SCALARS = 3,
    RECT_DIMS = 6,
    DMA_RINGS = 16, /* DMA engines of a core at most */
    REGS = 64,
    SEMS = 256,
    POOL_BUFFER = 512, /* elements a partition */
    NOT_QUEUE = 0xFFFF
};

typedef enum space { SP_SBUF, SP_PSUM, SP_HBM } space;

/* ---- footprints ---- */

/* A set of bytes: `run` bytes at `base` + sums of steps, in the linear addresses of a space
 * (partition << 18 + byte for SBUF, partition << 15 + byte for PSUM, offset in variable `var`).
 * Steps may be 0 or negative as given; lo and hi bound the set. */
typedef struct rect {
    uint8_t space, nd;
    uint32_t var;
    int64_t base, run;
    int64_t step[RECT_DIMS],
        num[RECT_DIMS]; /* outermost (largest extent) first after closing */
    int64_t lo, hi;
    bool dense; /* a block: contiguous in each partition, the same bytes in each */
} rect;

typedef CPS_VEC(rect) rectvec;

void rect_close(rect *r); /* drops unit dims, sorts, bounds */
bool rect_overlap(const rect *a, const rect *b, int64_t *at);

/* ---- operands ---- */

/* A tensor operand, ready to use. Steps in elements of `es` bytes; dimension 0 is the fastest.
 */
typedef struct opnd {
    uint16_t field;
    uint8_t dtype; /* cps_dtype */
    uint8_t es, out, psum;
    uint8_t part, rows;
    uint8_t reg; /* address register; 0xFF: the address is static */
    uint8_t nd;  /* dims left after merging */
    bool flat;   /* contiguous elements */
    uint32_t byte, count;
    int32_t step[4];
    uint32_t num[4];
    uint8_t group;  /* partitions that share a list of offsets; 0: a plain pattern */
    uint8_t slot;   /* where its offsets are while the instruction runs */
    uint32_t index; /* ADDR4 of the list */
    uint8_t raw_nd; /* as written: counts per dimension for folds */
    int16_t raw_step[4];
    uint16_t raw_num[4];
    int64_t lo, hi; /* bytes touched, relative to `byte` */
} opnd;

typedef enum smode { SC_IMM, SC_PTR, SC_REG } smode;

/* A scalar operand: one number, or one per partition. */
typedef struct scalar {
    uint8_t mode;
    uint32_t bits; /* SC_IMM: as in the instruction */
    opnd at;       /* SC_PTR, SC_REG: [rows, 1] */
} scalar;

/* Each row of an instruction as `n` pieces of `len` elements: a destination (or none), one or two
 * sources. False when the operands do not fit; they are in bounds by then. */
typedef struct pieces {
    uint32_t n, len;
    const opnd *o[3];
    uint8_t *base[3];
    wide_side side[3]; /* out, a, b of the piece last asked for */
} pieces;
/* An element-wise instruction as calls of a loop over its rows (tile.c). */
typedef struct tile {
    wide_tile *loop;
    wide_side side[3];    /* first piece: out, a, b */
    wide_step step[1][2]; /* of all rows */
    bool scaled;          /* its steps are made of scalars in memory when it executes */
    pieces p;
} tile;

typedef struct insn insn;
typedef struct engine engine;
typedef struct xfer xfer;
typedef struct block block;
typedef struct exchange exchange; /* a collective or a message (sem_cc.c) */
typedef struct post post;         /* one that has been asked for */

typedef struct sem_row {
    const char *name;
    bool (*prepare)(cps_sim *s, insn *i); /* NULL: nothing beyond operands */
    bool (*exec)(cps_sim *s, engine *e, insn *i);
    uint8_t kind; /* sem_kind */
} sem_row;

/* DATA: a datapath instruction, checked before and marked after by exec.c; SELF: the same, but
 * marks what it wrote itself; OWN: checks and marks itself; SEQ: the sequencer's own. */
typedef enum sem_kind { SEM_DATA, SEM_SELF, SEM_OWN, SEM_SEQ } sem_kind;

typedef struct sync {
    uint8_t wait_mode[2], wait_idx[2];
    uint32_t wait_value[2];
    uint8_t update_mode[2], update_idx[2];
    uint32_t update_value[2];
    uint8_t nwait, nupdate;
} sync;

/* Register arithmetic and branches, as read from their fields once. */
typedef struct seq_op {
    uint8_t op, t, to;  /* operator or comparison, types (cps_dtype) of operands and of the result */
    uint8_t mode;       /* of a branch target */
    uint8_t a, b, dst;  /* registers; of a pair the lower */
    bool imm;           /* the second operand is `value` */
    uint32_t value;
    int64_t by;         /* of a branch, in bundles */
} seq_op;

struct insn {
    /* What each execution looks at, whatever the instruction: two lines of the host's cache. */
    _Alignas(64) const sem_row *sem;
    cps_cost cost;
    sync sy;
    uint16_t id; /* cps_insn */
    uint8_t engine;
    uint8_t rows;
    uint8_t nop, nsc;
    bool data;   /* of the datapath: sem->kind is not SEM_SEQ */
    bool placed; /* no address comes from a register, and all were found inside memory */
    bool alone;  /* and it waits for nothing and tells nobody */
    bool psum_port, sbuf_port;
    bool xpose : 1; /* the source is read through 32 x 32 transposes */
    bool met : 1;   /* placed, and none of its operands lies in a stale block (stale.c) any more */
    uint8_t op0, op1, rev, fn, cmd, flag;
    uint16_t group; /* PE: row and column groups' start */
    uint32_t index; /* in its stream */
    uint32_t set;   /* ACTIVATE: sets that hold the function */
    float imm;
    seq_op seq;
    tile *tile;   /* as the loops of tile.c take it; NULL: not found to be one */
    /* What its semantics look at. */
    opnd *op;   /* MAX_OPNDS of them */
    scalar *sc; /* MAX_SCALARS */
    cps_ap pat; /* DATA4D */
    block *block; /* triggers */
    exchange *xc; /* exchanges with other logical cores */
    cps_bundle b;
    uint16_t core;     /* of the group */
    uint16_t nextent;  /* of its addresses in registers: what they may reach, in s->extents */
    uint32_t extent;   /* from here on */
    unsigned reported; /* bits of checks already reported for this instruction */
};

/* ---- vector clocks ---- */

/* Components of one core, which begin at its `vc0`: 2e reads of engine e done, 2e+1 its writes done,
 * then transfers of each queue. The cores of a group follow one another. */
typedef const uint32_t *vclock;

typedef struct access_rec {
    rect r;
    uint8_t write, actor; /* engine, or 0xFF for a queue */
    uint16_t queue;
    const insn *by; /* the instruction, or the trigger */
    uint32_t mark;  /* last scan that looked at it */
    uint32_t refs;  /* cells that list it */
} access_rec;

/* One access in a cell: what decides nearly every meeting, without a look at the record. */
typedef struct cell_rec {
    uint32_t id, epoch;
    uint32_t actor; /* race.c: who; two of the same are in order */
    uint16_t comp, parts, cols; /* parts and columns of the cell that it may touch, a bit each */
} cell_rec;

typedef struct cell {
    cell_rec *rec;
    uint32_t n, cap;
} cell;

/* One rise or fall of a semaphore, for deciding what a wait guarantees. */
typedef struct sem_rec {
    vclock vc;
    uint32_t rd, wr; /* the source's own epochs: reads and writes done, or transfers */
    uint32_t wr_all; /* highest wr of its chain up to here: an update at read may come last */
    int32_t amount;
    int32_t share;    /* what one part of it adds: a transfer rises in `dma engines` parts */
    int64_t up, down; /* sums over its source, this one included */
    int64_t shares;   /* sum of shares */
    const insn *by;
} sem_rec;

typedef struct sem_chain {
    CPS_VEC(sem_rec) recs;
} sem_chain;

typedef struct semaphore {
    int64_t value, base;
    sem_chain *chain; /* per source: engines, then queues */
    bool event;       /* the event bit of the same number */
    vclock event_vc;
    uint32_t event_rd, event_wr;
    uint8_t event_by;
} semaphore;

/* ---- DMA ---- */

/* One side of a transfer: a pattern in simulated addresses, innermost dimension first, size[0]
 * contiguous bytes. */
typedef struct side {
    uint64_t addr;
    uint32_t var;
    int nd;
    int64_t step[5], size[5];
} side;

typedef struct item {
    cps_descop op;
    uint8_t alu; /* DGE compute: cps_isa_value of DGE_COMPUTE_OP */
    uint8_t from_dtype, to_dtype;
    int elem;
    bool away; /* from SBUF to a large output */
    int64_t rows, cols;
    side from, to;
} item;

/* What goes between two decisions of a DMA engine: at most packet_bytes, of one item. */
typedef struct packet {
    uint32_t first, n; /* descriptors */
    uint32_t small;    /* of them, below dma.small_bytes */
    uint32_t bytes;    /* the larger side */
    uint32_t item;
} packet;

typedef struct ring {
    CPS_VEC(cps_qdesc) m2s, s2m; /* sources and destinations, pairwise */
    CPS_VEC(uint64_t) lin;    /* TRANSPOSE: first element of the destination's order */
    CPS_VEC(packet) packets;
    rectvec reads, writes;
} ring;

/* A block of descriptors, built at load or by a DGE instruction when it runs. */
struct block {
    cps_arena *arena, *scratch;
    struct builder *build; /* runs while the block is being built */
    uint16_t queue;
    uint32_t id;
    uint8_t semaphore;
    uint8_t increment; /* in all */
    bool to_var, from_var;
    bool adds; /* some item computes with what is at its destination */
    ring ring[DMA_RINGS];
    CPS_VEC(item) items;
    int64_t bytes;
    uint32_t ndesc;
    uint8_t engines; /* that move something */
};

/* A transfer under way. */
struct xfer {
    block *b;
    const insn *by;
    uint32_t seq; /* in its queue, from 1 */
    cps_ps trigger, first, last;
    uint8_t left; /* engines not done */
    struct {
        cps_ps start;    /* not before */
        uint32_t packet; /* next */
    } at[DMA_RINGS];
    xfer *next[DMA_RINGS];
    vclock vc;
    uint32_t rec; /* its record */
    post *op;     /* of an exchange, or NULL */
};

typedef struct queue {
    const char *name;
    uint8_t owner;
    uint32_t seq; /* transfers triggered */
    cps_ps issue_free;
    vclock vc; /* joined over its triggers */
    struct {
        xfer *head, *tail;
    } fifo[DMA_RINGS];
} queue;

typedef struct dma_engine {
    bool busy;
    uint16_t queue; /* being served */
    uint16_t turn;  /* round robin */
    cps_ps begin;
} dma_engine;

/* ---- a recorded run (record.c) ---- */

/* Instructions count from 0, transfers from REC_XFER. */
enum { REC_XFER = 0x80000000u, REC_NONE = 0xFFFFFFFFu, GRANULE = 64 };

/* One instruction that ran. The engine turned to it at `turn`, its waits were over at `ready`, its
 * engine's own results were there at `own`; after that a shared port may have held it up. */
typedef struct rec_insn {
    const insn *by;
    cps_ps turn, ready, own, start;
    cps_ps free, self, done; /* the engine went on; results for itself, for others */
    cps_ps warm;             /* part of free - start that PE warm-up added */
    uint64_t macs;           /* PE: multiplications it made */
    uint32_t freed_by;       /* the semaphore change that ended the wait, or REC_NONE */
    uint32_t before;         /* the instruction before it on its engine, or REC_NONE */
} rec_insn;

/* What one DMA engine did for a transfer; `own` is 0 when it had nothing to move. */
typedef struct rec_part {
    cps_ps begin, end, own; /* first packet, last byte, time spent on own packets */
    uint32_t after;         /* the transfer served just before, when that held it up */
} rec_part;

typedef struct rec_xfer {
    const insn *by;
    uint32_t from;   /* the instruction that triggered it */
    uint32_t before; /* the transfer before it in its queue, or REC_NONE */
    const block *b;
    uint16_t queue;
    uint8_t last_ring;
    bool to_var, from_var;
    cps_ps trigger, issue, start, first, last, seen;
    int64_t bytes;
    uint32_t ndesc;
    rec_part *part; /* one per DMA engine */
} rec_xfer;

/* One change of a semaphore, or of an event (sem + SEMS). */
typedef struct rec_sem {
    cps_ps t;
    uint16_t sem;
    uint32_t from;
    int64_t value; /* after */
} rec_sem;

/* Bytes of every partition that something lay in: written at `t0`, last touched at `t1`. */
typedef struct rec_live {
    uint32_t lo, hi;
    cps_ps t0, t1;
    uint32_t by;
    uint8_t psum;
} rec_live;

/* Something of this core that one of another core let go on: an instruction at a barrier of cores, or
 * an exchange (REC_XFER) that began with the post of its last member. */
typedef struct rec_link {
    uint32_t who, core, insn; /* insn: of that core */
} rec_link;

/* A column of GRANULE bytes over all partitions. */
typedef struct granule {
    cps_ps t0, t1;
    uint32_t by;
    bool live, read;
} granule;

typedef struct recorder {
    CPS_VEC(rec_insn) insn;
    CPS_VEC(rec_xfer) xfer;
    CPS_VEC(rec_sem) sem;
    CPS_VEC(rec_live) live;
    CPS_VEC(rec_link) link;
    granule *gran[2]; /* SBUF, PSUM */
    uint32_t ngran[2];
    uint32_t last_change[2 * SEMS]; /* index in sem */
    uint32_t last_xfer[DMA_RINGS];  /* served last */
    uint32_t *last_of_queue;
    uint64_t macs;     /* of PE, up to its latest record */
    struct view *view; /* made on demand (path.c) */
} recorder;

/* The wait of an engine's next instruction, until it starts. */
typedef struct rec_turn {
    cps_ps turn, ready, own;
    uint32_t freed_by, last; /* last: its latest record */
} rec_turn;

/* ---- engines ---- */

/* The latest results of an engine, in turn. */
enum { RECENT = 8 };
typedef struct recent {
    unsigned n;            /* results so far */
    cps_ps until;          /* when all of them are ready */
    cps_ps ready[RECENT];
    const opnd *o[RECENT]; /* the instruction's own, or of `was` when its place may move */
    opnd was[RECENT];
} recent;

/* The random state of a lane, in words as RAND_GET_STATE gives them. */
typedef struct rand_lane {
    uint32_t lfsr, rounding;
    uint32_t xorwow[24], pcg[2], philox[7];
    uint8_t turn; /* of the XORWOW states */
} rand_lane;

struct engine {
    uint8_t id;
    bool held; /* at a barrier */
    bool halted, blocked, passed; /* passed: the wait of the instruction at pc is over */
    unsigned depth; /* of calls */
    uint32_t pc, n;
    insn *code;
    cps_ps free, complete; /* sequencer free; last completion so far */
    cps_ps resume;         /* blocked since; -1: not blocked */
    uint32_t count;        /* memory instructions so far: the epoch */
    vclock vc;
    uint32_t reg[REGS];
    recent recent;
    float acc[LANES];
    /* PE */
    float *w[4];     /* weights [128][128]: two planes in DOUBLE_ROW, four of MX types */
    uint8_t *wcodes; /* their codes, WCODE_PITCH a row, each column group from 4 bytes a column on */
    uint8_t wmode, wdtype;
    mm_strips strips;     /* the weights packed */
    uint32_t strips_part; /* of which rows and columns */
    uint8_t strips_kind;  /* 0: as they are; else 1 + mode of the pass of an fp32 product */
    uint8_t (*tag)[LANES];   /* of sparse weights: row << 2 | feature map */
    uint32_t (*seed)[LANES]; /* 16 words a column */
    /* ACT */
    int table;
    /* DVE */
    float key[LANES][8];
    uint32_t found[LANES][8];  /* where the last search met each key */
    uint32_t preset[LANES][8]; /* scalars of the multi-scalar forms, bits */
    uint8_t mask[32];
    float bn[LANES][4]; /* mean, 1 / deviation, two sums over the count */
    rand_lane rand[LANES]; /* when not `unseeded`; so is `seed` */
    uint64_t first_seed;   /* what they begin from */
    bool unseeded;
    rec_turn turn; /* of the instruction at pc, while recording */
};

/* ---- events ---- */

typedef enum ev_kind { EV_SEM, EV_DMA_DONE, EV_CC, EV_DMA_START, EV_ENGINE } ev_kind;

typedef struct event {
    cps_ps t;
    uint8_t kind, a;
    uint16_t b;
    int32_t amount;
    xfer *x;
    const insn *by;
    vclock vc;
    uint32_t rd, wr;
    uint32_t rec; /* who causes it, in a recorded run */
    uint8_t mode;
} event;

/* Where an event stands among those to come: by time, then by kind and the order in which they were made. */
typedef struct ev_place {
    cps_ps t;
    uint64_t rank; /* kind in the upper byte, then order */
    uint32_t at;   /* in cps_sim.events */
} ev_place;

/* The turn of an engine that waits for its time; `t` is PS_NEVER when there is none. */
typedef struct due {
    cps_ps t;
    uint64_t order; /* among events of one time */
} due;

#define PS_NEVER INT64_MAX

typedef struct hbm_var {
    const cps_kvar *v;
    uint64_t addr; /* simulated */
    uint8_t *data;
    uint8_t *init; /* one byte a byte; NULL: all defined */
    bool bound, defined;
    bool clean; /* `init` is all zero */
    bool quiet; /* nothing in the kernel can write it: its reads race with nothing */
    bool unwritten; /* the same of the path under proof */
    bool no_more;   /* nothing that is still to come on it writes: reads are compared, and not kept */
    cell *cells;
    uint32_t granule; /* bytes of one */
    cps_sim *home; /* whose memory it is: the first core of a pair that has it; NULL: its own */
    uint32_t at;   /* its index there */
    bool shared;   /* the other core of the pair has it too */
} hbm_var;

/* Accesses to memory that both cores of a pair see, gathered for their proof (prove_pair.c). */
typedef struct shared_access {
    rect r; /* its variable as the home of the memory names it */
    bool write;
    const insn *by;
} shared_access;

typedef struct shared_log {
    shared_access *data;
    uint32_t n, cap;
    cps_arena *arena;
    bool full; /* some were left out */
} shared_log;

/* What races know of accesses; one for all cores of a group. */
typedef struct racer {
    cps_arena *arena;
    CPS_VEC(access_rec) recs;
    CPS_VEC(uint32_t) free_recs;
    uint32_t scan;
    cps_map seen; /* pairs reported */
} racer;

/* Who has come to the barrier, until when, and what they know together. */
typedef struct barrier {
    unsigned arrived;
    cps_ps time;
    vclock vc;
} barrier;

/* What POOL_BUFFER_LOAD brought: `count` elements of each of `rows` partitions, 4 KiB apart. */
typedef struct pool_buffer {
    uint8_t *data;
    uint32_t start, mask, count;
    uint8_t es, rows;
} pool_buffer;

/* What an instruction's row says, once it was met. */
typedef struct model {
    const sem_row *sem;
    uint16_t rows; /* field with the number of partitions */
} model;

/* Blocks of a memory that still hold what the run before left (stale.c): a bit for each partition. */
enum { STALE = 512 }; /* bytes of a block */
typedef struct stale_map {
    uint64_t (*lanes)[LANES / 64];
    uint32_t hi; /* bytes of a partition that have blocks */
} stale_map;
_Static_assert(PSUM_BYTES / STALE == 32, "cps_sim.psum_reach has a bit for each block");

struct cps_sim {
    const cps_target *t;
    const cps_kbin *k;
    cps_diags *d; /* of the call under way */
    cps_arena *load_arena, *run_arena;
    cps_arena *making; /* of the transfer at hand, while a proof looks at it; NULL: run_arena */
    cps_kextent *extents; /* the kernel's, by engine and bundle */
    cps_arena *clocks; /* of vector clocks, while a proof keeps them apart; NULL: run_arena */
    cps_sim_opts opts;
    uint16_t *offsets[MAX_OPNDS]; /* of indirect operands, a row of ROW_MAX for each group */
    engine *unit; /* whose instruction takes effect: its random states round */
    bool timer; /* no memory, no data: time only */
    bool proof; /* no memory, no data: proofs only; transfers have footprints, but no descriptors */
    bool bare;  /* either of them */
    bool every_turn; /* proofs follow loops turn by turn */
    bool verified; /* what is loaded has passed cps_isa_verify */
    cps_sim_report rep;
    model model[CPS_INSNS];
    cps_isa_seen alike; /* proofs: the datapath instruction prepared first of those alike */

    const wide_loops *wide; /* loops of this processor */
    uint32_t sbuf_bytes; /* of a partition */
    uint32_t sbuf_pitch; /* on the host, where only the bytes below sbuf_hi are */
    uint8_t *sbuf, *psum, *sbuf_init, *psum_init; /* in slabs, sbuf_pitch or PSUM_PITCH a row */
    void *slab[SLABS];
    size_t slab_bytes[SLABS];
    pool_buffer pool;
    barrier join;
    uint8_t *psum_fresh; /* a bit for two bytes: the next accumulation overwrites */
    uint32_t psum_open;  /* banks (bits) in which a flag may be set */
    uint32_t sbuf_hi;    /* bytes of a partition that the kernel can touch */
    stale_map stale[2];  /* of SBUF and of PSUM */
    uint32_t nstale;     /* parts of blocks in both */
    uint32_t psum_reach; /* blocks of PSUM (bits) that the kernel can touch */
    uint32_t psum_dirty; /* those that may hold something else than ones and no marks */
    bool marked;         /* a run has marked what it wrote */
    CPS_VEC(hbm_var) vars;

    engine eng[CPS_ENGINES];
    semaphore sem[SEMS];
    CPS_VEC(queue) queues;
    CPS_VEC(block *) blocks;
    cps_map block_of;     /* queue << 32 | id: index in blocks */
    uint32_t nclock; /* components of a vector clock */
    dma_engine dma[DMA_RINGS];
    unsigned dma_active, dma_busy;
    cps_ps dma_since;

    CPS_VEC(ev_place) heap; /* places move, events do not */
    CPS_VEC(event) events;
    CPS_VEC(uint32_t) free_events;
    due turns[CPS_ENGINES]; /* EV_ENGINE, the first of each engine; any other is in the heap */
    cps_ps next;             /* while an engine acts: when anything else happens */
    uint64_t order, steps;
    cps_ps now, end, begin;
    cps_ps sem_ps, warm_ps; /* of the target: update to wait, PE warm-up */
    bool fault, have_begin;

    /* In a group (group.c); alone, a machine has no other core. */
    cps_sim_group *group;
    unsigned core;    /* index in the group */
    cps_sim *peer;    /* the other core of its logical core: shares HBM and raises semaphores */
    cps_sim *mate;    /* the core on the same HBM stack */
    cps_ps horizon;   /* when another core may act next: time goes no further alone */
    uint32_t vc0;     /* its first component of a clock */
    shared_log *log;  /* while a pair is proved */
    CPS_VEC(post *) posts; /* of its rank, in order, on the rank's first core */

    /* races */
    racer own_racer, *race;
    cell *sbuf_cells, *psum_cells;
    uint32_t *vc_min; /* what every engine of this core is past */
    uint64_t since_min;

    /* PE warm-up */
    bool warm;
    cps_ps warm_work;
    struct {
        cps_ps b, e;
    } busy[64];
    unsigned nbusy;
    cps_ps port_until[2][CPS_ENGINES]; /* 0 SBUF, 1 PSUM */

    float *row[8];                  /* scratch rows of ROW_MAX */
    uint8_t *raw;                   /* scratch bytes of a row */
    float *mm_x, *mm_acc, *mm_pack; /* matmul scratch */
    uint32_t *mm_bits;
    recorder *rec; /* NULL unless opts.trace */
    struct prover *prover; /* while a proof is under way (prove.c) */
};

/* ---- mem.c ---- */
uint8_t *opnd_row(cps_sim *s, const opnd *o, unsigned p);
void load_f32(cps_sim *s, const opnd *o, unsigned p, float *out);
void store_f32(cps_sim *s, const opnd *o, unsigned p, const float *in);
/* fp32 to the storage type, as the engine at work rounds in a lane. */
void narrow_f32(cps_sim *s, cps_dtype t, unsigned lane, const float *in, void *out, size_t n);
void load_raw(cps_sim *s, const opnd *o, unsigned p, void *out); /* contiguous elements */
void store_raw(cps_sim *s, const opnd *o, unsigned p, const void *in);
void load_i64(cps_sim *s, const opnd *o, unsigned p, int64_t *out);
void store_i64(cps_sim *s, const opnd *o, unsigned p, const int64_t *in);
/* Row p of a source as the instruction sees it: its own, or (`xpose`) a row of the 32 x 32 blocks
 * transposed. Rows are asked for in order; blocks are read when their first row is. */
void seen_raw(cps_sim *s, const insn *i, const opnd *o, unsigned p, void *out);
void seen_f32(cps_sim *s, const insn *i, const opnd *o, unsigned p, float *out);
void scalar_f32(cps_sim *s, const scalar *c, unsigned rows, float *out); /* one per partition */
void scalar_bits(cps_sim *s, const scalar *c, unsigned rows, uint32_t *out);
rect opnd_rect(const opnd *o);
void mark_opnd(cps_sim *s, const opnd *o);
void mark_row(cps_sim *s, const opnd *o, unsigned p, const uint8_t *take); /* NULL: all */
void mark_rect(cps_sim *s, const rect *r);
bool rect_defined(cps_sim *s, const rect *r, int64_t *at);
bool opnd_in_memory(const cps_sim *s, const opnd *o);
bool mem_create(cps_sim *s);
bool mem_fit(cps_sim *s); /* SBUF as far as the loaded kernel reaches */
void mem_reset(cps_sim *s);
void mem_destroy(cps_sim *s);

/* ---- stale.c ---- */
bool stale_fit(cps_sim *s);
void stale_reset(cps_sim *s);
/* Bytes [lo, hi) in `rows` partitions are to be read, or (whole) are all written before anything reads
 * them: they are as at the start of the run where nothing has written. */
void mem_need(cps_sim *s, bool psum, unsigned part, unsigned rows, int64_t lo, int64_t hi, bool whole);
void mem_settle(cps_sim *s); /* all of both memories */
/* Before an instruction of the datapath is checked and takes effect. */
void mem_operands(cps_sim *s, const insn *i);
/* Blocks of PSUM, a bit each, that the bytes [lo, hi) of a partition have a part in. */
uint32_t psum_blocks(int64_t lo, int64_t hi);

/* ---- pieces.c ---- */
bool pieces_of(cps_sim *s, pieces *p, const opnd *out, const opnd *a, const opnd *b);
void pieces_at(pieces *p, unsigned j);
int64_t piece_offset(const pieces *p, unsigned k, unsigned j); /* of piece j of o[k], in bytes */

/* ---- tile.c ---- */
/* Executes an instruction of exec_tt, exec_ts, exec_copy or exec_cast; false when it does not fit. */
bool tile_run(cps_sim *s, insn *i);
/* An operator with a scalar as a multiplication and an addition, of which one changes nothing: v - a is
 * v * 1 + -a, a - v is v * -1 + a. */
bool tile_step(unsigned op, bool swapped, float a, wide_step *out);

/* ---- indirect.c ---- */
bool indirect_set(cps_sim *s, const insn *i, opnd *o, cps_field f, cps_dtype t, unsigned rows);
bool indirect_bind(cps_sim *s, engine *e, insn *i, opnd *o); /* reads the offsets */
void indirect_access(cps_sim *s, engine *e, const insn *i, const opnd *o);
const uint16_t *indirect_offsets(const cps_sim *s, const opnd *o, unsigned p); /* elements */

/* ---- prep.c, load.c ---- */
uint16_t load_queue(cps_sim *s, const char *name); /* a queue that no engine owns */
void load_drop(cps_sim *s); /* forgets its kernel */
cps_sim *load_for_proof(const cps_target *t);
bool prep_insn(cps_sim *s, engine *e, insn *i, const cps_bundle *b);
/* Makes scalar `c` a pointer: `bits` is the byte within the partition, lanes as the main operand. */
bool scalar_point(cps_sim *s, insn *i, scalar *c, uint32_t bits, cps_dtype t);
bool opnd_set(const cps_sim *s, opnd *o, const cps_ap *ap, cps_dtype t, unsigned rows);
const sem_row *sem_find(const char *name);
const cps_kloc *insn_loc(const cps_sim *s, const insn *i);
void insn_name(const cps_sim *s, const insn *i,
               cps_buf *out); /* "act 12 ACTIVATE at f.cps:3" */
void place_text(const cps_sim *s, const rect *r, cps_buf *out);
bool load_fail(cps_sim *s, const insn *i, cps_code code, const char *fmt, ...) CPS_PRINTF(4, 5);
bool run_fault(cps_sim *s, const insn *i, cps_code code, const char *fmt, ...) CPS_PRINTF(4, 5);

/* ---- ring.c ---- */
block *block_new(cps_sim *s, cps_arena *a);
bool block_add(cps_sim *s, block *b, const item *it, const insn *by);
void block_close(cps_sim *s, block *b);
/* ---- ring_share.c ---- */
typedef struct dma_share {
    rect from, to;
} dma_share;
/* The footprints of a copy of elements of `fs` and `ts` bytes, per DMA engine (DMA_RINGS of them), as
 * bits of which engines have one, and how many descriptors it makes; 0: it must be walked. */
uint32_t ring_shares(const cps_sim *s, const item *it, int64_t fs, int64_t ts, dma_share *out, int64_t *descs);
bool addr_resolve(const cps_sim *s, uint64_t addr, uint64_t len, space *sp, uint32_t *var,
                  int64_t *off);
/* Where these bytes are, to be read; or (whole) to be written, all of them: what else the transfer reads has
 * been asked for. */
uint8_t *addr_bytes(cps_sim *s, uint64_t addr, uint64_t len, bool whole, uint8_t **init);
bool addr_is_chip(uint64_t addr); /* SBUF or PSUM, not HBM */
uint64_t addr_of_sb(int64_t off);
void addr_layout(cps_sim *s);

/* ---- sem_dma.c: transfers ---- */
void dma_submit(cps_sim *s, engine *e, const insn *i, block *b);
void dma_started(cps_sim *s, unsigned ring);
void dma_done(cps_sim *s, unsigned ring, xfer *x);

/* ---- sem_cc.c ---- */
void cc_done(cps_sim *s, const xfer *t); /* an exchange has moved its bytes */
/* For deadlocks: the post of this core that would change `sem`, what it waits for, its record. */
const post *cc_raiser(cps_sim *s, unsigned sem);
unsigned cc_missing(const post *p); /* a core that has not come to it */
const insn *cc_insn(const post *p);
bool cc_raises(const insn *i, unsigned sem);

/* ---- sem_seq.c ---- */
/* The elements of a register load or store, at most 32, each a footprint. */
bool seq_window(cps_sim *s, engine *e, insn *i, rect *out, unsigned *n, unsigned *es);

/* ---- sync.c ---- */
bool sync_ready(cps_sim *s, engine *e, const insn *i, unsigned w);
void sync_pass(cps_sim *s, engine *e, const insn *i);
void sync_updates(cps_sim *s, engine *e, const insn *i, cps_ps read, cps_ps complete);
void sync_apply(cps_sim *s, const event *ev);
/* A rise or fall that has been issued; its effect comes later as an EV_SEM. `source`: engine,
 * or CPS_ENGINES + queue. */
void sync_issue(cps_sim *s, unsigned sem, unsigned source, int32_t amount, int32_t share,
                vclock vc, uint32_t rd, uint32_t wr, const insn *by);
/* Updates of `source` that semaphore `sem` has on record; from the `first` on, who hears of one also
 * knows `vc`. */
uint32_t sync_changes(const cps_sim *s, unsigned sem, unsigned source);
void sync_learn(cps_sim *s, unsigned sem, unsigned source, uint32_t first, vclock vc);
/* How core `s` names source `source` of its peer. */
unsigned sync_remote(const cps_sim *s, unsigned source);
void sync_deadlock(cps_sim *s);
void sync_reset(cps_sim *s);

/* ---- race.c ---- */
vclock vc_join(cps_sim *s, vclock a, vclock b);
vclock vc_with(cps_sim *s, vclock a, unsigned comp, uint32_t v);
/* The two at once, where something is learnt: what `b` knows, and `n` components from `comp` on. */
vclock vc_learn(cps_sim *s, vclock a, vclock b, unsigned comp, const uint32_t *value, unsigned n);
void race_access(cps_sim *s, const rect *r, bool write, const insn *by, vclock vc, bool seq);
/* A read of the sequencer that must follow what was written, and that others need not wait for: what they
 * wait for is the transfer, which holds it. */
void race_look(cps_sim *s, const rect *r, const insn *by, vclock vc);
void race_transfer(cps_sim *s, xfer *x, unsigned ring);
void race_reset(cps_sim *s);

/* ---- group.c ---- */
/* Whether the messages of a machine say which core they are about. */
bool group_named(const cps_sim *s);
const cps_sim *group_core(const cps_sim *s, unsigned core);
void shared_note(cps_sim *s, const rect *r, bool write, const insn *by, uint32_t var);

/* ---- exec.c ---- */
bool run_begin(cps_sim *s, const cps_sim_opts *o, cps_diags *d);
cps_ps run_next(const cps_sim *s); /* when the earliest event is due; PS_NEVER: there is none */
bool run_event(cps_sim *s);
bool run_stuck(const cps_sim *s);
bool run_finish(cps_sim *s, cps_sim_report *out);
void ev_push(cps_sim *s, event ev);
void ev_turn(cps_sim *s, unsigned e, cps_ps t); /* engine `e` looks again at `t` */
void check_read(cps_sim *s, const insn *i, const rect *r);
/* For SEM_OWN: some lanes of an operand are read, or have been written. */
void touch_lanes(cps_sim *s, engine *e, const insn *i, const opnd *o, unsigned lane,
                 unsigned lanes);
uint32_t engine_epoch(const engine *e);
bool bind_operands(cps_sim *s, engine *e, insn *i); /* addresses in registers, bounds */
void probe(cps_sim *s, cps_probe_kind kind, const insn *i); /* when opts.probe is there */

/* ---- extent.c: what an address in a register may reach ---- */
void extent_load(cps_sim *s); /* of the streams that are loaded */
/* Of an instruction's slot, or of the source or destination of its transfer; NULL: nothing is said. */
const cps_kextent *extent_of(const cps_sim *s, const insn *i, unsigned field);
const cps_kextent *extent_of_side(const cps_sim *s, const insn *i, bool dst);
/* False with a fault (E8302) when it leaves its extent. */
bool extent_operand(cps_sim *s, const insn *i, const opnd *o);
bool extent_side(cps_sim *s, const insn *i, const cps_kextent *x, const side *o);
/* Counts; a fault of the run, or something for the proof under way to tell. Returns false. */
bool bounds_fault(cps_sim *s, const insn *i, const char *fmt, ...) CPS_PRINTF(3, 4);

/* ---- record.c: calls are made only when s->rec is there ---- */
void rec_begin(cps_sim *s);
void rec_end(cps_sim *s);
void rec_passed(cps_sim *s, engine *e, const insn *i); /* its waits are over now */
void rec_held(cps_sim *s, engine *e, cps_ps own);      /* it cannot start before `own` */
void rec_start(cps_sim *s, engine *e, const insn *i, const cps_cost *c, cps_ps warm);
void rec_sem_change(cps_sim *s, const event *ev, int64_t value);
void rec_submit(cps_sim *s, engine *e, xfer *x, cps_ps issue, cps_ps start);
void rec_serve(cps_sim *s, unsigned ring, xfer *x, cps_ps end);
void rec_part_done(cps_sim *s, unsigned ring, xfer *x, cps_ps seen);
void rec_exchange(cps_sim *s, xfer *x, cps_ps seen); /* it is complete */
/* `who` of core `s` goes on because instruction `number` of core `by` came. */
void rec_let_go(cps_sim *s, uint32_t who, const cps_sim *by, uint32_t number);

/* ---- sem_rand.c ---- */
void rand_begin(engine *e, uint64_t seed); /* at the start of a run: states are made when one is wanted */
void rand_need(engine *e);                 /* now, for who looks at `seed` */
uint32_t rand_rounding(engine *e, unsigned lane); /* bits for stochastic rounding */

/* ---- alu.c, act_fn.c ---- */
/* out[k] = a[k*sa] op b[k*sb], fp32; false when the operator is no fp32 operator. */
bool alu_f32(unsigned op, const float *a, int sa, const float *b, int sb, float *out, size_t n);
float alu_f32_1(unsigned op, float a, float b);
/* r = r op v[k] for k in order. */
float alu_fold(const wide_loops *w, unsigned op, float r, const float *v, size_t n);
bool alu_is_bits(unsigned op);
bool alu_is_int(unsigned op);
/* Raw bits of `width` bits, zero-extended. */
uint32_t alu_bits(unsigned op, uint32_t a, uint32_t b, unsigned width);
int64_t alu_int(unsigned op, int64_t a, int64_t b);
float alu_identity(unsigned op);
bool act_known(unsigned fn);
void act_row(const wide_loops *w, unsigned fn, float alpha, const float *x, float *y, size_t n);
uint32_t act_sets(unsigned fn); /* sets that hold a function; all ones: resident everywhere */

/* ---- semantics ---- */
#define SEM_DECL(name, prep, exec, kind) bool exec(cps_sim *s, engine *e, insn *i);
#define SEM(name, prep, exec, kind) SEM_DECL(name, prep, exec, kind)
#define SEMP(name, prep, exec, kind)                                                           \
    bool prep(cps_sim *s, insn *i);                                                            \
    SEM_DECL(name, prep, exec, kind)
#include "runtime/sim/sem.def"
#undef SEM
#undef SEMP

static inline cps_ps
ns_ps(double ns)
{
    return (cps_ps)(ns * 1000.0 + 0.5);
}

#endif
