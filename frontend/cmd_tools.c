/* Commands about the program itself and its tables: targets, version, help, cache. */
#include "frontend/cli.h"

#include "build_id.h"
#include "runtime/base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

cps_exit
cps_cmd_version(cps_cli *c)
{
    if (cps_cli_has(c, CPS_OPT_JSON))
        printf("{\"build\": \"%s\", \"name\": \"copse\", \"version\": \"%s\"}\n", CPS_BUILD_ID,
               CPS_VERSION);
    else
        printf("copse %s\nbuild %s\n", CPS_VERSION, CPS_BUILD_ID);
    return CPS_OK;
}

cps_exit
cps_cmd_help(cps_cli *c)
{
    cps_buf b = {0};
    const char *what = c->args.n ? c->args.data[0] : NULL;
    cps_code code = what ? cps_diag_find(what) : CPS_CODE_NONE;
    if (code != CPS_CODE_NONE) {
        const cps_diag_row *r = &cps_diag_rows[code];
        cps_buf_printf(&b, "%s: %s\n\n%s\n", r->name, r->title, r->help);
    } else if (what && ((what[0] == 'E' || what[0] == 'W' || what[0] == 'N') && what[1] >= '0' &&
                        what[1] <= '9')) {
        cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "there is no diagnostic '%s'", what);
        return CPS_USAGE;
    } else {
        cps_cli_help(what, &b);
        if (!b.n) {
            cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "there is no command '%s'", what);
            return CPS_USAGE;
        }
    }
    fwrite(b.data, 1, b.n, stdout);
    cps_buf_fini(&b);
    return CPS_OK;
}

typedef struct fact {
    const char *key, *unit, *doc;
    bool is_int;
} fact;

static const fact facts[] = {
#define CPS_FACT_INT(section, key, unit, doc) {#section "." #key, unit, doc, true},
#define CPS_FACT_NUM(section, key, unit, doc) {#section "." #key, unit, doc, false},
#include "codegen/isa/target.def"
};

cps_exit
cps_cmd_targets(cps_cli *c)
{
    cps_buf b = {0};
    if (cps_cli_has(c, CPS_OPT_JSON)) {
        cps_jsonw w;
        cps_jsonw_init(&w, &b);
        cps_jsonw_arr(&w, false);
        for (unsigned i = 0; i < cps_target_count(); i++) {
            const cps_target *t = cps_target_at(i);
            char hex[65];
            cps_digest_hex(&t->digest, hex);
            cps_jsonw_obj(&w, false);
            cps_jsonw_key(&w, "digest");
            cps_jsonw_str(&w, hex);
            cps_jsonw_key(&w, "facts");
            cps_jsonw_obj(&w, false);
            for (unsigned k = 0; k < cps_countof(facts); k++) {
                double v = 0;
                cps_target_fact(t, facts[k].key, &v);
                cps_jsonw_key(&w, facts[k].key);
                facts[k].is_int ? cps_jsonw_int(&w, (int64_t)v) : cps_jsonw_num(&w, v);
            }
            cps_jsonw_end_obj(&w);
            cps_jsonw_key(&w, "generation");
            cps_jsonw_str(&w, cps_gen_name(t->gen));
            cps_jsonw_key(&w, "name");
            cps_jsonw_str(&w, t->name);
            cps_jsonw_end_obj(&w);
        }
        cps_jsonw_end_arr(&w);
        cps_jsonw_done(&w);
    } else {
        cps_buf_printf(&b, "%-24s", "fact");
        for (unsigned i = 0; i < cps_target_count(); i++)
            cps_buf_printf(&b, "%12s", cps_target_at(i)->name);
        cps_buf_puts(&b, "  unit    meaning\n");
        for (unsigned k = 0; k < cps_countof(facts); k++) {
            cps_buf_printf(&b, "%-24s", facts[k].key);
            for (unsigned i = 0; i < cps_target_count(); i++) {
                double v = 0;
                cps_target_fact(cps_target_at(i), facts[k].key, &v);
                cps_buf_printf(&b, facts[k].is_int ? "%12.0f" : "%12g", v);
            }
            cps_buf_printf(&b, "  %-8s%s\n", facts[k].unit, facts[k].doc);
        }
        cps_buf_puts(&b, "\n`host` is the build machine's processor, through LLVM.\n");
    }
    fwrite(b.data, 1, b.n, stdout);
    cps_buf_fini(&b);
    return CPS_OK;
}

cps_exit
cps_cmd_cache(cps_cli *c)
{
    static const char forms[] = "stats, verify or gc";
    if (c->args.n != 1) {
        cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "'cache' takes one of: %s", forms);
        return CPS_USAGE;
    }
    const char *what = c->args.data[0];
    cps_cache *k = cps_cli_cache(c);
    cps_cache_stats s = {0};
    bool verify = !strcmp(what, "verify"), gc = !strcmp(what, "gc"), ok = true;
    if (!verify && !gc && strcmp(what, "stats")) {
        cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "'cache' takes one of: %s", forms);
        return CPS_USAGE;
    }
    int64_t max = cps_cli_int(c, CPS_OPT_MAXBYTES, (int64_t)4 << 30, 0, INT64_MAX, &ok);
    if (!ok)
        return CPS_USAGE;
    if (gc) {
        cps_cache_stats broken;
        cps_cache_scan(k, true, true, &broken, c->diags);
        cps_cache_gc(k, (uint64_t)max, &s, c->diags);
        s.broken = broken.broken;
    } else {
        cps_cache_scan(k, verify, false, &s, c->diags);
    }
    if (cps_cli_has(c, CPS_OPT_JSON))
        printf("{\"broken\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"entries\": %" PRIu64
               ", \"temporaries\": %" PRIu64 "}\n",
               s.broken, s.bytes, s.entries, s.temporaries);
    else
        printf("%s%" PRIu64 " entries, %" PRIu64 " bytes, %" PRIu64 " broken, %" PRIu64
               " temporaries\n",
               gc ? "removed: " : "", s.entries, s.bytes, s.broken, s.temporaries);
    return verify && s.broken ? CPS_BAD_INPUT : CPS_OK;
}
