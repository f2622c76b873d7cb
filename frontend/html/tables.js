// The panel below the plot: accounts, critical path, roofline, source with its costs, instructions,
// and what is selected.

let shownRun = -1; // -1: all kernels together
const tabs = ["Summary", "Selection", "Source", "Instructions"];
let tab = "Summary";

const runsShown = () => shownRun < 0 ? D.runs : [D.runs[shownRun]];
const launchesShown = () => [...new Set(runsShown().map(r => r.launch))];
const total = f => runsShown().reduce((n, r) => n + f(r), 0);
const chip = c => `<span class="chip" style="background:${palette[c]}"></span>`;
const go = n => `<a data-go="${n}">${esc(nodeWho(n))} ${esc(nodeName(n))}</a>`;

function bar(parts, all) {
  return '<div class="bar">' + parts.filter(p => p[0] > 0).map(([v, colour, title, alpha]) =>
    `<i style="width:${100 * v / all}%;background:${palette[colour]};opacity:${alpha || 1}" title="${esc(title)} ${percent(v, all)}"></i>`).join("") + "</div>";
}

function cardEngines() {
  const all = total(r => r.t1 - r.t0);
  let rows = "";
  D.engines.forEach((name, e) => {
    if (!anyCore(e)) return;
    const spent = D.kinds.map((_, k) => total(r => r.spent[e][k]));
    const waits = new Map();
    for (const r of runsShown()) {
      r.wait[e].forEach((v, k) => {
        const from = k < 5 ? D.engines[k] : k - 5 < r.queues.length ? r.queues[k - 5] : "nobody";
        waits.set(from, (waits.get(from) || 0) + v);
      });
    }
    const top = [...waits].filter(w => w[1] > all / 100).sort((a, b) => b[1] - a[1]).slice(0, 3)
      .map(w => `${esc(w[0])} ${percent(w[1], all)}`).join(", ");
    const parts = spent.map((v, k) => [v, accountColour(k, e), D.kinds[k][0],
      {waiting: 0.55, "warm-up": 0.5}[D.kinds[k][0]]]).filter((p, k) => D.kinds[k][0] !== "finished");
    rows += `<tr><td>${chip(e)}${name}</td><td class="num">${percent(spent[0] + spent[1], all)}</td><td style="width:45%">${bar(parts, all)}</td><td class="rest small">${top ? "waits for " + top : ""}</td></tr>`;
  });
  return `<div class="card wide"><h2>Where the engines' time goes</h2><table><tr><th>engine</th><th class="num">busy</th><th></th><th></th></tr>${rows}</table>
    <p class="small" style="margin:6px 0 0">busy in the engine's colour, warm-up lighter; ${chip(C.table)}table load ${chip(C.own)}own result ${chip(C.port)}shared port ${chip(C.nobody)}waiting</p></div>`;
}

function cardPath() {
  const all = total(r => r.t1 - r.t0), parts = new Map();
  for (const r of runsShown()) {
    for (let k = r.path0; k < r.path1; k++) {
      const kind = D.pathKind[k], who = D.pathWho[k], id = isBusy[kind] ? nodeWho(who) + " busy" : D.kinds[kind][0];
      if (!parts.has(id)) parts.set(id, [0, kindColour(kind, who), kind, 0]);
      const x = parts.get(id);
      x[0] += D.pathEnd[k] - D.pathStart[k];
      x[3]++;
    }
  }
  const list = [...parts].sort((a, b) => b[1][0] - a[1][0]);
  return `<div class="card"><h2>Critical path</h2>${bar(list.map(([n, p]) => [p[0], p[1], n, kindIdle[p[2]] ? 0.55 : 1]), all)}
    <table style="margin-top:7px">${list.slice(0, 9).map(([n, p]) => `<tr title="${esc(D.kinds[p[2]][2])}"><td>${chip(p[1])}${esc(n)}</td>
    <td class="num">${time(p[0])}</td><td class="num">${percent(p[0], all)}</td><td class="rest num small">${count(p[3])} steps</td></tr>`).join("")}</table></div>`;
}

function cardHints() {
  const sums = new Map(), launches = launchesShown(), all = launches.reduce((n, l) => n + l.t1 - l.t0, 0);
  for (const l of launches) {
    const best = new Map(); // what a change is worth to a launch is worth the same to each of its cores
    for (const r of D.runs.slice(l.r0, l.r1)) for (const h of r.hints) if (!best.has(h[1]) || best.get(h[1])[2] < h[2]) best.set(h[1], h);
    for (const [advice, what, saves] of best.values()) {
      if (!sums.has(what)) sums.set(what, [advice, what, 0, 0]);
      sums.get(what)[2] += saves;
      sums.get(what)[3]++;
    }
  }
  const list = [...sums.values()].sort((a, b) => b[2] - a[2]).slice(0, 3);
  if (!list.length) return "";
  return `<div class="card"><h2>What would help</h2>${list.map(([advice, what, saves, n]) =>
    `<div class="hint"><b>−${time(saves)}</b><span>${esc(advice)}<br><span class="small">${esc(what)}: ${percent(saves, all)} less${launches.length > 1 ? `, in ${n} kernels` : ""}</span></span></div>`).join("")}
    <p class="small" style="margin:0">Each figure is a run of the same binary with that made cheap.</p></div>`;
}

function cardDma() {
  const rows = D.queues.map((name, q) => {
    const s = {n: 0, bytes: 0, ndesc: 0, issue: 0, start: 0, move: 0, receipt: 0};
    for (const r of runsShown()) {
      for (let x = r.x0; x < r.x1; x++) {
        if (D.queue[x] !== q) continue;
        s.n++; s.bytes += D.bytes[x]; s.ndesc += D.ndesc[x];
        s.issue += D.issue[x] - D.trigger[x]; s.start += D.first[x] - D.issue[x];
        s.move += D.last[x] - D.first[x]; s.receipt += D.seen[x] - D.last[x];
      }
    }
    return [name, s];
  }).filter(r => r[1].n);
  if (!rows.length) return "";
  return `<div class="card wide"><h2>DMA queues (times are means)</h2><table><tr><th>queue</th><th class="num">transfers</th><th class="num">bytes</th><th class="num">per descriptor</th><th class="num">held by issue</th><th class="num">start</th><th class="num">moving</th><th class="num">receipt</th></tr>${
    rows.map(([n, s]) => `<tr><td>${esc(n)}</td><td class="num">${count(s.n)}</td><td class="num">${bytes(s.bytes)}</td><td class="num">${bytes(Math.round(s.bytes / (s.ndesc || 1)))}</td>
    <td class="num">${time(s.issue / s.n)}</td><td class="num">${time(s.start / s.n)}</td><td class="num">${time(s.move / s.n)}</td><td class="num">${time(s.receipt / s.n)}</td></tr>`).join("")}</table></div>`;
}

// Log-log: what was computed per byte that must move, and how fast. Without matrix products the
// bandwidth is what there is to reach.
function cardRoof() {
  // the cores of a launch share its roof
  const launches = launchesShown(), sum = f => launches.reduce((n, l) => n + f(l), 0);
  const flops = sum(l => l.flops), must = sum(l => l.bytes), ps = sum(l => l.t1 - l.t0), roof = sum(l => l.roof_ps);
  let moved = 0;
  for (const l of launches) for (const r of D.runs.slice(l.r0, l.r1)) for (let x = r.x0; x < r.x1; x++) if (D.way[x]) moved += D.bytes[x];
  const said = `<p>${percent(roof, ps)} of the roof: ${time(roof)} of ${time(ps)} are unavoidable; ${bytes(moved)} moved to and from HBM, ${bytes(must)} must.</p>`;
  if (!flops || !must) return `<div class="card"><h2>Roofline</h2>${said}<p class="small">No matrix products: memory is the roof. ${(must / ps * 1000).toFixed(1)} of ${D.rate * D.cores} GB/s.</p></div>`;
  const W = 330, H = 150, L = 38, B = 22, peak = D.peak * D.cores, rate = D.rate * D.cores, knee = peak / rate; // flops per ns, bytes per ns
  const ai = flops / must, used = flops / (moved || must), got = flops / ps * 1000;
  const lx0 = Math.floor(Math.log10(Math.min(ai, used, knee / 30))), lx1 = Math.ceil(Math.log10(Math.max(ai, used, knee * 12)));
  const ly1 = Math.log10(peak * 2), ly0 = Math.min(Math.log10(rate * 10 ** lx0), Math.log10(got)) - 0.15;
  const X = v => L + (W - L - 8) * (Math.log10(v) - lx0) / (lx1 - lx0), Y = v => 6 + (H - B - 6) * (ly1 - Math.log10(v)) / (ly1 - ly0);
  let grid = "";
  for (let k = lx0; k <= lx1; k++) grid += `<line x1="${X(10 ** k)}" x2="${X(10 ** k)}" y1="6" y2="${H - B}" stroke="${ink.grid}"/><text x="${X(10 ** k)}" y="${H - 9}" text-anchor="${k === lx1 ? "end" : "middle"}">${10 ** k}</text>`;
  for (let k = Math.ceil(ly0); k <= ly1; k++) grid += `<line x1="${L}" x2="${W - 8}" y1="${Y(10 ** k)}" y2="${Y(10 ** k)}" stroke="${ink.grid}"/><text x="${L - 4}" y="${Y(10 ** k) + 3}" text-anchor="end">${10 ** (k - 3)}</text>`;
  return `<div class="card"><h2>Roofline, TFLOP/s by FLOP per HBM byte</h2>${said}<svg viewBox="0 0 ${W} ${H}" width="100%" style="max-width:${W * 1.4}px">${grid}
    <path d="M${X(10 ** lx0)} ${Y(rate * 10 ** lx0)}L${X(knee)} ${Y(peak)}L${X(10 ** lx1)} ${Y(peak)}" fill="none" stroke="${ink.text}" stroke-width="1.5"/>
    <line x1="${X(ai)}" x2="${X(ai)}" y1="${Y(Math.min(peak, rate * ai))}" y2="${Y(got)}" stroke="${palette[C.pe]}" stroke-dasharray="3 3"/>
    <line x1="${X(used)}" x2="${X(ai)}" y1="${Y(got)}" y2="${Y(got)}" stroke="${palette[C.load]}" stroke-dasharray="3 3"/>
    <circle cx="${X(used)}" cy="${Y(got)}" r="3.5" fill="${palette[C.load]}"><title>per byte that was moved</title></circle>
    <circle cx="${X(ai)}" cy="${Y(got)}" r="4.5" fill="${palette[C.pe]}"><title>${(got / 1000).toFixed(2)} TFLOP/s at ${ai.toFixed(1)} FLOP per byte that must move</title></circle>
    <text x="${W - 8}" y="${Y(peak) - 4}" text-anchor="end">PE ${(peak / 1000).toFixed(1)} TFLOP/s, one MAC a cell</text></svg>
    <p class="small" style="margin:4px 0 0">${chip(C.pe)}per byte that must move ${chip(C.load)}per byte moved</p></div>`;
}

function panelSelection() {
  const r = state.range;
  if (r) {
    const a = Math.min(...r), b = Math.max(...r), cut = (x, y) => Math.max(0, Math.min(y, b) - Math.max(x, a));
    const busy = D.engines.map(() => 0), n = D.engines.map(() => 0);
    for (let k = 0; k < D.insns; k++) {
      const t = cut(D.start[k], D.free[k]);
      if (t) { busy[D.engine[k]] += t; n[D.engine[k]]++; }
    }
    let moved = 0;
    for (let x = 0; x < D.xfers; x++) moved += D.bytes[x] * cut(D.first[x], D.last[x]) / (D.last[x] - D.first[x] || 1);
    return `<div class="card"><h2>${time(a - D.begin)} to ${time(b - D.begin)}: ${time(b - a)}</h2><table>${D.engines.map((e, k) => n[k] ?
      `<tr><td>${chip(k)}${e}</td><td class="num">${time(busy[k])}</td><td class="num">${percent(busy[k], b - a)}</td><td class="rest">${count(n[k])} instructions</td></tr>` : "").join("")}
      <tr><td>${chip(C.load)}DMA</td><td class="num">${bytes(Math.round(moved))}</td><td class="num">${(moved / (b - a) * 1000).toFixed(1)} GB/s</td><td></td></tr></table></div>`;
  }
  const n = state.selected;
  if (n < 0) return '<p class="small">Click an instruction or a transfer. Shift and drag to measure a stretch of time.</p>';
  const row = (k, v) => v ? `<dt>${k}</dt><dd>${v}</dd>` : "";
  const next = nodesAfter(n).concat(D.met.get(n) || []), c = nodeCode(n);
  let when;
  if (isXfer(n)) {
    const x = xferOf(n);
    when = row("triggered", time(D.trigger[x] - D.begin)) + row("held by its queue", D.issue[x] > D.trigger[x] && time(D.issue[x] - D.trigger[x])) +
      row("start", time(D.first[x] - D.issue[x])) + row("moving", `${time(D.last[x] - D.first[x])}, ${(D.bytes[x] / (D.last[x] - D.first[x] || 1) * 1000).toFixed(1)} GB/s`) +
      row("receipt", time(D.seen[x] - D.last[x])) + row("bytes", `${count(D.bytes[x])} in ${count(D.ndesc[x])} descriptors of ${bytes(Math.round(D.bytes[x] / (D.ndesc[x] || 1)))}`) +
      row("variable", esc(D.vars[D.vari[x]])) + row("on chip", D.chip[x] >= 0 && `partition ${Math.floor(D.chip[x] / 262144)}, byte ${D.chip[x] % 262144}`) +
      row("triggered by", D.from[n] >= 0 && go(D.from[n])) + row("began with", D.meet.has(n) && go(D.meet.get(n)));
  } else {
    when = row("start", time(D.start[n] - D.begin)) + row("busy", time(D.free[n] - D.start[n]) + (D.warm[n] ? `, ${time(D.warm[n])} of it warm-up` : "")) +
      row("result seen", "+" + time(D.done[n] - D.free[n])) + row("waited", D.ready[n] > D.turn[n] && time(D.ready[n] - D.turn[n]) +
      (D.from[n] >= 0 ? ` for ${D.sem[n] < 256 ? "S" : "E"}[${D.sem[n] % 256}] = ${D.value[n]}` : "")) +
      row("released by", D.from[n] >= 0 && go(D.from[n])) + row("stood until", D.meet.has(n) && `${go(D.meet.get(n))} came`) + row("own result", D.own[n] > D.ready[n] && time(D.own[n] - D.ready[n])) +
      row("shared port", D.start[n] > D.own[n] && time(D.start[n] - D.own[n])) + row("before it", D.before[n] >= 0 && go(D.before[n]));
  }
  const p = D.places[D.place[c]];
  return `<div class="cards"><div class="card"><h2>${esc(nodeWho(n))}[${D.index[c]}] ${esc(nodeName(n))}${D.onPath[n] ? ' <span style="color:var(--crit)">on the critical path</span>' : ""}</h2>
    <dl class="facts">${row("kernel", D.launches.length > 1 && esc(D.runs[D.run[n]].name))}${row("source", p && `<a data-place="${esc(p)}">${esc(p)}</a> <code>${esc(sourceLine(p))}</code>`)}${when}</dl></div>
    <div class="card"><h2>Text</h2><p class="mono">${esc(D.names[D.name[c]])} ${esc(nodeText(n))}</p>
    ${next.length ? `<h2>${isXfer(n) ? "Releases" : "Releases or triggers"}</h2><p>${next.slice(0, 24).map(go).join(", ")}${next.length > 24 ? ` and ${next.length - 24} more` : ""}</p>` : ""}</div></div>`;
}

function sourceLine(place) {
  const cut = place.lastIndexOf(":"), text = D.sources[place.slice(0, cut)];
  return text ? (text.split("\n")[place.slice(cut + 1) - 1] || "").trim() : "";
}

// Cost of each place: engines' work, time on the critical path, how often.
function costs() {
  const cost = new Map(), of = n => {
    const p = D.place[nodeCode(n)];
    if (!cost.has(p)) cost.set(p, {work: 0, path: 0, n: 0, by: [0, 0, 0, 0, 0, 0]});
    return cost.get(p);
  };
  for (const r of runsShown()) {
    for (let k = r.i0; k < r.i1; k++) {
      const c = of(k);
      c.work += D.free[k] - D.start[k];
      c.by[D.engine[k]] += D.free[k] - D.start[k];
      c.n++;
    }
    for (let x = r.x0; x < r.x1; x++) {
      const c = of(D.insns + x);
      c.work += D.last[x] - D.first[x];
      c.by[5] += D.last[x] - D.first[x];
    }
    for (let k = r.path0; k < r.path1; k++) if (D.pathWho[k] >= 0) of(D.pathWho[k]).path += D.pathEnd[k] - D.pathStart[k];
  }
  return cost;
}

function panelSource() {
  const cost = costs(), all = total(r => r.t1 - r.t0), files = new Map();
  for (const [p, c] of cost) {
    const s = D.places[p], cut = s.lastIndexOf(":"), f = s.slice(0, cut);
    if (!s) continue;
    if (!files.has(f)) files.set(f, new Map());
    files.get(f).set(+s.slice(cut + 1), c);
  }
  const most = Math.max(1, ...[...cost.values()].map(c => c.work));
  const line = (f, n, text, c) => {
    const parts = c ? c.by.map((v, e) => [v, e === 5 ? C.load : e, e === 5 ? "DMA" : D.engines[e]]) : [];
    return `<div${c ? ` class="on" data-place="${esc(f)}:${n}"` : ""}>${c ? bar(parts, most) : "<i></i>"}<span>${c ? time(c.work, 1) : ""}</span><span${c && c.path > all / 50 ? ' style="color:var(--crit)"' : ""}>${c && c.path ? percent(c.path, all) : ""}</span><span>${n}</span><code>${esc(text)}</code></div>`;
  };
  let out = "";
  for (const [f, lines] of [...files].sort()) {
    const text = D.sources[f];
    out += `<div class="card" style="margin-bottom:10px;overflow:auto"><h2>${esc(f)}: work, share of the critical path, line</h2><div class="src">`;
    if (!text) {
      out += [...lines].sort((a, b) => a[0] - b[0]).map(([n, c]) => line(f, n, "", c)).join("");
    } else {
      const src = text.split("\n"), keep = new Set();
      for (const n of lines.keys()) for (let k = n - 3; k <= n + 2; k++) keep.add(k);
      let last = 0;
      src.forEach((s, k) => {
        if (!keep.has(k + 1)) return;
        if (last && k !== last) out += '<div><i></i><i></i><i></i><i></i><code class="small">⋯</code></div>';
        last = k + 1;
        out += line(f, k + 1, s, lines.get(k + 1));
      });
    }
    out += "</div></div>";
  }
  return out || '<p class="small">The package carries no source places.</p>';
}

function panelInsns() {
  const rows = new Map();
  for (const r of runsShown()) {
    for (let k = r.i0; k < r.i1; k++) {
      const key = D.engine[k] * 65536 + D.name[D.code[k]];
      if (!rows.has(key)) rows.set(key, {e: D.engine[k], name: nodeName(k), n: 0, work: 0, wait: 0, own: 0, first: k});
      const x = rows.get(key);
      x.n++;
      x.work += D.free[k] - D.start[k];
      x.wait += D.ready[k] - D.turn[k];
      x.own += D.start[k] - D.ready[k];
    }
  }
  const all = total(r => r.t1 - r.t0), list = [...rows.values()].sort((a, b) => b.work - a.work);
  return `<div class="card"><table><tr><th>engine</th><th>instruction</th><th class="num">count</th><th class="num">work</th><th class="num">of the run</th><th class="num">mean</th><th class="num">waited</th><th class="num">held up</th><th></th></tr>${
    list.map(x => `<tr class="go" data-find="${esc(x.name)}"><td>${chip(x.e)}${D.engines[x.e]}</td><td class="mono">${esc(x.name)}</td><td class="num">${count(x.n)}</td><td class="num">${time(x.work)}</td>
    <td class="num">${percent(x.work, all)}</td><td class="num">${time(x.work / x.n)}</td><td class="num">${time(x.wait)}</td><td class="num">${time(x.own)}</td><td class="rest"></td></tr>`).join("")}</table></div>`;
}

const panels = {
  Summary: () => `<div class="cards">${cardEngines()}${cardPath()}${cardHints()}${cardDma()}${cardRoof()}</div>`,
  Selection: panelSelection, Source: panelSource, Instructions: panelInsns,
};

function showPanel(name) {
  if (name) tab = name;
  $("tabs").innerHTML = tabs.map(t => `<button aria-selected="${t === tab}" data-tab="${t}">${t}</button>`).join("") +
    (D.runs.length > 1 ? `<select id="run"><option value="-1">${D.launches.length > 1 ? `all ${D.launches.length} kernels` : `${D.cores} cores`}</option>${D.runs.map((r, k) =>
      `<option value="${k}"${k === shownRun ? " selected" : ""}>${esc(r.label)}: ${time(r.t1 - r.t0)}</option>`).join("")}</select>` : "");
  $("panel").innerHTML = panels[tab]();
}
