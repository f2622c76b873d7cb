/* What asm and dis share with their further forms: descriptors, and checks of a listing. */
#ifndef CPS_FRONTEND_TEXT_CHECK_H
#define CPS_FRONTEND_TEXT_CHECK_H

#include "frontend/cli.h"

#include "codegen/isa/desc.h"

/* The engine of a stream: as --engine says, else by the file's name. Clears *ok after E1104. */
cps_engine cps_stream_engine(cps_cli *c, const char *name, bool *ok);
/* The rules of each record and of the whole stream. Findings stand at the record's line of the
 * listing, numbered from 1. False when there was an error. */
bool cps_check_stream(cps_cli *c, const char *name, cps_gen g, cps_engine e, const cps_bundle *b, size_t n);

/* Whether --form names descriptors; *form: which, CPS_QFORMS to tell them by their bytes. Clears
 * *ok after E1104. */
bool cps_form_is_desc(cps_cli *c, cps_qform *form, bool *ok);
cps_exit cps_asm_desc(cps_cli *c);
cps_exit cps_dis_desc(cps_cli *c, cps_qform form);

#endif
