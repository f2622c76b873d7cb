/* Shared by the files about NEFF. */
#ifndef CPS_PKG_NEFF_PRIV_H
#define CPS_PKG_NEFF_PRIV_H

#include "runtime/base/hash.h"
#include "runtime/pkg/neff.h"

#include <string.h>

void cps_neff_head_decode(const uint8_t raw[CPS_NEFF_HEAD], cps_neff_head *h);
void cps_neff_head_encode(const cps_neff_head *h, uint8_t raw[CPS_NEFF_HEAD]);
/* Over the bytes as stored: SHA-256 (version 1), or MD5 and sixteen '0' (version 2). */
void cps_neff_hash(uint64_t pkg_version, const void *data, size_t n, uint8_t hash[32]);

/* A function of libcopse-archive.so; NULL after E8406. */
void *cps_neff_archive(const char *symbol, cps_diags *d);

void cps_neff_uuid(const uint8_t *archive, size_t n, uint8_t uuid[16]);

/* Whether a member may have this name: relative, no "." or ".." component, no control
 * characters, within the limits. *why says what is wrong. */
bool cps_neff_name_ok(const char *name, const char **why);

#endif
