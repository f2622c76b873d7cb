/* Packages as one program: what is rewritten, what stays, and what cannot be linked. */
#include "tests/pkg/pk.h"

#include "codegen/isa/verify.h"
#include "runtime/pkg/package_link.h"

static uint32_t
count(const cps_kbin *k, cps_engine e, cps_insn i)
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < k->stream[e].code.n; c++)
        n += cps_isa_find(k->stream[e].code.data[c].b[0], k->gen) == i;
    return n;
}

static void
test_two_steps(void)
{
    kb b = kb_new("trn2");
    pk_kernel(&b);
    cps_package *p = pk_package(&b, b.k);
    cps_link l;
    CHECK(cps_package_link(b.a, p, &l, b.d));
    const cps_kbin *k = l.kbin;
    CHECK_INT(l.barriers, 1);
    // sb, in, out, gamma, then kernel_0's own, the temporary
    static const char *const name[] = {"sb",  "in",           "out",           "gamma",
                                       "one", "kernel_0.tmp", "kernel_0.table"};
    static const cps_varkind kind[] = {CPS_VAR_SB,  CPS_VAR_INPUT, CPS_VAR_OUTPUT, CPS_VAR_DATA,
                                       CPS_VAR_TMP, CPS_VAR_TMP,   CPS_VAR_DATA};
    CHECK_INT(k->vars.n, cps_countof(name));
    for (uint32_t i = 0; i < k->vars.n && i < cps_countof(name); i++) {
        CHECK_STR(k->vars.data[i].name, name[i]);
        CHECK_INT(k->vars.data[i].kind, kind[i]);
        CHECK_INT(l.backing[0][i], i == 4   ? p->vars.data[3].offset
                                : i == 3 ? p->vars.data[2].offset
                                         : -1);
    }
    CHECK(k->vars.data[3].data == pk_gamma && k->vars.data[6].data == pk_table);
    // descriptors follow the arguments of each step
    CHECK_INT(k->descs.n, 12);
    CHECK_INT(k->descs.data[0].from, 1);
    CHECK_INT(k->descs.data[6].from, 4);
    CHECK_INT(k->descs.data[5].to, 4);
    CHECK_INT(k->descs.data[11].to, 2);
    CHECK_INT(k->descs.data[1].from, 3);
    CHECK_INT(k->descs.data[7].from, 3);
    // block ids go on per queue, in blocks and in the triggers
    static const uint32_t id[] = {7, 0, 3, 15, 4, 7};
    CHECK_INT(k->blocks.n, 6);
    for (uint32_t i = 0; i < k->blocks.n; i++)
        CHECK_INT(k->blocks.data[i].id, id[i]);
    uint32_t seen[4] = {0}, n = 0;
    for (uint32_t i = 0; i < k->stream[CPS_SP].code.n && n < 4; i++) {
        const cps_bundle *x = &k->stream[CPS_SP].code.data[i];
        if (cps_isa_find(x->b[0], k->gen) == CPS_INSN_PSEUDO_DMA_TRIGGER)
            seen[n++] = (uint32_t)cps_isa_get(x, CPS_F_PSEUDO_DMA_TRIGGER_block_id);
    }
    CHECK(n == 4 && seen[0] == 0 && seen[1] == 3 && seen[2] == 4 && seen[3] == 7);
    // relocations move with their records
    CHECK_INT(k->relocs.n, 2);
    CHECK_INT(k->relocs.data[0].index, 2);
    CHECK_INT(k->relocs.data[0].var, 1);
    CHECK_INT(k->relocs.data[1].var, 4);
    CHECK_INT(k->relocs.data[1].index, 3 + 6 + 2);
    CHECK_INT(k->relocs.data[1].addend, 32);
    // the barrier: semaphores no kernel touches, and those of the kernels cleared
    for (int e = 0; e < CPS_ENGINES; e++)
        CHECK_INT(count(k, (cps_engine)e, CPS_INSN_DRAIN), 1);
    CHECK_INT(count(k, CPS_PE, CPS_INSN_EVENT_SEMAPHORE), 3);
    CHECK_INT(count(k, CPS_SP, CPS_INSN_EVENT_SEMAPHORE_RANGE_CLEAR), 2);
    const cps_bundle *clear = &k->stream[CPS_SP].code.data[3 + 2];
    CHECK_INT(cps_isa_get(clear, CPS_F_CTRL_ER_first), 4);
    CHECK_INT(cps_isa_get(clear, CPS_F_CTRL_ER_last), 10);
    const cps_bundle *arrive = &k->stream[CPS_PE].code.data[1];
    CHECK_INT(cps_isa_get(arrive, CPS_F_CTRL_ES_update_idx), 10);
    for (int e = 0; e < CPS_ENGINES; e++)
        for (uint32_t i = 0; i < k->stream[e].code.n; i++)
            CHECK(cps_isa_verify(&k->stream[e].code.data[i], k->gen, (cps_engine)e, b.d,
                                 CPS_NOSPAN) ||
                  cps_isa_find(k->stream[e].code.data[i].b[0], k->gen) == CPS_INSN_DMA_MEMCPY);
    kb_free(&b);
}

static void
test_one_step(void)
{
    kb b = kb_new("trn2");
    pk_kernel(&b);
    cps_package *p = pk_package(&b, b.k);
    p->steps.n = 1;
    p->args.data[2].var = 1;
    cps_link l;
    CHECK(cps_package_link(b.a, p, &l, b.d));
    for (int e = 0; e < CPS_ENGINES; e++) {
        uint32_t n = b.k->stream[e].code.n;
        CHECK_INT(l.kbin->stream[e].code.n, n);
        CHECK(!n || !memcmp(l.kbin->stream[e].code.data, b.k->stream[e].code.data,
                            n * sizeof(cps_bundle)));
    }
    CHECK_INT(l.barriers, 0);
    // a private variable gives way to a name of the model
    p->inputs.data[0].name = p->vars.data[0].name = "kernel_0.tmp";
    CHECK(cps_package_link(b.a, p, &l, b.d));
    CHECK_INT(cps_kbin_var(l.kbin, "kernel_0.tmp"), 1);
    CHECK(cps_kbin_var(l.kbin, "kernel_0.tmp.1") != UINT32_MAX);
    kb_free(&b);
}

/* Steps of a pair: a program for each core, the package's memory one for both, and a meeting of the
 * cores between two steps. A step of one core is core 0's. */
static void
test_pair(void)
{
    kb b = kb_new("trn2");
    pk_kernel(&b);
    const cps_kbin *alone = b.k;
    pk_pair(&b);
    cps_package *p = pk_package(&b, b.k);
    cps_pkernel k = p->kernels.data[0];
    k.name = "alone";
    k.kbin = alone;
    cps_vec_push(b.a, &p->kernels, k);
    pk_step(p, 3, 2, 1);
    p->steps.data[2].kernel = 1;
    // names that a private variable and the model's would share
    p->vars.data[3].name = "kernel_0.both";
    cps_link l;
    CHECK(cps_package_link(b.a, p, &l, b.d));
    CHECK_INT(l.barriers, 2);
    const cps_kbin *one = l.kbin, *two = l.kbin->peer;
    CHECK(two && one->core == 0 && two->core == 1 && one->cores == 2 && two->cores == 2);
    for (const cps_kbin *x = one; x; x = x->peer) {
        CHECK_INT(count(x, CPS_SP, CPS_INSN_PSEUDO_CORE_BARRIER), 2);
        CHECK_INT(count(x, CPS_PE, CPS_INSN_PSEUDO_CORE_BARRIER), 0);
        // in, out and the temporary are one for both; both name them and the kernel's own alike
        uint32_t tmp = cps_kbin_var(x, "kernel_0.both"), own = cps_kbin_var(x, "kernel_0.both.1");
        CHECK(tmp != UINT32_MAX && own != UINT32_MAX);
        CHECK_INT(x->vars.data[cps_kbin_var(x, "in")].kind, CPS_VAR_INPUT);
        CHECK_INT(x->vars.data[cps_kbin_var(x, "out")].kind, CPS_VAR_OUTPUT);
        CHECK_INT(x->vars.data[tmp].kind, CPS_VAR_SHARED);
        CHECK_INT(x->vars.data[own].kind, CPS_VAR_SHARED);
        CHECK_INT(x->vars.data[tmp].bytes, 128);
        CHECK_INT(x->vars.data[own].bytes, 256);
        CHECK_INT(l.backing[x->core][tmp], p->vars.data[3].offset);
        CHECK_INT(l.backing[x->core][own], -1);
        CHECK_INT(x->vars.data[cps_kbin_var(x, "kernel_0.table")].kind, CPS_VAR_DATA);
        for (int e = 0; e < CPS_ENGINES; e++)
            CHECK(cps_isa_verify_stream(x->stream[e].code.data, x->stream[e].code.n, x->gen, b.d, NULL));
    }
    CHECK(cps_kbin_var(one, "alone.tmp") != UINT32_MAX && cps_kbin_var(two, "alone.tmp") == UINT32_MAX);
    CHECK_INT(one->blocks.n, 9);
    CHECK_INT(two->blocks.n, 6);
    // the cores meet by a semaphore that no kernel uses, nor the barriers between engines
    uint32_t at = 0;
    while (at < one->stream[CPS_SP].code.n &&
           cps_isa_find(one->stream[CPS_SP].code.data[at].b[0], one->gen) != CPS_INSN_PSEUDO_CORE_BARRIER)
        at++;
    CHECK_INT(cps_isa_get(&one->stream[CPS_SP].code.data[at], CPS_F_PSEUDO_CORE_BARRIER_semaphore), 13);
    // the half of a pair is no program
    b.k->peer = NULL;
    CHECK(!cps_package_link(b.a, p, &l, b.d) && pk_said(b.d, CPS_E8405, "one core's of 2"));
    kb_free(&b);
}

typedef void change(kb *b, cps_package *p);

static void
refused(const char *why, change *make)
{
    kb b = kb_new("trn2");
    pk_kernel(&b);
    cps_package *p = pk_package(&b, b.k);
    make(&b, p);
    cps_link l;
    CHECK(!cps_package_link(b.a, p, &l, b.d));
    bool said = pk_said(b.d, CPS_E8405, why);
    CHECK(said);
    if (!said)
        kb_show(&b);
    kb_free(&b);
}

static void
host_step(kb *b, cps_package *p)
{
    (void)b;
    p->steps.data[1].kernel = -1;
}

static void
no_step(kb *b, cps_package *p)
{
    (void)b;
    p->steps.n = 0;
}

static void
halts(kb *b, cps_package *p)
{
    (void)p;
    kb_put(b, CPS_PE, kb_insn(b, CPS_INSN_HALT));
}

static void
functions(kb *b, cps_package *p)
{
    (void)p;
    kb_put(b, CPS_PE, kb_insn(b, CPS_INSN_PSEUDO_FUNCTION_RETURN));
}

static void
far_branch(kb *b, cps_package *p)
{
    (void)p;
    cps_bundle x = kb_insn(b, CPS_INSN_COMPARE_BRANCH);
    cps_isa_set(&x, CPS_F_CTRL_BR_target_mode, CPS_BR_TARGET_MODE_REGISTER);
    kb_put(b, CPS_PE, x);
}

static void
high_semaphore(kb *b, cps_package *p)
{
    (void)p;
    cps_bundle x = kb_insn(b, CPS_INSN_NOP);
    kb_inc(&x, 253);
    kb_put(b, CPS_PE, x);
}

static void
unbound(kb *b, cps_package *p)
{
    (void)b;
    p->args.data[3].formal = "other";
}

static void
other_size(kb *b, cps_package *p)
{
    (void)b;
    p->vars.data[2].bytes = 128;
}

static void
name_of_sb(kb *b, cps_package *p)
{
    (void)b;
    p->inputs.data[0].name = "sb";
}

static void
shared_output(kb *b, cps_package *p)
{
    cps_pio io = p->outputs.data[0];
    io.name = "again";
    cps_vec_push(b->a, &p->outputs, io);
}

static void
other_owner(kb *b, cps_package *p)
{
    (void)p;
    b->k->blocks.data[2].owner = CPS_ACT;
}

static void
many_blocks(kb *b, cps_package *p)
{
    (void)p;
    b->k->blocks.data[0].id = UINT32_MAX - 1;
}

static void
two_cores(kb *b, cps_package *p)
{
    (void)p;
    b->k->cores = 2;
}

int
main(void)
{
    test_pair();
    test_two_steps();
    test_one_step();
    refused("runs on the host", host_step);
    refused("no NeuronCore step", no_step);
    refused("ends its stream itself", halts);
    refused("has functions", functions);
    refused("address in a register", far_branch);
    refused("semaphores up to 253", high_semaphore);
    refused("nothing is given for its operand 'x'", unbound);
    refused("operand 'g' has 256 bytes", other_size);
    refused("name of the state buffer", name_of_sb);
    refused("'again' and 'out' are one variable", shared_output);
    refused("belongs to different engines", other_owner);
    refused("too many blocks", many_blocks);
    refused("one core's of 2", two_cores);
    return CHECK_DONE();
}
