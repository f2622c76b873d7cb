/* Timeline in the Chrome / Perfetto trace format: one process per kernel; a thread per engine,
 * per DMA queue; counters for semaphores. Times in microseconds with picosecond digits. */
#include "runtime/sim/machine.h"

void
cps_sim_trace_begin(cps_buf *out)
{
    cps_buf_puts(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    cps_buf_puts(out, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"args\":{\"name\":"
                      "\"NeuronCore\"}}");
}

void
cps_sim_trace_end(cps_buf *out)
{
    cps_buf_puts(out, "\n]}\n");
}

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
put_thread(cps_buf *out, const char *group, unsigned track, const char *name)
{
    cps_buf_puts(out, ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":");
    cps_buf_printf(out, "%u,\"args\":{\"name\":", track);
    cps_buf b = {0};
    cps_buf_printf(&b, "%s %s", group, name);
    put_text(out, b.data);
    cps_buf_fini(&b);
    cps_buf_puts(out, "}}");
}

static void
put_slice(const cps_sim *s, const char *cat, unsigned track, const char *name, cps_ps t,
          cps_ps dur, const insn *by, int64_t bytes, cps_buf *out)
{
    const cps_kloc *at = insn_loc(s, by);
    cps_buf_printf(out, ",\n{\"ph\":\"X\",\"pid\":0,\"tid\":%u,\"name\":", track);
    put_text(out, name);
    cps_buf_puts(out, ",\"cat\":");
    put_text(out, cat);
    cps_buf_puts(out, ",\"ts\":");
    put_us(out, t);
    cps_buf_puts(out, ",\"dur\":");
    put_us(out, dur);
    cps_buf_printf(out, ",\"args\":{\"bundle\":%u", by->index);
    if (bytes >= 0)
        cps_buf_printf(out, ",\"bytes\":%lld", (long long)bytes);
    if (at) {
        cps_buf b = {0};
        cps_buf_printf(&b, "%s:%u", at->file, at->line);
        cps_buf_puts(out, ",\"source\":");
        put_text(out, b.data);
        cps_buf_fini(&b);
    }
    cps_buf_puts(out, "}}");
}

void
cps_sim_trace(const cps_sim *s, const char *name, int64_t offset_ps, cps_buf *out)
{
    if (!s->rec)
        return;
    for (int e = 0; e < CPS_ENGINES; e++)
        put_thread(out, "engine", (unsigned)e + 1, cps_engine_name((cps_engine)e));
    for (uint32_t q = 0; q < s->queues.n; q++) {
        if (s->queues.data[q].seq)
            put_thread(out, "queue", 17 + q, s->queues.data[q].name);
    }
    const recorder *r = s->rec;
    for (uint32_t k = 0; k < r->insn.n; k++) {
        const rec_insn *i = &r->insn.data[k];
        unsigned track = i->by->engine + 1u;
        // a wait shows on the track of the engine that waits, before its instruction
        if (i->ready > i->turn)
            put_slice(s, name, track, "wait", i->turn + offset_ps, i->ready - i->turn, i->by,
                      -1, out);
        put_slice(s, name, track, cps_insns[i->by->id].name, i->start + offset_ps,
                  i->free - i->start, i->by, -1, out);
    }
    for (uint32_t k = 0; k < r->xfer.n; k++) {
        const rec_xfer *x = &r->xfer.data[k];
        if (x->first >= 0)
            put_slice(s, name, 17u + x->queue, cps_insns[x->by->id].name, x->first + offset_ps,
                      x->last - x->first, x->by, x->bytes, out);
    }
    for (uint32_t k = 0; k < r->sem.n; k++) {
        const rec_sem *c = &r->sem.data[k];
        cps_buf_printf(out, ",\n{\"ph\":\"C\",\"pid\":0,\"name\":\"%c[%u]\",\"ts\":",
                       c->sem < SEMS ? 'S' : 'E', c->sem % SEMS);
        put_us(out, c->t + offset_ps);
        cps_buf_printf(out, ",\"args\":{\"value\":%lld}}", (long long)c->value);
    }
}
