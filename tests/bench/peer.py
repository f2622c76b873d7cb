"""NumPy as an executor of tile programs: what `copse kernel run --emit tile` prints, one NumPy expression an
instruction, eagerly. Everything that can be done before the run is done there (views, scratch arrays, masks),
narrow floats are widened and narrowed by the fastest way NumPy has, and an identity that multiplies is a
transposed copy: the peer is to be as good as NumPy allows, not as a simulator in Python usually is."""

import re

import numpy as np

F32, U32, U16 = np.float32, np.uint32, np.uint16
STORE = {"fp32": F32, "bf16": U16, "i32": np.int32, "u32": U32, "u16": U16}


def widen(src, out):
    """bf16 codes into the upper halves of fp32 words whose lower halves are 0: one strided copy."""
    out.view(U16).reshape(out.shape + (2,))[..., 1] = src
    return out


def wide(shape):
    return np.zeros(shape, F32)


def narrow(x, dst, tmp):
    """fp32 to bf16 codes, to nearest even; tmp is a uint32 array of x's shape."""
    u = x.view(U32)
    np.right_shift(u, 16, out=tmp)
    np.bitwise_and(tmp, 1, out=tmp)
    np.add(tmp, u, out=tmp)
    np.add(tmp, 0x7FFF, out=tmp)
    dst[...] = tmp.view(U16).reshape(tmp.shape + (2,))[..., 1]


OPS = {
    "add": np.add,
    "subtract": np.subtract,
    "mult": np.multiply,
    "divide": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "is_ne": np.not_equal,
    "is_eq": np.equal,
    "is_ge": np.greater_equal,
    "is_gt": np.greater,
    "is_le": np.less_equal,
    "is_lt": np.less,
}


def square(x, out):
    return np.multiply(x, x, out=out)


def rsqrt(x, out):
    return np.divide(F32(1), np.sqrt(x, out=out), out=out)


FUNCS = {"exp": np.exp, "square": square, "sqrt": np.sqrt, "rsqrt": rsqrt, "copy": None, "identity": None}


class View:
    """An access pattern of a buffer: a NumPy view, and how to read and write it as fp32."""

    def __init__(self, dtype, array):
        self.dtype, self.a, self.shape = dtype, array, array.shape
        self.size = array.size

    def reader(self):
        a = self.a
        if self.dtype == "fp32":
            return lambda: a
        if self.dtype == "bf16":
            out = wide(a.shape)
            return lambda: widen(a, out)
        return lambda: a.astype(F32)

    def target(self, shape):
        """An fp32 array for a result and what brings it home."""
        a = self.a
        if self.dtype == "fp32" and a.shape == shape:
            return a, lambda: None
        out = np.empty(shape, F32)
        if self.dtype == "fp32":

            def home():
                a[...] = out.reshape(a.shape)

        elif self.dtype == "bf16":
            tmp = np.empty(shape, U32).reshape(a.shape)
            same = out.reshape(a.shape)

            def home():
                narrow(same, a, tmp)

        else:

            def home():
                a[...] = np.rint(out.reshape(a.shape)).astype(a.dtype)

        return out, home


class Program:
    def __init__(self, text, arrays):
        """arrays: the HBM arguments by name, as storage codes."""
        self.buf, self.steps, self.count = {}, [], 0
        for line in text.split("\n"):
            if line.startswith("%"):
                self.declare(line, arrays)
            elif "<-" in line or line.startswith("iota"):
                self.steps.append(self.instruction(line))

    def run(self):
        for s in self.steps:
            s()

    def declare(self, line, arrays):
        m = re.match(r"%((\w+)\.\d+) = (\w+) (\w+)\[([\d,]+)\]", line)
        name, plain, space, dtype, dims = m.groups()
        shape = [int(d) for d in dims.split(",")]
        if space == "hbm":
            a = arrays[plain].reshape(-1)
        else:
            a = np.zeros((shape[0], int(np.prod(shape[1:]))), STORE[dtype])
        self.buf[name] = (space, dtype, a)

    def operand(self, text):
        text = text.strip()
        if text == "_":
            return None
        m = re.match(r"%([\w.]+)\[(.*)\]$", text)
        if not m:
            return float(text)
        space, dtype, a = self.buf[m.group(1)]
        parts = [p.strip() for p in m.group(2).split(",")]
        it = a.itemsize
        if space == "hbm":
            off, dims = int(parts[0]), parts[1:]
            base, shape, strides = a[off:], [], []
        else:
            p0, n = map(int, parts[0][1:].split(":"))
            off, dims = int(parts[1]), parts[2:]
            base, shape, strides = a[p0:, off:], [n], [a.strides[0]]
        for d in dims:
            step, num = map(int, d.split("*"))
            shape.append(num)
            strides.append(step * it)
        if len(shape) == 1 and space != "hbm":
            shape.append(1)
            strides.append(it)
        return View(dtype, np.lib.stride_tricks.as_strided(base, shape, strides))

    def instruction(self, line):
        self.count += 1
        name = line.split()[0]
        attrs = {}
        m = re.search(r"\{([^}]*)\}", line)
        if m:
            for a in re.split(r", (?![^\[]*\])", m.group(1)):
                k, _, v = a.partition("=")
                attrs[k] = v if v else True
        body = re.sub(r"\{[^}]*\}.*", "", line[len(name) :])

        body = re.sub(r" (on|pin|label|after|priority|round|stage) .*$", "", body)
        left, _, right = body.partition("<-")
        cut = lambda t: [self.operand(x) for x in re.split(r",(?![^\[]*\])", t) if x.strip()]
        return getattr(self, name)(cut(left), cut(right), attrs)

    # ---- scalars: numbers, or one per lane ----

    def scalar(self, s, like, default=0.0):
        if s is None:
            s = default
        if isinstance(s, float):
            v = F32(s)
            return lambda: v
        rd, shape = s.reader(), (s.shape[0],) + (1,) * (len(like) - 1)
        return lambda: rd().reshape(shape)

    # ---- instructions ----

    def memset(self, out, ins, attrs):
        a = out[0].a
        v = ins[0]
        code = U16(np.array([v], F32).view(U32)[0] >> 16) if out[0].dtype == "bf16" else a.dtype.type(v)
        return lambda: np.copyto(a, code)

    def affine(self, attrs, shape):
        steps = [int(s) for s in attrs["pattern"].strip("[]").split(",")]
        x = np.full(shape, int(attrs["base"]), np.int64)
        x += int(attrs["channel"]) * np.arange(shape[0]).reshape((-1,) + (1,) * (len(shape) - 1))
        for d, s in enumerate(steps):
            r = [1] * len(shape)
            r[d + 1] = shape[d + 1]
            x += s * np.arange(shape[d + 1]).reshape(r)
        return x

    def iota(self, out, ins, attrs):
        x = self.affine(attrs, out[0].shape).astype(F32)
        to, home = out[0].target(out[0].shape)

        def go():
            np.copyto(to, x)
            home()

        return go

    def affine_select(self, out, ins, attrs):
        keep = OPS[attrs["op0"]](self.affine(attrs, out[0].shape), 0)
        rd, fill = ins[0].reader(), F32(ins[1])
        to, home = out[0].target(out[0].shape)

        def go():
            np.copyto(to, np.where(keep, rd(), fill))
            home()

        return go

    def move(self, dst, src):
        """src: an array that is read element by element into dst's pattern."""
        if src.dtype == dst.dtype:
            a, b = dst.a, src.a.reshape(dst.shape)
            if not np.shares_memory(b, src.a):
                s, shape = src.a, dst.shape
                return lambda: np.copyto(a, s.reshape(shape))
            return lambda: np.copyto(a, b)
        rd = src.reader()
        to, home = dst.target(dst.shape)

        def go():
            np.copyto(to, rd().reshape(to.shape))
            home()

        return go

    def tensor_copy(self, out, ins, attrs):
        return self.move(out[0], ins[0])

    dma_copy = tensor_copy

    def dma_transpose(self, out, ins, attrs):
        src = ins[0].a
        big = [d for d in range(src.ndim) if src.shape[d] > 1][-2:]
        return self.move(out[0], View(ins[0].dtype, np.swapaxes(src, *big)))

    def nc_transpose(self, out, ins, attrs):
        src = ins[0].a.reshape(ins[0].shape[0], -1)
        return self.move(out[0], View(ins[0].dtype, src.T))

    def nc_matmul(self, out, ins, attrs):
        w, x = ins
        if "fp32" in (w.dtype, x.dtype):
            raise ValueError("fp32 products are two passes; the kernels here have none")
        rw, rx = w.reader(), x.reader()
        k, m, n = w.shape[0], w.size // w.shape[0], x.size // x.shape[0]
        acc = out[0].a
        dst = acc.reshape(m, n)
        flat = np.shares_memory(dst, acc)
        tmp = np.empty((m, n), F32)
        start = "start" in attrs

        def go():
            np.matmul(rw().reshape(k, m).T, rx().reshape(k, n), out=tmp)
            if start:
                np.copyto(acc, tmp.reshape(acc.shape))
            elif flat:
                np.add(dst, tmp, out=dst)
            else:
                np.add(acc, tmp.reshape(acc.shape), out=acc)

        return go

    def tensor_tensor(self, out, ins, attrs):
        ra, rb, op = ins[0].reader(), ins[1].reader(), OPS[attrs["op0"]]
        shape = out[0].shape
        to, home = out[0].target(shape)

        def go():
            op(ra().reshape(shape), rb().reshape(shape), out=to)
            home()

        return go

    def two(self, data, s0, s1, attrs, to):
        """(data op0 s0) op1 s1 into `to`."""
        rd, shape = data.reader(), data.shape
        rev = int(attrs.get("reverse", 0))
        chain = []
        for bit, key, s in ((1, "op0", s0), (2, "op1", s1)):
            if key in attrs:
                chain.append((OPS[attrs[key]], self.scalar(s, shape), bool(rev & bit)))

        def go():
            x = rd()
            for op, s, swap in chain:
                x = op(s(), x, out=to) if swap else op(x, s(), out=to)
            if x is not to:
                np.copyto(to, x)

        return go

    def tensor_scalar(self, out, ins, attrs):
        to, home = out[0].target(ins[0].shape)
        work = self.two(ins[0], ins[1], ins[2] if len(ins) > 2 else None, attrs, to)

        def go():
            work()
            home()

        return go

    def reducer(self, op, out, axes):
        fold = {"add": np.add.reduce, "max": np.maximum.reduce, "min": np.minimum.reduce}[op]
        to, home = out.target(out.shape)

        def go(x):
            np.copyto(to, fold(x, axis=axes).reshape(to.shape))
            home()

        return go

    def tensor_scalar_reduce(self, out, ins, attrs):
        to, home = out[0].target(ins[0].shape)
        work = self.two(ins[0], ins[1], None, attrs, to)
        fold = self.reducer(attrs["red"], out[1], tuple(range(1, to.ndim)))

        def go():
            work()
            fold(to)
            home()

        return go

    def tensor_reduce(self, out, ins, attrs):
        rd, nd = ins[0].reader(), len(ins[0].shape)
        axes = tuple(range(nd - int(attrs["axes"]), nd))
        fold = {"add": np.add.reduce, "max": np.maximum.reduce, "min": np.minimum.reduce}[attrs["op0"]]
        to, home = out[0].target(out[0].shape)
        negate = "negate" in attrs

        def go():
            r = fold(rd(), axis=axes).reshape(to.shape)
            np.negative(r, out=to) if negate else np.copyto(to, r)
            home()

        return go

    def activation(self, out, ins, attrs):
        rd, shape, fn = ins[0].reader(), ins[0].shape, FUNCS[attrs["func"]]
        scale = None if ins[1] is None or ins[1] == 1.0 else self.scalar(ins[1], shape)
        bias = None if ins[2] is None or ins[2] == 0.0 else self.scalar(ins[2], shape)
        to, home = out[0].target(shape)
        fold = self.reducer("add", out[1], tuple(range(1, len(shape)))) if len(out) > 1 else None

        def go():
            x = rd()
            if scale:
                x = np.multiply(x, scale(), out=to)
            if bias:
                x = np.add(x, bias(), out=to)
            if fn:
                fn(x, out=to)
            elif x is not to:
                np.copyto(to, x)
            if fold:
                fold(to)
            home()

        return go

    def reciprocal(self, out, ins, attrs):
        rd = ins[0].reader()
        to, home = out[0].target(out[0].shape)

        def go():
            np.divide(F32(1), rd(), out=to)
            home()

        return go

    def max8(self, out, ins, attrs):
        rd, n, rows = ins[0].reader(), ins[0].size // ins[0].shape[0], ins[0].shape[0]
        to, home = out[0].target((rows, 8))

        def go():
            top = np.partition(rd().reshape(rows, n), n - 8, axis=1)[:, n - 8 :]
            top.sort(axis=1)
            np.copyto(to, top[:, ::-1])
            home()

        return go

    def nc_find_index8(self, out, ins, attrs):
        rd, rv, rows = ins[0].reader(), ins[1].reader(), ins[0].shape[0]
        to = out[0].a

        def go():
            x, v = rd().reshape(rows, -1), rv()
            seen = np.zeros(rows, np.int64)  # equal values: the next position each
            for k in range(8):
                eq = x == v[:, k : k + 1]
                if k:
                    seen = np.where(v[:, k] == v[:, k - 1], seen + 1, 0)
                    for r in np.nonzero(seen)[0]:
                        eq[r, np.nonzero(eq[r])[0][: seen[r]]] = False
                to[:, k] = eq.argmax(axis=1)

        return go

    def nc_match_replace8(self, out, ins, attrs):
        rd, rv, rows = ins[0].reader(), ins[1].reader(), ins[0].shape[0]
        number, lane = F32(ins[2]), np.arange(ins[0].shape[0])
        to, home = out[0].target((rows, ins[0].size // rows))

        def go():
            x, v = rd().reshape(rows, -1), rv()
            if x is not to and not np.shares_memory(x, to):
                np.copyto(to, x)
            for k in range(8):
                at = (to == v[:, k : k + 1]).argmax(axis=1)
                to[lane, at] = number  # every value is there: they came from max8
            home()

        return go
