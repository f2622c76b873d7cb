/* Graphs as text, with the data that text does not hold.
 *
 * F.cir names every constant of more than a few elements by the digest of its bytes;
 * F.cir.data, written beside it, holds them: "CPSD", u32 version, u64 zero, then for each
 * digest once, in the order of the text: digest (32), u64 bytes, u64 zero, the bytes, padding
 * to 64. Little endian. Bytes are checked against their digest when they are read. */
#include "frontend/model.h"

#include "frontend/onnx/onnx.h"
#include "runtime/base/map.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define VERSION 1u
#define HEADER 16
#define ENTRY 48
#define ALIGN 64

static const char *
data_path(cps_cli *c, const char *path)
{
    return cps_arena_printf(c->arena, "%s.data", path);
}

/* The constants that the text names by digest, in its order, each once. */
static void
put_data(cps_cli *c, cps_module *m, cps_buf *out)
{
    static const char zero[ALIGN];
    cps_map seen;
    cps_map_init(&seen, c->arena);
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        const cps_func *f = m->funcs.data[i];
        for (uint32_t k = 0; k < f->nodes.n; k++) {
            if (f->nodes.data[k].op != CPS_OP_CONST)
                continue;
            cps_const *x = &m->consts.data[f->nodes.data[k].cst];
            char hex[65];
            bool fresh;
            if (cps_type_count(&x->type) <= CPS_TEXT_INLINE)
                continue;
            const cps_digest *d = cps_const_digest(x);
            cps_digest_hex(d, hex);
            cps_map_at_str(&seen, hex, &fresh);
            if (!fresh)
                continue;
            uint32_t version = VERSION;
            uint64_t head[2] = {(uint64_t)cps_type_bytes(&x->type), 0};
            if (!out->n) {
                cps_buf_put(out, "CPSD", 4);
                cps_buf_put(out, &version, 4);
                cps_buf_put(out, zero, 8);
            }
            cps_buf_put(out, d->b, sizeof d->b);
            cps_buf_put(out, head, sizeof head);
            cps_buf_put(out, x->data, (size_t)head[0]);
            cps_buf_put(out, zero, (ALIGN - out->n % ALIGN) % ALIGN);
        }
    }
}

bool
cps_model_write(cps_cli *c, cps_module *m, const char *path)
{
    cps_buf text = {0}, data = {0};
    bool ok = true;
    const char *beside = data_path(c, path);
    if (strcmp(path, "-") != 0) {
        put_data(c, m, &data);
        if (data.n)
            ok = cps_cli_write(c, beside, data.data, data.n);
        else
            remove(beside); // of an older graph of this name
    }
    cps_ir_print(m, &text);
    ok = ok && cps_cli_write(c, path, text.data, text.n);
    cps_buf_fini(&text);
    cps_buf_fini(&data);
    return ok;
}

typedef struct entries {
    const cps_file *f;
    cps_map at; /* digest -> offset of its entry */
} entries;

static bool
read_entries(cps_cli *c, const char *path, entries *e)
{
    const uint8_t *p = e->f->data;
    size_t n = e->f->n, at = HEADER;
    uint32_t version = 0;
    if (n >= HEADER)
        memcpy(&version, p + 4, 4);
    bool ok = n >= HEADER && !memcmp(p, "CPSD", 4) && version == VERSION;
    while (ok && at < n) {
        cps_digest d;
        uint64_t bytes = 0;
        char hex[65];
        ok = n - at >= ENTRY;
        if (ok)
            memcpy(&bytes, p + at + 32, 8);
        ok = ok && bytes <= n - at - ENTRY;
        if (!ok)
            break;
        memcpy(d.b, p + at, 32);
        cps_digest_hex(&d, hex);
        *cps_map_at_str(&e->at, hex, NULL) = at;
        at = (size_t)cps_round_up((int64_t)(at + ENTRY + bytes), ALIGN);
    }
    if (!ok)
        cps_error(c->diags, CPS_E9108, CPS_NOSPAN, "'%s' is damaged at byte %zu of %zu", path,
                  at, n);
    return ok;
}

static const void *
find_entry(void *user, const cps_digest *d, size_t bytes)
{
    entries *e = user;
    char hex[65];
    cps_digest_hex(d, hex);
    const uint64_t *at = e->f ? cps_map_find_str(&e->at, hex) : NULL;
    uint64_t n = 0;
    if (at)
        memcpy(&n, e->f->data + *at + 32, 8);
    return at && n == bytes ? e->f->data + *at + ENTRY : NULL;
}

/* Constants that came by digest: their bytes must be the ones it was made of. */
static bool
check_data(cps_cli *c, cps_module *m, const char *path)
{
    for (uint32_t i = 0; i < m->consts.n; i++) {
        cps_const again = m->consts.data[i];
        if (!again.hashed)
            continue;
        again.hashed = false;
        if (!cps_digest_eq(cps_const_digest(&again), &m->consts.data[i].digest)) {
            cps_error(c->diags, CPS_E9108, CPS_NOSPAN,
                      "'%s': the bytes of constant %u are not those of its digest", path, i);
            return false;
        }
    }
    return true;
}

bool
cps_model_parse(cps_cli *c, const char *path, cps_model *out)
{
    cps_file f, d;
    if (!cps_file_open(path, true, &f)) {
        cps_error(c->diags, CPS_E1001, CPS_NOSPAN, "cannot read '%s': %s", path,
                  strerror(errno));
        return false;
    }
    const char *beside = data_path(c, path);
    bool has = strcmp(path, "-") != 0 && cps_file_open(beside, false, &d);
    cps_onnx_files *files = cps_new(c->arena, cps_onnx_files);
    out->files = files;
    cps_vec_push(c->arena, &files->file, ((cps_onnx_file){f, path}));
    if (has)
        cps_vec_push(c->arena, &files->file, ((cps_onnx_file){d, cps_path_base(beside)}));
    entries e = {.f = has ? &d : NULL};
    cps_map_init(&e.at, c->arena);
    if (has && !read_entries(c, beside, &e))
        return false;
    // Messages outlive the mapping: the text is copied.
    char *text = cps_arena_strndup(c->arena, (const char *)f.data, f.n);
    uint32_t src = cps_diags_source(c->diags, path, text, f.n);
    cps_module *m = cps_ir_parse(c->arena, text, f.n, src, c->diags, find_entry, &e);
    if (!m && !has && cps_diags_count(c->diags) &&
        cps_diags_code(c->diags, cps_diags_count(c->diags) - 1) == CPS_E9106)
        cps_help(c->diags, "they lie in '%s', which '-o' writes beside the text", beside);
    if (!m || !cps_ir_verify(m, c->diags) || (has && !check_data(c, m, beside)))
        return false;
    out->module = m;
    return true;
}
