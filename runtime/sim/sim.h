/* The simulator: executes a kernel's binary on the physical memory of a NeuronCore. It reads only
 * what is in the package (streams, descriptors, relocations, constants) and never sees IR.
 *
 * One machine holds HBM variables, SBUF, PSUM, registers, semaphores and DMA queues of one core;
 * a group runs several.
 * Loading rewrites pseudo records, builds rings of 16-byte descriptors and resolves relocations
 * (fetched instructions are counted after that). Running is event-driven in picoseconds: the
 * functional effect of an instruction takes place in the order of the modelled times. */
#ifndef CPS_SIM_SIM_H
#define CPS_SIM_SIM_H

#include "codegen/isa/target.h"
#include "codegen/isa/timing.h"
#include "runtime/pkg/kbin.h"

enum {
    CPS_CHECK_RACES = 1,  /* happens-before over engines and queues, per byte */
    CPS_CHECK_UNINIT = 2, /* reads of bytes never written */
    CPS_CHECK_BOUNDS = 4, /* addresses outside memory or variables (always fatal) */
    CPS_CHECK_ALL = 7
};

typedef struct cps_sim cps_sim;

/* Where a run may be looked at: before an instruction takes effect, after it, and after a DMA
 * engine moved a packet or an exchange between cores its bytes (then `engine` and `index` name the
 * trigger, of an exchange that of each member in turn). */
typedef enum cps_probe_kind { CPS_PROBE_BEFORE, CPS_PROBE_AFTER, CPS_PROBE_MOVED } cps_probe_kind;

typedef struct cps_sim_opts {
    unsigned checks;
    bool trace;            /* keep records of instructions, transfers, semaphores (record.c) */
    bool no_data;          /* time only: nothing is read, computed, moved or checked; control that
                              depends on memory is a fault (E8307) */
    bool stochastic;       /* engines round results to narrower floats stochastically ... */
    uint64_t seed;         /* ... and the random states begin from this */
    uint64_t max_steps;    /* fetched instructions before giving up; 0: 2^28 */
    /* A debugger: false ends the run, which then fails without a diagnostic. `core`: its place in the
     * group, 0 for a machine by itself. May be NULL. */
    bool (*probe)(void *self, cps_probe_kind kind, unsigned core, cps_engine engine, uint32_t index);
    void *probe_self;
} cps_sim_opts;

typedef struct cps_sim_report {
    int64_t time_ps;                    /* first trigger to last store acknowledged */
    int64_t cycles[CPS_ENGINES];        /* busy cycles, engine clock */
    int64_t busy_ps[CPS_ENGINES];
    int64_t dma_busy_ps;                /* some DMA engine moves data */
    uint64_t instructions[CPS_ENGINES]; /* fetched after loading */
    uint64_t dma_bytes, dma_transfers, dma_descriptors;
    uint64_t pe_macs;
    unsigned races, uninit, bounds;     /* findings, each reported to the sink once per pair */
} cps_sim_report;

cps_sim *cps_sim_create(const cps_target *t);
/* A machine without memory, for runs without data only: variables are not bound, and descriptors
 * are counted and not kept. */
cps_sim *cps_sim_create_timer(const cps_target *t);
void cps_sim_destroy(cps_sim *s);

/* Loads a kernel: false after E82xx (a verifier error, unknown variable, bad descriptor ...). The
 * kernel must outlive the machine. */
bool cps_sim_load(cps_sim *s, const cps_kbin *k, cps_diags *d);
/* Gives an input, output or inout variable its storage: `bytes` must equal the variable's size;
 * the memory is read and written in place. `defined` says whether its bytes count as written. */
bool cps_sim_bind(cps_sim *s, const char *var, void *data, size_t bytes, bool defined, cps_diags *d);
/* Runs to the end of all streams. False after a fault (E83xx: deadlock with the wait cycle, bounds,
 * illegal record ...) or a finding of a requested check. May be called again after new binds. */
bool cps_sim_run(cps_sim *s, const cps_sim_opts *o, cps_sim_report *out, cps_diags *d);

/* Several cores in one time (group.c). The kernels of a logical core of two stand side by side, core 0
 * of 2 first; each other kernel is a logical core by itself. Logical cores are the ranks of
 * collectives, in the order of the group. The arguments that both kernels of a pair name are one
 * piece of HBM. Cores 2 i and 2 i + 1 share the bandwidth of an HBM stack. */
enum { CPS_SIM_CORES = 64 };
typedef struct cps_sim_group cps_sim_group;
cps_sim_group *cps_sim_group_create(const cps_target *t, unsigned n);
/* The same without memory, for runs without data only (as cps_sim_create_timer). */
cps_sim_group *cps_sim_group_create_timer(const cps_target *t, unsigned n);
/* For cps_sim_group_prove alone. `verified`: cps_isa_verify has nothing to say of any bundle that will be
 * loaded, and is not asked again. */
cps_sim_group *cps_sim_group_create_proof(const cps_target *t, unsigned n, bool verified);
void cps_sim_group_destroy(cps_sim_group *g);
/* A core's machine, to be proved or looked at; it is loaded, bound and run by its group. */
cps_sim *cps_sim_group_core(cps_sim_group *g, unsigned core);
unsigned cps_sim_group_ranks(const cps_sim_group *g);
/* One kernel for each core. E8207: they do not make up logical cores. */
bool cps_sim_group_load(cps_sim_group *g, const cps_kbin *const *k, cps_diags *d);
bool cps_sim_group_bind(cps_sim_group *g, unsigned rank, const char *var, void *data, size_t bytes,
                        bool defined, cps_diags *d);
/* `out`: a report for each core, or NULL. */
bool cps_sim_group_run(cps_sim_group *g, const cps_sim_opts *o, cps_sim_report *out, cps_diags *d);
/* The last run, from the first core's begin to the last one's end. */
int64_t cps_sim_group_time_ps(const cps_sim_group *g);

/* A proof without running: for every order of events that the machine allows, whatever the times.
 * OPEN: neither shown nor refuted; `why` says what stood in the way, and engine and index where
 * (CPS_ENGINES: nowhere in particular). */

typedef struct cps_proof {
    cps_verdict races;    /* no two accesses race */
    cps_verdict deadlock; /* every run ends */
    bool leaves;          /* an address leaves the memory it is of */
    bool paths;           /* values from memory decide twice: some path followed may not exist */
    const char *why;      /* static text, or NULL */
    cps_engine engine;
    uint32_t index;
    uint64_t instructions; /* of one run, as fetched */
    unsigned rounds;       /* until the claims stood */
    uint64_t turns_left_out; /* of loops, others stood for them */
} cps_proof;

/* Of the loaded kernel; binds nothing and may be called between runs. False when something fails,
 * with the diagnostics of a run (E8301, E8302, E8303). */
bool cps_sim_prove(cps_sim *s, cps_proof *out, cps_diags *d);
/* From now on a proof follows every turn of a loop, as long as that takes; the verdict is the same. */
void cps_sim_prove_every_turn(cps_sim *s, bool on);

/* Of the logical core whose first core is `core`: each of its cores, and what they share. */
bool cps_sim_group_prove(cps_sim_group *g, unsigned core, cps_proof *out, cps_diags *d);

/* What happened in the last traced run: instructions in the order of their starts, then transfers
 * in the order of their triggers. Times in picoseconds since the machine started. */
typedef struct cps_sim_event {
    const cps_bundle *insn; /* the instruction, or the trigger of the transfer */
    cps_engine engine;      /* that issued it */
    bool control;           /* of the sequencer alone */
    bool transfer, store;   /* store: to HBM */
    int64_t trigger;        /* transfers: the trigger ran */
    int64_t start, end;     /* engine busy; first byte to last byte */
    int64_t seen;           /* its result is visible to others, semaphore not included */
} cps_sim_event;
unsigned cps_sim_events(const cps_sim *s);
cps_sim_event cps_sim_event_at(const cps_sim *s, unsigned i);

/* What follows reads the records of the last run, which must have had `trace` set. */

/* Where the time went, as text: stalls by engine with their sources, DMA, the critical path, and the
 * changes that would help most. Runs the kernel again a few times on machines changed in one fact;
 * the variables bound to `s` stay as they are. */
void cps_sim_summary(cps_sim *s, const char *name, cps_buf *out);
/* Its tables alone: engines, DMA, critical path; no further runs. */
void cps_sim_tables(cps_sim *s, cps_buf *out);

/* The same in numbers. Times are in picoseconds; texts are static or live as long as the records. */
typedef struct cps_sim_part {
    const char *engine; /* or queue; "": of no engine in particular */
    const char *kind;   /* a row of time.def */
    int64_t ps;
} cps_sim_part;

typedef struct cps_sim_account {
    int64_t time_ps;
    unsigned steps;                     /* of the critical path */
    unsigned nspent, nwait, npath;
    const cps_sim_part *spent;          /* by engine, then by kind; engines without code are left out */
    const cps_sim_part *wait;           /* `kind` names who waited, `engine` for whom; by who, longest first */
    const cps_sim_part *path;           /* longest first: work by engine, all else by kind */
    const char *binding;                /* what holds most of the path: an engine, "dma" or "latency" */
    int64_t binding_ps;
} cps_sim_account;
/* False when the run kept no records. */
bool cps_sim_account_of(cps_sim *s, cps_sim_account *out);

/* A change that would shorten the run: what the same binary takes on a machine changed so. */
typedef struct cps_sim_hint {
    const char *what, *advice;
    int64_t saves_ps;
    const cps_kloc *at; /* the source line that holds most of the path's time of that kind, or NULL */
    double share;       /* which part of it, 0 to 1 */
} cps_sim_hint;
enum { CPS_SIM_HINTS = 3 };
/* At most CPS_SIM_HINTS, the most worth first; returns how many. Runs the kernel again a few times. */
unsigned cps_sim_hints(cps_sim *s, cps_sim_hint *out);

/* Perfetto / Chrome trace JSON: engines with their waits, DMA queues, semaphores, bytes in use and
 * in flight, PE utilisation, arrows from update to wait. Several kernels can be laid after one
 * another: `offset_ps` shifts, `name` is their category. */
typedef struct cps_trace cps_trace;
cps_trace *cps_trace_create(void);
void cps_trace_destroy(cps_trace *t);
void cps_trace_add(cps_trace *t, cps_sim *s, const char *name, int64_t offset_ps);
const cps_buf *cps_trace_text(cps_trace *t); /* whole; nothing can be added after */

/* The data of the timeline page, as JSON that may stand inside HTML (page.c says what is where).
 * Kernels are laid after one another as above; the cores of a group are added one after the other, with
 * the same name and offset. */
typedef struct cps_page_roof {
    int64_t flops, bytes; /* of the kernel's mathematics */
    double roofline_ns, engines_ns;
    const char *bound;
} cps_page_roof;
typedef struct cps_page cps_page;
cps_page *cps_page_create(void);
void cps_page_destroy(cps_page *p);
void cps_page_add(cps_page *p, cps_sim *s, const char *name, int64_t offset_ps,
                  const cps_page_roof *roof);
/* The text of a source file that places name; once per name. */
void cps_page_source(cps_page *p, const char *file, const char *text, size_t n);
void cps_page_json(cps_page *p, cps_buf *out); /* appends */

#endif
