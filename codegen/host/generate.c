/* The one entry of libcopse-llvm.so: check, plan, emit, optimise, write the object. Every call
 * has an LLVM context of its own, so that calls may run in several threads; the target is
 * registered once, when the library is loaded. */
#include "codegen/host/entry.h"
#include "codegen/host/gen.h"

#include <llvm-c/Target.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT const char cps_llvm_version[] = CPS_VERSION;

static void __attribute__((constructor)) register_target(void)
{
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
}

static void
on_diagnostic(LLVMDiagnosticInfoRef info, void *user)
{
    gen *g = user;
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError)
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    if (!g->errors++)
        cps_buf_puts(&g->error, text);
    LLVMDisposeMessage(text);
}

static void
set_up(gen *g)
{
    g->ctx = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(g->ctx, on_diagnostic, g);
    g->mod = LLVMModuleCreateWithNameInContext("copse", g->ctx);
    g->b = LLVMCreateBuilderInContext(g->ctx);
    g->i1 = LLVMInt1TypeInContext(g->ctx);
    g->i8 = LLVMInt8TypeInContext(g->ctx);
    g->i16 = LLVMInt16TypeInContext(g->ctx);
    g->i32 = LLVMInt32TypeInContext(g->ctx);
    g->i64 = LLVMInt64TypeInContext(g->ctx);
    g->f16 = LLVMHalfTypeInContext(g->ctx);
    g->f32 = LLVMFloatTypeInContext(g->ctx);
    g->f64 = LLVMDoubleTypeInContext(g->ctx);
    g->ptr = LLVMPointerTypeInContext(g->ctx, 0);
}

EXPORT bool
cps_llvm_host_compile(const cps_module *m, const cps_func *f, const int64_t *offset,
                      const cps_host_opts *o, bool want_llvm, cps_host_out *out, cps_diags *d)
{
    host_plan p = {.m = m, .f = f, .offset = offset, .d = d};
    gen g = {.p = &p};
    LLVMTargetMachineRef tm = NULL;
    p.arena = g.arena = cps_arena_create();
    set_up(&g);
    bool ok = cps_host_check(&p) && cps_gen_target(&g, o, &tm);
    if (ok) {
        p.lanes = g.lanes;
        p.registers = g.registers;
        cps_host_fuse(&p);
        cps_host_place(&p);
        cps_gen_module(&g);
        ok = cps_gen_optimise(&g, tm, o->olevel);
    }
    if (ok && want_llvm) {
        char *text = LLVMPrintModuleToString(g.mod);
        cps_buf_puts(&out->llvm, text);
        LLVMDisposeMessage(text);
    }
    if (ok) {
        out->scratch_bytes = p.scratch;
        cps_gen_header(&p, &out->header);
        ok = cps_gen_object(&g, tm, &out->object);
    }
    if (tm)
        LLVMDisposeTargetMachine(tm);
    LLVMDisposeBuilder(g.b);
    LLVMDisposeModule(g.mod);
    LLVMContextDispose(g.ctx);
    cps_buf_fini(&g.error);
    cps_arena_destroy(p.arena);
    return ok;
}
