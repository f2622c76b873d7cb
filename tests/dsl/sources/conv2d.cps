// Convolution packed on the PE: rows on partitions, bands on columns.
op conv2d(x[N, C, H, W], w[O, C, R, S]; stride: int = 1, pad: int = 0) -> y[N, O, Ho, Wo]
    where Ho = (H + 2 * pad - R) / stride + 1, Wo = (W + 2 * pad - S) / stride + 1 {
    y = convolution(x, w, window: [R, S], stride: [stride, stride], pad: [pad, pad]);
}

// Few input channels: RP filter rows and C channels share the partitions; up to four output-channel groups of 32 share the PE columns.
leaf conv2d_packed for conv2d on trn2, trn3 {
    layout x: [C, N, H, W];
    layout w: [C, R, S, O];
    layout y: [O, N, Ho, Wo];
    let RP = min(R, 128 / C);                                   // filter rows per product
    let RG = ceil_div(R, RP);                                   // products along the filter's height
    let Wp = W + 2 * pad;
    where C <= 64 : "with more channels there is nothing to pack";
    where Wo <= 512 : "one output row must fit a PSUM bank";
    let RB = max(1, 512 / Wo);                                  // output rows in one PSUM bank
    let side = O <= 32 ? 4 : 1;                                 // PE column tiles working side by side
    cost pe: N * ceil_div(Ho, RB) * RG * S * RB * Wo * ceil_div(O, 128) / side,
         hbm: RP * bytes(x) + bytes(w) + bytes(y);
    tolerance 1e-2, 1e-5;
    cases (N: 1, C: 3, H: 224, W: 224, O: 64, R: 7, S: 7, stride: 2, pad: 3),
          (N: 2, C: 16, H: 30, W: 31, O: 32, R: 3, S: 3, pad: 1);

    sbuf f[RP * C, RG, S, O]: w.dtype = 0;                      // missing rows of the last group stay zero
    for r in 0..R { f[ds(r % RP * C, C), r / RP, :, :] <- w[:, :, r, :].view("o c s -> c s o"); }

    for n in 0..N across cores, band in tiles(Ho, RB * side) {
        let top = band.start * stride - pad;                    // first input row the band touches
        let rows = (band.size - 1) * stride + (RG - 1) * RP + 1;
        sbuf img[RP * C, rows, Wp]: x.dtype bufs 2 = 0;         // padding is the zero that stays
        for r in 0..RP {
            let have = clip(range(H), top + r, top + r + rows);
            img[ds(r * C, C), ds(have.start - top - r, have.size), ds(pad, W)] <- x[n, :, have, :];
        }
        for o in tiles(O, 128) {
            psum acc[side == 1 ? o.size : 128, RB, Wo]: fp32 bufs 2;
            for r in 0..RG, s in 0..S, t in tiles(band, RB) {   // t innermost: neighbours go to different PE columns and overlap
                let r0 = (t.start - band.start) * stride + r * RP;
                acc[ds(32 * t.index, o.size), 0:t.size, :] +=
                    f[:, r, s, o]' @ img[:, r0:r0 + (t.size - 1) * stride + 1:stride, s:s + (Wo - 1) * stride + 1:stride];
            }
            for t in tiles(band, RB) { y[n, o, t, :] <- acc[ds(32 * t.index, o.size), 0:t.size, :] bufs 2; }
        }
    }
}
