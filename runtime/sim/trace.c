/* Timeline in the Chrome / Perfetto trace format. Processes group the tracks of a core: engines (one
 * thread each; waits stand before the instruction that waited), DMA queues (a thread per
 * transfer that is under way at once, phases nested), counters for memory and rates, counters
 * for semaphores. Arrows go from who raised a semaphore to who waited for it. Times in
 * microseconds with picosecond digits. */
#include "runtime/sim/view.h"

#include <stdio.h>

enum { PID_ENGINE = 1, PID_DMA, PID_RATE, PID_SEM, PIDS = 4, LANES_MAX = 64, WINDOWS = 400 };

struct cps_trace {
    cps_buf out;
    cps_symtab *queues; /* name to track, over all kernels */
    uint8_t lanes[256]; /* of each queue, named so far */
    uint64_t arrows;
    unsigned cores; /* whose processes have names */
    bool done;
};

/* A process of the core. */
static unsigned
pid_of(const cps_sim *s, unsigned kind)
{
    return kind + PIDS * s->core;
}

/* ---- pieces of JSON ---- */

static void
put_us(cps_buf *out, cps_ps t)
{
    cps_buf_printf(out, "%lld.%06lld", (long long)(t / 1000000), (long long)(t % 1000000));
}

static void
put_text(cps_buf *out, const char *s)
{
    cps_buf_putc(out, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            cps_buf_printf(out, "\\%c", c);
        else if (c < 0x20)
            cps_buf_printf(out, "\\u%04x", c);
        else
            cps_buf_putc(out, (char)c);
    }
    cps_buf_putc(out, '"');
}

static void
put_meta(cps_buf *out, const char *what, unsigned pid, unsigned tid, const char *name)
{
    cps_buf_printf(out, ",\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"args\":{",
                   what, pid, tid);
    cps_buf_puts(out, "\"name\":");
    put_text(out, name);
    cps_buf_puts(out, "}}");
}

/* Opens a slice up to its args; the caller puts members and closes with "}}". */
static void
open_slice(cps_buf *out, unsigned pid, unsigned tid, const char *name, const char *cat,
           cps_ps t, cps_ps dur)
{
    cps_buf_printf(out, ",\n{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"name\":", pid, tid);
    put_text(out, name);
    cps_buf_puts(out, ",\"cat\":");
    put_text(out, cat);
    cps_buf_puts(out, ",\"ts\":");
    put_us(out, t);
    cps_buf_puts(out, ",\"dur\":");
    put_us(out, dur);
    cps_buf_puts(out, ",\"args\":{");
}

static void
put_slice(cps_buf *out, unsigned pid, unsigned tid, const char *name, const char *cat, cps_ps t,
          cps_ps dur)
{
    open_slice(out, pid, tid, name, cat, t, dur);
    cps_buf_puts(out, "}}");
}

static void
put_arrow(cps_trace *t, char end, unsigned pid, unsigned tid, cps_ps at)
{
    cps_buf_printf(&t->out, ",\n{\"ph\":\"%c\",%s\"id\":%llu,\"pid\":%u,\"tid\":%u,", end,
                   end == 'f' ? "\"bp\":\"e\"," : "", (unsigned long long)t->arrows, pid, tid);
    cps_buf_puts(&t->out, "\"name\":\"semaphore\",\"cat\":\"semaphore\",\"ts\":");
    put_us(&t->out, at);
    cps_buf_putc(&t->out, '}');
}

static void
put_counter(cps_buf *out, unsigned pid, const char *name, cps_ps t, const char *key, double v)
{
    cps_buf_printf(out, ",\n{\"ph\":\"C\",\"pid\":%u,\"name\":", pid);
    put_text(out, name);
    cps_buf_puts(out, ",\"ts\":");
    put_us(out, t);
    cps_buf_printf(out, ",\"args\":{\"%s\":", key);
    if (v == floor(v) && fabs(v) < 1e15)
        cps_buf_printf(out, "%lld", (long long)v);
    else
        cps_buf_put_double(out, v);
    cps_buf_puts(out, "}}");
}

/* Bundle, source place and assembly text of an instruction. */
static void
put_insn(const cps_sim *s, const insn *i, cps_buf *out)
{
    const cps_kloc *at = insn_loc(s, i);
    cps_buf b = {0};
    cps_buf_printf(out, "\"bundle\":%u,\"opcode\":\"0x%02x\"", i->index, i->b.b[0]);
    if (at) {
        cps_buf_printf(&b, "%s:%u", at->file, at->line);
        cps_buf_puts(out, ",\"source\":");
        put_text(out, b.data);
        b.n = 0;
    }
    cps_isa_print(&s->k->stream[i->engine].code.data[i->index], s->k->gen, &b);
    cps_buf_puts(out, ",\"text\":");
    put_text(out, b.data);
    cps_buf_fini(&b);
}

/* ---- engines ---- */

static void
put_engine_slices(cps_trace *t, const cps_sim *s, const view *v, const char *name, cps_ps shift)
{
    cps_buf *out = &t->out;
    for (uint32_t k = 0; k < s->rec->insn.n; k++) {
        const rec_insn *r = &s->rec->insn.data[k];
        unsigned tid = r->by->engine + 1u;
        if (r->ready > r->turn) {
            open_slice(out, pid_of(s, PID_ENGINE), tid, "wait", "stall", r->turn + shift,
                       r->ready - r->turn);
            cps_buf_puts(out, "\"for\":");
            put_text(out, view_source_name(s, v, view_source(s, v, r->freed_by)));
            if (r->freed_by != REC_NONE) {
                const rec_sem *c = &s->rec->sem.data[r->freed_by];
                cps_buf_printf(out, ",\"%s\":%u,\"value\":%lld",
                               c->sem < SEMS ? "semaphore" : "event", c->sem % SEMS,
                               (long long)c->value);
            }
            cps_buf_puts(out, "}}");
        }
        if (r->own > r->ready)
            put_slice(out, pid_of(s, PID_ENGINE), tid, time_rows[TIME_OWN].name, "stall", r->ready + shift,
                      r->own - r->ready);
        if (r->start > r->own)
            put_slice(out, pid_of(s, PID_ENGINE), tid, time_rows[TIME_PORT].name, "stall", r->own + shift,
                      r->start - r->own);
        open_slice(out, pid_of(s, PID_ENGINE), tid, cps_insns[r->by->id].name, name, r->start + shift,
                   r->free - r->start);
        put_insn(s, r->by, out);
        if (r->warm)
            cps_buf_printf(out, ",\"warm_up_ps\":%lld", (long long)r->warm);
        cps_buf_printf(out, ",\"result_ps\":%lld}}", (long long)(r->done - r->start));
    }
}

/* ---- transfers ---- */

static unsigned
queue_track(cps_trace *t, const cps_sim *s, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "%u %s", s->core, name);
    cps_sym id = cps_sym_intern(t->queues, key);
    return CPS_MIN((unsigned)id, (unsigned)cps_countof(t->lanes) - 1);
}

static unsigned
lane_tid(cps_trace *t, const cps_sim *s, const char *name, unsigned lane)
{
    unsigned track = queue_track(t, s, name), tid = track * LANES_MAX + lane;
    if (lane >= t->lanes[track]) {
        cps_buf b = {0};
        cps_buf_puts(&b, name);
        if (lane)
            cps_buf_printf(&b, " +%u", lane);
        put_meta(&t->out, "thread_name", pid_of(s, PID_DMA), tid, b.data);
        cps_buf_fini(&b);
        t->lanes[track] = (uint8_t)(lane + 1);
    }
    return tid;
}

/* The thread of each transfer: the first of its queue that is free when it is issued. */
static uint32_t *
lanes_of(cps_trace *t, const cps_sim *s)
{
    uint32_t *tid = cps_new_array(s->run_arena, uint32_t, s->rec->xfer.n + 1);
    cps_ps(*until)[LANES_MAX] =
        cps_arena_alloc(s->run_arena, (s->queues.n + 1) * sizeof *until);
    for (uint32_t k = 0; k < s->rec->xfer.n; k++) {
        const rec_xfer *x = &s->rec->xfer.data[k];
        unsigned lane = 0;
        while (lane + 1 < LANES_MAX && until[x->queue][lane] > x->issue)
            lane++;
        until[x->queue][lane] = x->seen;
        tid[k] = lane_tid(t, s, s->queues.data[x->queue].name, lane);
    }
    return tid;
}

static void
put_transfers(cps_trace *t, const cps_sim *s, const uint32_t *tid, const char *name,
              cps_ps shift)
{
    static const char *const way[4] = {"on chip", "load", "store", "HBM to HBM"};
    cps_buf *out = &t->out;
    for (uint32_t k = 0; k < s->rec->xfer.n; k++) {
        const rec_xfer *x = &s->rec->xfer.data[k];
        cps_ps first = x->first < 0 ? x->last : x->first;
        open_slice(out, pid_of(s, PID_DMA), tid[k], way[x->from_var + 2 * x->to_var], name,
                   x->issue + shift, x->seen - x->issue);
        put_insn(s, x->by, out);
        cps_buf_printf(out,
                       ",\"engine\":\"%s\",\"bytes\":%lld,\"descriptors\":%u,"
                       "\"held_by_issue_ps\":%lld}}",
                       cps_engine_name((cps_engine)x->by->engine), (long long)x->bytes,
                       x->ndesc, (long long)(x->issue - x->trigger));
        put_slice(out, pid_of(s, PID_DMA), tid[k], "start", "dma", x->issue + shift, first - x->issue);
        put_slice(out, pid_of(s, PID_DMA), tid[k], "move", "dma", first + shift, x->last - first);
        put_slice(out, pid_of(s, PID_DMA), tid[k], "receipt", "dma", x->last + shift, x->seen - x->last);
    }
}

static void
put_arrows(cps_trace *t, const cps_sim *s, const uint32_t *tid, cps_ps shift)
{
    for (uint32_t k = 0; k < s->rec->insn.n; k++) {
        const rec_insn *r = &s->rec->insn.data[k];
        uint32_t from = r->freed_by == REC_NONE ? REC_NONE : s->rec->sem.data[r->freed_by].from;
        if (from == REC_NONE)
            continue;
        t->arrows++;
        if (from & REC_XFER)
            put_arrow(t, 's', pid_of(s, PID_DMA), tid[from & ~REC_XFER],
                      view_xfer(s, from)->issue + shift);
        else
            put_arrow(t, 's', pid_of(s, PID_ENGINE), s->rec->insn.data[from].by->engine + 1u,
                      s->rec->insn.data[from].start + shift);
        put_arrow(t, 'f', pid_of(s, PID_ENGINE), r->by->engine + 1u, r->start + shift);
    }
}

/* ---- counters ---- */

static void
put_series(const cps_sim *s, cps_buf *out, const char *name, const series *p, cps_ps shift)
{
    for (uint32_t k = 0; k < p->n; k++)
        put_counter(out, pid_of(s, PID_RATE), name, p->data[k].t + shift, "bytes", (double)p->data[k].v);
}

/* Mean over equal windows of the run. */
static void
put_windows(const cps_sim *s, cps_buf *out, const view *v, const char *name, const char *key,
            const double *sum, double scale, cps_ps shift)
{
    double wide = (double)(v->end - v->begin) / WINDOWS;
    for (unsigned w = 0; w <= WINDOWS && wide > 0; w++)
        put_counter(out, pid_of(s, PID_RATE), name, v->begin + (cps_ps)(wide * w) + shift, key,
                    w < WINDOWS ? floor(1000 * scale * sum[w] / wide) / 1000 : 0);
}

static void
spread(const view *v, cps_ps a, cps_ps b, double amount, double *sum)
{
    double wide = (double)(v->end - v->begin) / WINDOWS;
    double x = (double)(a - v->begin) / wide, y = (double)(b - v->begin) / wide;
    if (wide <= 0 || y <= x)
        return;
    for (double w = floor(CPS_MAX(x, 0)); w < CPS_MIN(y, WINDOWS); w++)
        sum[(unsigned)w] += amount * (CPS_MIN(y, w + 1) - CPS_MAX(x, w)) / (y - x);
}

static void
put_rates(cps_trace *t, cps_sim *s, const view *v, cps_ps shift)
{
    double *busy = cps_new_array(s->run_arena, double, 3 * WINDOWS);
    double *macs = busy + WINDOWS, *bytes = macs + WINDOWS;
    for (uint32_t k = 0; k < s->rec->insn.n; k++) {
        const rec_insn *r = &s->rec->insn.data[k];
        if (r->by->engine != CPS_PE || !view_data(r))
            continue;
        spread(v, r->start, r->free, (double)(r->free - r->start), busy);
        spread(v, r->start, r->free, (double)r->macs, macs);
    }
    for (uint32_t k = 0; k < s->rec->xfer.n; k++) {
        const rec_xfer *x = &s->rec->xfer.data[k];
        if (x->first >= 0)
            spread(v, x->first, x->last, (double)x->bytes, bytes);
    }
    // one MAC for each of 128 x 128 cells and cycle is the peak
    put_windows(s, &t->out, v, "PE busy", "percent", busy, 100, shift);
    put_windows(s, &t->out, v, "PE of peak", "percent", macs,
                100e6 / (128.0 * 128.0 * s->t->pe_mhz), shift);
    put_windows(s, &t->out, v, "DMA rate", "GB/s", bytes, 1000, shift);
    put_series(s, &t->out, "DMA bytes in flight", view_flight(s), shift);
    put_series(s, &t->out, "SBUF bytes in use", view_usage(s, 0), shift);
    put_series(s, &t->out, "PSUM bytes in use", view_usage(s, 1), shift);
}

/* ---- the file ---- */

/* Names the processes of a core; those of the first one are what they are alone. */
static void
name_processes(cps_trace *t, unsigned core)
{
    static const char *const names[PIDS] = {"NeuronCore engines", "DMA queues", "memory and rates",
                                            "semaphores"};
    for (unsigned k = core ? 0 : 1; k < PIDS; k++) { // the first name of all opens the file
        char name[40];
        snprintf(name, sizeof name, core ? "core %u: %s" : "%.0u%s", core, names[k]);
        put_meta(&t->out, "process_name", PIDS * core + k + 1, 0, name);
    }
    for (int e = 0; e < CPS_ENGINES; e++)
        put_meta(&t->out, "thread_name", PIDS * core + PID_ENGINE, (unsigned)e + 1,
                 cps_engine_name((cps_engine)e));
}

cps_trace *
cps_trace_create(void)
{
    cps_trace *t = calloc(1, sizeof *t);
    if (!t)
        cps_bug("no memory for a trace");
    t->queues = cps_symtab_create();
    cps_buf_puts(&t->out,
                 "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
                 "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"tid\":0,\"args\":"
                 "{\"name\":\"NeuronCore engines\"}}");
    name_processes(t, 0);
    t->cores = 1;
    return t;
}

void
cps_trace_destroy(cps_trace *t)
{
    if (!t)
        return;
    cps_buf_fini(&t->out);
    cps_symtab_destroy(t->queues);
    free(t);
}

const cps_buf *
cps_trace_text(cps_trace *t)
{
    if (!t->done)
        cps_buf_puts(&t->out, "\n]}\n");
    t->done = true;
    return &t->out;
}

void
cps_trace_add(cps_trace *t, cps_sim *s, const char *name, int64_t offset_ps)
{
    const view *v = view_of(s);
    if (!v || t->done)
        return;
    while (t->cores <= s->core)
        name_processes(t, t->cores++);
    const uint32_t *tid = lanes_of(t, s);
    put_engine_slices(t, s, v, name, offset_ps);
    put_transfers(t, s, tid, name, offset_ps);
    put_arrows(t, s, tid, offset_ps);
    put_rates(t, s, v, offset_ps);
    for (uint32_t k = 0; k < s->rec->sem.n; k++) {
        const rec_sem *c = &s->rec->sem.data[k];
        char label[16];
        snprintf(label, sizeof label, "%c[%u]", c->sem < SEMS ? 'S' : 'E', c->sem % SEMS);
        put_counter(&t->out, pid_of(s, PID_SEM), label, c->t + offset_ps, "value", (double)c->value);
    }
}
