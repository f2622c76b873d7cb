/* The C side of the row oracle (rows.py): runs single instructions on given memory.
 *
 * Standard input, a line each:
 *   case NAME TARGET                 begins a case
 *   seed N                           stochastic rounding with this seed
 *   in PART ROWS BYTE HEX            rows of SBUF before the run, loaded by DMA
 *   var NAME KIND BYTES [HEX]        an HBM variable: input, output, inout, tmp
 *   insn ENGINE TEXT                 assembly text; engines take turns in the order of the
 * lines at ENGINE TEXT                   the same without the turns: the text brings its own
 * sync reloc FIELD NAME ADDEND          the address of a variable in the instruction before out
 * PART ROWS BYTE ROWBYTES      rows of SBUF after the run end                              runs
 * it Standard output: "case NAME ok", then one line of hex digits per `out` and per output
 * variable; or "case NAME fail CODE text". Exit 2 when the input makes no sense. */
#include "codegen/isa/text.h"
#include "runtime/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEM_IN = 3, SEM_OUT = 5, SEM_TURN = 6, MAX_OUT = 16, MAX_VAR = 32 };

typedef struct hbm {
    const char *name;
    uint8_t *data;
    size_t bytes;
    bool bound, defined, shown;
} hbm;

typedef struct run {
    cps_arena *a;
    cps_diags *d;
    const cps_target *t;
    cps_kbin *k;
    const char *name;
    hbm var[MAX_VAR];
    unsigned nvar, loads, outs, turns;
    int last, turn; // engine of the last instruction, and of the last in the chain; -1: none
    int out[MAX_OUT][4];
    uint64_t seed;
    bool stochastic, broken, ending;
} run;

_Noreturn static void
bad(const char *what)
{
    fprintf(stderr, "cases: %s\n", what);
    exit(2);
}

static char *
word(char **at)
{
    char *w = *at + strspn(*at, " ");
    size_t n = strcspn(w, " ");
    *at = w + n + (w[n] == ' ');
    w[n] = 0;
    if (!*w)
        bad("a word is missing");
    return w;
}

static int
number(char **at)
{
    return (int)strtol(word(at), NULL, 0);
}

static unsigned
digit(char c)
{
    return c <= '9' ? (unsigned)c - '0' : (unsigned)c - 'a' + 10u;
}

static uint8_t *
unhex(cps_arena *a, const char *s, size_t *n)
{
    *n = strspn(s, "0123456789abcdef") / 2;
    uint8_t *out = cps_arena_raw(a, *n + 1);
    for (size_t i = 0; i < *n; i++)
        out[i] = (uint8_t)(digit(s[2 * i]) << 4 | digit(s[2 * i + 1]));
    return out;
}

static uint32_t
new_var(run *r, const char *name, cps_varkind kind, size_t bytes)
{
    if (r->nvar == MAX_VAR)
        bad("too many variables");
    cps_kvar *v = cps_vec_add(r->a, &r->k->vars);
    v->name = name;
    v->kind = kind;
    v->dtype = CPS_DT_U8;
    v->rank = 1;
    v->dim[0] = v->bytes = (int64_t)bytes;
    hbm *h = &r->var[r->nvar++];
    h->name = name;
    h->bytes = bytes;
    h->data = cps_arena_alloc(r->a, bytes);
    h->bound = kind != CPS_VAR_TMP;
    h->defined = kind != CPS_VAR_OUTPUT;
    return r->k->vars.n - 1;
}

static void
put(run *r, cps_engine e, cps_bundle b)
{
    cps_vec_push(r->a, &r->k->stream[e].code, b);
}

static void
events(cps_bundle *b, int wait, unsigned value, int inc)
{
    if (wait >= 0) {
        cps_isa_set(b, CPS_F_EVENTS_wait_mode, CPS_WAIT_SEM_GE_IMM);
        cps_isa_set(b, CPS_F_EVENTS_wait_idx, (uint64_t)wait);
        cps_isa_set(b, CPS_F_EVENTS_semaphore_value, value);
    }
    if (inc >= 0) {
        cps_isa_set(b, CPS_F_EVENTS_update_mode, CPS_UPDATE_SEM_INC_COMPLETE);
        cps_isa_set(b, CPS_F_EVENTS_update_idx, (uint64_t)inc);
    }
}

/* Hands the turn on: the engine before drains and raises, this one waits. */
static void
take_turn(run *r, cps_engine e)
{
    if (r->turn == (int)e && !r->ending)
        return;
    cps_bundle wait = cps_isa_new(CPS_INSN_EVENT_SEMAPHORE, r->k->gen);
    if (r->turn >= 0) {
        cps_bundle done = cps_isa_new(CPS_INSN_DRAIN, r->k->gen);
        events(&done, -1, 0, SEM_TURN);
        put(r, (cps_engine)r->turn, done);
        events(&wait, SEM_TURN, ++r->turns, -1);
    } else {
        events(&wait, SEM_IN, 16 * r->loads, -1);
    }
    if (r->turn >= 0 || r->loads)
        put(r, e, wait);
    r->turn = (int)e;
}

/* One block of `rows` runs of `row` bytes between variable `var` and SBUF. */
static void
transfer(run *r, const char *queue, uint32_t id, unsigned sem, bool load, uint32_t var,
         int part, int rows, int byte, int64_t row)
{
    cps_kdesc *c = cps_vec_add(r->a, &r->k->descs);
    int64_t sb = (int64_t)part << 18 | byte;
    c->from_dtype = c->to_dtype = CPS_DT_U8;
    c->from = load ? var : 0;
    c->to = load ? 0 : var;
    c->from_off = load ? 0 : sb;
    c->to_off = load ? sb : 0;
    c->nfrom = c->nto = 2;
    c->from_step[0] = c->to_step[0] = 1;
    c->from_size[0] = c->to_size[0] = row;
    c->from_size[1] = c->to_size[1] = rows;
    c->from_step[1] = load ? row : 1 << 18;
    c->to_step[1] = load ? 1 << 18 : row;
    cps_kblock *b = cps_vec_add(r->a, &r->k->blocks);
    b->owner = CPS_SP;
    b->queue = queue;
    b->id = id;
    b->semaphore = (uint8_t)sem;
    b->first = r->k->descs.n - 1;
    b->ndesc = 1;
    cps_bundle x = cps_isa_new(CPS_INSN_PSEUDO_DMA_TRIGGER, r->k->gen);
    memcpy(x.b + cps_fields[CPS_F_PSEUDO_DMA_TRIGGER_queue].byte, queue, strlen(queue));
    cps_isa_set(&x, CPS_F_PSEUDO_DMA_TRIGGER_block_id, id);
    put(r, CPS_SP, x);
}

static void
add_in(run *r, char *at)
{
    int part = number(&at), rows = number(&at), byte = number(&at);
    size_t n;
    uint8_t *data = unhex(r->a, at, &n);
    if (rows < 1 || n == 0 || n % (size_t)rows)
        bad("rows of one length are needed");
    uint32_t v = new_var(r, cps_arena_printf(r->a, "in%u", r->loads), CPS_VAR_INPUT, n);
    memcpy(r->var[v - 1].data, data, n);
    transfer(r, "q_in", r->loads, SEM_IN, true, v, part, rows, byte,
             (int64_t)(n / (size_t)rows));
    r->loads++;
}

static void
add_var(run *r, char *at)
{
    static const struct {
        const char *name;
        cps_varkind kind;
    } kinds[] = {{"input", CPS_VAR_INPUT},
                 {"output", CPS_VAR_OUTPUT},
                 {"inout", CPS_VAR_INOUT},
                 {"tmp", CPS_VAR_TMP}};
    const char *name = cps_arena_strdup(r->a, word(&at)), *kind = word(&at);
    size_t bytes = (size_t)number(&at), n, k = 0;
    while (k < cps_countof(kinds) && strcmp(kinds[k].name, kind) != 0)
        k++;
    if (k == cps_countof(kinds))
        bad("no such kind of variable");
    uint32_t v = new_var(r, name, kinds[k].kind, bytes);
    hbm *h = &r->var[v - 1];
    const uint8_t *data = unhex(r->a, at, &n);
    memcpy(h->data, data, CPS_MIN(n, bytes));
    h->shown = kinds[k].kind == CPS_VAR_OUTPUT || kinds[k].kind == CPS_VAR_INOUT;
}

static void
add_insn(run *r, char *at, bool turns)
{
    const char *engine = word(&at);
    int e = 0;
    while (e < CPS_ENGINES && strcmp(cps_engine_name((cps_engine)e), engine) != 0)
        e++;
    if (e == CPS_ENGINES)
        bad("no such engine");
    if (turns)
        take_turn(r, (cps_engine)e);
    cps_buf b = {0};
    if (!cps_isa_parse(at, strlen(at), 0, r->k->gen, r->d, &b))
        r->broken = true;
    for (size_t i = 0; i + CPS_BUNDLE_BYTES <= b.n; i += CPS_BUNDLE_BYTES) {
        cps_bundle x;
        memcpy(x.b, b.data + i, CPS_BUNDLE_BYTES);
        put(r, (cps_engine)e, x);
    }
    cps_buf_fini(&b);
    r->last = e;
}

static void
add_reloc(run *r, char *at)
{
    const char *field = word(&at), *name = word(&at);
    uint32_t var = cps_kbin_var(r->k, name);
    int64_t addend = number(&at);
    if (r->last < 0 || var == UINT32_MAX)
        bad("reloc without instruction or variable");
    cps_kstream *st = &r->k->stream[r->last];
    const cps_bundle *b = &st->code.data[st->code.n - 1];
    const cps_format_row *f = &cps_formats[cps_insns[cps_isa_find(b->b[0], r->k->gen)].format];
    for (unsigned k = f[0].first; k < f[1].first; k++) {
        if (strcmp(cps_fields[k].name, field) != 0)
            continue;
        cps_kreloc x = {(cps_engine)r->last, st->code.n - 1, (uint16_t)k, var, addend};
        cps_vec_push(r->a, &r->k->relocs, x);
        return;
    }
    bad("no such field");
}

static void
hex(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        printf("%02x", p[i]);
    printf("\n");
}

static void
report(run *r)
{
    cps_buf b = {0};
    cps_diags_render(r->d, &b, false);
    for (size_t i = 0; i < b.n; i++) {
        if (b.data[i] == '\n')
            b.data[i] = ' ';
    }
    const char *code =
        cps_diags_count(r->d) ? cps_diag_rows[cps_diags_code(r->d, 0)].name : "-";
    printf("case %s fail %s %.*s\n", r->name, code, (int)b.n, b.data ? b.data : "");
    cps_buf_fini(&b);
}

static void
finish(run *r)
{
    r->ending = true; // also what the same engine did is over then
    if (r->outs)
        take_turn(r, CPS_SP);
    for (unsigned i = 0; i < r->outs; i++) {
        const int *o = r->out[i];
        uint32_t v = new_var(r, cps_arena_printf(r->a, "out%u", i), CPS_VAR_OUTPUT,
                             (size_t)(o[1] * o[3]));
        r->var[v - 1].shown = true;
        transfer(r, "q_out", i, SEM_OUT, false, v, o[0], o[1], o[2], o[3]);
    }
    cps_sim *s = cps_sim_create(r->t);
    bool ok = !r->broken && cps_sim_load(s, r->k, r->d);
    for (unsigned i = 0; ok && i < r->nvar; i++) {
        hbm *h = &r->var[i];
        ok = !h->bound || cps_sim_bind(s, h->name, h->data, h->bytes, h->defined, r->d);
    }
    cps_sim_opts o = {.checks = CPS_CHECK_ALL,
                      .max_steps = 1000000,
                      .stochastic = r->stochastic,
                      .seed = r->seed};
    if (!ok || !cps_sim_run(s, &o, NULL, r->d)) {
        report(r);
    } else {
        printf("case %s ok\n", r->name);
        for (unsigned i = 0; i < r->nvar; i++) {
            if (r->var[i].shown)
                hex(r->var[i].data, r->var[i].bytes);
        }
    }
    cps_sim_destroy(s);
    cps_diags_destroy(r->d);
    cps_arena_destroy(r->a);
    *r = (run){0};
}

static void
begin(run *r, char *at)
{
    const char *name = word(&at), *target = word(&at);
    *r = (run){.a = cps_arena_create(), .d = cps_diags_create(), .last = -1, .turn = -1};
    r->t = cps_target_find(target);
    if (!r->t)
        bad("no such target");
    r->name = cps_arena_strdup(r->a, name);
    r->k = cps_kbin_new(r->a, "case", r->t->name, r->t->gen);
}

static void
one_line(run *r, char *line)
{
    char *at = line;
    const char *what = word(&at);
    if (strcmp(what, "case") == 0) {
        if (r->a)
            bad("a case within a case");
        begin(r, at);
    } else if (!r->a) {
        bad("nothing has begun");
    } else if (strcmp(what, "in") == 0) {
        add_in(r, at);
    } else if (strcmp(what, "var") == 0) {
        add_var(r, at);
    } else if (strcmp(what, "insn") == 0) {
        add_insn(r, at, true);
    } else if (strcmp(what, "at") == 0) {
        add_insn(r, at, false);
    } else if (strcmp(what, "seed") == 0) {
        r->stochastic = true;
        r->seed = (uint64_t)number(&at);
    } else if (strcmp(what, "reloc") == 0) {
        add_reloc(r, at);
    } else if (strcmp(what, "out") == 0) {
        if (r->outs >= MAX_OUT)
            bad("too many outputs");
        for (int i = 0; i < 4; i++)
            r->out[r->outs][i] = number(&at);
        r->outs++;
    } else if (strcmp(what, "end") == 0) {
        finish(r);
    } else {
        bad("no such line");
    }
}

int
main(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    run r = {0};
    while ((n = getline(&line, &cap, stdin)) > 0) {
        if (line[n - 1] == '\n')
            line[n - 1] = 0;
        if (line[0])
            one_line(&r, line);
    }
    free(line);
    return r.a ? 2 : 0;
}
