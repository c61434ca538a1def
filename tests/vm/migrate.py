#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A guest moves from one QEMU to another in mid-run, several times.

migrate.py MOVES [--savevm|--module] QEMU OPTION...   prints the guest's serial output, all of
it, and ends with its last QEMU's status. The guest is stopped after a while, saved
to a file, and goes on in a new QEMU that loads it. The policy is another one each
time, and the new host has an event of its own, that leaves pinned ones alone; but
not with KVM.
--savevm: to snapshots in one image of a disk, as savevm and loadvm have them.
--module: the PMU is vpmu_kvm.ko's, whose state `vpmu kvm` moves. COUNTERS=N: it has that
many counters while it loads. FAIL_NTH=N: so does a call of its after that.
"""
import atexit, os, random, socket, subprocess, sys, tempfile, time

import qmp

PARAMETERS = "/sys/module/vpmu_kvm/parameters/"
POLICIES = ("shared", "cpu0:instructions"), ("direct", None), ("mediated", "cpu0:rc4:H")


class Ended(Exception):
    """QEMU has ended by itself."""


class Qemu:
    def __init__(self, args, folder, n, incoming, image):
        self.path = f"{folder}/qmp{n}"
        self.log = f"{folder}/serial{n}"
        more = ["-incoming", "defer"] if incoming and not image else []
        policy, event = POLICIES[n % len(POLICIES)]
        if not any(",pmu=on" in a for a in args):
            event = None
        args = [f"{a},pmu-policy={policy}" if ",pmu=on" in a else a for a in args]
        self.process = subprocess.Popen(
            args + ["-qmp", f"unix:{self.path},server=on,wait=off", "-S",
                    "-serial", f"file:{self.log}"] + more, stdin=subprocess.DEVNULL)
        atexit.register(self.process.kill)
        self.qmp = self.connect()
        self.ask("qmp_capabilities")
        if event:
            self.ask("x-vpmu-host-event-add", spec=event)
        if image:
            self.open_image(image)
            if incoming:
                self.job("snapshot-load", tag=incoming, vmstate="disk", devices=["disk"])
        elif incoming:
            self.ask("migrate-incoming", uri=f"file:{incoming}")
            self.until("query-migrate", "completed")

    def open_image(self, image):
        new = not os.path.exists(image)
        if new:
            self.job("blockdev-create", options={"driver": "file", "filename": image, "size": 0})
        self.ask("blockdev-add", **{"driver": "file", "filename": image, "node-name": "file"})
        if new:
            self.job("blockdev-create", options={"driver": "qcow2", "file": "file", "size": 0})
        self.ask("blockdev-add", **{"driver": "qcow2", "file": "file", "node-name": "disk"})

    def save(self, state, image):
        if image:
            self.job("snapshot-save", tag=state, vmstate="disk", devices=["disk"])
        else:
            self.ask("migrate", uri=f"file:{state}")
            self.until("query-migrate", "completed")

    def module(self, verb, state):
        vpmu = os.environ["VPMU_BUILD"] + "/vpmu"
        subprocess.run([vpmu, "kvm", verb, str(self.process.pid), state], check=True)

    def load_module(self, state):
        """None of the last QEMU's counters is left by then."""
        counters = os.environ.get("COUNTERS")
        if not counters:
            self.module("load", state)
            if "FAIL_NTH" in os.environ:
                with open(PARAMETERS + "fail_nth", "w") as f:
                    f.write(os.environ["FAIL_NTH"])
            return
        with open("/sys/kernel/debug/vpmu_kvm/vms") as f:
            while not f.readline().startswith("vms 0 of"):
                time.sleep(0.05)
                f.seek(0)
        with open(PARAMETERS + "counters") as f:
            usual = f.read()
        with open(PARAMETERS + "counters", "w") as f:
            f.write(counters)
        self.module("load", state)
        with open(PARAMETERS + "counters", "w") as f:
            f.write(usual)

    def connect(self):
        s = socket.socket(socket.AF_UNIX)
        while self.process.poll() is None:
            try:
                s.connect(self.path)
                f = s.makefile("rw")
                f.readline()
                return f
            except OSError:
                time.sleep(0.05)
        raise Ended

    def ask(self, command, **arguments):
        try:
            return qmp.ask(self.qmp, self.qmp, command, arguments)
        except qmp.Gone:
            raise Ended from None
        except qmp.Refused as e:
            raise SystemExit(f"{command}: {e}") from None

    def until(self, command, status):
        while True:
            found = self.ask(command).get("status")
            if found == status:
                return
            if found == "failed":
                break
            time.sleep(0.05)
        raise SystemExit(f"{command}: {found}, not {status}: {self.ask(command)}")

    def job(self, command, **arguments):
        self.ask(command, **{"job-id": "job"}, **arguments)
        while True:
            (job,) = self.ask("query-jobs")
            if job["status"] == "concluded":
                break
            time.sleep(0.01)
        if "error" in job:
            raise SystemExit(f"{command}: {job['error']}")
        self.ask("job-dismiss", id="job")

    def output(self):
        with open(self.log) as f:
            return f.read()


def main():
    moves, args = int(sys.argv[1]), sys.argv[2:]
    snapshots, module = args[0] == "--savevm", args[0] == "--module"
    args = args[snapshots or module:]
    pauses = random.Random(1)
    moved, state = 0, None
    with tempfile.TemporaryDirectory() as folder:
        image = f"{folder}/image" if snapshots else None
        for n in range(moves + 1):
            try:
                qemu = Qemu(args, folder, n, state, image)
            except Ended:
                raise SystemExit(f"QEMU {n} has ended before its guest went on") from None
            try:
                if module and state:
                    qemu.load_module(f"{state}.pmu")
                qemu.ask("cont")
                while module and not state and not qemu.output().endswith("\n"):
                    qemu.ask("query-status") # until it says that it has used its PMU
                if n < moves:
                    time.sleep(pauses.uniform(0.0002, 0.002) * (50 if module else 1))
                    qemu.ask("stop")
                    state = f"{folder}/state{n}"
                    qemu.save(state, image)
                    if module:
                        qemu.module("save", f"{state}.pmu")
                    qemu.ask("quit")
                    moved += 1
            except Ended:
                n = moves  # the guest has, by its exit device
            status = qemu.process.wait()
            sys.stdout.write(qemu.output())
            if n == moves:
                break
    print(f"moved {moved}")
    return status


if __name__ == "__main__":
    sys.exit(main())
