/* Graph text in: a recursive-descent reader without recursion (the form has no nesting). Nodes
 * are made by the builder, so a text that parses obeys the op rules; the types written are
 * compared with those inferred. The first mistake ends the reading. */
#include "ir/build.h"
#include "ir/scan.h"

#define MAX_FUNCS 65536u

typedef struct ctx {
    cps_scan s;
    cps_builder b;
    cps_map vals; // spelling -> value, of the current function
    cps_map funcs;
    cps_blob_fn blob;
    void *user;
} ctx;

static bool
name_value(ctx *c, const char *key, const char *name, cps_val v)
{
    bool fresh;
    uint64_t *at = cps_map_at_str(&c->vals, key, &fresh);
    if (!fresh)
        return cps_scan_fail(&c->s, CPS_E9103, "'%s' is defined twice", key);
    *at = v;
    c->b.f->vals.data[v].name = name;
    return true;
}

// A use: %x.3, or _ where an operand is absent.
static cps_val
use(ctx *c, bool optional)
{
    if (optional && cps_scan_word(&c->s, "_"))
        return 0;
    if (c->s.tok != CPS_TOK_VALUE) {
        cps_scan_fail(&c->s, CPS_E9101, "a value must stand here");
        return 0;
    }
    const uint64_t *v = cps_map_find_str(&c->vals, c->s.key);
    if (!v) {
        cps_scan_fail(&c->s, CPS_E9102, "'%s' is not defined before its use", c->s.key);
        return 0;
    }
    cps_scan_next(&c->s);
    return (cps_val)*v;
}

/* ---- nodes ---- */

typedef struct head {
    size_t begin;
    uint32_t n;
    const char *key[255], *name[255];
} head;

static const void *
inline_data(ctx *c, const cps_type *t)
{
    int64_t count = cps_type_count(t);
    if (count > CPS_TEXT_LIST) {
        cps_scan_fail(&c->s, CPS_E9105, "a constant of %lld elements in place, limit %u",
                      (long long)count, CPS_TEXT_LIST);
        return NULL;
    }
    uint8_t *data = cps_arena_alloc(c->s.a, (size_t)cps_type_bytes(t) + 1);
    cps_scan_want(&c->s, '[');
    for (int64_t i = 0; i < count && !c->s.bad; i++) {
        if (i)
            cps_scan_want(&c->s, ',');
        cps_scan_element(&c->s, t->dtype, data + i * cps_dtype_bytes(t->dtype));
    }
    return cps_scan_want(&c->s, ']') ? data : NULL;
}

static const void *
blob_data(ctx *c, const cps_type *t, cps_digest *digest)
{
    size_t begin = c->s.begin;
    if (!cps_scan_digest(&c->s, digest))
        return NULL;
    const void *data = c->blob ? c->blob(c->user, digest, (size_t)cps_type_bytes(t)) : NULL;
    if (!data) {
        c->s.begin = begin;
        cps_scan_fail(&c->s, CPS_E9106, "the %lld bytes of this constant were not supplied",
                      (long long)cps_type_bytes(t));
    }
    return data;
}

static void
parse_const(ctx *c, const head *h, cps_val *outs)
{
    cps_type t;
    cps_digest digest;
    if (!cps_scan_type(&c->s, &t))
        return;
    bool blob = cps_scan_word(&c->s, "blob");
    const void *data = blob ? blob_data(c, &t, &digest) : inline_data(c, &t);
    if (!data)
        return;
    const char *name = h->name[0];
    if (cps_scan_word(&c->s, "name"))
        name = cps_scan_string(&c->s, "a name");
    outs[0] = cps_b_const(&c->b, t, data, name);
    if (blob && outs[0]) { // trusted: whoever supplies the bytes found them by it
        cps_const *k = &c->b.m->consts.data[c->b.m->consts.n - 1];
        k->digest = digest;
        k->hashed = true;
    }
}

static uint32_t
parse_operands(ctx *c, bool optional, cps_val *in)
{
    uint32_t n = 0;
    while (!c->s.bad && (c->s.tok == CPS_TOK_VALUE ||
                         (c->s.tok == CPS_TOK_IDENT && strcmp(c->s.str, "_") == 0))) {
        if (n == 255) {
            cps_scan_fail(&c->s, CPS_E9105, "more than 255 operands");
            break;
        }
        in[n++] = use(c, optional);
        if (!cps_scan_eat(&c->s, ','))
            break;
        if (c->s.tok != CPS_TOK_VALUE && c->s.tok != CPS_TOK_IDENT)
            cps_scan_fail(&c->s, CPS_E9101, "an operand must follow ','");
    }
    return n;
}

static uint32_t
parse_types(ctx *c, cps_type *types)
{
    uint32_t n = 0;
    if (!cps_scan_eat(&c->s, ':'))
        return 0;
    do {
        if (n == 255) {
            cps_scan_fail(&c->s, CPS_E9105, "more than 255 results");
            break;
        }
        cps_scan_type(&c->s, &types[n++]);
    } while (!c->s.bad && cps_scan_eat(&c->s, ','));
    return n;
}

static void
parse_pick(ctx *c)
{
    if (!cps_scan_word(&c->s, "leaf"))
        return;
    cps_decision *p = cps_new(c->s.a, cps_decision);
    uint16_t n;
    cps_attr *config;
    if (!cps_scan_word(&c->s, "none"))
        p->leaf = cps_scan_string(&c->s, "a leaf's name, or none");
    if (!cps_scan_word(&c->s, "why"))
        cps_scan_fail(&c->s, CPS_E9101, "'why' is missing here");
    p->why = cps_scan_string(&c->s, "a reason");
    if (!cps_scan_word(&c->s, "on"))
        cps_scan_fail(&c->s, CPS_E9101, "'on' is missing here");
    p->on = cps_scan_string(&c->s, "a target");
    if (!cps_scan_word(&c->s, "cost"))
        cps_scan_fail(&c->s, CPS_E9101, "'cost' is missing here");
    p->cost_ns = cps_scan_int(&c->s, INT64_MIN, INT64_MAX, "a cost in ns");
    if (!cps_scan_word(&c->s, "digest"))
        cps_scan_fail(&c->s, CPS_E9101, "'digest' is missing here");
    cps_scan_digest(&c->s, &p->digest);
    if (!cps_scan_word(&c->s, "config"))
        cps_scan_fail(&c->s, CPS_E9101, "'config' is missing here");
    if (cps_scan_attrs(&c->s, &n, &config)) {
        p->nconfig = n;
        p->config = config;
        c->b.f->nodes.data[c->b.f->nodes.n - 1].pick = p;
    }
}

static void
parse_clauses(ctx *c, size_t begin, bool call)
{
    if (call)
        parse_pick(c);
    cps_node *n = &c->b.f->nodes.data[c->b.f->nodes.n - 1];
    if (cps_scan_word(&c->s, "from"))
        n->from = cps_scan_string(&c->s, "a provenance");
    n->loc = cps_scan_span(&c->s, begin);
    if (cps_scan_word(&c->s, "loc"))
        n->loc = cps_scan_loc(&c->s);
}

static bool
parse_op(ctx *c, const head *h, cps_op op, cps_val *outs)
{
    cps_val in[255];
    cps_type types[255];
    uint16_t na = 0;
    cps_attr *attr = NULL;
    const char *callee = c->s.str;
    if (op == CPS_OP_CALL) {
        if (c->s.tok != CPS_TOK_SYMBOL)
            return cps_scan_fail(&c->s, CPS_E9101,
                                 "the operator's name (@name) must stand here");
        cps_scan_next(&c->s);
    }
    uint32_t nin = parse_operands(c, op == CPS_OP_CALL, in);
    if (c->s.tok == CPS_TOK_PUNCT && c->s.c == '{')
        cps_scan_attrs(&c->s, &na, &attr);
    uint32_t nt = parse_types(c, types);
    c->b.loc = cps_scan_span(&c->s, h->begin);
    if (c->s.bad)
        return false;
    if (op == CPS_OP_CALL) {
        if (nt != h->n)
            return cps_scan_fail(&c->s, CPS_E9101, "%u results need as many types, got %u",
                                 h->n, nt);
        return cps_b_call(&c->b, callee, (int)nin, in, na, attr, (int)nt, types, outs);
    }
    if (h->n != cps_ops[op].nout)
        return cps_scan_fail(&c->s, CPS_E9101, "'%s' has %u results, not %u", cps_ops[op].name,
                             cps_ops[op].nout, h->n);
    if (!cps_b_node(&c->b, op, (int)nin, in, na, attr, outs))
        return false;
    for (uint32_t i = 0; i < nt; i++)
        if (i >= h->n || !cps_type_eq(&types[i], cps_b_type(&c->b, outs[i]))) {
            cps_buf b = {0};
            cps_type_print(cps_b_type(&c->b, outs[CPS_MIN(i, h->n - 1)]), &b);
            cps_error(c->b.d, CPS_E7107, c->b.loc,
                      "the type written for result %u is not the one the op gives, %s", i,
                      b.data);
            cps_buf_fini(&b);
            return false;
        }
    return true;
}

static bool
parse_node(ctx *c)
{
    head h = {.begin = c->s.begin};
    cps_val outs[256] = {0};
    while (!c->s.bad && c->s.tok == CPS_TOK_VALUE) {
        if (h.n == 255)
            return cps_scan_fail(&c->s, CPS_E9105, "more than 255 results");
        h.key[h.n] = c->s.key;
        h.name[h.n++] = c->s.str;
        cps_scan_next(&c->s);
        if (!cps_scan_eat(&c->s, ','))
            break;
    }
    if (h.n)
        cps_scan_want(&c->s, '=');
    if (c->s.tok != CPS_TOK_IDENT)
        return cps_scan_fail(&c->s, CPS_E9101, "an op must stand here");
    cps_op op = cps_op_find(c->s.str);
    if (op == CPS_OP_NONE)
        return cps_scan_fail(&c->s, CPS_E9102, "there is no op '%s'", c->s.str);
    cps_scan_next(&c->s);
    uint32_t before = c->b.f->nodes.n;
    if (op == CPS_OP_CONST) {
        if (h.n != 1)
            return cps_scan_fail(&c->s, CPS_E9101, "'const' has one result");
        parse_const(c, &h, outs);
    } else if (!parse_op(c, &h, op, outs)) {
        return false;
    }
    if (c->s.bad || c->b.f->nodes.n == before)
        return false;
    for (uint32_t i = 0; i < h.n; i++)
        if (!name_value(c, h.key[i], h.name[i], outs[i]))
            return false;
    parse_clauses(c, h.begin, op == CPS_OP_CALL);
    return !c->s.bad;
}

/* ---- functions ---- */

static bool
parse_input(ctx *c)
{
    if (c->s.tok != CPS_TOK_VALUE)
        return cps_scan_fail(&c->s, CPS_E9101, "the input's value (%%name) must stand here");
    const char *key = c->s.key, *name = c->s.str;
    cps_type t;
    cps_scan_next(&c->s);
    if (!cps_scan_want(&c->s, ':') || !cps_scan_type(&c->s, &t))
        return false;
    cps_val v = cps_b_input(&c->b, name, t);
    return v && name_value(c, key, name, v);
}

static bool
parse_func(ctx *c)
{
    if (c->s.tok != CPS_TOK_SYMBOL)
        return cps_scan_fail(&c->s, CPS_E9101, "the function's name (@name) must stand here");
    bool fresh;
    cps_map_at_str(&c->funcs, c->s.str, &fresh);
    if (!fresh)
        return cps_scan_fail(&c->s, CPS_E9103, "function '%s' is defined twice", c->s.str);
    if (c->b.m->funcs.n == MAX_FUNCS)
        return cps_scan_fail(&c->s, CPS_E9105, "more than %u functions", MAX_FUNCS);
    c->b.f = cps_func_new(c->b.m, c->s.str);
    cps_map_init(&c->vals, c->s.a);
    cps_scan_next(&c->s);
    cps_scan_want(&c->s, '{');
    while (!c->s.bad && !cps_scan_eat(&c->s, '}')) {
        bool ok = true;
        c->b.loc = cps_scan_span(&c->s, c->s.begin);
        if (cps_scan_word(&c->s, "input")) {
            ok = parse_input(c);
        } else if (cps_scan_word(&c->s, "output")) {
            const char *name = cps_scan_string(&c->s, "the output's name");
            cps_val v = use(c, false);
            if (v)
                cps_b_output(&c->b, name, v);
        } else {
            ok = parse_node(c);
        }
        if (!ok)
            return false;
    }
    return !c->s.bad;
}

cps_module *
cps_ir_parse(cps_arena *a, const char *text, size_t n, uint32_t file, cps_diags *d,
             cps_blob_fn blob, void *user)
{
    ctx c = {.blob = blob, .user = user};
    if (!cps_scan_begin(&c.s, a, text, n, file, d, "copse.graph 1"))
        return NULL;
    c.b.m = cps_module_new(a, "");
    c.b.d = d;
    cps_map_init(&c.funcs, a);
    if (cps_scan_word(&c.s, "module"))
        c.b.m->name = cps_scan_string(&c.s, "the module's name");
    while (!c.s.bad && c.s.tok != CPS_TOK_END) {
        if (!cps_scan_word(&c.s, "func")) {
            cps_scan_fail(&c.s, CPS_E9101, "'func' must stand here");
            break;
        }
        if (!parse_func(&c))
            return NULL;
    }
    if (!c.s.bad && !c.b.m->funcs.n)
        cps_scan_fail(&c.s, CPS_E9101, "the module has no function");
    return c.s.bad ? NULL : c.b.m;
}
