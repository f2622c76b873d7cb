/* Assembly text: asm and dis. Both read pieces and write pieces, so that memory does not grow with
 * the file and pipes flow: a stream of a device may hold many millions of bundles. */
#include "frontend/text_check.h"

#include "codegen/isa/text.h"
#include "runtime/base/stream.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum {
    PIECE = 1 << 18, // bytes read at a time
    LINES = 256,     // bundles printed between two looks at how much text there is
    CLOSE = 1 << 16  // records of a stream that dis checks by every rule
};

static bool
generation(cps_cli *c, cps_gen *g)
{
    bool ok = true;
    const cps_target *t = cps_cli_target(c, &ok);
    if (ok && !t) {
        cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'--target host' has no NeuronCore instructions");
        return false;
    }
    if (ok)
        *g = t->gen;
    return ok;
}

typedef struct files {
    const char *in, *out;
    cps_reader r;
    cps_writer w;
    char *piece; // room for PIECE bytes
    bool drop;   // write no more
} files;

static bool
cannot_read(cps_cli *c, const files *f)
{
    cps_error(c->diags, CPS_E1001, CPS_NOSPAN, "cannot read '%s': %s", f->in, strerror(errno));
    return false;
}

static bool
cannot_write(cps_cli *c, const files *f)
{
    cps_error(c->diags, CPS_E1002, CPS_NOSPAN, "cannot write '%s': %s", f->out, strerror(errno));
    return false;
}

static bool
open_in(cps_cli *c, files *f)
{
    if (c->args.n != 1) {
        cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "'%s' takes one file", c->command);
        return false;
    }
    *f = (files){.in = c->args.data[0], .out = cps_cli_str(c, CPS_OPT_OUTPUT, "-")};
    f->piece = cps_arena_raw(c->arena, PIECE);
    return cps_reader_open(f->in, &f->r) || cannot_read(c, f);
}

static bool
open_out(cps_cli *c, files *f)
{
    return cps_writer_open(f->out, &f->w) || cannot_write(c, f);
}

static bool
put(cps_cli *c, files *f, cps_buf *b)
{
    bool ok = f->drop || cps_writer_put(&f->w, b->data, b->n) || cannot_write(c, f);
    b->n = 0;
    return ok;
}

// The output file takes its name only when all went well.
static cps_exit
finish(cps_cli *c, files *f, cps_buf *b, bool ok)
{
    cps_buf_fini(b);
    cps_reader_close(&f->r);
    if (!cps_writer_close(&f->w, ok) && ok)
        ok = cannot_write(c, f);
    return ok ? CPS_OK : cps_cli_failed(c);
}

cps_exit
cps_cmd_asm(cps_cli *c)
{
    files f;
    cps_gen g;
    cps_qform form;
    bool valid = true, desc = cps_form_is_desc(c, &form, &valid);
    cps_engine engine = cps_stream_engine(c, cps_cli_str(c, CPS_OPT_OUTPUT, ""), &valid);
    if (desc && valid)
        return cps_asm_desc(c);
    if (!valid || !generation(c, &g) || !open_in(c, &f))
        return cps_cli_failed(c);
    if (!open_out(c, &f)) {
        cps_reader_close(&f.r);
        return cps_cli_failed(c);
    }
    cps_cas *ps = cps_isa_parser(c->arena, f.in, g, c->diags);
    cps_diags *probe = NULL;
    if (cps_cli_has(c, CPS_OPT_VERIFY)) {
        probe = cps_diags_create();
        cps_isa_parser_verify(ps, engine, probe);
    }
    cps_buf b = {0};
    bool io = true; // a bad line does not hide the next one, but nothing more is written
    ptrdiff_t got;
    while (io && (got = cps_reader_get(&f.r, f.piece, PIECE)) != 0) {
        if (got < 0) {
            io = cannot_read(c, &f);
        } else {
            f.drop |= !cps_isa_parse_piece(ps, f.piece, (size_t)got, &b);
            io = put(c, &f, &b);
        }
    }
    f.drop |= !cps_isa_parse_end(ps, &b);
    if (io)
        io = put(c, &f, &b);
    if (probe)
        cps_diags_destroy(probe);
    return finish(c, &f, &b, io && !f.drop);
}

static bool
no_whole_bundles(cps_cli *c, const files *f, uint64_t bytes)
{
    cps_error(c->diags, CPS_E9001, CPS_NOSPAN,
              "'%s' holds %" PRIu64 " bytes, which is no multiple of the 64 of an instruction", f->in, bytes);
    cps_help(c->diags, "an engine's stream in a container is a plain array of 64-byte records");
    return false;
}

// How many of n records are legal: the first ones of a stream by every rule, the rest by opcode and
// reserved bytes, which costs nothing beside the printing.
static uint64_t
legal(const cps_isa_fit *fit, const cps_bundle *b, size_t n, uint64_t *close, cps_diags *probe)
{
    uint64_t good = 0;
    for (size_t i = 0; i < n; i++) {
        bool fits = cps_isa_fits(fit, &b[i]);
        if (fits && *close) {
            --*close;
            fits = cps_isa_verify(&b[i], fit->g, CPS_ENGINE_ANY, probe, CPS_NOSPAN);
            if (cps_diags_count(probe))
                cps_diags_clear(probe);
        }
        good += fits;
    }
    return good;
}

cps_exit
cps_cmd_dis(cps_cli *c)
{
    files f;
    cps_gen g;
    cps_qform form;
    bool valid = true, desc = cps_form_is_desc(c, &form, &valid);
    cps_engine engine = cps_stream_engine(c, c->args.n ? c->args.data[0] : "", &valid);
    if (desc && valid)
        return cps_dis_desc(c, form);
    if (!valid || !generation(c, &g) || !open_in(c, &f))
        return cps_cli_failed(c);
    if ((f.r.sized && f.r.size % CPS_BUNDLE_BYTES && !no_whole_bundles(c, &f, f.r.size)) || !open_out(c, &f)) {
        cps_reader_close(&f.r);
        return cps_cli_failed(c);
    }
    cps_buf b = {0}, whole = {0};
    cps_isa_fit *fit = cps_new(c->arena, cps_isa_fit);
    cps_diags *probe = cps_diags_create();
    uint64_t close = CLOSE;
    bool verify = cps_cli_has(c, CPS_OPT_VERIFY); // keeps the stream
    uint64_t known = 0, all = 0;
    cps_isa_fit_init(fit, g);
    size_t have = 0; // bytes of a bundle that has not come whole
    ptrdiff_t got;
    bool ok = true;
    while (ok && (got = cps_reader_get(&f.r, f.piece + have, PIECE - have)) != 0) {
        if (got < 0) {
            ok = cannot_read(c, &f);
            break;
        }
        have += (size_t)got;
        size_t n = have / CPS_BUNDLE_BYTES, at = 0;
        for (; at < n && ok; at += CPS_MIN(n - at, (size_t)LINES)) {
            const cps_bundle *x = (const cps_bundle *)f.piece + at;
            size_t lines = CPS_MIN(n - at, (size_t)LINES);
            cps_isa_print_lines(x, lines, g, &b);
            known += legal(fit, x, lines, &close, probe);
            if (b.n >= PIECE)
                ok = put(c, &f, &b);
        }
        ok = ok && put(c, &f, &b);
        if (verify)
            cps_buf_put(&whole, f.piece, n * CPS_BUNDLE_BYTES);
        all += n;
        have %= CPS_BUNDLE_BYTES;
        memmove(f.piece, f.piece + n * CPS_BUNDLE_BYTES, have);
    }
    if (ok && have)
        ok = no_whole_bundles(c, &f, all * CPS_BUNDLE_BYTES + have);
    if (known != all)
        cps_error(c->diags, CPS_N9002, CPS_NOSPAN,
                  "%" PRIu64 " of %" PRIu64
                  " records are no legal %s instructions; they come back exactly all the same (--verify says more)",
                  all - known, all, cps_gen_name(g));
    if (ok && verify)
        valid = cps_check_stream(c, f.in, g, engine, (const cps_bundle *)(const void *)whole.data,
                                 whole.n / CPS_BUNDLE_BYTES);
    cps_buf_fini(&whole);
    cps_diags_destroy(probe);
    cps_exit code = finish(c, &f, &b, ok);
    return code == CPS_OK && !valid ? cps_cli_failed(c) : code;
}
