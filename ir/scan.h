/* Tokens of .cir text, shared by the graph and the tile parser. White space and comments (from
 * "//" to the end of the line) separate tokens and mean nothing else. After the first mistake
 * the scanner yields END for ever, so parsers need no error paths of their own: they test `bad`
 * at the end of each statement. */
#ifndef CPS_IR_SCAN_H
#define CPS_IR_SCAN_H

#include "ir/ir.h"
#include "runtime/base/map.h"

/* Limits of the text forms (E9105). Memory use is linear in the text; these bound the rest. */
#define CPS_TEXT_MAX ((size_t)1 << 30) /* bytes of one text */
#define CPS_TEXT_STR (1u << 16)        /* bytes of one string or name */
#define CPS_TEXT_LIST 4096u            /* entries of one list */

typedef enum cps_tok {
    CPS_TOK_END,
    CPS_TOK_IDENT,  /* str */
    CPS_TOK_INT,    /* i; big when the text was above INT64_MAX (i then wraps) */
    CPS_TOK_FLOAT,  /* f: has '.', an exponent, or is -inf */
    CPS_TOK_STR,    /* str, escapes resolved */
    CPS_TOK_VALUE,  /* %name.id %name %id: str the name or NULL, key the whole spelling */
    CPS_TOK_SYMBOL, /* @name */
    CPS_TOK_ARROW,  /* -> */
    CPS_TOK_FROM,   /* <- */
    CPS_TOK_PUNCT   /* one character, in c */
} cps_tok;

typedef struct cps_scan {
    const char *text;
    size_t n, at;
    uint32_t file;
    cps_arena *a;
    cps_diags *d;
    bool bad;
    cps_tok tok;
    size_t begin, last; /* the current token starts; the one before it ended */
    char c;
    const char *str, *key;
    int64_t i;
    bool big, hex;
    double f;
} cps_scan;

/* Checks the header ("copse.graph 1") and stands on the first token after it. */
bool cps_scan_begin(cps_scan *s, cps_arena *a, const char *text, size_t n, uint32_t file,
                    cps_diags *d, const char *header);
void cps_scan_next(cps_scan *s);
/* Reports at the current token (once) and ends the scan. Always false. */
bool cps_scan_fail(cps_scan *s, cps_code code, const char *fmt, ...) CPS_PRINTF(3, 4);
cps_span cps_scan_span(const cps_scan *s, size_t begin); /* from begin to the token before */

bool cps_scan_eat(cps_scan *s, char c);            /* the character, if it stands here */
bool cps_scan_want(cps_scan *s, char c);           /* the same, or an error */
bool cps_scan_word(cps_scan *s, const char *word); /* the identifier, if it stands here */
const char *cps_scan_ident(cps_scan *s, const char *what);
const char *cps_scan_string(cps_scan *s, const char *what);
int64_t cps_scan_int(cps_scan *s, int64_t lo, int64_t hi, const char *what);
/* A number: integer, float, inf, nan, or bits(0x...) of a binary64. */
bool cps_scan_number(cps_scan *s, double *out);
cps_dtype cps_scan_dtype(cps_scan *s);
bool cps_scan_type(cps_scan *s, cps_type *out); /* fp32[128,384] */
cps_span cps_scan_loc(cps_scan *s);             /* file:begin:end */
/* {key=value, ...}: canonical list. */
bool cps_scan_attrs(cps_scan *s, uint16_t *n, cps_attr **out);
bool cps_scan_digest(cps_scan *s, cps_digest *out);
/* One constant element of type t into its storage bytes. */
bool cps_scan_element(cps_scan *s, cps_dtype t, void *out);

/* The printing side of the same forms. */
void cps_put_string(cps_buf *out, const char *s);
void cps_put_name(cps_buf *out, const char *s); /* bare when an identifier, else a string */
void cps_put_number(cps_buf *out, double v);
void cps_put_float(cps_buf *out, float v); /* a binary32, NaN payloads kept */
void cps_put_attrs(cps_buf *out, uint32_t n, const cps_attr *a);
void cps_put_element(cps_buf *out, cps_dtype t, const void *p);

#endif
