"""The timeline page. Its data, decoded here anew, agrees with the report and with itself; the page
itself runs in a headless browser: what it shows, how it moves, and that it needs nobody else."""
import base64, json, re
from browser import browser, look
from util import *

MATMUL = ["kernel", "run", "matmul", "--dims", "M=512,K=512,N=512"]
ATTENTION = ["kernel", "run", "attention", "--dims", "B=1,Sq=512,Bkv=1,Skv=512,d=64", "--target", "trn1"]


class Column:
    def __init__(self, text):
        self.a, self.i = base64.b64decode(text), 0

    def u(self):
        v = shift = 0
        while True:
            b = self.a[self.i]
            self.i += 1
            v |= (b & 127) << shift
            shift += 7
            if b < 128:
                return v

    def z(self):
        v = self.u()
        return v >> 1 ^ -(v & 1)

    def more(self):
        return self.i < len(self.a)

    def source(self, own):
        kind = self.u()
        return (kind, own - self.z()) if kind else (0, None)


def data_of(page):
    text = open(page, encoding="utf-8").read()
    m = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    return text, json.loads(m.group(1))


def decode(what, d, r):
    """Every column of one run, read to its end; sums that must agree."""
    spent, span = r["spent"], r["end"] - r["begin"]
    busy, control = [k for k, x in enumerate(d["kinds"]) if x[0] in ("busy", "warm-up", "table load")], []
    c, costs = Column(r["insn"]), r["costs"]
    at, index, work, idle, turn, sources = 0, [0] * 5, [0] * 5, [0] * 5, [0] * 5, []
    for k in range(r["insns"]):
        e = c.u()
        index[e] += c.z()
        at += c.u()
        _, port, cost = c.u(), c.u(), c.u()
        dur, tail = (costs[2 * cost - 2], costs[2 * cost - 1]) if cost else (c.u(), c.u())
        warm = c.u()
        if e == 0:
            c.u()
        kind, n = c.source(k)
        if kind:
            c.u(), c.z()
            sources.append((kind, n, at))
        check_quiet(0 <= index[e] < r["streams"][e] and warm <= dur, f"{what}: instruction {k}")
        idle[e] += max(0, at - port - max(turn[e], r["begin"]))  # from the end of the one before
        turn[e] = at + dur
        work[e] += dur
    check(not c.more(), f"{what}: bytes left in insn")
    for e in range(5):
        # data, warm-up, tables and control together are all the time its instructions took
        own = sum(v for v, k in zip(spent[e], d["kinds"]) if k[0] in ("busy", "warm-up", "table load", "control", "other core"))
        check(abs(own - work[e]) <= r["begin"] + 20000, f"{what}: {d['engines'][e]} worked {work[e]}, accounted {own}")
        check(sum(spent[e]) == span, f"{what}: {d['engines'][e]}'s kinds of time are {sum(spent[e])} of {span}")
        waited, own = (spent[e][[k[0] for k in d["kinds"]].index(n)] for n in ("waiting", "own result"))
        check(waited == sum(r["wait"][e]), f"{what}: waits {waited}, by source {sum(r['wait'][e])}")
        # what follows a drain stands until the results before it are complete: its own engine's time
        check(waited + own == idle[e], f"{what}: waits {waited} and {own} for own results, seen {idle[e]}")
    check(all(n < (r["insns"] if kind == 1 else r["xfers"]) for kind, n, _ in sources), f"{what}: sources")
    c, last, kinds = Column(r["path"]), [0, 0], {}
    for _ in range(r["npath"]):
        kind, dur = c.u(), c.u()
        s = c.u()
        if s:
            last[s - 1] -= c.z()
            check_quiet(0 <= last[s - 1] < (r["insns"] if s == 1 else r["xfers"]), f"{what}: path")
        kinds[kind] = kinds.get(kind, 0) + dur
    check(not c.more() and sum(kinds.values()) == span, f"{what}: the path covers {sum(kinds.values())} of {span}")
    c, total = Column(r["xfer"]), 0
    for _ in range(r["xfers"]):
        row = [c.u() for _ in range(12)]
        total += row[8]
        check_quiet(row[0] < r["insns"] and row[1] < len(r["queues"]) and row[10] < len(d["vars"]), f"{what}: {row}")
    check(not c.more(), f"{what}: bytes left in xfer")
    c, words = Column(r["text"]), 0
    for _ in range(sum(r["streams"])):
        end = c.u()
        end += c.i
        while c.i < end:
            v = c.u()
            words += 1
            check_quiet(v % 2 or v // 2 < len(d["words"]), f"{what}: word {v}")
        check_quiet(c.i == end, f"{what}: text")
    check(not c.more() and words > r["insns"], f"{what}: text")
    c = Column(r["link"])
    while c.more():
        kind, own, core, insn = [c.u() for _ in range(4)]
        by = [x for x in d["runs"] if x["offset"] == r["offset"] and x["core"] == core]
        check_quiet(kind in (1, 2) and own < (r["insns"] if kind == 1 else r["xfers"]), f"{what}: link of {own}")
        check_quiet(len(by) == 1 and core != r["core"] and insn < by[0]["insns"], f"{what}: link to {insn} of core {core}")
        links.append((r["core"], core))
    c, n, peak = Column(r["live"]), 0, 0
    while c.more():
        psum, lo, wide, *_ = [c.u() for _ in range(5)]
        if c.u():
            c.z()
        n += 1
        check_quiet(64 * (lo + wide) <= r["psum" if psum else "sbuf"], f"{what}: bytes in use")
    check(n == r["nlive"], f"{what}: {n} lives")
    return total


links = []  # (core that went on, core that came) of the last pages


def check_quiet(ok, what):
    if not ok:
        check(False, what)


def page_of(args, what):
    page, report = f"{TMP}/{what}.html", f"{TMP}/{what}.json"
    r = copse(*args, "--html", page, "--report", report)
    check(r.returncode == 0, f"{what}: {r.stderr.decode()}")
    again = f"{TMP}/again.html"
    copse(*args, "--html", again)
    check(open(page, "rb").read() == open(again, "rb").read(), f"{what}: two runs, two pages")
    text, d = data_of(page)
    rep = json.load(open(report))
    check("<" not in re.search(r'id="data">(.*?)</script>', text, re.S).group(1), f"{what}: data could end its element")
    outside = re.findall(r'(?:https?:|//[a-z]+\.|\bsrc=|\bhref=|@import|url\()', re.sub(r'id="data">.*?</script>', "", text, flags=re.S))
    check(not outside, f"{what}: the page refers to {outside}")
    moved = sum(decode(f"{what} {r['name']}", d, r) for r in d["runs"])
    check(sum(r["insns"] for r in d["runs"]) == rep["instructions"], f"{what}: instructions")
    spans = {}  # the cores of a launch have one time
    for r in d["runs"]:
        a, b = spans.setdefault(r["offset"], (r["begin"], r["end"]))
        spans[r["offset"]] = min(a, r["begin"]), max(b, r["end"])
        check(r["base"] == min(x["begin"] for x in d["runs"] if x["offset"] == r["offset"]), f"{what}: base of {r['name']}")
    check(abs(sum(b - a for a, b in spans.values()) / 1e3 - rep["time_ns"]) < 1, f"{what}: time")
    check(moved > 0, f"{what}: bytes moved")
    for r in d["runs"]:
        check(r["offset"] >= 0 and all(h[2] > 0 for h in r["hints"]), f"{what}: {r['name']}")
    return page, d


matmul, data = page_of(MATMUL, "matmul")
check(any(name.startswith("leaves/matmul") for name in data["sources"]), f"source text {list(data['sources'])}")
attention, _ = page_of(ATTENTION, "attention")
copse("compile", f"{ROOT}/tests/data/small_encoder.onnx", "-o", f"{TMP}/enc", *DIMS)
model, _ = page_of(["sim", f"{TMP}/enc"], "model")
name = data_of(model)[1]["runs"][3]["name"]
copse("sim", f"{TMP}/enc", "--kernel", name, "--html", f"{TMP}/one.html")
_, one = data_of(f"{TMP}/one.html")
check(one["runs"] and {r["name"] for r in one["runs"]} == {name} and one["runs"][0]["offset"] == 0, "--kernel shows one")
# A source that tries to leave its place in the page stays inside.
with open(f"{TMP}/odd.cps", "w") as f:
    f.write("// </script><script>document.title='out'</script>\n"
            "op odd(x[M, N]) -> y[M, N] { y = x + 1.0; }\n"
            "leaf odd_rows for odd on trn2 { where M <= P : \"one tile\"; cases (M: 8, N: 8);\n"
            "    sbuf t[M, N] <- x;\n    y <- t + 1.0; }\n")
odd, d = page_of(["kernel", "run", "odd", "--dims", "M=8,N=64", "-I", f"{TMP}/odd.cps"], "odd")
check(any("document.title" in t for t in d["sources"].values()), "the source is in the page")

# Two cores, and ranks that exchange: their runs begin together, links say who let whom go on.
links.clear()
PAIR = ["--dims", "B=2,Sq=512,Bkv=2,Skv=512,d=64", "--attr", "causal=true", "--logical-nc-config", "2"]
pair, d = page_of(["kernel", "run", "attention", *PAIR], "pair")
check([(r["core"], r["cores"], r["offset"]) for r in d["runs"]] == [(0, 2, 0), (1, 2, 0)], f"runs of a pair: {[r['name'] for r in d['runs']]}")
check(not links, f"a pair without a barrier: {links}")
with open(f"{TMP}/flip.cps", "w") as f:
    f.write("op flip(x[T, N]) -> y[T, N] { y = x; }\n"
            "leaf flip_cores for flip on trn2 {\n    cases (T: 256, N: 64);\n    hbm t[T, N]: bf16;\n"
            "    for a in tiles(T, P) across cores {\n        sbuf u[a, N] <- x[a, :];\n        t[a, :] <- u;\n    }\n    barrier();\n"
            "    for b in tiles(N, 32) across cores {\n        for a in tiles(T, P) {\n            sbuf v[a, b] <- t[a, b];\n"
            "            y[a, b] <- v;\n        }\n    }\n}\n")
flip, d = page_of(["kernel", "run", "flip", "-I", f"{TMP}/flip.cps", "--dims", "T=256,N=64", "--logical-nc-config", "2"], "flip")
check(len(links) == 1 and links[0] in ((0, 1), (1, 0)), f"one barrier: {links}")
meet = [k[0] for k in d["kinds"]].index("other core")
check(all(r["spent"][4][meet] > 0 for r in d["runs"]), "both stand at the barrier")

check(browser() is not None, f"no browser: one of {', '.join(__import__('browser').NAMES)}")
if browser():
    check(look(odd, "return document.title") == "odd_rows on trn2", "title of the odd page")
    for page, engines in ((matmul, {"pe", "sp"}), (attention, {"pe", "act", "dve", "sp"}), (model, {"pe", "act", "pool", "dve", "sp"})):
        v = look(page, """
            const D = copse.D, out = {n: D.insns, runs: D.runs.length, labels: copse.tracks.map(t => t.label)};
            const c = document.getElementById('plot').getContext('2d'), w = copse.view.w, h = copse.view.h;
            const px = c.getImageData(0, 0, w, h).data, seen = new Set();
            for (let k = 0; k < px.length; k += 4) seen.add(px[k] << 16 | px[k + 1] << 8 | px[k + 2]);
            out.colours = seen.size;
            out.painted = copse.painted;
            copse.showPanel('Summary');
            out.summary = document.getElementById('panel').innerText;
            copse.showPanel('Source'); out.source = document.getElementById('panel').innerText;
            copse.showPanel('Instructions'); out.insns = document.getElementById('panel').innerText;
            return out;""")
        check(isinstance(v, dict), f"{page}: {v}")
        if not isinstance(v, dict):
            continue
        check(engines <= set(v["labels"]) and {"critical path", "SBUF", "DMA rate"} <= set(v["labels"]), f"tracks {v['labels']}")
        check(("kernels" in v["labels"]) == (v["runs"] > 1), "a row of kernels when there are several")
        check(v["colours"] > 12, f"{v['colours']} colours: nothing is drawn")
        check(v["painted"] > 0, "painted")
        for word in ("Critical path", "Where the engines", "What would help", "DMA queues", "Roofline"):
            check(word in v["summary"], f"no card '{word}'")
        check("MATMUL" in v["insns"] and ".cps" in v["source"], "source and instructions")
    # cores side by side: each its tracks, folding, arrows between them
    v = look(flip, '''
        const D = copse.D, V = copse.view, T = copse.tracks, plot = document.getElementById('plot'), r = plot.getBoundingClientRect(), out = {};
        const click = y => { for (const type of ['pointerdown', 'pointerup']) plot.dispatchEvent(new PointerEvent(type,
            {clientX: r.left + 30, clientY: r.top + y, bubbles: true, cancelable: true, pointerId: 1})); };
        const press = k => document.dispatchEvent(new KeyboardEvent('keydown', {key: k, bubbles: true, cancelable: true}));
        const list = () => T.map(t => (t.kind === 'core' ? '' : t.core) + ' ' + t.label), pixels = () => {
            const c = plot.getContext('2d').getImageData(0, 0, V.w, V.h).data; let n = 0; for (const v of c) n = (n * 31 + v) >>> 0; return n; };
        plot.setPointerCapture = () => {};
        out.title = document.title; out.facts = document.getElementById('facts').innerText;
        out.cores = D.cores; out.runs = D.runs.map(r => [r.t0, r.t1, r.i0, r.i1]); out.begin = D.begin; out.end = D.end;
        out.open = list(); out.flows = copse.drawFlows();
        const [n, by] = [...D.meet][0];
        out.meet = [n, by].map(k => [D.names[D.name[D.code[k]]], D.runs[D.run[k]].core, D.start[k], D.free[k]]);
        copse.drawPlot(); const before = pixels(); copse.drawPlot(); out.stable = pixels() === before;
        const head = T.find(t => t.kind === 'core' && t.key === 1);
        click(24 + head.y + 5 - V.top); out.folded = list(); copse.drawPlot(); out.changed = pixels() !== before;
        const node = D.runs[1].i0, at = copse.nodeBand(node); out.inHead = at[0] >= head.y && at[0] + at[1] <= head.y + head.h;
        out.flowsFolded = copse.drawFlows();
        copse.select(node, true); out.unfolded = list();
        copse.select(n, true); copse.drawPlot(); out.panel = document.getElementById('panel').innerText;
        const found = copse.nodeAt(118 + (D.start[n] + 1 - V.t0) / (V.t1 - V.t0) * (V.w - 118), 24 + copse.nodeBand(n)[0] - V.top + 5); out.hit = found.node - n;
        press('g'); out.own = list().filter(s => s.startsWith(D.runs[D.run[n]].core + ' ')).length; press('g');
        press('Escape'); press('g'); out.first = list(); press('g');
        const sems = T.find(t => t.key === 'semaphores 0'); click(24 + sems.y + 5 - V.top); out.sems = list().filter(s => s.startsWith('0 S[')).length;
        document.getElementById('tabs').querySelector('select').value = '1';
        document.getElementById('tabs').querySelector('select').dispatchEvent(new Event('change', {bubbles: true}));
        out.one = document.getElementById('panel').innerText;
        return out;''')
    check(isinstance(v, dict), f"{v}")
    if isinstance(v, dict):
        check(v["cores"] == 2 and v["title"] == "flip_cores on trn2" and "2 cores" in v["facts"], f"{v['title']}: {v['facts']}")
        check(all(a < v["end"] * 0.05 and b > v["end"] * 0.95 for a, b, *_ in v["runs"]), f"one axis: {v['runs']}")
        for core in (0, 1):
            check({f" core {core}", f"{core} critical path", f"{core} sp", f"{core} q_sp_in", f"{core} SBUF"} <= set(v["open"]), f"{v['open']}")
        check(v["open"].index(" core 1") > v["open"].index("0 SBUF") and not any("S[" in s for s in v["open"]), f"{v['open']}")
        check(v["flows"] == v["flowsFolded"] == 1, f"arrows: {v['flows']}, {v['flowsFolded']}")
        (a, ca, sa, fa), (b, cb, sb, fb) = v["meet"]
        check(a == b == "PSEUDO_CORE_BARRIER" and {ca, cb} == {0, 1} and sa <= sb and fa == fb, f"the later one lets the earlier one go on: {v['meet']}")
        check(v["stable"] and v["changed"] and v["inHead"], f"folding: {v['stable'], v['changed'], v['inHead']}")
        check(" core 1" in v["folded"] and not any(s.startswith("1 ") for s in v["folded"]) and v["unfolded"] == v["open"], f"{v['folded']}")
        check("stood until" in v["panel"] and f"core {cb} sp PSEUDO_CORE_BARRIER came" in v["panel"] and v["hit"] == 0, v["panel"])
        check(v["own"] == 0 and "0 sp" in v["first"] and "1 sp" not in v["first"] and v["sems"] > 3, f"{v['own']}, {v['first']}, {v['sems']}")
        check("Critical path" in v["one"], "the account of core 1")
    v = look(pair, "copse.drawPlot(); return [copse.D.cores, copse.tracks.filter(t => t.label === 'pe').length, copse.drawFlows()]")
    check(v == [2, 2, 0], f"attention on a pair: {v}")
    # moving, finding, selecting
    v = look(matmul, """
        const D = copse.D, V = copse.view, plot = document.getElementById('plot'), r = plot.getBoundingClientRect(), out = {};
        const span = () => V.t1 - V.t0, at = (x, y, type, more) => plot.dispatchEvent(new (type === 'wheel' ? WheelEvent : PointerEvent)(type,
            {clientX: r.left + x, clientY: r.top + y, bubbles: true, cancelable: true, pointerId: 1, ...more}));
        const press = k => document.dispatchEvent(new KeyboardEvent('keydown', {key: k, bubbles: true, cancelable: true}));
        plot.setPointerCapture = () => {};
        out.whole = span();
        at(700, 60, 'wheel', {deltaY: -100}); out.wheel = span();
        press('w'); out.w = span(); press('s'); out.s = span();
        let t = V.t0; press('d'); out.d = V.t0 - t; press('a'); out.a = V.t0 - t;
        t = V.t0; at(700, 60, 'pointerdown'); at(600, 60, 'pointermove'); at(600, 60, 'pointerup'); out.drag = V.t0 - t;
        press('0'); out.fit = span() === out.whole;
        const n = Array.from(D.engine).findIndex((e, k) => D.names[D.name[D.code[k]]] === 'MATMUL' && D.from[k] >= 0 || D.from[k] >= 0 && e === 0);
        copse.select(n, true);
        const [y, h] = copse.nodeBand(n), x = 118 + (D.start[n] + Math.max(1, (D.free[n] - D.start[n]) / 2) - V.t0) / span() * (V.w - 118);
        out.hit = copse.nodeAt(x, 24 + y - V.top + h / 2).node - n;
        copse.drawPlot();
        out.panel = document.getElementById('panel').innerText;
        out.after = copse.nodesAfter(D.from[n]).includes(n);
        press('b'); out.back = copse.state.selected === D.from[n];
        press('c'); out.only = copse.state.only; copse.drawPlot(); press('c');
        copse.find('matmul'); out.found = copse.state.hits.length;
        out.names = Array.from(D.code, c => D.names[D.name[c]]).filter(s => s === 'MATMUL').length;
        copse.find('no such thing'); out.none = copse.state.hits.length;
        press('Escape'); out.cleared = copse.state.selected === -1 && copse.state.hits === null;
        document.getElementById('theme').click(); out.dark = document.documentElement.classList.contains('dark'); copse.drawPlot();
        copse.fit(); at(300, 72, 'pointermove'); out.tip = document.getElementById('tip').innerText;
        at(300, 60, 'pointerdown', {shiftKey: true}); at(500, 60, 'pointermove', {shiftKey: true}); at(500, 60, 'pointerup', {shiftKey: true});
        out.range = document.getElementById('panel').innerText;
        return out;""")
    check(isinstance(v, dict), f"{v}")
    if isinstance(v, dict):
        check(v["wheel"] < v["whole"] and v["w"] < v["wheel"] and abs(v["s"] - v["wheel"]) < 1, f"zoom {v['whole'], v['wheel'], v['w'], v['s']}")
        check(v["d"] > 0 and abs(v["a"]) < 1 and v["drag"] > 0 and v["fit"], f"pan {v['d'], v['a'], v['drag'], v['fit']}")
        check(v["hit"] == 0 and v["back"] and v["after"], f"selection {v['hit'], v['back'], v['after']}")
        check("released by" in v["panel"] and "wait S[" in v["panel"] and "leaves/matmul.cps:" in v["panel"], v["panel"])
        check(v["found"] >= v["names"] > 0 and v["none"] == 0 and v["cleared"] and v["only"], f"search {v['found'], v['names'], v['none']}")
        check(v["dark"] and "GB/s" in v["range"], f"range {v['range']}")
        check("waited" in v["tip"] and "on pe" in v["tip"], f"tip {v['tip']}")
done()
