// What is drawn where: one track per row of the plot, top to bottom, with its height and colours.

const COLOURS = ["pe", "act", "pool", "dve", "sp", "load", "store", "copy", "own", "port", "table", "nobody", "crit"];
const C = Object.fromEntries(COLOURS.map((c, k) => [c, k]));

const wayColour = way => way === 1 ? C.load : way === 2 ? C.store : C.copy;
const nodeColour = n => n < 0 ? C.nobody : isXfer(n) ? wayColour(D.way[xferOf(n)]) : D.engine[n];

// Colour of a piece of the critical path: whose work it is; overheads by kind.
const kindFixed = D.kinds.map(k => ({"own result": C.own, "shared port": C.port, "table load": C.table, semaphore: C.nobody})[k[0]]);
const kindColour = (kind, who) => kindFixed[kind] === undefined ? nodeColour(who) : kindFixed[kind];
const kindIdle = D.kinds.map(k => !["busy", "DMA moving", "control", "table load"].includes(k[0]));
const isBusy = D.kinds.map(k => k[0] === "busy");
const isTable = D.names.map(n => n.includes("TABLE") || n.includes("ACT_FUNC_SET"));

// Colours of an engine's account, by kind of time.
const accountColour = (kind, engine) =>
  ({busy: C[D.engines[engine]], "warm-up": C[D.engines[engine]], "table load": C.table, control: C.sp,
    "own result": C.own, "shared port": C.port, waiting: C.nobody})[D.kinds[kind][0]];

const tracks = [];

// The numbers below n that pass, as an array; map64 looks values up in a column.
class Ids extends Int32Array {
  map64(column) {
    const out = new Float64Array(this.length);
    for (let k = 0; k < this.length; k++) out[k] = column[this[k]];
    return out;
  }
}
function pick(n, test) {
  const out = new Ids(n);
  let m = 0;
  for (let k = 0; k < n; k++) if (test(k)) out[m++] = k;
  return out.slice(0, m);
}

function makeTracks() {
  tracks.length = 0;
  if (D.runs.length > 1) tracks.push({kind: "runs", label: "kernels", h: 17});
  tracks.push({kind: "path", label: "critical path", h: 20});
  D.engines.forEach((name, e) => {
    const ids = pick(D.insns, k => D.engine[k] === e);
    if (ids.length) tracks.push({kind: "engine", label: name, engine: e, ids, h: 28});
  });
  D.queues.forEach((name, q) => {
    const ids = pick(D.xfers, k => D.queue[k] === q);
    if (!ids.length) return;
    // lanes: transfers under way at once; what does not fit shares the last one
    const until = [], lane = new Uint8Array(ids.length), longest = new Float64Array(ids.length);
    ids.forEach((x, k) => {
      let l = 0;
      while (l < until.length && until[l] > D.issue[x]) l++;
      l = Math.min(l, 5);
      until[l] = Math.max(until[l] || 0, D.seen[x]);
      lane[k] = l;
      longest[k] = Math.max(k ? longest[k - 1] : 0, D.seen[x]);
    });
    const at = new Uint32Array(D.xfers);
    ids.forEach((x, k) => { at[x] = k; });
    const lh = until.length > 3 ? 7 : 9;
    tracks.push({kind: "queue", label: name, queue: q, ids, at, lane, longest, lanes: until.length,
                 lh, h: Math.max(18, until.length * lh + 5)});
  });
  if (D.macs.some(m => m > 0)) tracks.push({kind: "macs", label: "PE use", unit: "% of peak", h: 30});
  if (D.xfers) {
    tracks.push({kind: "rate", label: "DMA rate", unit: "GB/s", h: 30});
    tracks.push({kind: "flight", label: "in flight", unit: "bytes", h: 30, points: steps(flightChanges())});
  }
  for (const psum of [0, 1]) {
    const ids = pick(D.lives, k => D.livePsum[k] === psum);
    if (!ids.length) continue;
    const longest = new Float64Array(ids.length);
    let top = 0;
    ids.forEach((l, k) => {
      longest[k] = Math.max(k ? longest[k - 1] : 0, D.liveEnd[l]);
      top = Math.max(top, D.liveHi[l]);
    });
    const size = D.runs[0][psum ? "psum" : "sbuf"], peak = Math.max(...D.runs.map(r => psum ? r.psum_peak : r.sbuf_peak));
    tracks.push({kind: "memory", label: psum ? "PSUM" : "SBUF", psum, ids, longest, size, peak,
                 top: psum ? size : Math.min(size, Math.ceil(top * 1.05 / 1024) * 1024), h: psum ? 66 : 116});
  }
  const sems = new Map();
  for (let k = 0; k < D.changes; k++) sems.set(D.semNo[k], (sems.get(D.semNo[k]) || 0) + 1);
  for (const sem of [...sems.keys()].sort((a, b) => a - b)) {
    const ids = pick(D.changes, k => D.semNo[k] === sem);
    tracks.push({kind: "sem", label: sem < 256 ? `S[${sem}]` : `E[${sem - 256}]`, sem, h: 17, ids,
                 points: {t: ids.map64(D.semTime), v: ids.map64(D.semValue)}});
  }
  let y = 0;
  for (const t of tracks) {
    t.y = y;
    y += t.h + 4;
  }
  tracks.height = y + 6;
  tracks.ofEngine = D.engines.map((_, e) => tracks.find(t => t.kind === "engine" && t.engine === e));
  tracks.ofQueue = D.queues.map((_, q) => tracks.find(t => t.kind === "queue" && t.queue === q));
}

function flightChanges() {
  const out = [];
  for (let x = 0; x < D.xfers; x++) out.push([D.trigger[x], D.bytes[x]], [D.seen[x], -D.bytes[x]]);
  return out;
}

// Changes in any order to values at points in time.
function steps(changes) {
  changes.sort((a, b) => a[0] - b[0]);
  const t = [], v = [];
  let at = 0;
  for (const [when, by] of changes) {
    at += by;
    if (t.length && t[t.length - 1] === when) v[v.length - 1] = at;
    else { t.push(when); v.push(at); }
  }
  return {t, v};
}

// Place of a node on the plot, relative to its track: [y, height].
function nodeBand(n) {
  if (!isXfer(n)) {
    const t = tracks.ofEngine[D.engine[n]];
    return [t.y + 2, 18];
  }
  const t = tracks.ofQueue[D.queue[xferOf(n)]];
  const k = t.at[xferOf(n)];
  return [t.y + 2 + t.lane[k] * t.lh, t.lh - 1];
}

// The y below its box, where the critical path is marked.
const nodeBase = n => isXfer(n) ? nodeBand(n).reduce((a, b) => a + b) - 2 : tracks.ofEngine[D.engine[n]].y + 18;
