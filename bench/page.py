#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The measurements of bench/run, as tables: `bench/page.py RESULT.json` prints the page
that docs/BENCHMARKS.md is, and bench/run the same tables as plain text.

A table is a title, a line that says how to read it, a header and rows of strings; one
without a header is text.
"""
import json
import sys
import textwrap

sys.dont_write_bytecode = True
from intervals import judge # noqa: E402, beside this file

SHARED_TARGET = 1.15 # a context switch with 6 counters, shared to direct
PEBS_TARGET = 1.05


def judge_all(by_workload, target):
    if target is None:
        return ""
    words = {w: judge(r, target) for w, r in by_workload.items()}
    missed = ", ".join(f"{w} {word}" for w, word in words.items() if word != "met")
    return f"<={target:.2f} {missed or 'met'}"


def spread(r):
    return f"{r['ratio']:.3f}" + (f" ({r['low']:.2f}-{r['high']:.2f})" if r["low"] else "")


def of_part(report, name):
    """The commit of a part and, if it has one, the host, where they are not the page's."""
    part = report.get(name, {})
    if part.get("commit", report["machine"]["commit"]) == report["machine"]["commit"]:
        return ""
    return f" vpmu {part['commit']}" + (f", on {part['host']}." if "host" in part else ".")


# ---- the sections


def ratios(report):
    result, variants, base = report["ratios"], report["variants"], report["base"]
    yield (f"Time, to {variants[base]['title']}",
           "Means of the ratios by round, each to the base of the same round: 1.05 is 5 % more. In "
           "brackets is the interval that has the true ratio with a probability of 95 %; a target "
           "in it is undecided. Times are CPU time of the vCPU, unless a row says elapsed. "
           "\"Unpatched again\" is a second guest of the same QEMU: its distance from 1 shows the "
           "precision of the others.",
           ["", *result, "target"],
           [[x["title"], *(spread(r[v]) for r in result.values()),
             judge_all({w: r[v] for w, r in result.items()}, x["target"])]
            for v, x in variants.items()])
    yield ("Fastest run to fastest run",
           "The same for each variant's fastest run in all rounds. The last row has the time of "
           "the base.",
           ["", *result],
           [[x["title"], *(f"{r[v]['best']:.3f}" for r in result.values())]
            for v, x in variants.items()] +
           [["seconds of the base", *(f"{r[base]['median_s']:.2f}" for r in result.values())]])
    yield from pairs("One to another", report["pairs"], result)


def pairs(title, found, workloads):
    if found:
        yield (title,
               "The first one's time to the second's, by round: below 1 the first is faster.",
               ["", *workloads, "target"],
               [[p["title"], *(spread(p["workloads"][w]) if w in p["workloads"] else "-"
                               for w in workloads),
                 judge_all(p["workloads"], p["target"])] for p in found])


def peers(report):
    found = report["peers"]
    result, skipped, titles = found["ratios"], found["skipped"], found["titles"]
    yield ("Beside the peers, to native",
           "The same programs, by CPU time (user and system) to that of a run on this machine "
           "itself in the same round: 20 is 20 times slower. The time includes a tool's start, but "
           "not a guest's boot. As some of them are slow, there were "
           f"{found['rounds']} rounds, with {found['scale']:g} of the work.{of_part(report, 'peers')}",
           ["", *result, "skipped"] if skipped else ["", *result],
           [[title, *(spread(r[name]) if name in r else "-" for r in result.values()),
             *([skipped.get(name, "")] if skipped else [])] for name, title in titles.items()] +
           [["seconds, native", *(f"{r['native']['median_s']:.2f}" for r in result.values()),
             *([""] if skipped else [])]])
    yield from pairs("One to a peer", found["pairs"], result)


def start(report):
    rows = [["vpmu run --no-snapshot -- true, which boots", "start"],
            ["vpmu run -- true, from a booted guest", "start_snapshot"]]
    costs = report["costs"]
    yield ("From start to command",
           "Seconds until `true` has run in a new guest and all processes have ended, cold and "
           f"warm.{of_part(report, 'costs')}",
           ["", "seconds", "of CPU"],
           [[title, f"{costs[k]['wall_s']:.2f}", f"{costs[k]['cpu_s']:.2f}"]
            for title, k in rows if k in costs])


def switches(report):
    costs, rows, verdicts = report["costs"], [], {}
    six = {k: c["six_us"] for k, c in costs.items() if k.startswith("switch")}
    loss = {k: c["six_us"] / c["nothing_us"] for k, c in costs.items() if k.startswith("switch")}
    if "switch_direct" in costs:
        r = six["switch"] / six["switch_direct"]
        verdicts["switch"] = (f"{r:.2f} of direct, <={SHARED_TARGET} "
                              f"{'met' if round(r, 2) <= SHARED_TARGET else 'missed'}")
    if "switch_pv" in costs:
        verdicts["switch_pv"] = ("less than architectural: " + (
            "met" if loss["switch_pv"] < loss["switch_arch"] else "missed"))
    for k, title in (("switch", "architectural, policy shared"),
                     ("switch_direct", "architectural, policy direct"),
                     ("switch_arch", "architectural, beside the next"),
                     ("switch_pv", "paravirtual, version 2")):
        if k in costs:
            c = costs[k]
            rows.append([title, f"{c['nothing_us']:.1f}", f"{c['six_software_us']:.1f}",
                         f"{c['six_us']:.1f}", f"{loss[k]:.2f}", verdicts.get(k, "")])
    if rows:
        yield ("A context switch",
               "Microseconds of a switch in `perf bench sched pipe`, by the events that are "
               f"counted meanwhile, and the ratio of counting to not counting.{of_part(report, 'costs')}",
               ["PMU", "nothing", "6 software events", "6 counters", "to nothing", "target"], rows)


def samples(report):
    pmi = report.get("costs", {}).get("pmi")
    if pmi:
        yield ("An overflow",
               f"The cost of a sample, perf's writing included.{of_part(report, 'costs')}",
               ["", "samples", "microseconds each"],
               [[f"perf record -c {pmi['period']}", str(pmi["samples"]), f"{pmi['us']:.1f}"]])
    pebs = report.get("pebs") or report.get("costs", {}).get("pebs")
    if pebs:
        yield ("Large PEBS, to counting",
               "CPU time of `perf record -e instructions:uppp -c` to that of `perf stat`, perf's "
               f"writing included.{of_part(report, 'costs')}",
               ["", "ratio", "fastest to fastest", "records a second", "target"],
               [[w, spread(c), f"{c['best']:.3f}", f"{c['rate']:.0f}",
                 f"<={PEBS_TARGET:.2f} {judge(c, PEBS_TARGET)}"] for w, c in pebs.items()])


def engine(report):
    result = report["engine"]
    variants = result["variants"]
    base = variants[result["base"]]
    yield ("The engine's instructions",
           "The host's instructions for each of the guest's, in loops of tests/bare/engine.S. They are "
           "counted by a guest of vpmu that executes QEMU, so `bench/run --only-engine` prints the same "
           f"on a busy machine. vpmu {result['commit']}; "
           f"{', '.join(sorted(set(result['qemu'].values())))}.",
           ["", *base],
           [[title, *(f"{n:.2f}" for n in works.values())] for title, works in variants.items()])
    yield (f"The engine's instructions, to {result['base']}",
           "The same as ratios.", ["", *base],
           [[title, *(f"{n / base[w]:.3f}" for w, n in works.items())]
            for title, works in variants.items() if works is not base])


def counted(by_variant, first, second):
    """A ratio of counts, which has no interval."""
    return dict.fromkeys(("ratio", "low", "high"), by_variant[first] / by_variant[second])


def programs(report):
    found = report["programs"]
    result, variants, base = found["counts"], found["variants"], found["base"]
    rows = [(x["title"], v, base, x["target"]) for v, x in variants.items()]
    rows += [(f"{variants[a]['title']}, to {variants[b]['title']}", a, b, target)
             for a, b, target in found["pairs"]]
    table = []
    for title, first, second, target in rows:
        row = {w: counted(n, first, second) for w, n in result.items()}
        table.append([title, *(f"{r['ratio']:.3f}" for r in row.values()), judge_all(row, target)])
    yield (f"The programs' instructions, to {variants[base]['title']}",
           "What QEMU executes on the vCPU's thread for the programs of the first table, with "
           f"{found['scale']:g} of the work, counted by a guest of vpmu that executes QEMU: `bench/run "
           "--only-programs` finds the same on a busy machine. The host's kernel and caches are not in "
           f"it. The last row has the millions of the base. vpmu {found['commit']}.",
           ["", *result, "target"],
           table + [["millions of the base", *(f"{n[base] / 1e6:.0f}" for n in result.values()), ""]])


def columns(row):
    return [f"{r['events']} {r['how']}" if r["events"] else r["how"] for r in row]


def exits(report):
    result = report["exits"]
    yield ("Exits for each context switch",
           "Counted, not timed: a guest's calls to its host when it switches between two tasks, by "
           "the number of events and their kind.",
           ["PMU", *columns(next(iter(result.values())))],
           [[name, *(f"{r['exits']:.2f}" for r in row)] for name, row in result.items()])


def switching(row):
    return [r for r in row if r["how"] != "a PMI"]


def kvm(report):
    whole = "machine" in report
    for rig in report["kvm"]:
        # Such a part can be newer than the page.
        by = ", bench/run --only-kvm" if whole and rig["commit"] != report["machine"]["commit"] else ""
        yield from kvm_of(rig, by)


def kvm_of(rig, by):
    result, where = rig["switches"], f"On a real KVM ({rig['kernel']}, {rig['cpu']})"
    first = next(iter(result.values()))
    header = ["PMU", *columns(first)]
    for title, note, cost, digits in (
            ("exits for each context switch",
             "without those of timers and the host's interrupts, of which a slow switch has more",
             lambda r: r["exits"] - r["timers"], 2),
            ("thousands of the host's instructions for each", "on the vCPU's thread, all exits included",
             lambda r: r["instructions"] / 1000, 1)):
        # If fewer than every second switch exits, that is not for the PMU, and no base of a ratio.
        yield (f"{where}, {title}",
               f"Between two tasks, counted, {note}; in brackets the ratio to KVM's own vPMU. "
               f"vpmu {rig['commit']}{by}.", header,
               [[name, *(f"{cost(r):.{digits}f}" +
                         (f" ({cost(r) / cost(b):.2f})" if b["exits"] - b["timers"] > 0.5 else "")
                         for r, b in zip(row, first))] for name, row in result.items()])
    rows = []
    for name, row in result.items():
        cells = []
        for r in switching(row)[1:]:
            more, host = (r[k] - row[0][k] for k in ("exits", "instructions"))
            cells.append(f"{host / more:.0f}" if more > 0.5 else "-")
        rows.append([name, *cells])
    yield (f"{where}, the host's instructions for each of these exits",
           "All exits are counted here. The number includes work that an exit causes, and excludes the "
           "cost of a switch without events.",
           ["PMU", *columns(switching(first)[1:])], rows)
    yield (f"{where}, a call",
           "For each call of a guest that does nothing else, counted by the host.",
           ["", "exits", "the host's instructions", "cycles"],
           [[title, f"{p['exits']:.2f}", f"{p['instructions']:.0f}", f"{p['cycles']:.0f}"]
            for title, p in rig["calls"].items()])


def scheduling(report):
    yield ("The perf scheduler",
           "The library alone, without a guest: how the cost of one grows with their number.",
           None, report["scheduling"].rstrip())


# By what of the report they need.
SECTIONS = {
    "ratios": (ratios,), "peers": (peers,), "costs": (start, switches, samples),
    "pebs": (samples,), "engine": (engine,), "programs": (programs,), "exits": (exits,), "kvm": (kvm,),
    "scheduling": (scheduling,),
}


def tables(report, sections):
    for name in sections:
        for section in SECTIONS[name] if name in report else ():
            yield from section(report)


# ---- as text, as Markdown


def is_text(number, name):
    return number == 0 or name in ("target", "skipped")


def aligned(header, rows):
    """Columns of words to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows)]
    for row in [header, *rows]:
        yield "  ".join(cell.ljust(width) if is_text(i, name) else cell.rjust(width)
                        for i, (cell, width, name) in enumerate(zip(row, widths, header))).rstrip()


def text(report, *sections):
    for title, _, header, rows in tables(report, sections):
        yield f"\n{title}"
        yield from aligned(header, rows) if header else [rows]


def of_machine(report):
    m = report["machine"]
    yield f"machine: {m['cpu']}, {m['cores']} CPUs, {m['host']}"
    yield (f"load: {m['load'][0]:.1f} before" +
           (f", {report['load_after']:.1f} after" if "load_after" in report else ""))
    yield f"vpmu: {m['commit']}, {m['date']}"
    for what, version in [*m["qemu"].items(), *m["peers"].items()]:
        yield f"{what}: {version}"


def wrapped(text_):
    return textwrap.fill(text_, 110, break_long_words=False, break_on_hyphens=False)


def narrow(header, rows):
    """Without the targets where a row would be over 120 columns, and these as a list."""
    if header[-1] != "target" or max(len("| " + " | ".join(row) + " |") for row in rows) <= 120:
        return header, rows, []
    return header[:-1], [row[:-1] for row in rows], [f"* {row[0]}: {row[-1]}"
                                                     for row in rows if row[-1]]


def markdown(report):
    yield "# Benchmarks\n"
    yield wrapped("For readers who want to know what counting costs: this page compares vpmu with "
                  "unpatched QEMU and with other tools for the same work. It was made by") + "\n"
    yield f"```sh\n{report['command']}\n```\n"
    yield wrapped(f"with rounds: {report['rounds']}, scale: {report['scale']:g}. It leaves "
                  "build/bench/BENCHMARKS.json, and bench/page.py makes this page of that. Each "
                  "variant is a guest with one vCPU; in a round all start again and take turns "
                  "with each program. A guest's time is the CPU time of its vCPU's thread, "
                  "and of its model's if it has one, between two moments when the guest is "
                  "idle. If a title says elapsed, it is wall-clock time.") + "\n"
    for line in of_machine(report):
        yield f"* {line}"
    for title, how, header, rows in tables(report, SECTIONS):
        yield f"\n## {title}\n\n{wrapped(how)}\n"
        if not header:
            yield f"```\n{rows}\n```"
            continue
        header, rows, targets = narrow(header, rows)
        rule = ["---" if is_text(i, name) else "---:" for i, name in enumerate(header)]
        for row in [header, rule, *rows]:
            yield "| " + " | ".join(row) + " |"
        if targets:
            yield "\nTargets:\n"
            for target in targets:
                yield textwrap.fill(target, 110, subsequent_indent="  ", break_on_hyphens=False)


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print("usage: bench/page.py RESULT.json", file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as f:
        report = json.load(f)
    print("\n".join(markdown(report)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
