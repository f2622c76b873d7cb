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

void
cps_sim_trace(const cps_sim *s, const char *name, int64_t offset_ps, cps_buf *out)
{
    for (int e = 0; e < CPS_ENGINES; e++)
        put_thread(out, "engine", (unsigned)e + 1, cps_engine_name((cps_engine)e));
    for (uint32_t q = 0; q < s->queues.n; q++) {
        if (s->queues.data[q].seq)
            put_thread(out, "queue", 17 + q, s->queues.data[q].name);
    }
    for (uint32_t k = 0; k < s->trace.n; k++) {
        const tev *t = &s->trace.data[k];
        const cps_kloc *at = insn_loc(s, t->by);
        if (t->track >= 1024) {
            cps_buf_printf(
                out, ",\n{\"ph\":\"C\",\"pid\":0,\"name\":\"S[%u]\",\"ts\":", t->track - 1024u);
            put_us(out, t->t + offset_ps);
            cps_buf_printf(out, ",\"args\":{\"value\":%lld}}", (long long)t->value);
            continue;
        }
        cps_buf_puts(out, ",\n{\"ph\":\"X\",\"pid\":0,\"tid\":");
        cps_buf_printf(out, "%u,\"name\":", t->track + 1u);
        // a wait shows on the track of the engine that waits, before its instruction
        put_text(out, t->value < 0 ? "wait" : cps_insns[t->by->id].name);
        cps_buf_puts(out, ",\"cat\":");
        put_text(out, name);
        cps_buf_puts(out, ",\"ts\":");
        put_us(out, t->t + offset_ps);
        cps_buf_puts(out, ",\"dur\":");
        put_us(out, t->dur);
        cps_buf_printf(out, ",\"args\":{\"bundle\":%u", t->by->index);
        if (t->track >= 16)
            cps_buf_printf(out, ",\"bytes\":%lld", (long long)t->value);
        if (at) {
            cps_buf b = {0};
            cps_buf_printf(&b, "%s:%u", at->file, at->line);
            cps_buf_puts(out, ",\"source\":");
            put_text(out, b.data);
            cps_buf_fini(&b);
        }
        cps_buf_puts(out, "}}");
    }
}
