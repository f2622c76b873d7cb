/* The header: decoded, encoded and shown by the rows of neff.def. Everything is little endian;
 * the 468 bytes behind the last field are zero when we write and are not looked at when we
 * read. */
#include "runtime/pkg/neff_priv.h"

typedef enum form { FORM_U, FORM_T, FORM_X, FORM_UUID, FORM_TPB, FORM_BITS } form;

typedef struct field {
    const char *name;
    uint16_t at, bytes;
    uint8_t form;
    uint16_t in; /* offset in cps_neff_head */
    const char *doc;
} field;

static const field fields[] = {
#define CPS_NEFF_FIELD(name, at, bytes, f, sure, doc)                                          \
    {#name, at, bytes, FORM_##f, offsetof(cps_neff_head, name), doc},
#include "runtime/pkg/neff.def"
};

const unsigned cps_neff_nfields = cps_countof(fields);

const cps_neff_feature_row cps_neff_features[] = {
#define CPS_NEFF_FEATURE(id, bit, name, listed, sure, when) {bit, name, listed, #sure[0], when},
#include "runtime/pkg/neff.def"
};
const unsigned cps_neff_nfeatures = cps_countof(cps_neff_features);

static bool
is_number(const field *f)
{
    return f->form == FORM_U || f->form == FORM_BITS;
}

void
cps_neff_head_decode(const uint8_t raw[CPS_NEFF_HEAD], cps_neff_head *h)
{
    memset(h, 0, sizeof *h);
    for (unsigned i = 0; i < cps_countof(fields); i++) {
        const field *f = &fields[i];
        uint8_t *to = (uint8_t *)h + f->in;
        if (!is_number(f)) {
            memcpy(to, raw + f->at, f->bytes);
            continue;
        }
        uint64_t v = 0;
        for (unsigned k = f->bytes; k-- > 0;)
            v = v << 8 | raw[f->at + k];
        if (f->bytes == 4)
            memcpy(to, &(uint32_t){(uint32_t)v}, 4);
        else
            memcpy(to, &v, 8);
    }
}

static uint64_t
number(const cps_neff_head *h, const field *f)
{
    uint64_t v = 0;
    uint32_t w;
    const uint8_t *from = (const uint8_t *)h + f->in;
    if (f->bytes == 8)
        memcpy(&v, from, 8);
    else
        v = (memcpy(&w, from, 4), w);
    return v;
}

void
cps_neff_head_encode(const cps_neff_head *h, uint8_t raw[CPS_NEFF_HEAD])
{
    memset(raw, 0, CPS_NEFF_HEAD);
    for (unsigned i = 0; i < cps_countof(fields); i++) {
        const field *f = &fields[i];
        uint64_t v = is_number(f) ? number(h, f) : 0;
        if (!is_number(f))
            memcpy(raw + f->at, (const uint8_t *)h + f->in, f->bytes);
        for (unsigned k = 0; is_number(f) && k < f->bytes; k++)
            raw[f->at + k] = (uint8_t)(v >> (8 * k));
    }
}

const char *
cps_neff_field_name(unsigned i)
{
    return fields[i].name;
}

const char *
cps_neff_field_doc(unsigned i)
{
    return fields[i].doc;
}

bool
cps_neff_field_is_number(unsigned i)
{
    return fields[i].form == FORM_U;
}

uint64_t
cps_neff_field_number(const cps_neff *f, unsigned i)
{
    return number(&f->head, &fields[i]);
}

void
cps_neff_field_text(const cps_neff *f, unsigned i, cps_buf *out)
{
    const field *x = &fields[i];
    const uint8_t *b = (const uint8_t *)&f->head + x->in;
    unsigned n = x->bytes;
    switch (x->form) {
    case FORM_U:
        cps_buf_printf(out, "%llu", (unsigned long long)number(&f->head, x));
        break;
    case FORM_BITS:
        cps_buf_printf(out, "0x%llx", (unsigned long long)number(&f->head, x));
        break;
    case FORM_T:
        cps_buf_puts(out, (const char *)b);
        break;
    case FORM_TPB: // up to the last node that has cores
        while (n > 1 && !b[n - 1])
            n--;
        for (unsigned k = 0; k < n; k++)
            cps_buf_printf(out, "%s%u", k ? "," : "", b[k]);
        break;
    case FORM_X: // an MD5 is followed by characters '0'
        if (f->head.pkg_version == 2)
            n = 16;
        // fall through
    default:
        for (unsigned k = 0; k < n; k++)
            cps_buf_printf(out, "%s%02x",
                           x->form == FORM_UUID && (k == 4 || k == 6 || k == 8 || k == 10) ? "-"
                                                                                           : "",
                           b[k]);
    }
}

void
cps_neff_put_plain(cps_buf *out, const char *s)
{
    for (; *s; s++) {
        if (*s >= ' ' && *s <= '~')
            cps_buf_putc(out, *s);
        else
            cps_buf_printf(out, "\\x%02x", (unsigned char)*s);
    }
}

void
cps_neff_hash(uint64_t pkg_version, const void *data, size_t n, uint8_t hash[32])
{
    if (pkg_version == 1) {
        cps_digest d = cps_digest_of(data, n);
        memcpy(hash, d.b, 32);
        return;
    }
    cps_md5(data, n, hash);
    memset(hash + 16, '0', 16);
}

void
cps_neff_new_head(cps_neff *f, const char *name, unsigned cores, uint64_t features)
{
    cps_neff_head *h = &f->head;
    *h = (cps_neff_head){.pkg_version = 2,
                         .header_size = CPS_NEFF_HEAD,
                         .neff_version_major = 2,
                         .neff_build_version = "copse " CPS_VERSION,
                         .num_tpb = cores,
                         .requested_tpb_count = cores,
                         .feature_bits = features,
                         .lnc_size = cores};
    strncpy(h->name, name, 255); // the last byte stays NUL, as the public writer leaves it
    h->tpb_per_node[0] = (uint8_t)cores;
    f->has_head = true;
}

/* Version 4 of RFC 4122 in form; the bits are of the content, so that equal content has an
 * equal name. */
void
cps_neff_uuid(const uint8_t *archive, size_t n, uint8_t uuid[16])
{
    cps_digest d = cps_digest_of(archive, n);
    memcpy(uuid, d.b, 16);
    uuid[6] = (uint8_t)((uuid[6] & 0x0F) | 0x40);
    uuid[8] = (uint8_t)((uuid[8] & 0x3F) | 0x80);
}
