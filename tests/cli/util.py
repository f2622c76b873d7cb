"""What the command-line tests share: running copse, a scratch folder, counting checks."""
import atexit, os, shutil, struct, subprocess, sys, tempfile

COPSE = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TMP = tempfile.mkdtemp(prefix="copse-test-")
atexit.register(shutil.rmtree, TMP, ignore_errors=True)
DIMS = ["--dim", "batch_size=1", "--dim", "sequence_length=16"]  # of the models in tests/data
ran = failed = 0


def copse(*args, env=None, cwd=None, stdin=None, timeout=300):
    e = dict(os.environ, XDG_CACHE_HOME=TMP + "/xdg", NO_COLOR="1")
    e.update(env or {})
    return subprocess.run([COPSE, *map(str, args)], capture_output=True, env=e, cwd=cwd,
                          input=stdin, timeout=timeout)


def check(ok, what):
    global ran, failed
    ran += 1
    if not ok:
        failed += 1
        print("FAIL", what)


def tree(folder):
    """Every file below a folder with its bytes."""
    out = {}
    for base, _, files in os.walk(folder):
        for f in files:
            p = os.path.join(base, f)
            with open(p, "rb") as h:
                out[os.path.relpath(p, folder)] = h.read()
    return out


def array(path, values, kind="f", shape=None):
    """A .npy file of fp32 (`f`) or 32-bit integers (`i`)."""
    head = "{'descr': '<%s4', 'fortran_order': False, 'shape': %s, }" % (kind, tuple(shape or (len(values),)))
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(values)}{kind}", *values))


def done():
    print(f"{ran - failed} passed, {failed} failed")
    sys.exit(1 if failed or not ran else 0)
