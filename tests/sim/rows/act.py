"""Scalar engine: every function with its documented range, scale and bias, the accumulator, table
sets, and the two-operator form of v4."""
import math

import numpy as np

from dve import SPECIAL, fold, floats, pick_max, pick_min, t, values
from harness import TARGETS, Case, cast, f32, wide

A, B, C, O, Q = 0, 0x1000, 0x2000, 0x4000, 0x6000
R, N = 32, 40
INF, NAN = math.inf, math.nan


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def softplus(x):
    return x + math.log1p(math.exp(-x)) if x > 0 else math.log1p(math.exp(x))


def cdf(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


def by(x, y):
    """A product with something that vanishes at minus infinity."""
    return math.copysign(0.0, x) if y == 0 and x == x else x * y


def sin(x):
    if abs(x) <= math.pi:
        return math.sin(x)
    u = x - math.pi if x > 0 else x + math.pi
    return -u + u ** 3 / 6


def silu_dx(x):
    return (1.0 if x > 0 else 0.0) if math.isinf(x) else \
        sigmoid(x) * (1 + x * (1 - sigmoid(x)))


def gelu_sigmoid_dx(x):
    if math.isinf(x):
        return 1.0 if x > 0 else 0.0
    s = sigmoid(1.702 * x)
    return s + 1.702 * x * s * (1 - s)


def gelu_tanh(x):
    if math.isinf(x):
        return x if x > 0 else -0.0
    return by(x, sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def gelu_dx(x):
    if math.isinf(x):
        return 1.0 if x > 0 else 0.0
    return cdf(x) + x * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


# name: value for a finite argument, exponents of the range of |x| (None: everywhere), table set
FUNCTIONS = {
    "identity": (lambda x: x, None, None), "copy": (lambda x: x, None, None),
    "relu": (lambda x: x if x > 0 else 0.0, None, None),
    "lrelu": (lambda x: x if x >= 0 else x * float(f32(0.25)), None, None),
    "prelu": (lambda x: x if x >= 0 else x * float(f32(0.25)), None, None),
    "square": (lambda x: x * x, None, None), "abs": (abs, None, None),
    "sign": (lambda x: x if x == 0 else math.copysign(1, x), None, None),
    "is_finite": (lambda x: 1.0, None, None), "memset_zero": (lambda x: 0.0, None, None),
    "sigmoid": (sigmoid, None, 2), "tanh": (math.tanh, None, 0),
    "exp": (lambda x: math.exp(x) if x < 700 else INF, None, 0), "softplus": (softplus, None, 1),
    "sqrt": (lambda x: math.sqrt(x) if x >= 0 else NAN, (-116, 118), 3),
    "log": (lambda x: math.log(x) if x > 0 else -INF if x == 0 else NAN, (-64, 64), 5),
    "sin": (sin, None, 9), "erf": (math.erf, None, 2),
    "erf_dx": (lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x), None, 17),
    "gelu": (lambda x: by(x, cdf(x)), None, 10),
    "gelu_dx": (gelu_dx, None, 10),
    "gelu_apprx_tanh": (gelu_tanh, None, 11),
    "gelu_apprx_sigmoid": (lambda x: by(x, sigmoid(1.702 * x)), None, 12),
    "gelu_apprx_sigmoid_dx": (gelu_sigmoid_dx, None, 20),
    "mish": (lambda x: by(x, math.tanh(softplus(x))), None, 16),
    "arctan": (lambda x: math.atan(x) if abs(x) <= math.pi / 2 else NAN, None, 9),
    "rsqrt": (lambda x: 1 / math.sqrt(x) if x > 0 else math.copysign(INF, x) if x == 0 else NAN,
              (-87, 97), 14),
    "abs_reciprocal_sqrt": (lambda x: 1 / math.sqrt(abs(x)) if x else INF, None, 15),
    "reciprocal": (lambda x: 1 / x if x else math.copysign(INF, x), (-42, 42), 13),
    "silu": (lambda x: by(x, sigmoid(x)), None, 18), "silu_dx": (silu_dx, None, 19),
}
INFINITE = {  # at +inf and at -inf, where the formula has nothing to say
    "relu": (INF, 0.0), "lrelu": (INF, -INF), "prelu": (INF, -INF), "square": (INF, INF),
    "is_finite": (0.0, 0.0), "sigmoid": (1.0, 0.0), "tanh": (1.0, -1.0), "exp": (INF, 0.0),
    "softplus": (INF, 0.0), "sqrt": (INF, NAN), "log": (INF, NAN), "sin": (NAN, NAN),
    "erf": (1.0, -1.0), "erf_dx": (0.0, 0.0), "gelu": (INF, -0.0), "gelu_apprx_sigmoid": (INF, -0.0),
    "mish": (INF, -0.0), "arctan": (NAN, NAN), "rsqrt": (0.0, NAN), "silu": (INF, -0.0),
    "abs_reciprocal_sqrt": (0.0, 0.0), "reciprocal": (0.0, -0.0), "abs": (INF, INF),
    "sign": (1.0, -1.0), "memset_zero": (0.0, 0.0), "identity": (INF, -INF), "copy": (INF, -INF),
}


def value(name, x):
    fn, span, _ = FUNCTIONS[name]
    if math.isnan(x):
        return 0.0 if name in ("is_finite", "memset_zero") else NAN
    if math.isinf(x) and name in INFINITE:
        return INFINITE[name][x < 0]
    if span and x and not math.isinf(x) and not 2.0 ** span[0] <= abs(x) <= 2.0 ** span[1]:
        return NAN
    return fn(x)


def of(name, v):
    with np.errstate(all="ignore"):
        return np.array([f32(value(name, float(x))) for x in v.ravel()], f32).reshape(v.shape)


def table(case, name):
    where = FUNCTIONS[name][2]
    return case if where is None else case.insn("act", f"ACTIVATION_TABLE_LOAD set={where}")


def act(name, src, dst, extra=""):
    return f"ACTIVATE {name} {src} ch={R} {extra} {dst}"


def functions():
    edge = np.concatenate([SPECIAL, -SPECIAL, np.ldexp(1.0, [-117, -116, 118, 119, -64, -65, 64, 65,
                                                             -87, -88, 97, 98, -42, -43, 42, 43]),
                           [math.pi, -math.pi, 9, 1.5, 1.6, 20, -20, 80, 90, -80, -104]])
    for name in FUNCTIONS:
        v = np.concatenate([np.resize(edge, (R, N)), floats(), floats(scale=0.1)], axis=1)
        v = v.astype(f32)
        c = table(Case(f"ACTIVATE/{name}", ulp=1).put(A, v), name)
        c.insn("act", act(name, f"src={t('fp32', A, 3 * N)}", f"dst={t('fp32', O, 3 * N)}",
                          "scale=1.0 bias=fp32@0.0 imm=0.25"))
        x = v
        if name not in ("identity", "copy"):
            with np.errstate(all="ignore"):
                x = v * f32(1) + f32(0)
        yield c.want(O, of(name, x))
    yield (Case("ACTIVATE/sin-9", ulp=1).put(A, np.full((R, 1), 9, f32))
           .insn("act", "ACTIVATION_TABLE_LOAD set=9")
           .insn("act", act("sin", f"src={t('fp32', A, 1)}", f"dst={t('fp32', O, 1)}",
                            "scale=1.0 bias=fp32@0.0"))
           .insn("act", act("identity", f"src={t('fp32', O, 1)}", f"dst={t('i32', Q, 1)}",
                            "scale=100.0 bias=fp32@0.0"))
           .want(Q, np.full((R, 1), 2765, np.int32)))  # the documents say about 27.65
    # exact where the documents promise it: exp(-inf) = 0 and exp(0) = 1, to the bit
    v = np.array([[-np.inf, 0, -0.0, -3.4028235e38]] * R, f32)
    yield (Case("ACTIVATE/exp-exact").put(A, v).insn("act", "ACTIVATION_TABLE_LOAD set=0")
           .insn("act", act("exp", f"src={t('fp32', A, 4)}", f"dst={t('fp32', O, 4)}",
                            "scale=1.0 bias=fp32@0.0"))
           .want(O, np.array([[0, 1, 1, 0]] * R, f32)))
    yield Case("ACTIVATE/no-table", fails="E8305").put(A, floats()).insn(
        "act", act("exp", f"src={t('fp32', A)}", f"dst={t('fp32', O)}", "scale=1.0 bias=fp32@0.0"))
    for name, (_, _, where) in FUNCTIONS.items():
        if where is None:
            continue
        other = 4  # the set with nothing but the resident functions
        yield (Case(f"ACTIVATION_TABLE_LOAD/{name}", fails="E8305").put(A, floats())
               .insn("act", f"ACTIVATION_TABLE_LOAD set={other}")
               .insn("act", act(name, f"src={t('fp32', A)}", f"dst={t('fp32', O)}",
                                "scale=1.0 bias=fp32@0.0")))
    shared = {0: "exp tanh", 2: "sigmoid tanh erf arctan", 6: "log exp", 9: "sin arctan",
              10: "gelu_dx gelu tanh", 18: "silu tanh sin", 19: "silu_dx tanh sin"}
    v = floats(scale=0.5)
    for where, names in shared.items():
        for name in names.split():
            w = np.abs(v) + f32(0.1) if name == "log" else v
            yield (Case(f"ACTIVATION_TABLE_LOAD/{where}-{name}", ulp=1).put(A, w)
                   .insn("act", f"ACTIVATION_TABLE_LOAD set={where}")
                   .insn("act", act(name, f"src={t('fp32', A)}", f"dst={t('fp32', O)}",
                                    "scale=1.0 bias=fp32@0.0")).want(O, of(name, w)))
    yield (Case("PSEUDO_LOAD_ACT_FUNC_SET", ulp=1).put(A, v)
           .insn("act", 'PSEUDO_LOAD_ACT_FUNC_SET table="gelu_and_others"')
           .insn("act", act("gelu", f"src={t('fp32', A)}", f"dst={t('fp32', O)}",
                            "scale=1.0 bias=fp32@0.0")).want(O, of("gelu", v)))
    yield Case("PSEUDO_LOAD_ACT_FUNC_SET/unknown", fails="E8202").insn(
        "act", 'PSEUDO_LOAD_ACT_FUNC_SET table="nothing"')


def operands():
    v, s, b = floats(), floats(1), cast(floats(1), "bf16")
    y = v * s + wide(b)
    yield (Case("ACTIVATE/pointers").put(A, v).put(B, s).put(C, b)
           .insn("act", act("relu", f"src={t('fp32', A)}", f"dst={t('bf16', O)}",
                            f"scale=ptr[{B:#x}] bias=bf16@ptr[{C:#x}]"))
           .want(O, cast(np.maximum(y, 0), "bf16")))
    for di, do in (("bf16", "fp8e4m3"), ("i8", "fp16"), ("fp8e5m2", "u8"), ("i32", "fp32"),
                   ("fp16", "i16")):
        w = values(di)
        with np.errstate(all="ignore"):
            y = wide(w) * f32(0.5) + f32(1)
        yield (Case(f"ACTIVATE/{di}-{do}").put(A, w)
               .insn("act", act("abs", f"src={t(di, A)}", f"dst={t(do, O)}",
                                "scale=0.5 bias=fp32@1.0")).want(O, cast(np.abs(y), do)))
    w = values("i32")
    # from v3 a copy keeps its bits; on v2 it goes through fp32
    for gen, target in TARGETS.items():
        keep = w if gen != "v2" else cast(wide(w), "i32")
        yield (Case("ACTIVATE/copy-bits", target).put(A, w)
               .insn("act", act("copy", f"src={t('i32', A)}", f"dst={t('i32', O)}",
                                "scale=1.0 bias=fp32@0.0")).want(O, keep))


def read(case):
    return case.insn("act", f"ACTIVATION_READ_ACCUMULATOR ch={R} dst={t('fp32', Q, 1)}")


def sums():
    first, v = floats(8), floats()
    one = f"src={t('fp32', A, 8)}", f"dst={t('bf16', C, 8)}"
    two = f"src={t('fp32', B)}", f"dst={t('bf16', O)}"
    start = fold("add", first)
    for cmd, want in (("ZERO_ACCUMULATE", fold("add", v)), ("ACCUMULATE", fold("add", v, start)),
                      ("LOAD_ACCUMULATE", fold("add", v, np.full(R, 0.25, f32))),
                      ("ZERO", np.zeros(R, f32)), ("IDLE", start)):
        c = Case(f"ACTIVATE/{cmd}").put(A, first).put(B, v)
        c.insn("act", act("identity", f"accumulator_cmd=ZERO_ACCUMULATE {one[0]}", one[1],
                          "scale=1.0 bias=fp32@0.0"))
        c.insn("act", act("identity", f"accumulator_cmd={cmd} {two[0]}", two[1],
                          "scale=1.0 bias=fp32@0.0 imm=0.25"))
        yield read(c).want(O, cast(v, "bf16")).want(Q, want[:, None])
    c = Case("ACTIVATION_READ_ACCUMULATOR").put(A, first).put(B, v)
    c.insn("act", act("square", f"accumulator_cmd=ZERO_ACCUMULATE {two[0]}", two[1],
                      "scale=2.0 bias=fp32@0.5"))
    y = v * f32(2) + f32(0.5)
    yield read(c).want(Q, fold("add", y * y)[:, None])


def quantized():
    for name in ("identity", "relu", "tanh"):
        v, b = values("u8"), floats(1)
        y = of(name, wide(v) * f32(0.02) + b)
        q = y * f32(37.5) + f32(128)
        c = table(Case(f"ACTIVATE_QUANTIZE/{name}").put(A, v).put(B, b), name)
        yield (c.insn("act", f"ACTIVATE_QUANTIZE {name} quant_scale=37.5 src={t('u8', A)} ch={R} "
                      f"dequant_scale={f32(0.02).view(np.uint32):#x} "
                      f"bias=fp32@sbuf[p0+{B:#x}] "
                      f"quant_zero={f32(128).view(np.uint32):#x} dst={t('u8', O)}")
               .want(O, cast(q, "u8")))


def second():
    ops = {"mult": lambda a, b: a * b, "add": lambda a, b: a + b, "subtract": lambda a, b: a - b,
           "bypass": lambda a, b: a}
    pairs = [("mult", "add"), ("mult", "subtract"), ("mult", "bypass"), ("add", "bypass"),
             ("subtract", "bypass"), ("bypass", "bypass")]
    for op0, op1 in pairs:
        for rev in range(4):
            name = ("NONE", "FIRST", "SECOND", "BOTH")[rev]
            v, s = floats(), floats(1)
            y = v
            if op0 != "bypass":
                y = ops[op0](s, y) if rev & 1 else ops[op0](y, s)
            if op1 != "bypass":
                y = ops[op1](f32(0.75), y) if rev & 2 else ops[op1](y, f32(0.75))
            yield (Case(f"ACTIVATE2/{op0}-{op1}-{name}", "trn3", ulp=1).put(A, v).put(B, s)
                   .insn("act", "ACTIVATION_TABLE_LOAD set=0")
                   .insn("act", f"ACTIVATE2 tanh src={t('fp32', A)} op0={op0} op1={op1} ch={R} "
                         f"imm0=fp32@ptr[{B:#x}] imm1=0.75 dst={t('fp32', O)} "
                         f"reverse_operands={name}").want(O, of("tanh", y)))
    reduce = {"add": lambda a, b: a + b, "max": pick_max, "min": pick_min,
              "abs_max": lambda a, b: pick_max(np.abs(a), np.abs(b)),
              "abs_min": lambda a, b: pick_min(np.abs(a), np.abs(b))}
    for op, fn in reduce.items():
        v = floats()
        acc = np.full(R, {"max": -np.inf, "min": np.inf, "abs_min": np.inf}.get(op, 0), f32)
        for k in range(N):
            acc = fn(acc, v[:, k] * f32(0.5))
        c = (Case(f"ACTIVATE2/{op}", "trn3").put(A, v)
             .insn("act", f"ACTIVATE2 identity src={t('fp32', A)} reduce_cmd=RESET_REDUCE op0=mult "
                   f"reduce_op={op} ch={R} imm0=fp32@0.5 dst={t('fp32', O)}"))
        yield read(c).want(O, v * f32(0.5)).want(Q, acc[:, None])
    v = floats()
    yield (Case("ACTIVATE2/prelu", "trn3").put(A, v)
           .insn("act", f"ACTIVATE2 prelu src={t('fp32', A)} ch={R} relu_param=0.125 "
                 f"dst={t('fp32', O)}").want(O, np.where(v < 0, v * f32(0.125), v)))


def cases():
    for group in (functions, operands, sums, quantized, second):
        yield from group()
