// Host: RMS norm.
op rmsnorm(x[T, H], gamma[H]; eps: fp32 = 1e-6) -> y[T, H] {
    y = x * rsqrt(mean(x * x, axis: 1) + eps) * gamma;
}

leaf rmsnorm_host for rmsnorm on host {
    where x.dtype in {fp32, bf16, fp16};
    param U in {1, 2, 4, 8} = 4;                                // independent sums, to hide the latency of an add
    let L = target.lanes(fp32) * U;
    cost cycles: T * H * (2 / U + 2) / target.lanes(fp32), hbm: bytes(x) + bytes(y);
    tolerance 1e-5, 1e-6;
    cases (T: 7, H: 4096), (T: 1, H: 2881), (T: 512, H: 128);

    for t in tiles(T, 1) across cores {
        vreg s[1, L]: fp32 = 0;
        for h in tiles(H, L) { s[:, 0:h.size] += square(x[t, h]); }         // the last piece is a masked vector
        vreg r: fp32 = rsqrt(sum(s, axis: free) * (1.0 / H) + eps);
        for h in tiles(H, L) { y[t, h] = x[t, h] * r * gamma[h]; }
    }
}
