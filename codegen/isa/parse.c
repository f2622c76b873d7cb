/* One line of .cas text to a bundle (grammar in text.h).
 *
 * In: a line. Out: 64 bytes, or diagnostics with the span of the word at fault. A line starts
 * from cps_isa_new and every operand overwrites its field, so whatever is absent keeps its
 * default. Mnemonics, names and fresh bundles come from tables of the parser; nothing is
 * allocated. */
#include "codegen/isa/parse.h"

#include "codegen/isa/sync_row.h"

/* ---- operands ---- */

// A field of the format by name, tried from where the last one stood: text keeps table order.
static cps_field
find_field(cps_cas *ps, unsigned fmt, const char *s, size_t n)
{
    unsigned first = cps_formats[fmt].first, end = cps_formats[fmt + 1].first;
    unsigned start = ps->next >= first && ps->next < end ? ps->next : first;
    for (unsigned i = 0, count = end - first; i < count; i++) {
        unsigned f = start + i < end ? start + i : start + i - count;
        if (cps_fields[f].label_n == n + 2 && memcmp(cps_fields[f].label + 1, s, n) == 0) {
            ps->next = f + 1;
            return (cps_field)f;
        }
    }
    return CPS_F_NONE;
}

static bool
unknown_operand(cps_cas *ps, const char *s, const char *end)
{
    char word[64];
    const char *best = NULL;
    int closest = 4;
    cps_cas_fail(ps, CPS_E9202, s, end, "'%.*s' is no operand of this instruction",
                 (int)(end - s), s);
    if ((size_t)(end - s) >= sizeof word)
        return false;
    memcpy(word, s, (size_t)(end - s));
    word[end - s] = '\0';
    for (unsigned f = cps_formats[ps->fmt].first; f < cps_formats[ps->fmt + 1].first; f++) {
        int dist = cps_edit_distance(word, cps_fields[f].name);
        if (dist < closest) {
            closest = dist;
            best = cps_fields[f].name;
        }
    }
    if (best)
        cps_help(ps->d, "did you mean '%s'?", best);
    return false;
}

// raw[byte]=0x..: a byte that no field of the format covers.
static bool
raw(cps_cas *ps, const char *from)
{
    uint64_t at, v;
    if (!cps_cas_number_of(ps, 8, false, &at) || !cps_cas_expect(ps, ']') ||
        !cps_cas_expect(ps, '=') || !cps_cas_number_of(ps, 8, false, &v))
        return false;
    if (at < 12 || at >= CPS_BUNDLE_BYTES)
        return cps_cas_fail(ps, CPS_E9204, from, ps->p, "raw bytes are 12 to 63");
    ps->b.b[at] = (uint8_t)v;
    return true;
}

static bool
operand(cps_cas *ps)
{
    const char *from = ps->p;
    if (cps_cas_keyword(ps, "raw["))
        return raw(ps, from);
    const char *end = cps_cas_word_end(ps, from);
    if (end == ps->end || *end != '=') {
        // A bare word: the function of an activation.
        for (unsigned f = cps_formats[ps->fmt].first; f < cps_formats[ps->fmt + 1].first; f++)
            if (cps_fields[f].kind == CPS_FK_ACTFN)
                return cps_cas_value(ps, (cps_field)f);
        return cps_cas_fail(ps, CPS_E9203, from, CPS_MAX(cps_cas_chunk_end(ps, from), from + 1),
                            "expected field=value");
    }
    bool header = end - from > 4 && memcmp(from, "hdr.", 4) == 0;
    cps_field f;
    if (header) {
        f = find_field(ps, CPS_FMT_HDR, from + 4, (size_t)(end - from) - 4);
        if (!f)
            f = find_field(ps, CPS_FMT_EVENTS, from + 4, (size_t)(end - from) - 4);
        if (f == CPS_F_HDR_opcode)
            f = CPS_F_NONE; // the mnemonic says it
    } else {
        f = find_field(ps, ps->fmt, from, (size_t)(end - from));
    }
    if (!f)
        return unknown_operand(ps, from, end);
    if (!header) {
        if (ps->given & cps_cas_bit_of(ps, f))
            return cps_cas_fail(ps, CPS_E9206, from, end, "'%s' is given twice",
                                cps_fields[f].name);
        ps->given |= cps_cas_bit_of(ps, f);
    }
    ps->p = end + 1;
    return cps_cas_value(ps, f);
}

/* ---- wait and then ---- */

static bool
clause(cps_cas *ps, const cps_sync_band *band, bool wait)
{
    cps_cas_skip_blanks(ps);
    const char *from = ps->p;
    bool sem = cps_cas_keyword(ps, "S["), evt = !sem && cps_cas_keyword(ps, "E[");
    uint64_t idx, v = 0;
    if (!sem && !evt)
        return cps_cas_fail(ps, CPS_E9203, from, cps_cas_chunk_end(ps, from),
                            "expected S[n] or E[n]");
    if (!cps_cas_number_of(ps, 8, false, &idx) || !cps_cas_expect(ps, ']'))
        return false;
    const char *op = ps->p;
    while (ps->p < ps->end && strchr("=<>+-", *ps->p))
        ps->p++;
    size_t op_n = (size_t)(ps->p - op);
    unsigned holds = CPS_SYNC_NOTHING;
    if (ps->p < ps->end && *ps->p == 'r') {
        ps->p++;
        holds = CPS_SYNC_REGISTER;
    } else if (ps->p < ps->end && *ps->p >= '0' && *ps->p <= '9') {
        holds = CPS_SYNC_NUMBER;
        if (evt && op_n == 2 && op[0] == '=') {
            holds = CPS_SYNC_NOTHING; // E[n]==0 is one sign
            op_n += *ps->p++ == '0';
        }
    }
    if (holds != CPS_SYNC_NOTHING && !cps_cas_number_of(ps, 32, false, &v))
        return false;
    const char *when = NULL, *when_end = NULL;
    if (!wait) {
        if (!cps_cas_expect(ps, '@'))
            return false;
        when = ps->p;
        when_end = ps->p = cps_cas_word_end(ps, when);
    }
    const cps_sync_row *row = wait ? cps_waits : cps_updates, *hit = NULL;
    for (unsigned i = 0, n = wait ? cps_wait_count : cps_update_count; i < n; i++, row++)
        if (row->object == (sem ? CPS_SYNC_SEM : CPS_SYNC_EVT) && row->operand == holds &&
            cps_cas_same(op, op_n, row->text) &&
            (wait || cps_cas_same(when, (size_t)(when_end - when), row->when))) {
            hit = row;
            break;
        }
    if (!hit)
        return cps_cas_fail(ps, CPS_E9203, from, ps->p, "no such %s", wait ? "wait" : "update");
    ps->b.b[cps_fields[wait ? band->wait_mode : band->update_mode].byte] = hit->wire;
    ps->b.b[cps_fields[wait ? band->wait_idx : band->update_idx].byte] = (uint8_t)idx;
    if (hit->operand == CPS_SYNC_NOTHING)
        return true;
    if (band->wait_value == band->update_value) {
        if (ps->sync_given && ps->sync_value != v)
            return cps_cas_fail(ps, CPS_E9205, from, ps->p,
                                "wait and update share one value, and it would be %u and %u",
                                ps->sync_value, (unsigned)v);
        ps->sync_given = true;
        ps->sync_value = (uint32_t)v;
    }
    cps_isa_set(&ps->b, wait ? band->wait_value : band->update_value, v);
    return true;
}

/* ---- lines ---- */

static bool
bytes_line(cps_cas *ps)
{
    const char *from = ps->p;
    for (unsigned i = 0; i < CPS_BUNDLE_BYTES; i++) {
        int hi = ps->end - ps->p >= 2 ? cps_cas_hex_digit(ps->p[0]) : -1;
        int lo = hi >= 0 ? cps_cas_hex_digit(ps->p[1]) : -1;
        if (lo < 0)
            return cps_cas_fail(ps, CPS_E9207, from,
                                CPS_MAX(cps_cas_chunk_end(ps, from), from + (from < ps->end)),
                                ".bytes takes 128 hex digits");
        ps->b.b[i] = (uint8_t)(hi << 4 | lo);
        ps->p += 2;
    }
    cps_cas_skip_blanks(ps);
    return ps->p == ps->end || cps_cas_fail(ps, CPS_E9207, ps->p, cps_cas_chunk_end(ps, ps->p),
                                            ".bytes takes 128 hex digits");
}

static bool
unknown_mnemonic(cps_cas *ps, const char *s, const char *end)
{
    char word[64];
    const char *best = NULL;
    int closest = 4;
    cps_cas_fail(ps, CPS_E9201, s, end, "no instruction '%.*s'", (int)(end - s), s);
    if ((size_t)(end - s) >= sizeof word)
        return false;
    for (size_t i = 0; s + i < end; i++)
        word[i] = (char)(s[i] >= 'a' && s[i] <= 'z' ? s[i] - 32 : s[i]);
    word[end - s] = '\0';
    for (unsigned i = 1; i < CPS_INSNS; i++) {
        int dist = cps_edit_distance(word, cps_insns[i].name);
        if (dist < closest) {
            closest = dist;
            best = cps_insns[i].name;
        }
    }
    if (best)
        cps_help(ps->d, "did you mean '%s'?", best);
    return false;
}

static bool
instruction(cps_cas *ps)
{
    const char *from = ps->p, *end = cps_cas_word_end(ps, from);
    if (cps_cas_keyword(ps, ".bytes")) {
        cps_cas_skip_blanks(ps);
        return bytes_line(ps);
    }
    cps_insn insn = cps_cas_find_mnemonic(ps, from, (size_t)(end - from));
    if (!insn)
        return unknown_mnemonic(ps, from, CPS_MAX(end, from + 1));
    if (!ps->have[insn]) {
        ps->fresh[insn] = cps_isa_new(insn, ps->g);
        ps->have[insn] = true;
    }
    ps->b = ps->fresh[insn];
    ps->fmt = cps_insns[insn].format;
    ps->next = cps_formats[ps->fmt].first;
    ps->given = ps->implied[0] = ps->implied[1] = 0;
    ps->sync_given = false;
    ps->p = end;
    for (;;) {
        if (ps->p < ps->end && !cps_cas_blank(*ps->p))
            return cps_cas_fail(ps, CPS_E9203, ps->p, cps_cas_chunk_end(ps, ps->p),
                                "expected a blank here");
        cps_cas_skip_blanks(ps);
        if (ps->p == ps->end)
            return true;
        const char *word = ps->p, *stop = cps_cas_word_end(ps, word);
        bool ok = false, found = false;
        if (stop < ps->end && cps_cas_blank(*stop))
            for (unsigned i = 0; i < 2 && !found; i++) {
                const cps_sync_band *band = &cps_sync_bands[i];
                bool wait = cps_cas_same(word, (size_t)(stop - word), band->wait);
                if (!wait && !cps_cas_same(word, (size_t)(stop - word), band->then))
                    continue;
                if (i == 1 && !cps_sync_second(ps->fmt))
                    return cps_cas_fail(ps, CPS_E9203, word, stop,
                                        "this instruction has no second band");
                ps->p = stop;
                ok = clause(ps, band, wait);
                found = true;
            }
        if (!found)
            ok = operand(ps);
        if (!ok)
            return false;
    }
}

// The rules of the instruction, with its mnemonic as the place. A line becomes a source of
// diagnostics only when there is something to say.
static bool
keeps_rules(cps_cas *ps, const char *from)
{
    cps_isa_verify(&ps->b, ps->g, ps->engine, ps->probe, CPS_NOSPAN);
    if (!cps_diags_count(ps->probe))
        return true;
    cps_diags_clear(ps->probe);
    return cps_isa_verify(
        &ps->b, ps->g, ps->engine, ps->d,
        cps_cas_span(ps, from, CPS_MAX(cps_cas_word_end(ps, from), from + 1)));
}

bool
cps_cas_instruction(cps_cas *ps)
{
    const char *from = ps->p;
    return instruction(ps) && (!ps->probe || ps->missing || keeps_rules(ps, from));
}
