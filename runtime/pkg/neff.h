/* NEFF: the container in which compiled programs reach a NeuronCore. A header of 1,024 bytes,
 * then one archive, a tar, gzip'ed or plain, with JSON descriptions, one instruction stream per
 * engine and constants (NEFF.md). Here: the container as such, a header and named members. What
 * the members say is neff_graph.h; how ours are made, neff_pack.h. */
#ifndef CPS_PKG_NEFF_H
#define CPS_PKG_NEFF_H

#include "codegen/isa/enum.h"
#include "runtime/base/diag.h"
#include "runtime/base/map.h"
#include "runtime/base/vec.h"

#define CPS_NEFF_HEAD 1024
#define CPS_NEFF_HEAD_FILE "neff_header.bin" /* an unpacked folder keeps the header so */

enum {
    CPS_NEFF_MEMBERS = 1 << 16, /* of one container */
    CPS_NEFF_NAME = 1024,       /* bytes of a member's name */
    CPS_NEFF_PART = 255         /* of one component */
};

/* The header, decoded. Texts end with NUL here. */
typedef struct cps_neff_head {
    uint64_t pkg_version, header_size, data_size;
    uint64_t neff_version_major, neff_version_minor;
    char neff_build_version[128 + 1];
    uint32_t num_tpb;
    uint8_t hash[32];
    uint8_t uuid[16];
    char name[256 + 1];
    uint32_t requested_tpb_count;
    uint8_t tpb_per_node[64];
    uint64_t feature_bits;
    uint32_t lnc_size;
} cps_neff_head;

typedef struct cps_neff_member {
    const char *name; /* relative, without "./" */
    const uint8_t *data;
    size_t n;
} cps_neff_member;

typedef struct cps_neff {
    cps_arena *arena;
    bool has_head; /* a folder may come without one */
    cps_neff_head head;
    uint8_t raw[CPS_NEFF_HEAD];       /* the header as it stood */
    CPS_VEC(cps_neff_member) members; /* in the archive's order; folders are not members */
    cps_map index;                    /* by name: place in members + 1 */
    /* of the file that was read; 0 and false for folders */
    uint64_t file_bytes;
    bool gzip;
    uint64_t inflated; /* bytes of the tar */
    uint64_t trailing; /* bytes of the file that belong to nothing */
    uint8_t hash[32];  /* of the archive, as the header's version wants it */
    bool hash_ok;
} cps_neff;

typedef enum cps_neff_feature {
#define CPS_NEFF_FEATURE(id, bit, ...) CPS_NEFF_##id = bit,
#include "runtime/pkg/neff.def"
    CPS_NEFF_FEATURE_LAST
} cps_neff_feature;

typedef struct cps_neff_feature_row {
    uint64_t bit;
    const char *name;
    bool listed; /* def.json names it too */
    char sure;   /* 'C', 'S', 'I' */
    const char *when;
} cps_neff_feature_row;

extern const cps_neff_feature_row cps_neff_features[];
extern const unsigned cps_neff_nfeatures;

/* The largest archive a container of `stored` bytes may inflate to unless told otherwise: room
 * for any honest one, none for one that is made to fill memory. */
uint64_t cps_neff_inflate_limit(uint64_t stored);

/* Reads a container from memory; no file is touched. `max_bytes` limits what it inflates to, 0
 * takes cps_neff_inflate_limit. Members live in `a`. A wrong hash is noted (hash_ok), not
 * refused. NULL after E8401 (header), E8402 (archive), E8403 (refused) or E8406. */
cps_neff *cps_neff_read(cps_arena *a, const uint8_t *data, size_t n, uint64_t max_bytes,
                        cps_diags *d);
/* The same from an unpacked folder. */
cps_neff *cps_neff_read_dir(cps_arena *a, const char *dir, cps_diags *d);

cps_neff *cps_neff_new(cps_arena *a); /* without members and header */
/* The member of that name, or NULL. */
const cps_neff_member *cps_neff_find(const cps_neff *f, const char *name);
/* False when the name is taken. The bytes are not copied. */
bool cps_neff_add(cps_neff *f, const char *name, const void *data, size_t n);

/* A header as we make it: version 2.0, gzip'ed tar, for a model of that name. */
void cps_neff_new_head(cps_neff *f, const char *name, unsigned cores, uint64_t features);

/* The whole file: members sorted by name, archive, header with size, hash and, where it
 * was zero, uuid filled in. Equal members and header, equal bytes. False after E8402 or E8406.
 */
bool cps_neff_write(const cps_neff *f, cps_buf *out, cps_diags *d);

/* Writes members and header into `dir`, which must be new or empty. False after a diagnostic.
 */
bool cps_neff_unpack(const cps_neff *f, const char *dir, cps_diags *d);

/* Header fields by row: text of field `i` (of cps_neff_nfields), and its name and meaning. */
extern const unsigned cps_neff_nfields;
const char *cps_neff_field_name(unsigned i);
const char *cps_neff_field_doc(unsigned i);
bool cps_neff_field_is_number(unsigned i);
uint64_t cps_neff_field_number(const cps_neff *f, unsigned i);
void cps_neff_field_text(const cps_neff *f, unsigned i, cps_buf *out);

/* Untrusted text for people: what is not printable ASCII becomes \xNN. */
void cps_neff_put_plain(cps_buf *out, const char *s);

#endif
