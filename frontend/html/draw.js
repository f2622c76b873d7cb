// Drawing. Everything visible is drawn anew for each frame: items wider than a pixel as boxes, the
// rest summed up per pixel, so the work depends on the screen and one pass over what is in sight.

const GUTTER = 118, RULER = 24;
const view = {t0: 0, t1: 1, top: 0, w: 0, h: 0, dpr: 1};
const state = {hover: null, selected: NONE, only: false, hits: null, range: null, cursor: null, light: -1};
const plot = $("plot"), ctx = plot.getContext("2d"), map = $("map"), mapCtx = map.getContext("2d");
let palette = [], ink = {};

function readColours() {
  const css = getComputedStyle(document.documentElement), v = n => css.getPropertyValue("--" + n).trim();
  palette = COLOURS.map(v);
  ink = Object.fromEntries(["bg", "card", "text", "mute", "line", "grid", "hit", "crit", "shade"].map(n => [n, v(n)]));
  shades = palette.flatMap(c => [0, 1, 2, 3, 4].map(k => {
    const n = parseInt(c.slice(1), 16), of = (f, a) => [n & 255, n >> 8 & 255, n >> 16].reduce((v, x) => v << 8 | Math.min(255, x * f), a);
    const f = 0.82 + 0.07 * k;
    return [of(f, 215), of(f * 0.72, 255), of(f, 60)];
  }));
  mapPicture = null;
}
let shades = []; // of each colour five: as in the image's memory, full, edge, faint

const scale = () => (view.w - GUTTER) / (view.t1 - view.t0);
const xOf = t => GUTTER + (t - view.t0) * scale();
const tOf = x => view.t0 + (x - GUTTER) / scale();
const yOf = track => RULER + track.y - view.top;

function resize() {
  view.dpr = window.devicePixelRatio || 1;
  for (const c of [plot, map]) {
    const r = c.getBoundingClientRect();
    c.width = Math.round(r.width * view.dpr);
    c.height = Math.round(r.height * view.dpr);
  }
  const r = plot.getBoundingClientRect();
  view.w = r.width;
  view.h = r.height;
}

// ---- boxes and bins of one row ----

// One row of boxes. Colours come as keys: 8 colour + opacity in sevenths.
const key = (colour, alpha) => colour * 8 + Math.round(alpha * 7);

class Row {
  constructor(y, h, labels) {
    this.y = y; this.h = h; this.labels = labels;
    this.boxes = []; this.bins = []; this.texts = []; this.keys = [];
    this.s = scale(); this.t0 = view.t0;
    this.n = Math.ceil(view.w - GUTTER);
  }
  add(a, b, k, text) {
    const x0 = (a - this.t0) * this.s, x1 = (b - this.t0) * this.s;
    if (x1 - x0 >= 1.25) {
      const lo = x0 < -2 ? -2 : x0, hi = x1 > this.n + 2 ? this.n + 2 : x1;
      if (this.boxes[k] === undefined) this.use(k);
      this.boxes[k].push(lo, hi - lo);
      if (text !== undefined && hi - lo > 26) this.texts.push(lo, hi - lo, text);
      return;
    }
    if (x0 < 0 || x0 > this.n) return;
    if (this.bins[k] === undefined) this.use(k);
    const bin = this.bins[k], px = x0 | 0;
    if (x1 > px + 1) {
      bin[px] += px + 1 - x0;
      bin[px + 1] += x1 - px - 1;
    } else {
      bin[px] += x1 - x0 + 1e-6;
    }
  }
  use(k) {
    this.keys.push(k);
    this.boxes[k] = [];
    this.bins[k] = new Float32Array(this.n + 3);
  }
  draw() {
    for (const k of this.keys) {
      const bin = this.bins[k], alpha = (k & 7) / 7;
      ctx.fillStyle = palette[k >> 3];
      for (let x = 0; x <= this.n;) { // runs of about equal density
        const q = bin[x] > 0 ? Math.min(6, 1 + (bin[x] * 6 | 0)) : 0;
        let e = x + 1;
        while (e <= this.n && (bin[e] > 0 ? Math.min(6, 1 + (bin[e] * 6 | 0)) : 0) === q) e++;
        if (q) {
          ctx.globalAlpha = alpha * (0.22 + 0.13 * q);
          ctx.fillRect(GUTTER + x, this.y, e - x, this.h);
        }
        x = e;
      }
    }
    for (const k of this.keys) {
      const list = this.boxes[k];
      ctx.fillStyle = palette[k >> 3];
      ctx.globalAlpha = (k & 7) / 7;
      for (let i = 0; i < list.length; i += 2)
        ctx.fillRect(GUTTER + list[i], this.y, list[i + 1] - (list[i + 1] > 3 ? 0.7 : 0), this.h);
    }
    ctx.globalAlpha = 1;
    if (!this.labels) return;
    ctx.fillStyle = "#fff";
    ctx.font = "10.5px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    for (let i = 0; i < this.texts.length; i += 3) {
      const x = Math.max(0, this.texts[i]), w = this.texts[i + 1] + Math.min(0, this.texts[i]);
      const fit = Math.floor((w - 7) / 7.1), s = this.texts[i + 2];
      if (fit > 2) ctx.fillText(s.length > fit ? s.slice(0, fit - 1) + "…" : s, GUTTER + x + 4, this.y + this.h / 2 + 0.5);
    }
  }
}

// Long rows seen from afar are summed up once, in buckets of the whole run; a frame then adds buckets.
const BUCKETS = 8192, MANY = 20000;
const far = n => n > MANY && (view.t1 - view.t0) / (D.end - D.begin) * BUCKETS > view.w - GUTTER;

class Coarse {
  constructor() {
    this.bins = [];
    this.s = BUCKETS / (D.end - D.begin);
  }
  add(a, b, k) {
    if (this.bins[k] === undefined) this.bins[k] = new Float64Array(BUCKETS + 2);
    const bin = this.bins[k], x0 = Math.max(0, (a - D.begin) * this.s), x1 = Math.min(BUCKETS, (b - D.begin) * this.s);
    const first = x0 | 0;
    if (x1 <= first + 1) {
      bin[first] += x1 - x0 + 1e-6;
      return;
    }
    bin[first] += first + 1 - x0;
    for (let x = first + 1; x < x1; x++) bin[x] += x1 < x + 1 ? x1 - x : 1;
  }
  into(row) {
    const per = row.s / this.s; // pixels a bucket
    this.bins.forEach((bin, k) => {
      row.use(k);
      const out = row.bins[k], x0 = (D.begin - row.t0) * row.s;
      for (let q = Math.max(0, Math.floor(-x0 / per)); q < BUCKETS; q++) {
        const x = x0 + q * per | 0;
        if (x > row.n) break;
        if (bin[q] && x >= 0) out[x] += bin[q] * per;
      }
    });
  }
}

// Rows of a track out of its buckets, which `fill` makes when they are first needed.
function drawCoarse(t, rows, fill) {
  const at = state.only ? "only" : "all";
  t.coarse = t.coarse || {};
  if (!t.coarse[at]) fill(t.coarse[at] = rows.map(() => new Coarse()));
  rows.forEach((r, k) => t.coarse[at][k].into(r));
}

// ---- tracks ----

function drawEngine(t) {
  const y = yOf(t), main = new Row(y + 2, 18, true), stall = new Row(y + 21, 6, false);
  if (far(t.ids.length)) drawCoarse(t, [main, stall], c => engineSpans(t, 0, Infinity, c[0], c[1]));
  else engineSpans(t, view.t0, view.t1, main, stall);
  stall.draw();
  main.draw();
}

function engineSpans(t, from, until, main, stall) {
  const ids = t.ids, only = state.only;
  const wait = palette.map((_, c) => key(c, only ? 0.14 : 0.55)), own = key(C.own, only ? 0.3 : 1), port = key(C.port, only ? 0.3 : 1);
  const work = [key(t.engine, 1), key(t.engine, 0.15)], warm = [key(t.engine, 0.5), key(t.engine, 0.15)], table = [key(C.table, 1), key(C.table, 0.15)];
  for (let k = search(ids.length, i => D.free[ids[i]] > from); k < ids.length; k++) {
    const n = ids[k], turn = D.turn[n];
    if (turn > until) break;
    const ready = D.ready[n], start = D.start[n], end = D.free[n] - D.warm[n], f = only && !D.onPath[n] ? 1 : 0;
    if (ready > turn) stall.add(turn, ready, wait[nodeColour(D.from[n])]);
    if (start > ready) {
      if (D.own[n] > ready) stall.add(ready, D.own[n], own);
      if (start > D.own[n]) stall.add(D.own[n], start, port);
    }
    const name = D.name[D.code[n]];
    if (end >= start) main.add(start, end, isTable[name] ? table[f] : work[f], D.names[name]);
    if (end < D.free[n]) main.add(end, D.free[n], warm[f]);
  }
}

function drawQueue(t) {
  const y = yOf(t), rows = Array.from({length: t.lanes}, (_, l) => new Row(y + 2 + l * t.lh, t.lh - 1, false));
  for (let k = search(t.ids.length, i => t.longest[i] > view.t0); k < t.ids.length; k++) {
    const x = t.ids[k];
    if (D.issue[x] > view.t1) break;
    if (D.seen[x] < view.t0) continue;
    const r = rows[t.lane[k]], c = wayColour(D.way[x]), f = state.only && !D.onPath[D.insns + x];
    const pale = key(c, f ? 0.1 : 0.3);
    r.add(D.issue[x], D.first[x], pale);
    r.add(D.first[x], D.last[x], f ? pale : key(c, 1));
    r.add(D.last[x], D.seen[x], pale);
  }
  rows.forEach(r => r.draw());
}

function drawPath(t) {
  const row = new Row(yOf(t) + 2, 16, true);
  if (far(t.ids.length)) drawCoarse(t, [row], c => pathSpans(t.ids, 0, Infinity, c[0]));
  else pathSpans(t.ids, view.t0, view.t1, row);
  row.draw();
}

function pathSpans(ids, from, until, row) {
  const keys = kindIdle.map(idle => palette.map((_, c) => key(c, idle ? 0.5 : 1)));
  for (let i = search(ids.length, i => D.pathEnd[ids[i]] > from); i < ids.length && D.pathStart[ids[i]] <= until; i++) {
    const k = ids[i];
    const kind = D.pathKind[k], who = D.pathWho[k];
    row.add(D.pathStart[k], D.pathEnd[k], keys[kind][kindColour(kind, who)], isBusy[kind] ? nodeName(who) : D.kinds[kind][0]);
  }
}

function drawRuns(t) {
  const row = new Row(yOf(t) + 2, 13, true);
  D.launches.forEach((l, k) => row.add(l.t0, l.t1, key(k % 2 ? C.sp : C.pe, l.r0 <= shownRun && shownRun < l.r1 ? 1 : 0.7), l.name));
  row.draw();
}

// The first row of a core: how long it ran; folded, its engines and transfers in narrow lanes.
function drawCore(t) {
  const own = tracks.cores[t.core], y = yOf(t);
  if (!t.lanes) return;
  if (!tracks.folded.has(t.key)) {
    const row = new Row(y + 3, t.h - 5, false);
    for (const r of D.runs) if (r.core === t.core) row.add(r.t0, r.t1, key(C.sp, 0.3));
    row.draw();
    return;
  }
  t.lanes.forEach((e, k) => {
    const main = new Row(y + 2 + k * 5, 4, false), stall = new Row(y, 0, false);
    if (far(e.ids.length)) drawCoarse(e, [main, stall], c => engineSpans(e, 0, Infinity, c[0], c[1]));
    else engineSpans(e, view.t0, view.t1, main, stall);
    main.draw();
  });
  const row = new Row(y + 2 + t.lanes.length * 5, 4, false);
  for (const x of own.xfers) if (D.last[x] > view.t0 && D.first[x] < view.t1) row.add(D.first[x], D.last[x], key(wayColour(D.way[x]), 0.8));
  row.draw();
}

// Underlines what is on the path in its own track, with threads from piece to piece.
function markPath(ids) {
  const first = search(ids.length, i => D.pathEnd[ids[i]] > view.t0), last = search(ids.length, i => D.pathStart[ids[i]] >= view.t1);
  const threads = state.only && last - first < 3000, reached = new Map();
  let bottom = 0;
  ctx.strokeStyle = ctx.fillStyle = ink.crit;
  ctx.globalAlpha = 0.9;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let i = first; i < last; i++) {
    const k = ids[i], who = D.pathWho[k];
    if (who < 0) continue;
    const x0 = Math.max(GUTTER, xOf(D.pathStart[k])), x1 = Math.min(view.w, xOf(D.pathEnd[k]));
    const y = RULER + nodeBase(who) - view.top, far = reached.get(y);
    if (threads && i > first && Math.abs(y - bottom) > 1) {
      ctx.moveTo(x0, bottom);
      ctx.lineTo(x0, y);
    }
    bottom = y;
    if (far !== undefined && x1 < far + 0.5) continue; // nothing new to see
    const from = far !== undefined && x0 < far ? far : x0;
    ctx.fillRect(from, y, Math.max(1, x1 - from), 2);
    reached.set(y, Math.max(x1, from + 1));
  }
  ctx.globalAlpha = 0.5;
  ctx.stroke();
  ctx.globalAlpha = 1;
}

function area(t, values, top, colour) {
  const y = yOf(t) + t.h - 1, h = t.h - 6;
  ctx.beginPath();
  ctx.moveTo(GUTTER, y);
  for (let x = 0; x < values.length; x++) {
    const v = y - h * Math.min(1, values[x] / top);
    ctx.lineTo(GUTTER + x, v);
    ctx.lineTo(GUTTER + x + 1, v);
  }
  ctx.lineTo(GUTTER + values.length, y);
  ctx.fillStyle = colour;
  ctx.globalAlpha = 0.75;
  ctx.fill();
  ctx.globalAlpha = 1;
  t.top = top;
  t.values = values;
}

// Adds `amount`, spread evenly over [a, b), to the pixels it covers; per unit of time.
function smear(sum, a, b, amount) {
  const s = scale(), n = sum.length - 1;
  let x0 = (a - view.t0) * s, x1 = (b - view.t0) * s;
  if (x1 <= 0 || x0 >= n || x1 <= x0) return;
  const per = amount / (x1 - x0);
  x0 = Math.max(0, x0);
  x1 = Math.min(n, x1);
  for (let x = Math.floor(x0); x < x1; x++) sum[x] += per * (Math.min(x1, x + 1) - Math.max(x0, x));
}

function drawRate(t) {
  const n = Math.ceil(view.w - GUTTER), sum = new Float64Array(n + 1), s = scale();
  if (t.kind === "rate") {
    for (const x of tracks.cores[t.core].xfers)
      if (D.last[x] > view.t0 && D.first[x] < view.t1) smear(sum, D.first[x], D.last[x], D.bytes[x]);
    for (let x = 0; x <= n; x++) sum[x] *= 1000 * s; // bytes per ps
    area(t, sum.subarray(0, n), D.rate, palette[C.load]);
  } else {
    const pe = tracks.cores[t.core].ofEngine[0].ids;
    for (let k = search(pe.length, i => D.free[pe[i]] > view.t0); k < pe.length; k++) {
      if (D.start[pe[k]] > view.t1) break;
      smear(sum, D.start[pe[k]], D.free[pe[k]], D.macs[pe[k]]);
    }
    for (let x = 0; x <= n; x++) sum[x] *= 2e5 * s / D.peak;
    area(t, sum.subarray(0, n), 100, palette[C.pe]);
  }
}

// The largest value in each pixel of a step function.
function stepMax(points) {
  const n = Math.ceil(view.w - GUTTER), out = new Float64Array(n), s = scale();
  let k = Math.max(0, search(points.t.length, i => points.t[i] > view.t0) - 1);
  let v = points.t[k] <= view.t0 ? points.v[k] : 0, at = 0;
  for (k = points.t[k] <= view.t0 ? k + 1 : k; at < n; k++) {
    const x = k < points.t.length ? Math.min(n, Math.floor((points.t[k] - view.t0) * s)) : n;
    for (; at < x; at++) out[at] = Math.max(out[at], v);
    if (x >= n || k >= points.t.length) break;
    v = points.v[k];
    out[at] = Math.max(out[at], v);
  }
  return out;
}

function drawSem(t) {
  const v = stepMax(t.points), top = Math.max(1, t.points.v.reduce((a, b) => Math.max(a, b), 0));
  area(t, v, top, ink.mute);
}

// SBUF and PSUM: address by time, one colour per writer. Drawn into an image, pixel by pixel.
let scratch = null;
function drawMemory(t) {
  const w = Math.ceil((view.w - GUTTER) * view.dpr), h = Math.round((t.h - 4) * view.dpr), s = scale() * view.dpr;
  if (!scratch || scratch.width !== w || scratch.height !== h) scratch = new ImageData(w, h);
  const px = new Uint32Array(scratch.data.buffer), per = h / t.top;
  const reached = new Int32Array(t.size / 64 + 1);
  px.fill(0);
  for (let k = search(t.ids.length, i => t.longest[i] > view.t0); k < t.ids.length; k++) {
    const l = t.ids[k], a = D.liveStart[l], b = D.liveEnd[l], lo = D.liveLo[l], by = D.liveBy[l];
    if (a > view.t1) break;
    if (b < view.t0) continue;
    const x1 = Math.min(w, Math.max(0, Math.ceil((b - view.t0) * s), Math.floor((a - view.t0) * s) + 1));
    const x0 = Math.max(reached[lo / 64], 0, Math.floor((a - view.t0) * s));
    if (x0 >= x1) continue; // its pixels are taken by what lay there before
    reached[lo / 64] = x1;
    const y0 = Math.max(0, Math.floor(h - D.liveHi[l] * per)), y1 = Math.min(h, Math.max(y0 + 1, Math.floor(h - lo * per)));
    // tiles of one writer differ a little, so that neighbours can be told apart
    const shade = shades[nodeColour(by) * 5 + (by * 7 + lo / 64) % 5];
    const full = state.only && by >= 0 && !D.onPath[by] ? shade[2] : shade[0], edge = shade[1];
    for (let y = y0; y < y1; y++) {
      const row = y * w;
      if (x1 - x0 < 4) {
        for (let x = x0; x < x1; x++) px[row + x] = full;
        continue;
      }
      px.fill(y === y0 && y1 - y0 > 3 ? edge : full, row + x0, row + x1);
      px[row + x0] = edge;
    }
  }
  ctx.putImageData(scratch, Math.round(GUTTER * view.dpr), Math.round((yOf(t) + 2) * view.dpr));
  ctx.strokeStyle = ink.line;
  ctx.lineWidth = 1;
  ctx.strokeRect(GUTTER + 0.5, yOf(t) + 1.5, view.w - GUTTER - 1, t.h - 3);
  if (t.psum) {
    ctx.globalAlpha = 0.6;
    for (let b = 1; b < 8; b++) ctx.fillRect(GUTTER, yOf(t) + 2 + (t.h - 4) * b / 8, view.w, 0.5);
    ctx.globalAlpha = 1;
  }
}

const drawTrack = {
  engine: drawEngine, queue: drawQueue, path: drawPath, runs: drawRuns, core: drawCore, macs: drawRate, rate: drawRate, sem: drawSem, memory: drawMemory,
  flight: t => area(t, stepMax(t.points), Math.max(1, t.points.v.reduce((a, b) => Math.max(a, b), 0)), palette[C.copy]),
};

// ---- axis, gutter, overlays ----

function tick(span, room) {
  const want = span / Math.max(2, room / 110), p = 10 ** Math.floor(Math.log10(want));
  return [1, 2, 5, 10].map(m => m * p).find(v => v >= want);
}

function ticks() {
  const step = tick(view.t1 - view.t0, view.w - GUTTER), out = [];
  const [size, unit] = step >= 1e8 ? [1e9, "ms"] : step >= 1e5 ? [1e6, "µs"] : step >= 100 ? [1e3, "ns"] : [1, "ps"];
  const digits = clamp(-Math.floor(Math.log10(step / size) + 1e-9), 0, 6);
  for (let t = Math.ceil((view.t0 - D.begin) / step) * step; t + D.begin < view.t1; t += step)
    out.push([xOf(t + D.begin), (t / size).toFixed(digits) + " " + unit]);
  return out;
}

function drawGrid() {
  ctx.fillStyle = ink.grid;
  for (const [x] of ticks()) ctx.fillRect(x, RULER, 1, view.h);
  if (D.launches.length < 2) return;
  ctx.fillStyle = ink.shade;
  D.launches.forEach((r, k) => {
    if (k % 2 === 0 || r.t1 < view.t0 || r.t0 > view.t1) return;
    const x0 = Math.max(GUTTER, xOf(r.t0));
    ctx.fillRect(x0, RULER, Math.min(view.w, xOf(r.t1)) - x0, view.h);
  });
}

function drawRuler() {
  ctx.fillStyle = ink.card;
  ctx.fillRect(0, 0, view.w, RULER - 1);
  ctx.fillStyle = ink.line;
  ctx.fillRect(0, RULER - 1, view.w, 1);
  ctx.fillRect(GUTTER - 1, 0, 1, view.h);
  ctx.font = "11px system-ui, sans-serif";
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  ctx.fillStyle = ink.mute;
  for (const [x, label] of ticks()) {
    if (x < GUTTER) continue;
    ctx.fillText(label, x + 4, RULER / 2);
    ctx.fillRect(x, RULER - 7, 1, 6);
  }
}

function drawGutter() {
  ctx.fillStyle = ink.card;
  ctx.fillRect(0, 0, GUTTER, view.h);
  ctx.textBaseline = "middle";
  for (const t of tracks) {
    const y = yOf(t);
    if (y + t.h < RULER || y > view.h) continue;
    ctx.fillStyle = ink.text;
    ctx.font = "600 11.5px system-ui, sans-serif";
    ctx.textAlign = "left";
    const label = t.label.length > 15 ? t.label.slice(0, 14) + "…" : t.label, mid = y + (t.h > 40 ? 12 : t.h / 2 - (t.note || t.unit ? 5 : 0));
    ctx.fillText(t.kind === "core" ? (tracks.folded.has(t.key) ? "▸ " : "▾ ") + label : label, 10, mid);
    if (t.note || t.unit) {
      ctx.fillStyle = ink.mute;
      ctx.font = "10px system-ui, sans-serif";
      ctx.fillText(t.note || (t.kind === "flight" ? "to " + bytes(t.top || 0) : "of " + Math.round(t.top || 0) + " " + t.unit), 10, mid + 12);
    }
    if (t.kind === "memory") {
      ctx.fillStyle = ink.mute;
      ctx.font = "10px system-ui, sans-serif";
      ctx.fillText("peak " + bytes(t.peak), 10, y + 26);
      ctx.textAlign = "right";
      ctx.fillText(bytes(t.top), GUTTER - 5, y + 7);
      ctx.fillText("0", GUTTER - 5, y + t.h - 7);
    }
  }
}

function outline(n, colour, wide) {
  const [ny, nh] = nodeBand(n), x0 = xOf(nodeStart(n)), x1 = Math.max(x0 + 2, xOf(nodeEnd(n)));
  if (x1 < GUTTER || x0 > view.w) return;
  ctx.strokeStyle = colour;
  ctx.lineWidth = wide;
  const a = Math.max(x0, GUTTER - 3), b = Math.min(x1, view.w + 3);
  ctx.strokeRect(a - 0.5, RULER + ny - view.top - 0.5, b - a + 1, nh + 1);
}

// Where the arrow from a node leaves: the end of an instruction, the completion of a transfer.
const leaves = n => isXfer(n) ? D.seen[xferOf(n)] : D.free[n];

function arrow(a, b, colour) {
  bend(a, leaves(a), b, isXfer(b) ? D.trigger[xferOf(b)] : D.start[b], colour, 1.6);
}

// From core to core: what let a node go on came there, and here it goes on.
function flow(by, n, colour, wide) {
  bend(by, D.start[by], n, isXfer(n) ? D.first[xferOf(n)] : D.free[n], colour, wide);
}

function bend(a, from, b, start, colour, wide) {
  const [ay, ah] = nodeBand(a), [by, bh] = nodeBand(b);
  const x0 = clamp(xOf(Math.min(from, start)), GUTTER - 40, view.w + 40), x1 = clamp(xOf(start), GUTTER - 40, view.w + 40);
  const y0 = RULER + ay - view.top + ah / 2, y1 = RULER + by - view.top + bh / 2, out = Math.max(14, (x1 - x0) / 2);
  ctx.strokeStyle = ctx.fillStyle = colour;
  ctx.lineWidth = wide;
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.bezierCurveTo(x0 + out, y0, x1 - out, y1, x1, y1);
  ctx.stroke();
  ctx.beginPath();
  ctx.moveTo(x1 + 1, y1);
  ctx.lineTo(x1 - 6, y1 - 3.5);
  ctx.lineTo(x1 - 6, y1 + 3.5);
  ctx.fill();
}

// Arrows between cores, while they can be told apart.
const FLOWS = 300;
function drawFlows() {
  let near = [];
  for (const [n, by] of D.meet) {
    if (D.start[by] > view.t1 || (isXfer(n) ? D.first[xferOf(n)] : D.free[n]) < view.t0) continue;
    near.push([by, n]);
    if (near.length > FLOWS) return 0;
  }
  ctx.globalAlpha = 0.75;
  for (const [by, n] of near) flow(by, n, ink.mute, 1.1);
  ctx.globalAlpha = 1;
  return near.length;
}

function drawHits() {
  if (!state.hits || !state.hits.length) return;
  ctx.fillStyle = ink.hit;
  const done = new Map();
  for (const n of state.hits) {
    if (nodeEnd(n) < view.t0 || nodeStart(n) > view.t1) continue;
    const [ny, nh] = nodeBand(n), x0 = Math.max(GUTTER, xOf(nodeStart(n))), x1 = Math.max(x0 + 1.5, xOf(nodeEnd(n)));
    if (x1 < (done.get(ny) || 0) + 0.5) continue;
    done.set(ny, x1);
    ctx.globalAlpha = 0.22;
    ctx.fillRect(x0, RULER + ny - view.top, x1 - x0, nh);
    ctx.globalAlpha = 1;
    ctx.fillRect(x0, RULER + ny - view.top - 2, x1 - x0, 3);
  }
}

function drawSelection() {
  const n = state.selected;
  if (n < 0) return;
  const next = nodesAfter(n);
  if (next.length < 200) for (const m of next) arrow(n, m, palette[C.dve]);
  if (D.meet.has(n)) flow(D.meet.get(n), n, ink.crit, 1.8);
  for (const m of D.met.get(n) || []) flow(n, m, palette[C.dve], 1.8);
  for (let m = n, k = 0; k < 6 && m >= 0 && D.from[m] >= 0; k++, m = D.from[m]) arrow(D.from[m], m, k ? ink.mute : ink.crit);
  outline(n, ink.text, 2);
}

function drawRange() {
  if (!state.range) return;
  const x0 = Math.max(GUTTER, xOf(Math.min(...state.range))), x1 = xOf(Math.max(...state.range));
  ctx.fillStyle = palette[C.pe];
  ctx.globalAlpha = 0.13;
  ctx.fillRect(x0, RULER, x1 - x0, view.h);
  ctx.globalAlpha = 1;
  ctx.fillStyle = ink.text;
  ctx.font = "600 11px system-ui, sans-serif";
  ctx.fillText(time(Math.abs(state.range[1] - state.range[0])), x0 + 5, RULER + 9);
}

function drawPlot() {
  ctx.setTransform(view.dpr, 0, 0, view.dpr, 0, 0);
  ctx.fillStyle = ink.bg;
  ctx.fillRect(0, 0, view.w, view.h);
  drawGrid();
  for (const t of tracks) {
    const y = yOf(t);
    if (y + t.h < RULER || y > view.h) continue;
    ctx.fillStyle = ink.shade;
    ctx.fillRect(GUTTER, y + 1, view.w, t.h);
    drawTrack[t.kind](t);
  }
  for (const own of tracks.cores) markPath(own.path.ids);
  drawFlows();
  drawHits();
  drawSelection();
  if (state.hover !== null && state.hover >= 0 && state.hover !== state.selected) outline(state.hover, ink.text, 1);
  drawRange();
  drawGutter();
  drawRuler();
  if (state.cursor !== null && state.cursor > GUTTER) {
    ctx.fillStyle = ink.mute;
    ctx.globalAlpha = 0.6;
    ctx.fillRect(state.cursor, RULER, 1, view.h);
    ctx.globalAlpha = 1;
    const label = time(tOf(state.cursor) - D.begin), w = ctx.measureText(label).width + 10;
    ctx.fillStyle = ink.text;
    ctx.fillRect(clamp(state.cursor - w / 2, GUTTER, view.w - w), 3, w, 17);
    ctx.fillStyle = ink.card;
    ctx.font = "11px system-ui, sans-serif";
    ctx.fillText(label, clamp(state.cursor - w / 2, GUTTER, view.w - w) + 5, 12);
  }
}

// The strip on top: how busy each engine and DMA is over the whole run. Made once per size.
let overview = null, mapPicture = null; // mapPicture: the strip without the window
function makeOverview() {
  const n = Math.max(1, Math.ceil(view.w - GUTTER)), s = n / (D.end - D.begin || 1);
  overview = D.engines.map(() => new Float64Array(n + 1)).concat([new Float64Array(n + 1)]);
  const put = (sum, a, b) => {
    const x0 = (a - D.begin) * s, x1 = Math.min(n, (b - D.begin) * s);
    for (let x = Math.max(0, Math.floor(x0)); x < x1; x++) sum[x] += Math.min(x1, x + 1) - Math.max(x0, x);
  };
  for (let k = 0; k < D.insns; k++) put(overview[D.engine[k]], D.start[k], D.free[k]);
  for (let x = 0; x < D.xfers; x++) put(overview[5], D.first[x], D.last[x]);
  overview.n = n;
  mapPicture = null;
}

function drawMap() {
  const h = map.height / view.dpr;
  if (!mapPicture) {
    mapPicture = document.createElement("canvas");
    mapPicture.width = map.width;
    mapPicture.height = map.height;
    paintMap(mapPicture.getContext("2d"), h);
  }
  mapCtx.setTransform(1, 0, 0, 1, 0, 0);
  mapCtx.drawImage(mapPicture, 0, 0);
  mapCtx.setTransform(view.dpr, 0, 0, view.dpr, 0, 0);
  const s = (view.w - GUTTER) / (D.end - D.begin || 1);
  const x0 = GUTTER + (view.t0 - D.begin) * s, x1 = GUTTER + (view.t1 - D.begin) * s;
  mapCtx.fillStyle = ink.bg;
  mapCtx.globalAlpha = 0.72;
  mapCtx.fillRect(GUTTER, 0, Math.max(0, x0 - GUTTER), h);
  mapCtx.fillRect(x1, 0, view.w, h);
  mapCtx.globalAlpha = 1;
  mapCtx.strokeStyle = ink.text;
  mapCtx.strokeRect(x0 + 0.5, 0.5, Math.max(2, x1 - x0 - 1), h - 1);
}

function paintMap(c, h) {
  c.setTransform(view.dpr, 0, 0, view.dpr, 0, 0);
  const rows = [0, 1, 2, 3, 5].filter(e => overview[e].some(v => v > 0));
  c.fillStyle = ink.card;
  c.fillRect(0, 0, view.w, h);
  const lane = (h - 6) / Math.max(1, rows.length);
  rows.forEach((e, k) => {
    c.fillStyle = palette[e === 5 ? C.load : e];
    for (let x = 0; x < overview.n;) {
      const v = Math.ceil(Math.min(1, overview[e][x] / D.cores) * 8);
      let end = x + 1;
      while (end < overview.n && Math.ceil(Math.min(1, overview[e][end] / D.cores) * 8) === v) end++;
      c.globalAlpha = 0.2 + 0.1 * v;
      if (v) c.fillRect(GUTTER + x, 3 + k * lane, end - x, lane - 1);
      x = end;
    }
  });
  c.globalAlpha = 1;
  c.fillStyle = ink.mute;
  c.font = "11px system-ui, sans-serif";
  c.textBaseline = "middle";
  c.fillText("whole run", 10, h / 2);
}
