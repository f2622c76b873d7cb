/* From LLVM IR to bytes: the target machine, LLVM's own passes, the object in memory. LLVM
 * reports through a handler of our context; nothing is printed and nothing ends the process. */
#include "codegen/host/gen.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <stdio.h>

/* Processors that can be asked for by name: what the tiling has to know of each. */
static const struct cpu {
    const char *name;
    int lanes, registers;
    bool fma;
} cpus[] = {
    {"x86-64", 4, 16, false},         {"x86-64-v2", 4, 16, false},
    {"x86-64-v3", 8, 16, true},       {"x86-64-v4", 16, 32, true},
    {"haswell", 8, 16, true},         {"broadwell", 8, 16, true},
    {"skylake", 8, 16, true},         {"skylake-avx512", 16, 32, true},
    {"cascadelake", 16, 32, true},    {"icelake-server", 16, 32, true},
    {"sapphirerapids", 16, 32, true}, {"znver2", 8, 16, true},
    {"znver3", 8, 16, true},          {"znver4", 16, 32, true},
    {"generic", 4, 16, false},
};

static bool
has(const char *features, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = features; (p = strstr(p, name)); p += n)
        if ((p == features || p[-1] == ',') && (p[n] == ',' || !p[n]))
            return true;
    return false;
}

static bool
facts(gen *g, const char *cpu, const char *features, cps_diags *d)
{
    if (!cpu) {
        bool wide = has(features, "+avx512f") && has(features, "+avx512bw") &&
                    has(features, "+avx512vl");
        g->lanes = wide ? 16 : has(features, "+avx2") ? 8 : 4;
        g->registers = wide || has(features, "+neon") ? 32 : 16;
        g->fma = has(features, "+fma") || has(features, "+neon");
        return true;
    }
    for (size_t i = 0; i < cps_countof(cpus); i++)
        if (strcmp(cpus[i].name, cpu) == 0) {
            g->lanes = cpus[i].lanes;
            g->registers = cpus[i].registers;
            g->fma = cpus[i].fma;
            return true;
        }
    cps_error(d, CPS_E7204, CPS_NOSPAN, "no processor '%s' is known to the host code generator",
              cpu);
    cps_buf b = {0};
    for (size_t i = 0; i < cps_countof(cpus); i++)
        cps_buf_printf(&b, "%s%s", i ? ", " : "", cpus[i].name);
    cps_help(d, "known are %s", b.data);
    cps_buf_fini(&b);
    return false;
}

bool
cps_gen_target(gen *g, const cps_host_opts *o, LLVMTargetMachineRef *tm)
{
    cps_diags *d = g->p->d;
    char *triple = LLVMGetDefaultTargetTriple(), *host = LLVMGetHostCPUName();
    char *features = LLVMGetHostCPUFeatures(), *why = NULL;
    const char *cpu = o->cpu ? o->cpu : host;
    LLVMTargetRef target;
    bool ok = facts(g, o->cpu, features, d);
    if (ok && LLVMGetTargetFromTriple(triple, &target, &why)) {
        cps_error(d, CPS_E7205, CPS_NOSPAN, "LLVM has no code generator for '%s': %s", triple,
                  why ? why : "");
        ok = false;
    }
    if (ok) {
        LLVMCodeGenOptLevel level = o->olevel <= 0   ? LLVMCodeGenLevelNone
                                    : o->olevel == 1 ? LLVMCodeGenLevelLess
                                    : o->olevel == 2 ? LLVMCodeGenLevelDefault
                                                     : LLVMCodeGenLevelAggressive;
        *tm = LLVMCreateTargetMachine(target, triple, cpu, o->cpu ? "" : features, level,
                                      LLVMRelocPIC, LLVMCodeModelDefault);
        LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(*tm);
        LLVMSetModuleDataLayout(g->mod, layout);
        LLVMSetTarget(g->mod, triple);
        LLVMDisposeTargetData(layout);
    }
    LLVMDisposeMessage(why);
    LLVMDisposeMessage(triple);
    LLVMDisposeMessage(host);
    LLVMDisposeMessage(features);
    return ok;
}

static bool
failed(gen *g, const char *stage, const char *why)
{
    cps_error(g->p->d, CPS_E7205, CPS_NOSPAN, "%s: %s", stage,
              why && *why ? why : "no reason given");
    return false;
}

bool
cps_gen_optimise(gen *g, LLVMTargetMachineRef tm, int olevel)
{
    char *why = NULL;
    if (LLVMVerifyModule(g->mod, LLVMReturnStatusAction, &why))
        cps_bug("host code does not verify: %s", why);
    LLVMDisposeMessage(why);
    char passes[32];
    snprintf(passes, sizeof passes, "default<O%d>", CPS_MAX(0, CPS_MIN(3, olevel)));
    // Loops are vectors already; unrolling them further costs compile time and gains nothing.
    LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
    LLVMPassBuilderOptionsSetLoopVectorization(o, 0);
    LLVMPassBuilderOptionsSetLoopInterleaving(o, 0);
    LLVMPassBuilderOptionsSetSLPVectorization(o, 0);
    LLVMPassBuilderOptionsSetLoopUnrolling(o, olevel >= 3);
    LLVMErrorRef e = LLVMRunPasses(g->mod, passes, tm, o);
    LLVMDisposePassBuilderOptions(o);
    if (e) {
        char *text = LLVMGetErrorMessage(e);
        failed(g, "LLVM's passes failed", text);
        LLVMDisposeErrorMessage(text);
        return false;
    }
    return !g->errors || failed(g, "LLVM's passes failed", g->error.data);
}

bool
cps_gen_object(gen *g, LLVMTargetMachineRef tm, cps_buf *out)
{
    char *why = NULL;
    LLVMMemoryBufferRef mem = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(tm, g->mod, LLVMObjectFile, &why, &mem)) {
        failed(g, "LLVM could not emit the object", why);
        LLVMDisposeMessage(why);
        return false;
    }
    cps_buf_put(out, LLVMGetBufferStart(mem), LLVMGetBufferSize(mem));
    LLVMDisposeMemoryBuffer(mem);
    return !g->errors || failed(g, "LLVM could not emit the object", g->error.data);
}
