// Every form of the grammar once, for the round trip; nothing here is meant to be traced.
use "leaves/rope.cps";
use "leaves/softmax.cps";

const LIMIT = 0x7f;
const SMALL = 1e-12;
const TEXT = "quoted \"text\", a \\ and\na second line";
const PAIR = (1, 2.5);
const TABLE = [i * i for i in 0..8];

enum Mode { plain, fancy = 4, last }

op shapes(x[A, (B + 1) * 2]: bf16, inout state[A], mask?[A, 1]: u8; mode: Mode = Mode.plain, t: dtype = fp32, n: int = -1, s: str = "a")
    -> y[A, C]: fp32, z[A] where C = B * 2, D = C / 2 {
    let (p, q) = both(x, n);
    y = mode == Mode.fancy ? p : n < 0 ? q : p + q;
    z = state;
    cost dve: A * 2, hbm: bytes(x);
}

block twice(x[T, N]) -> y[T, N] {
    param TB in {128, 256} = 128;
    where T > 1;
    for t in tiles(T, TB) across cores, u in 0..1 unrolled rolled {
        sbuf n = softmax(x[t, :]);
        y[t, :] = softmax(n);
    }
}

fn helper(a, b = 2 * (3 + 4), c = -1) {
    var i = 0;
    for k in a..b {
        if (k == c) { break; } else if (k > c && !(k in {1, 2, 3})) { continue; } else { i += 1; }
        if (i >= 10) { return; }
    }
    assert i < 100 : "the loop is short";
    return i;
}

leaf grammar_all for softmax on trn1, host {
    layout x: [T, N] or [N, T] or sbuf [T by 128, N];
    layout y: [T, N];
    where T % 2 == 0;
    where N * 2 <= 4 || T << 2 > N >> 1 : "a reason";
    param K in 1..4 = 2;
    cost pe: T, act: N, link: 4.0;
    resources sbuf: T * 4, psum: 2;
    tolerance 1e-3, 1e-6;
    cases (T: 1, N: 2), (T: 3, N: 4, dtype: bf16, cores: 2);
    priority -1;

    hbm h[T, N]: fp32;
    sbuf a[all, N]: x.dtype bufs 2 at 1024 parts 32 align 64 <- x[0, :] via static queue 1 on act priority 2;
    psum b[T by 128, N] bank 3;
    reg r: i32 <- h[0, 0];
    ram c;
    vreg d[1, N] = 0;
    first: a = b on pool after last;
    a[0:2, ::2, K, :] -= (b + c) * d / 2 % 3 - (4 - (5 - 6)) oob skip;
    a *= -b' @ !c | d & a;
    a[:, ds(0, 4)].bits(fp32).view("a b -> b a", b: 4) <- h' after first;
    a <+ b;
    a = exp(b) reduce add into c[:, 0:1] bufs 2;
    a = exp(b) reduce max onto d;
    max8(dst: a, src: b) on dve;
    fence();
    loop i in 0..r { a = b; }
    while (r < 4) { r = r + 1; }
    when (r != 2) { a = b; }
    when (r == 2) { a = b; } else { a = c; }
    for t in tiles(T, 128) pipelined {
        stage load { a <- x[t, :]; }
        stage store { y[t, :] <- a; }
    }
    outer: inner: a = b;
    (a)[0] = {1, 2}[0] + [1, 2][1] + (1, 2)[0];
    a = (K > 2 ? 1 : 2)..(3 ? 4 : 5);
    a = x ? y ? 1 : 2 : (b ? 3 : 4);
    a = (x[1 ? 2 : 3 : 4]);
    a = (1 < 2) == (3 < 4);
    a = sbuf.partition + psum.banks + target.gen;
    a = 1.5e300 + 0.1 + 100000.0 + 9223372036854775807;
}
