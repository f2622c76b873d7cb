// Attention of one small head on trn1, scores of all keys at once: the auto-allocated and the manually allocated kernel of
// aws-neuron/nki-samples (reference/attention.py before c4b806e, reference/allocated_attention.py; limits of their tests), and an
// independent optimisation of the first (ucb-bar/autocomp, examples/trn-tutorial/5_sd_attention_trace.py). PE works in bf16
// whatever the tensors are. Where the source leaves it open, ACT copies scores out of PSUM and DVE transposes.

op sd_attn(q[D, S], k[S, D], v[S, D]) -> o[S, D] {
    let s = 0.125 * (q' @ k');
    let e = exp(s - max(s, axis: 1));
    o = (e / sum(e, axis: 1)) @ v;
}

// One tile of queries after another: scores by 128 keys, copied and reduced one by one; the result is turned back at the end.
fn query_tiles(o, qs, kt, vt, dt) {
    let (D, S) = (qs.shape[0], qs.shape[1]);
    for i in tiles(S, 128) {
        sbuf s[i, S]: dt bufs 2;
        sbuf tops[i, S / 128]: fp32 bufs 2;
        for j in tiles(S, 128) {
            psum z[i, j]: fp32 bufs 3 = qs[:, i]' @ kt[:, j];
            s[:, j] = z on act;
            tops[:, ds(j.index, 1)] = max(s[:, j], axis: free);
        }
        sbuf neg[i, 1]: fp32 bufs 2 = -max(tops, axis: free);
        sbuf l[i, 1]: fp32 bufs 2;
        sbuf e[i, S]: bf16 bufs 2 = exp(s + neg) reduce add into l;
        l = 1.0 / l;
        sbuf inv[i, D]: fp32 bufs 2;
        inv = l;
        psum acc[D, i]: fp32 bufs 1;
        for j in tiles(S, 128) {
            psum t[j, i]: fp32 bufs 2 = e[:, j]';
            sbuf et[j, i]: bf16 bufs 4;
            et = t on dve;
            acc += vt[j, :]' @ et;
        }
        sbuf r[D, i]: fp32 bufs 2 = acc on dve;
        psum d[D, i]: fp32 bufs 1 = inv';
        r = r * d;
        psum back[i, D]: fp32 bufs 1 = r';
        sbuf out[i, D]: o.dtype bufs 2 = back on act;
        o[i, :] <- out;
    }
}

leaf sd_attn_auto for sd_attn on trn1 {
    tolerance 2e-2, 1e-5;
    cases (S: 512, D: 128);
    sbuf vt[S by P, D]: bf16;
    sbuf qs[D, S]: bf16;
    sbuf kt[D, S]: bf16;
    for j in tiles(S, 128) {
        vt[j, :] <- v[j, :];
        sbuf qj[D, j] bufs 2 <- q[:, j];
        qs[:, j] = qj * 0.125;
        sbuf kj[j, D] bufs 2 <- k[j, :];
        psum t[D, j]: fp32 bufs 2 = kj';
        kt[:, j] = t on act;
    }
    query_tiles(o, qs, kt, vt, q.dtype);
}

op sd_attn_rows(q[S, D], k[S, D], v[S, D]) -> o[S, D] {
    let s = 0.125 * (q @ k');
    let e = exp(s - max(s, axis: 1));
    o = (e / sum(e, axis: 1)) @ v;
}

// First version of the optimisation: the same with all tensors stored [S, d].
leaf sd_attn_rows_auto for sd_attn_rows on trn1 {
    tolerance 2e-2, 1e-5;
    cases (S: 512, D: 64);
    sbuf vt[S by P, D]: bf16;
    sbuf qs[D, S]: bf16;
    sbuf kt[D, S]: bf16;
    for j in tiles(S, 128) {
        vt[j, :] <- v[j, :];
        sbuf qj[j, D] bufs 2 <- q[j, :];
        psum tq[D, j]: fp32 bufs 1 = qj';
        qs[:, j] = tq * 0.125;
        sbuf kj[j, D] bufs 2 <- k[j, :];
        psum tk[D, j]: fp32 bufs 1 = kj';
        kt[:, j] = tk on act;
    }
    query_tiles(o, qs, kt, vt, q.dtype);
}

// Final version of the optimisation: scores kept in bf16, sums taken by the exponential, results scaled out of PSUM.
leaf sd_attn_fused for sd_attn_rows on trn1 {
    tolerance 2e-2, 1e-5;
    cases (S: 512, D: 64);
    sbuf vt[S by P, D]: bf16;
    sbuf qs[D, S]: bf16;
    sbuf kt[D, S]: bf16;
    for j in tiles(S, 128) {
        vt[j, :] <- v[j, :];
        sbuf qj[j, D] bufs 2 <- q[j, :];
        psum tq[D, j]: fp32 bufs 1 = qj';
        qs[:, j] = tq * 0.125;
        sbuf kj[j, D] bufs 2 <- k[j, :];
        psum tk[D, j]: fp32 bufs 1 = kj';
        kt[:, j] = tk on act;
    }
    for i in tiles(S, 128) {
        sbuf s[i, S]: bf16 bufs 2;
        sbuf tops[i, S / 128]: fp32 bufs 2;
        for j in tiles(S, 128) {
            psum z[i, j]: fp32 bufs 3 = qs[:, i]' @ kt[:, j];
            s[:, j] = z on act;
            tops[:, ds(j.index, 1)] = max(s[:, j], axis: free);
        }
        sbuf neg[i, 1]: fp32 bufs 2 = -max(tops, axis: free);
        sbuf l[i, 1]: fp32 bufs 2;
        sbuf e[i, S]: bf16 bufs 2 = exp(s + neg) reduce add into l;
        l = 1.0 / l;
        psum acc[i, D]: fp32 bufs 1;
        for j in tiles(S, 128) {
            psum t[j, i]: fp32 bufs 3 = e[:, j]';
            sbuf et[j, i]: bf16 bufs 4;
            et = t on dve;
            acc += et' @ vt[j, :];
        }
        sbuf out[i, D]: o.dtype bufs 2 = acc * l;
        o[i, :] <- out;
    }
}

op sd_attn_t(q[D, S], k[D, S], v[S, D]) -> o[D, S] {
    let s = 0.125 * (q' @ k);
    let e = exp(s - max(s, axis: 1));
    o = ((e / sum(e, axis: 1)) @ v)';
}

fn bank_of_4() { psum b[P, 512]: fp32 bufs 4; return b; }

// Two tiles of queries take turns, each with four banks for whatever comes next; one tile of scores for both, on purpose.
leaf sd_attn_alloc for sd_attn_t on trn1 {
    tolerance 2e-2, 1e-5;
    cases (S: 1024, D: 128);
    sbuf vt[S by P, D]: bf16;
    sbuf qs[D, S]: bf16;
    sbuf kt[D, S]: bf16;
    for j in tiles(S, 128) {
        vt[j, :] <- v[j, :];
        sbuf qj[D, j] bufs 2 <- q[:, j];
        qs[:, j] = qj * 0.125;
    }
    for j in tiles(S, 512) { kt[:, j] <- k[:, j]; }
    sbuf s[P, S]: fp32;
    let C = S / 512;
    let first = round_up(C, 4);
    let n = first + 4 + ceil_div(C, 3) * 4;
    for ii in tiles(S, 256) {
        let z0 = [bank_of_4() for j in 0..n];
        let z1 = [bank_of_4() for j in 0..n];
        sbuf e0[P, S]: bf16 bufs 1;
        sbuf e1[P, S]: bf16 bufs 1;
        for i in tiles(ii, 128) {
            let z = i.first ? z0 : z1;
            let e = i.first ? e0 : e1;
            sbuf tops[P, C]: fp32 bufs 2;
            for j in tiles(S, 512) {
                z[j.index] = qs[:, i]' @ kt[:, j];
                s[:, j] = z[j.index] * 1.0 reduce max into tops[:, ds(j.index, 1)];
            }
            sbuf neg[P, 1]: fp32 bufs 2 = -max(tops, axis: free);
            sbuf part[P, S / 1024]: fp32 bufs 2;
            for j in tiles(S, 1024) { e[:, j] = exp(s[:, j] + neg) reduce add into part[:, ds(j.index, 1)]; }
            sbuf l[P, 1]: fp32 bufs 2 = sum(part, axis: free);
            l = 1.0 / l;
            sbuf inv[P, 128]: fp32 bufs 2;
            inv = l;
            let acc = z[first + 1];
            for j in tiles(S, 512) {
                let g = first + 2 + j.index / 3 * 4 + j.index % 3;
                sbuf et[P, 512]: bf16 bufs 8;
                for h in tiles(j, 128) { z[g][:, ds(h.start - j.start, 128)] = e[:, h]'; }
                et = z[g] on dve;
                for h in tiles(j, 128) { acc[:, 0:128] += vt[h, :]' @ et[:, ds(h.start - j.start, 128)]; }
            }
            sbuf r[P, 128]: fp32 bufs 2 = acc[:, 0:128] on dve;
            let d = z[n - 2][:, 0:128];
            d = inv';
            sbuf out[D, i]: o.dtype bufs 2 = r * d;
            o[:, i] <- out;
        }
    }
}
