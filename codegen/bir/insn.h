/* One BIR instruction and the records it stands for: a main record, perhaps a companion before
 * or behind it (map.def), each perhaps with waits of its own. encode.c reads, decode.c writes,
 * special.c has what rows cannot say. */
#ifndef CPS_CODEGEN_BIR_INSN_H
#define CPS_CODEGEN_BIR_INSN_H

#include "codegen/bir/mem.h"

#define CPS_BRELOCS 4

/* A wait beyond the one in the record: an EVENT_SEMAPHORE before it. */
typedef struct cps_bwait {
    uint8_t sem;
    uint32_t value;
} cps_bwait;

typedef struct cps_brec {
    bool here;
    cps_insn insn; /* NONE: not in the table */
    cps_bundle b;
    const cps_bwait *wait;
    unsigned nwait;
    cps_kreloc reloc[CPS_BRELOCS]; /* field, var, addend */
    unsigned nreloc;
    const char *target; /* branch: the block it goes to; its distance field is 0 */
    const char *next;   /* branch, writing: the block behind */
    cps_kloc loc;
} cps_brec;

typedef struct cps_bgroup {
    cps_engine engine;
    cps_brec r[CPS_BS_COUNT];
} cps_bgroup;

/* Records of an instruction; false with ctx->why. `engine` is set too. */
bool cps_binsn_read(cps_bctx *c, const cps_json *v, cps_bgroup *g);
/* The instruction of records: opcode, engine, operands, members, sync_info, debug and what else
 * it takes to get the same records back; reading it gives them exactly. Name, dependences and
 * the rest of the header are the caller's. NULL when no instruction can say it: then each
 * record is written by itself. */
cps_json *cps_binsn_write(cps_bctx *c, const cps_bgroup *g);
/* One record as its bytes; never fails. */
cps_json *cps_binsn_write_raw(cps_bctx *c, const cps_brec *r, cps_engine e);

/* The bundle of a wait on its own. */
cps_bundle cps_binsn_wait(cps_gen g, cps_bwait w);

/* ---- shared by encode.c, decode.c and special.c ---- */
/* Operand lists under work: the next one to read, or where to add. */
typedef struct cps_bcursor {
    const cps_json *in, *out, *indirect; /* reading */
    cps_json *ins, *outs, *indirects;    /* writing */
} cps_bcursor;

typedef struct cps_bspecial {
    uint8_t format;
    void (*write)(cps_bctx *c, const cps_brec *r, cps_engine e, cps_json *v, cps_bcursor *at);
    bool (*read)(cps_bctx *c, cps_brec *r, cps_engine e, const cps_json *v, cps_bcursor *at);
} cps_bspecial;

const cps_bspecial *cps_bspecial_of(unsigned format); /* NULL when there is none */
/* Takes the next operand of a list; NULL when there is none left. */
const cps_json *cps_bcursor_next(const cps_json **at);
/* Whether a bitwise operator acts on raw bits in the record. */
bool cps_binsn_raw(cps_insn i);
/* Which DMA semaphore fields a format has; false when none. */
bool cps_binsn_dma_semaphore(unsigned format, cps_field *sem, cps_field *rise);
/* Places of a field: bytes of the bundle. */
static inline uint8_t *
cps_binsn_bytes(cps_bundle *b, cps_field f)
{
    return b->b + cps_fields[f].byte;
}

#endif
