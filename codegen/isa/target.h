/* Target descriptions: one resource model for predicates, allocator, scheduler, verifier and
 * simulator. The facts stand in XML (codegen/isa/targets/), are validated against target.rng,
 * and are compiled to tables at build time; XML is read at run time only for `--target
 * FILE.xml`, by a reader in a shared object of its own. target.def has one row per fact:
 * section, key, type, unit and source, so struct, XML, `copse targets --json` and the
 * language's `target.KEY` agree. */
#ifndef CPS_ISA_TARGET_H
#define CPS_ISA_TARGET_H

#include "codegen/isa/enum.h"
#include "runtime/base/diag.h"
#include "runtime/base/hash.h"

typedef struct cps_target {
    const char *name; /* "trn2" */
    cps_gen gen;
    cps_digest digest; /* over the canonical list of facts */
#define CPS_FACT_INT(section, key, unit, doc) int64_t section##_##key;
#define CPS_FACT_NUM(section, key, unit, doc) double section##_##key;
#include "codegen/isa/target.def"
} cps_target;

unsigned cps_target_count(void);
const cps_target *cps_target_at(unsigned i);
const cps_target *cps_target_find(const char *name); /* built-in name, or NULL */
/* Name or path of an XML file (anything with '/' or ending in .xml); the result lives in `a`.
 * NULL after E1003 or E1004. */
const cps_target *cps_target_load(const char *name, cps_arena *a, cps_diags *d);
/* A fact by "section.key"; false when there is none. */
bool cps_target_fact(const cps_target *t, const char *key, double *out);

#endif
