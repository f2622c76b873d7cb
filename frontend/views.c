/* Where the records of simulated runs go; see views.h. The timeline page is one file: style, script
 * and data are put into the places that html/page.html marks. */
#include "frontend/views.h"

#include "kernels/registry.h"
#include "runtime/base/file.h"

#include <stdio.h>
#include <string.h>

extern const cps_source cps_page_files[]; /* html/: page.html, style.css, then scripts in order */
extern const unsigned cps_page_files_count;

bool
cps_views_allowed(cps_cli *c, const char *on)
{
    static const struct {
        cps_opt opt;
        const char *name;
    } all[] = {{CPS_OPT_TRACE, "--trace"}, {CPS_OPT_HTML, "--html"},   {CPS_OPT_SUMMARY, "--summary"},
               {CPS_OPT_BREAK, "--break"}, {CPS_OPT_WATCH, "--watch"}, {CPS_OPT_DUMP, "--dump"}};
    for (unsigned k = 0; k < cps_countof(all); k++)
        if (strcmp(on, "sim") && cps_cli_has(c, all[k].opt)) {
            cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'%s' looks at a simulated run, and this one is on %s",
                      all[k].name, on);
            cps_help(c->diags, "leave --on out, or say --on sim");
            return false;
        }
    return true;
}

void
cps_views_open(cps_cli *c, cps_views *v)
{
    *v = (cps_views){.summary = cps_cli_has(c, CPS_OPT_SUMMARY)};
    if (cps_cli_has(c, CPS_OPT_TRACE))
        v->trace = cps_trace_create();
    if (cps_cli_has(c, CPS_OPT_HTML))
        v->page = cps_page_create();
}

bool
cps_views_any(const cps_views *v)
{
    return v->trace || v->page || v->summary;
}

/* The text of a source file, where it is at hand: the program's own, or one given with -I. */
static void
add_source(cps_cli *c, cps_page *p, const char *file)
{
    for (unsigned k = 0; k < cps_kernel_source_count; k++)
        if (!strcmp(cps_kernel_sources[k].path, file)) {
            cps_page_source(p, file, cps_kernel_sources[k].text, cps_kernel_sources[k].n);
            return;
        }
    for (uint32_t k = 0; k < c->opt[CPS_OPT_KPATH].n; k++) {
        cps_file f;
        if (strcmp(c->opt[CPS_OPT_KPATH].data[k], file) || !cps_file_open(file, true, &f))
            continue;
        cps_page_source(p, file, (const char *)f.data, f.n);
        cps_file_close(&f);
        return;
    }
}

static void
add_sources(cps_cli *c, cps_page *p, const cps_kbin *k)
{
    const char *last = NULL;
    for (int e = 0; e < CPS_ENGINES; e++)
        for (uint32_t i = 0; i < k->stream[e].locs.n; i++) {
            const char *file = k->stream[e].locs.data[i].file;
            if (file && (!last || strcmp(file, last)))
                add_source(c, p, file);
            last = file ? file : last;
        }
}

static void
add_core(cps_cli *c, cps_views *v, cps_sim *s, const cps_kbin *k, const char *name,
         const char *label, const cps_roof *roof, int64_t offset_ps)
{
    if (v->trace)
        cps_trace_add(v->trace, s, label, offset_ps);
    if (v->page) {
        cps_page_roof r = {.flops = roof->flops,
                           .bytes = roof->bytes,
                           .roofline_ns = roof->roofline_ns,
                           .engines_ns = roof->engines_ns,
                           .bound = roof->bound};
        cps_page_add(v->page, s, name, offset_ps, &r);
        add_sources(c, v->page, k);
    }
    if (v->summary)
        cps_sim_summary(s, label, &v->text);
}

void
cps_views_add(cps_cli *c, cps_views *v, cps_sim_group *g, const cps_kbin *const *k, unsigned n,
              const char *name, const cps_roof *roof, int64_t offset_ps)
{
    for (unsigned i = 0; i < n; i++)
        add_core(c, v, cps_sim_group_core(g, i), k[i], name,
                 n > 1 ? cps_arena_printf(c->arena, "%s, core %u", name, i) : name, roof, offset_ps);
}

static bool
write_page(cps_cli *c, cps_page *p)
{
    cps_buf out = {0};
    cps_assert(cps_page_files_count > 2);
    const char *at = cps_page_files[0].text, *hole;
    while ((hole = strchr(at, '@'))) { // @STYLE@, @SCRIPT@, @DATA@
        cps_buf_put(&out, at, (size_t)(hole - at));
        if (!strncmp(hole, "@STYLE@", 7))
            cps_buf_put(&out, cps_page_files[1].text, cps_page_files[1].n);
        else if (!strncmp(hole, "@DATA@", 6))
            cps_page_json(p, &out);
        for (unsigned k = 2; k < cps_page_files_count && !strncmp(hole, "@SCRIPT@", 8); k++)
            cps_buf_put(&out, cps_page_files[k].text, cps_page_files[k].n);
        at = strchr(hole + 1, '@');
        cps_assert(at != NULL);
        at++;
    }
    cps_buf_puts(&out, at);
    bool ok = cps_cli_write(c, cps_cli_str(c, CPS_OPT_HTML, ""), out.data, out.n);
    cps_buf_fini(&out);
    return ok;
}

bool
cps_views_close(cps_cli *c, cps_views *v, bool ok)
{
    if (ok && v->trace) {
        const cps_buf *text = cps_trace_text(v->trace);
        ok = cps_cli_write(c, cps_cli_str(c, CPS_OPT_TRACE, ""), text->data, text->n);
    }
    if (ok && v->page)
        ok = write_page(c, v->page);
    if (ok && v->summary)
        fwrite(v->text.data, 1, v->text.n, stderr);
    cps_trace_destroy(v->trace);
    cps_page_destroy(v->page);
    cps_buf_fini(&v->text);
    return ok;
}
