/* The rows of rule.def for one instruction: one case per rule, whatever the field. */
#include "codegen/isa/verify.h"

/* ---- fields ---- */

// Elements of a field, one for most.
static unsigned
elements(const cps_field_row *r)
{
    return r->arg > 1 && (r->kind == CPS_FK_UINT || r->kind == CPS_FK_SINT) ? r->arg : 1;
}

static uint64_t
element(const cps_checker *c, unsigned f, unsigned i)
{
    return elements(&cps_fields[f]) > 1 ? cps_isa_get_elem(c->b, (cps_field)f, i)
                                        : cps_check_get64(c, (cps_field)f);
}

static void
one_of(cps_checker *c, const cps_rule_row *r)
{
    uint64_t v = cps_check_get64(c, (cps_field)r->f);
    if (v >= 64 || !(r->a >> v & 1))
        cps_check_report(c, CPS_RULE_ONE_OF, "%s cannot be %llu here", cps_fields[r->f].name,
                         (unsigned long long)v);
}

static void
range(cps_checker *c, const cps_rule_row *r)
{
    for (unsigned i = 0; i < elements(&cps_fields[r->f]); i++) {
        uint64_t v = element(c, r->f, i);
        if (v >= r->a && v <= r->b)
            continue;
        cps_check_report(c, CPS_RULE_RANGE, "%s is %llu, not %llu to %llu",
                         cps_fields[r->f].name, (unsigned long long)v, (unsigned long long)r->a,
                         (unsigned long long)r->b);
        return;
    }
}

static void
multiple(cps_checker *c, const cps_rule_row *r)
{
    unsigned v = cps_check_get(c, (cps_field)r->f);
    if (v % r->a)
        cps_check_report(c, CPS_RULE_MULTIPLE, "%s is %u, not a multiple of %u",
                         cps_fields[r->f].name, v, (unsigned)r->a);
}

static void
registers(cps_checker *c, const cps_rule_row *r)
{
    for (unsigned i = 0; i < elements(&cps_fields[r->f]); i++) {
        uint64_t v = element(c, r->f, i);
        if (v < 64 || (r->a && (v == 128 || v == 129)))
            continue;
        cps_check_report(c, CPS_RULE_REGISTER, "%s names register %u", cps_fields[r->f].name,
                         (unsigned)v);
        return;
    }
}

static void
name(cps_checker *c, const cps_rule_row *r)
{
    const cps_field_row *f = &cps_fields[r->f];
    const uint8_t *p = c->b->b + f->byte;
    unsigned n = f->bits / 8u, len = 0;
    while (len < n && p[len])
        len++;
    unsigned rest = len;
    while (rest < n && !p[rest])
        rest++;
    if (len == n)
        cps_check_report(c, CPS_RULE_NAME, "%s fills its %u bytes", f->name, n);
    else if (rest < n)
        cps_check_report(c, CPS_RULE_NAME, "%s goes on behind its end", f->name);
}

static void
zero(cps_checker *c, const cps_rule_row *r)
{
    const cps_field_row *f = &cps_fields[r->f];
    for (unsigned i = 0; i < f->bits / 8u; i++)
        if (c->b->b[f->byte + i]) {
            cps_check_report(c, CPS_RULE_ZERO, "%s is not 0", f->name);
            return;
        }
}

static void class(cps_checker *c, const cps_rule_row *r)
{
    unsigned v = cps_check_get(c, (cps_field)r->f);
    cps_alu_class k = cps_alu_class_of(v, c->g);
    if (k == CPS_ALUC_NONE)
        return; // said already
    if (!(r->a & (1u << k)))
        cps_check_report(c, CPS_RULE_CLASS, "operator %s does not go with %s here",
                         cps_alu_name(v), cps_fields[r->f].name);
    // Conditions of the special operators: POOL has them; rsqrt stands alone anywhere.
    else if ((k == CPS_ALUC_SPECIAL || k == CPS_ALUC_CRC || k == CPS_ALUC_INT) &&
             v != CPS_ALU_RSQRT && c->e != CPS_POOL && c->e != CPS_ENGINE_ANY)
        cps_check_report_as(c, CPS_RULE_POOL_ONLY, cps_rules[CPS_RULE_POOL_ONLY].sure,
                            "operator %s exists on the pool engine only", cps_alu_name(v));
}

static void
align8(cps_checker *c, const cps_rule_row *r)
{
    uint64_t v = cps_check_get64(c, (cps_field)r->f);
    if (!(v >> 58) && v % r->a)
        cps_check_report(c, CPS_RULE_ALIGN8, "%s is 0x%llx, not a multiple of %u",
                         cps_fields[r->f].name, (unsigned long long)v, (unsigned)r->a);
}

/* ---- operands ---- */

static unsigned
size_of(const cps_checker *c, unsigned f)
{
    cps_dtype t = cps_isa_dtype(cps_check_wire(c, &cps_fields[f]));
    return t ? cps_dtype_bytes(t) : 0;
}

static void
tags(cps_checker *c, const cps_rule_row *r)
{
    unsigned wire = cps_check_wire(c, &cps_fields[r->f]);
    cps_dtype t = cps_isa_dtype(wire);
    if (!(wire < 64 && r->a >> wire & 1))
        cps_check_report(c, CPS_RULE_TAGS, "%s cannot have dtype %s here",
                         cps_fields[r->f].name, t ? cps_dtype_name(t) : "of that tag");
}

static void
alike(cps_checker *c, const cps_rule_row *r)
{
    const char *f = cps_fields[r->f].name, *g = cps_fields[r->g].name;
    if (r->rule == CPS_RULE_WIDTH && size_of(c, r->f) != size_of(c, r->g))
        cps_check_report(c, CPS_RULE_WIDTH, "%s and %s must have dtypes of one size", f, g);
    else if (r->rule == CPS_RULE_SAME &&
             cps_check_wire(c, &cps_fields[r->f]) != cps_check_wire(c, &cps_fields[r->g]))
        cps_check_report(c, CPS_RULE_SAME, "%s and %s must have one dtype", f, g);
}

static void
place(cps_checker *c, const cps_rule_row *r, const cps_operands *o)
{
    const cps_operand *x = cps_check_find(o, r->f);
    if (x && x->fixed && x->psum != (bool)r->a)
        cps_check_report(c, CPS_RULE_PLACE, "%s must be in %s", x->r->name,
                         r->a ? "PSUM" : "SBUF");
}

static void
count(cps_checker *c, const cps_rule_row *r, const cps_operands *o)
{
    const cps_operand *x = cps_check_find(o, r->f);
    if (x && (x->count < r->a || x->count > r->b))
        cps_check_report(c, CPS_RULE_ELEMENTS, "%s has %llu elements, not %llu to %llu",
                         x->r->name, (unsigned long long)x->count, (unsigned long long)r->a,
                         (unsigned long long)r->b);
}

/* ---- rows ---- */

static void
check(cps_checker *c, const cps_rule_row *r, const cps_operands *o)
{
    if (r->f && !(cps_fields[r->f].gens & (1u << c->g)))
        return;
    switch ((cps_rule)r->rule) {
    case CPS_RULE_TAGS:
        tags(c, r);
        break;
    case CPS_RULE_SAME:
    case CPS_RULE_WIDTH:
        alike(c, r);
        break;
    case CPS_RULE_ALIGN8:
        align8(c, r);
        break;
    case CPS_RULE_ONE_OF:
        one_of(c, r);
        break;
    case CPS_RULE_RANGE:
        range(c, r);
        break;
    case CPS_RULE_MULTIPLE:
        multiple(c, r);
        break;
    case CPS_RULE_REGISTER:
        registers(c, r);
        break;
    case CPS_RULE_NAME:
        name(c, r);
        break;
    case CPS_RULE_ZERO:
        zero(c, r);
        break;
    case CPS_RULE_CLASS:
        class(c, r);
        break;
    case CPS_RULE_PLACE:
        place(c, r, o);
        break;
    case CPS_RULE_ELEMENTS:
        if (o->known)
            count(c, r, o);
        break;
    case CPS_RULE_COUNT:
        if (o->known)
            r->fn(c, o);
        break;
    default:
        if (r->fn)
            r->fn(c, o);
        break;
    }
}

static void
group(cps_checker *c, const cps_operands *o, unsigned step, unsigned i)
{
    for (; i && cps_rule_rows[i].rule != CPS_RULES; i++)
        if (cps_rules[cps_rule_rows[i].rule].step == step) {
            c->row = &cps_rule_rows[i];
            check(c, c->row, o);
        }
    c->row = NULL;
}

void
cps_check_rows(cps_checker *c, const cps_operands *o, unsigned step)
{
    group(c, o, step, cps_rule_of_format(c->insn->format));
    group(c, o, step, cps_rule_of_insn(c->id));
}
