#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 240
#
# vpmu timeline: the page of a small trace, as Chromium draws it. A host's event takes
# a counter away from the guest between 2 and 6 ms; that has to be in the picture, to
# scale, and in words; and so after a zoom, under the pointer, and in the dark. A long name
# leaves the page within its window, on a phone and on a large screen.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/case.sh
. tests/case.sh
build=${VPMU_BUILD:-$PWD/build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# As tools/trace.c writes it, an event a line. Times in us.
cat >"$work/trace" <<'END'
{"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","ts":0.000,"pid":1,"tid":0,"name":"process_name","args":{"name":"cpu0 PMU"}},
{"ph":"M","ts":0.000,"pid":1,"tid":1,"name":"thread_name","args":{"name":"pmc 0"}},
{"ph":"M","ts":0.000,"pid":1,"tid":2,"name":"thread_name","args":{"name":"pmc 1"}},
{"ph":"M","ts":0.000,"pid":1,"tid":17,"name":"thread_name","args":{"name":"guest pmc 1, not counting"}},
{"ph":"M","ts":0.000,"pid":1,"tid":99,"name":"thread_name","args":{"name":"interrupts, losses"}},
{"ph":"M","ts":0.000,"pid":1,"tid":100,"name":"thread_name","args":{"name":"exits"}},
{"ph":"X","ts":0.000,"dur":10000.000,"tid":1,"pid":1,"name":"guest pmc 0","args":{"count":7}},
{"ph":"X","ts":0.000,"dur":2000.000,"tid":2,"pid":1,"name":"guest pmc 1","args":{"count":8}},
{"ph":"X","ts":2000.000,"dur":4000.000,"tid":2,"pid":1,"name":"host #1 </script><b>:pinned","args":{"count":9}},
{"ph":"X","ts":6000.000,"dur":4000.000,"tid":2,"pid":1,"name":"guest pmc 1","args":{}},
{"ph":"i","ts":2000.000,"pid":1,"s":"t","tid":99,"name":"pmc 1 lost","args":{"enabled":1,"running":1}},
{"ph":"i","ts":6000.000,"pid":1,"s":"t","tid":99,"name":"pmc 1 found","args":{"enabled":5,"running":1}},
{"ph":"i","ts":7000.000,"pid":1,"s":"t","tid":99,"name":"PMI","args":{"global_status":"0x2"}},
{"ph":"i","ts":3000.000,"pid":1,"s":"t","tid":99,"name":"rotation","args":{}},
{"ph":"i","ts":1000.000,"pid":1,"s":"t","tid":100,"name":"wrmsr IA32_PMC0","args":{"register":"0xc1","value":"0x0"}},
{"ph":"i","ts":1000.001,"pid":1,"s":"t","tid":100,"name":"wrmsr IA32_PMC0","args":{"register":"0xc1","value":"0x1"}},
{"ph":"i","ts":8000.000,"pid":1,"s":"t","tid":100,"name":"rdpmc","args":{"register":"0x0","value":"0x1"}},
{"ph":"C","ts":8000.000,"pid":1,"name":"exits","args":{"rdmsr":0,"wrmsr":2,"rdpmc":1,"hypercall":0}},
{"ph":"X","ts":2000.000,"dur":4000.000,"tid":17,"pid":1,"name":"lost","args":{"enabled":4,"running":0}}
]}
END

"$build/vpmu" timeline "$work/trace" -o "$work/page.html" 2>"$work/errors"
case_of written "$([ -s "$work/page.html" ] || head -n 1 "$work/errors")"
# Its own script and style only: nothing is loaded.
case_of self-contained "$(sed 's,http://www.w3.org/2000/svg,,' "$work/page.html" |
	grep -oE -m 1 '(src|href)=|https?://.*|@import|url\(' )"

refused() { # NAME WORDS FILE
	local out status=0
	out=$("$build/vpmu" timeline "$3" -o "$work/none" 2>&1) || status=$?
	case_of "refuses $1" "$([ $status = 125 ] && [[ $out == *"$2"* ]] || echo "status $status: $out")"
}
sed 6s/pid/dip/ "$work/trace" >"$work/bad"
refused 'an event without pid' 'bad:6: found an event without a number' "$work/bad"
refused 'another file' 'Makefile:1: found something else, needed a trace' Makefile
refused 'no file' 'vpmu run --trace FILE writes one' "$work/nothing"

# After the page's own script: what a hand does, and colours as attributes.
{
	sed '/^<\/body>/,$d' "$work/page.html"
	cat <<-'END'
		<script>
		document.querySelectorAll('[data-row="pmc 1"] rect')[1].dispatchEvent(
			new PointerEvent("pointermove", { bubbles: true, clientX: 500, clientY: 60 }));
		const style = getComputedStyle, swatch = put(document.body, "svg", {});
		document.body.dataset.ground = style(document.body).backgroundColor;
		document.body.dataset.words = JSON.stringify([...document.querySelectorAll("svg g rect + text")]
			.map(t => [t.textContent, style(t).fill, style(t.previousSibling).fill])
			.concat([...document.querySelectorAll("h1, b, #help, .cpu, .dim")].map(e =>
				[e.textContent, style(e)[e instanceof SVGElement ? "fill" : "color"],
				 style(document.body).backgroundColor]))
			.concat(["guest", "lost", "filtered", "none", "host0", "host1", "host2", "host3"].map(c =>
				[c, style(put(swatch, "text", { class: ink(c) })).fill,
				 style(put(swatch, "rect", { class: c })).fill])));
		swatch.remove();
		</script></body></html>
	END
} >"$work/hands.html"
if ! tests/dom "$work/hands.html" >"$work/whole"; then
	echo "skip drawn: $(cat "$work/whole")"
	exit 0
fi
tests/dom "$work/hands.html" --blink-settings=preferredColorScheme=0 >"$work/dark"
tests/dom "$work/page.html#1,3" >"$work/zoomed"

# Chromium's window has 500 pixels at least, so that each size is a frame's. The page says
# what is not in its place: bars in their rows, words in their bars, the tip in the window.
sed 's/:pinned/:cpu,event=0xd1,umask=0x08,name=one_that_is_much_longer_than_others_and_has_no_blank\/:pinned/' \
	"$work/trace" >"$work/long"
"$build/vpmu" timeline "$work/long" | sed '/^<\/body>/,$d' >"$work/fits.html"
cat >>"$work/fits.html" <<'END'
<script>
const box = e => e.getBoundingClientRect(), all = document.documentElement, chart = box(svg), wrong = [];
const within = (what, e, left, right, top, bottom) => {
	const b = box(e);
	if (b.left < left || b.right > right || b.top < top || b.bottom > bottom)
		wrong.push(`${what} ${e.textContent}`);
};
for (const row of document.querySelectorAll("[data-row]")) {
	const [title, ...words] = row.querySelectorAll("text");
	const top = chart.top - 14 + Number(title.getAttribute("y"));
	within("title", title, chart.left, chart.left + LEFT, top, top + ROW);
	for (const bar of row.querySelectorAll("rect"))
		within("bar", bar, chart.left + LEFT, chart.right, top, top + ROW);
	for (const text of words) {
		const b = box(text.previousSibling);
		within("words", text, b.left, b.right, b.top, b.bottom);
	}
}
for (const x of [0, innerWidth]) {
	document.querySelectorAll('[data-row="pmc 1"] rect')[1].dispatchEvent(
		new PointerEvent("pointermove", { bubbles: true, clientX: x, clientY: innerHeight }));
	within("tip", tip, 0, innerWidth, 0, innerHeight);
}
parent.document.getElementById(`${innerWidth}x${innerHeight}`).dataset.found = JSON.stringify(
	{ ground: getComputedStyle(document.body).backgroundColor, bars: document.querySelectorAll("g rect").length,
	  overflow: all.scrollWidth - all.clientWidth, wrong });
</script></body></html>
END
for size in 400x800 1200x700 1920x1080; do
	echo "<iframe id=$size src=fits.html width=${size%x*} height=${size#*x} style='border: 0'></iframe>"
done >"$work/frames.html"
for colour in dark light; do # Chromium's numbers: 0, 1
	tests/dom "$work/frames.html" --allow-file-access-from-files \
		"--blink-settings=preferredColorScheme=$([ $colour = dark ]; echo $?)" >"$work/frames-$colour"
done
python3 - "$work" <<'END'
import json, re, sys
from html.parser import HTMLParser

class Page(HTMLParser):
    """Rows with their rectangles; texts by the id of what they stand in."""
    def __init__(self, path):
        super().__init__()
        self.rows, self.row, self.ids, self.id, self.ground = {}, None, {}, None, None
        self.shades = []
        self.feed(open(path).read())
    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        if "data-row" in a:
            self.row = self.rows.setdefault(a["data-row"], [])
        if tag == "rect" and a["class"] == "shade":
            self.shades.append((float(a["x"]), float(a["width"])))
        elif tag == "rect":
            self.row.append((a["data-name"], float(a["x"]), float(a["width"]), a["class"],
                             int(a["data-n"])))
        if "id" in a:
            self.id = a["id"]
        if tag == "body":
            self.ground, self.words = a.get("data-ground"), json.loads(a.get("data-words", "[]"))
    def handle_data(self, text):
        if self.id:
            self.ids[self.id] = self.ids.get(self.id, "") + text

class Frames(HTMLParser):
    """The frames' findings, by their sizes."""
    def __init__(self, path):
        super().__init__()
        self.found = {}
        self.feed(open(path).read())
    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        if tag == "iframe":
            self.found[a["id"]] = json.loads(a.get("data-found", "null"))

def light(colour):
    """A colour's relative luminance, as WCAG 2 defines it."""
    parts = [int(c) / 255 for c in re.findall(r"\d+", colour)[:3]]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b

def faint(page):
    """What of a page's words has less contrast to its ground than WCAG 2's 4.5 to 1."""
    found = []
    for text, *colours in page.words:
        a, b = sorted(map(light, colours))
        if (b + 0.05) / (a + 0.05) < 4.5:
            found.append((text, *colours))
    return found

def case(name, why=""):
    print(f"not ok {name}: {why}" if why else f"ok {name}")

def same(name, found, wanted):
    case(name, "" if found == wanted else f"found {found}, not {wanted}")

work = sys.argv[1]
p = Page(f"{work}/whole")
HOST = "host #1 </script><b>:pinned"
same("rows", list(p.rows), ["cpu0", "pmc 0", "pmc 1", "guest pmc 1, not counting", "losses", "PMIs",
                            "rotations", "exits: wrmsr", "exits: rdpmc"])
same("owners", [(r[0], r[3]) for r in p.rows["pmc 1"]],
     [("guest pmc 1", "guest"), (HOST, "host0"), ("guest pmc 1", "guest")])
left, whole = p.rows["pmc 0"][0][1:3]
part = lambda t: round(left + whole * t, 1)
same("to scale", [(round(r[1], 1), round(r[2], 1)) for r in p.rows["pmc 1"]],
     [(part(0), round(whole * .2, 1)), (part(.2), round(whole * .4, 1)),
      (part(.6), round(whole * .4, 1))])
same("a loss", [(r[0], round(r[1], 1), round(r[2], 1), r[3])
                for r in p.rows["guest pmc 1, not counting"]],
     [("lost", part(.2), round(whole * .4, 1), "lost")])
same("red behind the counters", [(round(x, 1), round(w, 1)) for x, w in p.shades],
     [(part(.2), round(whole * .4, 1))])
same("moments", {k: [(r[0], int(r[1]), r[3]) for r in p.rows[k]] for k in ("losses", "PMIs", "rotations")},
     {"losses": [("pmc 1 lost", int(left + whole * .2), "lost"),
                 ("pmc 1 found", int(left + whole * .6), "found")],
      "PMIs": [("PMI", int(left + whole * .7), "moment")],
      "rotations": [("rotation", int(left + whole * .3), "moment")]})
same("exits by kind", {k: [(r[0], r[4]) for r in p.rows[k]] for k in p.rows if k.startswith("exits")},
     {"exits: wrmsr": [("wrmsr IA32_PMC0", 2)], "exits: rdpmc": [("rdpmc", 1)]})
same("the cause in words", re.sub(r"\s+", " ", p.ids["verdicts"]).strip(),
     "cpu0: guest pmc 1 was enabled and did not count for 4 ms (lost to others), 1 time. "
     f"Meanwhile {HOST} had pmc 1 for 100 % of it.")
same("under the pointer", p.ids["tip"].strip(), f"pmc 1: {HOST}\n2 ms to 6 ms, 4 ms\ncount: 9")

z = Page(f"{work}/zoomed")
same("zoomed", [(r[0], round(r[1], 1), round(r[2], 1)) for r in z.rows["pmc 1"]],
     [("guest pmc 1", round(left, 1), round(whole / 2, 1)),
      (HOST, part(.5), round(whole / 2, 1))])
same("zoomed moments", [len(z.rows[k]) for k in ("losses", "PMIs", "exits: wrmsr")], [1, 0, 1])
dark = Page(f"{work}/dark")
same("light", p.ground, "rgb(255, 255, 255)")
same("dark", dark.ground, "rgb(21, 23, 26)")
for name, ground in (("light", p.ground), ("dark", dark.ground)):
    frames = Frames(f"{work}/frames-{name}")
    for size in ("400x800", "1200x700", "1920x1080"):
        same(f"{size} in the {name}", frames.found.get(size),
             {"ground": ground, "bars": 12, "overflow": 0, "wrong": []})
for page, name in ((p, "light"), (dark, "dark")):
    same(f"words in the {name}", {"lost", "guest pmc 1", HOST, "cpu0"} - {w[0] for w in page.words}, set())
    same(f"words are legible in the {name}", faint(page), [])
END
