/* Text: a growable output buffer, and a symbol table that turns names into small ids. */
#ifndef CPS_BASE_STR_H
#define CPS_BASE_STR_H

#include "runtime/base/arena.h"

#include <string.h>

/* A growable byte buffer on the heap; always NUL-terminated once something was put in. */
typedef struct cps_buf {
    char *data;
    size_t n, cap;
} cps_buf;

void cps_buf_fini(cps_buf *b);
void cps_buf_put(cps_buf *b, const void *bytes, size_t n);
/* Room for n more bytes, and where they go; the caller writes them and adds to b->n. */
char *cps_buf_room(cps_buf *b, size_t n);
void cps_buf_puts(cps_buf *b, const char *s);
void cps_buf_putc(cps_buf *b, char c);
void cps_buf_printf(cps_buf *b, const char *fmt, ...) CPS_PRINTF(2, 3);
/* The shortest decimal text that reads back as the same double; locale-independent;
 * "inf", "-inf", "nan" for those. Always holds a '.', an 'e' or a letter. */
void cps_buf_put_double(cps_buf *b, double v);
void cps_buf_put_float(cps_buf *b, float v); /* the same for binary32 */

/* Locale-independent strtod on n bytes, correctly rounded. False unless all of it was a decimal
 * number within the range of a double, or inf, nan as cps_buf_put_double writes them. */
bool cps_parse_double(const char *s, size_t n, double *out);
/* Decimal or 0x, optional sign, '_' between digits. False on overflow of int64 or junk. */
bool cps_parse_int(const char *s, size_t n, int64_t *out);

/* Both may be NULL. Most names differ in their first letter. */
static inline bool
cps_streq(const char *a, const char *b)
{
    return a == b || (a && b && *a == *b && strcmp(a, b) == 0);
}
bool cps_has_suffix(const char *s, const char *suffix);
/* Levenshtein distance up to a cut of 3 (4 = farther): for "did you mean". */
int cps_edit_distance(const char *a, const char *b);

/* Symbols: equal names, equal ids; id 0 is the empty string. Ids are dense, in first-seen order. */
typedef struct cps_symtab cps_symtab;
typedef uint32_t cps_sym;

cps_symtab *cps_symtab_create(void);
void cps_symtab_destroy(cps_symtab *t);
cps_sym cps_sym_intern(cps_symtab *t, const char *s);
cps_sym cps_sym_intern_n(cps_symtab *t, const char *s, size_t n);
cps_sym cps_sym_find(const cps_symtab *t, const char *s); /* 0 when unknown */
const char *cps_sym_name(const cps_symtab *t, cps_sym id);

#endif
