/* Running sums of a region: one scan of DVE along the row, the sum so far carried from tile to tile.
 *
 * The scan's state is fp32. Integers are summed in three parts of 11 bits, whose sums stay below 2^24 for rows of up to
 * CPS_RG_SCAN_ROW elements, and put together by true 32-bit products and sums, so that they wrap as the graph's do. */
#include "lower/region_leaf.h"

static const char *
carry_of(const cps_rgen *g, int k, const char *part)
{
    return cps_arena_printf(g->a, "%s%sk%d", cps_rg_name(g, k), part, g->pass);
}

static bool
is_integer(const cps_rgen *g, int k)
{
    return cps_dtype_is_int(g->r->v[k].dtype);
}

static const char *const parts[] = {"l", "m", "h"};

void
cps_rg_scan_start(cps_rgen *g, int k)
{
    if (g->whole)
        return;
    int n = is_integer(g, k) ? (int)cps_countof(parts) : 1;
    for (int i = 0; i < n; i++)
        cps_rg_line(g, "sbuf %s[t, 1]: fp32 = 0.0;", carry_of(g, k, n > 1 ? parts[i] : ""));
}

// The running sum of tile `a` in the tile `y`, which is declared.
static void
scan(cps_rgen *g, int k, const char *y, const char *a, const char *part)
{
    const char *carry = g->whole ? "0.0" : carry_of(g, k, part);
    const char *end = g->whole ? cps_arena_printf(g->a, "%lld", (long long)g->N) : "c.size";
    bool exclusive = g->r->v[k].exclusive;
    cps_rg_charge(g, g->v[k].cls, CPS_DVE, 2);
    if (!exclusive) {
        cps_rg_line(g, "%s = scan(ones[0:t.size, 0:%s] * prev + %s, init: %s);", y, end, a, carry);
        if (!g->whole)
            cps_rg_line(g, "if (!c.last) { %s = %s[:, c.size - 1:c.size]; }", carry, y);
        return;
    }
    cps_rg_line(g, "%s[:, 0:1] = %s;", y, carry);
    cps_rg_line(g, "if (%s > 1) { %s[:, 1:%s] = scan(ones[0:t.size, 1:%s] * prev + %s[:, 0:%s - 1], init: %s); }", end, y, end,
                end, a, end, carry);
    if (!g->whole)
        cps_rg_line(g, "if (!c.last) { %s = %s[:, c.size - 1:c.size] + %s[:, c.size - 1:c.size]; }", carry, y, a);
}

static void
integers(cps_rgen *g, int k)
{
    static const char *const shift[] = {NULL, "operand0: 11, operand1: 2047, op0: \"logical_shift_right\", op1: \"bitwise_and\"",
                                        "operand0: 22, op0: \"logical_shift_right\""};
    const cps_rgtile *x = &g->v[k];
    const char *ext = cps_rg_extents(g, x->cls), *n = cps_rg_name(g, k);
    const char *a = cps_rg_shaped(g, g->r->v[k].in[0], x->cls, CPS_DT_I32, cps_rg_own(g, k, 's'));
    cps_rg_charge(g, x->cls, CPS_DVE, 6);
    cps_rg_charge(g, x->cls, CPS_POOL, 8);
    for (size_t i = 0; i < cps_countof(parts); i++) {
        const char *p = parts[i];
        cps_rg_line(g, "sbuf %s%sa[%s]: i32;", n, p, ext);
        cps_rg_line(g, "tensor_scalar(dst: %s%sa, data: %s, %s);", n, p, a,
                    shift[i] ? shift[i] : "operand0: 2047, op0: \"bitwise_and\"");
        cps_rg_line(g, "sbuf %s%sy[%s]: fp32;", n, p, ext);
        scan(g, k, cps_arena_printf(g->a, "%s%sy", n, p), cps_arena_printf(g->a, "%s%sa", n, p), p);
        cps_rg_line(g, "sbuf %s%si[%s]: i32 = %s%sy;", n, p, ext, n, p);
    }
    cps_rg_line(g, "sbuf %smj[%s]: i32 = %smi * 2048;", n, ext, n);
    cps_rg_line(g, "sbuf %shj[%s]: i32 = %shi * 4194304;", n, ext, n);
    cps_rg_line(g, "sbuf %sj[%s]: i32 = %sli + %smj;", n, ext, n, n);
    cps_rg_give(g, k, cps_arena_printf(g->a, "%sj + %shj", n, n), "");
}

void
cps_rg_scan(cps_rgen *g, int k)
{
    if (is_integer(g, k)) {
        integers(g, k);
        return;
    }
    int in = g->r->v[k].in[0];
    cps_dtype t = cps_rg_is_number(g, in) ? CPS_DT_FP32 : cps_rg_dtype_read(g, in);
    const char *a = cps_rg_shaped(g, in, g->v[k].cls, t, cps_rg_own(g, k, 's'));
    scan(g, k, cps_rg_fresh(g, k), a, "");
}
