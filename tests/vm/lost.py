#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Losses of a guest to its host's events, and their report: cases for t-lost.sh.

lost.py CASE...   VPMU_QEMU and VPMU_BUILD are as in guest.sh; works in the current
                  directory, which the guest shares.
"""
import json, os, re, socket, subprocess, sys, time

import qmp

BUILD = os.environ["VPMU_BUILD"]
VPMU = f"{BUILD}/vpmu"
KINDS = ["near_call", "cond", "near_taken"]
EVENTS = [f"cpu0:br_inst_retired.{k}:pinned" for k in KINDS]

# Events that pinned opens, in this order.
PINNED = ["ALL_BRANCHES", "COND_TAKEN", "COND_NTAKEN", "COND", "NEAR_TAKEN", "NEAR_CALL",
          "NEAR_RETURN", "INDIRECT"]

# Branches of pinned besides its turns: starting, sleeping, asking for the time. They are
# fewer than a hundred each time it sleeps, after a million turns.
BESIDE = 0.001

# The program's start and end and each sleep belong to the time enabled, and the loop
# does not run in them; and a host's event comes and goes between two looks at the
# clock. That is some milliseconds of the seconds that the loop takes.
NEAR = 0.02

# Called as QEMU by vpmu run, to give us a monitor beside vpmu's own.
WRAPPER = """#!/bin/bash
[ $# -le 1 ] || set -- -L "$LOST_QEMU/share/qemu" -qmp unix:qmp,server=on,wait=off "$@"
exec "$LOST_QEMU/bin/qemu-system-x86_64" "$@"
"""


def case(name, why=""):
    print(f"not ok {name}: {why}" if why else f"ok {name}", flush=True)


def same(name, found, wanted):
    case(name, "" if found == wanted else f"found {found}, not {wanted}")


class Monitor:
    def __init__(self):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(30)
        s.connect("qmp")
        self.file = s.makefile("rw")
        self.file.readline()
        self.ask("qmp_capabilities")

    def ask(self, command, **arguments):
        return qmp.ask(self.file, self.file, command, arguments)


def run(options, command, looping=None):
    """Returns the lines of standard output, those of standard error, the status."""
    env = dict(os.environ)
    if looping:
        with open("qemu", "w") as f:
            f.write(WRAPPER)
        os.chmod("qemu", 0o755)
        env.update(LOST_QEMU=env["VPMU_QEMU"], VPMU_QEMU=os.path.abspath("qemu"))
    p = subprocess.Popen([VPMU, "run", "--root", *options, "--", *command], env=env,
                         text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    if looping and p.stdout.readline() == "looping\n":
        try:
            looping(Monitor())
        except (OSError, ValueError):
            pass    # the loop has ended, on a slow machine
    out = p.stdout.read()
    err = p.stderr.read()
    p.wait()
    return [l for l in out.splitlines() if l != "looping"], err.splitlines(), p.returncode


def measure(name, options, ms, looping=None):
    """Each counter's count and the true one; and vpmu lost's report of it."""
    command = ["vpmu", "lost", "--json", "-o", "losses", "--", f"{BUILD}/guest/pinned",
               str(ms), "1000000"]
    out, err, status = run(options, command, looping)
    same(f"{name} status", status, 0)
    if status:
        print("\n".join(err))
        return None
    counts = {}
    for line in out:
        pmc, _, count, truth = line.split()
        counts[int(pmc)] = int(count), int(truth)
    with open("losses") as f:
        losses = {c["pmc"]: c for c in json.load(f)["counters"]}
    same(f"{name} counters", (sorted(counts), sorted(losses)), (list(range(8)),) * 2)
    return counts, losses, err


def exact(name, counts, losses, pmcs):
    """These counted all the time, and are said to."""
    for pmc in pmcs:
        count, truth = counts[pmc]
        if not truth <= count <= truth * (1 + BESIDE):
            return case(name, f"pmc {pmc} counted {count}, not {truth}")
        if losses[pmc]["verdict"] != "trust" or losses[pmc]["scale"] != 1:
            return case(name, f"pmc {pmc}: {losses[pmc]}")
    case(name)


def event_options(events):
    return [o for e in events for o in ("--host-event", e)]


def t_always():
    """Three events of the host from the start: the three youngest never count."""
    found = measure("always", ["--stats", "stats", *event_options(EVENTS)], 1000)
    if not found:
        return
    counts, losses, err = found
    exact("always older", counts, losses, range(5))
    same("always youngest count", [counts[p][0] for p in (5, 6, 7)], [0, 0, 0])
    same("always youngest are told",
         [(losses[p]["verdict"], losses[p]["scale"], losses[p]["reason"]) for p in (5, 6, 7)],
         [("not counted", None, "lost")] * 3)
    same("always events", [losses[p]["event"] for p in range(8)],
         ["BR_INST_RETIRED." + k for k in PINNED])
    closing = [l for l in err if "lost their hardware to the host" in l]
    same("always closing line", len(closing) == 1 and
         "cpu0: 3 of 8 counters" in closing[0] and "100.0 %" in closing[0] and
         "(pmc 5, 6, 7)" in closing[0], True)
    for event in EVENTS:
        lines = [l.split() for l in err if event in l]
        ok = len(lines) == 1 and lines[0][2:5] == ["host", "<not", "counted>"] and \
            int(lines[0][6].replace(",", "")) > 1000000 and lines[0][7] == "(100.00%)"
        same(f"always host prints {event}", ok, True)
    with open("stats") as f:
        stats = json.load(f)
    same("always stats", ([e["spec"] for e in stats["host_events"]],
                          [c["time-running"] for c in stats["vpmu"]["cpus"][0]["counters"]
                           if c["pmc"] in (5, 6, 7)]), (EVENTS, [0, 0, 0]))


def t_switched():
    """On and off while the loop runs: the same three are lost, and can be scaled."""
    frozen = []

    def switch(monitor):
        ids = [e["id"] for e in monitor.ask("x-query-vpmu-host-events")]
        for _ in range(5):
            time.sleep(0.35)
            for i in ids:
                monitor.ask("x-vpmu-host-event-set", id=i, enabled=True)
            time.sleep(0.35)
            cpu = monitor.ask("x-query-vpmu")["cpus"][0]
            # While the loop sleeps nothing is enabled, and nothing lost.
            if any(c["enabled"] for c in cpu["counters"]):
                frozen.append([c["pmc"] for c in cpu["counters"] if c["loss"] == "lost"])
            for i in ids:
                monitor.ask("x-vpmu-host-event-set", id=i, enabled=False)

    found = measure("switched", event_options([e + ":off" for e in EVENTS]), 4500, switch)
    if not found:
        return
    counts, losses, _ = found
    same("switched frozen", len(frozen) > 0 and all(f == [5, 6, 7] for f in frozen) or frozen,
         True)
    exact("switched older", counts, losses, range(5))
    for pmc in (5, 6, 7):
        count, truth = counts[pmc]
        told = losses[pmc]
        name = f"switched pmc {pmc}"
        if told["verdict"] != "scale" or told["reason"] != "lost":
            case(name, f"{told}")
        elif count > truth * 0.9:
            case(name, f"counted {count} of {truth}: nothing was lost, so nothing is shown")
        else:
            off = count * told["scale"] / truth - 1
            case(f"{name}: {count} of {truth}, scaled by {told['scale']:.3f}: {off:+.3%}",
                 "" if abs(off) <= NEAR else "too far")


def t_pebs():
    """PEBS, taken from a guest that samples and given back; a plain counter goes on."""
    states = []

    def losses(monitor):
        return [c["loss"] for c in monitor.ask("x-query-vpmu")["cpus"][0]["counters"]
                if c["enabled"] and c["pmc"] == 8]

    def switch(monitor):
        event, = monitor.ask("x-query-vpmu-host-events")
        while not losses(monitor):
            time.sleep(0.1)
        for on in (True, False) * 3:
            monitor.ask("x-vpmu-host-event-set", id=event["id"], enabled=on)
            time.sleep(0.3)
            states.extend((on, loss) for loss in losses(monitor))

    _, err, status = run(
        ["--host-event", "cpu0:br_inst_retired.near_call:pinned:pebs:off"],
        ["sh", "-c", "echo looping; exec vpmu lost --json -o losses -- perf stat -x, -o counts "
         "-e branches:u -- perf record -q -o data -e instructions:uppp -c 100003 -- "
         "sh -c \"timeout 3 sh -c 'while :; do :; done' || :\""], switch)
    same("pebs status", status, 0)
    if status:
        return print("\n".join(err))
    with open("losses") as f:
        told = {c["counter"]: c for c in json.load(f)["counters"]}
    with open("counts") as f:
        plain, = [line.split(",") for line in f if "branches" in line and "," in line]
    # Back it comes when the guest enables it, at a switch of tasks.
    same("pebs states", sorted(set(states) - {(False, "lost")}),
         [(False, "none"), (True, "lost")])
    fixed = told["fixed 0"]
    same("pebs told", (fixed["verdict"], fixed["reason"], 0 < fixed["running"] <
                       fixed["enabled"]), ("scale", "lost", True))
    same("pebs plain counter", (told["pmc 0"]["verdict"], plain[4]), ("trust", "100.00"))
    same("pebs closing line", any("1 of " in l and "(pmc 8)" in l for l in err), True)


def t_lbr():
    """A guest that boots while its host has the branch records has LBR, and gets them later."""
    def remove(monitor):
        event, = monitor.ask("x-query-vpmu-host-events")
        monitor.ask("x-vpmu-host-event-remove", id=event["id"])
        with open("gone", "w"):
            pass

    samples = ("perf record -q -j any,u -e instructions:u -c 100003 -o /tmp/data "
               "sh -c \"i=0; while [ \\$i -lt 20000 ]; do i=\\$((i + 1)); done\";"
               "perf script -i /tmp/data -F brstack | grep -c 0x")
    out, _, status = run(
        ["--host-event", "cpu0:cycles:pinned:lbr"],
        ["sh", "-c", f"before=$(vpmu lost -o lost-first -- sh -c '{samples}');"
         "perf record -q -b -e instructions:u -o /tmp/data vpmu lost --json -o lost-json; echo looping;"
         "n=0; until [ -e gone ] || [ $n = 300 ]; do sleep 0.1; n=$((n + 1)); done;"
         f"echo $before; {samples}; dmesg | grep -o '32-deep LBR';"
         "vpmu lost -o lost-then -- true"], remove)
    same("lbr boot log", (out[2:], status), (["32-deep LBR"], 0))
    same("lbr beside the host's event", out[:1], ["0"])
    same("lbr when that has gone", len(out) > 1 and int(out[1]) > 0, True)
    with open("lost-first") as first, open("lost-json") as since_boot, open("lost-then") as then:
        same("lbr told", re.sub(r"[0-9]+ times?", "N times", first.read().splitlines()[-1]),
             "CPU 0 lost its branch records N times.")
        records, = json.load(since_boot)["branch_records"]
        same("lbr told while perf records", (records["cpu"], records["losses"] > 0, records["lost_now"]),
             (0, True, True))
        same("lbr told of no loss", "branch records" in then.read(), False)


def t_back():
    """Counters that no one touches come back by themselves, unless pmu-regain is off."""
    def lost(monitor):
        return len([c for c in monitor.ask("x-query-vpmu")["cpus"][0]["counters"]
                    if c["loss"] == "lost"])

    def until(wanted, monitor, seconds):
        end = time.monotonic() + seconds
        while lost(monitor) != wanted and time.monotonic() < end:
            time.sleep(0.1)
        return lost(monitor)

    def switch(monitor):
        ids = [e["id"] for e in monitor.ask("x-query-vpmu-host-events")]
        while not any(c["enabled"] for c in monitor.ask("x-query-vpmu")["cpus"][0]["counters"]):
            time.sleep(0.1)
        for _ in range(3):
            for i in ids:
                monitor.ask("x-vpmu-host-event-set", id=i, enabled=True)
            found.append(until(2, monitor, 30))
            for i in ids:
                monitor.ask("x-vpmu-host-event-set", id=i, enabled=False)
            found.append(until(0, monitor, 30 if regain == "on" else 3))
        with open("gone", "w"):
            pass

    for regain, wanted in (("on", [2, 0] * 3), ("off", [2] * 6)):
        found = []
        if os.path.exists("gone"):
            os.remove("gone")
        events = ",".join(f"br_inst_retired.{k}" for k in PINNED[:7])
        run(["--cpu", f"Icelake-Server-v6,pmu-regain={regain}",
             *event_options([e + ":off" for e in EVENTS])],
            ["perf", "stat", "-a", "-o", "/dev/null", "-e", events, "sh", "-c",
             "echo looping; until [ -e gone ]; do :; done"], switch)
        same(f"back, pmu-regain={regain}", found, wanted)


def t_policies():
    """If the guest owns the counters, nothing is lost."""
    hosts = [e + ":H" for e in EVENTS]
    for policy, events in (("mediated", hosts), ("mediated", []), ("direct", []),
                           ("shared", [])):
        name = f"{policy}{' beside host events' if events else ''}"
        found = measure(name, ["--policy", policy, *event_options(events)], 500)
        if not found:
            continue
        counts, losses, err = found
        exact(f"{name} counts", counts, losses, range(8))
        same(f"{name} says nothing", [l for l in err if "lost" in l], [])
        # An event that excludes guests counts nothing here.
        same(f"{name} host", [l.split()[-3:] for l in err if ":pinned" in l],
             [["<not", "counted>", "(0.00%)"]] * len(events))
    out, err, status = run(["--policy", "mediated", *event_options(EVENTS[:1])], ["true"])
    same("mediated refuses", (status, any("excludes guests" in l for l in err)), (125, True))


def t_filter():
    found = measure("filter", ["--event-filter", "deny:branches"], 500)
    if not found:
        return
    counts, losses, err = found
    exact("filter others", counts, losses, range(1, 8))
    same("filter denies", (counts[0][0], losses[0]["verdict"], losses[0]["reason"]),
         (0, "not counted", "filtered"))
    same("filter closing line", any("were filtered for 100.0 %" in l for l in err), True)


def t_version1():
    """Version 1 of the paravirtual PMU cannot say that a counter was lost: vpmu run does."""
    command = ["perf", "stat", "-x,", "-e", "branches", "true"]
    for hosts, named in ((8, True), (0, False)):
        _, err, status = run(["--pmu", "pv,abi=2010",
                              *event_options(["cpu0:branches:pinned"] * hosts)], command)
        count = [l.split(",")[0] for l in err if ",branches," in l]
        same(f"version 1 beside {hosts} host events",
             (count == ["0"], any("not counted, or not all of the time: 0xc4" in l
                                  for l in err), status), (named, named, 0))


def t_command():
    """vpmu lost as a command."""
    _, _, status = run([], ["vpmu", "lost", "--", "sh", "-c", "exit 5"])
    same("command status", status, 5)
    out, _, status = run([], ["sh", "-c", "vpmu lost -- nonexistent-command; echo $?;"
                              "vpmu lost -- sh -c 'kill -TERM $$'; echo $?; vpmu lost"])
    same("command ends", (out, status), (["127", "143", "No counter was enabled."], 0))
    out, _, _ = run([], ["sh", "-c", "vpmu lost -I 100 --json -o intervals -- sleep 1;"
                         "wc -l <intervals"])
    same("command intervals", int(out[0]) > 1, True)
    _, err, status = run(["--pmu", "none"], ["vpmu", "lost"])
    same("command without a block", (status, any("VPMUforGuest" in l for l in err)),
         (77, True))
    out, err, status = run(["--pmu", "none"], ["vpmu", "lost", "--", "echo", "ran"])
    same("command that is not run", (status, out, any("was not run" in l for l in err)),
         (125, [], True))
    # perf takes its time to begin where the host is busy
    out, err, _ = run([], ["sh", "-c", "perf stat -e instructions:u -a -o /dev/null sleep 60 &"
                           "for i in $(seq 100); do sleep 0.2; vpmu lost >told;"
                           "grep -q 'fixed 0' told && break; done; kill $!; cat told"])
    same("command since boot", any("fixed 0" in l and "trust" in l for l in out), True)
    if os.getuid() == 0:
        # a copy, as what it is of may be root's alone
        out, _, _ = run([], ["sh", "-c", 'cp "$(command -v vpmu)" /tmp/its; '
                             "setpriv --reuid=4321 sh -c '/tmp/its lost 2>&1; echo $?'"])
        same("command as a user", ("root" in out[0], out[-1]), (True, "125"))


# ---- the trace

def check_trace(name, trace):
    """Slices of a track do not overlap; what there is has its names and ends."""
    events = trace["traceEvents"]
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    slices = {}
    for e in events:
        if e["ph"] not in "MXiC":
            return case(name, f"phase of {e}")
        if e["ph"] in "Xi" and (e["pid"], e["tid"]) not in named:
            return case(name, f"track of {e} has no name")
        if e["ph"] == "X":
            slices.setdefault((e["pid"], e["tid"]), []).append(e)
    for track, list_ in slices.items():
        end = 0
        for e in sorted(list_, key=lambda e: e["ts"]):
            # Nanoseconds, written as decimal fractions of microseconds.
            if round(e["ts"] * 1000) < end or e["dur"] < 0:
                return case(name, f"{track}: {e} begins before {end} ns")
            end = round(e["ts"] * 1000) + round(e["dur"] * 1000)
    return case(name)


def check_timeline():
    """The picture names what was lost, and to whom."""
    out = subprocess.run([VPMU, "timeline", "trace.json", "-o", "page.html"], capture_output=True)
    same("timeline", (out.returncode, out.stderr), (0, b""))
    page = subprocess.run([f"{os.environ['VPMU_ROOT']}/tests/dom", "page.html"],
                          capture_output=True, text=True)
    if page.returncode:
        print(f"skip timeline drawn: {page.stdout.strip()}")
        return
    verdicts = re.findall("<li><b>cpu0: guest (.*?)</b>(.*?)</li>", page.stdout)
    named = [(name, [e in text for e in EVENTS]) for names, text in verdicts
             for name in names.split(", ")]
    same("timeline drawn", named, [(f"pmc {i}", [True] * 3) for i in (5, 6, 7)])


def t_trace():
    command = [f"{BUILD}/guest/pinned", "500", "1000000"]
    _, _, status = run(["--trace", "trace.json", "--smp", "2", *event_options(EVENTS)],
                       ["taskset", "1", *command])
    same("trace status", status, 0)
    with open("trace.json") as f:
        trace = json.load(f)
    check_trace("trace structure", trace)
    events = trace["traceEvents"]
    names = {e["name"] for e in events if e["ph"] == "X" and e["pid"] == 1}
    hosts = {f"host #{i + 1} {e}" for i, e in enumerate(EVENTS)}
    same("trace owners", names & (hosts | {f"guest pmc {i}" for i in range(8)}),
         hosts | {f"guest pmc {i}" for i in range(5)})
    lost = [e for e in events if e["ph"] == "X" and e["name"] == "lost"]
    same("trace losses", {e["tid"] for e in lost} == {e["tid"] for e in events if
         e["name"] == "thread_name" and e["args"]["name"] in
         {f"guest pmc {i}, not counting" for i in (5, 6, 7)}}, True)
    same("trace exits", any(e["name"] == "wrmsr IA32_PERF_GLOBAL_CTRL" and
                            e["args"]["register"] == "0x38f" for e in events), True)
    last = [e for e in events if e["ph"] == "C"][-1]["args"]
    same("trace curve", last["wrmsr"] > 0 and last["rdmsr"] > 0, True)
    same("trace processes", sorted(e["args"]["name"] for e in events if
                                   e["name"] == "process_name"), ["cpu0 PMU", "cpu1 PMU"])

    check_timeline()

    # A guest that is killed in the middle: whatever was open has an end.
    p = subprocess.Popen([VPMU, "run", "--root", "--trace", "killed.json",
                          *event_options(EVENTS), "--", f"{BUILD}/guest/pinned", "60000",
                          "1000000"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    p.stdout.readline()
    time.sleep(0.5)
    children = subprocess.run(["pgrep", "-P", str(p.pid)], capture_output=True, text=True)
    os.kill(int(children.stdout), 9)
    p.wait()
    with open("killed.json") as f:
        trace = json.load(f)
    check_trace("trace of a killed guest", trace)


for wanted in sys.argv[1:]:
    globals()[f"t_{wanted}"]()
