/* A machine looked at from outside, while a probe holds it or after its run: where each engine
 * is, registers, semaphores, memory, transfers under way. Nothing here changes the machine. */
#ifndef CPS_SIM_DEBUG_H
#define CPS_SIM_DEBUG_H

#include "runtime/sim/sim.h"

typedef enum cps_place_state {
    CPS_AT_NEXT,
    CPS_AT_WAIT,
    CPS_AT_BUSY,
    CPS_AT_END
} cps_place_state;

typedef struct cps_place {
    cps_place_state state;
    uint32_t index, count; /* next instruction of the stream; its length (0: no stream) */
    const char *name;      /* mnemonic; "" at the end */
    const char *file;      /* NULL: no source place */
    uint32_t line;
    int64_t until_ps; /* AT_BUSY: the engine is free then */
    int semaphore;    /* AT_WAIT: number, or 256 + event; what it is and what is wanted */
    int64_t value, wanted;
} cps_place;

int64_t cps_sim_now(const cps_sim *s); /* picoseconds since the machine started */
cps_place cps_sim_where(cps_sim *s, cps_engine e);
/* Of instruction `index` of stream e: its place in the source, assembly text appended to `out`.
 * False when there is no such instruction. */
bool cps_sim_insn(const cps_sim *s, cps_engine e, uint32_t index, cps_place *at, cps_buf *out);
unsigned cps_sim_registers(void);
uint32_t cps_sim_register(const cps_sim *s, cps_engine e, unsigned reg);
unsigned cps_sim_semaphores(void);
int64_t cps_sim_semaphore(const cps_sim *s, unsigned sem);
bool cps_sim_event_bit(const cps_sim *s, unsigned number);

/* A place in memory: "sbuf" or "psum" with a partition, or a variable of the kernel. */
typedef struct cps_spot {
    enum { CPS_SPOT_SBUF, CPS_SPOT_PSUM, CPS_SPOT_VAR } space;
    uint32_t partition; /* or variable id */
    int64_t byte;
} cps_spot;

/* Bytes that a partition, or the variable, has; 0 when there is no such partition or variable.
 */
int64_t cps_sim_extent(const cps_sim *s, const cps_spot *at);
uint32_t cps_sim_variable(const cps_sim *s, const char *name); /* 0 when there is none */
/* The same memory: of one machine, or shared by the cores of a pair. */
bool cps_sim_same_variable(const cps_sim *a, uint32_t var, const cps_sim *b, uint32_t of_b);
/* Copies n bytes; `written` (may be NULL) gets a byte per byte: 0 where nothing was written
 * since the run began. That is known only while uninitialised reads are checked. False outside
 * memory. */
bool cps_sim_peek(const cps_sim *s, const cps_spot *at, size_t n, uint8_t *out,
                  uint8_t *written);

/* A line per transfer under way. */
void cps_sim_transfers(const cps_sim *s, cps_buf *out);

#endif
