/* Dead code: nodes none of whose results is needed go; everything else keeps its order and ids.
 */
#include "ir/pass.h"

#include <stdlib.h>

void
cps_ir_renumber(cps_func *f)
{
    for (uint32_t i = 0; i < f->nodes.n; i++)
        for (int k = 0; k < f->nodes.data[i].nout; k++)
            f->vals.data[f->nodes.data[i].out[k]].def = i + 1;
}

static void
sweep(cps_func *f)
{
    uint8_t *live = calloc(f->vals.n, 1), *stays = calloc(f->nodes.n + 1, 1);
    if (!live || !stays)
        cps_bug("out of memory");
    for (uint32_t i = 0; i < f->outputs.n; i++)
        live[f->outputs.data[i]] = 1;
    for (uint32_t i = f->nodes.n; i--;) {
        const cps_node *n = &f->nodes.data[i];
        for (int k = 0; k < n->nout; k++)
            stays[i] |= live[n->out[k]];
        for (int k = 0; k < n->nin && stays[i]; k++)
            live[n->in[k]] = 1;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->nodes.n; i++)
        if (stays[i])
            f->nodes.data[kept++] = f->nodes.data[i];
    f->nodes.n = kept;
    cps_ir_renumber(f);
    free(live);
    free(stays);
}

bool
cps_ir_dce(cps_module *m, cps_diags *d)
{
    (void)d;
    for (uint32_t i = 0; i < m->funcs.n; i++)
        sweep(m->funcs.data[i]);
    return true;
}
