#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The host's part in tests without an operating system.

pv_bare.py QEMU OPTION...   prints the guest's serial output and ends with QEMU's
status. When the guest says "look", nothing may be open; when it says "take", eight
pinned events of the host take the counters of vCPU 0; when it says "used N", N
counters are in use; when it says "done N", it has left nothing open and has N vCPUs.
"event SPEC" adds an event of the host, "gone" removes all; with "owner OWNER LOSS
GENERATION" vCPU 0's branch records must have that owner, loss and generation.
Then it gets a byte.
"""
import socket, subprocess, sys, tempfile, time

import qmp

EVENTS = 8


class Host:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        for _ in range(200):
            try:
                self.socket.connect(path)
                break
            except OSError:
                time.sleep(0.05)
        else:
            raise SystemExit("not ok start: QEMU does not answer")
        self.qmp = self.socket.makefile("rw")
        self.qmp.readline()
        self.ask("qmp_capabilities")

    def ask(self, command, **arguments):
        try:
            return qmp.ask(self.qmp, self.qmp, command, arguments)
        except qmp.Gone:
            raise SystemExit(f"not ok {command}: QEMU has gone") from None
        except qmp.Refused as e:
            raise SystemExit(f"not ok {command}: {e}") from None

    def take(self):
        for _ in range(EVENTS):
            self.ask("x-vpmu-host-event-add", spec="cpu0:rc4:pinned")

    def event(self, spec):
        self.ask("x-vpmu-host-event-add", spec=spec)

    def gone(self):
        for event in self.ask("x-query-vpmu-host-events"):
            self.ask("x-vpmu-host-event-remove", id=event["id"])

    def owner(self, *want):
        r = self.ask("x-query-vpmu")["cpus"][0]["branch-records"]
        text = self.ask("human-monitor-command", **{"command-line": "info vpmu"})
        found = (r["owner"], r["loss"], str(r["generation"]))
        if found != want or "branch records: {}, {}, generation {}".format(*want) not in text:
            print(f"not ok owner: found {found}, not {want}: {text}", flush=True)
        else:
            print("ok owner " + " ".join(want), flush=True)

    def look(self):
        events = self.ask("x-query-vpmu")["pv"]["events"]
        print(f"not ok forgotten: {len(events)} events" if events else "ok forgotten", flush=True)

    @staticmethod
    def owned(info):
        return [{"vcpu": n, **s} for n, c in enumerate(info["cpus"]) for s in c["slots"]
                if s["owner"] != "none"]

    def used(self, n):
        owned = self.owned(self.ask("x-query-vpmu"))
        good = len(owned) == int(n)
        print(f"ok used {n}" if good else f"not ok used {n}: found {owned}", flush=True)

    def done(self, n_cpus):
        cpus = int(n_cpus)
        info = self.ask("x-query-vpmu")
        events, owned = info["pv"]["events"], self.owned(info)
        calls = [sum(c["exits"]["hypercall"].values()) for c in info["cpus"]]
        text = self.ask("human-monitor-command", **{"command-line": "info vpmu"})
        why = None
        if events or owned:
            why = f"found open events {events}, counters in use {owned}; wanted none"
        elif len(calls) != cpus:
            why = f"found {len(calls)} vCPUs, wanted {cpus}"
        elif not all(calls):
            why = f"hypercalls of the vCPUs: {calls}: one of them has made none"
        elif f"{calls[0]} hypercalls" not in text:
            why = f"'info vpmu' does not say {calls[0]} hypercalls: {text}"
        print(f"not ok nothing left: {why}" if why else "ok nothing left", flush=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/qmp"
        qemu = subprocess.Popen(
            sys.argv[1:] + ["-qmp", f"unix:{path},server=on,wait=off", "-serial", "stdio"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            host = Host(path)
            for line in qemu.stdout:
                line = line.decode(errors="replace").rstrip()
                word, *more = line.split() or [""]
                if word in ("take", "look", "used", "done", "event", "gone", "owner"):
                    getattr(host, word)(*more)
                    qemu.stdin.write(b"\n")
                    qemu.stdin.flush()
                elif line:
                    print(line, flush=True)
            return qemu.wait()
        finally:
            qemu.kill()


sys.exit(main())
