// What is drawn where: one track per row of the plot, top to bottom, with its height and colours.

const COLOURS = ["pe", "act", "pool", "dve", "sp", "load", "store", "copy", "own", "port", "table", "nobody", "crit"];
const C = Object.fromEntries(COLOURS.map((c, k) => [c, k]));

const wayColour = way => way === 1 ? C.load : way === 2 ? C.store : C.copy;
const nodeColour = n => n < 0 ? C.nobody : isXfer(n) ? wayColour(D.way[xferOf(n)]) : D.engine[n];

// Colour of a piece of the critical path: whose work it is; overheads by kind.
const kindFixed = D.kinds.map(k => ({"own result": C.own, "shared port": C.port, "table load": C.table, semaphore: C.nobody, "other core": C.nobody})[k[0]]);
const kindColour = (kind, who) => kindFixed[kind] === undefined ? nodeColour(who) : kindFixed[kind];
const kindIdle = D.kinds.map(k => !["busy", "DMA moving", "control", "table load"].includes(k[0]));
const isBusy = D.kinds.map(k => k[0] === "busy");
const isTable = D.names.map(n => n.includes("TABLE") || n.includes("ACT_FUNC_SET"));

// Colours of an engine's account, by kind of time.
const accountColour = (kind, engine) =>
  ({busy: C[D.engines[engine]], "warm-up": C[D.engines[engine]], "table load": C.table, control: C.sp,
    "own result": C.own, "shared port": C.port, waiting: C.nobody, "other core": C.nobody})[D.kinds[kind][0]];

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

// All numbers of the ranges that `of` gives for the core's runs, in order of time.
function ranges(core, of) {
  const out = [];
  for (const r of D.runs) {
    if (r.core !== core) continue;
    for (let [k, end] = of(r); k < end; k++) out.push(k);
  }
  return Ids.from(out);
}

// The tracks of one core, in `own`: by engine and queue in own.ofEngine and own.ofQueue.
function coreTracks(core) {
  const own = {list: [], sems: [], ofEngine: [], ofQueue: []}, some = D.cores > 1, add = t => { own.list.push(t); t.core = core; return t; };
  const insns = some ? k => D.runs[D.run[k]].core === core : () => true, xfers = some ? x => D.runs[D.run[D.insns + x]].core === core : () => true;
  own.xfers = pick(D.xfers, xfers);
  own.path = add({kind: "path", label: "critical path", h: 20, ids: ranges(core, r => [r.path0, r.path1])});
  D.engines.forEach((name, e) => {
    const ids = pick(D.insns, k => D.engine[k] === e && insns(k));
    if (ids.length) own.ofEngine[e] = add({kind: "engine", label: name, engine: e, ids, h: 28});
  });
  D.queues.forEach((name, q) => {
    const ids = pick(D.xfers, k => D.queue[k] === q && xfers(k));
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
    own.ofQueue[q] = add({kind: "queue", label: name, queue: q, ids, at, lane, longest, lanes: until.length,
                          lh, h: Math.max(18, until.length * lh + 5)});
  });
  if (own.ofEngine[0] && own.ofEngine[0].ids.some(k => D.macs[k] > 0)) add({kind: "macs", label: "PE use", unit: "% of peak", h: 30});
  if (own.xfers.length) {
    add({kind: "rate", label: "DMA rate", unit: "GB/s", h: 30});
    add({kind: "flight", label: "in flight", unit: "bytes", h: 30, points: steps(flightChanges(own.xfers))});
  }
  const lives = ranges(core, r => [r.l0, r.l1]), runs = D.runs.filter(r => r.core === core);
  for (const psum of [0, 1]) {
    const ids = lives.filter(k => D.livePsum[k] === psum);
    if (!ids.length) continue;
    const longest = new Float64Array(ids.length);
    let top = 0;
    ids.forEach((l, k) => {
      longest[k] = Math.max(k ? longest[k - 1] : 0, D.liveEnd[l]);
      top = Math.max(top, D.liveHi[l]);
    });
    const size = D.runs[0][psum ? "psum" : "sbuf"], peak = Math.max(...runs.map(r => psum ? r.psum_peak : r.sbuf_peak));
    add({kind: "memory", label: psum ? "PSUM" : "SBUF", psum, ids, longest, size, peak,
         top: psum ? size : Math.min(size, Math.ceil(top * 1.05 / 1024) * 1024), h: psum ? 66 : 116});
  }
  const changes = ranges(core, r => [r.s0, r.s1]), sems = new Set(Array.from(changes, k => D.semNo[k]));
  for (const sem of [...sems].sort((a, b) => a - b)) {
    const ids = changes.filter(k => D.semNo[k] === sem);
    own.sems.push(add({kind: "sem", label: sem < 256 ? `S[${sem}]` : `E[${sem - 256}]`, sem, h: 17, ids,
         points: {t: ids.map64(D.semTime), v: ids.map64(D.semValue)}}));
  }
  if (!some) return own;
  own.head = {kind: "core", label: `core ${core}`, core, key: core, lanes: own.ofEngine.filter(t => t)};
  own.semHead = {kind: "core", label: "semaphores", core, key: `semaphores ${core}`, h: 18};
  return own;
}

function makeTracks() {
  tracks.cores = Array.from({length: D.cores}, (_, core) => coreTracks(core));
  tracks.folded = new Set(); // of several cores the semaphores, so that the engines stand side by side
  if (D.cores > 1) tracks.cores.forEach(own => tracks.folded.add(own.semHead.key));
  arrange();
}

// What is in sight: of a folded core its first row alone, which then shows its engines.
function arrange() {
  tracks.length = 0;
  if (D.launches.length > 1) tracks.push({kind: "runs", label: "kernels", h: 17});
  tracks.cores.forEach((own, core) => {
    const folded = tracks.folded.has(core);
    if (own.head) {
      own.head.h = folded ? Math.max(18, own.head.lanes.length * 5 + 9) : 18;
      tracks.push(own.head);
    }
    if (folded) return;
    tracks.push(...own.list.filter(t => t.kind !== "sem"));
    if (own.semHead && own.sems.length) tracks.push(own.semHead);
    if (!own.semHead || !tracks.folded.has(own.semHead.key)) tracks.push(...own.sems);
  });
  let y = 0;
  for (const t of tracks) {
    t.y = y;
    y += t.h + 4;
  }
  tracks.height = y + 6;
}

const engineTrack = n => tracks.cores[coreOf(n)].ofEngine[D.engine[n]];
const queueTrack = n => tracks.cores[coreOf(n)].ofQueue[D.queue[xferOf(n)]];
const anyCore = e => tracks.cores.some(own => own.ofEngine[e]);

function flightChanges(xfers) {
  const out = [];
  for (const x of xfers) out.push([D.trigger[x], D.bytes[x]], [D.seen[x], -D.bytes[x]]);
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
  const own = tracks.cores[coreOf(n)];
  if (tracks.folded.has(coreOf(n))) {
    const lane = isXfer(n) ? own.head.lanes.length : own.head.lanes.indexOf(engineTrack(n));
    return [own.head.y + 2 + lane * 5, 4];
  }
  if (!isXfer(n)) return [engineTrack(n).y + 2, 18];
  const t = queueTrack(n), k = t.at[xferOf(n)];
  return [t.y + 2 + t.lane[k] * t.lh, t.lh - 1];
}

// The y below its box, where the critical path is marked.
const nodeBase = n => nodeBand(n).reduce((a, b) => a + b) - 2;
