/* host.so out of host.o: the system's linker on two temporary files, started without a shell.
 * Its messages come back through a pipe and become part of the diagnostic. */
#include "codegen/host/host.h"

#include "runtime/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MESSAGE = 4096 };

static bool
fail(cps_diags *d, const char *what, int err)
{
    cps_error(d, CPS_E1112, CPS_NOSPAN, "%s: %s", what, strerror(err));
    return false;
}

// A fresh folder of our own; everything in it is removed by `clean`.
static bool
make_folder(char *dir, size_t size)
{
    const char *tmp = getenv("TMPDIR");
    int n = snprintf(dir, size, "%s/copse-XXXXXX", tmp && *tmp ? tmp : P_tmpdir);
    return n > 0 && (size_t)n < size - 16 && mkdtemp(dir);
}

static void
clean(const char *dir, const char *o, const char *so)
{
    unlink(o);
    unlink(so);
    rmdir(dir);
}

// Runs ld; false with its last words in `said`.
static bool
run_ld(const char *o, const char *so, char *said, cps_diags *d)
{
    int fd[2], status = 0;
    if (pipe2(fd, O_CLOEXEC) != 0)
        return fail(d, "no pipe to the linker", errno);
    posix_spawn_file_actions_t acts;
    posix_spawn_file_actions_init(&acts);
    posix_spawn_file_actions_adddup2(&acts, fd[1], 1);
    posix_spawn_file_actions_adddup2(&acts, fd[1], 2);
    // Code only: no interpreter, no start files, symbols bound when loaded, a non-executable
    // stack.
    const char *argv[] = {"ld", "-shared", "-z", "noexecstack", "-z", "now", "--build-id=none",
                          "-o", so,        o,    NULL};
    pid_t pid;
    int err = posix_spawnp(&pid, "ld", &acts, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&acts);
    close(fd[1]);
    if (err) {
        close(fd[0]);
        return fail(d, "the system's linker 'ld' cannot be started", err);
    }
    size_t n = 0;
    char spill[512];
    for (;;) {
        ssize_t got = n < MESSAGE - 1 ? read(fd[0], said + n, MESSAGE - 1 - n)
                                      : read(fd[0], spill, sizeof spill);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        if (n < MESSAGE - 1)
            n += (size_t)got;
    }
    said[n] = 0;
    close(fd[0]);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return fail(d, "the linker's end was not seen", errno);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// ld names its files; the temporary folder says nothing to the reader.
static void
without(char *text, const char *dir)
{
    size_t n = strlen(dir) + 1;
    for (char *p; (p = strstr(text, dir));)
        memmove(p, p + n, strlen(p + n) + 1);
}

bool
cps_host_link(const void *object, size_t n, cps_buf *so, cps_diags *d)
{
    char dir[1024], opath[1088], sopath[1088], said[MESSAGE];
    if (!make_folder(dir, sizeof dir))
        return fail(d, "no temporary folder for the linker", errno);
    snprintf(opath, sizeof opath, "%s/host.o", dir);
    snprintf(sopath, sizeof sopath, "%s/host.so", dir);
    unsigned before = cps_diags_errors(d);
    bool ok = cps_file_write(opath, object, n);
    if (!ok) {
        fail(d, "the linker's input cannot be written", errno);
    } else {
        ok = run_ld(opath, sopath, said, d);
        if (!ok && cps_diags_errors(d) == before) {
            without(said, dir);
            for (size_t k = strlen(said); k && said[k - 1] == '\n'; k--)
                said[k - 1] = 0;
            cps_error(d, CPS_E1112, CPS_NOSPAN, "ld failed: %s",
                      *said ? said : "without a message");
        }
    }
    cps_file f;
    if (ok && !cps_file_open(sopath, false, &f)) {
        ok = fail(d, "the linker's output cannot be read", errno);
    } else if (ok) {
        cps_buf_put(so, f.data, f.n);
        cps_file_close(&f);
    }
    clean(dir, opath, sopath);
    return ok;
}
