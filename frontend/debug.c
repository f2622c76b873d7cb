/* The debugger: stops a simulated run at breakpoints and changes of watched bytes, and answers
 * questions there. */
#include "frontend/debug.h"

#include "frontend/debug_spot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct stop {
    const char *text; /* as given */
    bool watch, gone;
    bool here;        /* watch: the kernel has the place */
    bool ever;        /* reached, or the place was there, in some kernel */
    cps_breakpoint at;
    cps_area area;
    uint8_t *old, *old_written, *now, *now_written;
} stop;

typedef struct dump {
    const char *text;
    cps_area area;
    bool here, ever;
} dump;

struct cps_debug {
    cps_cli *c;
    cps_sim_group *group;
    unsigned cores, core; /* core: the one that stopped, or that a command chose */
    cps_sim *s;           /* its machine */
    const char *kernel;
    CPS_VEC(stop) stops; /* number k + 1 */
    CPS_VEC(dump) dumps;
    bool talks;   /* standard input has not ended */
    bool tty, quit, fresh;
    bool fresh_core[CPS_SIM_CORES]; /* it has not begun */
    bool ended;   /* the run is over: only looking is possible */
    bool engaged; /* it was stopped at least once */
    uint64_t steps; /* instructions until the next stop; 0: none */
    int step_core, step_engine; /* counted alone, or -1 */
};

/* ---- setting up ---- */

static bool
add_break(cps_debug *g, const char *s)
{
    stop x = {.text = cps_arena_strdup(g->c->arena, s)};
    if (!cps_breakpoint_parse(g->c->arena, s, &x.at))
        return false;
    cps_vec_push(g->c->arena, &g->stops, x);
    return true;
}

static bool
add_watch(cps_debug *g, const char *s)
{
    stop x = {.text = cps_arena_strdup(g->c->arena, s), .watch = true};
    if (!cps_area_parse(g->c->arena, s, false, &x.area) || x.area.len > 1 << 20)
        return false;
    x.old = cps_arena_alloc(g->c->arena, 4 * x.area.len);
    x.old_written = x.old + x.area.len;
    x.now = x.old + 2 * x.area.len;
    x.now_written = x.old + 3 * x.area.len;
    cps_vec_push(g->c->arena, &g->stops, x);
    return true;
}

cps_debug *
cps_debug_open(cps_cli *c, bool *ok)
{
    if (!cps_cli_has(c, CPS_OPT_BREAK) && !cps_cli_has(c, CPS_OPT_WATCH) && !cps_cli_has(c, CPS_OPT_DUMP))
        return NULL;
    cps_debug *g = cps_new(c->arena, cps_debug);
    g->c = c;
    g->step_core = g->step_engine = -1;
    g->tty = isatty(STDIN_FILENO);
    g->talks = cps_cli_has(c, CPS_OPT_BREAK) || cps_cli_has(c, CPS_OPT_WATCH);
    for (uint32_t k = 0; k < c->opt[CPS_OPT_BREAK].n; k++)
        if (!add_break(g, c->opt[CPS_OPT_BREAK].data[k])) {
            cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'--break %s' names no place", c->opt[CPS_OPT_BREAK].data[k]);
            cps_help(c->diags, "start, pe:12, 63, matmul.cps:63, MATMUL or pe:MATMUL, or core1:pe:12 where there are cores; `copse isa` "
                     "lists opcodes");
            *ok = false;
        }
    for (uint32_t k = 0; k < c->opt[CPS_OPT_WATCH].n; k++)
        if (!add_watch(g, c->opt[CPS_OPT_WATCH].data[k])) {
            cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'--watch %s' names no bytes", c->opt[CPS_OPT_WATCH].data[k]);
            cps_help(c->diags, "sbuf:PARTITION:BYTE, psum:PARTITION:BYTE or hbm:NAME:BYTE, and :LEN (default 4, at most 1 MiB)");
            *ok = false;
        }
    for (uint32_t k = 0; k < c->opt[CPS_OPT_DUMP].n; k++) {
        dump x = {.text = c->opt[CPS_OPT_DUMP].data[k]};
        if (!cps_area_parse(c->arena, x.text, true, &x.area)) {
            cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'--dump %s' names no tensor", x.text);
            cps_help(c->diags, "SPACE:PARTITION:BYTE:SHAPE:DTYPE and perhaps =F.npy, as in sbuf:0:4096:128x512:bf16; hbm:NAME:BYTE:...");
            *ok = false;
        }
        cps_vec_push(c->arena, &g->dumps, x);
    }
    return g;
}

/* ---- what is printed ---- */

static void
put_time(int64_t ps)
{
    printf("%" PRId64 ".%06" PRId64 " us", ps / 1000000, ps % 1000000);
}

/* "pe", or "core 1 pe" where there are several cores. */
static void
put_engine(cps_debug *g, cps_engine e)
{
    if (g->cores > 1)
        printf("core %u ", g->core);
    printf("%s", cps_engine_name(e));
}

static void
put_insn(cps_debug *g, cps_engine e, uint32_t index)
{
    cps_buf b = {0};
    cps_place at;
    if (cps_sim_insn(g->s, e, index, &at, &b)) {
        put_engine(g, e);
        printf("[%u] %s", index, b.data);
        if (at.file)
            printf("  // %s:%u", at.file, at.line);
        printf("\n");
    }
    cps_buf_fini(&b);
}

static void
put_hex(const uint8_t *v, const uint8_t *written, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        if (written && !written[k])
            printf(" --");
        else
            printf(" %02x", v[k]);
    }
}

static void
look_at(cps_debug *g, unsigned core)
{
    g->core = core;
    g->s = cps_sim_group_core(g->group, core);
}

/* Takes a core's name off a word of a command and looks at that core; false after a message. */
static bool
take_core(cps_debug *g, const char **word)
{
    int core = -1;
    if (*word)
        *word = cps_core_parse(*word, &core);
    if (core >= (int)g->cores) {
        printf("there is no core %d\n", core);
        return false;
    }
    if (core >= 0)
        look_at(g, (unsigned)core);
    if (*word && !**word)
        *word = NULL;
    return true;
}

static void
put_transfers(cps_debug *g)
{
    cps_buf b = {0};
    cps_sim_transfers(g->s, &b);
    for (const char *line = b.n ? b.data : "", *end; *line; line = end) {
        end = strchr(line, '\n') + 1;
        if (g->cores > 1)
            printf("core %u ", g->core);
        printf("%.*s", (int)(end - line), line);
    }
    cps_buf_fini(&b);
}

/* Every engine of the core that is looked at. */
static void
where_core(cps_debug *g)
{
    for (int e = 0; e < CPS_ENGINES; e++) {
        cps_place p = cps_sim_where(g->s, (cps_engine)e);
        if (!p.count)
            continue;
        put_engine(g, (cps_engine)e);
        if (p.state == CPS_AT_END) {
            printf(": at the end of its %u instructions\n", p.count);
            continue;
        }
        printf(": ");
        if (p.state == CPS_AT_WAIT)
            printf("waits for %c[%d], which is %" PRId64 " and shall be %" PRId64 "; ", p.semaphore < 256 ? 'S' : 'E',
                   p.semaphore % 256, p.value, p.wanted);
        else if (p.state == CPS_AT_BUSY) {
            printf("busy until ");
            put_time(p.until_ps);
            printf("; ");
        }
        printf("next is ");
        put_insn(g, (cps_engine)e, p.index);
    }
    put_transfers(g);
}

static void
where(cps_debug *g)
{
    unsigned core = g->core;
    printf("kernel %s at ", g->kernel);
    put_time(cps_sim_now(g->s));
    printf("\n");
    for (unsigned k = 0; k < g->cores; k++) {
        look_at(g, k);
        where_core(g);
    }
    look_at(g, core);
}

static int
engine_named(const char *s)
{
    for (int e = 0; s && e < CPS_ENGINES; e++)
        if (!strcmp(s, cps_engine_name((cps_engine)e)))
            return e;
    return -1;
}

static void
registers(cps_debug *g, const char *which)
{
    if (!take_core(g, &which))
        return;
    int only = engine_named(which);
    if (which && only < 0) {
        printf("there is no engine '%s'\n", which);
        return;
    }
    for (int e = 0; e < CPS_ENGINES; e++) {
        unsigned shown = 0;
        if ((only >= 0 && only != e) || !cps_sim_where(g->s, (cps_engine)e).count)
            continue;
        put_engine(g, (cps_engine)e);
        printf(":");
        for (unsigned r = 0; r < cps_sim_registers(); r++) {
            uint32_t v = cps_sim_register(g->s, (cps_engine)e, r);
            if (v)
                printf(" r%u=0x%x", r, v);
            shown += v != 0;
        }
        printf(shown ? "\n" : " all zero\n");
    }
}

static void
semaphores(cps_debug *g, const char *which)
{
    int64_t n;
    if (!take_core(g, &which))
        return;
    if (which && (!cps_parse_int(which, strlen(which), &n) || n < 0 || n >= cps_sim_semaphores())) {
        printf("there is no semaphore '%s'\n", which);
        return;
    }
    if (which) {
        printf("S[%" PRId64 "] = %" PRId64 ", E[%" PRId64 "] = %d\n", n, cps_sim_semaphore(g->s, (unsigned)n), n,
               cps_sim_event_bit(g->s, (unsigned)n));
        return;
    }
    unsigned shown = 0;
    for (unsigned k = 0; k < cps_sim_semaphores(); k++) {
        int64_t v = cps_sim_semaphore(g->s, k);
        if (v)
            printf("%sS[%u] = %" PRId64, shown++ ? ", " : "", k, v);
        if (cps_sim_event_bit(g->s, k))
            printf("%sE[%u] set", shown++ ? ", " : "", k);
    }
    printf(shown ? "\n" : "all semaphores are 0\n");
}

static void
put_value(cps_dtype t, const void *p)
{
    if (cps_dtype_is_int(t))
        printf(" %" PRId64, cps_to_i64(t, p));
    else
        printf(" %.6g", cps_to_f64(t, p));
}

/* The machine that a place of a command is of: the core that it names, or the one that is looked at. */
static bool
find_here(cps_debug *g, cps_area *x)
{
    if (x->core < 0)
        x->core = (int)g->core;
    return x->core < (int)g->cores && cps_area_find(x, cps_sim_group_core(g->group, (unsigned)x->core)) &&
           cps_area_fits(x, cps_sim_group_core(g->group, (unsigned)x->core));
}

static cps_sim *
machine(const cps_debug *g, const cps_area *x)
{
    return cps_sim_group_core(g->group, (unsigned)x->core);
}

static void
memory(cps_debug *g, const char *what, const char *type)
{
    cps_area x;
    cps_dtype t = type ? cps_dtype_parse(type, strlen(type)) : CPS_DT_NONE;
    if (!what || !cps_area_parse(g->c->arena, what, false, &x) || (type && t == CPS_DT_NONE)) {
        printf("mem SPACE:PARTITION:BYTE[:LEN] [DTYPE]\n");
        return;
    }
    if (!find_here(g, &x)) {
        printf("%s is no memory of kernel %s\n", what, g->kernel);
        return;
    }
    size_t n = CPS_MIN(x.len, (size_t)65536);
    uint8_t *v = malloc(2 * n + 8);
    if (!v || !cps_sim_peek(machine(g, &x), &x.at, n, v, v + n)) {
        free(v);
        return;
    }
    size_t es = t == CPS_DT_NONE ? 1 : cps_dtype_bytes(t), per = t == CPS_DT_NONE ? 16 : 8 * es;
    for (size_t k = 0; k < n; k += per) {
        size_t m = CPS_MIN(per, n - k);
        printf("%8" PRId64 ":", x.at.byte + (int64_t)k);
        if (t == CPS_DT_NONE)
            put_hex(v + k, v + n + k, m);
        for (size_t q = k; t != CPS_DT_NONE && q + es <= k + m; q += es)
            v[n + q] ? put_value(t, v + q) : (void)printf(" --");
        printf("\n");
    }
    free(v);
}

/* A tensor as rows of text, or into its file. */
static bool
show_dump(cps_debug *g, const char *text, const cps_area *x)
{
    uint8_t *v = cps_area_read(x, machine(g, x), g->c->arena);
    if (!v) {
        printf("%s is not bound\n", text);
        return true;
    }
    if (x->path) {
        cps_buf b = {0};
        cps_npy_format(&b, x->dtype, x->rank, x->dim, v);
        bool ok = cps_cli_write(g->c, x->path, b.data, b.n);
        cps_buf_fini(&b);
        printf(ok ? "%s written\n" : "%s not written\n", x->path);
        return ok;
    }
    int64_t cols = x->rank > 1 ? x->dim[x->rank - 1] : 1, rows = 1;
    for (int d = 0; d < x->rank - (x->rank > 1); d++)
        rows *= x->dim[d];
    printf("%s of kernel %s\n", text, g->kernel);
    size_t es = cps_dtype_bytes(x->dtype);
    for (int64_t r = 0; r < rows; r++) {
        if (rows > 16 && r == 8) {
            printf("  ... %" PRId64 " rows\n", rows - 16);
            r = rows - 8;
        }
        printf("  [%" PRId64 "]", r);
        for (int64_t c = 0; c < cols; c++) {
            if (cols > 16 && c == 8) {
                printf(" ...");
                c = cols - 8;
            }
            put_value(x->dtype, v + (size_t)(r * cols + c) * es);
        }
        printf("\n");
    }
    return true;
}

static void
dump_command(cps_debug *g, const char *what)
{
    cps_area x;
    if (!what || !cps_area_parse(g->c->arena, what, true, &x))
        printf("dump SPACE:PARTITION:BYTE:SHAPE:DTYPE[=F.npy]\n");
    else if (!find_here(g, &x))
        printf("%s is no memory of kernel %s\n", what, g->kernel);
    else
        show_dump(g, what, &x);
}

static void
list(cps_debug *g, cps_engine about, const char *which)
{
    if (!take_core(g, &which))
        return;
    int e = which ? engine_named(which) : (int)about;
    if (e < 0) {
        printf("there is no engine '%s'\n", which);
        return;
    }
    cps_place p = cps_sim_where(g->s, (cps_engine)e);
    for (uint32_t k = p.index > 5 ? p.index - 5 : 0; k < p.index + 6 && k < p.count; k++) {
        printf(k == p.index ? "> " : "  ");
        put_insn(g, (cps_engine)e, k);
    }
}

static void
info(cps_debug *g)
{
    unsigned shown = 0;
    for (uint32_t k = 0; k < g->stops.n; k++) {
        const stop *x = &g->stops.data[k];
        if (x->gone)
            continue;
        printf("%u: %s %s%s\n", k + 1, x->watch ? "watch" : "break", x->text,
               x->watch && !x->here ? " (not in this kernel)" : "");
        shown++;
    }
    if (!shown)
        printf("no breakpoints\n");
}

/* ---- commands ---- */

static const char help[] =
    "step [N]            N instructions on, of any engine (default 1); step ENGINE [N]: of that one\n"
    "continue            to the next stop; after the end of a kernel, to the next one\n"
    "where               time, every engine's next instruction and what it waits for, transfers\n"
    "core [N]            the core that the other commands are about: the one that stopped, or core N\n"
    "list [ENGINE]       instructions around the next one\n"
    "regs [ENGINE]       registers that are not 0\n"
    "sems [N]            semaphores that are not 0, or one\n"
    "mem SPACE:PARTITION:BYTE[:LEN] [DTYPE]   bytes (-- was never written) or values\n"
    "dump SPACE:PARTITION:BYTE:SHAPE:DTYPE[=F.npy]   a tensor; its first extent counts partitions\n"
    "break WHERE         start, ENGINE:PC, LINE, FILE:LINE, OPCODE, ENGINE:OPCODE\n"
    "watch SPACE:PARTITION:BYTE[:LEN]         stops when the bytes change\n"
    "info, delete N      the stops\n"
    "quit                ends the run\n"
    "SPACE is sbuf or psum; hbm:NAME:BYTE is a variable. Of several cores one is named by core1: in front,\n"
    "as in core1:pe, core1:sbuf:0:0 or core1:MATMUL; a break without one is of any core. The first letter of a command is enough;\n"
    "an empty line repeats the last one. At the end of the input the run goes on without stops.\n";

static void arm(cps_debug *g, stop *x);

static void
new_watch(cps_debug *g, const char *text)
{
    stop *x = &g->stops.data[g->stops.n - 1];
    x->here = x->ever = find_here(g, &x->area);
    arm(g, x);
    if (x->here) {
        printf("%u: watch %s\n", g->stops.n, text);
    } else {
        printf("%s is no memory of kernel %s\n", text, g->kernel);
        g->stops.n--;
    }
}

static void
choose_core(cps_debug *g, const char *which)
{
    int64_t n = g->core;
    if (which && (!cps_parse_int(which, strlen(which), &n) || n < 0 || n >= g->cores)) {
        printf("there is no core '%s'\n", which);
        return;
    }
    look_at(g, (unsigned)n);
    printf("core %u of %u\n", g->core, g->cores);
}

/* Executes one line; true when the run goes on. */
static bool
command(cps_debug *g, cps_engine about, char *line)
{
    char *save = NULL, *word[4] = {0};
    unsigned n = 0;
    for (char *w = strtok_r(line, " \t\r\n", &save); w && n < 4; w = strtok_r(NULL, " \t\r\n", &save))
        word[n++] = w;
    const char *a = word[1], *b = word[2];
    static const char *const names[] = {"step",  "continue", "where", "list", "regs", "sems", "mem",
                                        "dump",  "break",    "watch", "info", "delete", "help", "quit", "core"};
    const char *name = NULL;
    for (unsigned k = 0; k < cps_countof(names) && !name; k++)
        if (!strncmp(names[k], word[0], strlen(word[0])) && (word[0][1] || strchr("scwlmbiqhd", word[0][0])))
            name = names[k];
    if (!name) {
        printf("no command '%s'; 'help' lists them\n", word[0]);
    } else if (!strcmp(name, "step") || !strcmp(name, "continue")) {
        int64_t count = 1;
        int core = -1;
        const char *what = *name == 's' && a ? cps_core_parse(a, &core) : a;
        int e = *name == 's' ? engine_named(what) : -1;
        const char *num = e >= 0 || core >= 0 ? b : a;
        if (e >= 0 && core < 0)
            core = (int)g->core;
        if (g->ended && *name == 's') {
            printf("the run has ended\n");
        } else if (core >= (int)g->cores || (core >= 0 && e < 0 && *what) ||
                   (*name == 's' && num && (!cps_parse_int(num, strlen(num), &count) || count < 1))) {
            printf("step [ENGINE] [N]\n");
        } else {
            g->steps = *name == 's' ? (uint64_t)count : 0;
            g->step_core = core;
            g->step_engine = e;
            return true;
        }
    } else if (!strcmp(name, "where")) {
        where(g);
    } else if (!strcmp(name, "core")) {
        choose_core(g, a);
    } else if (!strcmp(name, "list")) {
        list(g, about, a);
    } else if (!strcmp(name, "regs")) {
        registers(g, a);
    } else if (!strcmp(name, "sems")) {
        semaphores(g, a);
    } else if (!strcmp(name, "mem")) {
        memory(g, a, b);
    } else if (!strcmp(name, "dump")) {
        dump_command(g, a);
    } else if (!strcmp(name, "break")) {
        if (a && add_break(g, a))
            printf("%u: break %s\n", g->stops.n, a);
        else
            printf("break start | ENGINE:PC | LINE | FILE:LINE | OPCODE | ENGINE:OPCODE\n");
    } else if (!strcmp(name, "watch")) {
        if (!a || !add_watch(g, a))
            printf("watch SPACE:PARTITION:BYTE[:LEN]\n");
        else
            new_watch(g, a);
    } else if (!strcmp(name, "info")) {
        info(g);
    } else if (!strcmp(name, "delete")) {
        int64_t k = 0;
        if (a && cps_parse_int(a, strlen(a), &k) && k >= 1 && k <= g->stops.n)
            g->stops.data[k - 1].gone = true;
        else
            printf("delete N\n");
    } else if (!strcmp(name, "help")) {
        printf("%s", help);
    } else {
        g->quit = true;
        return true;
    }
    return false;
}

/* Reads commands until the run goes on. */
static void
talk(cps_debug *g, cps_engine about)
{
    char line[4096], last[4096] = "";
    g->steps = 0;
    while (g->talks) {
        if (g->tty)
            printf("(copse) ");
        fflush(stdout);
        if (!fgets(line, sizeof line, stdin)) {
            g->talks = false;
            break;
        }
        if (strspn(line, " \t\r\n") == strlen(line))
            memcpy(line, last, sizeof line);
        if (strspn(line, " \t\r\n") == strlen(line))
            continue;
        memcpy(last, line, sizeof last);
        if (command(g, about, line))
            return;
    }
}

/* ---- stops ---- */

/* The core of a place that names none: the only one, or any that has the variable when all that have
 * it see the same memory; -1 when none has it, -2 when it may be of several. */
static int
core_of(const cps_debug *g, cps_area x)
{
    int found = -1;
    uint32_t at = 0;
    for (unsigned k = 0; k < g->cores; k++) {
        const cps_sim *s = cps_sim_group_core(g->group, k);
        if (!cps_area_find(&x, s))
            continue;
        if (found >= 0 && !(x.var && cps_sim_same_variable(cps_sim_group_core(g->group, (unsigned)found), at, s,
                                                           x.at.partition)))
            return -2;
        found = found < 0 ? (int)k : found;
        at = found == (int)k ? x.at.partition : at;
    }
    return found;
}

/* Finds a place of the command line in the kernel: `here` when the kernel has it; `x` then names its
 * core. False after E1104. */
static bool
find(cps_debug *g, const char *opt, const char *text, cps_area *x, bool *here)
{
    int named;
    cps_core_parse(text, &named);
    x->core = named >= 0 ? named : core_of(g, *x);
    *here = false;
    if (x->core == -2) {
        cps_error(g->c->diags, CPS_E1104, CPS_NOSPAN, "'%s %s' names no core, and kernel '%s' runs on %u", opt, text,
                  g->kernel, g->cores);
        cps_help(g->c->diags, "%s core0:%s, or another core's", opt, text);
        return false;
    }
    if (x->core < 0 || x->core >= (int)g->cores || !cps_area_find(x, machine(g, x)))
        return true;
    *here = cps_area_fits(x, machine(g, x));
    if (!*here)
        cps_error(g->c->diags, CPS_E1104, CPS_NOSPAN, "'%s %s' lies outside memory", opt, text);
    return *here;
}

/* Takes the present bytes as known. */
static void
arm(cps_debug *g, stop *x)
{
    x->here = x->watch && x->here && cps_sim_peek(machine(g, &x->area), &x->area.at, x->area.len, x->old, x->old_written);
}

static void
stopped(cps_debug *g, const char *why, const char *what, unsigned id)
{
    printf("stop at ");
    put_time(cps_sim_now(g->s));
    if (id)
        printf(": %s %u (%s)\n", why, id, what);
    else
        printf(": %s\n", why);
    g->engaged = true;
}

static void
before(cps_debug *g, cps_engine e, uint32_t index)
{
    cps_place at = cps_sim_where(g->s, e);
    bool halt = false;
    for (uint32_t k = 0; g->fresh && k < g->stops.n; k++)
        arm(g, &g->stops.data[k]); // the run has set memory up
    for (uint32_t k = 0; k < g->stops.n && !halt; k++) {
        stop *x = &g->stops.data[k];
        bool begins = x->at.core < 0 ? g->fresh : g->fresh_core[g->core] && x->at.core == (int)g->core;
        if (x->watch || x->gone || !(x->at.start ? begins : cps_breakpoint_hit(&x->at, g->core, e, index, &at)))
            continue;
        x->ever = halt = true;
        stopped(g, "break", x->text, k + 1);
    }
    g->fresh = g->fresh_core[g->core] = false;
    bool counts = (g->step_core < 0 || g->step_core == (int)g->core) && (g->step_engine < 0 || g->step_engine == (int)e);
    if (!halt && g->steps && counts && --g->steps == 0) {
        halt = true;
        stopped(g, "step", "", 0);
    }
    if (!halt || !g->talks)
        return;
    printf("next is ");
    put_insn(g, e, index);
    talk(g, e);
}

static void
after(cps_debug *g, bool moved, cps_engine e, uint32_t index)
{
    bool halt = false;
    for (uint32_t k = 0; k < g->stops.n; k++) {
        stop *x = &g->stops.data[k];
        size_t n = x->area.len;
        if (!x->watch || x->gone || !x->here || !cps_sim_peek(machine(g, &x->area), &x->area.at, n, x->now, x->now_written) ||
            (!memcmp(x->old, x->now, n) && !memcmp(x->old_written, x->now_written, n)))
            continue;
        size_t from = 0, to = n;
        while (x->old[from] == x->now[from] && x->old_written[from] == x->now_written[from])
            from++;
        while (x->old[to - 1] == x->now[to - 1] && x->old_written[to - 1] == x->now_written[to - 1])
            to--;
        stopped(g, "watch", x->text, k + 1);
        size_t show = CPS_MIN(to - from, (size_t)16);
        printf("bytes %" PRId64 " to %" PRId64 ":", x->area.at.byte + (int64_t)from, x->area.at.byte + (int64_t)to - 1);
        put_hex(x->old + from, x->old_written + from, show);
        printf(" ->");
        put_hex(x->now + from, x->now_written + from, show);
        printf("%s\n%s ", show < to - from ? " ..." : "", moved ? "moved by the transfer of" : "written by");
        put_insn(g, e, index);
        memcpy(x->old, x->now, n);
        memcpy(x->old_written, x->now_written, n);
        halt = true;
    }
    if (halt && g->talks)
        talk(g, e);
}

static bool
probe(void *self, cps_probe_kind kind, unsigned core, cps_engine e, uint32_t index)
{
    cps_debug *g = self;
    look_at(g, core);
    if (kind == CPS_PROBE_BEFORE)
        before(g, e, index);
    else
        after(g, kind == CPS_PROBE_MOVED, e, index);
    return !g->quit;
}

bool
cps_debug_attach(cps_debug *g, cps_sim_group *s, unsigned cores, const char *kernel, cps_sim_opts *o)
{
    if (!g)
        return true;
    g->group = s;
    g->cores = cores;
    look_at(g, 0);
    g->kernel = kernel;
    g->fresh = true;
    for (unsigned k = 0; k < cores; k++)
        g->fresh_core[k] = true;
    g->ended = g->engaged = false;
    g->steps = 0;
    bool ok = true;
    for (uint32_t k = 0; k < g->stops.n; k++) {
        stop *x = &g->stops.data[k];
        if (x->watch && !x->gone)
            ok = find(g, "--watch", x->text, &x->area, &x->here) && ok;
        x->ever |= x->watch && x->here;
    }
    for (uint32_t k = 0; k < g->dumps.n; k++) {
        dump *x = &g->dumps.data[k];
        ok = find(g, "--dump", x->text, &x->area, &x->here) && ok;
    }
    o->probe = g->stops.n || g->talks ? probe : NULL;
    o->probe_self = g;
    return ok;
}

bool
cps_debug_detach(cps_debug *g, bool ok)
{
    if (!g || g->quit)
        return ok;
    bool written = true;
    g->ended = true;
    if (!ok || g->engaged) {
        cps_cli_flush(g->c);
        int64_t now = 0;
        for (unsigned k = 0; k < g->cores; k++)
            now = CPS_MAX(now, cps_sim_now(cps_sim_group_core(g->group, k)));
        printf("kernel %s %s at ", g->kernel, ok ? "ended" : "failed");
        put_time(now);
        printf("\n");
        talk(g, CPS_PE);
    }
    for (uint32_t k = 0; ok && k < g->dumps.n; k++) {
        dump *x = &g->dumps.data[k];
        if (!x->here)
            continue;
        x->ever = true;
        written = show_dump(g, x->text, &x->area) && written;
    }
    fflush(stdout);
    return ok && written;
}

/* A place of the command line that no kernel had. */
static void
nowhere(cps_debug *g, const char *opt, const char *text, const cps_area *x)
{
    int core;
    cps_core_parse(text, &core);
    if (x->var)
        cps_error(g->c->diags, CPS_E1104, CPS_NOSPAN, "'%s %s': no kernel has such a variable", opt, text);
    else
        cps_error(g->c->diags, CPS_E1104, CPS_NOSPAN, "'%s %s': no kernel runs on a core %d", opt, text, core);
    if (x->var && core >= 0)
        cps_note(g->c->diags, CPS_NOSPAN, "on a core %d", core);
}

bool
cps_debug_close(cps_debug *g)
{
    bool ok = true;
    for (uint32_t k = 0; g && !g->quit && k < g->stops.n; k++) {
        const stop *x = &g->stops.data[k];
        if (x->ever || x->gone)
            continue;
        if (!x->watch) {
            printf("break %u (%s) was never reached\n", k + 1, x->text);
            continue;
        }
        nowhere(g, "--watch", x->text, &x->area);
        ok = false;
    }
    for (uint32_t k = 0; g && !g->quit && k < g->dumps.n; k++)
        if (!g->dumps.data[k].ever) {
            nowhere(g, "--dump", g->dumps.data[k].text, &g->dumps.data[k].area);
            ok = false;
        }
    return ok;
}

bool
cps_debug_quit(const cps_debug *g)
{
    return g && g->quit;
}
