/* Inside the sink of diagnostics: shared by its files. */
#ifndef CPS_BASE_DIAG_PRIV_H
#define CPS_BASE_DIAG_PRIV_H

#include "runtime/base/diag.h"
#include "runtime/base/map.h"
#include "runtime/base/vec.h"

typedef struct source {
    const char *name, *text;
    uint32_t n, first; // first: lines of the file before this text
    CPS_VEC(uint32_t) line; // offset of each line
} source;

typedef struct extra {
    struct extra *next;
    bool help;
    cps_span at;
    const char *text;
} extra;

typedef struct message {
    cps_code code;
    cps_span at;
    const char *text;
    unsigned count;
    extra *first, **end;
} message;

struct cps_diags {
    cps_arena *arena;
    cps_arena *msg_arena; // emptied by clear
    CPS_VEC(source) src;
    CPS_VEC(message *) msg;
    cps_map seen;  // hash of code, place and text -> index of a message
    message *last; // NULL: extras are dropped
    unsigned kept_errors, kept_others, more_errors, more_others;
};

#endif
