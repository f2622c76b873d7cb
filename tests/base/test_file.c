/* Files: reading and writing all sizes around a page, atomic replacement, folders, names. */
#include "runtime/base/file.h"
#include "tests/check.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char root[64];
static cps_arena *arena;

static const char *
in_root(const char *name)
{
    return cps_path_join(arena, root, name);
}

static bool
holds(const char *path, bool text, const void *want, size_t n)
{
    cps_file f;
    if (!cps_file_open(path, text, &f))
        return false;
    bool same = f.n == n && (!n || memcmp(f.data, want, n) == 0) && (!text || f.data[n] == 0);
    cps_file_close(&f);
    return same;
}

static void
sizes(void)
{
    static const size_t n[] = {0, 1, 4095, 4096, 4097, 65535, 65536, 65537, 300000};
    const char *path = in_root("sizes");
    for (size_t i = 0; i < cps_countof(n); i++) {
        char *data = malloc(n[i] + 1);
        for (size_t k = 0; k < n[i]; k++)
            data[k] = (char)(k * 31 + i);
        CHECK(cps_file_write(path, data, n[i]));
        CHECK(holds(path, true, data, n[i]));
        CHECK(holds(path, false, data, n[i]));
        free(data);
    }
}

static int
entries(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n - 2;
}

static void
errors(void)
{
    cps_file f;
    CHECK(!cps_file_open(in_root("absent"), true, &f) && errno == ENOENT);
    CHECK(!cps_file_open(root, true, &f) && errno == EISDIR);
    CHECK(!cps_file_write(in_root("no/such/folder"), "x", 1) && errno == ENOENT);
    CHECK(!cps_file_write(root, "x", 1) && errno == EISDIR);
    CHECK(!cps_mkdirs("") && errno == ENOENT);
    CHECK(cps_file_write(in_root("plain"), "x", 1));
    CHECK(!cps_mkdirs(in_root("plain/sub")) && errno == ENOTDIR);
    CHECK(!cps_mkdirs(in_root("plain")) && errno == ENOTDIR);
    char text[6000];
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    CHECK(!cps_mkdirs(text) && errno == ENAMETOOLONG);
    text[0] = '/';
    CHECK(!cps_file_write(text, "x", 1) && errno == ENAMETOOLONG);
    text[300] = 0; // the folder is there, the name is too long for it: only the rename sees it
    const char *path = in_root(text + 1);
    int before = entries(root);
    CHECK(!cps_file_write(path, "x", 1) && errno == ENAMETOOLONG);
    CHECK_INT(entries(root), before); // the temporary file went
    if (access("/dev/full", W_OK) == 0)
        CHECK(!cps_file_write("/dev/full", "x", 1) && errno == ENOSPC);
    cps_file_close(&f); // after a failure: nothing to do
}

static void
under_its_own_name(void)
{
    const char *path = in_root("fresh");
    CHECK(cps_file_put(path, "first", 5) && holds(path, true, "first", 5));
    cps_file before;
    CHECK(cps_file_open(path, false, &before));
    CHECK(cps_file_put(path, "second", 6) && holds(path, true, "second", 6));
    CHECK(before.n == 5 && memcmp(before.data, "first", 5) == 0); // what was there is replaced, not written over
    cps_file_close(&before);
    CHECK(!cps_file_put(in_root("no/such/folder"), "x", 1) && errno == ENOENT);
    CHECK(!cps_file_put(root, "x", 1) && errno == EISDIR);
    CHECK(symlink("fresh", in_root("to-fresh")) == 0 && cps_file_put(in_root("to-fresh"), "via", 3));
    CHECK(holds(path, true, "via", 3));
    CHECK(cps_file_put("/dev/null", "x", 1));
    struct rlimit was, tight = {0, 0};
    CHECK(getrlimit(RLIMIT_FSIZE, &was) == 0);
    tight.rlim_max = was.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &tight) == 0);
    CHECK(!cps_file_put(in_root("too-large"), "x", 1) && errno == EFBIG);
    CHECK(setrlimit(RLIMIT_FSIZE, &was) == 0);
    CHECK(!cps_path_exists(in_root("too-large"))); // nothing is left of it
}

static void
folders(void)
{
    CHECK(cps_mkdirs(in_root("a/b//c/")) && cps_path_exists(in_root("a/b/c")));
    CHECK(cps_mkdirs(in_root("a/b/c")) && cps_mkdirs(in_root("a/b/c/../d")) && cps_path_exists(in_root("a/b/d")));
    CHECK(!cps_mkdirs(in_root("a/none/../d")) || cps_path_exists(in_root("a/none")));
    CHECK(cps_mkdirs("/") && cps_mkdirs("."));
    CHECK(symlink("b", in_root("a/link")) == 0 && cps_mkdirs(in_root("a/link/e")) && cps_path_exists(in_root("a/b/e")));
    CHECK(symlink("nowhere", in_root("a/dangling")) == 0);
    CHECK(!cps_mkdirs(in_root("a/dangling/e")) && !cps_path_exists(in_root("a/nowhere")));
}

static void
replacing(void)
{
    const char *dir = in_root("replace"), *path = in_root("replace/file");
    CHECK(cps_mkdirs(dir));
    CHECK(cps_file_write(path, "old", 3));
    CHECK(chmod(path, 0640) == 0);
    cps_file before;
    CHECK(cps_file_open(path, false, &before));
    CHECK(cps_file_write(path, "newer", 5));
    CHECK(before.n == 3 &&
          memcmp(before.data, "old", 3) == 0); // the mapping keeps the old file
    cps_file_close(&before);
    CHECK(holds(path, true, "newer", 5));
    struct stat st;
    CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0640);
    CHECK_INT(entries(dir), 1); // no temporary name is left
    // What a killed process with our numbers left behind is stepped over.
    const char *stale = cps_arena_printf(arena, "%s/.cps.%ld.%ld.0.tmp", dir, (long)getpid(),
                                         (long)syscall(SYS_gettid));
    CHECK(cps_file_write(stale, "left", 4));
    CHECK(cps_file_write(path, "third", 5) && holds(path, true, "third", 5));
    CHECK(holds(stale, true, "left", 4) && unlink(stale) == 0);
    const char *link = in_root("replace/link");
    CHECK(symlink("file", link) == 0);
    CHECK(cps_file_write(link, "via", 3));
    CHECK(lstat(link, &st) == 0 && S_ISLNK(st.st_mode));
    CHECK(holds(path, true, "via", 3));
    CHECK(cps_file_write("/dev/null", "x", 1));
    CHECK(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
}

static void *
write_often(void *arg)
{
    char data[20000];
    memset(data, *(char *)arg, sizeof(data));
    const char *path = (char *)arg + 1;
    for (int i = 0; i < 20; i++)
        if (!cps_file_write(path, data, sizeof(data)))
            return arg;
    return NULL;
}

// Writers and readers at once: every read is one whole version.
static void
together(void)
{
    const char *path = in_root("shared");
    pthread_t t[3];
    char arg[3][128];
    CHECK(cps_file_write(path, "", 0));
    for (int i = 0; i < 3; i++) {
        snprintf(arg[i], sizeof(arg[i]), "%c%s", 'a' + i, path);
        CHECK(pthread_create(&t[i], NULL, write_often, arg[i]) == 0);
    }
    for (int i = 0; i < 100; i++) {
        cps_file f;
        CHECK(cps_file_open(path, i & 1, &f));
        bool whole = f.n == 0 || f.n == 20000;
        for (size_t k = 1; whole && k < f.n; k++)
            whole = f.data[k] == f.data[0];
        CHECK(whole);
        cps_file_close(&f);
    }
    for (int i = 0; i < 3; i++) {
        void *bad;
        CHECK(pthread_join(t[i], &bad) == 0 && !bad);
    }
}

// "-" is a standard stream: through a pipe in place of standard input and output.
static void
streams(void)
{
    int p[2], in = dup(0), out;
    CHECK(pipe(p) == 0);
    dup2(p[0], 0);
    CHECK(write(p[1], "from a pipe", 11) == 11);
    close(p[1]);
    close(p[0]);
    CHECK(holds("-", true, "from a pipe", 11));
    dup2(in, 0);
    close(in);
    char got[8] = {0};
    CHECK(pipe(p) == 0);
    fflush(stdout);
    out = dup(1);
    dup2(p[1], 1);
    bool ok = cps_file_write("-", "to one", 6);
    dup2(out, 1);
    close(out);
    close(p[1]);
    CHECK(ok && read(p[0], got, sizeof(got)) == 6);
    CHECK_STR(got, "to one");
    close(p[0]);
}

static void
names(void)
{
    CHECK_STR(cps_path_join(arena, "a", "b"), "a/b");
    CHECK_STR(cps_path_join(arena, "a/", "b"), "a/b");
    CHECK_STR(cps_path_join(arena, "", "b"), "b");
    CHECK_STR(cps_path_join(arena, "a", "/b"), "/b");
    CHECK_STR(cps_path_base("a/b/c.npy"), "c.npy");
    CHECK_STR(cps_path_base("c"), "c");
    CHECK_STR(cps_path_base("a/"), "");
    CHECK_STR(cps_path_quote(arena, "Az09._-"), "Az09._-");
    CHECK_STR(cps_path_quote(arena, "a/b:0 %\xC3\xA9"), "a%2Fb%3A0%20%25%C3%A9");
    CHECK(cps_mkdirs(in_root("x/y//z/")) && cps_mkdirs(in_root("x/y/z")));
    CHECK(cps_path_exists(in_root("x/y/z")) && !cps_path_exists(in_root("x/q")));
}

int
main(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(root, sizeof(root), "%.40s/cps-file-XXXXXX", base && *base ? base : P_tmpdir);
    if (!mkdtemp(root)) {
        perror(root);
        return 1;
    }
    arena = cps_arena_create();
    sizes();
    errors();
    replacing();
    under_its_own_name();
    folders();
    together();
    streams();
    cps_file endless;
    CHECK(!cps_file_open("/dev/zero", false, &endless) && errno == EFBIG);
    CHECK(cps_file_open("/dev/null", true, &endless) && endless.n == 0);
    cps_file_close(&endless);
    names();
    cps_arena_destroy(arena);
    char command[128];
    snprintf(command, sizeof(command), "rm -r '%s'", root);
    CHECK(system(command) == 0);
    return CHECK_DONE();
}
