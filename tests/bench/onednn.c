/* oneDNN's f32 matmul for the benchmark, with the layout of the weights left to it: y = x w, one thread.
 * Built only where dnnl.h is found (Debian: libdnnl-dev); nothing of copse depends on it. */
#include <dnnl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct product {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t prim;
    dnnl_memory_t x, w, y;
} product;

EXPORT product *onednn_matmul(int64_t m, int64_t k, int64_t n, float *x, float *w, float *y);
EXPORT double onednn_run(product *p);

static bool
memory(product *p, const dnnl_memory_desc_t *d, void *data, dnnl_memory_t *out)
{
    return dnnl_memory_create(out, d, p->engine, data) == dnnl_success;
}

static bool
make(product *p, dnnl_dim_t m, dnnl_dim_t k, dnnl_dim_t n, float *x, float *w, float *y)
{
    dnnl_memory_desc_t dx, dw, dy, plain;
    dnnl_matmul_desc_t op;
    dnnl_primitive_desc_t pd;
    bool ok =
        dnnl_engine_create(&p->engine, dnnl_cpu, 0) == dnnl_success &&
        dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags) == dnnl_success &&
        dnnl_memory_desc_init_by_tag(&dx, 2, (dnnl_dims_t){m, k}, dnnl_f32, dnnl_ab) ==
            dnnl_success &&
        dnnl_memory_desc_init_by_tag(&dw, 2, (dnnl_dims_t){k, n}, dnnl_f32,
                                     dnnl_format_tag_any) == dnnl_success &&
        dnnl_memory_desc_init_by_tag(&plain, 2, (dnnl_dims_t){k, n}, dnnl_f32, dnnl_ab) ==
            dnnl_success &&
        dnnl_memory_desc_init_by_tag(&dy, 2, (dnnl_dims_t){m, n}, dnnl_f32, dnnl_ab) ==
            dnnl_success &&
        dnnl_matmul_desc_init(&op, &dx, &dw, NULL, &dy) == dnnl_success &&
        dnnl_primitive_desc_create(&pd, &op, NULL, p->engine, NULL) == dnnl_success;
    if (!ok || dnnl_primitive_create(&p->prim, pd) != dnnl_success)
        return false;
    // The weights once into the layout that the primitive wants.
    const dnnl_memory_desc_t *want = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    dnnl_memory_t from;
    dnnl_primitive_desc_t rpd;
    dnnl_primitive_t reorder;
    if (!memory(p, &dx, x, &p->x) || !memory(p, &dy, y, &p->y) || !memory(p, &plain, w, &from) ||
        !memory(p, want, DNNL_MEMORY_ALLOCATE, &p->w) ||
        dnnl_reorder_primitive_desc_create(&rpd, &plain, p->engine, want, p->engine, NULL) !=
            dnnl_success ||
        dnnl_primitive_create(&reorder, rpd) != dnnl_success)
        return false;
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, p->w}};
    return dnnl_primitive_execute(reorder, p->stream, 2, args) == dnnl_success &&
           dnnl_stream_wait(p->stream) == dnnl_success;
}

product *
onednn_matmul(int64_t m, int64_t k, int64_t n, float *x, float *w, float *y)
{
    product *p = calloc(1, sizeof *p);
    if (p && make(p, m, k, n, x, w, y))
        return p;
    free(p);
    return NULL;
}

/* Seconds of processor, or a negative number. */
double
onednn_run(product *p)
{
    struct timespec a, b;
    dnnl_exec_arg_t args[] = {
        {DNNL_ARG_SRC, p->x}, {DNNL_ARG_WEIGHTS, p->w}, {DNNL_ARG_DST, p->y}};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    if (dnnl_primitive_execute(p->prim, p->stream, 3, args) != dnnl_success ||
        dnnl_stream_wait(p->stream) != dnnl_success)
        return -1;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    return (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
}
