"""Same input, same bytes: packages compiled in different folders, clocks, locales and environments."""
import glob, shutil
from util import *

model = sorted(glob.glob(os.path.join(ROOT, "tests/data/*.onnx")))[0]
a, b = f"{TMP}/first", f"{TMP}/second/deeper"
os.makedirs(os.path.dirname(b))
copy = f"{TMP}/second/{os.path.basename(model)}"
shutil.copy(model, copy)
for target in ("trn2", "trn1", "host"):
    r1 = copse("compile", model, *DIMS, "-o", a + target, "--target", target, "--no-cache", "-j", "1",
               env={"LC_ALL": "C", "TZ": "UTC", "SOURCE_DATE_EPOCH": "1"})
    r2 = copse("compile", os.path.basename(copy), *DIMS, "-o", b + target, "--target", target, "--no-cache", "-j", "2",
               env={"LC_ALL": "de_DE.UTF-8", "LANG": "tr_TR.UTF-8", "TZ": "Pacific/Auckland", "HOME": "/nonexistent",
                    "USER": "somebody", "SOURCE_DATE_EPOCH": "2000000000"}, cwd=f"{TMP}/second")
    check(r1.returncode == 0, r1.stderr.decode())
    check(r2.returncode == 0, r2.stderr.decode())
    x, y = tree(a + target), tree(b + target)
    check(len(x) > 2, f"{target}: an almost empty package")
    check(x.keys() == y.keys(), f"{target}: different files {set(x) ^ set(y)}")
    for f in x:
        check(x.get(f) == y.get(f), f"{target}: {f} differs")
        check(TMP.encode() not in x[f], f"{target}: {f} holds a path")
done()
