/* What the processor is, without LLVM: part of the key of cached host code. Vendor, signature
 * and every feature word that decides which vector instructions LLVM may use; elsewhere than on
 * x86 the system's own description of its processor. */
#include "codegen/host/host.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

void
cps_host_cpu(char *out, size_t n)
{
    // leaf, subleaf, mask per register: the APIC id and other per-core bits are left out
    static const unsigned leaves[][6] = {
        {0, 0, ~0u, ~0u, ~0u, ~0u},
        {1, 0, ~0u, 0, ~(1u << 27), ~0u}, // OSXSAVE follows the process, not the machine
        {7, 0, ~0u, ~0u, ~0u, ~0u},
        {7, 1, ~0u, ~0u, ~0u, ~0u},
        {0x80000001u, 0, ~0u, ~0u, ~0u, ~0u},
    };
    size_t at = (size_t)snprintf(out, n, "x86");
    for (unsigned i = 0; i < cps_countof(leaves) && at < n; i++) {
        unsigned a = 0, b = 0, c = 0, d = 0;
        __get_cpuid_count(leaves[i][0], leaves[i][1], &a, &b, &c, &d);
        at += (size_t)snprintf(out + at, n - at, " %08x%08x%08x%08x", a & leaves[i][2],
                               b & leaves[i][3], c & leaves[i][4], d & leaves[i][5]);
    }
}
#else
#include "runtime/base/file.h"

void
cps_host_cpu(char *out, size_t n)
{
    cps_file f;
    snprintf(out, n, "unknown");
    if (!cps_file_open("/proc/cpuinfo", true, &f))
        return;
    cps_digest d = cps_digest_of(f.data, CPS_MIN(f.n, (size_t)1024));
    cps_file_close(&f);
    char hex[65];
    cps_digest_hex(&d, hex);
    snprintf(out, n, "%s", hex);
}
#endif
