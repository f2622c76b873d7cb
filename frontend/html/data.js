// The recorded run out of its column files. Nodes are numbered: instructions from 0, transfers from
// D.insns on. All times are absolute picoseconds on one axis, whatever kernel they belong to.

const NONE = -1;

class Column {
  constructor(text) {
    this.a = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), c => c.charCodeAt(0));
    this.i = 0;
  }
  get more() { return this.i < this.a.length; }
  u() {
    let b = this.a[this.i++];
    if (b < 128) return b;
    let v = b & 127, m = 128;
    do {
      b = this.a[this.i++];
      v += (b & 127) * m;
      m *= 128;
    } while (b > 127);
    return v;
  }
  z() {
    const v = this.u();
    return v % 2 ? -(v + 1) / 2 : v / 2;
  }
}

const D = JSON.parse($("data").textContent);
$("data").remove();

(function decode() {
  const sum = f => D.runs.reduce((n, r) => n + f(r), 0);
  const ni = D.insns = sum(r => r.insns), nx = D.xfers = sum(r => r.xfers);
  const nc = sum(r => r.streams.reduce((a, b) => a + b, 0)), np = D.pieces = sum(r => r.npath);
  const ns = D.changes = sum(r => r.nsem), nl = D.lives = sum(r => r.nlive);
  const f64 = n => new Float64Array(n), i32 = n => new Int32Array(n), u32 = n => new Uint32Array(n), u8 = n => new Uint8Array(n);
  // instructions
  D.engine = u8(ni); D.code = u32(ni); D.run = new Uint16Array(ni + nx);
  D.turn = f64(ni); D.ready = f64(ni); D.own = f64(ni); D.start = f64(ni); D.free = f64(ni);
  D.done = f64(ni); D.warm = f64(ni); D.macs = f64(ni); D.from = i32(ni + nx).fill(NONE);
  D.sem = new Int16Array(ni).fill(NONE); D.value = i32(ni); D.before = i32(ni).fill(NONE);
  // what stands in the streams
  D.name = new Uint16Array(nc); D.place = u32(nc); D.index = u32(nc);
  // transfers
  D.queue = new Uint16Array(nx); D.way = u8(nx); D.trigger = f64(nx); D.issue = f64(nx);
  D.first = f64(nx); D.last = f64(nx); D.seen = f64(nx); D.bytes = f64(nx); D.ndesc = u32(nx);
  D.vari = u32(nx); D.chip = f64(nx);
  D.queues = [];
  // pieces of the critical path: piece k ends at pathEnd[k]; semaphore changes; bytes in use
  D.pathStart = f64(np); D.pathEnd = f64(np); D.pathKind = u8(np); D.pathWho = i32(np);
  D.semNo = new Uint16Array(ns); D.semTime = f64(ns); D.semValue = i32(ns); D.semBy = i32(ns);
  D.livePsum = u8(nl); D.liveLo = u32(nl); D.liveHi = u32(nl); D.liveStart = f64(nl); D.liveEnd = f64(nl); D.liveBy = i32(nl);
  // cores of one launch follow one another, core 0 first
  D.cores = Math.max(1, ...D.runs.map(r => r.cores));
  D.launches = [];
  D.runs.forEach((r, at) => {
    if (r.core === 0) D.launches.push({name: r.name, r0: at, flops: r.flops, bytes: r.bytes, roof_ps: r.roof_ps, bound: r.bound});
    const l = r.launch = D.launches[D.launches.length - 1];
    l.r1 = at + 1;
    r.label = r.cores > 1 ? `${r.name}, core ${r.core}` : r.name;
  });
  let i0 = 0, x0 = 0, c0 = 0, p0 = 0, s0 = 0, l0 = 0;
  D.begin = D.runs.length ? Infinity : 0;
  D.end = 0;
  D.runs.forEach((r, at) => {
    const shift = r.offset - r.base, bases = [];
    const node = (kind, n) => kind === 1 ? i0 + n : ni + x0 + n;
    const chain = c => {
      const last = [0, 0];
      return () => {
        const k = c.u();
        return k ? node(k, last[k - 1] -= c.z()) : NONE;
      };
    };
    r.t0 = r.begin + shift;
    r.t1 = r.end + shift;
    r.c0 = c0;
    r.launch.t0 = Math.min(r.t0, r.core ? r.launch.t0 : r.t0);
    r.launch.t1 = Math.max(r.t1, r.core ? r.launch.t1 : r.t1);
    D.begin = Math.min(D.begin, r.t0);
    D.end = Math.max(D.end, r.t1);
    let c = new Column(r.code);
    r.streams.forEach(n => {
      bases.push(c0);
      for (let k = 0; k < n; k++, c0++) {
        D.name[c0] = c.u();
        D.place[c0] = c.u();
        D.index[c0] = k;
      }
    });
    c = new Column(r.insn);
    const index = [0, 0, 0, 0, 0], turn = [shift, shift, shift, shift, shift], prev = [NONE, NONE, NONE, NONE, NONE];
    const costs = r.costs;
    let t = shift;
    for (let k = i0; k < i0 + r.insns; k++) {
      const e = D.engine[k] = c.u();
      index[e] += c.z();
      D.code[k] = bases[e] + index[e];
      D.start[k] = t += c.u();
      D.ready[k] = t - c.u();
      D.own[k] = t - c.u();
      const cost = c.u();
      D.free[k] = t + (cost ? costs[2 * cost - 2] : c.u());
      D.done[k] = D.free[k] + (cost ? costs[2 * cost - 1] : c.u());
      D.warm[k] = c.u();
      if (e === 0) D.macs[k] = c.u();
      const kind = c.u();
      if (kind) {
        D.from[k] = node(kind, k - i0 - c.z());
        D.sem[k] = c.u();
        D.value[k] = c.z();
      }
      D.turn[k] = turn[e];
      D.before[k] = prev[e];
      D.run[k] = at;
      turn[e] = D.free[k];
      prev[e] = k;
    }
    c = new Column(r.xfer);
    t = shift;
    const queues = r.queues.map(q => {
      if (!D.queues.includes(q)) D.queues.push(q);
      return D.queues.indexOf(q);
    });
    for (let k = x0; k < x0 + r.xfers; k++) {
      D.from[ni + k] = i0 + c.u();
      D.queue[k] = queues[c.u()];
      D.way[k] = c.u();
      D.trigger[k] = t += c.u();
      D.issue[k] = t + c.u();
      D.first[k] = D.issue[k] + c.u();
      D.last[k] = D.first[k] + c.u();
      D.seen[k] = D.last[k] + c.u();
      D.bytes[k] = c.u();
      D.ndesc[k] = c.u();
      D.vari[k] = c.u();
      D.chip[k] = c.u() - 1;
      D.run[ni + k] = at;
    }
    r.s0 = s0;
    c = new Column(r.sem);
    let next = chain(c);
    for (t = shift; c.more; s0++) {
      D.semNo[s0] = c.u();
      D.semTime[s0] = t += c.u();
      D.semValue[s0] = c.z();
      D.semBy[s0] = next();
    }
    r.s1 = s0;
    r.l0 = l0;
    c = new Column(r.live);
    next = chain(c);
    for (t = shift; c.more; l0++) {
      D.livePsum[l0] = c.u();
      D.liveLo[l0] = c.u() * 64;
      D.liveHi[l0] = D.liveLo[l0] + c.u() * 64;
      D.liveStart[l0] = t += c.u();
      D.liveEnd[l0] = t + c.u();
      D.liveBy[l0] = next();
    }
    r.l1 = l0;
    c = new Column(r.path);
    next = chain(c);
    r.path0 = p0;
    for (t = r.t0; c.more; p0++) {
      D.pathKind[p0] = c.u();
      D.pathStart[p0] = t;
      D.pathEnd[p0] = t += c.u();
      D.pathWho[p0] = next();
    }
    r.path1 = p0;
    r.i0 = i0; r.i1 = i0 += r.insns;
    r.x0 = x0; r.x1 = x0 += r.xfers;
    for (const key of ["code", "insn", "xfer", "sem", "live", "path"]) r[key] = null;
  });
  // who of another core let a node go on, and whom a node let go on there
  D.meet = new Map();
  D.met = new Map();
  D.runs.forEach(r => {
    for (const c = new Column(r.link); c.more;) {
      const n = c.u() === 1 ? r.i0 + c.u() : ni + r.x0 + c.u(), by = D.runs[r.launch.r0 + c.u()].i0 + c.u();
      D.meet.set(n, by);
      if (!D.met.has(by)) D.met.set(by, []);
      D.met.get(by).push(n);
    }
    r.link = null;
  });
  D.onPath = u8(ni + nx);
  for (const n of D.pathWho) if (n >= 0) D.onPath[n] = 1;
})();

const isXfer = n => n >= D.insns;
const xferOf = n => n - D.insns;
const nodeStart = n => isXfer(n) ? D.issue[xferOf(n)] : D.start[n];
const nodeEnd = n => isXfer(n) ? D.seen[xferOf(n)] : D.free[n];
const WAYS = ["on chip", "load", "store", "HBM to HBM"];
const nodeName = n => isXfer(n) ? WAYS[D.way[xferOf(n)]] : D.names[D.name[D.code[n]]];
const coreOf = n => D.runs[D.run[n]].core;
const nodeTrack = n => isXfer(n) ? D.queues[D.queue[xferOf(n)]] : D.engines[D.engine[n]];
const nodeWho = n => (D.cores > 1 ? `core ${coreOf(n)} ` : "") + nodeTrack(n);
const nodeCode = n => D.code[isXfer(n) ? D.from[n] : n];
const nodePlace = n => D.places[D.place[nodeCode(n)]];

// Assembly text is read when it is first asked for: here only where each instruction's words lie.
function needText() {
  if (D.textAt) return;
  D.textAt = new Uint32Array(D.name.length);
  D.textEnd = new Uint32Array(D.name.length);
  D.runs.forEach((r, at) => {
    const c = r.words = new Column(r.text), end = at + 1 < D.runs.length ? D.runs[at + 1].c0 : D.name.length;
    r.text = null;
    r.c1 = end;
    for (let k = r.c0; k < end; k++) {
      const n = c.u();
      D.textAt[k] = c.i;
      D.textEnd[k] = c.i += n;
    }
  });
}

// Operands and semaphores as assembly text has them.
function nodeText(n) {
  needText();
  const c = nodeCode(n), w = D.runs[D.run[n]].words;
  let out = "";
  for (w.i = D.textAt[c]; w.i < D.textEnd[c];) {
    const v = w.u();
    out += v % 2 ? (v - 1) / 2 : " " + D.words[v / 2];
  }
  return out.slice(1);
}

// Instructions that node n released from a wait, or the transfers it triggered.
let after = null;
function nodesAfter(n) {
  if (!after) {
    const all = D.insns + D.xfers, at = new Uint32Array(all + 1);
    for (const f of D.from) if (f >= 0) at[f + 1]++;
    for (let k = 0; k < all; k++) at[k + 1] += at[k];
    const list = new Uint32Array(at[all]), fill = at.slice();
    for (let k = 0; k < all; k++) if (D.from[k] >= 0) list[fill[D.from[k]]++] = k;
    after = {at, list};
  }
  return Array.from(after.list.subarray(after.at[n], after.at[n + 1]));
}
