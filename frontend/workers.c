/* See workers.h. Workers take the next job from a counter in shared memory; the parent only
 * watches. */
#include "frontend/workers.h"

#include "frontend/cli.h"
#include "runtime/base/base.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 40, LOOK_MS = 50, PATIENCE_MS = 1000 };

typedef struct counters {
    atomic_uint next, done;
} counters;

void *
cps_shared(size_t bytes)
{
    void *p = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                   -1, 0);
    if (p == MAP_FAILED)
        cps_bug("no memory to share with workers");
    return p;
}

void
cps_shared_free(void *p, size_t bytes)
{
    munmap(p, bytes ? bytes : 1);
}

static void
work(const cps_work *w, counters *c)
{
    for (unsigned i; (i = atomic_fetch_add(&c->next, 1)) < w->n;) {
        w->job(w->ctx, i);
        atomic_fetch_add(&c->done, 1);
    }
}

static void
draw(const cps_work *w, unsigned done)
{
    char bar[WIDTH + 1];
    unsigned full = w->n ? (unsigned)((unsigned long long)done * WIDTH / w->n) : WIDTH;
    memset(bar, '-', WIDTH);
    memset(bar, '#', full);
    bar[WIDTH] = 0;
    fprintf(stderr, "\r%s [%s] %u of %u", w->what, bar, done, w->n);
    fflush(stderr);
}

bool
cps_work_run(const cps_work *w)
{
    counters *c = cps_shared(sizeof *c);
    unsigned workers = CPS_MIN(CPS_MAX(1, w->workers), CPS_MAX(1, w->n)), alive = 0;
    bool ok = true, bar = false, terminal = isatty(STDERR_FILENO);
    double t0 = cps_now_ms();
    fflush(stdout);
    fflush(stderr);
    for (unsigned k = 0; k < workers; k++) {
        pid_t pid = fork();
        if (pid == 0) {
            work(w, c);
            _exit(0);
        }
        ok = ok && pid > 0;
        alive += pid > 0;
    }
    while (alive) {
        int status;
        pid_t pid = waitpid(-1, &status, terminal ? WNOHANG : 0);
        if (pid > 0) {
            alive--;
            ok = ok && WIFEXITED(status) && WEXITSTATUS(status) == 0;
        } else if (pid < 0 && errno != EINTR) {
            break;
        } else if (pid == 0) {
            struct timespec look = {.tv_nsec = LOOK_MS * 1000000L};
            if (cps_now_ms() - t0 > PATIENCE_MS) {
                draw(w, atomic_load(&c->done));
                bar = true;
            }
            nanosleep(&look, NULL);
        }
    }
    if (bar)
        fprintf(stderr, "\r\033[K");
    ok = ok && atomic_load(&c->done) == w->n;
    cps_shared_free(c, sizeof *c);
    return ok;
}
