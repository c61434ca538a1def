#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A running guest moves from one QEMU process to the next, by precopy.

migrations.py MOVES KINDS QEMU OPTION...   the guest is tests/guest/migrating

What goes from one to the next passes through this program, which keeps its end: in
that are the PMUs' saved states. Each tenth move, and the first, is looked at: all of
the guest's memory (its PEBS buffers too) is the same on both sides, and the guest,
before it goes on, moves once more, with states of the same bytes (its branch records
too). In the second move the destination is killed half-way, and the guest goes on
where it was.

KINDS are the names of the runs that must go on to the end: two that count, and then those
that sample, one after the other. Prints the guest's lines that
are not "ok", a case for the moves and one for all that the guest has said.
"""
import atexit, collections, hashlib, os, re, socket, subprocess, sys, tempfile, time

import qmp

MAGIC = b"VPMU"
TAIL = 4 << 20
BUSY = 2  # runs of each kind that must end after the last move


class Failed(Exception):
    pass


class Qemu:
    def __init__(self, args, folder, n, incoming):
        self.name = f"QEMU {n}"
        self.folder, self.n = folder, n
        self.log = f"{folder}/serial{n}"
        self.incoming = f"{folder}/incoming{n}"
        with open(f"{folder}/stderr{n}", "wb") as errors:
            self.process = subprocess.Popen(
                args + ["-qmp", f"unix:{folder}/qmp{n},server=on,wait=off", "-S",
                        "-serial", f"file:{self.log}"] + (["-incoming", "defer"] if incoming else []),
                stdin=subprocess.DEVNULL, stderr=errors)
        atexit.register(self.process.kill)
        s = socket.socket(socket.AF_UNIX)
        while s.connect_ex(f"{folder}/qmp{n}"):
            if self.process.poll() is not None:
                self.fail("does not start")
            time.sleep(0.02)
        self.qmp = s.makefile("rw")
        self.qmp.readline()
        self.ask("qmp_capabilities")
        self.ask("migrate-set-parameters", **{"max-bandwidth": 4 << 30})
        if incoming:
            self.ask("migrate-incoming", uri=f"unix:{self.incoming}")

    def fail(self, what):
        with open(f"{self.folder}/stderr{self.n}", errors="replace") as f:
            said = f.read().strip().split("\n")[-1]
        raise Failed(f"{self.name}: {what}: {said}")

    def ask(self, command, **arguments):
        try:
            return qmp.ask(self.qmp, self.qmp, command, arguments)
        except qmp.Gone:
            self.fail(f"{command}: has gone")
        except qmp.Refused as e:
            self.fail(f"{command}: {e}")

    def migrated(self):
        while True:
            found = self.ask("query-migrate")
            if found.get("status") in ("completed", "failed", "cancelled"):
                return found["status"]
            time.sleep(0.02)

    def memory(self):
        """A digest of its RAM."""
        path = f"{self.folder}/memory"
        size = self.ask("query-memory-size-summary")["base-memory"]
        self.ask("pmemsave", val=0, size=size, filename=path)
        with open(path, "rb") as f:
            digest = hashlib.file_digest(f, "blake2b") if hasattr(hashlib, "file_digest") else \
                hashlib.blake2b(f.read())
        os.unlink(path)
        return digest.hexdigest()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.qmp.close()
        for name in "qmp", "incoming", "stderr":
            path = f"{self.folder}/{name}{self.n}"
            if os.path.exists(path):
                os.unlink(path)


def move(source, target, kill_at=None):
    """Returns the end of what went over, or None when the target was killed."""
    path = f"{source.folder}/outgoing{source.n}.{target.n}"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(1)
    source.ask("migrate", uri=f"unix:{path}")
    inside, _ = listener.accept()
    outside = socket.socket(socket.AF_UNIX)
    outside.connect(target.incoming)
    tail, kept, total = collections.deque(), 0, 0
    while True:
        data = inside.recv(1 << 20)
        if not data:
            break
        try:
            outside.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            break
        total += len(data)
        tail.append(data)
        kept += len(data)
        while kept - len(tail[0]) >= TAIL:
            kept -= len(tail.popleft())
        if kill_at is not None and total >= kill_at:
            target.end()
            break
    outside.close()
    inside.close()
    listener.close()
    os.unlink(path)
    status = source.migrated()
    if kill_at is not None:
        if status != "failed":
            raise Failed(f"{source.name}: {status} although its target was killed")
        return None
    if status != "completed":
        target.fail(f"{source.name} says {status}")
    if target.migrated() != "completed":
        target.fail("has not taken it")
    return b"".join(tail)


def states(stream):
    """The PMUs' saved states, in their order."""
    found, at = [], stream.find(MAGIC)
    while at >= 0:
        version, total = (int.from_bytes(stream[at + 4 * i:at + 4 * i + 4], "little") for i in (1, 2))
        if version == 1 and 16 < total <= 65536:
            found.append(stream[at:at + total])
        at = stream.find(MAGIC, at + 4)
    return found


class Guest:
    """A guest's output so far, on all consoles that it has had."""

    def __init__(self):
        self.passed = collections.Counter()
        self.failed, self.last, self.seen, self.rest = [], "", 0, ""
        self.now = ""  # event that it samples with

    def read(self, qemu):
        with open(qemu.log, "rb") as f:
            f.seek(self.seen)
            data = f.read()
        self.seen += len(data)
        *lines, self.rest = (self.rest + data.decode(errors="replace")).replace("\r", "").split("\n")
        for line in lines:
            if line.startswith("ok "):
                self.passed[line[3:]] += 1
            elif line.startswith("not ok ") or re.search(r"BUG:|WARNING:|Oops|unchecked MSR", line):
                self.failed.append(line)
                print("#", line, flush=True)
            elif line.startswith("now "):
                self.now = line[4:]
            self.last = line or self.last

    def moved(self):
        """The next console is another file."""
        self.seen = 0


def wait_for(guest, qemu, holds, what):
    while True:
        guest.read(qemu)
        if holds():
            return
        if qemu.process.poll() is not None:
            qemu.fail(f"has ended while waiting for {what}; the guest: {guest.last}")
        time.sleep(0.05)


def run(moves, args, folder, guest, result):
    n = 0
    sampling = result["kinds"][2:]
    qemu = Qemu(args, folder, n, False)
    qemu.ask("cont")
    while result["moves"] < moves:
        # The first moves in the middle of each kind of sampling, the others anywhere.
        if result["moves"] < len(sampling):
            kind = sampling[result["moves"]]
            wait_for(guest, qemu, lambda: guest.now == kind, f"{kind} to begin")
        time.sleep(0.2 + 0.37 * (result["moves"] % 5))
        looked = result["moves"] % 10 == 0
        n += 1
        target = Qemu(args, folder, n, True)
        if result["moves"] == 1 and not result["killed"]:
            move(qemu, target, kill_at=16 << 20)
            if not qemu.ask("query-status")["running"]:
                raise Failed(f"{qemu.name}: does not go on when its target was killed")
            result["killed"] += 1
            continue
        before = states(move(qemu, target))
        if looked and qemu.memory() != target.memory():
            raise Failed(f"move {n}: the memory differs")
        qemu.end()
        guest.read(qemu)
        guest.moved()
        qemu = target
        if looked:
            n += 1
            target = Qemu(args, folder, n, True)
            after = states(move(qemu, target))
            if not before or before != after:
                raise Failed(f"move {n}: {len(before)} and {len(after)} saved states that differ")
            result["looked"] += 1
            qemu.end()
            qemu = target
        qemu.ask("cont")
        result["moves"] += 1
        guest.read(qemu)
    goal = {kind: guest.passed[kind] + BUSY for kind in result["kinds"]}
    wait_for(guest, qemu, lambda: guest.failed or all(guest.passed[k] >= goal[k] for k in goal),
             f"runs of {goal} after {dict(guest.passed)}")
    qemu.end()


def main():
    moves, kinds, args = int(sys.argv[1]), sys.argv[2].split(","), sys.argv[3:]
    guest = Guest()
    result = {"moves": 0, "looked": 0, "killed": 0, "kinds": kinds}
    why = ""
    with tempfile.TemporaryDirectory() as folder:
        try:
            run(moves, args, folder, guest, result)
        except Failed as e:
            why = str(e)
    print(f"not ok moves: after {result['moves']}: {why}" if why else
          f"ok {moves} moves, {result['looked']} of them looked at, {result['killed']} cut off", flush=True)
    said = ", ".join(f"{n} {kind}" for kind, n in sorted(guest.passed.items()))
    if guest.failed or not guest.passed:
        print(f"not ok runs: {len(guest.failed)} wrong ({guest.failed[:1]}) beside {said}")
    else:
        print(f"ok runs, all exact: {said}")
    return 1 if why or guest.failed else 0


sys.exit(main())
