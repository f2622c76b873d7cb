/* Instances as key components and as text. */
#include "kernels/instance.h"

#include <string.h>

enum { // field ids; never reused
    F_OP = 1,
    F_TARGET = 2,
    F_TARGET_DIGEST = 3,
    F_CORES = 4,
    F_OPERAND = 8, // one a slot, up to 23
    F_RESULT = 24, // up to 39
    F_ATTR = 40,
    F_ATTR_KEY = 41,
    F_ATTR_KIND = 42,
    F_ATTR_VALUE = 43
};

void
cps_key_field(cps_buf *parts, uint16_t id, const void *bytes, uint32_t n)
{
    uint8_t head[6] = {(uint8_t)id,       (uint8_t)(id >> 8), (uint8_t)n,
                       (uint8_t)(n >> 8), (uint8_t)(n >> 16), (uint8_t)(n >> 24)};
    cps_buf_put(parts, head, sizeof(head));
    if (n)
        cps_buf_put(parts, bytes, n);
}

static void
key_text(cps_buf *parts, uint16_t id, const char *s)
{
    cps_key_field(parts, id, s, (uint32_t)strlen(s));
}

static void
key_operand(cps_buf *parts, uint16_t id, const cps_operand *o)
{
    cps_buf b = {0};
    cps_buf_printf(&b, "%s %d %u ", o->name ? o->name : "", o->present, o->order);
    if (o->present)
        cps_type_print(&o->type, &b);
    cps_key_field(parts, id, b.data, (uint32_t)b.n);
    cps_buf_fini(&b);
}

static void
key_attr(cps_buf *parts, const cps_attr *x)
{
    static const char *const kinds[] = {"int", "float", "bool", "str", "dtype", "ints"};
    cps_buf b = {0};
    uint8_t raw[8];
    uint64_t v = (uint64_t)x->i;

    key_text(&b, F_ATTR_KEY, x->key);
    key_text(&b, F_ATTR_KIND, kinds[x->kind]);
    if (x->kind == CPS_A_FLOAT)
        memcpy(&v, &x->f, sizeof(v));
    if (x->kind == CPS_A_STR) {
        key_text(&b, F_ATTR_VALUE, x->s ? x->s : "");
    } else if (x->kind == CPS_A_DTYPE) {
        key_text(&b, F_ATTR_VALUE, cps_dtype_name((cps_dtype)x->i));
    } else {
        uint32_t n = x->kind == CPS_A_INTS ? x->n : 1;
        for (uint32_t k = 0; k < n; k++) {
            if (x->kind == CPS_A_INTS)
                v = (uint64_t)x->ints[k];
            for (int j = 0; j < 8; j++)
                raw[j] = (uint8_t)(v >> (8 * j));
            cps_key_field(&b, F_ATTR_VALUE, raw, sizeof(raw));
        }
    }
    cps_key_field(parts, F_ATTR, b.data, (uint32_t)b.n);
    cps_buf_fini(&b);
}

void
cps_instance_key(const cps_instance *i, cps_buf *parts)
{
    uint8_t cores = (uint8_t)CPS_MAX(i->cores, 1);

    key_text(parts, F_OP, i->op);
    key_text(parts, F_TARGET, i->target ? i->target->name : "host");
    if (i->target)
        cps_key_field(parts, F_TARGET_DIGEST, i->target->digest.b, sizeof(i->target->digest.b));
    cps_key_field(parts, F_CORES, &cores, 1);
    for (int k = 0; k < i->noperands; k++)
        key_operand(parts, (uint16_t)(F_OPERAND + k), &i->operand[k]);
    for (int k = 0; k < i->nresults; k++)
        key_operand(parts, (uint16_t)(F_RESULT + k), &i->result[k]);
    for (int k = 0; k < i->nattr; k++)
        key_attr(parts, &i->attr[k]);
}

void
cps_attr_print(const cps_attr *x, cps_buf *out)
{
    cps_buf_printf(out, "%s=", x->key);
    switch (x->kind) {
    case CPS_A_INT:
        cps_buf_printf(out, "%lld", (long long)x->i);
        break;
    case CPS_A_FLOAT:
        cps_buf_put_double(out, x->f);
        break;
    case CPS_A_BOOL:
        cps_buf_puts(out, x->i ? "true" : "false");
        break;
    case CPS_A_STR:
        cps_buf_puts(out, x->s ? x->s : "");
        break;
    case CPS_A_DTYPE:
        cps_buf_puts(out, cps_dtype_name((cps_dtype)x->i));
        break;
    case CPS_A_INTS:
        cps_buf_putc(out, '[');
        for (uint32_t k = 0; k < x->n; k++)
            cps_buf_printf(out, "%s%lld", k ? "," : "", (long long)x->ints[k]);
        cps_buf_putc(out, ']');
        break;
    }
}

void
cps_instance_print(const cps_instance *i, cps_buf *out)
{
    const char *sep = "";

    cps_buf_printf(out, "%s(", i->op);
    for (int k = 0; k < i->noperands; k++) {
        const cps_operand *o = &i->operand[k];
        if (!o->present)
            continue;
        cps_buf_printf(out, "%s%s ", sep, o->name ? o->name : "?");
        cps_type_print(&o->type, out);
        if (o->order)
            cps_buf_puts(out, " stored transposed");
        sep = ", ";
    }
    sep = "; ";
    for (int k = 0; k < i->nattr; k++) {
        cps_buf_puts(out, sep);
        cps_attr_print(&i->attr[k], out);
        sep = ", ";
    }
    for (int k = 0; k < i->nresults; k++)
        if (i->result[k].order) {
            cps_buf_printf(out, "%s%s stored transposed", sep, i->result[k].name);
            sep = ", ";
        }
    cps_buf_printf(out, ") on %s", i->target ? i->target->name : "host");
    if (i->cores > 1)
        cps_buf_printf(out, ", %d cores", i->cores);
}
