/* The shipped trees: every embedded file loads without a word, every case of every leaf makes an
 * instance that some combination of parameters serves on each target it names, and the body of the
 * operator becomes a graph that verifies. */
#include "frontend/dsl/body.h"
#include "tests/check.h"

static bool
read_source(void *user, const char *path, const char **text, size_t *n)
{
    (void)user;
    for (unsigned i = 0; i < cps_kernel_source_count; i++)
        if (cps_streq(cps_kernel_sources[i].path, path)) {
            *text = cps_kernel_sources[i].text;
            *n = cps_kernel_sources[i].n;
            return true;
        }
    return false;
}

static unsigned served, refused, bodies;

static void
check_case(cps_dsl_set *s, cps_diags *d, cps_arena *a, const cps_dsl_leaf *l, const cps_dsl_op *op,
           const cps_dsl_case *c, const cps_target *t)
{
    const char *with[8];
    cps_words w = {.ndim = (int)c->ndim, .dim = c->dim, .size = c->size, .nattr = (int)c->nattr,
                   .attr = c->attr, .text = c->text, .with = with,
                   .dtype = c->dtype ? c->dtype : CPS_DT_BF16};
    char *copy = cps_arena_strdup(a, c->with), *save = NULL;
    for (char *p = strtok_r(copy, " ", &save); p && w.nwith < 8; p = strtok_r(NULL, " ", &save))
        with[w.nwith++] = p;
    cps_instance inst;
    cps_candidate cand;
    if (!cps_dsl_make(s, a, op, &w, t, c->cores ? c->cores : 1, &inst, d)) {
        CHECK(!"a case does not fit its operator");
        return;
    }
    CHECK(cps_dsl_candidate(s, a, l, &inst, NULL, 0, &cand, d));
    served += cand.ok;
    refused += !cand.ok;
    for (int i = 0; i < cand.nreasons; i++)
        CHECK(cand.reason[i] && cand.reason[i][0]);
    cps_module *m = cps_module_new(a, "t");
    cps_func *f = cps_dsl_body(s, m, op, &inst, true, d);
    CHECK(f && cps_ir_verify(m, d));
    bodies += f != NULL;
    if (f)
        CHECK_INT(f->outputs.n, inst.nresults);
}

int
main(void)
{
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    cps_dsl_set *s = cps_dsl_set_create(d, read_source, NULL);
    for (unsigned i = 0; i < cps_kernel_source_count; i++)
        cps_dsl_load(s, cps_kernel_sources[i].path);
    CHECK(cps_dsl_set_check(s));
    for (uint32_t k = 0; k < s->leaves.n; k++) {
        const cps_dsl_leaf *l = s->leaves.data[k];
        const cps_dsl_op *op = cps_dsl_find_op(s, l->ast->op.text);
        cps_dsl_case *c;
        uint32_t n;
        CHECK(op && cps_dsl_cases(s, a, l, &c, &n, d) && n > 0);
        for (uint32_t i = 0; op && i < n; i++)
            for (uint32_t t = 0; t < l->ast->ntarget; t++)
                check_case(s, d, a, l, op, &c[i], cps_target_find(l->ast->target[t].text));
    }
    cps_buf b = {0};
    cps_diags_render(d, &b, false);
    CHECK_STR(b.n ? b.data : "", "");
    cps_buf_fini(&b);
    printf("%u files, %u ops, %u leaves; %u served, %u refused, %u bodies\n",
           cps_kernel_source_count, s->ops.n, s->leaves.n, served, refused, bodies);
    cps_dsl_set_destroy(s);
    cps_diags_destroy(d);
    cps_arena_destroy(a);
    return CHECK_DONE();
}
