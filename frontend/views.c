/* Where the records of simulated runs go; see views.h. */
#include "frontend/views.h"

#include <stdio.h>

void
cps_views_open(cps_cli *c, cps_views *v)
{
    *v = (cps_views){.summary = cps_cli_has(c, CPS_OPT_SUMMARY)};
    if (cps_cli_has(c, CPS_OPT_TRACE))
        v->trace = cps_trace_create();
}

bool
cps_views_any(const cps_views *v)
{
    return v->trace || v->summary;
}

void
cps_views_add(cps_views *v, cps_sim *s, const char *kernel, int64_t offset_ps)
{
    if (v->trace)
        cps_trace_add(v->trace, s, kernel, offset_ps);
    if (v->summary)
        cps_sim_summary(s, kernel, &v->text);
}

bool
cps_views_close(cps_cli *c, cps_views *v, bool ok)
{
    if (ok && v->trace) {
        const cps_buf *text = cps_trace_text(v->trace);
        ok = cps_cli_write(c, cps_cli_str(c, CPS_OPT_TRACE, ""), text->data, text->n);
    }
    if (ok && v->summary)
        fwrite(v->text.data, 1, v->text.n, stderr);
    cps_trace_destroy(v->trace);
    cps_buf_fini(&v->text);
    return ok;
}
