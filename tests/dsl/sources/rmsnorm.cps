// RMS norm over rows, and a leaf of one pass.
op rmsnorm(x[T, H], gamma[H]; eps: fp32 = 1e-6) -> y[T, H] {
    y = x * rsqrt(mean(x * x, axis: 1) + eps) * gamma;
}

leaf rmsnorm_rows for rmsnorm on trn1, trn2, trn3 {
    where 3 * bytes(x[0, :]) + 8 * H <= sbuf.partition : "three rows of H, gamma and the squares must fit one partition";
    param bufs_x in 2..4 = 3;
    cost act: ceil_div(T, P) * (H + 2 * 64), dve: ceil_div(T, P) * 2 * H, hbm: bytes(x) + bytes(y);
    tolerance 2e-2, 1e-5;
    cases (T: 2048, H: 8192), (T: 1, H: 4096), (T: 129, H: 2880);

    sbuf g[all, H] <- gamma;
    for t in tiles(T, P) across cores {
        sbuf xt[t, H] bufs bufs_x <- x[t, :];
        sbuf ss[t, 1]: fp32 = sum(square(xt), axis: free);
        sbuf r[t, 1]: fp32 = rsqrt(ss * (1.0 / H) + eps);
        y[t, :] <- xt * r * g;
    }
}
