"""The structure as a test: who may include whom, how long a file may be, what never appears.

Prints each violation; the last line is the count. The table is the include rule of the design:
runtime/base < codegen/isa < {runtime/pkg, runtime/sim, ir} < kernels < {lower, codegen} < frontend.
"""
import os, re, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BASE, ISA = "runtime/base", "codegen/isa"
MAY = {  # room: rooms it may include from, its own and runtime/base understood
    "runtime/base": [],
    "codegen/isa": [],
    "runtime/pkg": [ISA],
    "runtime/sim": [ISA, "runtime/pkg"],
    "ir": ["codegen/isa/enum.h", "codegen/isa/target.h", ISA],
    "kernels": [ISA, "ir"],
    "lower": [ISA, "ir", "kernels"],
    "codegen": [ISA, "ir", "runtime/pkg"],
    "codegen/host": [ISA, "ir", "codegen"],
    "frontend/dsl": [ISA, "ir", "kernels"],
    "frontend/onnx": ["ir"],
    "frontend": ["*"],
    "tests": ["*"],
}
ROOMS = sorted(MAY, key=len, reverse=True)
BANNED = re.compile(r"\b(strcpy|strcat|sprintf|strtok|gets|rand|srand|exit)\s*\(")
LIMIT = 1000


def room(path):
    return next((r for r in ROOMS if path.startswith(r + "/")), None)


def main():
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    names = [f for f in files.stdout.split("\n") if re.search(r"\.(c|h|def|l|y|py|cps|js|css|html)$", f)]
    bad, edges = [], 0
    for f in names:
        text = open(os.path.join(ROOT, f), encoding="utf-8").read()
        lines = text.split("\n")
        if len(lines) > LIMIT and not f.endswith(".def"):
            bad.append(f"{f}: {len(lines)} lines, the ceiling is {LIMIT}")
        here = room(f)
        if here is None:
            continue
        for i, line in enumerate(lines, 1):
            m = re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', line)
            if m:
                inc = m.group(2)
                if inc.startswith("llvm-c/") and here != "codegen/host":
                    bad.append(f"{f}:{i}: LLVM headers belong to codegen/host only")
                if inc.startswith("libxml/") and not f.startswith("codegen/isa/target_xml"):
                    bad.append(f"{f}:{i}: libxml2 belongs to the target reader only")
                if inc in ("archive.h", "archive_entry.h", "zlib.h") and f != "runtime/pkg/neff_archive.c":
                    bad.append(f"{f}:{i}: libarchive and zlib belong to libcopse-archive.so only")
                there = room(inc) if m.group(1) == '"' else None
                if there and there not in (here, BASE):
                    edges += 1
                    allowed = MAY[here]
                    if "*" not in allowed and there not in allowed and inc not in allowed:
                        bad.append(f"{f}:{i}: {here} may not include {inc}")
            elif f.endswith((".c", ".h")) and not f.startswith("tests/"):
                code = line.split("//")[0]
                m = BANNED.search(code)
                main_file = f in ("frontend/main.c", "kernels/embed.c") or "/tools/" in f
                if m and not (main_file and m.group(1) == "exit") and not line.lstrip().startswith("*"):
                    bad.append(f"{f}:{i}: {m.group(1)} is not used here")
    for b in bad:
        print(b)
    print(f"layers: {len(names)} files, {edges} edges, {len(bad)} violations")
    return 1 if bad or not names else 0


sys.exit(main())
