#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Calls of vpmu_kvm.ko fail, each in turn, and its guest is told or gets less.

kvm_faults.py QEMU OPTION...   tests/bare/faults.c, of a module that has fail_nth: in each
of its rounds the Nth call fails, or all from the Nth on, for every N; the next round is
whole again. So do those of a guest's first round, in which its vCPU is set up.
"""
import subprocess, sys

PARAMETERS = "/sys/module/vpmu_kvm/parameters/"


def case(name, why):
    print(f"not ok {name}: {why}" if why else f"ok {name}", flush=True)


def fail(nth, on=False):
    for name, value in ("fail_on", int(on)), ("fail_nth", nth):
        with open(PARAMETERS + name, "w") as f:
            f.write(str(value))


def calls():
    with open(PARAMETERS + "fail_calls") as f:
        return int(f.read())


class Guest:
    def __init__(self, args):
        self.qemu = subprocess.Popen(args + ["-serial", "stdio"], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, bufsize=0)

    def round(self, kind=b"r"):
        """The guest's report, and the errors in it."""
        self.qemu.stdin.write(kind)
        wrong = ""
        while True:
            line = self.qemu.stdout.readline().decode(errors="replace").strip()
            if not line:
                raise SystemExit("QEMU has ended")
            if line in ("whole", "less"):
                return line, wrong
            wrong = line

    def end(self):
        self.qemu.stdin.write(b"q")
        self.qemu.stdin.close()
        return self.qemu.wait(60)


def first(args):
    """A guest, what its first round took, and what another one does."""
    fail(0)
    guest = Guest(args)
    said = [guest.round(b"n")]
    begin = calls()
    said += [guest.round(b"n"), guest.round()]
    fail(0)
    said.append(guest.round())
    rest = calls()
    wrong = "" if said == 4 * [("whole", "")] else str(said)
    case("known", wrong or ("" if begin > rest > 20 else f"{begin} calls, then {rest}"))
    return guest, begin - rest


def every(guest, on):
    """Returns how many calls there are."""
    wrong, n = "", 0
    while not wrong:
        n += 1
        fail(n, on)
        said, why = guest.round()
        made = calls()
        fail(0)
        after, why_after = guest.round()
        if made < n:
            break
        if why or said != "less":
            wrong = f"call {n}: {said} {why}"
        elif why_after or after != "whole":
            wrong = f"after call {n}: {after} {why_after}"
    case("all from the Nth on" if on else "the Nth call", wrong)
    return n - 1


def main():
    args = sys.argv[1:]
    guest, setup = first(args)
    n = every(guest, False)
    every(guest, True)
    status = guest.end()
    case("status", "" if status == 67 else f"{status}")
    wrong = ""
    for nth in range(1, setup + 1):
        guest = Guest(args)
        fail(nth)
        said, why = guest.round()
        fail(0)
        # It knows its counts from the first round that has them.
        rest = [guest.round(b"n"), guest.round(), guest.round()]
        status = guest.end()
        if why or said != "less" or rest != 3 * [("whole", "")] or status != 67:
            wrong = f"call {nth}: {said} {why}, then {rest}, status {status}"
    case("while it is set up", wrong or ("" if setup >= 5 else f"{setup} calls"))
    print(f"# {setup} calls to set up, {n} in a round")


main()
