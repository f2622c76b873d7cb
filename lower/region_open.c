/* Calls that a region may open: a softmax or a norm beside ops that go through memory to it otherwise. What the operator
 * computes is written in the region's own ops, as kernels/reference/norm.cps has it, in fp32 as its leaves have it.
 *
 * Slices by steps of one along one axis are read where they lie.
 *
 * A call is opened only where rows lie whole in SBUF (region.c): in passes over longer rows a region computes again what the
 * library's leaf keeps. */
#include "lower/region.h"

#include "lower/map.h"

typedef struct open_row {
    const char *name;
    int nin, nodes; // of the region
    int (*write)(cps_region *r, const int *in, const cps_opening *o);
} open_row;

static int
node(cps_region *r, cps_op op, unsigned mask, cps_dtype t, int nin, int a, int b)
{
    r->v[r->n] = (cps_rvalue){.kind = CPS_RV_NODE, .op = op, .dtype = t, .mask = mask, .nin = nin, .in = {a, b}, .slot = -1};
    return r->n++;
}

static int
softmax(cps_region *r, const int *in, const cps_opening *o)
{
    int most = node(r, CPS_OP_RMAX, o->row, o->dtype, 1, in[0], 0);
    int less = node(r, CPS_OP_SUB, o->all, o->dtype, 2, in[0], most);
    int e = node(r, CPS_OP_EXP, o->all, o->dtype, 1, less, 0);
    int sum = node(r, CPS_OP_SUM, o->row, o->dtype, 1, e, 0);
    return node(r, CPS_OP_DIV, o->all, o->dtype, 2, e, sum);
}

static int
rmsnorm(cps_region *r, const int *in, const cps_opening *o)
{
    int square = node(r, CPS_OP_SQUARE, o->all, o->dtype, 1, in[0], 0);
    int mean = node(r, CPS_OP_MEAN, o->row, o->dtype, 1, square, 0);
    int moved = node(r, CPS_OP_ADD, o->row, o->dtype, 2, mean, cps_region_add_number(r, o->eps, o->dtype));
    int root = node(r, CPS_OP_RSQRT, o->row, o->dtype, 1, moved, 0);
    int norm = node(r, CPS_OP_MUL, o->all, o->dtype, 2, in[0], root);
    return node(r, CPS_OP_MUL, o->all, o->dtype, 2, norm, in[1]);
}

static const open_row rows[] = {
    {"softmax", 1, 5, softmax},
    {"rmsnorm", 2, 6, rmsnorm},
};

#define CASTS 4 // to fp32 and back

int
cps_region_slice_axis(const cps_func *f, const cps_node *n)
{
    const cps_type *in = &f->vals.data[n->in[0]].type, *out = &f->vals.data[n->out[0]].type;
    const cps_attr *step = cps_node_attr(n, "step");
    int axis = -1;
    for (int i = 0; i < in->rank; i++) {
        if (step->ints[i] != 1)
            return -1;
        if (in->dim[i] == out->dim[i])
            continue;
        if (axis >= 0 || out->dim[i] < 2)
            return -1;
        axis = i;
    }
    return axis;
}

static const open_row *
find(const cps_node *n)
{
    for (size_t i = 0; n->op == CPS_OP_CALL && i < cps_countof(rows); i++)
        if (cps_streq(n->callee, rows[i].name) && n->nin == rows[i].nin && n->nout == 1)
            return &rows[i];
    return NULL;
}

int
cps_region_opens(const cps_func *f, const cps_node *n)
{
    const open_row *row = find(n);
    if (!row)
        return 0;
    const cps_type *t = &f->vals.data[n->out[0]].type;
    for (int i = 0; i < n->nin; i++)
        if (!n->in[i] || f->vals.data[n->in[i]].type.dtype != t->dtype)
            return 0;
    bool is_float = t->dtype == CPS_DT_FP32 || t->dtype == CPS_DT_BF16 || t->dtype == CPS_DT_FP16;
    return is_float && t->rank == 2 && t->dim[1] > 1 ? row->nodes + CASTS : 0;
}

int
cps_region_open(cps_region *r, const cps_node *n, const int *in, const cps_opening *o)
{
    const open_row *row = find(n);
    cps_opening wide = *o;
    int x[3];
    wide.dtype = CPS_DT_FP32;
    for (int i = 0; i < n->nin; i++)
        x[i] = o->dtype == CPS_DT_FP32 ? in[i] : node(r, CPS_OP_CAST, r->v[in[i]].mask, CPS_DT_FP32, 1, in[i], 0);
    int y = row->write(r, x, &wide);
    return o->dtype == CPS_DT_FP32 ? y : node(r, CPS_OP_CAST, o->all, o->dtype, 1, y, 0);
}
