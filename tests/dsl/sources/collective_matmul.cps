// Collective matmul on a ring.
// y = all_gather(x) @ w, the gather hidden behind the products: each step multiplies one shard while the next one travels.
op collective_matmul(x[M, K], w[K, N]; ranks: int) -> y[M * ranks, N] {
    y = all_gather(x, ranks, axis: 0) @ w;
}

leaf collective_matmul_ring for collective_matmul on trn2, trn3 {
    where K % 128 == 0 && x.dtype == w.dtype;
    where ranks % 2 == 0 && ranks >= 2 : "a ring needs an even number of ranks";
    where M % (128 * cores) == 0 : "each core carries whole tiles of rows";
    where (2 * M / cores + N) * K / 128 * bytes(x.dtype) <= sbuf.partition * 3 / 4 : "both shards and w stay in SBUF";
    param CH in {1, 2, 4} = 2;                                  // channels: independent rings
    cost pe: ranks * M * N * K / (128 * 128), link: (ranks - 1) * bytes(x);
    tolerance 1e-2, 1e-2;
    cases (M: 1024, K: 4096, N: 4096, ranks: 4);

    let mine = share(range(M), core, cores);                    // this core's rows of every shard
    sbuf wt[K by 128, N]: w.dtype <- w;
    sbuf shard[K by 128, 2, mine]: x.dtype;                     // one half multiplied while the other arrives
    shard[:, 0, :] <- x[mine, :]';

    for step in 0..ranks {
        let now = step % 2;
        reg owner: i32 = ring_source(step);                     // whose rows these are: known when the program is loaded
        if (step < ranks - 1) {
            for c in split(mine, CH) {
                collective_permute(dst: shard[:, 1 - now, c], src: shard[:, now, c], ring: ranks, channel: c.index);
            }
        }
        for m in tiles(mine, 128), n in tiles(N, 512) {
            psum acc[m, n]: fp32 bufs 2;
            for k in tiles(K, 128) { acc += shard[k, now, m]' @ wt[k, n]; }
            y[ds(owner * M + m.start, m.size), n] <- acc bufs 3;
        }
    }
}
