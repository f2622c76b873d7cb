/* Compile-time values: making, comparing, iterating, naming. Nothing here reports. */
#include "frontend/dsl/eval.h"

static cps_cv
with_piece(cps_arena *a, cps_vkind kind, cps_piece p)
{
    cps_piece *n = cps_new(a, cps_piece);
    *n = p;
    return (cps_cv){.kind = kind, .u.piece = n};
}

cps_cv
cps_cv_range(cps_arena *a, int64_t start, int64_t end, const char *name)
{
    return with_piece(a, CPS_V_RANGE, (cps_piece){.start = start, .end = end, .count = 1, .name = name});
}

cps_cv
cps_cv_piece(cps_arena *a, cps_piece p)
{
    return with_piece(a, CPS_V_PIECE, p);
}

cps_cv
cps_cv_slice(cps_arena *a, int64_t start, int64_t size)
{
    return with_piece(a, CPS_V_SLICE, (cps_piece){.start = start, .end = start + size, .count = 1});
}

cps_cv
cps_cv_seq(cps_arena *a, cps_vkind kind, const cps_cv *item, uint32_t n)
{
    cps_seq *s = cps_new(a, cps_seq);
    cps_cv *copy = cps_new_array(a, cps_cv, n);
    if (n)
        memcpy(copy, item, n * sizeof *copy);
    s->n = n;
    s->item = copy;
    return (cps_cv){.kind = kind, .u.seq = s};
}

bool
cps_cv_num(cps_cv v, double *out)
{
    switch (v.kind) {
    case CPS_V_INT:
        *out = (double)v.u.i;
        return true;
    case CPS_V_FLOAT:
        *out = v.u.f;
        return true;
    case CPS_V_BOOL:
        *out = v.u.b;
        return true;
    default:
        return false;
    }
}

bool
cps_cv_bounds(cps_cv v, cps_piece *out)
{
    if (v.kind == CPS_V_INT && v.u.i >= 0) {
        *out = (cps_piece){.end = v.u.i, .count = 1};
        return true;
    }
    if (v.kind != CPS_V_RANGE && v.kind != CPS_V_PIECE)
        return false;
    *out = *v.u.piece;
    return true;
}

bool
cps_cv_eq(cps_cv a, cps_cv b)
{
    double x, y;
    if (a.kind == CPS_V_ENUM && b.kind == CPS_V_INT)
        return a.u.ev->value == b.u.i;
    if (a.kind == CPS_V_INT && b.kind == CPS_V_ENUM)
        return a.u.i == b.u.ev->value;
    if (a.kind != b.kind)
        return a.kind != CPS_V_BOOL && b.kind != CPS_V_BOOL && cps_cv_num(a, &x) &&
               cps_cv_num(b, &y) && x == y;
    switch (a.kind) {
    case CPS_V_INT:
        return a.u.i == b.u.i;
    case CPS_V_FLOAT:
        return a.u.f == b.u.f;
    case CPS_V_BOOL:
        return a.u.b == b.u.b;
    case CPS_V_STR:
    case CPS_V_WORD:
        return cps_streq(a.u.s, b.u.s);
    case CPS_V_DTYPE:
        return a.u.dt == b.u.dt;
    case CPS_V_ENUM:
        return a.u.ev->type == b.u.ev->type && a.u.ev->value == b.u.ev->value;
    case CPS_V_ENUMTYPE:
        return a.u.et == b.u.et;
    case CPS_V_TUPLE:
    case CPS_V_LIST:
    case CPS_V_SET:
        if (a.u.seq->n != b.u.seq->n)
            return false;
        for (uint32_t i = 0; i < a.u.seq->n; i++)
            if (!cps_cv_eq(a.u.seq->item[i], b.u.seq->item[i]))
                return false;
        return true;
    case CPS_V_RANGE:
    case CPS_V_PIECE:
    case CPS_V_SLICE:
        return a.u.piece->start == b.u.piece->start && a.u.piece->end == b.u.piece->end;
    case CPS_V_PIECES:
        return a.u.pieces->start == b.u.pieces->start && a.u.pieces->end == b.u.pieces->end &&
               a.u.pieces->step == b.u.pieces->step && a.u.pieces->count == b.u.pieces->count;
    case CPS_V_FN:
        return a.u.fn == b.u.fn;
    case CPS_V_TARGET:
        return true;
    case CPS_V_OPAQUE:
        return a.tag == b.tag && a.u.p == b.u.p;
    case CPS_V_NONE:
    case CPS_V_POISON:
    case CPS_V_ABSENT:
        return false;
    }
    return false;
}

int64_t
cps_cv_count(cps_cv v)
{
    switch (v.kind) {
    case CPS_V_TUPLE:
    case CPS_V_LIST:
    case CPS_V_SET:
        return v.u.seq->n;
    case CPS_V_RANGE:
    case CPS_V_PIECE:
        return v.u.piece->end - v.u.piece->start;
    case CPS_V_PIECES:
        return v.u.pieces->shown;
    default:
        return -1;
    }
}

// Start of the i-th of `n` nearly equal parts of `size`: the first size % n are one larger.
static int64_t
part_start(int64_t size, int64_t n, int64_t i)
{
    return size / n * i + CPS_MIN(size % n, i);
}

cps_cv
cps_cv_at(cps_arena *a, cps_cv v, int64_t i)
{
    switch (v.kind) {
    case CPS_V_TUPLE:
    case CPS_V_LIST:
    case CPS_V_SET:
        return v.u.seq->item[i];
    case CPS_V_RANGE:
        return cps_cv_int(v.u.piece->start + i);
    case CPS_V_PIECE: {
        const cps_piece *p = v.u.piece;
        return cps_cv_piece(a, (cps_piece){.start = p->start + i, .end = p->start + i + 1, .index = i, .count = p->end - p->start,
                                   .name = p->name});
    }
    case CPS_V_PIECES: {
        const cps_pieces *p = v.u.pieces;
        int64_t k = p->first + i, size = p->end - p->start;
        int64_t lo = p->step ? p->step * k : part_start(size, p->count, k);
        int64_t hi = p->step ? CPS_MIN(size, lo + p->step) : part_start(size, p->count, k + 1);
        return cps_cv_piece(a, (cps_piece){.start = p->start + lo, .end = p->start + hi, .index = k,
                                           .count = p->count, .name = p->name});
    }
    default:
        cps_bug("a value of kind %d cannot be iterated", (int)v.kind);
    }
}

const char *
cps_vkind_name(cps_vkind k)
{
    static const char *const name[] = {
        [CPS_V_NONE] = "nothing",        [CPS_V_POISON] = "nothing",
        [CPS_V_ABSENT] = "an absent operand",
        [CPS_V_INT] = "an integer",      [CPS_V_FLOAT] = "a number",
        [CPS_V_BOOL] = "a bool",         [CPS_V_STR] = "a string",
        [CPS_V_DTYPE] = "a dtype",       [CPS_V_ENUM] = "an enum value",
        [CPS_V_ENUMTYPE] = "an enum",    [CPS_V_TUPLE] = "a tuple",
        [CPS_V_LIST] = "a list",         [CPS_V_SET] = "a set",
        [CPS_V_RANGE] = "a range",       [CPS_V_PIECE] = "a piece",
        [CPS_V_SLICE] = "a slice",       [CPS_V_PIECES] = "a range of pieces",
        [CPS_V_FN] = "a fn",             [CPS_V_TARGET] = "the target",
        [CPS_V_WORD] = "a word",         [CPS_V_OPAQUE] = "a tensor or tile",
    };
    return name[k];
}

static void
put_value(cps_buf *b, cps_cv v)
{
    switch (v.kind) {
    case CPS_V_INT:
        cps_buf_printf(b, "%lld", (long long)v.u.i);
        break;
    case CPS_V_FLOAT:
        cps_buf_put_double(b, v.u.f);
        break;
    case CPS_V_BOOL:
        cps_buf_puts(b, v.u.b ? "true" : "false");
        break;
    case CPS_V_STR:
        cps_buf_printf(b, "\"%s\"", v.u.s);
        break;
    case CPS_V_WORD:
        cps_buf_puts(b, v.u.s);
        break;
    case CPS_V_DTYPE:
        cps_buf_puts(b, cps_dtype_name(v.u.dt));
        break;
    case CPS_V_ENUM:
        cps_buf_printf(b, "%s.%s", v.u.ev->type->name.text, v.u.ev->name);
        break;
    case CPS_V_ENUMTYPE:
        cps_buf_puts(b, v.u.et->name.text);
        break;
    case CPS_V_TUPLE:
    case CPS_V_LIST:
    case CPS_V_SET: {
        const char *q = v.kind == CPS_V_TUPLE ? "()" : v.kind == CPS_V_LIST ? "[]" : "{}";
        cps_buf_putc(b, q[0]);
        for (uint32_t i = 0; i < v.u.seq->n; i++) {
            if (i)
                cps_buf_puts(b, ", ");
            if (i == 16) {
                cps_buf_puts(b, "...");
                break;
            }
            put_value(b, v.u.seq->item[i]);
        }
        cps_buf_putc(b, q[1]);
        break;
    }
    case CPS_V_RANGE:
        cps_buf_printf(b, "%lld..%lld", (long long)v.u.piece->start, (long long)v.u.piece->end);
        break;
    case CPS_V_PIECE:
        cps_buf_printf(b, "piece %lld of %lld (%lld..%lld)", (long long)v.u.piece->index,
                       (long long)v.u.piece->count, (long long)v.u.piece->start,
                       (long long)v.u.piece->end);
        break;
    case CPS_V_SLICE:
        cps_buf_printf(b, "ds(%lld, %lld)", (long long)v.u.piece->start,
                       (long long)(v.u.piece->end - v.u.piece->start));
        break;
    case CPS_V_PIECES:
        cps_buf_printf(b, "%lld pieces of %lld..%lld", (long long)v.u.pieces->count,
                       (long long)v.u.pieces->start, (long long)v.u.pieces->end);
        break;
    case CPS_V_FN:
        cps_buf_printf(b, "fn %s", CPS_AST_AS(fn, v.u.fn->item)->name.text);
        break;
    default:
        cps_buf_puts(b, cps_vkind_name(v.kind));
    }
}

const char *
cps_cv_text(cps_arena *a, cps_cv v)
{
    cps_buf b = {0};
    put_value(&b, v);
    const char *s = cps_arena_strndup(a, b.data, b.n);
    cps_buf_fini(&b);
    return s;
}
