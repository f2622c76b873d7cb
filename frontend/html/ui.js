// Interaction: wheel, drag and keys move the window; the pointer shows, a click selects, text finds.

let pending = false;
function redraw() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => {
    pending = false;
    drawPlot();
    drawMap();
  });
}

function setWindow(t0, t1) {
  const whole = D.end - D.begin, span = clamp(t1 - t0, 200, Math.max(200, whole * 1.1));
  const mid = clamp((t0 + t1) / 2, D.begin - whole * 0.05 + span / 2, D.end + whole * 0.05 - span / 2);
  view.t0 = mid - span / 2;
  view.t1 = mid + span / 2;
  redraw();
}

function zoom(factor, x = (view.w + GUTTER) / 2) {
  const t = tOf(Math.max(x, GUTTER));
  setWindow(t - (t - view.t0) * factor, t + (view.t1 - t) * factor);
}

const pan = part => setWindow(view.t0 + (view.t1 - view.t0) * part, view.t1 + (view.t1 - view.t0) * part);
const fit = () => { const pad = (D.end - D.begin) * 0.01; setWindow(D.begin - pad, D.end + pad); };

function scrollTo(top) {
  view.top = clamp(top, 0, Math.max(0, tracks.height + RULER - view.h));
  redraw();
}

// ---- what is under the pointer ----

function nodeAt(px, py) {
  const t = tracks.find(k => py >= yOf(k) && py < yOf(k) + k.h);
  if (!t || px < GUTTER) return {track: t, node: NONE};
  const at = tOf(px), slack = 2 / scale();
  let best = NONE, far = slack;
  const near = (n, a, b) => {
    const d = at < a ? a - at : at > b ? at - b : 0;
    if (d <= far && (d < far || best === NONE || d === 0)) { best = n; far = d; }
  };
  if (t.kind === "engine") {
    const k0 = search(t.ids.length, i => D.free[t.ids[i]] >= at - slack);
    for (let k = k0; k < t.ids.length && D.turn[t.ids[k]] <= at + slack; k++) {
      const n = t.ids[k];
      if (py > yOf(t) + 20) near(n, D.turn[n], D.start[n]); else near(n, D.start[n], D.free[n]);
    }
  } else if (t.kind === "queue") {
    const lane = clamp(Math.floor((py - yOf(t) - 2) / t.lh), 0, t.lanes - 1);
    for (let k = search(t.ids.length, i => t.longest[i] >= at - slack); k < t.ids.length && D.issue[t.ids[k]] <= at + slack; k++)
      if (t.lane[k] === lane) near(D.insns + t.ids[k], D.issue[t.ids[k]], D.seen[t.ids[k]]);
  } else if (t.kind === "path") {
    const k = t.ids[search(t.ids.length, i => D.pathEnd[t.ids[i]] >= at)];
    if (k !== undefined && D.pathStart[k] <= at) return {track: t, node: D.pathWho[k], piece: k};
  } else if (t.kind === "runs") {
    return {track: t, node: NONE, run: D.launches.findIndex(l => l.t0 <= at && at < l.t1)};
  } else if (t.kind === "memory") {
    const byte = (1 - (py - yOf(t) - 2) / (t.h - 4)) * t.top;
    let hit = NONE;
    for (let k = search(t.ids.length, i => t.longest[i] >= at); k < t.ids.length && D.liveStart[t.ids[k]] <= at; k++) {
      const l = t.ids[k];
      if (D.liveEnd[l] >= at && D.liveLo[l] <= byte && byte < D.liveHi[l]) hit = l;
    }
    return {track: t, node: hit < 0 ? NONE : D.liveBy[hit], live: hit};
  } else if (t.kind === "sem") {
    const k = search(t.points.t.length, i => t.points.t[i] > at) - 1;
    return {track: t, node: k >= 0 ? D.semBy[t.ids[k]] : NONE, sem: k >= 0 ? t.points.v[k] : 0};
  }
  return {track: t, node: best};
}

function tipText(h, px) {
  const n = h.node, t = h.track;
  let out = "";
  if (t.kind === "rate" || t.kind === "macs" || t.kind === "flight") {
    const v = t.values && t.values[Math.floor(px - GUTTER)];
    if (v === undefined) return "";
    return `<b>${esc(t.label)}</b> ${t.kind === "flight" ? bytes(v) : v.toFixed(1) + " " + t.unit}`;
  }
  if (t.kind === "runs" && h.run >= 0) return `<b>${esc(D.launches[h.run].name)}</b> ${time(D.launches[h.run].t1 - D.launches[h.run].t0)}`;
  if (t.kind === "core") {
    const runs = D.runs.filter(r => r.core === t.core), n = runs.reduce((a, r) => a + r.insns, 0);
    const what = t.lanes ? `<b>core ${t.core}</b> ${count(n)} instructions` : `<b>core ${t.core}</b> ${tracks.cores[t.core].sems.length} semaphores`;
    return `${what}; a click ${tracks.folded.has(t.key) ? "unfolds" : "folds"} the tracks`;
  }
  if (h.piece !== undefined) {
    const kind = D.kinds[D.pathKind[h.piece]];
    out += `<b style="color:var(--crit)">critical path: ${esc(kind[0])}</b> ${time(D.pathEnd[h.piece] - D.pathStart[h.piece])}<br><span class="small">${esc(kind[2])}</span><br>`;
  }
  if (h.live >= 0) out += `<b>${t.label} bytes ${D.liveLo[h.live]} to ${D.liveHi[h.live]}</b> in use for ${time(D.liveEnd[h.live] - D.liveStart[h.live])}, written by<br>`;
  if (h.sem !== undefined) out += `<b>${t.label} = ${h.sem}</b>, last changed by<br>`;
  if (n < 0) return out;
  const place = nodePlace(n);
  out += `<b>${esc(nodeName(n))}</b> on ${esc(nodeWho(n))} at ${time(nodeStart(n) - D.begin)}, ${time(nodeEnd(n) - nodeStart(n))}`;
  if (place) out += `<br>${esc(place)} <code>${esc(sourceLine(place))}</code>`;
  if (isXfer(n)) {
    const x = xferOf(n);
    out += `<br>${bytes(D.bytes[x])} in ${count(D.ndesc[x])} descriptors${D.vari[x] ? " of " + esc(D.vars[D.vari[x]]) : ""}, ${(D.bytes[x] / (D.last[x] - D.first[x] || 1) * 1000).toFixed(1)} GB/s`;
    if (D.issue[x] > D.trigger[x]) out += `<br>held ${time(D.issue[x] - D.trigger[x])} until its queue issued it`;
  } else {
    if (D.ready[n] > D.turn[n]) out += `<br>waited ${time(D.ready[n] - D.turn[n])}${D.from[n] >= 0 ? ` for ${esc(nodeWho(D.from[n]))}: ${esc(nodeName(D.from[n]))}` : ""}`;
    if (D.own[n] > D.ready[n]) out += `<br>held ${time(D.own[n] - D.ready[n])} by a result of its own engine`;
    if (D.start[n] > D.own[n]) out += `<br>held ${time(D.start[n] - D.own[n])} by a shared port`;
    if (D.warm[n]) out += `<br>${time(D.warm[n])} of it is warm-up`;
    if (D.meet.has(n)) out += `<br>stood until ${esc(nodeWho(D.meet.get(n)))} came to it`;
  }
  return out + `<span class="mono">${esc(nodeText(n))}</span>`;
}

function hover(e) {
  const h = nodeAt(e.offsetX, e.offsetY), tip = $("tip"), text = h.track && e.offsetY > RULER && e.offsetX > GUTTER ? tipText(h, e.offsetX) : "";
  state.cursor = e.offsetX;
  state.hover = h.node;
  tip.hidden = !text;
  if (text) {
    tip.innerHTML = text;
    const w = tip.offsetWidth, hgt = tip.offsetHeight;
    tip.style.left = clamp(e.clientX + 14, 4, innerWidth - w - 6) + "px";
    tip.style.top = (e.clientY + 18 + hgt < innerHeight ? e.clientY + 18 : e.clientY - hgt - 12) + "px";
  }
  redraw();
}

function fold(key) {
  if (!tracks.folded.delete(key)) tracks.folded.add(key);
  arrange();
  scrollTo(view.top);
}

function select(n, show) {
  if (n >= 0 && show && tracks.folded.has(coreOf(n))) fold(coreOf(n));
  state.selected = n;
  state.range = null;
  if (n >= 0 && show) {
    const a = nodeStart(n), b = nodeEnd(n), span = view.t1 - view.t0;
    if (a < view.t0 || b > view.t1 || b - a < span / 400) {
      const wide = Math.max(Math.min(span, (b - a) * 60), (b - a) * 1.4, 2000);
      setWindow((a + b) / 2 - wide / 2, (a + b) / 2 + wide / 2);
    }
    const [y, h] = nodeBand(n);
    if (y - view.top < 0 || y + h - view.top > view.h - RULER) scrollTo(y - view.h / 2);
  }
  showPanel(n >= 0 ? "Selection" : tab);
  redraw();
}

// ---- search ----

function find(text) {
  const q = text.trim().toLowerCase();
  state.hits = null;
  state.light = -1;
  if (q) {
    const has = list => list.map(s => s.toLowerCase().includes(q));
    const names = has(D.names), places = has(D.places), words = has(D.words), code = new Uint8Array(D.name.length);
    const exact = D.places.some(p => p.toLowerCase() === q);
    for (let c = 0; c < code.length; c++) {
      code[c] = (exact ? D.places[D.place[c]].toLowerCase() === q : names[D.name[c]] || places[D.place[c]]) ? 1 : 0;
    }
    needText();
    for (const r of D.runs) {
      if (exact || !words.includes(true)) break;
      for (let c = r.c0; c < r.c1; c++)
        for (r.words.i = D.textAt[c]; !code[c] && r.words.i < D.textEnd[c];) {
          const v = r.words.u();
          if (v % 2 === 0 && words[v / 2]) code[c] = 1;
        }
    }
    state.hits = [];
    for (let k = 0; k < D.insns; k++) if (code[D.code[k]]) state.hits.push(k);
    for (let x = 0; x < D.xfers; x++) {
      const n = D.insns + x;
      if (code[nodeCode(n)] || D.vars[D.vari[x]].toLowerCase() === q) state.hits.push(n);
    }
    state.hits.sort((a, b) => nodeStart(a) - nodeStart(b));
  }
  $("found").textContent = state.hits ? count(state.hits.length) : "";
  redraw();
}

function nextHit(by) {
  const n = state.hits ? state.hits.length : 0;
  if (!n) return;
  state.light = (state.light + by + n) % n;
  select(state.hits[state.light], true);
  $("found").textContent = `${count(state.light + 1)} of ${count(n)}`;
}

// ---- mouse ----

let drag = null;
plot.addEventListener("pointerdown", e => {
  plot.setPointerCapture(e.pointerId);
  drag = {x: e.offsetX, y: e.offsetY, t0: view.t0, t1: view.t1, top: view.top, moved: false, range: e.shiftKey};
  plot.classList.add("drag");
  plot.focus();
});
plot.addEventListener("pointermove", e => {
  if (!drag) return hover(e);
  const dx = e.offsetX - drag.x, dy = e.offsetY - drag.y;
  if (!drag.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
  drag.moved = true;
  $("tip").hidden = true;
  if (drag.range) {
    state.range = [tOf(drag.x), tOf(e.offsetX)];
    redraw();
    return;
  }
  const t = dx / scale();
  setWindow(drag.t0 - t, drag.t1 - t);
  scrollTo(drag.top - dy);
});
plot.addEventListener("pointerup", e => {
  plot.classList.remove("drag");
  const h = nodeAt(e.offsetX, e.offsetY);
  if (drag && !drag.moved && h.run >= 0) showRun(D.launches[h.run].r0);
  else if (drag && !drag.moved && h.track && h.track.kind === "core") fold(h.track.key);
  else if (drag && !drag.moved) select(h.node, false);
  else if (drag && drag.range) { state.selected = NONE; showPanel("Selection"); }
  drag = null;
});
plot.addEventListener("dblclick", e => {
  const n = nodeAt(e.offsetX, e.offsetY).node;
  if (n < 0) return;
  const a = nodeStart(n), b = nodeEnd(n), d = Math.max(b - a, 500);
  setWindow(a - d, b + d);
});
plot.addEventListener("pointerleave", () => {
  state.cursor = state.hover = null;
  $("tip").hidden = true;
  redraw();
});
plot.addEventListener("wheel", e => {
  e.preventDefault();
  if (e.offsetX < GUTTER) return scrollTo(view.top + e.deltaY);
  if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) return pan((e.deltaX || e.deltaY) / view.w);
  zoom(Math.exp(clamp(e.deltaY, -120, 120) / 300), e.offsetX);
}, {passive: false});

map.addEventListener("pointerdown", e => {
  map.setPointerCapture(e.pointerId);
  const move = q => {
    const t = D.begin + (q.offsetX - GUTTER) / (view.w - GUTTER) * (D.end - D.begin), half = (view.t1 - view.t0) / 2;
    setWindow(t - half, t + half);
  };
  move(e);
  map.onpointermove = move;
  map.onpointerup = () => { map.onpointermove = null; };
});

$("split").addEventListener("pointerdown", e => {
  $("split").setPointerCapture(e.pointerId);
  const from = e.clientY, h = $("panel").offsetHeight;
  $("split").onpointermove = q => {
    $("panel").style.height = clamp(h + from - q.clientY, 0, innerHeight - 220) + "px";
    layout();
  };
  $("split").onpointerup = () => { $("split").onpointermove = null; };
});

document.addEventListener("click", e => {
  const a = e.target.closest("[data-go],[data-tab],[data-find],[data-place]");
  if (!a) return;
  if (a.dataset.go) select(+a.dataset.go, true);
  else if (a.dataset.tab) showPanel(a.dataset.tab);
  else {
    $("find").value = a.dataset.find || a.dataset.place;
    find($("find").value);
  }
});
function showRun(k) {
  const r = D.runs[shownRun = k];
  if (r) setWindow(r.t0, r.t1); else fit();
  showPanel(tab === "Selection" ? "Summary" : tab);
}
$("tabs").addEventListener("change", e => showRun(+e.target.value));

// ---- keys ----

const KEYS = [
  ["w s", "zoom in, out (also the wheel)"], ["a d", "left, right (also drag; shift and wheel)"], ["0", "whole run"],
  ["f", "zoom to the selection"], ["← →", "previous, next instruction of the engine"], ["b", "who released the selection"],
  ["c", "critical path only"], ["g", "fold or unfold a core's tracks (also a click on its name): the selection's, or all but the first"],
  ["/", "find; enter for the next, shift and enter for the one before"], ["esc", "clear"],
  ["shift, drag", "measure a stretch of time"], ["double click", "zoom to what is under the pointer"],
];

function neighbour(by) {
  const n = state.selected;
  if (n < 0) return;
  const ids = (isXfer(n) ? queueTrack(n) : engineTrack(n)).ids;
  const base = isXfer(n) ? D.insns : 0, k = search(ids.length, i => ids[i] >= n - base) + by;
  if (k >= 0 && k < ids.length) select(ids[k] + base, true);
}

function toggleOnly() {
  state.only = !state.only;
  $("path").setAttribute("aria-pressed", state.only);
  redraw();
}

function clearAll() {
  state.selected = NONE;
  state.range = state.hits = null;
  $("find").value = $("found").textContent = "";
  $("tip").hidden = true;
  showPanel(tab === "Selection" ? "Summary" : tab);
  redraw();
}

const actions = {
  w: () => zoom(0.7, state.cursor || undefined), s: () => zoom(1 / 0.7, state.cursor || undefined),
  a: () => pan(-0.15), d: () => pan(0.15), "+": () => zoom(0.7), "-": () => zoom(1 / 0.7), 0: fit, Home: fit,
  ArrowLeft: () => state.selected >= 0 ? neighbour(-1) : pan(-0.15), ArrowRight: () => state.selected >= 0 ? neighbour(1) : pan(0.15),
  ArrowUp: () => scrollTo(view.top - 40), ArrowDown: () => scrollTo(view.top + 40),
  f: () => {
    const n = state.selected;
    if (n >= 0) { const d = Math.max(nodeEnd(n) - nodeStart(n), 500); setWindow(nodeStart(n) - d, nodeEnd(n) + d); }
  },
  b: () => { if (state.selected >= 0 && D.from[state.selected] >= 0) select(D.from[state.selected], true); },
  g: () => {
    if (D.cores < 2) return;
    if (state.selected >= 0) return fold(coreOf(state.selected));
    const open = tracks.cores.some((_, c) => c && !tracks.folded.has(c));
    tracks.cores.forEach((_, c) => { if (c) { if (open) tracks.folded.add(c); else tracks.folded.delete(c); } });
    arrange();
    scrollTo(view.top);
  },
  c: toggleOnly, "/": () => $("find").focus(), "?": () => $("help").showModal(), Escape: clearAll,
  n: () => nextHit(1), N: () => nextHit(-1),
};

document.addEventListener("keydown", e => {
  if (e.target.id === "find") {
    if (e.key === "Enter") nextHit(e.shiftKey ? -1 : 1);
    if (e.key === "Escape") { clearAll(); plot.focus(); }
    return;
  }
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.tagName === "SELECT") return;
  const run = actions[e.key] || actions[e.key.toLowerCase()];
  if (!run) return;
  e.preventDefault();
  run();
});

$("find").addEventListener("input", e => find(e.target.value));
$("path").onclick = toggleOnly;
$("fit").onclick = fit;
$("keys").onclick = () => $("help").showModal();
$("help").onclick = () => $("help").close();
$("theme").onclick = () => {
  document.documentElement.classList.toggle("dark");
  readColours();
  legend();
  showPanel();
  redraw();
};

// ---- start ----

function legend() {
  const used = new Set(D.engines.map((_, e) => anyCore(e) ? e : -1));
  for (const w of D.way) used.add(wayColour(w));
  const names = {load: "load", store: "store", copy: "copy", own: "own result", port: "shared port", table: "table load"};
  const chips = COLOURS.map((c, k) => k < 5 ? [k, c] : [k, names[c]]).filter(([k, n]) => n && (k < 5 ? used.has(k) : k > C.copy || used.has(k)));
  $("legend").innerHTML = chips.map(([k, n]) => `<span>${chip(k)}${n}</span>`).join("") +
    `<span><span class="chip" style="background:var(--crit)"></span>critical path</span><span>lower lane: who is waited for</span>` +
    (D.meet.size ? "<span>→ lets another core go on</span>" : "");
}

// A canvas of a new size is empty, so it is drawn at once.
function layout() {
  const r = plot.getBoundingClientRect();
  if (r.width === view.w && r.height === view.h && view.dpr === (window.devicePixelRatio || 1)) return;
  resize();
  makeOverview();
  scrollTo(view.top);
  drawPlot();
  drawMap();
}

function start() {
  if (matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.classList.add("dark");
  readColours();
  makeTracks();
  const ps = D.end - D.begin, roof = D.launches.reduce((n, l) => n + l.roof_ps, 0), one = D.launches.length === 1 && D.launches[0];
  tracks.cores.forEach((own, core) => {
    const busy = D.engines.map(() => 0);
    for (const r of D.runs) if (r.core === core) r.spent.forEach((s, e) => { busy[e] += s[0] + s[1]; });
    D.engines.forEach((_, e) => { if (own.ofEngine[e]) own.ofEngine[e].note = percent(busy[e], ps) + " busy"; });
  });
  const name = one ? one.name : D.launches.length + " kernels";
  $("title").textContent = name;
  document.title = name + " on " + D.target;
  $("facts").innerHTML = `${esc(D.target)}, <b>${time(ps)}</b>, <b>${percent(roof, ps)}</b> of the roof${one && one.bound ? ` (${esc(one.bound)})` : ""}${D.cores > 1 ? `, ${D.cores} cores` : ""}, ${count(D.insns)} instructions, ${count(D.xfers)} transfers`;
  $("help").innerHTML = "<table>" + KEYS.map(([k, t]) => `<tr><td>${k.split(" ").map(x => `<kbd>${esc(x)}</kbd>`).join(" ")}</td><td>${esc(t)}</td></tr>`).join("") + "</table>";
  resize();
  makeOverview();
  fit();
  drawPlot();
  drawMap();
  window.copse.painted = performance.now();
  setTimeout(() => { legend(); showPanel(); }, 0);
  new ResizeObserver(layout).observe($("stage"));
}

// For scripts that look at a page, tests among them.
window.copse = {D, view, state, tracks, setWindow, zoom, pan, fit, select, find, nextHit, nodeAt, nodeBand, nodesAfter,
                drawPlot, drawMap, drawTrack, drawFlows, markPath, showPanel, toggleOnly, fold, painted: 0};
start();
})();
