/* Tile text in: buffers, then instructions, each on what stands before. What comes out has
 * valid ids, known dtypes and attribute kinds; everything else is the verifier's. The first
 * mistake ends the reading. */
#include "codegen/isa/isa.h"
#include "ir/scan.h"
#include "ir/tile_text.h"

#define MAX_BUFS (1u << 22)
#define MAX_INSTS (1u << 26)

typedef struct ctx {
    cps_scan s;
    cps_tfunc *f;
    cps_map bufs; // spelling -> id
} ctx;

static uint32_t
buf_use(ctx *c)
{
    if (c->s.tok != CPS_TOK_VALUE) {
        cps_scan_fail(&c->s, CPS_E9101, "a buffer must stand here");
        return 0;
    }
    const uint64_t *id = cps_map_find_str(&c->bufs, c->s.key);
    if (!id) {
        cps_scan_fail(&c->s, CPS_E9102, "buffer '%s' is not declared before its use", c->s.key);
        return 0;
    }
    cps_scan_next(&c->s);
    return (uint32_t)*id;
}

static int
one_of(ctx *c, const char *const *words, int n, const char *what)
{
    for (int i = 0; i < n; i++)
        if (cps_scan_word(&c->s, words[i]))
            return i;
    cps_scan_fail(&c->s, CPS_E9101, "%s must stand here", what);
    return 0;
}

/* ---- buffers ---- */

static void
parse_elements(ctx *c, cps_tbuf *b)
{
    int64_t count = cps_tbuf_elems(b);
    if (count > CPS_TEXT_LIST) {
        cps_scan_fail(&c->s, CPS_E9105, "%lld elements in place, limit %u", (long long)count,
                      CPS_TEXT_LIST);
        return;
    }
    uint8_t *p = cps_arena_alloc(c->s.a, (size_t)cps_tbuf_bytes(b) + 1);
    for (int64_t i = 0; i < count && !c->s.bad; i++) {
        if (i)
            cps_scan_want(&c->s, ',');
        cps_scan_element(&c->s, b->dtype, p + i * cps_dtype_bytes(b->dtype));
    }
    cps_scan_want(&c->s, ']');
    b->data = p;
}

static int
hex_digit(char h)
{
    return h >= '0' && h <= '9' ? h - '0' : h >= 'a' && h <= 'f' ? h - 'a' + 10 : -1;
}

static void
parse_bytes(ctx *c, cps_tbuf *b)
{
    size_t want = (size_t)cps_tbuf_bytes(b), n = 0;
    if (want > c->s.n) { // two digits a byte stand in the text
        cps_scan_fail(&c->s, CPS_E9104, "%zu bytes of data do not stand here", want);
        return;
    }
    uint8_t *p = cps_arena_alloc(c->s.a, want + 1);
    while (c->s.tok == CPS_TOK_STR) {
        for (const char *h = c->s.str; *h; h += 2) {
            int hi = hex_digit(h[0]), lo = hi < 0 ? -1 : hex_digit(h[1]);
            if (lo < 0 || n == want) {
                cps_scan_fail(&c->s, CPS_E9104, "%zu bytes in hexadecimal must stand here",
                              want);
                return;
            }
            p[n++] = (uint8_t)(hi << 4 | lo);
        }
        cps_scan_next(&c->s);
    }
    if (n != want)
        cps_scan_fail(&c->s, CPS_E9104, "%zu of %zu bytes of data stand here", n, want);
    b->data = p;
}

static void
parse_clauses(ctx *c, cps_tbuf *b)
{
    cps_scan *s = &c->s;
    if (cps_scan_word(s, "ring")) {
        b->ring = (uint32_t)cps_scan_int(s, 1, UINT32_MAX, "a ring");
        if (!cps_scan_word(s, "turn"))
            cps_scan_fail(s, CPS_E9101, "'turn' is missing here");
        b->turn = (uint32_t)cps_scan_int(s, 0, UINT32_MAX, "a turn");
    }
    if (cps_scan_word(s, "slots"))
        b->slots = (uint16_t)cps_scan_int(s, 1, UINT16_MAX, "a number of slots");
    if (cps_scan_word(s, "depth"))
        b->depth = (uint8_t)cps_scan_int(s, 1, UINT8_MAX, "a number of open loops");
    if (cps_scan_word(s, "at"))
        b->pin_byte = (int32_t)cps_scan_int(s, 0, INT32_MAX, "a byte offset");
    if (cps_scan_word(s, "bank"))
        b->pin_bank = (int32_t)cps_scan_int(s, 0, INT32_MAX, "a bank");
    if (cps_scan_word(s, "parts"))
        b->pin_part = (int16_t)cps_scan_int(s, 0, INT16_MAX, "a partition");
    if (cps_scan_word(s, "placed")) {
        b->placed = true;
        b->part = (uint16_t)cps_scan_int(s, 0, UINT16_MAX, "a partition");
        cps_scan_want(s, ':');
        b->byte = (uint32_t)cps_scan_int(s, 0, UINT32_MAX, "a byte offset");
    }
}

static void
parse_buf(ctx *c)
{
    const char *key = c->s.key;
    size_t begin = c->s.begin;
    cps_tbuf b = {.name = c->s.str, .pin_byte = -1, .pin_bank = -1, .pin_part = -1};
    cps_type t;
    bool fresh;
    uint64_t *id = cps_map_at_str(&c->bufs, key, &fresh);
    if (!fresh) {
        cps_scan_fail(&c->s, CPS_E9103, "buffer '%s' is declared twice", key);
        return;
    }
    cps_scan_next(&c->s);
    cps_scan_want(&c->s, '=');
    b.space = (cps_space)one_of(c, cps_space_names, CPS_SPACES, "hbm, sbuf, psum or reg");
    if (!cps_scan_type(&c->s, &t))
        return;
    b.dtype = t.dtype;
    b.rank = t.rank;
    memcpy(b.dim, t.dim, sizeof b.dim);
    if (b.space == CPS_HBM)
        b.role =
            (cps_role)one_of(c, cps_role_names, CPS_ROLES, "local, in, out, inout or data");
    parse_clauses(c, &b);
    b.loc = cps_scan_span(&c->s, begin);
    if (cps_scan_word(&c->s, "loc"))
        b.loc = cps_scan_loc(&c->s);
    if (cps_scan_eat(&c->s, '['))
        parse_elements(c, &b);
    else if (c->s.tok == CPS_TOK_STR)
        parse_bytes(c, &b);
    if (c->f->bufs.n > MAX_BUFS)
        cps_scan_fail(&c->s, CPS_E9105, "more than %u buffers", MAX_BUFS);
    if (!c->s.bad)
        *id = cps_tile_buf(c->f, b);
}

/* ---- operands ---- */

static void
parse_parts(ctx *c, cps_tview *v)
{
    // "p32:64" comes as the word p32.
    int64_t part;
    if (!cps_parse_int(c->s.str + 1, strlen(c->s.str + 1), &part) || part < 0 || part > 1023) {
        cps_scan_fail(&c->s, CPS_E9104, "partitions are written p0:128");
        return;
    }
    v->part = (uint16_t)part;
    cps_scan_next(&c->s);
    cps_scan_want(&c->s, ':');
    v->parts = (uint16_t)cps_scan_int(&c->s, 1, 1024, "a number of partitions");
    cps_scan_want(&c->s, ',');
}

static uint32_t parse_view(ctx *c, uint32_t buf, bool inner);

static void
parse_pattern(ctx *c, cps_tview *v, bool inner)
{
    cps_scan *s = &c->s;
    if (s->tok == CPS_TOK_IDENT && s->str[0] == 'p' && s->str[1] >= '0' && s->str[1] <= '9')
        parse_parts(c, v);
    v->off = cps_scan_int(s, -CPS_MAX_ELEMS, CPS_MAX_ELEMS, "an offset");
    while (!s->bad && cps_scan_eat(s, ',')) {
        if (cps_scan_word(s, "reg")) {
            v->reg = buf_use(c);
            cps_scan_want(s, '*');
            v->reg_step = cps_scan_int(s, -CPS_MAX_ELEMS, CPS_MAX_ELEMS, "a step");
        } else if (!inner && cps_scan_word(s, "index")) {
            uint32_t buf = buf_use(c);
            v->index = parse_view(c, buf, true) + 1;
        } else if (v->nd == CPS_TILE_DIMS) {
            cps_scan_fail(s, CPS_E9105, "more than %d axes", CPS_TILE_DIMS);
        } else {
            cps_tdim *d = &v->d[v->nd++];
            d->step = cps_scan_int(s, -CPS_MAX_ELEMS, CPS_MAX_ELEMS, "a step");
            cps_scan_want(s, '*');
            d->num = cps_scan_int(s, 0, CPS_MAX_ELEMS, "a count");
        }
    }
    cps_scan_want(s, ']');
}

static uint32_t
parse_view(ctx *c, uint32_t buf, bool inner)
{
    cps_tview v = {.buf = buf, .dtype = c->f->bufs.data[buf].dtype};
    if (cps_scan_word(&c->s, "as"))
        v.dtype = cps_scan_dtype(&c->s);
    if (cps_scan_want(&c->s, '['))
        parse_pattern(c, &v, inner);
    return c->s.bad ? 0 : cps_tile_view(c->f, v);
}

static bool
parse_oper(ctx *c, cps_toper *o)
{
    cps_scan *s = &c->s;
    if (cps_scan_word(s, "_"))
        return true;
    if (s->tok == CPS_TOK_VALUE) {
        uint32_t buf = buf_use(c);
        bool view = (s->tok == CPS_TOK_PUNCT && s->c == '[') ||
                    (s->tok == CPS_TOK_IDENT && strcmp(s->str, "as") == 0);
        if (s->bad)
            return false;
        o->kind = view ? CPS_TO_VIEW : CPS_TO_REG;
        o->id = view ? parse_view(c, buf, false) : buf;
        return !s->bad;
    }
    o->kind = CPS_TO_IMM;
    if (s->tok == CPS_TOK_INT && !s->hex) {
        o->is_int = true;
        o->ival = cps_scan_int(s, INT64_MIN, INT64_MAX, "a number");
        return !s->bad;
    }
    return cps_scan_element(s, CPS_DT_FP32, &o->imm);
}

static bool
operand_here(const ctx *c)
{
    const cps_scan *s = &c->s;
    return s->tok == CPS_TOK_VALUE || s->tok == CPS_TOK_INT || s->tok == CPS_TOK_FLOAT ||
           (s->tok == CPS_TOK_IDENT &&
            (strcmp(s->str, "_") == 0 || strcmp(s->str, "inf") == 0 ||
             strcmp(s->str, "nan") == 0));
}

static uint8_t
parse_opers(ctx *c, cps_toper *o, int most)
{
    int n = 0;
    while (!c->s.bad && operand_here(c)) {
        if (n == most) {
            cps_scan_fail(&c->s, CPS_E9105, "more than %d operands", most);
            break;
        }
        parse_oper(c, &o[n++]);
        if (!cps_scan_eat(&c->s, ','))
            break;
        if (!operand_here(c))
            cps_scan_fail(&c->s, CPS_E9101, "an operand must follow ','");
    }
    return (uint8_t)n;
}

/* ---- instructions ---- */

static int32_t
parse_list(ctx *c)
{
    cps_tlist l = {0};
    int counts = 0;
    cps_scan_want(&c->s, '[');
    while (!c->s.bad && !cps_scan_eat(&c->s, ']')) {
        int room = counts ? (int)cps_countof(l.v) / 2 : (int)cps_countof(l.v);
        if (l.n >= room) {
            cps_scan_fail(&c->s, CPS_E9105, "more than %d entries", room);
            break;
        }
        if (l.n)
            cps_scan_want(&c->s, ',');
        l.v[l.n++] = (int32_t)cps_scan_int(&c->s, INT32_MIN, INT32_MAX, "a number");
        if (l.n <= 16 && cps_scan_eat(&c->s, '*')) {
            // Counts are kept aside until the number of steps is known.
            if (counts != l.n - 1)
                cps_scan_fail(&c->s, CPS_E9101, "either all steps have counts or none");
            l.v[16 + counts++] = (int32_t)cps_scan_int(&c->s, 1, INT32_MAX, "a count");
        }
    }
    if (counts && counts != l.n)
        cps_scan_fail(&c->s, CPS_E9101, "either all steps have counts or none");
    if (counts) {
        memmove(l.v + l.n, l.v + 16, (size_t)counts * sizeof *l.v);
        memset(l.v + 2 * l.n, 0, (cps_countof(l.v) - 2 * (size_t)l.n) * sizeof *l.v);
    }
    cps_vec_push(c->s.a, &c->f->lists, l);
    return (int32_t)c->f->lists.n - 1;
}

static int32_t
parse_value(ctx *c, const cps_tattrrow *row)
{
    if (row->kind == CPS_TK_INTS)
        return parse_list(c);
    if (c->s.tok == CPS_TOK_IDENT && (row->kind == CPS_TK_ALU || row->kind == CPS_TK_FUNC)) {
        int v = row->kind == CPS_TK_ALU ? cps_alu_parse(c->s.str) : cps_actfn_parse(c->s.str);
        if (v < 0)
            cps_scan_fail(&c->s, CPS_E9102, "no %s '%s'",
                          row->kind == CPS_TK_ALU ? "operator" : "function", c->s.str);
        cps_scan_next(&c->s);
        return v;
    }
    return (int32_t)cps_scan_int(&c->s, INT32_MIN, INT32_MAX, "a number");
}

static void
parse_attrs(ctx *c, cps_tinst *x)
{
    while (!c->s.bad && !cps_scan_eat(&c->s, '}')) {
        if (x->set)
            cps_scan_want(&c->s, ',');
        int k = 0;
        while (k < CPS_TATTRS && !cps_streq(cps_tattrs[k].name, c->s.str))
            k++;
        if (c->s.tok != CPS_TOK_IDENT || k == CPS_TATTRS) {
            cps_scan_fail(&c->s, CPS_E9102, "an attribute must stand here");
            return;
        }
        if (x->set >> k & 1) {
            cps_scan_fail(&c->s, CPS_E9103, "attribute '%s' is given twice",
                          cps_tattrs[k].name);
            return;
        }
        cps_scan_next(&c->s);
        int32_t v = 1;
        if (cps_tattrs[k].kind != CPS_TK_FLAG) {
            cps_scan_want(&c->s, '=');
            v = parse_value(c, &cps_tattrs[k]);
        } else if (cps_scan_eat(&c->s, '=')) {
            v = (int32_t)cps_scan_int(&c->s, INT32_MIN, INT32_MAX, "a number");
        }
        cps_tinst_set(x, (cps_tattr_key)k, v);
    }
}

static void
parse_engine(ctx *c, cps_tinst *x)
{
    bool pin = cps_scan_word(&c->s, "pin");
    if (!pin && !cps_scan_word(&c->s, "on"))
        return;
    const char *name = cps_scan_ident(&c->s, "an engine");
    x->engine = (uint8_t)cps_engine_parse(name);
    x->pinned = pin;
    if (x->engine == CPS_ENGINE_ANY && !c->s.bad && strcmp(name, "any") != 0)
        cps_scan_fail(&c->s, CPS_E9102, "no engine '%s'", name);
}

static void
parse_inst(ctx *c)
{
    cps_scan *s = &c->s;
    size_t begin = s->begin;
    cps_top op = s->tok == CPS_TOK_IDENT ? cps_top_find(s->str) : CPS_T_NONE;
    if (op == CPS_T_NONE) {
        cps_scan_fail(s, s->tok == CPS_TOK_IDENT ? CPS_E9102 : CPS_E9101,
                      "an instruction must stand here");
        return;
    }
    cps_scan_next(s);
    cps_tinst x = {.op = (uint16_t)op, .engine = CPS_ENGINE_ANY, .round = -1, .stage = -1};
    cps_toper first[3] = {{0}};
    uint8_t n = parse_opers(c, first, 3);
    bool results = s->tok == CPS_TOK_FROM || cps_tops[op].nin_max == 0;
    if (results && n > 2)
        cps_scan_fail(s, CPS_E9105, "more than 2 results");
    if (results) {
        x.nout = n;
        memcpy(x.out, first, sizeof x.out);
        if (s->tok == CPS_TOK_FROM) {
            cps_scan_next(s);
            x.nin = parse_opers(c, x.in, 3);
        }
    } else {
        x.nin = n;
        memcpy(x.in, first, sizeof x.in);
    }
    if (cps_scan_eat(s, '{'))
        parse_attrs(c, &x);
    parse_engine(c, &x);
    if (cps_scan_word(s, "label"))
        x.label = (uint32_t)cps_scan_int(s, 1, UINT32_MAX, "a label");
    if (cps_scan_word(s, "after"))
        x.after = (uint32_t)cps_scan_int(s, 1, UINT32_MAX, "a label");
    if (cps_scan_word(s, "priority"))
        x.priority = (int32_t)cps_scan_int(s, INT32_MIN, INT32_MAX, "a priority");
    if (cps_scan_word(s, "round"))
        x.round = (int32_t)cps_scan_int(s, INT32_MIN, INT32_MAX, "a round");
    if (cps_scan_word(s, "stage"))
        x.stage = (int32_t)cps_scan_int(s, INT32_MIN, INT32_MAX, "a stage");
    x.loc = cps_scan_span(s, begin);
    if (cps_scan_word(s, "loc"))
        x.loc = cps_scan_loc(s);
    if (c->f->insts.n >= MAX_INSTS)
        cps_scan_fail(s, CPS_E9105, "more than %u instructions", MAX_INSTS);
    if (!s->bad)
        cps_vec_push(s->a, &c->f->insts, x);
}

cps_tfunc *
cps_tile_parse(cps_arena *a, const char *text, size_t n, uint32_t file, cps_diags *d)
{
    ctx c = {.f = NULL};
    cps_scan *s = &c.s;
    if (!cps_scan_begin(s, a, text, n, file, d, "copse.tile 1"))
        return NULL;
    c.f = cps_tile_new(a, "", "");
    cps_map_init(&c.bufs, a);
    if (!cps_scan_word(s, "kernel") || s->tok != CPS_TOK_SYMBOL)
        cps_scan_fail(s, CPS_E9101, "'kernel @name' must stand here");
    c.f->name = s->str;
    cps_scan_next(s);
    if (!cps_scan_word(s, "on"))
        cps_scan_fail(s, CPS_E9101, "'on' is missing here");
    c.f->target =
        s->tok == CPS_TOK_STR ? cps_scan_string(s, "a target") : cps_scan_ident(s, "a target");
    if (!cps_scan_word(s, "core"))
        cps_scan_fail(s, CPS_E9101, "'core' is missing here");
    c.f->core = (int)cps_scan_int(s, 0, 1023, "a core");
    if (!cps_scan_word(s, "of"))
        cps_scan_fail(s, CPS_E9101, "'of' is missing here");
    c.f->cores = (int)cps_scan_int(s, 1, 1024, "a number of cores");
    while (!s->bad && s->tok == CPS_TOK_VALUE)
        parse_buf(&c);
    while (!s->bad && s->tok != CPS_TOK_END)
        parse_inst(&c);
    return s->bad ? NULL : c.f;
}
