/* The two ways to stop on purpose: what they print and how the process ends. Each runs in a
 * child whose standard error is read back. */
#include "runtime/base/arena.h"
#include "runtime/base/num.h"
#include "runtime/base/str.h"
#include "tests/check.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static char said[512];

// Runs f in a child, leaves its stderr in `said`, returns the status of waitpid.
static int
in_child(void (*f)(void))
{
    int p[2], status = 0;
    size_t n = 0;
    if (pipe(p) != 0)
        return -1;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(p[0]);
        dup2(p[1], 2);
        signal(SIGABRT, SIG_DFL);
        f();
        _exit(0);
    }
    close(p[1]);
    for (ssize_t got; n < sizeof(said) - 1; n += (size_t)got)
        if ((got = read(p[0], said + n, sizeof(said) - 1 - n)) <= 0)
            break;
    said[n] = 0;
    close(p[0]);
    waitpid(pid, &status, 0);
    return status;
}

static void
broken_assert(void)
{
    int one = 1;
    cps_assert(one == 2);
}

static void
packed_value(void)
{
    uint32_t cell = 0;
    cps_to_f32(CPS_DT_FP8E4M3FN_X4, &cell);
}

static void
packed_values(void)
{
    uint32_t cell = 0;
    float f;
    cps_to_f32_n(CPS_DT_FP4E2M1_X4, &cell, &f, 1);
}

static void
float_as_int(void)
{
    uint32_t cell = 0;
    cps_to_i64(CPS_DT_FP32, &cell);
}

static void
huge_array(void)
{
    cps_arena_alloc(cps_arena_create(), SIZE_MAX - 5);
}

static void
huge_buffer(void)
{
    cps_buf b = {.n = SIZE_MAX - 3};
    cps_buf_put(&b, "xxxx", 4);
}

static void
wrong_release(void)
{
    cps_arena *a = cps_arena_create();
    cps_arena_raw(a, 1);
    cps_mark m = cps_arena_mark(a);
    m.used += 4096;
    cps_arena_release(a, m);
}

int
main(void)
{
    static const struct {
        void (*f)(void);
        bool bug;
        const char *says;
    } row[] = {
        {broken_assert, true, "'one == 2' does not hold"},
        {packed_value, true, "'fp8e4m3fn_x4' has no scalar value"},
        {packed_values, true, "'fp4e2m1_x4' has no scalar value"},
        {float_as_int, true, "does not hold"},
        {wrong_release, true, "does not hold"},
        {huge_array, false, "copse: out of memory (18446744073709551610 bytes asked)"},
        {huge_buffer, false, "copse: out of memory (4 bytes asked)"},
    };
    for (size_t i = 0; i < cps_countof(row); i++) {
        int status = in_child(row[i].f);
        CHECK(strstr(said, row[i].says) != NULL);
        if (row[i].bug) {
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
            CHECK(strncmp(said, "copse: internal error at ", 25) == 0);
        } else {
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == CPS_IO);
        }
    }
    return CHECK_DONE();
}
