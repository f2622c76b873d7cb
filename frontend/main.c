/* The program: picks the command, prints diagnostics, gives the exit code. A crash writes a
 * reproducer (the command line and the build) next to where the program was started and says so. */
#include "frontend/cli.h"
#include "frontend/dsl/registry.h"

#include "build_id.h"

#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct command {
    const char *name;
    cps_exit (*run)(cps_cli *c);
} command;

static const command commands[] = {
#define CPS_CMD(id, name, form, help) {name, cps_cmd_##id},
#include "frontend/cmd.def"
};

// Prepared before anything can go wrong, so that the handler only writes.
static char crash_name[64];
static char crash_text[8192];
static size_t crash_bytes;

static void
on_crash(int sig)
{
    (void)sig;
    static const char head[] = "copse: this is a bug of ours; ", made[] = "a reproducer was written to ",
                      none[] = "no reproducer could be written here\n";
    int fd = open(crash_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool ok = write(STDERR_FILENO, head, sizeof head - 1) > 0;
    if (fd >= 0 && write(fd, crash_text, crash_bytes) == (ssize_t)crash_bytes)
        ok = ok && write(STDERR_FILENO, made, sizeof made - 1) > 0 &&
             write(STDERR_FILENO, crash_name, strlen(crash_name)) > 0 &&
             write(STDERR_FILENO, "\n", 1) > 0;
    else
        ok = ok && write(STDERR_FILENO, none, sizeof none - 1) > 0;
    (void)ok; // nothing is left to tell it to
    _exit(CPS_OUR_BUG);
}

static void
prepare_crash(int argc, char **argv)
{
    snprintf(crash_name, sizeof crash_name, "copse-bug-%ld.txt", (long)getpid());
    size_t n = (size_t)snprintf(crash_text, sizeof crash_text, "copse %s build %s\ncommand:",
                                CPS_VERSION, CPS_BUILD_ID);
    for (int i = 1; i < argc && n < sizeof crash_text; i++)
        n += (size_t)snprintf(crash_text + n, sizeof crash_text - n, " '%s'", argv[i]);
    if (n < sizeof crash_text)
        n += (size_t)snprintf(crash_text + n, sizeof crash_text - n, "\n");
    crash_bytes = CPS_MIN(n, sizeof crash_text - 1);
    struct sigaction a = {.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGABRT, &a, NULL);
#ifndef __SANITIZE_ADDRESS__
    sigaction(SIGSEGV, &a, NULL);
    sigaction(SIGBUS, &a, NULL);
    sigaction(SIGFPE, &a, NULL);
#endif
}

static cps_exit
print_help(const char *name)
{
    cps_buf b = {0};
    cps_cli_help(name, &b);
    fwrite(b.data, 1, b.n, stdout);
    cps_buf_fini(&b);
    return CPS_OK;
}

static cps_exit
dispatch(cps_cli *c, int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "--help";
    if (!strcmp(name, "--help") || !strcmp(name, "-h"))
        return print_help(NULL) == CPS_OK && argc > 1 ? CPS_OK : CPS_USAGE;
    if (!strcmp(name, "--version"))
        name = "version";
    for (unsigned i = 0; i < cps_countof(commands); i++) {
        if (strcmp(commands[i].name, name))
            continue;
        c->command = name;
        if (!cps_cli_parse(c, argc - 2, argv + 2))
            return CPS_USAGE;
        if (cps_cli_has(c, CPS_OPT_HELP))
            return print_help(name);
        return commands[i].run(c);
    }
    cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "there is no command '%s'", name);
    const char *near = cps_cli_near(name);
    if (near)
        cps_help(c->diags, "did you mean '%s'?", near);
    else
        cps_help(c->diags, "`copse --help` lists the commands");
    return CPS_USAGE;
}

/* Memory that is given back is wanted again at once: passes follow one another, each with an arena
 * of its own. Kept, it is not cleared and mapped anew by the system, page by page. */
static void
keep_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, 16 << 20); // blocks of arenas are smaller, and many vectors
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    const int room = 64 << 20; // what is not touched costs nothing
    mallopt(M_TOP_PAD, room);
#ifdef MADV_HUGEPAGE
    // A little in pages of 4 KiB, which is all that a hit needs, and then whole huge ones at once.
    const uintptr_t huge = 2 << 20, small = 128 << 10;
    uintptr_t end = (uintptr_t)sbrk(0);
    if (end != (uintptr_t)-1)
        (void)sbrk((intptr_t)((end + small + huge - 1) / huge * huge - small - end));
    void *first = malloc(1);
    if (!first) { // less memory is allowed than this asks for ahead
        mallopt(M_TOP_PAD, 0);
        return;
    }
    uintptr_t page = 4096, from = ((uintptr_t)first + page - 1) / page * page;
    madvise((void *)from, (size_t)room - page, MADV_HUGEPAGE); // a wish
    free(first);
#endif
}

int
main(int argc, char **argv)
{
    keep_memory();
    prepare_crash(argc, argv);
    cps_cli c = {.arena = cps_arena_create(), .diags = cps_diags_create()};
    cps_exit code = dispatch(&c, argc, argv);
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == CPS_OK)
        code = CPS_IO;
    cps_cli_flush(&c);
    cps_dsl_registry_destroy(c.registry);
    cps_diags_destroy(c.diags);
    cps_arena_destroy(c.arena);
    return (int)code;
}
