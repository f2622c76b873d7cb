/* --verify: the rules of the instruction set on a whole stream. A record is checked twice at
 * most: the second time, when there is something to say, with its line of the listing as the
 * place. */
#include "frontend/text_check.h"

#include "codegen/isa/text.h"

#include <string.h>

cps_engine
cps_stream_engine(cps_cli *c, const char *name, bool *ok)
{
    const char *want = cps_cli_word(c, CPS_OPT_ENGINE, "any", "pe act pool dve sp any");
    const char *base = strrchr(name, '/');
    base = base ? base + 1 : name;
    *ok = *ok && want;
    if (want && cps_cli_has(c, CPS_OPT_ENGINE))
        return cps_engine_parse(want);
    for (unsigned e = 0; e < CPS_ENGINES; e++) {
        size_t n = strlen(cps_engine_name((cps_engine)e));
        if (strncmp(base, cps_engine_name((cps_engine)e), n) == 0 && strcmp(base + n, ".bin") == 0)
            return (cps_engine)e;
    }
    return CPS_ENGINE_ANY;
}

static cps_span
place(cps_cli *c, const char *name, cps_gen g, const cps_bundle *b, size_t i)
{
    cps_buf line = {0};
    cps_isa_print(b, g, &line);
    uint32_t file = cps_diags_line(c->diags, name, (uint32_t)CPS_MIN(i + 1, (size_t)UINT32_MAX), line.data, line.n);
    cps_span at = {file, 0, (uint32_t)strcspn(line.data, " ")};
    cps_buf_fini(&line);
    return file ? at : CPS_NOSPAN;
}

bool
cps_check_stream(cps_cli *c, const char *name, cps_gen g, cps_engine e, const cps_bundle *b, size_t n)
{
    cps_diags *probe = cps_diags_create();
    cps_span *at = cps_new_array(c->arena, cps_span, n + 1);
    for (size_t i = 0; i < n; i++) {
        cps_isa_verify(&b[i], g, e, probe, CPS_NOSPAN);
        if (cps_diags_count(probe)) {
            at[i] = place(c, name, g, &b[i], i);
            cps_isa_verify(&b[i], g, e, c->diags, at[i]);
            cps_diags_clear(probe);
        }
    }
    if (!cps_isa_verify_stream(b, n, g, probe, NULL)) {
        for (size_t i = 0; i < n; i++)
            if (!at[i].file && cps_isa_find(b[i].b[0], g))
                at[i] = place(c, name, g, &b[i], i);
        cps_isa_verify_stream(b, n, g, c->diags, at);
    }
    cps_diags_destroy(probe);
    return !cps_diags_errors(c->diags);
}
