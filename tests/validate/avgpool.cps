// Adaptive average pooling, one window of the image at a time: a load of short runs, a sum over both of its axes, a column
// of the result. Rows are (image, channel) pairs. The source names one buffer for the windows; the compiler rotates it.
op adaptive_average_pool(x[R, H, W]; out: int) -> y[R, Q] where Q = out * out {
    for i in 0..out {
        for j in 0..out {
            y[:, i * out + j:i * out + j + 1] =
                mean(x[:, i * H / out:ceil_div((i + 1) * H, out), j * W / out:ceil_div((j + 1) * W, out)], axis: (1, 2)).view("r 1 1 -> r 1");
        }
    }
}

leaf average_pool_windows for adaptive_average_pool on trn1 {
    cases (R: 130, H: 14, W: 14, out: 3);
    for r in tiles(R, 128) {
        sbuf o[r, Q]: y.dtype;
        for i in 0..out, j in 0..out {
            let h = i * H / out..ceil_div((i + 1) * H, out);
            let w = j * W / out..ceil_div((j + 1) * W, out);
            sbuf acc[r, 1]: fp32 bufs 4 = 0.0 on dve;
            for hp in tiles(h, 128), wp in tiles(w, 128) {          // a window is cut in pieces of at most 128 x 128
                sbuf win[r, hp.size, wp.size] bufs min(4, 160 * 1024 / ((hp.end - hp.start) * (wp.end - wp.start) * bytes(x.dtype))) <- x[r, hp, wp];
                sbuf s[r, 1, 1]: fp32 bufs 4 = sum(win, axis: free);
                acc = acc + s.view("r 1 1 -> r 1");
            }
            o[:, i * out + j:i * out + j + 1] = acc * (1.0 / ((h.end - h.start) * (w.end - w.start)));
        }
        y[r, :] <- o;
    }
}
