/* Breakpoints and places in memory as text; see debug_spot.h. */
#include "frontend/debug_spot.h"

#include <string.h>

static int
engine_of(const char *s, size_t n)
{
    for (int e = 0; e < CPS_ENGINES; e++) {
        const char *name = cps_engine_name((cps_engine)e);
        if (strlen(name) == n && !strncmp(name, s, n))
            return e;
    }
    return -1;
}

const char *
cps_core_parse(const char *s, int *core)
{
    size_t n = strncmp(s, "core", 4) ? 0 : strspn(s + 4, "0123456789");
    int64_t v;
    *core = -1;
    if (!n || (s[4 + n] && s[4 + n] != ':') || !cps_parse_int(s + 4, n, &v) || v >= CPS_SIM_CORES)
        return s;
    *core = (int)v;
    return s + 4 + n + (s[4 + n] == ':');
}

bool
cps_breakpoint_parse(cps_arena *a, const char *s, cps_breakpoint *out)
{
    int core;
    s = cps_core_parse(s, &core);
    *out = (cps_breakpoint){.core = core, .engine = -1, .pc = -1, .file = "", .insn = CPS_INSN_NONE};
    int64_t v;
    if (!strcmp(s, "start"))
        return out->start = true;
    const char *colon = strrchr(s, ':');
    const char *last = colon ? colon + 1 : s;
    bool number = cps_parse_int(last, strlen(last), &v);
    if (number && (v < 0 || v > UINT32_MAX))
        return false;
    if (colon) {
        out->engine = engine_of(s, (size_t)(colon - s));
        if (out->engine < 0 && !number)
            return false;
        if (out->engine < 0)
            out->file = cps_arena_strndup(a, s, (size_t)(colon - s));
    }
    if (number && out->engine >= 0)
        out->pc = v;
    else if (number)
        out->line = (uint32_t)v;
    else
        out->insn = cps_isa_find_name(last);
    return out->pc >= 0 || out->line || out->insn != CPS_INSN_NONE;
}

bool
cps_breakpoint_hit(const cps_breakpoint *b, unsigned core, cps_engine e, uint32_t index, const cps_place *at)
{
    if (b->start || (b->core >= 0 && (unsigned)b->core != core) || (b->engine >= 0 && b->engine != (int)e) || (b->pc >= 0 && b->pc != index))
        return false;
    if (b->insn != CPS_INSN_NONE && strcmp(cps_insns[b->insn].name, at->name))
        return false;
    return !b->line || (at->file && at->line == b->line && cps_has_suffix(at->file, b->file));
}

static bool
number(const char *s, size_t n, int64_t hi, int64_t *out)
{
    return cps_parse_int(s, n, out) && *out >= 0 && *out <= hi;
}

/* "128x512:bf16" with an optional "=file". */
static bool
tensor_of(cps_arena *a, const char *s, cps_area *x)
{
    const char *file = strchr(s, '='), *colon = strchr(s, ':');
    if (file)
        x->path = file + 1;
    if (!colon || (file && (colon > file || !file[1])))
        return false;
    const char *type = colon + 1;
    x->dtype = cps_dtype_parse(type, file ? (size_t)(file - type) : strlen(type));
    if (x->dtype == CPS_DT_NONE)
        return false;
    int64_t all = cps_dtype_bytes(x->dtype);
    for (const char *p = s; p < colon;) {
        size_t n = strcspn(p, "x:");
        if (x->rank == CPS_MAX_RANK || !number(p, n, CPS_AREA_BYTES, &x->dim[x->rank]) ||
            x->dim[x->rank] < 1 || all > CPS_AREA_BYTES / x->dim[x->rank])
            return false;
        all *= x->dim[x->rank++];
        p += n + (p[n] == 'x');
    }
    x->len = (size_t)(x->var || !x->rank ? all : all / x->dim[0]);
    x->path = x->path ? cps_arena_strdup(a, x->path) : NULL;
    return x->rank > 0;
}

bool
cps_area_parse(cps_arena *a, const char *s, bool tensor, cps_area *out)
{
    int core;
    s = cps_core_parse(s, &core);
    *out = (cps_area){.core = core, .len = 4};
    size_t n = strcspn(s, ":");
    if (s[n] != ':')
        return false;
    const char *second = s + n + 1, *third;
    size_t m = strcspn(second, ":");
    if (second[m] != ':')
        return false;
    third = second + m + 1;
    int64_t v;
    if (n == 3 && !strncmp(s, "hbm", 3)) {
        out->at.space = CPS_SPOT_VAR;
        out->var = cps_arena_strndup(a, second, m);
    } else if (n == 4 && (!strncmp(s, "sbuf", 4) || !strncmp(s, "psum", 4))) {
        out->at.space = *s == 's' ? CPS_SPOT_SBUF : CPS_SPOT_PSUM;
        if (!number(second, m, UINT32_MAX, &v))
            return false;
        out->at.partition = (uint32_t)v;
    } else {
        return false;
    }
    size_t k = strcspn(third, ":");
    if (!number(third, k, (int64_t)1 << 46, &out->at.byte))
        return false;
    if (tensor)
        return third[k] == ':' && tensor_of(a, third + k + 1, out);
    if (third[k] == ':') {
        if (!number(third + k + 1, strlen(third + k + 1), CPS_AREA_BYTES, &v) || !v)
            return false;
        out->len = (size_t)v;
    }
    return true;
}

bool
cps_area_find(cps_area *x, const cps_sim *s)
{
    if (x->var)
        x->at.partition = cps_sim_variable(s, x->var);
    return !x->var || x->at.partition;
}

/* Partitions an area takes; a variable counts as one. */
static uint32_t
lanes(const cps_area *x)
{
    return x->var || !x->rank ? 1 : (uint32_t)x->dim[0];
}

bool
cps_area_fits(const cps_area *x, const cps_sim *s)
{
    cps_spot last = x->at;
    if (!x->var)
        last.partition += lanes(x) - 1;
    int64_t n = cps_sim_extent(s, &last);
    return last.partition >= x->at.partition && x->at.byte <= n && (int64_t)x->len <= n - x->at.byte;
}

void *
cps_area_read(const cps_area *x, const cps_sim *s, cps_arena *a)
{
    uint8_t *out = cps_arena_alloc(a, x->len * lanes(x) + 8);
    for (uint32_t p = 0; p < lanes(x); p++) {
        cps_spot at = x->at;
        if (!x->var)
            at.partition += p;
        if (!cps_sim_peek(s, &at, x->len, out + p * x->len, NULL))
            return NULL;
    }
    return out;
}
