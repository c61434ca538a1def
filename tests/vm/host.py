#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Events of a host beside a real guest's, added, switched and removed by QMP.

host.py POLICY   prints the cases of one policy. The guest runs tests/guest/contend;
VPMU_QEMU, VPMU_BUILD and TMPDIR are as in guest.sh.
"""
import os, socket, struct, subprocess, sys, tempfile, time

import qmp

EVENTS = 8
TURNS = 20000
NONE, LOST, FILTERED = 0, 1, 2

# Called as QEMU by vpmu run: adds what the test needs to its command line.
WRAPPER = """#!/bin/bash
cpu=0 args=()
for a; do
	[ $cpu = 0 ] || a+=$HOST_CPU
	cpu=0
	[ "$a" != -cpu ] || cpu=1
	args+=("$a")
done
[ $# -le 1 ] || args+=(-L "$HOST_QEMU/share/qemu" -qmp "unix:$HOST_QMP,server=on,wait=off")
exec "$HOST_QEMU/bin/qemu-system-x86_64" "${args[@]}"
"""


def case(name, why):
    print(f"not ok {name}: {why}" if why else f"ok {name}", flush=True)


class Guest:
    def __init__(self, folder, cpu):
        wrapper = f"{folder}/qemu"
        self.path = f"{folder}/qmp"
        with open(wrapper, "w") as f:
            f.write(WRAPPER)
        os.chmod(wrapper, 0o755)
        env = dict(os.environ, VPMU_QEMU=wrapper, HOST_QEMU=os.environ["VPMU_QEMU"],
                   HOST_QMP=self.path, HOST_CPU=cpu)
        build = os.environ["VPMU_BUILD"]
        self.process = subprocess.Popen(
            [f"{build}/vpmu", "run", "--root", "--", f"{build}/guest/contend"], env=env,
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.qmp = self.connect()
        self.ask("qmp_capabilities")

    def connect(self):
        s = socket.socket(socket.AF_UNIX)
        for _ in range(400):
            try:
                s.connect(self.path)
                f = s.makefile("rw")
                f.readline()
                return f
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        raise SystemExit("not ok start: QEMU does not answer")

    def ask(self, command, **arguments):
        try:
            return qmp.ask(self.qmp, self.qmp, command, arguments)
        except qmp.Gone:
            raise SystemExit(f"not ok {command}: QEMU has gone") from None

    def hmp(self, line):
        return self.ask("human-monitor-command", **{"command-line": line})

    # To the program in the guest

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"not ok guest: it ended with status {self.process.wait()}")
        return line.split()

    def say(self, command):
        self.tell(command)
        return self.answer()

    def run(self):
        """Which events counted all of a run, and which nothing; or else a message."""
        rows = [tuple(map(int, r.split("/"))) for r in self.say(f"run {TURNS}")]
        whole = {i for i, (n, all) in enumerate(rows) if n == all}
        frozen = {i for i, (n, all) in enumerate(rows) if n == 0}
        odd = [f"event {i} counted {n} of {all}" for i, (n, all) in enumerate(rows)
               if n and n != all]
        return whole, frozen, "; ".join(odd)

    def block(self):
        """Counter, enabled, running, reason, generation of each event."""
        words = list(map(int, self.say("block")))
        return [words[i:i + 5] for i in range(0, len(words), 5)]

    def end(self):
        self.process.stdin.close()
        return self.process.wait(60)

    # To QEMU

    def add(self, spec):
        return self.ask("x-vpmu-host-event-add", spec=spec)["id"]

    def set(self, ids, enabled):
        for i in ids:
            self.ask("x-vpmu-host-event-set", id=i, enabled=enabled)

    def remove(self, ids):
        for i in ids:
            self.ask("x-vpmu-host-event-remove", id=i)

    def host(self):
        return {e["id"]: e for e in self.ask("x-query-vpmu-host-events")}

    def vpmu(self):
        return self.ask("x-query-vpmu")["cpus"][0]

    def start(self):
        """Lets the program run for a while: what it says when its counters are on."""
        self.tell("busy 1000")
        for _ in range(200):
            cpu = self.vpmu()
            if sum(c["enabled"] for c in cpu["counters"]) == EVENTS:
                break
            time.sleep(0.005)
        return cpu

    def running(self):
        cpu = self.start()
        self.answer()
        return cpu


def frozen_are(guest, expected):
    """Why it is not so that @expected, and no others, are frozen and say so."""
    whole, frozen, odd = guest.run()
    if odd or frozen != expected or whole != set(range(EVENTS)) - expected:
        return f"frozen {sorted(frozen)}, not {sorted(expected)}; {odd}"
    block = guest.block()
    for i, (pmc, enabled, running, reason, _) in enumerate(block):
        if reason != (LOST if i in expected else NONE):
            return f"the loss block gives event {i} the reason {reason}"
    counters = guest.running()["counters"]
    for i, (pmc, *_) in enumerate(block):
        c = counters[pmc]
        found = c["loss"], c["state"]
        if found != (("lost", "error") if i in expected else ("none", "active")):
            return f"x-query-vpmu has event {i}'s counter {pmc} in {found}"
    return ""


def refused(guest, name, words, command, **arguments):
    try:
        said = f"no error, but {guest.ask(command, **arguments)}"
    except qmp.Refused as e:
        said = "" if words in str(e) else f"{e}"
    case(f"refused/{name}", said)


def bad_input(guest):
    add = "x-vpmu-host-event-add"
    for name, spec, words in (
            ("nothing", "", "at character 1:"),
            ("no target", "cycles", "at character 1:"),
            ("CPU that is not there", "cpu1:cycles", "at character 4:"),
            ("event that is not there", "cpu0:cicles", "at character 6:"),
            ("option that is not there", "cpu0:cycles:pinned:blue", "at character 20:"),
            ("number too large", "cpu99999999999999999999:cycles", "at character 4:"),
            ("long", "cpu0:" + "x" * 5000, "at character 6:")):
        refused(guest, name, words, add, spec=spec)
    refused(guest, "id 0", "there is no such event", "x-vpmu-host-event-remove", id=0)
    refused(guest, "id to set", "there is no such event", "x-vpmu-host-event-set",
            id=4000000000, enabled=True)
    refused(guest, "filter", "at character 1:", "x-vpmu-filter", spec="some:cycles")
    said = guest.hmp("vpmu_host_event_add cpu0:cicles")
    case("a caret stands under the place", "" if "\r\n     ^" in said else said)


def never_ran(guest):
    """Eight CPU-pinned events of the host before the guest's: those never count."""
    ids = [guest.add("cpu0:rc4:pinned") for _ in range(EVENTS)]
    guest.say("open")
    case("no counter left: all frozen", frozen_are(guest, set(range(EVENTS))))
    block = guest.block()
    bad = [b for b in block if b[1] == 0 or b[2] != 0]
    case("never ran: enabled, not running", f"{bad}" if bad else "")
    slots = [s["owner"] for s in guest.running()["slots"][:EVENTS]]
    case("the host has all counters", "" if slots == ["host"] * EVENTS else f"{slots}")
    guest.remove(ids)
    guest.say("again")
    case("the host's removed, the guest's enabled again", frozen_are(guest, set()))
    return ids


def three(guest):
    names = "rc4", "BR_INST_RETIRED.COND", "br_inst_retired.near_taken"
    ids = [guest.add(f"cpu0:{n}:pinned:u") for n in names]
    youngest = set(range(EVENTS - 3, EVENTS))
    case("three of the host's, the three youngest frozen", frozen_are(guest, youngest))
    states = [e["state"] for e in guest.host().values()]
    case("the host's are active", "" if states == ["active"] * 3 else f"{states}")
    numbers = {s["number"] for s in guest.running()["slots"] if s["owner"] == "host"}
    case("x-query-vpmu names whose counters they are",
         "" if numbers == set(ids) else f"{numbers}, not {ids}")

    before = guest.host()
    guest.run()
    after = guest.host()
    counted = [after[i]["count"] - before[i]["count"] for i in ids]
    least = [TURNS * n for n in (7, 3, 6)]
    # The rest is what the program does around it, and what else runs in the guest.
    good = all(a <= b < 2 * a for a, b in zip(least, counted))
    case("the host counts what the guest does", "" if good else f"{counted}, at least {least}")

    guest.set(ids, False)
    case("switched off: error until enabled again", "" if
         [guest.host()[i]["state"] for i in ids] == ["off"] * 3 else f"{guest.host()}")
    guest.say("again")
    case("switched off: all count", frozen_are(guest, set()))
    guest.set(ids, True)
    case("switched on: the same three", frozen_are(guest, youngest))
    scaled(guest, ids, youngest)
    return ids


def scaled(guest, ids, youngest):
    """The host's go on and off while the guest runs; it scales by the loss block."""
    worst = 0
    guest.set(ids, False)
    guest.say("again")
    before = guest.vpmu()["generation"]
    guest.tell("spin 4000 200000")
    time.sleep(0.3)
    for _ in range(8):
        guest.set(ids, True)
        time.sleep(0.2)
        guest.set(ids, False)
        time.sleep(0.2)
    words = list(map(int, guest.answer()))
    rows = [words[i:i + 4] for i in range(0, len(words), 4)]
    why = ""
    for i, (count, truth, enabled, running) in enumerate(rows):
        share = running / enabled
        if i in youngest and not 0.05 < share < 0.95:
            why += f"event {i} ran {share:.3f} of the time; "
        elif i not in youngest and share < 0.999:
            why += f"event {i} lost its counter; "
        # A scaled count is an estimate: the guest's kernel takes some of the time.
        elif abs(count / share / truth - 1) > 0.02:
            why += f"event {i}: {count} scaled by 1/{share:.3f}, not {truth}; "
        worst = max(worst, abs(count / share / truth - 1))
    case("counts scaled by the loss block are within 2 %" if why else
         f"counts scaled by the loss block are within 2 %: {100 * worst:.2f} %", why)
    after = guest.vpmu()["generation"]
    case("generations go on", "" if after >= before + 2 * 3 * 8 else f"{before} to {after}")


def priorities(guest):
    """Newcomers that must not disturb the guest's pinned events."""
    for spec, state in (("cpu0:rc4", "inactive"), ("vcpu0:rc4", "inactive"),
                        ("vcpu0:rc4:pinned", "error")):
        # Another task of the guest, without counters, may run just then.
        for _ in range(3):
            guest.start()
            i = guest.add(spec)
            found = guest.host()[i]
            guest.answer()
            why = frozen_are(guest, set())
            guest.remove([i])
            if found["state"] == state and found["count"] == 0:
                break
        else:
            why = f"{found}"
        case(f"{spec}: {state}", why)
    i = guest.add("cpu0:instructions:pinned")
    case("a fixed counter is free", frozen_are(guest, set()))
    guest.remove([i])


def life(guest, seen):
    """Numbers, the limit, people's commands, a VM that stands still."""
    refused(guest, "an id that was", "there is no such event", "x-vpmu-host-event-remove",
            id=seen[0])
    ids = [guest.add("cpu0:rc4:off") for _ in range(64)]
    case("numbers are never used again", "" if min(ids) > max(seen) else f"{ids[0]}")
    refused(guest, "one too many", "there are 64 already", "x-vpmu-host-event-add",
            spec="cpu0:rc4")
    guest.remove(ids)

    guest.ask("stop")
    i = guest.add("cpu0:rc4:pinned")
    a = guest.host()[i]
    time.sleep(0.1)
    b = guest.host()[i]
    case("a stopped VM is asked and stands still",
         "" if a == b and a["state"] == "active" else f"{a}, then {b}")
    guest.remove([i])
    guest.ask("cont")
    guest.say("again")

    n = int(guest.hmp("vpmu_host_event_add cpu0:rc4:pinned"))
    guest.start()
    said = guest.hmp("info vpmu-host-events")
    why = "" if f"{n} active" in " ".join(said.split()) else said
    said = guest.hmp("info vpmu")
    if not why and ("policy shared" not in said or f"host:{n}" not in said or
                    " lost " not in said):
        why = said
    guest.answer()
    said = guest.hmp(f"vpmu_host_event_set {n} off")
    if not why and (said or guest.host()[n]["state"] != "off"):
        why = f"{said}, {guest.host()}"
    said = guest.hmp(f"vpmu_host_event_remove {n}")
    case("HMP", why or said or f"{guest.host() or ''}")
    guest.say("again")


def filtered(guest, say):
    say("deny:rc4:r20c4")
    guest.say("again")
    whole, frozen, odd = guest.run()
    reasons = [b[3] for b in guest.block()]
    good = frozen == {0, 4} and reasons == [FILTERED if i in (0, 4) else NONE
                                            for i in range(EVENTS)]
    case("a filter denies two", "" if good else f"{frozen}, {odd}, reasons {reasons}")
    losses = [c["loss"] for c in guest.running()["counters"]]
    spec = guest.ask("x-query-vpmu")["filter"]
    case("x-query-vpmu tells the filter", "" if losses.count("filtered") == 2 and
         spec == "deny:rc4:r20c4" else f"{spec}, {losses}")
    say("none")
    guest.say("again")
    case("no filter", frozen_are(guest, set()))


def trace_of(path):
    with open(path, "rb") as f:
        data = f.read()
    magic, size, version = struct.unpack_from("<8sII", data)
    if (magic, size, version) != (b"VPMUTRC1", 32, 1):
        return f"header {magic} {size} {version}"
    if (len(data) - 16) % 32:
        return f"{len(data)} bytes"
    rows = list(struct.iter_unpack("<QHHHHQQ", data[16:]))
    times = [r[0] for r in rows]
    if times != sorted(times) or not times:
        return f"{len(times)} records, not in order"
    # ASSIGN to guest and host, RELEASE, EXIT, LOST, FOUND
    kinds = {(r[1], r[4] if r[1] == 1 else 0) for r in rows}
    missing = {(1, 0), (1, 1), (2, 0), (3, 0), (5, 0), (6, 0)} - kinds
    return f"no record of type, what: {missing}" if missing else ""


def shared(folder):
    trace = f"{folder}/trace"
    guest = Guest(folder, f",pmu-policy=shared,pmu-trace={trace}")
    bad_input(guest)
    seen = never_ran(guest)
    ids = three(guest)
    guest.remove(ids)
    guest.say("again")
    priorities(guest)
    life(guest, seen + ids)
    filtered(guest, lambda spec: guest.ask("x-vpmu-filter", spec=spec))
    exits = guest.vpmu()["exits"]
    case("exits are counted", "" if exits["wrmsr"] > 100 and exits["rdmsr"] > 100
         else f"{exits}")
    status = guest.end()
    case("the guest ends", "" if status == 0 else f"status {status}")
    case("trace", trace_of(trace))


def mediated(folder):
    guest = Guest(folder, ",pmu-policy=mediated")
    guest.say("open")
    refused(guest, "an event that counts guests", "pmu-policy=mediated the guest owns",
            "x-vpmu-host-event-add", spec="cpu0:rc4:pinned")
    ids = [guest.add("cpu0:rc4:pinned:H") for _ in range(EVENTS)]
    case("eight of the host's that exclude guests: untouched", frozen_are(guest, set()))
    found = [e for e in guest.host().values() if e["state"] == "active" or e["count"]]
    case("they do not count", f"{found}" if found else "")
    guest.remove(ids)
    filtered(guest, lambda spec: guest.hmp(f"vpmu_filter {spec}"))
    guest.end()


def direct(folder):
    guest = Guest(folder, ",pmu-policy=direct,pmu-filter=deny:rc4:r20c4")
    guest.say("open")
    refused(guest, "a host event", "pmu-policy=direct, where the guest owns the counters",
            "x-vpmu-host-event-add", spec="cpu0:rc4:pinned")
    filtered(guest, lambda spec: spec == "none" and guest.ask("x-vpmu-filter", spec=spec))
    guest.end()


def main():
    policy = {"shared": shared, "mediated": mediated, "direct": direct}[sys.argv[1]]
    with tempfile.TemporaryDirectory() as folder:
        policy(folder)


main()
