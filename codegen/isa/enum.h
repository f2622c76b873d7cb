/* Engines and generations: the one ISA header that the IR may include. */
#ifndef CPS_ISA_ENUM_H
#define CPS_ISA_ENUM_H

#include "runtime/base/base.h"

/* Engine numbers of the ISA headers; also the order of streams in a package. */
typedef enum cps_engine {
    CPS_PE = 0,
    CPS_ACT = 1,
    CPS_POOL = 2,
    CPS_DVE = 3,
    CPS_SP = 4,
    CPS_ENGINES = 5,
    CPS_ENGINE_ANY = 0xFF
} cps_engine;

/* NeuronCore generations: trn1/inf2, trn2, trn3. */
typedef enum cps_gen { CPS_V2 = 0, CPS_V3 = 1, CPS_V4 = 2, CPS_GENS = 3 } cps_gen;

const char *cps_engine_name(cps_engine e); /* "pe" "act" "pool" "dve" "sp"; "any" */
cps_engine cps_engine_parse(const char *s); /* CPS_ENGINE_ANY when unknown */
const char *cps_gen_name(cps_gen g); /* "v2" "v3" "v4" */

#endif
