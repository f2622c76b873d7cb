/* asm and dis of 16-byte descriptors of DMA queues (--form). Files are read whole: a ring has at
 * most 2^24 descriptors. */
#include "frontend/text_check.h"

#include "runtime/base/file.h"

#include <errno.h>
#include <string.h>

bool
cps_form_is_desc(cps_cli *c, cps_qform *form, bool *ok)
{
    const char *w = cps_cli_word(c, CPS_OPT_FORM, "bundles", "bundles descriptors m2s s2m");
    *ok = *ok && w;
    *form = !w ? CPS_QFORMS : !strcmp(w, "m2s") ? CPS_Q_M2S : !strcmp(w, "s2m") ? CPS_Q_S2M : CPS_QFORMS;
    return w && strcmp(w, "bundles") != 0;
}

static bool
read_one(cps_cli *c, bool text, cps_file *f)
{
    if (c->args.n != 1) {
        cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "'%s' takes one file", c->command);
        return false;
    }
    if (cps_file_open(c->args.data[0], text, f))
        return true;
    cps_error(c->diags, CPS_E1001, CPS_NOSPAN, "cannot read '%s': %s", c->args.data[0], strerror(errno));
    return false;
}

cps_exit
cps_asm_desc(cps_cli *c)
{
    cps_file f;
    cps_buf b = {0};
    if (!read_one(c, true, &f))
        return cps_cli_failed(c);
    uint32_t file = cps_diags_source(c->diags, c->args.data[0], (const char *)f.data, f.n);
    bool ok = cps_qdesc_parse((const char *)f.data, f.n, file, c->diags, &b);
    ok = ok && cps_cli_write(c, cps_cli_str(c, CPS_OPT_OUTPUT, "-"), b.n ? b.data : "", b.n);
    cps_exit code = ok ? CPS_OK : cps_cli_failed(c);
    cps_cli_flush(c); // while the source text is still mapped
    cps_buf_fini(&b);
    cps_file_close(&f);
    return code;
}

cps_exit
cps_dis_desc(cps_cli *c, cps_qform form)
{
    cps_file f;
    cps_buf b = {0};
    if (!read_one(c, false, &f))
        return cps_cli_failed(c);
    if (f.n % CPS_QDESC_BYTES) {
        cps_error(c->diags, CPS_E9001, CPS_NOSPAN,
                  "'%s' holds %zu bytes, which is no multiple of the 16 of a descriptor", c->args.data[0], f.n);
        cps_file_close(&f);
        return CPS_BAD_INPUT;
    }
    bool verify = cps_cli_has(c, CPS_OPT_VERIFY), ok = true;
    for (size_t i = 0; i < f.n / CPS_QDESC_BYTES; i++) {
        cps_qdesc d = cps_qdesc_load(f.data + i * CPS_QDESC_BYTES);
        size_t from = b.n;
        cps_qdesc_print(&d, form, &b);
        if (verify) {
            uint32_t file =
                cps_diags_line(c->diags, c->args.data[0], (uint32_t)i + 1, b.data + from, b.n - from);
            ok = cps_qdesc_verify(&d, form, c->diags, file ? (cps_span){file, 0, 3} : CPS_NOSPAN) && ok;
        }
        cps_buf_putc(&b, '\n');
    }
    bool io = cps_cli_write(c, cps_cli_str(c, CPS_OPT_OUTPUT, "-"), b.n ? b.data : "", b.n);
    cps_buf_fini(&b);
    cps_file_close(&f);
    return !io ? cps_cli_failed(c) : ok ? CPS_OK : CPS_BAD_INPUT;
}
