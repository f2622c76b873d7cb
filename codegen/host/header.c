/* host.h: what a program that links host.o includes. Names of tensors are data from a model:
 * they stand in comments, percent-quoted, never in code. */
#include "codegen/host/gen.h"

#include <ctype.h>

static void
quoted(cps_buf *out, const char *s)
{
    for (; *s; s++)
        if (isalnum((unsigned char)*s) || strchr("._-:/", *s))
            cps_buf_putc(out, *s);
        else
            cps_buf_printf(out, "%%%02X", (unsigned char)*s);
}

static void
tensor(const host_plan *p, cps_buf *out, const char *what, uint32_t i, const char *name,
       cps_val v)
{
    cps_buf_printf(out, " *   %s[%u] ", what, i);
    quoted(out, name && *name ? name : "unnamed");
    cps_buf_putc(out, ' ');
    cps_type_print(cps_host_type(p, v), out);
    cps_buf_printf(out, ", %lld bytes\n", (long long)cps_type_bytes(cps_host_type(p, v)));
}

void
cps_gen_header(const host_plan *p, cps_buf *out)
{
    const cps_func *f = p->f;
    cps_buf_puts(out, "/* Host code of '");
    quoted(out, p->m->name && *p->m->name ? p->m->name : f->name);
    cps_buf_puts(out,
                 "', made by copse " CPS_VERSION ". Tensors are dense, in row-major order:\n");
    for (uint32_t i = 0; i < f->inputs.n; i++)
        tensor(p, out, "in", i, f->vals.data[f->inputs.data[i]].name, f->inputs.data[i]);
    for (uint32_t i = 0; i < f->outputs.n; i++)
        tensor(p, out, "out", i, f->output_names.data[i], f->outputs.data[i]);
    cps_buf_puts(
        out,
        " * Outputs may overlap neither each other nor inputs. `weights` holds the contents "
        "of\n"
        " * weights.bin, `scratch` cps_model_scratch_bytes bytes aligned to 64, one for each\n"
        " * thread that runs the model. Returns 0. */\n"
        "#ifndef CPS_MODEL_H\n#define CPS_MODEL_H\n\n#include <stdint.h>\n\n"
        "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    cps_buf_printf(out, "#define CPS_MODEL_INPUTS %u\n#define CPS_MODEL_OUTPUTS %u\n\n",
                   f->inputs.n, f->outputs.n);
    cps_buf_printf(out, "extern const uint64_t cps_model_scratch_bytes; /* %lld */\n",
                   (long long)p->scratch);
    cps_buf_printf(out, "extern const uint64_t cps_model_weights_bytes; /* %lld */\n\n",
                   (long long)p->weights);
    cps_buf_puts(
        out, "int cps_model_run(const void *weights, const void *const *in, void *const *out,\n"
             "                  void *scratch);\n\n"
             "#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}
