#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""uarch.py QEMU PROGRAM CPU: what the modelled CPU counts of tests/bare/uarch.S.

Each kernel runs n times and 2n times; what it does n times more is exactly n times what
its source says of a turn, and the backend loses at least as many slots. A divide takes
one cycle, so that stalls tell how many there were; only the program prefetches.
"""
import os
import socket
import subprocess
import sys
import tempfile

import qmp

WHAT = ("loads", "stores", "locked", "stall-divider", "prefetch")
LOST = "backend-bound"


class Guest:
    def __init__(self, prefix, program, cpu):
        self.dir = tempfile.TemporaryDirectory()
        path = os.path.join(self.dir.name, "qmp")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(1)
            self.process = subprocess.Popen(
                [f"{prefix}/bin/qemu-system-x86_64", "-L", f"{prefix}/share/qemu",
                 "-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio",
                 "-machine", "pc", "-bios", "qboot.rom", "-m", "64", "-accel", "tcg",
                 "-cpu", f"{cpu},check=off,pmu-uarch-params=divide_cycles=1:prefetch=0", "-qmp", f"unix:{path}", "-device",
                 "isa-debug-exit,iobase=0xf4,iosize=4", "-kernel", program],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
            listener.settimeout(60)
            self.socket, _ = listener.accept()
        self.file = self.socket.makefile("rw")
        self.file.readline()
        self.query("qmp_capabilities")

    def query(self, command):
        return qmp.ask(self.file, self.file, command, {})

    def now(self):
        cpu = self.query("x-query-vpmu")["cpus"][0]
        return {row["name"]: row["kernel"] for row in cpu["uarch"]}

    def counts(self):
        """Once the guest is in its loop that accesses nothing."""
        first = self.now()
        while True:
            now = self.now()
            if any(now[k] != first[k] for k in WHAT):
                first = now
            elif now["retiring"] > first["retiring"] + 3000:
                return now

    def go(self):
        self.process.stdin.write("x")
        self.process.stdin.flush()

    def turn(self):
        """One run of a kernel: its line, and what it has counted; None at the end."""
        line = self.process.stdout.readline().split()
        if not line or line[0] == "end":
            return None
        before = self.counts()
        self.go()
        self.process.stdout.readline()
        after = self.counts()
        self.go()
        return line, {k: after[k] - before[k] for k in after}


def main():
    guest = Guest(*sys.argv[1:4])
    seen = 0
    while True:
        once = guest.turn()
        if not once:
            break
        (name, *expected, slots, n), single = once
        _, double = guest.turn()
        why = ""
        for what, per_turn in zip(WHAT, expected):
            got, want = double[what] - single[what], int(per_turn) * int(n)
            if got != want:
                why = f"{got} {what}, not {want}"
        got, want = double[LOST] - single[LOST], int(slots) * int(n)
        if want and got < want:
            why = f"{got} slots {LOST}, not {want} or more"
        print(f"not ok {name}: {why}" if why else f"ok {name}")
        seen += 1
    if not seen:
        print("not ok kernels: the guest ran none")
    guest.process.wait(60)


main()
