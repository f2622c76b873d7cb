/* How fast, and in how much memory, `copse dis` and `copse asm` work on a large file. A program
 * to run by hand on a quiet machine, not a test: it fails only when bytes differ.
 *
 *   bench_text COPSE DIR COUNT STREAM.bin...
 *
 * Two files of COUNT trn2 bundles are made in DIR, one after the other: `mix`, all rows in turn
 * with random legal fields, and `kernels`, the given streams (kernels/NAME/ENGINE.bin of
 * packages) over and over. Each is taken apart and put together again by the program COPSE, as
 * a user would do it, from file to file; the bytes must come back. Printed: the best of three
 * runs in processor time (user and system: what one core needs) and in elapsed time, and the
 * largest resident memory. Ten million bundles need about 2.2 GB in DIR; all files are removed
 * at the end. */
#include "codegen/isa/text.h"
#include "runtime/base/file.h"
#include "runtime/base/stream.h"
#include "tests/isa/random.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 4096, RUNS = 3 };

typedef struct cost {
    double cpu, wall; // seconds
    long kib;
} cost;

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double
seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static bool
run(const char *copse, const char *command, const char *in, const char *out, cost *best)
{
    for (int k = 0; k < RUNS; k++) {
        double from = now();
        pid_t pid = fork();
        if (pid == 0) {
            int null = open("/dev/null", O_WRONLY);
            dup2(null, STDERR_FILENO); // the note on foreign records
            execl(copse, copse, command, in, "-o", out, (char *)NULL);
            _exit(127);
        }
        int status;
        struct rusage u;
        if (pid < 0 || wait4(pid, &status, 0, &u) != pid || status != 0) {
            fprintf(stderr, "'%s %s %s' failed\n", copse, command, in);
            return false;
        }
        cost c = {seconds(u.ru_utime) + seconds(u.ru_stime), now() - from, u.ru_maxrss};
        best->cpu = k ? CPS_MIN(best->cpu, c.cpu) : c.cpu;
        best->wall = k ? CPS_MIN(best->wall, c.wall) : c.wall;
        best->kib = CPS_MAX(k ? best->kib : 0, c.kib);
    }
    return true;
}

static void
report(const char *what, const char *command, unsigned long count, const cost *c)
{
    printf(
        "%-8s %s  %6.2f M bundles/s of processor time, %6.2f M/s elapsed, %ld MiB resident\n",
        what, command, (double)count / c->cpu * 1e-6, (double)count / c->wall * 1e-6,
        c->kib / 1024);
    fflush(stdout);
}

static bool
make_mix(cps_writer *w, unsigned long count)
{
    static cps_bundle b[BATCH];
    cps_rng r;
    cps_rng_init(&r, 1, 0);
    cps_insn row = CPS_INSN_NONE;
    for (unsigned long made = 0; made < count;) {
        size_t n = CPS_MIN(count - made, (unsigned long)BATCH);
        for (size_t i = 0; i < n; i++) {
            row = random_next(row, CPS_V3);
            b[i] = random_insn(&r, row, CPS_V3);
        }
        if (!cps_writer_put(w, b, n * sizeof *b))
            return false;
        made += n;
    }
    return true;
}

static bool
make_kernels(cps_writer *w, unsigned long count, int files, char **path)
{
    size_t left = count * CPS_BUNDLE_BYTES, all = 0;
    while (left) {
        for (int i = 0; i < files && left; i++) {
            cps_file f;
            if (!cps_file_open(path[i], false, &f))
                return false;
            size_t n = CPS_MIN(left, f.n / CPS_BUNDLE_BYTES * CPS_BUNDLE_BYTES);
            bool ok = cps_writer_put(w, f.data, n);
            cps_file_close(&f);
            if (!ok)
                return false;
            left -= n;
            all += n;
        }
        if (!all)
            return false; // nothing but empty files
    }
    return true;
}

static bool
same(const char *a, const char *b)
{
    cps_file x, y;
    if (!cps_file_open(a, false, &x))
        return false;
    bool ok = cps_file_open(b, false, &y);
    if (ok) {
        ok = x.n == y.n && memcmp(x.data, y.data, x.n) == 0;
        cps_file_close(&y);
    }
    cps_file_close(&x);
    return ok;
}

int
main(int argc, char **argv)
{
    unsigned long count = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
    if (count == 0) {
        fputs("bench_text COPSE DIR COUNT STREAM.bin...\n", stderr);
        return 2;
    }
    cps_arena *a = cps_arena_create();
    const char *bin = cps_path_join(a, argv[2], "bench.bin"),
               *cas = cps_path_join(a, argv[2], "bench.cas"),
               *back = cps_path_join(a, argv[2], "bench.back");
    bool ok = true;
    for (int k = 0; k < (argc > 4 ? 2 : 1) && ok; k++) {
        const char *what = k ? "kernels" : "mix";
        cps_writer w;
        ok = cps_writer_open(bin, &w);
        bool made =
            ok && (k ? make_kernels(&w, count, argc - 4, argv + 4) : make_mix(&w, count));
        ok = ok && cps_writer_close(&w, made) && made;
        if (!ok) {
            perror(bin);
            break;
        }
        cost c;
        ok = run(argv[1], "dis", bin, cas, &c);
        if (ok)
            report(what, "dis", count, &c);
        ok = ok && run(argv[1], "asm", cas, back, &c);
        if (ok)
            report(what, "asm", count, &c);
        if (ok && !same(bin, back)) {
            fprintf(stderr, "%s: other bytes came back\n", what);
            ok = false;
        }
    }
    unlink(bin);
    unlink(cas);
    unlink(back);
    cps_arena_destroy(a);
    return !ok;
}
