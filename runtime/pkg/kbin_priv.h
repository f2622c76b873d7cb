/* Shared by the files of this room: the words of the file formats and the limits of a reader
 * that trusts nothing. */
#ifndef CPS_PKG_KBIN_PRIV_H
#define CPS_PKG_KBIN_PRIV_H

#include "runtime/pkg/kbin.h"

enum {
    CPS_PKG_RANKS = 4096, /* ranks, and tables of them */
    CPS_VARKINDS = CPS_VAR_SHARED + 1,
    CPS_DESCOPS = CPS_DESC_TRANSPOSE + 1,
    CPS_PKG_LANES = 128,           /* partitions */
    CPS_PKG_APERTURE = 0x02000000, /* 128 partitions << 18 */
    CPS_PKG_QUEUE_NAME = 31,       /* bytes of char[32] in the trigger record */
    CPS_PKG_NAME = 255,
    CPS_PKG_BUNDLES = 1 << 22, /* of one stream */
    CPS_PKG_VARS = 1 << 16,
    CPS_PKG_ITEMS = 1 << 22 /* descriptors, blocks, relocations */
};
#define CPS_PKG_BYTES ((int64_t)1 << 46) /* of one variable */

extern const char *const cps_pkg_kinds[CPS_VARKINDS];
extern const char *const cps_pkg_ops[CPS_DESCOPS];

/* The field called `name` in the format of a bundle; NONE when there is none. */
cps_field cps_pkg_field(const cps_bundle *b, cps_gen g, const char *name);

/* dma.json */
void cps_pkg_dma_write(const cps_kbin *k, cps_buf *out);
bool cps_pkg_dma_read(cps_kbin *k, const cps_json *doc, const char **why);
/* One engine's list in it, or the `dma` of a container's engine JSON. */
void cps_pkg_items_write(const cps_kbin *k, cps_engine e, bool container, cps_jsonw *w);
bool cps_pkg_items_read(cps_kbin *k, cps_engine e, const cps_json *items, const char **why);
const char *cps_pkg_dtype_word(cps_dtype t); /* as a container spells it */

#endif
