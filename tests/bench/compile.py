#!/usr/bin/env python3
"""Compile time and memory, line by line: what is wanted and what is measured.

    compile.py BUILD [--runs=N] [--only=TEXT] [--json]

BUILD is a build folder. Kernels are compiled by whole processes; a figure is processor time (user and system) of the
fastest of N runs, since wall time says little on a shared machine, and memory the peak of resident pages in any of them.
Each run writes to a fresh folder, and all go at the end: some file systems search long for an inode where files were
removed a moment ago. TMPDIR=/dev/shm leaves the file system out.
Models are written by the Python of the test environment, which has onnx. What happens inside one process is measured by bench_compile (compile_rates.c). latency.py shows how both grow."""
import argparse, glob, importlib.util, json, os, subprocess, sys, tempfile

MATMUL = ["matmul", "--attr=tx=1"]
ATTENTION = ["attention", "--attr=causal=true"]


def matmul(m, k, n):
    return MATMUL + ["--dims=M=%d,K=%d,N=%d" % (m, k, n)]


def attention(s):
    return ATTENTION + ["--dims=B=8,Bkv=8,Sq=%d,Skv=%d,d=128" % (s, s)]


class Build:
    def __init__(self, folder, runs):
        self.copse, self.rates = os.path.join(folder, "copse"), os.path.join(folder, "tests", "bench_compile")
        self.runs, self.seen = runs, {}
        self.all = tempfile.TemporaryDirectory()

    def folder(self):
        return tempfile.mkdtemp(dir=self.all.name)

    def once(self, args, env=None):
        with tempfile.TemporaryFile() as said:
            # posix_spawn: a forked child would count this program's memory as its own
            pid = os.posix_spawn(self.copse, [self.copse, *args], env or os.environ, file_actions=[
                (os.POSIX_SPAWN_DUP2, said.fileno(), 1), (os.POSIX_SPAWN_DUP2, said.fileno(), 2)])
            _, status, use = os.wait4(pid, 0)
            if os.waitstatus_to_exitcode(status):
                said.seek(0)
                sys.exit("%s: %s" % (" ".join(args), said.read().decode(errors="replace").strip()))
        return use.ru_utime + use.ru_stime

    def cold(self, args):
        """Seconds, bundles and bytes of output of a compilation without a cache."""
        key = tuple(args)
        if key not in self.seen:
            tmp = self.folder()
            cmd = ["kernel", "compile", *args, "--no-cache", "-o"]
            best = min(self.once([*cmd, os.path.join(tmp, "k%d" % i)]) for i in range(self.runs))
            files = glob.glob(os.path.join(tmp, "k0", "kernels", "**", "*"), recursive=True)
            size = {f: os.path.getsize(f) for f in files if os.path.isfile(f)}
            code = sum(n for f, n in size.items() if f.endswith(".bin") and not f.endswith("data.bin"))
            self.seen[key] = best, code // 64, sum(size.values())
        return self.seen[key]

    def model(self, **sizes):
        """Seconds of a decoder of Llama-3-8B's sizes, weights left outside (tests/onnx/decoder_layer.py)."""
        here = os.path.dirname(os.path.abspath(__file__))
        spec = importlib.util.spec_from_file_location("decoder_layer", os.path.join(here, "..", "onnx", "decoder_layer.py"))
        decoder = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(decoder)
        tmp = self.folder()
        path = os.path.join(tmp, "decoder.onnx")
        with open(path, "wb") as f:
            f.write(decoder.model(inputs=True, **decoder.LLAMA_3_8B, **sizes).SerializeToString())
        cmd = ["compile", path, "--auto-cast=all", "--no-cache", "-o"]
        return min(self.once([*cmd, os.path.join(tmp, "p%d" % i)]) for i in range(self.runs))

    def hit(self, args):
        tmp = self.folder()
        env = {**os.environ, "XDG_CACHE_HOME": os.path.join(tmp, "cache")}
        cmd = ["kernel", "compile", *args, "-o"]
        return min([self.once([*cmd, os.path.join(tmp, "k%d" % i)], env) for i in range(3 * self.runs + 1)][1:])

    def peak(self, args):
        """Peak of resident memory, from the process's own account at its end."""
        tmp = self.folder()
        cmd = [self.copse, "kernel", "compile", *args, "--no-cache", "-o", os.path.join(tmp, "k")]
        got = subprocess.run(["/usr/bin/time", "-f", "%M", *cmd], capture_output=True, text=True)
        return int(got.stderr.split()[-1]) * 1024

    def rate(self, what):
        if "rates" not in self.seen:
            tmp = self.folder()
            got = subprocess.run([self.rates, "trn2", "200000", tmp], capture_output=True, text=True, check=True)
            self.seen["rates"] = dict(line.split() for line in got.stdout.splitlines())
        return float(self.seen["rates"][what])

    def loads(self, args):
        """Shared objects that a process which hits the cache maps."""
        tmp = self.folder()
        env = {**os.environ, "XDG_CACHE_HOME": os.path.join(tmp, "cache")}
        cmd = ["kernel", "compile", *args, "-o", os.path.join(tmp, "k")]
        self.once(cmd, env)
        got = subprocess.run([self.copse, *cmd], env={**env, "LD_DEBUG": "files"}, capture_output=True, text=True)
        names = {l.split("calling init: ")[1].strip() for l in got.stderr.splitlines() if "calling init: " in l}
        return sorted(os.path.basename(n) for n in names if "ld-linux" not in n)


def growth(b):
    """Per bundle that is emitted: in a kernel without hardware loops, since loops would make few bundles of many."""
    small, large = b.cold(matmul(1024, 2048, 2048)), b.cold(matmul(8192, 6144, 8192) + ["--leaf=matmul_banks", "--param=turn=0"])
    return large[0] / large[1] / (small[0] / small[1])


# name, wanted, unit, at most (True) or at least, figure
LINES = [
    ("matmul 1024^3, cold", 5, "ms", True, lambda b: b.cold(matmul(1024, 1024, 1024))[0] * 1e3),
    ("matmul 4096^3, cold", 25, "ms", True, lambda b: b.cold(matmul(4096, 4096, 4096))[0] * 1e3),
    ("attention over 8192, causal, 8 heads, cold", 150, "ms", True, lambda b: b.cold(attention(8192))[0] * 1e3),
    ("Llama-3-8B layer, prefill of 2048, cold", 1000, "ms", True, lambda b: b.model(seq=2048) * 1e3),
    ("Llama-3-8B layer, a step after 2047, cold", 1000, "ms", True, lambda b: b.model(seq=1, past=2047) * 1e3),
    ("32 of these layers, prefill, cold", 2000, "ms", True, lambda b: b.model(seq=2048, layers=32) * 1e3),
    ("time per bundle, 104,000 bundles / 1,100", 1.5, "x", True, growth),
    ("emission", 5, "M bundles/s", False, lambda b: 1e3 / b.rate("emit")),
    ("peak memory, matmul 4096^3", 64, "MiB", True, lambda b: b.peak(matmul(4096, 4096, 4096)) / 2**20),
    ("peak memory, attention over 16384", 64, "MiB", True, lambda b: b.peak(attention(16384)) / 2**20),
    ("cache hit, whole process, matmul 1024^3", 2.5, "ms", True, lambda b: b.hit(matmul(1024, 1024, 1024)) * 1e3),
    ("cache hit in the process, 256 KiB", 50, "us", True, lambda b: b.rate("hit")),
    ("same-shape trace hit, in the process", 1, "us", True, lambda b: b.rate("shape") / 1e3),
    ("shared objects of a hit besides libc, libm", 0, "", True,
     lambda b: len(set(b.loads(matmul(256, 256, 256))) - {"libc.so.6", "libm.so.6"})),
]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--only", default="")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    b, out = Build(a.build, a.runs), []
    if not a.json:
        print("%-46s %10s %10s" % ("line", "figure", "wanted"))
    for name, want, unit, most, figure in LINES:
        if a.only not in name:
            continue
        got = figure(b)
        out.append({"line": name, "figure": got, "wanted": want, "unit": unit, "reached": got <= want if most else got >= want})
        if not a.json:
            print("%-46s %10.2f %10s %s%s" % (name, got, ("<= %g" if most else ">= %g") % want, unit,
                                              "" if out[-1]["reached"] else "  (not reached)"), flush=True)
    if a.json:
        json.dump(out, sys.stdout, indent=1)
        print()


if __name__ == "__main__":
    main()
