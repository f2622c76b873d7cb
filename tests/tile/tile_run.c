/* tile_run FILE: parses a tile text, verifies it for its target, executes it with the
 * inputs given, and prints what the outputs hold. Arguments are read from FILE.in: the storage
 * of the HBM arguments one after the other, in order; afterwards all of them are written to
 * FILE.out. What the NumPy oracle (oracle.py) drives. Prints diagnostics and exits 1 on any. */
#include "codegen/isa/target.h"
#include "ir/tile.h"
#include "runtime/base/file.h"

#include <stdio.h>
#include <stdlib.h>

static int
fail(const cps_diags *d)
{
    cps_buf b = {0};
    cps_diags_render(d, &b, false);
    fputs(b.data ? b.data : "no message\n", stderr);
    cps_buf_fini(&b);
    return 1;
}

int
main(int argc, char **argv)
{
    cps_file text, in;
    char path[512];
    if (argc < 2)
        return 2;
    snprintf(path, sizeof path, "%s.in", argv[1]);
    if (!cps_file_open(argv[1], true, &text) || !cps_file_open(path, false, &in))
        return 2;
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    uint32_t id = cps_diags_source(d, argv[1], (const char *)text.data, text.n);
    cps_tfunc *f = cps_tile_parse(a, (const char *)text.data, text.n, id, d);
    if (!f)
        return fail(d);
    const cps_target *t = cps_target_find(f->target);
    if (!t || !cps_tile_verify(f, t, d))
        return fail(d);
    void *args[64];
    size_t bytes[64], at = 0;
    unsigned n = 0;
    for (uint32_t i = 1; i < f->bufs.n && n < 64; i++) {
        const cps_tbuf *b = &f->bufs.data[i];
        if (b->space != CPS_HBM || b->role == CPS_LOCAL || b->role == CPS_DATA)
            continue;
        bytes[n] = (size_t)cps_tbuf_bytes(b);
        if (at + bytes[n] > in.n)
            return 2;
        args[n] = malloc(bytes[n] + 1);
        memcpy(args[n], in.data + at, bytes[n]);
        at += bytes[n++];
    }
    int rc = cps_tile_eval(f, args, d) ? 0 : fail(d);
    cps_buf out = {0};
    for (unsigned i = 0; i < n; i++) {
        cps_buf_put(&out, args[i], bytes[i]);
        free(args[i]);
    }
    snprintf(path, sizeof path, "%s.out", argv[1]);
    if (!cps_file_write(path, out.data, out.n))
        rc = 2;
    cps_buf_fini(&out);
    cps_file_close(&text);
    cps_file_close(&in);
    cps_diags_destroy(d);
    cps_arena_destroy(a);
    return rc;
}
