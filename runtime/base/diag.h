/* Diagnostics: places in sources, messages with stable codes, notes and helps, carets.
 *
 * A message is emitted with its code and a formatted text; notes and helps attach to the last
 * one. The sink renders to a buffer the driver prints; nothing here writes to a stream.
 * Text is lower case without a final stop, subject in single quotes, numbers with units. */
#ifndef CPS_BASE_DIAG_H
#define CPS_BASE_DIAG_H

#include "runtime/base/arena.h"
#include "runtime/base/str.h"

typedef enum cps_code {
    CPS_CODE_NONE = 0,
#define CPS_DIAG(code, title, help) CPS_##code,
#include "runtime/base/diag.def"
    CPS_CODE_COUNT
} cps_code;

typedef struct cps_diag_row {
    const char *name;  /* "E2101" */
    const char *title; /* one line */
    const char *help;  /* the page that `copse help CODE` prints */
} cps_diag_row;

extern const cps_diag_row cps_diag_rows[CPS_CODE_COUNT];

/* A place: bytes [begin, end) of source `file` (index + 1; 0 = no place). */
typedef struct cps_span {
    uint32_t file, begin, end;
} cps_span;

#define CPS_NOSPAN ((cps_span){0, 0, 0})

typedef struct cps_diags cps_diags;

cps_diags *cps_diags_create(void);
void cps_diags_destroy(cps_diags *d);

/* Registers a source text; it must outlive the sink. `name` is shown as given. */
uint32_t cps_diags_source(cps_diags *d, const char *name, const char *text, size_t n);
/* One line of a longer text that is not kept, as a source of its own: the line is copied and
 * `number` counts from 1. 0 once no more errors are kept, so a flood of them holds no memory. */
uint32_t cps_diags_line(cps_diags *d, const char *name, uint32_t number, const char *text,
                        size_t n);
unsigned cps_diags_sources(const cps_diags *d); /* registered so far, numbered from 1 */
const char *cps_diags_source_name(const cps_diags *d, uint32_t file);
const char *cps_diags_source_text(const cps_diags *d, uint32_t file, size_t *n);
/* 1-based line and column (in bytes) of a position. */
void cps_diags_locate(const cps_diags *d, cps_span at, uint32_t *line, uint32_t *col);

/* Errors (code E....) count; warnings (W....) and notes (N....) do not. Identical messages at one
 * place are merged and counted; the rendering adds "; N more" to their last note that begins with
 * "in " (the piece of a traced loop). After 50 errors further ones are only counted, and so are
 * others; notes and helps of a merged or dropped message are dropped with it. */
void cps_error(cps_diags *d, cps_code code, cps_span at, const char *fmt, ...) CPS_PRINTF(4, 5);
void cps_verror(cps_diags *d, cps_code code, cps_span at, const char *fmt, va_list ap);
void cps_note(cps_diags *d, cps_span at, const char *fmt, ...) CPS_PRINTF(3, 4);
void cps_help(cps_diags *d, const char *fmt, ...) CPS_PRINTF(2, 3);

unsigned cps_diags_errors(const cps_diags *d);
unsigned cps_diags_count(const cps_diags *d);
cps_code cps_diags_code(const cps_diags *d, unsigned i);
const char *cps_diags_text(const cps_diags *d, unsigned i); /* the message without decoration */

/* Appends everything emitted: human form (with carets, colours if asked) or one JSON object a
 * line. Clears nothing. */
void cps_diags_render(const cps_diags *d, cps_buf *out, bool color);
void cps_diags_render_json(const cps_diags *d, cps_buf *out);
void cps_diags_clear(cps_diags *d);

/* What a piece of work says, kept as bytes and said again in another sink: messages with their notes,
 * helps and counts, places as name, number and text of their lines. */
typedef struct cps_diags_mark {
    unsigned n, dropped;
    const unsigned *count; /* of each message so far */
} cps_diags_mark;

cps_diags_mark cps_diags_mark_of(const cps_diags *d, cps_arena *a); /* before the work */
/* Appends what was said since; nothing when nothing was. False when some of it was dropped. */
bool cps_diags_keep(const cps_diags *d, const cps_diags_mark *since, cps_buf *out);
/* False, with nothing said, when the bytes are not what `keep` made. A place in a source that is
 * registered and reads the same is that place; otherwise its lines are registered. */
bool cps_diags_say(cps_diags *d, const void *bytes, size_t n);

/* "E2101" -> row, or CPS_CODE_NONE. */
cps_code cps_diag_find(const char *name);

#endif
