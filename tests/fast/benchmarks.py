#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""bench/page.py and intervals.py: verdicts, peers that are not there, sections that are not there, and
that it makes docs/BENCHMARKS.md of docs/BENCHMARKS.json."""
import itertools
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "bench"))
import page # noqa: E402, in the folder just named
from intervals import interval # noqa: E402


def case(name, found, needed):
    if found == needed:
        print(f"ok {name}")
    else:
        print(f"not ok {name}: found {found!r}, needed {needed!r}")


def ratio(r, low=None, high=None):
    return {"ratio": r, "low": low or r, "high": high or r, "best": r, "median_s": 2 * r}


MADE_UP = {
    "command": "bench/run --rounds 1", "rounds": 1, "scale": 0.5, "base": "unpatched",
    "machine": {"cpu": "A CPU", "cores": 2, "load": [0.25], "host": "Linux 6.1 x86_64",
                "commit": "v1", "date": "2025-01-01", "qemu": {"ours": "QEMU 10"}, "peers": {}},
    "variants": {
        "unpatched": {"title": "unpatched QEMU", "target": None},
        "two": {"title": "counting", "target": 1.05},
        "wide": {"title": "a title that makes its table too wide for a page", "target": 1.05},
    },
    "ratios": {
        "hash": {"unpatched": ratio(1), "two": ratio(1.04, 1.03, 1.05), "wide": ratio(1)},
        "awk": {"unpatched": ratio(1), "two": ratio(1.04, 1.03, 1.06), "wide": ratio(1)},
        "calls": {"unpatched": ratio(1), "two": ratio(1.2, 1.1, 1.3), "wide": ratio(1)},
    },
    "pairs": [{"title": "this, to that", "target": 1,
               "workloads": {w: ratio(0.5) for w in ("hash", "awk", "calls")}}],
    "peers": {"titles": {"native": "native", "none": "valgrind", "two": "guest: counting"},
              "skipped": {"none": "found no valgrind"}, "rounds": 3, "scale": 0.1,
              "ratios": {w: {"native": ratio(1), "two": ratio(5)} for w in ("hash", "awk")},
              "pairs": [{"title": "guest, to awk only", "target": 1, "workloads": {"awk": ratio(2)}}]},
    "engine": {"commit": "v1", "base": "unpatched QEMU", "qemu": {"ours": "QEMU 10"},
               "variants": {"unpatched QEMU": {"calls": 30.0}, "counting": {"calls": 33.0}}},
    "programs": {"commit": "v1", "scale": 0.05, "base": "unpatched", "pairs": [["two", "unpatched", 1.05]],
                 "variants": {"unpatched": {"title": "unpatched QEMU", "target": None},
                              "two": {"title": "counting", "target": 1.05}},
                 "counts": {"awk": {"unpatched": 2000000000, "two": 2100000000},
                            "calls": {"unpatched": 1000000000, "two": 1060000000}}},
    "scheduling": "1 event   5\n",
}

made = list(page.markdown(MADE_UP))
row = {}
targets = dict(line[2:].split(": ", 1) for line in made if line.startswith("* ")) # of wide tables
for line in made:
    if line.startswith("| "):
        cells = [c.strip() for c in line.strip("|").split("|")]
        row.setdefault(cells[0], cells[1:])
case("verdicts", [*row["counting"], targets["counting"]],
     ["1.040 (1.03-1.05)", "1.040 (1.03-1.06)", "1.200 (1.10-1.30)",
      "<=1.05 awk undecided, calls missed"])
# By hand: logarithms of mean 0 and deviation ln 2 have a half interval of 4.303 * ln 2 / sqrt 3.
found = interval([0.5, 1, 2])
case("an interval", [round(found[k], 3) for k in ("ratio", "low", "high")], [1.0, 0.179, 5.596])
case("no interval", interval([2]), {"ratio": 2.0, "low": None, "high": None})
case("pairs", row["this, to that"], ["0.500 (0.50-0.50)"] * 3 + ["<=1.00 met"])
case("a peer", row["guest: counting"], ["5.000 (5.00-5.00)"] * 2 + [""])
case("a peer that is missing", row["valgrind"], ["-", "-", "found no valgrind"])
case("a peer without one of them", row["guest, to awk only"],
     ["-", "2.000 (2.00-2.00)", "<=1.00 awk missed"])
case("sections", [line.split("\n")[1] for line in made if line.startswith("\n## ")],
     ["## Time, to unpatched QEMU", "## Fastest run to fastest run", "## One to another",
      "## Beside the peers, to native", "## One to a peer", "## The engine's instructions",
      "## The engine's instructions, to unpatched QEMU",
      "## The programs' instructions, to unpatched QEMU", "## The perf scheduler"])
case("the engine", [" ".join(line.split()) for line in page.text(MADE_UP, "engine")
                    if line.startswith(("unpatched QEMU ", "counting "))],
     ["unpatched QEMU 30.00", "counting 33.00", "counting 1.100"])
case("the programs", [" ".join(line.split()) for line in page.text(MADE_UP, "programs")][3:],
     ["counting 1.050 1.060 <=1.05 calls missed", "counting, to unpatched QEMU 1.050 1.060 <=1.05 calls missed",
      "millions of the base 2000 1000"])
newer = MADE_UP | {"peers": MADE_UP["peers"] | {"commit": "v2", "host": "Linux 7"}}
case("a part of another commit", ["vpmu v2, on Linux 7." in "\n".join(page.markdown(r))
                                  for r in (MADE_UP, newer)], [False, True])
case("machine", [m in made for m in ("* machine: A CPU, 2 CPUs, Linux 6.1 x86_64",
                                     "* load: 0.2 before", "* ours: QEMU 10")], [True] * 3)
case("columns", [b for a, b in zip(made, made[1:]) if a.startswith("| ") and b.startswith("| ") and
                 a.count("|") != b.count("|")], [])
case("as text", [line for line in page.text(MADE_UP, "peers") if "guest:" in line],
     ["guest: counting  5.000 (5.00-5.00)  5.000 (5.00-5.00)"])

docs = os.path.join(ROOT, "docs", "BENCHMARKS")
again = subprocess.run([os.path.join(ROOT, "bench", "page.py"), docs + ".json"],
                       stdout=subprocess.PIPE, text=True, check=True).stdout
with open(docs + ".md", encoding="utf-8") as f:
    differ = [(a, b) for a, b in itertools.zip_longest(f.read().split("\n"), again.split("\n"))
              if a != b]
case("docs/BENCHMARKS.md", differ[:1], [])
