/* A kernel as a folder. Bytes depend on the kernel alone. Besides the streams and dma.json:
 * reloc.json lists every address inside a bundle, kernel.json says what a reader of people or
 * programs wants to know, kernel.cas is the listing with the source place of each instruction.
 */
#include "runtime/pkg/kbin_priv.h"

#include "codegen/isa/seen.h"
#include "runtime/base/file.h"

#include <errno.h>

static void
write_relocs(const cps_kbin *k, cps_buf *out)
{
    cps_jsonw w;
    cps_jsonw_init(&w, out);
    cps_jsonw_arr(&w, false);
    for (uint32_t i = 0; i < k->relocs.n; i++) {
        const cps_kreloc *r = &k->relocs.data[i];
        cps_jsonw_obj(&w, true);
        cps_jsonw_put_str(&w, "engine", cps_engine_name(r->engine));
        cps_jsonw_put_int(&w, "bundle", r->index);
        cps_jsonw_put_str(&w, "field", cps_fields[r->field].name);
        cps_jsonw_put_str(&w, "var", k->vars.data[r->var].name);
        cps_jsonw_put_int(&w, "addend", r->addend);
        cps_jsonw_end_obj(&w);
    }
    cps_jsonw_end_arr(&w);
    cps_jsonw_done(&w);
}

static void
write_vars(const cps_kbin *k, cps_jsonw *w)
{
    int64_t offset = 0;
    cps_jsonw_key(w, "vars");
    cps_jsonw_arr(w, false);
    for (uint32_t i = 0; i < k->vars.n; i++) {
        const cps_kvar *v = &k->vars.data[i];
        cps_jsonw_obj(w, true);
        cps_jsonw_put_str(w, "name", v->name);
        cps_jsonw_put_str(w, "kind", cps_pkg_kinds[v->kind]);
        cps_jsonw_put_str(w, "dtype", cps_dtype_name(v->dtype));
        cps_jsonw_key(w, "shape");
        cps_jsonw_arr(w, true);
        for (int d = 0; d < v->rank; d++)
            cps_jsonw_int(w, v->dim[d]);
        cps_jsonw_end_arr(w);
        cps_jsonw_put_int(w, "bytes", v->bytes);
        if (v->kind == CPS_VAR_DATA) {
            cps_jsonw_put_str(w, "file", "data.bin");
            cps_jsonw_put_int(w, "offset", offset);
            offset += v->bytes;
        }
        cps_jsonw_end_obj(w);
    }
    cps_jsonw_end_arr(w);
}

/* Places, run-length coded: [count, source, line, col] with source 0 for "no place". */
static void
write_places(const cps_kbin *k, cps_jsonw *w)
{
    cps_symtab *t = cps_symtab_create();
    cps_sym last = 0;
    for (int e = 0; e < CPS_ENGINES; e++) {
        const char *before = NULL; // mostly the same one
        for (uint32_t i = 0; i < k->stream[e].locs.n; i++) {
            const char *file = k->stream[e].locs.data[i].file;
            if (file && file != before)
                last = CPS_MAX(last, cps_sym_intern(t, file));
            before = file;
        }
    }
    cps_jsonw_key(w, "sources");
    cps_jsonw_arr(w, false);
    for (cps_sym s = 1; s <= last; s++)
        cps_jsonw_str(w, cps_sym_name(t, s));
    cps_jsonw_end_arr(w);
    cps_jsonw_key(w, "places");
    cps_jsonw_obj(w, false);
    for (int e = 0; e < CPS_ENGINES; e++) {
        const cps_kstream *s = &k->stream[e];
        cps_jsonw_key(w, cps_engine_name((cps_engine)e));
        cps_jsonw_arr(w, true);
        for (uint32_t i = 0, j; i < s->locs.n; i = j) {
            const cps_kloc *a = &s->locs.data[i];
            for (j = i + 1; j < s->locs.n; j++) {
                const cps_kloc *b = &s->locs.data[j];
                if (!cps_streq(a->file, b->file) || a->line != b->line || a->col != b->col)
                    break;
            }
            cps_jsonw_int(w, j - i);
            cps_jsonw_int(w, a->file ? cps_sym_find(t, a->file) : 0);
            cps_jsonw_int(w, a->line);
            cps_jsonw_int(w, a->col);
        }
        cps_jsonw_end_arr(w);
    }
    cps_jsonw_end_obj(w);
    cps_symtab_destroy(t);
}

static void
write_stats(const cps_kbin *k, cps_jsonw *w)
{
    const cps_kstats *s = &k->stats;
    cps_jsonw_key(w, "stats");
    cps_jsonw_obj(w, false);
    cps_jsonw_put_int(w, "flops", s->flops);
    cps_jsonw_put_int(w, "hbm_bytes", s->hbm_bytes);
    cps_jsonw_put_int(w, "pe_flops_ps", s->pe_flops_ps);
    cps_jsonw_key(w, "engine_min_ps");
    cps_jsonw_obj(w, true);
    for (int e = 0; e < CPS_ENGINES; e++)
        cps_jsonw_put_int(w, cps_engine_name((cps_engine)e), s->engine_min_ps[e]);
    cps_jsonw_end_obj(w);
    cps_jsonw_put_str(w, "deadlock", cps_verdict_names[s->deadlock]);
    cps_jsonw_put_str(w, "races", cps_verdict_names[s->races]);
    cps_jsonw_put_int(w, "sbuf_peak_bytes_per_partition", s->sbuf_peak);
    cps_jsonw_put_int(w, "psum_banks_peak", s->psum_banks);
    cps_jsonw_put_int(w, "semaphores", s->semaphores);
    cps_jsonw_end_obj(w);
}

/* As a container has them: tables of groups of ranks, tables of pairs. Left out where there are none. */
static void
write_groups(const cps_kbin *k, cps_jsonw *w)
{
    uint32_t tables = 0, pairs = 0;
    for (uint32_t i = 0; i < k->groups.n; i++)
        tables = CPS_MAX(tables, k->groups.data[i].table + 1);
    for (uint32_t i = 0; i < k->pairs.n; i++)
        pairs = CPS_MAX(pairs, k->pairs.data[i].table + 1);
    if (tables) {
        cps_jsonw_key(w, "replica_groups");
        cps_jsonw_arr(w, false);
        for (uint32_t t = 0; t < tables; t++) {
            cps_jsonw_arr(w, true);
            for (uint32_t i = 0; i < k->groups.n; i++) {
                const cps_kgroup *g = &k->groups.data[i];
                if (g->table != t)
                    continue;
                cps_jsonw_arr(w, true);
                for (uint32_t r = 0; r < g->n; r++)
                    cps_jsonw_int(w, k->ranks.data[g->first + r]);
                cps_jsonw_end_arr(w);
            }
            cps_jsonw_end_arr(w);
        }
        cps_jsonw_end_arr(w);
    }
    if (pairs) {
        cps_jsonw_key(w, "src_target_pairs");
        cps_jsonw_arr(w, false);
        for (uint32_t t = 0; t < pairs; t++) {
            cps_jsonw_arr(w, true);
            for (uint32_t i = 0; i < k->pairs.n; i++) {
                const cps_kpair *p = &k->pairs.data[i];
                if (p->table != t)
                    continue;
                cps_jsonw_arr(w, true);
                cps_jsonw_int(w, p->from);
                cps_jsonw_int(w, p->to);
                cps_jsonw_end_arr(w);
            }
            cps_jsonw_end_arr(w);
        }
        cps_jsonw_end_arr(w);
    }
}

static void
write_kernel(const cps_kbin *k, cps_buf *out)
{
    cps_jsonw w;
    cps_jsonw_init(&w, out);
    cps_jsonw_obj(&w, false);
    cps_jsonw_put_int(&w, "schema", 1);
    cps_jsonw_put_str(&w, "name", k->name);
    cps_jsonw_put_str(&w, "target", k->target);
    cps_jsonw_put_str(&w, "generation", cps_gen_name(k->gen));
    cps_jsonw_put_int(&w, "core", k->core);
    cps_jsonw_put_int(&w, "cores", k->cores);
    cps_jsonw_key(&w, "instructions");
    cps_jsonw_obj(&w, true);
    for (int e = 0; e < CPS_ENGINES; e++)
        cps_jsonw_put_int(&w, cps_engine_name((cps_engine)e), k->stream[e].code.n);
    cps_jsonw_end_obj(&w);
    write_groups(k, &w);
    write_stats(k, &w);
    write_vars(k, &w);
    write_places(k, &w);
    cps_kbin_extents_write(k, &w);
    cps_jsonw_end_obj(&w);
    cps_jsonw_done(&w);
}

// Without printf, which would take as long as the instruction.
static void
put_number(cps_buf *out, uint32_t v)
{
    char digits[10];
    unsigned n = sizeof digits;
    do
        digits[--n] = (char)('0' + v % 10);
    while (v /= 10);
    cps_buf_put(out, digits + n, sizeof digits - n);
}

static void
listing(const cps_kbin *k, cps_buf *out)
{
    cps_arena *a = cps_arena_create();
    cps_isa_seen seen;
    cps_buf texts = {0};
    cps_isa_seen_init(&seen, a);
    cps_buf_printf(out, "// kernel %s, target %s, core %d of %d\n", k->name, k->target, k->core,
                   k->cores);
    for (int e = 0; e < CPS_ENGINES; e++) {
        const cps_kstream *s = &k->stream[e];
        cps_buf_printf(out, "\n// ---- %s: %u instructions ----\n",
                       cps_engine_name((cps_engine)e), s->code.n);
        for (uint32_t i = 0; i < s->code.n; i++) {
            cps_isa_print_again(&seen, &texts, &s->code.data[i], k->gen, out);
            const cps_kloc *at = s->locs.n ? &s->locs.data[i] : NULL;
            cps_buf_puts(out, " // ");
            put_number(out, i);
            if (at && at->file) {
                cps_buf_putc(out, ' ');
                cps_buf_puts(out, at->file);
                cps_buf_putc(out, ':');
                put_number(out, at->line);
                cps_buf_putc(out, ':');
                put_number(out, at->col);
            }
            cps_buf_putc(out, '\n');
        }
    }
    cps_buf_fini(&texts);
    cps_arena_destroy(a);
}

void
cps_kbin_listing(const cps_kbin *k, cps_buf *out)
{
    listing(k, out);
    if (!k->peer)
        return;
    cps_buf_putc(out, '\n');
    listing(k->peer, out);
}

static void
add_files(const cps_kbin *k, const char *folder, cps_pfiles *out)
{
    cps_arena *a = out->arena;
    cps_buf b = {0};
    for (int e = 0; e < CPS_ENGINES; e++)
        cps_pfiles_add(out,
                       cps_arena_printf(a, "%s%s.bin", folder, cps_engine_name((cps_engine)e)),
                       k->stream[e].code.data, (size_t)k->stream[e].code.n * CPS_BUNDLE_BYTES);
    void (*const text[])(const cps_kbin *, cps_buf *) = {cps_pkg_dma_write, write_relocs,
                                                         write_kernel, listing};
    const char *const names[] = {"dma.json", "reloc.json", "kernel.json", "kernel.cas"};
    for (unsigned i = 0; i < cps_countof(text); i++) {
        b.n = 0;
        text[i](k, &b);
        cps_pfiles_add(out, cps_arena_printf(a, "%s%s", folder, names[i]), b.data, b.n);
    }
    b.n = 0;
    bool any = false;
    for (uint32_t i = 0; i < k->vars.n; i++) {
        if (k->vars.data[i].kind == CPS_VAR_DATA) {
            any = true;
            cps_buf_put(&b, k->vars.data[i].data, (size_t)k->vars.data[i].bytes);
        }
    }
    if (any)
        cps_pfiles_add(out, cps_arena_printf(a, "%sdata.bin", folder), b.data, b.n);
    cps_buf_fini(&b);
}

void
cps_kbin_files(const cps_kbin *k, const char *folder, cps_pfiles *out)
{
    if (!k->peer) {
        add_files(k, folder, out);
        return;
    }
    add_files(k, cps_arena_printf(out->arena, "%score0/", folder), out);
    add_files(k->peer, cps_arena_printf(out->arena, "%score1/", folder), out);
}

bool
cps_kbin_write(const cps_kbin *k, const char *dir)
{
    cps_pfiles f = {.arena = cps_arena_create()};
    bool ok = cps_mkdirs(dir);
    for (int c = 0; c < 2 && ok && k->peer; c++)
        ok = cps_mkdirs(cps_path_join(f.arena, dir, c ? "core1" : "core0"));
    cps_kbin_files(k, "", &f);
    for (uint32_t i = 0; i < f.list.n && ok; i++)
        ok = cps_file_write(cps_path_join(f.arena, dir, f.list.data[i].name),
                            f.list.data[i].data, f.list.data[i].n);
    int e = errno;
    cps_arena_destroy(f.arena);
    errno = e;
    return ok;
}
