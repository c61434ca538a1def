#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A guest moves from one QEMU to another in mid-run, several times.

migrate.py MOVES [--savevm] QEMU OPTION...   prints the guest's serial output, all of
it, and ends with its last QEMU's status. The guest is stopped after a while, saved
to a file, and goes on in a new QEMU that loads it. The policy is another one each
time, and the new host has an event of its own, that leaves pinned ones alone; but
not with KVM.
--savevm: to snapshots in one image of a disk, as savevm and loadvm have them.
"""
import atexit, json, os, random, socket, subprocess, sys, tempfile, time

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
            self.qmp.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
            self.qmp.flush()
        except (BrokenPipeError, ConnectionResetError):
            raise Ended from None
        while True:
            try:
                line = self.qmp.readline()
            except ConnectionResetError:
                raise Ended from None
            if not line.endswith("\n"):
                raise Ended
            reply = json.loads(line)
            if "error" in reply:
                raise SystemExit(f"{command}: {reply['error']['desc']}")
            if "return" in reply:
                return reply["return"]

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
    snapshots = args[0] == "--savevm"
    args = args[snapshots:]
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
                qemu.ask("cont")
                if n < moves:
                    time.sleep(pauses.uniform(0.0002, 0.002))
                    qemu.ask("stop")
                    state = f"{folder}/state{n}"
                    qemu.save(state, image)
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


sys.exit(main())
