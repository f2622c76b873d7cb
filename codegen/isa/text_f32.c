/* binary32 as decimal text that reads back as the same bits. */
#include "codegen/isa/text_f32.h"

#include <string.h>

static const double ten[] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13,
    1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27,
    1e28, 1e29, 1e30, 1e31, 1e32, 1e33, 1e34, 1e35, 1e36, 1e37, 1e38, 1e39, 1e40, 1e41,
    1e42, 1e43, 1e44, 1e45, 1e46, 1e47, 1e48, 1e49, 1e50, 1e51, 1e52, 1e53, 1e54, 1e55};

// The shortest decimal of at most nine digits that reads back as v, in double arithmetic. A
// candidate counts only if both its neighbours within 1e-14 round to v as well, which covers
// every error of the arithmetic here and of a correct reader; false when none does.
static bool
shortest(float v, uint64_t *digits, int *exponent)
{
    double d = (double)v;
    int e = 0; // power of ten of the first digit
    while (e < 38 && d >= ten[e + 1])
        e++;
    if (d < 1.0) {
        e = -1;
        while (e > -46 && d * ten[-e] < 1.0)
            e--;
    }
    for (int prec = 1; prec <= 9; prec++) {
        int s = prec - 1 - e;
        double scaled = s >= 0 ? d * ten[s] : d / ten[-s];
        uint64_t m = (uint64_t)(scaled + 0.5);
        double back = s >= 0 ? (double)m / ten[s] : (double)m * ten[-s];
        if ((float)(back * (1 - 1e-14)) == v && (float)(back * (1 + 1e-14)) == v) {
            while (m % 10 == 0) {
                m /= 10;
                s--;
            }
            *digits = m;
            *exponent = -s;
            return true;
        }
    }
    return false;
}

static char *
put(char *p, const char *s)
{
    size_t n = strlen(s);
    memcpy(p, s, n);
    return p + n;
}

static char *
put_digits(char *p, const char *t, int n)
{
    memcpy(p, t, (size_t)n);
    return p + n;
}

static char *
put_exponent(char *p, int e)
{
    *p++ = 'e';
    if (e < 0) {
        *p++ = '-';
        e = -e;
    }
    if (e >= 10)
        *p++ = (char)('0' + e / 10);
    *p++ = (char)('0' + e % 10);
    return p;
}

char *
cps_text_f32(char *p, uint32_t bits)
{
    uint32_t mag = bits & 0x7FFFFFFFu;
    uint64_t m = 0;
    int e = 0;
    if (mag > 0x7F800000u)
        return NULL;
    if (mag && mag < 0x7F800000u && !shortest(cps_bits_f32(mag), &m, &e))
        return NULL;
    if (bits >> 31)
        *p++ = '-';
    if (mag == 0)
        return put(p, "0.0");
    if (mag == 0x7F800000u)
        return put(p, "inf");
    char t[24];
    int n = 0;
    for (uint64_t r = m; r; r /= 10)
        n++;
    for (int i = n; i--; m /= 10)
        t[i] = (char)('0' + m % 10);
    int first = e + n - 1; // power of ten of the first digit
    if (first < -5 || first > 9) {
        *p++ = t[0];
        if (n > 1) {
            *p++ = '.';
            p = put_digits(p, t + 1, n - 1);
        }
        return put_exponent(p, first);
    }
    if (e >= 0) {
        p = put_digits(p, t, n);
        while (e--)
            *p++ = '0';
        return put(p, ".0");
    }
    if (first >= 0) {
        p = put_digits(p, t, first + 1);
        *p++ = '.';
        return put_digits(p, t + first + 1, n - first - 1);
    }
    p = put(p, "0.");
    for (int i = -1; i > first; i--)
        *p++ = '0';
    return put_digits(p, t, n);
}
